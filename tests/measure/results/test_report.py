"""The tables of the README, the model card and the documents: what they show, and what they refuse to show."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from measure.invented import benchmark_record

from qa_backends import catalog
from qa_backends.checkpoints.manifest import read_manifest
from qa_backends.errors import InputError
from qa_backends.measure.benchmark.plan import REFERENCES
from qa_backends.measure.results import card
from qa_backends.measure.results.card import quality_elsewhere, quality_table, rounding, runs_table, written
from qa_backends.measure.results.document import with_table
from qa_backends.measure.results.documents import (
    MODEL_CARD,
    PROCESSORS,
    README,
    published_table,
    throughput_table,
)
from qa_backends.measure.results.files import add_quality, read_benchmark, read_quality, read_results
from qa_backends.measure.results.processors import reached, table_elsewhere
from qa_backends.measure.results.records import Against, Benchmark, Overhead
from qa_backends.measure.results.report import fastest_of, of_earlier_weights, table, written_apart
from qa_backends.measure.results.shipped import _of_the_whole_set, benchmark_in, checkpoint_hash, current_shapes
from qa_backends.measure.results.summary import summary
from qa_backends.measure.timing.statistics import Difference, Ratio
from qa_backends.paths import (
    ACCURACY,
    ACCURACY_AVX2,
    AMD,
    AVX2,
    BENCHMARK,
    INTEL,
    LADDER,
    OVERHEAD,
    THROUGHPUT,
    WRITTEN,
    WRITTEN_HELD_OUT,
    measured_on,
)

if TYPE_CHECKING:
    from pathlib import Path

    from qa_backends.measure.results.records import BenchmarkRecord

SHIPPED = benchmark_in(BENCHMARK)
ON_AMD, ON_INTEL, ELSEWHERE = (benchmark_in(measured_on(kind, BENCHMARK)) for kind in (AMD, INTEL, AVX2))
COST = read_results(OVERHEAD, Overhead)


def cells(text: str) -> dict[str, list[str]]:
    """The table's lines by their first cell."""
    lines = [line.strip("| ").split("|") for line in text.splitlines() if line.startswith("| `")]
    return {line[0].split("`")[1]: [cell.strip() for cell in line[1:]] for line in lines}


def figure(record: BenchmarkRecord, shown: str) -> str:
    """As a table shows it."""
    return f"≈{shown}" if record.unstable else shown


def ratio(record: BenchmarkRecord) -> str:
    """To the baseline, as a table shows it."""
    if record.against_baseline is None:
        return "1"
    found = record.against_baseline.ratio
    return str(found) if found.tie else figure(record, str(found))


def but(benchmark: Benchmark, **other: Any) -> Benchmark:
    """With fields of every record replaced."""
    return replace(benchmark, rows=tuple(replace(each, **other) for each in benchmark.rows))


def test_every_ratio_is_said_as_the_page_does() -> None:
    shown = cells(table(SHIPPED, COST))
    assert list(shown) == list(dict.fromkeys(each.name for each in SHIPPED.rows if each.order == "equal"))
    ratios = {each.name: ratio(each) for each in SHIPPED.rows if (each.tokens, each.batch) == (384, 1)}
    assert {name: line[-2] for name, line in shown.items()} == ratios
    tie = but(SHIPPED, against_baseline=Against(1.01, 0.98, 1.03, 30, "minilm/baseline"))
    assert {line[-2] for line in cells(table(tie, COST)).values()} == {str(Ratio(1.01, 0.98, 1.03, 30))}


def test_the_whole_table_shows_what_was_measured_and_on_what() -> None:
    text = table(SHIPPED, COST)
    line = cells(text)["pruned-ort"]
    single = {each.tokens: each for each in SHIPPED.rows if (each.name, each.batch) == ("pruned-ort", 1)}
    assert line[9:12] == [figure(single[length], f"{single[length].p50_ms:.1f}") for length in (32, 128, 384)]
    best = max((each for each in SHIPPED.rows if each.name == "pruned-ort" and each.batch > 1),
               key=lambda each: each.questions_per_second)  # fmt: skip
    assert line[-1].startswith(f"{figure(best, f'{best.questions_per_second:.0f}')} (batches of ")
    for said in (SHIPPED.machine.processor, SHIPPED.machine.date, f"torch {SHIPPED.machine.versions['torch']}"):
        assert said in text


