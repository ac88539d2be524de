"""The tables of the model card: what each checkpoint answers, how sure it may be, and what its training was worth."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from qa_backends import catalog
from qa_backends.checkpoints.manifest import read_manifest
from qa_backends.checkpoints.sources import local_folder
from qa_backends.measure.quality.datasets import TITLES, title_of_file
from qa_backends.measure.results.document import lacking, listed, markdown
from qa_backends.measure.results.files import read_results
from qa_backends.measure.results.records import Techniques
from qa_backends.measure.results.shipped import checkpoint_hash, quality_in
from qa_backends.measure.timing.statistics import signed
from qa_backends.paths import (
    ACCURACY,
    ACCURACY_AVX2,
    DISTILLATION,
    SWAPPED,
    TECHNIQUES,
    WRITTEN,
    WRITTEN_HELD_OUT,
    WRITTEN_TEXTS,
)
from qa_backends.squad import read_squad

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from qa_backends.catalog import Backend, Family
    from qa_backends.checkpoints.manifest import Manifest
    from qa_backends.measure.results.records import QualityRecord, Techniques
    from qa_backends.measure.timing.statistics import Difference

CARD_FAMILY = "minilm"
"""The embedded family."""
MOST_LOST_TO_INT8 = 0.5
"""F1."""
CONFIDENCE = (
    "What the confidence of an answer is worth: the expected calibration error, in percent, is how far the share of "
    "exactly right answers is from the confidence they were given with, in the mean over answers (15 bins, Guo et al. "
    "2017). The temperature was fitted on the held-out articles, and changes no answer. The threshold is how far ahead "
    "of the best span `no answer` must be, to be the answer, for the highest F1 on the held-out articles. All "
    "checkpoints were trained on those articles, or began as one that was, so they use 0. The temperature is the one "
    "of the highest likelihood, which need not be that of the least error."
)

RUNS = (
    "How each checkpoint came about, by its manifest: every run in order, with its passes over SQuAD's training "
    "questions, the written questions that it learned besides and how many times a pass, and at its end F1 on the "
    "held-out articles, which `baseline` learned from in its first two runs. A mean is one of the weights."
)


def card() -> str:
    """All that the model card says of what was measured.

    Raises:
        InputError: see ``techniques_table``.
    """
    parts = [quality_table(ACCURACY), quality_elsewhere(), rounding(), confidence(), confidence_table()]
    parts.append(techniques_table("What techniques of training are worth", read_results(TECHNIQUES, Techniques)))
    parts.append(techniques_table("What the teacher of `distilled` is worth", read_results(DISTILLATION, Techniques)))
    parts.append(written())
    parts.append(techniques_table("What the first 893 of them were worth", read_results(WRITTEN_TEXTS, Techniques)))
    parts.append(techniques_table("What swapped questions are worth", read_results(SWAPPED, Techniques)))
    parts += [RUNS, runs_table()]
    return "\n\n".join(parts)


def quality_table(file: Path) -> str:
    """Quality in detail of every backend of the embedded family, on each data set it was wholly measured on, by the
    file."""
    return _details(_measured(file))


def _details(measured: list[tuple[str, QualityRecord]]) -> str:
    head = ["backend", "data", "questions", "EM", "F1", "F1 less the baseline's", "F1, answerable", "F1, unanswerable"]
    return markdown([*head, "same answer as baseline"], [_detail(title, each) for title, each in measured])


def _measured(file: Path) -> list[tuple[str, QualityRecord]]:
    """What the file holds of the weights that ship, with the data set's title."""
    family = catalog.family(CARD_FAMILY)
    found = [
        (title, quality_in(file, family, backend, data=data))
        for data, title in TITLES.items()
        for backend in _told_of(family)
    ]
    return [(title, each) for title, each in found if each]


def _told_of(family: Family) -> list[Backend]:
    """What is offered, and the baseline in INT8, which tells what rounding costs before anything is removed."""
    return [*catalog.offered(family), catalog.backend(f"{catalog.BASELINE}-ov-int8")]


def quality_elsewhere() -> str:
    """What INT8 answers on a processor of another kind, under a sentence that says why it is apart."""
    apart = (
        "INT8 has weights of 7 bits on a processor that, as Linux tells, does not add products of 8 bits up in one "
        "instruction (VNNI), and answers otherwise there."
    )
    measured = _measured(ACCURACY_AVX2)
    if not measured:
        return f"{apart} It was measured of earlier weights alone, so no figures are shown."
    _, first = measured[0]
    return f"{apart} On {first.machine.sentence('cpu')}:\n\n{_details(measured)}"


