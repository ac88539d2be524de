"""The table of every backend on one processor, made of measured results and nothing else."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.checkpoints.manifest import read_manifest
from qa_backends.checkpoints.sources import local_folder
from qa_backends.errors import InputError
from qa_backends.measure.benchmark.contestants import ARRIVAL, EQUAL, ORDERS, SINGLY, SORTED
from qa_backends.measure.benchmark.plan import PIPELINE, REFERENCES, SHOWN_AT, BenchmarkPlan
from qa_backends.measure.quality.datasets import DATA_FILES, SHIPPED, SQUAD_V2_DEV, TITLES
from qa_backends.measure.results.card import CARD_FAMILY
from qa_backends.measure.results.document import lacking, listed, markdown
from qa_backends.measure.results.shipped import of_current_shapes, of_current_weights, quality_in
from qa_backends.measure.timing.statistics import UNSTABLE_ABOVE
from qa_backends.paths import ACCURACY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qa_backends.measure.results.records import Benchmark, BenchmarkRecord, LongText, Overhead, QualityRecord

LENGTHS = BenchmarkPlan(family="").lengths
"""Of those measured, the lengths that documents show."""
EARLIER = " (earlier shapes)"
"""What is said of a backend that was measured when its weights had other shapes than those that ship."""
UNSTABLE = "≈"
"""What stands before a figure that was unstable; see ``timing.statistics.unstable``."""
SPEED_HEAD = [*(f"{length} tokens, ms" for length in LENGTHS), "times as fast as the baseline", "questions/s"]
TOOLS = ("torch", "onnxruntime-gpu", "onnxruntime")
"""The packages whose versions it shows, where they were installed."""


def table(benchmark: Benchmark, overhead: Overhead) -> str:
    """Quality, size, latency and throughput of each backend, and under it the machine and how it was measured.

    Raises:
        InputError: the results lack what the table shows, or are of other shapes than those that ship.
    """
    records = [each for each in benchmark.rows if each.order == EQUAL]
    head = ["backend", "same answer, SQuAD"]
    for title in TITLES.values():
        head += [f"F1, {title}", "less the baseline's"]
    head += ["file, MB", "encoder parameters"]
    head += SPEED_HEAD
    names = dict.fromkeys(each.backend for each in records)
    lines = [_cells([each for each in records if each.backend == name]) for name in names]
    return f"{markdown(head, lines)}\n\n{_caption(benchmark, records)}\n- {_overhead(overhead)}"


def _cells(own: list[BenchmarkRecord]) -> list[str]:
    """One backend's line."""
    speed, first = speed_cells(own), checked(own[0])
    return [
        f"`{first.name}`",
        _same_answer(known_quality(first, SQUAD_V2_DEV)),
        *(cell for data in TITLES for cell in quality_cells(known_quality(first, data))),
        f"{first.bytes / 1e6:.1f} ({first.stored})" if first.bytes else "",
        f"{first.encoder_parameters / 1e6:.2f} M" if first.encoder_parameters else "",
        *speed,
    ]


def checked(record: BenchmarkRecord) -> BenchmarkRecord:
    """The record; raises InputError where it is of other shapes than those that ship."""
    if not of_current_shapes(record):
        raise InputError(
            f"{record.backend} was measured of weights of other shapes. Measure again: python -m qa_backends bench "
            "--save …"
        )
    return record


def speed_cells(own: list[BenchmarkRecord]) -> list[str]:
    """One backend's latencies, its ratio to the baseline at the greatest length, and its throughput.

    Raises:
        InputError: the results lack one of these.
    """
    single = {each.tokens: each for each in own if each.batch == 1}
    batched = [each for each in own if each.batch > 1]
    if not batched or not single.keys() >= set(LENGTHS):
        raise lacking(f"{own[0].name} at {', '.join(map(str, LENGTHS))} tokens, one by one and in batches")
    last, best = single[LENGTHS[-1]], max(batched, key=lambda each: each.questions_per_second)
    if _asked_singly(own[0]):
        best = single[SHOWN_AT]
    return [
        *[unsteady(single[length], f"{single[length].p50_ms:.1f}") for length in LENGTHS],
        ratio_of(last),
        unsteady(best, f"{best.questions_per_second:.0f} ({f'batches of {best.batch}' if best.batch > 1 else SINGLY})"),
    ]


def _asked_singly(record: BenchmarkRecord) -> bool:
    """Whether questions that come together are put to the backend one by one, so that what it was measured to do of
    batches, before that was so, cannot be had."""
    return record.name not in REFERENCES and catalog.backend(record.name).scaled_by_batch


def unsteady(record: BenchmarkRecord, figure: str) -> str:
    """A figure of the record, marked where it was unstable."""
    return f"{UNSTABLE if record.unstable else ''}{figure}"