def test_what_was_unstable_is_marked_and_nothing_else() -> None:
    for unstable in (True, False):
        shown = cells(table(but(SHIPPED, unstable=unstable), COST))
        marked = [[cell.startswith("≈") for cell in (*line[9:12], line[-1])] for line in shown.values()]
        assert all(each == [unstable] * 4 for each in marked)


def test_what_is_asked_one_question_a_call_has_no_rate_of_batches() -> None:
    shown = cells(table(but(SHIPPED, unstable=False), COST))["pruned-ort-int8-dynamic"]
    at = [each for each in SHIPPED.rows if (each.name, each.tokens) == ("pruned-ort-int8-dynamic", 128)]
    alone = next(each for each in at if each.batch == 1)
    assert shown[-1] == f"{alone.questions_per_second:.0f} (one by one)"
    assert any(each.batch > 1 and each.questions_per_second > alone.questions_per_second for each in at)


def test_mixed_lengths_are_told_of_the_fastest_and_of_the_pipeline_each_in_its_better_way() -> None:
    mixed = next(each for each in SHIPPED.rows if each.tokens is None and each.name == "pruned")
    speeds = {("pruned", "arrival"): 40.0, ("pruned", "sorted"): 50.4, ("hf-pipeline", "arrival"): 4.0,
              ("hf-pipeline", "one by one"): 5.4, ("ort", "one by one"): 90.0}  # fmt: skip
    rows = [
        replace(mixed, backend=f"minilm/{name}", order=order, batch=4, questions_per_second=speed)
        for (name, order), speed in speeds.items()
    ]
    equal = tuple(each for each in SHIPPED.rows if each.tokens is not None)
    text = table(replace(SHIPPED, rows=(*equal, *rows)), COST)
    assert "answers 50 a second in batches of 4 sorted by length, and the pipeline 5 a second one by one." in text
    asked = replace(rows[1], order="as asked", batch=7, questions_per_second=60.4)
    text = table(replace(SHIPPED, rows=(*equal, *rows, asked)), COST)
    assert "`pruned` answers 60 a second as the app batches them, and the pipeline 5" in text
    assert "lengths are mixed" not in table(replace(SHIPPED, rows=equal), COST)


def test_the_readme_shows_the_three_the_fastest_of_each_checkpoint_and_the_pipeline() -> None:
    whole, shown = cells(table(SHIPPED, COST)), cells(summary(SHIPPED, []))
    assert list(shown)[:3] == ["baseline", "pruned", "pruned-ort-fp16"] and list(shown)[-1] == "hf-pipeline"
    together = {
        name: sum(float(cell.strip("≈")) for cell in line[9:12])
        for name, line in whole.items()
        if name not in REFERENCES
    }
    of = {name: catalog.backend(name).checkpoint for name in together}
    fastest = {min((name for name in of if of[name] == each), key=together.__getitem__) for each in set(of.values())}
    assert set(shown) == fastest | {"baseline", "pruned", "pruned-ort-fp16", "hf-pipeline"}
    for name, line in shown.items():
        of_all = whole[name]
        f1 = ["<br>".join(filter(None, of_all[place : place + 2])).replace(" ", "&nbsp;") for place in (1, 3, 5)]
        assert line == [*f1, of_all[7].partition(" ")[0], *of_all[10:-1], of_all[-1].partition(" ")[0]]


def test_results_of_a_few_backends_do_not_carry_the_readme() -> None:
    for left_out, said in (("pruned-ort-fp16", "lack pruned-ort-fp16"), ("hf-pipeline", "lack hf-pipeline")):
        few = replace(SHIPPED, rows=tuple(each for each in SHIPPED.rows if each.name != left_out))
        with pytest.raises(InputError, match=said):
            summary(few, [])
    with pytest.raises(InputError, match="measured of weights of other shapes"):
        summary(but(SHIPPED, shapes="of other shapes"), [])
    with pytest.raises(InputError, match="lack baseline and pruned and"):
        summary(replace(SHIPPED, rows=()), [])