def rounding() -> str:
    """Which INT8 loses more than it is meant to against the same weights in FP32, and on what, above a table of what it
    costs each with weights of 8 bits."""
    eight, seven = _costs_of_rounding(ACCURACY), _costs_of_rounding(ACCURACY_AVX2)
    named = {
        f"`{name}` with weights of {bits} bits": costs
        for bits, measured in ((8, eight), (7, seven))
        for name, costs in measured.items()
    }
    lost = {
        f"{what} on {title} ({cost.spelt()})": cost
        for what, costs in named.items()
        for title, cost in costs.items()
        if cost and -cost.value > MOST_LOST_TO_INT8
    }
    surely = [what for what, cost in lost.items() if -cost.high > MOST_LOST_TO_INT8]
    perhaps = [what for what in lost if what not in surely]
    unknown = [f"weights of {bits} bits" for bits, costs in ((8, eight), (7, seven)) if not _any_known(costs)]
    unknown += [what for what, costs in named.items() if any(costs.values()) and None in costs.values()]
    parts = [f"INT8 is meant to lose at most {MOST_LOST_TO_INT8:g} F1 against the same weights in FP32."]
    parts += [] if lost else ["Where it was measured, it loses no more."]
    parts += [f"It surely loses more: {'; '.join(surely)}."] if surely else []
    parts += [f"By the figure alone, whose interval holds less: {'; '.join(perhaps)}."] if perhaps else []
    parts += [f"Not measured: {'; '.join(unknown)}."] if unknown else []
    head = (
        "F1 with weights of 8 bits and the rest in FP32, less that of the same weights all in FP32, on the same "
        "questions:"
    )
    lines = [
        [f"`{name}`", *[cost.spelt() if cost else "" for cost in costs.values()]]
        for name, costs in eight.items()
        if any(costs.values())
    ]
    table = [head, markdown(["backend", *TITLES.values()], lines)] if lines else []
    return "\n\n".join([" ".join(parts), *table])


def _any_known(costs: dict[str, dict[str, Difference | None]]) -> bool:
    return any(cost for by_title in costs.values() for cost in by_title.values())


def _costs_of_rounding(file: Path) -> dict[str, dict[str, Difference | None]]:
    """By backend in INT8, BF16 beside it left out, and by data set's title: its F1 less its own weights' in FP32."""
    family = catalog.family(CARD_FAMILY)
    int8 = [each for each in _told_of(family) if each.rounds and not each.options]
    return {
        each.name: {
            title: found.parent_difference if (found := quality_in(file, family, each, data=data)) else None
            for data, title in TITLES.items()
        }
        for each in int8
    }


def _detail(title: str, record: QualityRecord) -> list[str]:
    return [
        f"`{record.name}`",
        title,
        f"{record.n:,}",
        f"{record.exact:.2f}",
        f"{record.f1:.2f}",
        record.f1_difference.spelt() if record.f1_difference else "",
        *["" if part is None else f"{part:.2f}" for part in (record.has_ans_f1, record.no_ans_f1)],
        "" if record.agreement is None else f"{record.agreement:.2f} %",
    ]


def confidence() -> str:
    """How what confidence is worth was measured, and on which data sets the temperature does harm."""
    worse = defaultdict[str, list[str]](list)
    for name, _, each in _calibrated():
        if each["after"] > each["before"]:
            worse[_title(each["data"])].append(f"`{name}`")
    harm = [f"{data} of {listed(names)}" for data, names in worse.items()]
    return CONFIDENCE + (f" It makes the error larger on {'; on '.join(harm)}." if harm else "")


def confidence_table() -> str:
    """What the confidence of each checkpoint of the embedded family is worth, as its manifest says; see
    ``quality.calibration``."""
    lines = []
    for name, made, each in _calibrated():
        data, errors = _title(each["data"]), (each["before"], each["after"])
        sure = [f"{made.temperature:.2f}", *(f"{error:.1f}" for error in errors)]
        f1 = [f"{each[at]:.2f}" for at in ("f1", "f1_at_threshold")]
        threshold = signed(made.settings["calibration"]["threshold"], 2)
        lines.append([f"`{name}`", data, f"{each['questions']:,}", *sure, threshold, *f1])
    figures = ["temperature", "error at temperature 1", "error at the temperature"]
    figures += ["threshold", "F1 at 0", "F1 at the threshold"]
    return markdown(["checkpoint", "data", "questions", *figures], lines)


def _calibrated() -> Iterator[tuple[str, Manifest, dict[str, Any]]]:
    """Each checkpoint of the embedded family with its manifest and what that says of calibration on one data set."""
    for name, source in catalog.family(CARD_FAMILY).checkpoints:
        made = read_manifest(local_folder(source))
        for each in made.settings.get("calibration", {}).get("errors", ()):
            yield name, made, each


def _title(data: str) -> str:
    """As ``title_of_file``, and of the texts that are chosen by."""
    return "held-out written texts" if data == WRITTEN_HELD_OUT.name else title_of_file(data)