def ratio_of(record: BenchmarkRecord) -> str:
    """How many times as fast as the baseline it is; of a tie the interval says how surely. Nothing of one that did not
    take turns with it."""
    if record.against_baseline is None:
        return "1" if record.name == catalog.BASELINE else ""
    ratio = record.against_baseline.ratio
    return str(ratio) if ratio.tie else unsteady(record, str(ratio))


def named(record: BenchmarkRecord | LongText) -> str:
    """The backend, and whether it was measured of other shapes than those that ship."""
    return f"`{record.name}`{'' if of_current_shapes(record) else EARLIER}"


def of_earlier_weights(records: Sequence[BenchmarkRecord | LongText]) -> str:
    """Says, as the end of a paragraph, that some times were measured with earlier weights of the same shapes; nothing
    where none were."""
    old = any(of_current_shapes(each) and not of_current_weights(each) for each in records)
    others = "" if all(map(of_current_shapes, records)) else " of the others"
    return (
        f" Times{others} were measured with earlier weights of the same shapes: they depend on the shapes alone."
        if old
        else ""
    )


def fastest_of(benchmark: Benchmark) -> str:
    """Which backend is the fastest of a whole benchmark, beside the pipeline, one question at a time and many, and how
    far to trust that.

    Raises:
        InputError: the results lack what is told.
    """
    at = [each for each in benchmark.rows if (each.order, each.tokens, each.batch) == (EQUAL, SHOWN_AT, 1)]
    ours = [each for each in at if each.name not in REFERENCES]
    pipelines = [each for each in at if each.name == PIPELINE]
    if not ours or not pipelines:
        raise lacking(f"a backend and the pipeline at {SHOWN_AT} tokens")
    best = min(ours, key=lambda each: each.p50_ms)
    return (
        f"On {benchmark.machine.sentence(best.device)}, {named(best)} has the lowest median at {SHOWN_AT} tokens, "
        f"{best.p50_ms:.1f} ms, where transformers' pipeline takes {pipelines[0].p50_ms:.1f} ms. {_mixed(benchmark)}"
        f"{beside_the_others(benchmark)}"
        f"{unstable_of(benchmark)} measurements were unstable; {UNSTABLE} stands before those that the table shows"
        f"{_absent(benchmark)}."
    )


def beside_the_others(benchmark: Benchmark) -> str:
    """How many backends took longer or less beside the others than by themselves, which differs most, and where other
    work disturbed, as sentences with a space behind them; nothing where none was measured by itself."""
    if not benchmark.alone:
        return ""
    longer, less = (
        [each for each in benchmark.alone if each.differs and (each.ratio > 1) is up] for up in (True, False)
    )
    furthest = max(benchmark.alone, key=lambda each: abs(math.log(each.ratio)))
    percent = f"{100 * UNSTABLE_ABOVE:.0f} %"
    return (
        f"At the end each backend was measured by itself: beside the others {len(longer) or 'none'} of "
        f"{len(benchmark.alone)} had taken over {percent} longer than that, and {len(less) or 'none'} over {percent} "
        "less: the others disturbed, or the machine changed its pace. The medians differ most for "
        f"`{furthest.name}`: {furthest.p50_ms:.1f} ms by itself, {furthest.company_p50_ms:.1f} ms beside them. "
        f"{f'{benchmark.disturbed} ' if benchmark.disturbed else ''}"
    )


def unstable_of(benchmark: Benchmark) -> str:
    """As in "115 of 257", its measurements."""
    return f"{sum(each.unstable for each in benchmark.rows)} of {len(benchmark.rows)}"


def _absent(benchmark: Benchmark) -> str:
    """Which backends could not run, as the end of a sentence."""
    names = [f"`{each.backend}`" for each in benchmark.left_out if each.backend and not each.point]
    return f"; {', '.join(names)} cannot run there" if names else ""


def known_quality(record: BenchmarkRecord, data: str) -> QualityRecord | None:
    """What ships of the record's backend on the data set; a reference of somebody else's has none."""
    if record.name in REFERENCES:
        return None
    return quality_in(ACCURACY, *catalog.resolve(record.backend), record.device, data)


def _same_answer(known: QualityRecord | None) -> str:
    return "" if known is None or known.agreement is None else f"{known.agreement:.1f} %"


def quality_cells(known: QualityRecord | None) -> list[str]:
    """F1 with its interval, and the difference to the baseline's; empty where they are not known."""
    if known is None:
        return ["", ""]
    return [
        known.f1_interval.around(known.f1),
        known.f1_difference.spelt() if known.f1_difference else "",
    ]