def test_the_readme_says_what_was_reached_on_every_processor() -> None:
    elsewhere = [ON_AMD, ON_INTEL, ELSEWHERE]
    text = README.read_text(encoding="utf-8")
    assert len({each.machine.processor for each in (SHIPPED, *elsewhere)}) == 4
    assert summary(SHIPPED, elsewhere) in text and reached([SHIPPED, *elsewhere]) in text
    assert SHIPPED.machine.sentence("cpu") in text and "all 11,873 questions" in text
    details = PROCESSORS.read_text(encoding="utf-8")
    assert table(SHIPPED, COST) in details
    for each in elsewhere:
        assert fastest_of(each) in details
        times = {row.name: row.p50_ms for row in each.rows if (row.tokens, row.batch) == (128, 1)}
        fastest = min(times[name] for name in times.keys() - REFERENCES.keys())
        assert f"{fastest:.1f} ms, where transformers' pipeline takes {times['hf-pipeline']:.1f} ms." in fastest_of(
            each
        )


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        (
            SHIPPED,
            "beside the others none of 23 had taken over 10 % longer than that, and none over 10 % less",
        ),
        (
            ON_AMD,
            "beside the others 18 of 22 had taken over 10 % longer than that, and none over 10 % less",
        ),
    ],
)
def test_every_processor_is_told_how_far_the_others_disturbed(measured: Benchmark, said: str) -> None:
    text = table(measured, COST) if measured is SHIPPED else table_elsewhere(measured, "")
    assert said in text and text.count(" ms by itself, ") == 1
    assert " ms by itself, " not in fastest_of(replace(measured, alone=()))