def written() -> str:
    """How many texts ship to be trained on, and how many to choose by."""
    learned, held_out = (_counts(file) for file in (WRITTEN, WRITTEN_HELD_OUT))
    shown = defaultdict[int, list[str]](list)
    for name, source in catalog.family(CARD_FAMILY).checkpoints:
        runs = read_manifest(local_folder(source)).runs()
        shown[max(run.get("also_questions", 0) for run in runs)].append(f"`{name}`")
    parts = [f"{count:,} by {listed(names)}" for count, names in sorted(shown.items())]
    return (
        f"Written texts: {learned}, to learn besides, and {held_out}, held out to choose by. The file has grown: its "
        f"first questions were learned, {listed(parts)}."
    )


def _counts(file: Path) -> str:
    """As in "700 texts with 6,500 questions, 2,700 of them unanswerable"."""
    questions = read_squad(file)
    texts, without = len({each.context for each in questions}), sum(not each.answers for each in questions)
    return f"{texts:,} texts with {len(questions):,} questions, {without:,} of them unanswerable"


def runs_table() -> str:
    """The runs that made each checkpoint of the embedded family, the first one first."""
    family = catalog.family(CARD_FAMILY)
    ships = {checkpoint_hash(family, catalog.backend(catalog.BASELINE)): f"`{catalog.BASELINE}` as it ships"}
    lines = []
    for name, source in family.checkpoints:
        runs = reversed([*read_manifest(local_folder(source)).runs()])
        lines += [[f"`{name}`", str(number), *_run(run, ships)] for number, run in enumerate(runs, 1)]
    head = ["checkpoint", "run", "done", "passes", "learning rate", "written questions", "taught by"]
    return markdown([*head, "F1, held-out articles"], lines)


def _run(run: dict[str, Any], known: dict[str | None, str]) -> list[str]:
    """What was done, and how well the outcome answers; ``known`` names teachers by their hash."""
    f1 = run.get("held_out", {}).get("f1")
    shown = "" if f1 is None else f"{f1:.2f}"
    if "of" in run:
        return [f"mean of {len(run['of'])}", "", "", "", "", shown]
    teachers = [run["teacher"], *run.get("other_teachers", ())] if "teacher" in run else []
    taught = f"mean of {len(teachers)}" if len(teachers) > 1 else ""
    taught = taught or (known.get(teachers[0], "an earlier checkpoint") if teachers else "")
    count = f"{run['also_questions']:,}" if "also_questions" in run else "the first of them"
    written = f"{count} × {run['also_times']}" if "also" in run else ""
    return [_done(run), f"{run['passes']:.2g}", f"{1e4 * run['learning_rate']:g}e-4", written, taught, shown]


def _done(run: dict[str, Any]) -> str:
    if "density" in run:
        return f"pruned to {100 * run['density']:.0f} %"
    if "layers" in run:
        return "distilled"
    return "trained on" if "before" in run else "fine-tuned"


def techniques_table(what: str, compared: Techniques) -> str:
    """What each technique of training was worth, losers included, and above it how that was found out; ``what`` begins
    the sentence.

    Raises:
        InputError: nothing was compared with anything.
    """
    if len(compared.rows) < 2:
        raise lacking("runs to compare")
    head = ["done otherwise", "data", "questions", "F1", "less the first's", "F1, answerable", "F1, unanswerable"]
    lines = [
        [
            f"`{each.otherwise}`" if each.otherwise else "nothing",
            _title(each.data),
            f"{each.n:,}",
            f"{each.f1:.2f}",
            each.f1_difference.spelt() if each.f1_difference else "",
            *["" if part is None else f"{part:.2f}" for part in (each.has_ans_f1, each.no_ans_f1)],
        ]
        for each in compared.rows
    ]
    return f"{what}: {_how_compared(compared)}\n\n{markdown(head, lines)}"


def _how_compared(compared: Techniques) -> str:
    runs = sum(each.data == compared.rows[0].data for each in compared.rows)
    thresholds = {each.null_threshold for each in compared.rows}
    at = (
        "at the threshold fitted on the held-out articles"
        if len(thresholds) > 1
        else f"at threshold {thresholds.pop():g}"
    )
    passes = {each.settings.get("passes") for each in compared.rows}
    long = f", passes over the questions each: {passes.pop():g}" if len(passes) == 1 else ""
    seen = ", which what they began as or who taught them may have seen" if compared.seen_before else ""
    return (
        f"{runs} runs that began as one checkpoint{long}; after the first, each did something otherwise. "
        f"F1, in percent, {at}, with paired 95 % intervals of the differences. Held out are {len(compared.articles)} "
        f"articles that none of them was trained on{seen}. The intervals are over the questions alone: each row is of "
        "one run, and another seed makes another."
    )
