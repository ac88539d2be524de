"""What charts hold and say, on every tab: the records' numbers, the backends' names, and nothing where nothing was."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from measure.invented import benchmark_record
from web.rows import RATIO, ROWS, row

from qa_backends.asking.comparison import quality_beside
from qa_backends.measure.benchmark.plan import BenchmarkPlan
from qa_backends.measure.results.shipped import shipped_benchmark
from qa_backends.measure.timing.statistics import Interval
from qa_backends.web.ask.charts import Asked, visit
from qa_backends.web.benchmark import charts
from qa_backends.web.benchmark.dots import Dot
from qa_backends.web.benchmark.dots import chart as dot_chart
from qa_backends.web.benchmark.shown import only
from qa_backends.web.page import SYSTEM_FONTS
from qa_backends.web.shared.charts import LINE_PX, plotted_px, ticks
from qa_backends.web.shared.lines import Axis, spread
from qa_backends.web.shared.palette import OFFERED, PINNED, colour, luminance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qa_backends.measure.results.records import BenchmarkRecord

EVIL = "<img src=x onerror=alert(1)>"


THREE = ("pruned-ort", "pruned-ort-fused", "pruned-ort-fp16")
ALIKE = [row(name, tokens, tokens / 10 + number / 1000) for number, name in enumerate(THREE) for tokens in (32, 128)]
"""Three backends that nobody could tell apart by their times."""


def asked(tokens: int, **ms: float) -> Asked:
    latencies = {("minilm", name.replace("_", "-"), "cpu"): value for name, value in ms.items()}
    return Asked(f"A question about {tokens} tokens?", tokens, latencies)


def every_chart() -> list[Any]:
    drawn = [each for log in (False, True) for each in charts.drawn(ROWS, 128, log=log)]
    return [*drawn, visit([asked(40, baseline=10.0)], shipped_benchmark()), visit([], None)]


def shipped_rows(name: str) -> list[BenchmarkRecord]:
    """Of one backend, at batches of one."""
    found = shipped_benchmark()
    assert found is not None
    return [each for each in found.rows if (each.name, each.batch) == (name, 1) and each.tokens is not None]


def lines(figure: Any) -> dict[str, tuple[list[float], list[float]]]:
    return {each.name: (list(each.x), list(each.y)) for each in figure.data if each.name}


def unwrapped(figure: Any) -> str:
    """The lines below the title, as one."""
    _, *lines = re.sub(r"</?span[^>]*>", "", figure.layout.title.text).split("<br>")
    return " ".join(lines)


def said(figure: Any) -> list[str]:
    return [each.text for each in figure.layout.annotations]


def test_latency_has_a_line_a_backend_a_band_and_a_floor_for_those_that_share_it() -> None:
    figure = charts.latency(ROWS, log=True)
    assert figure is not None and figure.layout.yaxis.type == "log"
    assert lines(figure)["Baseline"] == ([32, 128], [8.0, 18.0])
    assert lines(figure)["transformers pipeline"] == ([32], [9.0])
    bands = [each for each in figure.data if each.fill == "toself"]
    assert list(bands[0].y) == [8.0 * 1.2, 18.0 * 1.2, 18.0, 8.0]
    same = charts.latency([replace(each, floor_ms=(each.tokens or 0) / 40) for each in ALIKE], log=False)
    assert same is not None
    (floor,) = [each for each in same.data if "compute floor" in (each.hovertemplate or "")]
    assert (list(floor.x), list(floor.y)) == ([32, 128], [0.8, 3.2])
    assert "Pruned, ONNX, Pruned, fused, Pruned, fused, FP16" in floor.hovertemplate


def test_a_floor_above_what_was_measured_is_lowered_and_leaves_the_axis_to_the_measured() -> None:
    high = charts.latency(only([replace(each, floor_ms=16 * each.p50_ms) for each in ALIKE], []), log=False)
    assert high is not None
    slowest = max(each.p50_ms for each in ALIKE)
    floors = [each for each in high.data if "compute floor" in (each.hovertemplate or "")]
    assert len(floors) == 3 and max(max(each.y) for each in floors) <= slowest
    assert high.layout.yaxis.range[1] < 2 * slowest


def test_a_floor_stays_where_it_is_when_others_are_left_out_of_the_chart() -> None:
    slow, quick = benchmark_record(20.0, floor_ms=16.0), benchmark_record(8.0, backend="minilm/pruned", floor_ms=16.0)
    (alone,) = only([slow, quick], [slow.name])
    assert alone.name == slow.name and alone.floor_ms == 8.0, "the quicker one shows what this machine can do"


def test_batches_are_shown_per_question_and_per_second_at_the_length_they_were_measured() -> None:
    each, rate = charts.per_question(ROWS), charts.throughput(ROWS)
    assert each is not None and rate is not None
    assert lines(each)["Baseline"] == ([1, 8], [18.0, 10.0])
    assert lines(rate)["Baseline"][1][1] == 100.0
    assert "at 128 tokens" in each.layout.title.text


def test_the_steps_say_size_f1_and_both_ratios() -> None:
    figure = charts.ladder(ROWS, 128)
    assert figure is not None
    assert [each.x[0] for each in figure.data] == [18.0, 9.0, 8.0]
    first, second, third = said(figure)
    assert "Baseline" in first and "18.0 ms · 45.0 MB<br>" in first and "measured against" in first
    assert "<br>SQuAD: 68.5 [67.7–69.3], −0.3 [−0.8 to +0.2]" in first
    assert f"{RATIO.ratio} to the baseline" in second and "step before" not in second
    assert "to the step before" in third
    alone = charts.ladder([each for each in ROWS if each.name != "pruned"], 128)
    assert "to Pruned" in said(alone)[-1] and "step before" not in said(alone)[-1], "it does not stand above"
    others = [each for each in ROWS if each.name != "baseline"]
    without = charts.ladder([replace(each, against_baseline=None, against_previous=None) for each in others], 128)
    assert without is not None and "measured against" not in "".join(said(without)), "the baseline is not there"
    at_32 = charts.ladder(ROWS, 32)
    assert at_32 is not None and [each.x[0] for each in at_32.data] == [8.0, 4.0], "a reference is no step"


def test_the_steps_say_f1_on_every_set_with_interval_and_difference() -> None:
    records = [each for each in shipped_rows("pruned-deep") if each.tokens == 128]
    (shown,) = said(charts.ladder(records, 128))
    (known,) = quality_beside(records)
    lines_of_f1 = shown.split("<br>")[-3:]
    assert [each.split(":")[0] for each in lines_of_f1] == ["SQuAD", "other texts", "everyday texts"]
    for line, each in zip(lines_of_f1, known, strict=True):
        assert each.f1_difference is not None
        assert line.endswith(f": {each.f1_interval.around(each.f1)}, {each.f1_difference.spelt()}")
    without = charts.ladder([replace(each, quality=None, shapes=None) for each in records], 128)
    assert "F1" not in said(without)[0] + without.layout.title.text, "of a model whose quality nobody measured"


def test_quality_and_parts_follow_the_length_that_is_chosen() -> None:
    quality, parts = charts.quality(ROWS, 32), charts.parts(ROWS, 32)
    assert quality is not None and parts is not None
    assert {each.name: (each.x[0], each.y[0]) for each in quality.data} == {
        "Pruned": (4.0, 68.5), "Baseline": (8.0, 68.5),
    }  # fmt: skip
    assert "frontier" not in lines(quality), "the baseline is slower and no better, so one dot is all there is of it"
    assert "11,873 questions of SQuAD," in quality.layout.title.text.replace("<br>", " ")
    baseline = [each.x[0] for each in parts.data if each.name == "Baseline"]
    assert baseline == pytest.approx([100 * 0.1 / 8, 100 * 7.7 / 8, 100 * 0.2 / 8])
    assert "tokenise 1 % · model 96 % · decode 2 %" in said(parts)[0]


def test_the_frontier_joins_what_nothing_is_both_quicker_and_better_than() -> None:
    whole = Interval(60.0, 80.0)
    figure = dot_chart("F1 against latency", "", [
        Dot("Slow", "baseline", 20.0, 71.0, whole, ""), Dot("Quick", "pruned-ov", 5.0, 70.0, whole, ""),
        Dot("Beaten", "pruned", 9.0, 69.0, whole, ""), Dot("No better", "pruned-ort", 21.0, 71.0, whole, ""),
    ])  # fmt: skip
    assert lines(figure)["frontier"] == ([5.0, 20.0], [70.0, 71.0])


def test_mixed_lengths_show_what_sorting_wins() -> None:
    figure = charts.mixed(ROWS)
    assert figure is not None
    assert [each.x[0] for each in figure.data] == [50.0, 70.0]
    assert "50 as they come, 70 sorted by length" in said(figure)[0]
    assert "40 % padding" in figure.layout.title.text and "10 % padding" in figure.layout.title.text


def test_mixed_lengths_show_what_the_app_makes_of_them_where_it_was_measured() -> None:
    asked = row("baseline", None, 20.0, batch=7, order="as asked", padding=0.02, questions_per_second=90.0)
    figure = charts.mixed([*ROWS, asked])
    assert figure is not None and [each.x[0] for each in figure.data] == [50.0, 70.0, 90.0]
    strengths = [each.marker.opacity for each in figure.data]
    assert strengths == sorted(set(strengths)), "each stronger than the one before"
    assert "50 as they come, 70 sorted by length<br>90 as the app batches them" in said(figure)[0]
    assert unwrapped(figure).endswith("; full: as the app batches them")
    without = charts.mixed(ROWS)
    assert without is not None and "the app" not in without.layout.title.text


def test_what_sorts_nothing_is_shown_one_by_one_beside_those_that_do() -> None:
    plain = row("hf-pipeline", None, 40.0, batch=4, order="arrival", padding=None, quality=None)
    alone = replace(plain, batch=1, order="one by one", questions_per_second=35.0)
    asked = [replace(plain, questions_per_second=30.0), alone]
    figure = charts.mixed([*ROWS, *asked])
    assert figure is not None and sorted(each.x[0] for each in figure.data) == [30.0, 35.0, 50.0, 70.0]
    assert "30 as they come, 35 one by one" in said(figure)[-1]
    (caption, strengths) = unwrapped(figure), [each.marker.opacity for each in figure.data]
    assert "pale: batches of 4 as they come, 40 % padding; darker: sorted by length, 10 % padding;" in caption
    assert caption.endswith("full: one by one where nothing is sorted") and max(strengths) == strengths[-1] == 1
    assert "0 % padding" not in "".join(each.hovertemplate or "" for each in figure.data if each.x[0] < 40)


def test_what_was_not_measured_is_no_empty_frame_but_a_sentence() -> None:
    assert charts.drawn([], 128, log=False) == [None] * 7
    single = [each for each in ROWS if each.batch == 1]
    assert charts.per_question(single) is None and charts.throughput(single) is None and charts.mixed(single) is None
    wanted = charts.to_fill(BenchmarkPlan("minilm", batches=(1,)), [replace(each, quality=None) for each in single])
    assert [any(word in each for each in wanted) for word in ("two batch sizes", "mixed lengths", "F1")] == [True] * 3
    asked_for = BenchmarkPlan("minilm", batches=(1, 8), mixed=True)
    assert charts.to_fill(asked_for, ROWS) == []
    (sentence,) = charts.to_fill(asked_for, [each for each in ROWS if each.tokens is not None])
    assert "mixed lengths" in sentence, "it was asked for, and did not fit into the time"


def test_before_anybody_asked_the_visit_is_a_sentence_without_axes() -> None:
    figure = visit([], shipped_benchmark())
    assert not figure.data and "Ask something" in figure.layout.title.text
    assert figure.layout.xaxis.visible is figure.layout.yaxis.visible is False
    assert figure.layout.height < 100


def test_the_shipped_line_is_seen_whole_as_far_as_the_chart_goes() -> None:
    at = {each.tokens: each.p50_ms for each in shipped_rows("baseline")}
    figure = visit([asked(300, baseline=1.0)], shipped_benchmark())
    assert at[256] < at[384], "it rises through the chart's end"
    assert figure.layout.yaxis.range[1] >= at[256] + (at[384] - at[256]) * (300 - 256) / (384 - 256)


def test_the_visit_has_a_dot_a_question_a_line_a_backend_and_the_shipped_benchmark_behind() -> None:
    figure = visit([asked(90, baseline=12.0), asked(40, baseline=6.0), asked(90, baseline=16.0)], shipped_benchmark())
    (dots,) = [each for each in figure.data if each.mode == "markers"]
    assert (dots.name, list(dots.x), list(dots.y)) == ("Baseline", [90, 40, 90], [12.0, 6.0, 16.0])
    behind, line = [each for each in figure.data if each.mode == "lines"]
    assert (list(line.x), list(line.y)) == ([40, 90], [6.0, 14.0]), "through the median at each length"
    assert list(behind.x) == sorted(behind.x) and len(behind.x) > 3 and behind.opacity < 0.5
    assert figure.layout.xaxis.range[1] == 128, "there is room for what was measured, however short the questions"
    shipped = shipped_benchmark()
    assert shipped is not None
    assert unwrapped(figure).endswith(f"pale: measured on {shipped.machine.processor}"), "whose figures these are"


def test_the_visit_does_not_mix_families() -> None:
    other = Asked("Who?", 40, {("bert-large", "baseline", "cpu"): 80.0})
    figure = visit([asked(40, baseline=10.0), other], None)
    dots = [each for each in figure.data if each.mode == "markers"]
    assert [each.name for each in dots] == ["Baseline", "Baseline (bert-large)"]
    assert len({each.marker.symbol for each in dots}) == 2, "their colour is the same"


def test_every_chart_has_the_pages_font_and_nothing_to_drag() -> None:
    for figure in every_chart():
        assert figure.layout.font.family == ", ".join(SYSTEM_FONTS)
        assert figure.layout.xaxis.fixedrange and figure.layout.yaxis.fixedrange and figure.layout.dragmode is False
        sizes = [each.font.size for each in figure.layout.annotations] + [figure.layout.font.size]
        assert min(sizes) >= 12


def test_lines_that_coincide_are_striped_in_turn_and_others_are_not() -> None:
    figure = charts.latency([*ALIKE, row("baseline", 32, 30.0), row("baseline", 128, 60.0)], log=False)
    assert figure is not None
    drawn = {each.name: each for each in figure.data if each.mode == "lines+markers"}
    assert drawn.pop("Baseline").line.dash == "solid"
    assert [shown_by(each.line.dash) for each in drawn.values()] == [{0}, {1}, {2}]
    sizes = [each.marker.size for each in drawn.values()]
    assert sizes == sorted(sizes, reverse=True) and len(set(sizes)) == 3, "each marker is a ring around the next"


def shown_by(dash: str) -> set[int]:
    """Which thirds of the pattern the line covers."""
    gaps = [float(each.removesuffix("px")) for each in dash.split(",")]
    whole, at, covered = sum(gaps), 0.0, set()
    for number, length in enumerate(gaps):
        if number % 2 == 0 and length:
            covered |= {third for third in range(3) if at < (third + 0.5) * whole / 3 < at + length}
        at += length
    return covered


@pytest.mark.parametrize("devices", [("cpu",), ("cpu", "cuda")], ids=["on one device", "on two"])
def test_names_stand_apart_within_the_chart(devices: Sequence[str]) -> None:
    shipped = shipped_benchmark()
    assert shipped is not None
    rows = [replace(each, device=device) for each in shipped.rows for device in devices]
    for figure in charts.drawn(rows, 128, log=False)[0:6:4]:
        assert figure is not None
        room = plotted_px(figure)
        spans = sorted(
            (each.y * room - half, each.y * room + half)
            for each in figure.layout.annotations
            if (half := LINE_PX * (1 + each.text.count("<br>")) / 2)
        )
        assert len(spans) == len({each.name for each in rows}) * len(devices)
        assert spans[0][0] >= -0.01 and spans[-1][1] <= room + 0.01
        assert all(below[1] <= above[0] + 0.01 for below, above in pairwise(spans))


@given(some.lists(some.tuples(some.floats(0, 200), some.floats(10, 30)), min_size=1, max_size=8))
def test_what_is_spread_keeps_its_order_its_distance_and_its_frame(things: list[tuple[float, float]]) -> None:
    wanted, sizes = [each for each, _ in things], [size for _, size in things]
    centres = spread(wanted, sizes, 250)
    assert min(centre - size / 2 for centre, size in zip(centres, sizes, strict=True)) >= -1e-6
    assert max(centre + size / 2 for centre, size in zip(centres, sizes, strict=True)) <= 250 + 1e-6
    for one, other in pairwise(sorted(range(len(things)), key=lambda each: wanted[each])):
        assert centres[other] - centres[one] >= (sizes[one] + sizes[other]) / 2 - 1e-6


def test_what_has_room_stays_where_it_is_wanted() -> None:
    assert spread([20, 100, 200], [16, 16, 16], 250) == [20, 100, 200]
    assert spread([100, 100], [20, 20], 250) == [90, 110]


def test_an_axis_names_its_ends_and_what_has_room_between() -> None:
    lengths = [32, 64, 128, 256, 384, 512]
    axis = Axis.across(lengths)
    assert ticks(lengths, [axis.share(each) for each in lengths]) == [32, 128, 256, 384, 512]
    assert ticks([1, 9, 10], [0.0, 0.95, 1.0]) == [1, 10]
    assert ticks([5], [0.5]) == [5]
    assert Axis.up([1.5, 80], log=True).marks == (2, 5, 10, 20, 50)
    assert Axis.up([2.7, 3.0], log=True).marks == (3,)


@given(some.floats(0.01, 1e5))
def test_a_logarithmic_axis_names_something_however_close_its_values_lie(only: float) -> None:
    axis = Axis.up([only], log=True)
    assert axis.marks and all(axis.low <= mark <= axis.high for mark in axis.marks)
    assert axis.low < only < axis.high


@pytest.mark.parametrize(
    ("highest", "said"),
    [(0, "0 ms 0.2 ms"), (0.9, "0 ms 0.2 ms"), (47, "0 ms 10 ms"), (9_000, "0 ms 2,000 ms"), (80_000, "0 s 20 s")],
)
def test_a_latency_axis_has_few_round_marks_and_turns_to_seconds(highest: float, said: str) -> None:
    axis = Axis.up([highest]).plotly(" ms")
    assert " ".join(axis["ticktext"]).startswith(said) and 3 <= len(axis["tickvals"]) <= 6
    assert axis["range"][1] >= max(axis["tickvals"][-1], highest)


@given(some.text(min_size=1, max_size=30))
def test_colours_stand_out_from_a_light_and_a_dark_ground(name: str) -> None:
    """By 3 to 1, as graphics should, from white and from the darker theme's blocks."""
    for shown in (colour(name), *PINNED.values(), *OFFERED.values()):
        assert 1.05 / (luminance(shown) + 0.05) >= 3
        assert (luminance(shown) + 0.05) / (luminance("#1f2937") + 0.05) >= 3


def test_luminance_is_that_of_the_guidelines() -> None:
    assert luminance("#ffffff") == pytest.approx(1) and luminance("#000000") == 0
    assert luminance("#808080") == pytest.approx(0.2159, abs=1e-4)


def test_names_and_questions_are_never_markup() -> None:
    figures = [*charts.drawn([row(EVIL, 32, 5.0), row(EVIL, 32, 9.0, batch=2)], 32, log=False),
               visit([Asked("Who?", 40, {(EVIL, EVIL, EVIL): 5.0})], None)]  # fmt: skip
    shown = [each.to_json().replace("\\u003c", "<") for each in figures if each is not None]
    assert len(shown) == 7 and not any("<img" in each for each in shown)