def test_another_processor_has_a_table_of_its_own_under_its_name_and_its_fastest() -> None:
    text = table_elsewhere(ELSEWHERE, "This one has no VNNI.")
    assert text.startswith(f"## {ELSEWHERE.machine.processor}\n") and "This one has no VNNI." in text
    at = {each.name: each for each in ELSEWHERE.rows if (each.tokens, each.batch) == (128, 1)}
    times = {name: figure(each, f"{each.p50_ms:.1f}") for name, each in at.items()}
    assert {name: line[1] for name, line in cells(text).items()} == times
    fastest = min(at.keys() - REFERENCES.keys(), key=lambda name: at[name].p50_ms)
    assert f"`{fastest}` has the lowest median at 128 tokens" in text
    assert "`pruned-ov-bf16`" in text.partition("cannot run there")[0].rpartition(";")[2]
    names = ("baseline", "pruned-deep", "hf-pipeline")
    old = [replace(each, shapes="of before") if each.name == "pruned-deep" else each for each in ELSEWHERE.rows
           if each.name in names]  # fmt: skip
    text = table_elsewhere(replace(ELSEWHERE, rows=tuple(old)), "")
    marked = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| `")]
    assert marked == ["`baseline`", "`pruned-deep` (earlier shapes)", "`hf-pipeline`"]
    assert "1 of these 3 were measured with weights of other shapes" in text
    with pytest.raises(InputError, match="lack a backend and the pipeline at 128"):
        table_elsewhere(replace(ELSEWHERE, rows=()), "")


def test_what_is_reached_beside_the_pipeline_is_told_of_each_processor_beside_what_is_aimed_at() -> None:
    text = reached([SHIPPED, ON_INTEL])
    head, _, *lines = [[cell.strip() for cell in line.split("|")] for line in text.splitlines() if "|" in line]
    assert head[3:5] == [f"{each.machine.processor}, {each.machine.date}" for each in (SHIPPED, ON_INTEL)]
    shown = {line[1]: line[2:5] for line in lines}
    assert list(shown) == [
        "128 tokens, one by one", "384 tokens, one by one", "128 tokens, batches of 8", "mixed lengths",
        "128 tokens, one by one, at most 1 F1 lost", "384 tokens, one by one, at most 1 F1 lost",
        "unstable measurements",
    ]  # fmt: skip
    at = {each.name: each for each in ON_INTEL.rows if (each.tokens, each.batch) == (384, 1)}
    fastest = min(at.keys() - REFERENCES.keys(), key=lambda name: at[name].p50_ms)
    times = at["hf-pipeline"].p50_ms / at[fastest].p50_ms
    aim, _, there = shown["384 tokens, one by one"]
    figure, _, rest = there.partition("&nbsp;")
    interval, _, name = rest.partition("<br>")
    assert aim == "10×" and figure == f"{times:.1f}×" and name == f"`{fastest}`"
    low, high = map(float, interval.strip("[]").split("–"))
    assert low <= times <= high
    assert (
        shown["unstable measurements"][2] == f"{sum(each.unstable for each in ON_INTEL.rows)} of {len(ON_INTEL.rows)}"
    )
    assert "earlier shapes" not in reached([SHIPPED])
    old = reached([replace(SHIPPED, rows=tuple(replace(each, shapes="of before") for each in SHIPPED.rows))])
    assert old.count("` (earlier shapes) |") == 6 and "those marked (earlier shapes)" in old
    lossy = [each for each in SHIPPED.rows if each.name.startswith(("distilled", *REFERENCES, "baseline"))]
    text = reached([replace(SHIPPED, rows=tuple(lossy))])
    assert "`baseline` |" in text and "`distilled" not in text, "it loses more than 2 F1"
    careful = [line.rpartition("`pruned")[2] for line in reached([SHIPPED]).splitlines() if "at most 1 F1" in line]
    assert len(careful) == 2 and not any(each.startswith("-deep") for each in careful), "which loses between 1 and 2"
    quick = [replace(each, backend="minilm/distilled-ov-int8", p50_ms=0.01) for each in ELSEWHERE.rows
             if each.name == "pruned-deep"]  # fmt: skip
    assert "`distilled" in reached([replace(ELSEWHERE, rows=(*ELSEWHERE.rows, *quick))])
    quick = [replace(each, quality=None) for each in quick]
    assert "`distilled" not in reached([replace(ELSEWHERE, rows=(*ELSEWHERE.rows, *quick))]), "not known what it loses"


def test_a_figure_without_turns_in_common_has_no_interval() -> None:
    shorter = tuple(
        replace(each, blocks=each.blocks[:-1], samples_ms=replace(each.samples_ms, **{
            part: getattr(each.samples_ms, part)[: -each.blocks[-1]] for part in ("tokenise", "forward", "decode")}))
        if each.name == "hf-pipeline" else each for each in SHIPPED.rows
    )  # fmt: skip
    cells_shown = reached([replace(SHIPPED, rows=shorter)]).splitlines()[2].split("|")
    assert "[" not in cells_shown[3] and "×<br>`" in cells_shown[3]


def test_the_model_card_says_which_int8_loses_more_than_it_is_meant_to() -> None:
    measured = {(each.name, each.data): each.f1 for each in read_quality(ACCURACY)}
    lost = measured["distilled", "questions.json"] - measured["distilled-ov-int8", "questions.json"]
    assert ("`distilled-ov-int8` with weights of 8 bits on other texts (−" in rounding()) is (lost > 0.5)
    assert rounding() in MODEL_CARD.read_text(encoding="utf-8")
    assert "-ort-fp16`" not in rounding(), "which is not INT8"
    by_place = {(each.name, each.data): each.parent_difference for each in read_quality(ACCURACY)}
    for name in ("baseline-ov-int8", "pruned-ov-int8", "pruned-deep-ov-int8", "distilled-ov-int8"):
        found = [by_place[name, data] for data in ("dev-v2.0.json", "questions.json", "questions-2.json")]
        assert f"| `{name}` | {' | '.join(each.spelt() for each in found if each)} |" in rounding()
    assert "| `pruned` |" not in rounding()