def _caption(benchmark: Benchmark, records: list[BenchmarkRecord]) -> str:
    if not records or not benchmark.alone:
        raise lacking("any backend, or any alone")
    machine, versions = benchmark.machine, benchmark.machine.versions
    tools = [f"{name.removesuffix('-gpu')} {versions[name]}" for name in TOOLS if name in versions]
    runs = min(each.runs for each in records if each.batch == 1)
    notes = [
        f"{data_sets()}; threshold {thresholds()}, 95 % bootstrap intervals, differences paired; answered on "
        f"{answered_on(records)}.",
        f"Latency: whole answers (tokenise, model, decode), batch 1, median of at least {runs} runs taken in turns; "
        f"ratio of medians at {LENGTHS[-1]} tokens with its interval. Questions a second: the best of the batch sizes, "
        f"at {benchmark.plan.shown_at} tokens. On a CPU the FP16 weights are computed in FP32.",
        "`hf-pipeline` is transformers' own question-answering pipeline on the baseline's weights; `ort` and "
        "`openvino` are these runtimes called as their documentation shows, on the pruned weights' graph.",
        f"Measured on {machine.sentence(records[0].device)}; {', '.join(tools)}. "
        f"{beside_the_others(benchmark)}"
        f"{unstable_of(benchmark)} measurements were unstable; {UNSTABLE} stands before those that the table shows."
        f"{of_earlier_weights(benchmark.rows)}",
        _mixed(benchmark).strip(),
    ]
    return "\n".join(f"- {each}" for each in notes if each)


def _mixed(benchmark: Benchmark) -> str:
    """What the fastest backend does of mixed lengths, beside the pipeline, each in the best of its ways; nothing where
    one of them was not asked."""
    mixed = sorted((each for each in benchmark.rows if each.tokens is None), key=lambda each: each.questions_per_second)
    ours = [each for each in mixed if each.name not in REFERENCES]
    theirs = [each for each in mixed if each.name == PIPELINE]
    if not ours or not theirs:
        return ""
    best, other = ours[-1], theirs[-1]
    return (
        f"Of {best.questions} questions whose lengths are mixed, {named(best)} answers {_rate(best)}, and the pipeline "
        f"{_rate(other)}. "
    )


def _rate(record: BenchmarkRecord) -> str:
    """As in "306 a second in batches of 4 sorted by length"."""
    batches = f"in batches of {record.batch} " if record.order in (ARRIVAL, SORTED) else ""
    return f"{record.questions_per_second:.0f} a second {batches}{ORDERS[record.order]}"


def data_sets() -> str:
    """What the data sets are, by the baseline's records."""
    baseline = catalog.resolve(catalog.BASELINE, CARD_FAMILY)
    known = {title: quality_in(ACCURACY, *baseline, data=data) for data, title in TITLES.items()}
    called = {DATA_FILES[name]: name for name in SHIPPED}
    named = [
        f"{title}: {f'`{called[found.data]}`' if found.data in called else found.data}, all {found.n:,} questions"
        for title, found in known.items()
        if found
    ]
    return "F1 on " + "; ".join(named)


def answered_on(records: list[BenchmarkRecord]) -> str:
    """The processors that gave the answers whose quality is shown."""
    known = [known_quality(each, data) for each in records for data in TITLES]
    return listed(sorted({each.machine.processor for each in known if each}))


def _overhead(overhead: Overhead) -> str:
    at = [each for each in overhead.rows if each.tokens == SHOWN_AT]
    if not at:
        raise lacking(f"the app's own cost at {SHOWN_AT} tokens")
    costs = [
        f"{each.own_ms:.2f} ms a question beside `{each.name}` ({each.tokenise_ms:.2f} to "
        f"tokenise, {each.decode_ms:.2f} to decode, {each.bookkeeping_ms:.2f} around it)"
        for each in at
    ]
    first, machine = at[0], overhead.machine.sentence("cpu")
    shares = {each.name: max(row.share_of_model for row in overhead.rows if row.backend == each.backend) for each in at}
    most = [f"{100 * share:.1f} % of `{name}`'s" for name, share in shares.items()]
    return (
        f"The app's own cost at {SHOWN_AT} tokens is {' and '.join(costs)}, measured on {machine}. The tokenizer "
        f"library would take {first.tokenizer_call_ms:.2f} ms to tokenise; a server that has had a question about the "
        f"same text takes {first.tokenise_kept_ms:.2f}. At no length is the own cost more than {' and '.join(most)} "
        "model time."
    )


def written_apart() -> str:
    """Which checkpoints learned texts of such kinds as are measured with, by their manifests; as a sentence, with a
    space behind it."""
    made = {name: read_manifest(local_folder(source)) for name, source in catalog.family(CARD_FAMILY).checkpoints}
    by = listed([f"`{name}`" for name, each in made.items() if any(run.get("also") for run in each.runs())])
    if not by:
        return ""
    return f"Nothing was trained on these; {by} learned [texts of such kinds](assets/training), written apart. "


def thresholds() -> str:
    """Of "no answer", of the checkpoints of the embedded family."""
    made = [read_manifest(local_folder(source)) for _, source in catalog.family(CARD_FAMILY).checkpoints]
    return " and ".join(sorted({f"{each.null_threshold:g}" for each in made}))