@pytest.mark.parametrize(
    ("high", "said"), [(-0.6, "It surely loses more: "), (0.2, "By the figure alone, whose interval holds less: ")]
)
def test_a_loss_that_may_be_chance_is_told_apart_from_one_that_is_not(
    high: float, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    measured = read_quality(ACCURACY)
    own = next(each for each in measured if (each.name, each.data) == ("pruned-ov-int8", "questions.json"))
    file = tmp_path / "accuracy.json"
    add_quality(file, replace(own, parent_difference=Difference(-0.9, -2.0, high)))
    monkeypatch.setattr(card, "ACCURACY", file)
    assert f"{said}`pruned-ov-int8` with weights of 8 bits on other texts (−0.9 [−2.0 to " in rounding()
    others = {"It surely loses more", "By the figure alone"} - {said.partition(":")[0].partition(",")[0]}
    assert not any(each in rounding() for each in others) and "Not measured: weights of 7 bits;" in rounding()


def test_f1_on_every_set_stands_side_by_side_with_interval_and_difference() -> None:
    shown = cells(table(SHIPPED, COST))
    assert {"baseline", "pruned", "pruned-ort-fp16"} <= shown.keys()
    for place, data in ((1, "dev-v2.0.json"), (3, "questions.json"), (5, "questions-2.json")):
        for each in read_quality(ACCURACY):
            if each.data != data or each.limit is not None or each.name not in shown:
                continue
            agreement, (f1, difference) = shown[each.name][0], shown[each.name][place : place + 2]
            assert f1 == f"{each.f1:.1f} [{each.f1_interval.low:.1f}–{each.f1_interval.high:.1f}]"
            assert difference == (each.f1_difference.spelt() if each.f1_difference else "")
            if data == "dev-v2.0.json":
                assert agreement == (f"{each.agreement:.1f} %" if each.agreement is not None else "")
    assert shown["hf-pipeline"][:7] == [""] * 7


@pytest.mark.parametrize("file", [ACCURACY, ACCURACY_AVX2])
def test_what_was_compared_were_the_answers_of_the_very_weights_that_stand_beside(file: Path) -> None:
    """A file of predictions does not say whose they are: those of other weights would make another difference."""
    measured = read_quality(file)
    f1 = {(each.name, each.data): each.f1 for each in measured}
    for each in measured:
        checkpoint = catalog.backend(each.name).checkpoint
        for difference, of in ((each.f1_difference, "baseline"), (each.parent_difference, checkpoint)):
            if difference is not None and (of, each.data) in f1:
                assert difference.value == pytest.approx(each.f1 - f1[of, each.data], abs=1e-6), (each.name, each.data)


def test_the_model_card_shows_the_difference_of_f1_with_its_interval() -> None:
    text = quality_table(ACCURACY)
    head = [cell.strip() for cell in text.splitlines()[0].strip("| ").split("|")]
    place = head.index("F1 less the baseline's")
    lines = [[cell.strip() for cell in line.strip("| ").split("|")] for line in text.splitlines()[2:]]
    shown = {(line[0].strip("`"), line[1]): line[place] for line in lines}
    sets = {"dev-v2.0.json": "SQuAD", "questions.json": "other texts", "questions-2.json": "everyday texts"}
    for data, title in sets.items():
        measured = {each.name: each.f1_difference for each in read_quality(ACCURACY) if each.data == data}
        assert shown["baseline", title] == "" and measured["pruned"] is not None
        assert shown["pruned", title] == measured["pruned"].spelt()


def test_the_model_card_shows_what_int8_answers_on_the_other_kind_of_processor(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    family, file = catalog.family("minilm"), tmp_path / "accuracy.json"
    measured = read_quality(ACCURACY_AVX2)
    assert measured and all("-int8" in each.name and "VNNI" not in each.machine.processor for each in measured)
    monkeypatch.setattr(card, "ACCURACY_AVX2", file)
    for weights in ("of before", checkpoint_hash(family, catalog.backend("pruned-deep"))):
        current = [replace(each, checkpoint=weights) for each in measured if "pruned-deep" in each.name]
        for each in current:
            add_quality(file, each)
        text = quality_elsewhere()
        _of_the_whole_set.cache_clear()
        assert ("It was measured of earlier weights alone" in text) is (weights == "of before")
    assert current[0].machine.sentence("cpu") in text and text.count("\n| `") == len(current) > 0
    for each in current:
        assert f"| {each.exact:.2f} | {each.f1:.2f} | {each.f1_difference.spelt()} |" in text


def test_the_model_card_says_what_the_confidence_of_each_checkpoint_is_worth() -> None:
    text = MODEL_CARD.read_text(encoding="utf-8")
    for name in ("baseline", "pruned"):
        manifest = read_manifest(MODEL_CARD.parent / name)
        errors = manifest.settings["calibration"]["errors"]
        assert [each["data"] for each in errors[1:]] == ["dev-v2.0.json", "questions.json", "questions-2.json"]
        for title, each in zip(("held-out articles", "SQuAD", "other texts", "everyday texts"), errors, strict=True):
            numbers = f"{manifest.temperature:.2f} | {each['before']:.1f} | {each['after']:.1f}"
            threshold = manifest.settings["calibration"]["threshold"]
            shown = f"{threshold:+.2f}".replace("-", "−")
            f1 = f"{shown} | {each['f1']:.2f} | {each['f1_at_threshold']:.2f}"
            assert f"| `{name}` | {title} | {each['questions']:,} | {numbers} | {f1} |" in text
        assert manifest.settings["calibration"]["seen_before"] and manifest.null_threshold == 0, "as the card says"


def test_times_of_weights_that_were_trained_on_since_are_said_to_be_of_before() -> None:
    family, baseline = catalog.family("minilm"), catalog.backend("baseline")
    current, shapes = checkpoint_hash(family, baseline), current_shapes(family, baseline)
    now, before, other = (
        benchmark_record(1.0, checkpoint=weights, shapes=of)
        for weights, of in ((current, shapes), ("of before", shapes), ("of before", "other shapes"))
    )
    assert of_earlier_weights([now, other]) == ""
    assert of_earlier_weights([now, before]).startswith(" Times were measured with earlier weights of the same")
    assert of_earlier_weights([before, other]).startswith(" Times of the others were measured with earlier weights")
    earlier = but(SHIPPED, checkpoint="of before")
    for text in (table(earlier, COST), summary(earlier, []), table_elsewhere(but(ON_AMD, checkpoint="of before"), "")):
        assert of_earlier_weights([before]) in text


def test_documents_say_who_learned_the_written_texts_and_how_many_there_are() -> None:
    folders = [each for each in MODEL_CARD.parent.iterdir() if each.is_dir()]
    learned = {each.name for each in folders if '"also": "written.json"' in (each / "manifest.json").read_text()}
    told = written_apart().partition(";")[2].partition("learned")[0]
    assert set(re.findall(r"`([\w-]+)`", told)) == learned and told in README.read_text(encoding="utf-8")
    said = written()
    for file in (WRITTEN, WRITTEN_HELD_OUT):
        texts = [part for each in json.loads(file.read_text())["data"] for part in each["paragraphs"]]
        open_ones = sum(not asked["answers"] for text in texts for asked in text["qas"])
        count = sum(len(text["qas"]) for text in texts)
        assert f"{len(texts):,} texts with {count:,} questions, {open_ones:,} of them unanswerable" in said
    assert said in MODEL_CARD.read_text(encoding="utf-8")
    for each in folders:
        most = max(map(int, re.findall(r'"also_questions": (\d+)', (each / "manifest.json").read_text())))
        assert f"{most:,} " in said and f"`{each.name}`" in said
    assert "| held-out written texts |" in MODEL_CARD.read_text(encoding="utf-8")


def test_the_card_tells_every_run_of_each_checkpoint_and_who_taught_it() -> None:
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in runs_table().splitlines()[2:]]
    assert runs_table() in MODEL_CARD.read_text(encoding="utf-8")
    by_name = {name: [line for line in lines if line[0] == f"`{name}`"] for name in ("baseline", "pruned", "distilled")}
    for name, own in by_name.items():
        manifest = read_manifest(MODEL_CARD.parent / name)
        *_, first = manifest.runs()
        assert [line[1] for line in own] == [str(number) for number in range(1, len([*manifest.runs()]) + 1)]
        assert own[0][3] == f"{first['passes']:.2g}"
        assert own[-1][-1] == f"{manifest.settings['held_out']['f1']:.2f}", "of what ships"
    assert [by_name[name][0][2] for name in by_name] == ["fine-tuned", "pruned to 45 %", "distilled"]
    assert by_name["pruned"][-3][5:7] == ["80,059 × 4", "`baseline` as it ships"]
    assert by_name["pruned"][-1][2:7] == ["mean of 2", "", "", "", ""]


def test_published_steps_stand_beside_ours_each_against_its_own_baseline() -> None:
    measured = read_benchmark(LADDER)
    at = {each.name: each for each in measured.rows if each.tokens == 128}
    lines = [
        [cell.strip() for cell in line.strip("| ").split("|")]
        for line in published_table(measured).splitlines()
        if line.startswith("| [")
    ]
    steps = [line for line in lines if "tryolabs" in line[0]]
    assert [float(line[4]) for line in steps] == [round(float(steps[0][3]) / float(line[3]), 1) for line in steps]
    assert [line[4] for line in lines if line not in steps] == ["", ""], "its source tells no PyTorch"
    for line in lines:
        ours = at[line[5].strip("`")]
        assert line[6] == figure(ours, f"{ours.p50_ms:.0f}")
        assert line[7] == ratio(ours)
    assert published_table(but(measured, tokens=64)).count("not measured") == len(lines)


def test_published_throughput_stands_beside_ours_in_batches_of_eight() -> None:
    measured = read_benchmark(THROUGHPUT)
    at = {each.name: each for each in measured.rows if (each.tokens, each.batch) == (128, 8)}
    table = throughput_table(measured)
    lines = [[cell.strip() for cell in line.strip("| ").split("|")] for line in table.splitlines() if "| [" in line]
    assert {"`baseline`", "`distilled-ts-amp`"} <= {line[4] for line in lines}
    for line in lines:
        ours = at[line[4].strip("`")]
        assert line[5] == figure(ours, f"{ours.questions_per_second:.0f}")
        assert line[6] == ratio(ours)
        assert float(line[3]) == pytest.approx(float(line[2]) / float(lines[0][2]), abs=0.01)


@pytest.mark.parametrize(
    ("benchmark", "said"),
    [
        (but(SHIPPED, shapes="of other shapes"), "measured of weights of other shapes"),
        (but(SHIPPED, shapes=None), "measured of weights of other shapes"),
        (but(SHIPPED, backend="atlantis/baseline"), "measured of weights of other shapes"),
        (replace(SHIPPED, rows=()), "The results lack"),
        (replace(SHIPPED, alone=()), "The results lack"),
        (replace(SHIPPED, rows=tuple(each for each in SHIPPED.rows if each.tokens != 32)), "lack baseline at 32, 128"),
        (replace(SHIPPED, rows=tuple(each for each in SHIPPED.rows if each.batch == 1)), "in batches"),
        (replace(SHIPPED, rows=(benchmark_record(1.0),)), "The results lack"),
    ],
)
def test_results_that_do_not_carry_the_table_get_a_sentence(benchmark: Benchmark, said: str) -> None:
    with pytest.raises(InputError, match=said):
        table(benchmark, COST)
    with pytest.raises(InputError, match="own cost at 128"):
        table(SHIPPED, replace(COST, rows=COST.rows[:1]))


def test_a_document_without_a_place_for_the_table_is_left_alone() -> None:
    with pytest.raises(InputError, match="has no part between"):
        with_table("# A document", "| a table |")
