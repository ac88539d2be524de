"""What the measuring tabs draw: charts hold the rows' numbers, tables say what must be said, nothing is markup."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from qa_backends import catalog
from qa_backends.contract import Answer, Ran, Span
from qa_backends.measure.benchmark.compare import Change
from qa_backends.measure.benchmark.plan import BenchmarkPlan
from qa_backends.measure.benchmark.sweep import Sweep
from qa_backends.measure.quality.evaluation import Differing
from qa_backends.measure.quality.scoring import score
from qa_backends.measure.results.records import (
    Against,
    AloneRecord,
    Benchmark,
    BenchmarkRecord,
    LeftOut,
    Quality,
    Samples,
)
from qa_backends.measure.timing.machine import Machine
from qa_backends.measure.timing.statistics import Difference, Interval, Ratio
from qa_backends.squad import GoldAnswer, Question
from qa_backends.web.accuracy import html as accuracy_html
from qa_backends.web.benchmark import charts, html
from qa_backends.web.shared.wording import ratio_cell, seconds_left

EVIL = "<img src=x onerror=alert(1)>"
RATIO = Against(2.0, 1.9, 2.1, 31, "minilm/baseline")
RAN = Ran("CPU", "PyTorch CPU", "FP32", 2, {}, "a", {})
QUALITY = Quality("cpu", "dev", 11_873, 65.0, Interval(64.0, 66.0), 68.5, Interval(67.7, 69.3), 91.25,
                  Difference(-0.3, -0.8, 0.2))  # fmt: skip
MACHINE = Machine("Abacus", 2, 24, None, "Linux", "3.11", {}, "2026-01-02")
PLAN = BenchmarkPlan("minilm", ("baseline",))


def row(name: str, tokens: int | None, p50: float, **other: Any) -> BenchmarkRecord:
    samples = Samples((0.1,) * 31, (p50 - 0.3,) * 31, (0.2,) * 31)
    plain = BenchmarkRecord(
        backend=f"minilm/{name}", checkpoint="abc", device="cpu", tokens=tokens, batch=1, order="equal", questions=1,
        windows=1, padding=0.0, warm_up_runs=10, cold_ms=2 * p50, runs=31, p50_ms=p50, p90_ms=p50 * 1.2, p99_ms=None,
        questions_per_second=1000 / p50, unstable=False, against_baseline=None, against_previous=None,
        against_arrival=None, floor_ms=p50 / 3, bytes=45_000_000, stored="FP16", encoder_parameters=1, quality=QUALITY,
        ran=RAN, blocks=(1, *[3] * 10), samples_ms=samples,
    )  # fmt: skip
    return replace(plain, **other)


FAST = {"against_baseline": RATIO, "against_previous": RATIO}
ROWS = [
    row("baseline", 32, 8.0), row("pruned", 32, 4.0, **FAST), row("hf-pipeline", 32, 9.0, quality=None, bytes=None),
    row("baseline", 128, 18.0), row("pruned", 128, 9.0, **FAST),
    row("pruned-ort", 128, 8.0, against_baseline=RATIO, against_previous=replace(RATIO, backend="minilm/pruned")),
    row("baseline", 128, 80.0, batch=8, questions=8, questions_per_second=100.0),
    row("baseline", None, 40.0, batch=4, questions=16, order="arrival", padding=0.4, questions_per_second=50.0),
    row("baseline", None, 30.0, batch=4, questions=16, order="sorted", padding=0.1, questions_per_second=70.0),
]  # fmt: skip


def lines(figure: Any) -> dict[str, tuple[list[float], list[float]]]:
    return {each.name: (list(each.x), list(each.y)) for each in figure.data if each.name}


def test_latency_has_a_line_a_backend_a_band_and_the_floor() -> None:
    figure = charts.latency(ROWS, log=True)
    assert figure.layout.yaxis.type == "log"
    assert lines(figure)["Baseline"] == ([32, 128], [8.0, 18.0])
    assert lines(figure)["transformers pipeline"] == ([32], [9.0])
    bands = [each for each in figure.data if each.fill == "toself"]
    assert list(bands[0].y) == [8.0 * 1.2, 18.0 * 1.2, 18.0, 8.0]
    floors = [each for each in figure.data if each.line.dash == "dot"]
    assert list(floors[0].y) == [8.0 / 3, 18.0 / 3]


def test_batches_are_shown_per_question_and_per_second_at_the_length_they_were_measured() -> None:
    each, rate = charts.per_question(ROWS), charts.throughput(ROWS)
    assert lines(each)["Baseline"] == ([1, 8], [18.0, 10.0])
    assert lines(rate)["Baseline"][1][1] == 100.0
    assert "at 128 tokens" in each.layout.title.text


def test_the_ladder_has_a_step_a_backend_with_size_f1_and_both_ratios() -> None:
    figure = charts.ladder(ROWS, 128)
    assert list(figure.data[0].x) == [18.0, 9.0, 8.0]
    said = [each.text for each in figure.layout.annotations]
    assert "18.0 ms · 45.0 MB · F1 68.5" in said[0] and "measured against" in said[0]
    assert f"{RATIO.ratio} to the baseline" in said[1] and "step before" not in said[1]
    assert "to the step before" in said[2]
    assert list(charts.ladder(ROWS, 32).data[0].x) == [8.0, 4.0], "a reference is no step"


def test_quality_and_parts_follow_the_length_that_is_chosen() -> None:
    quality = charts.quality(ROWS, 32)
    assert [(each.x[0], each.y[0]) for each in quality.data] == [(8.0, 68.5), (4.0, 68.5)]
    parts = {each.name: list(each.x) for each in charts.parts(ROWS, 32).data}
    assert list(parts) == ["tokenise", "wait", "model", "decode"]
    assert parts["model"] == pytest.approx([100 * 7.7 / 8, 100 * 3.7 / 4])
    assert [sum(values) for values in zip(*parts.values(), strict=True)] == pytest.approx([100, 100])


def test_mixed_lengths_show_what_sorting_wins() -> None:
    figure = charts.mixed(ROWS)
    assert {each.name: list(each.y) for each in figure.data} == {"as they come": [50.0], "sorted by length": [70.0]}
    assert "40%" in figure.layout.title.subtitle.text and "10%" in figure.layout.title.subtitle.text


@pytest.mark.parametrize("draw", [charts.per_question, charts.throughput, charts.mixed,
                                  lambda rows: charts.latency(rows, log=False),
                                  lambda rows: charts.ladder(rows, 128),
                                  lambda rows: charts.quality(rows, 128),
                                  lambda rows: charts.parts(rows, 128)])  # fmt: skip
def test_a_chart_without_data_says_so(draw: Any) -> None:
    assert "Not measured" in draw([]).layout.annotations[0].text


def test_the_table_says_runs_interval_stability_quality_and_what_ran() -> None:
    shown = html.table([row("pruned", 32, 4.0, unstable=True, **FAST)])
    for said in ("31 <em>unstable</em>", str(RATIO.ratio), "68.5 on 11,873 questions", "91.2 %", "PyTorch CPU"):
        assert said in shown, said
    elsewhere = html.table([row("pruned", 32, 4.0, device="cuda")])
    assert "68.5 on 11,873 questions, on the CPU" in elsewhere
    tie = row("pruned", 32, 4.0, against_baseline=replace(RATIO, low=0.98))
    assert str(replace(RATIO, low=0.98).ratio) in html.table([tie])


def test_progress_says_what_runs_and_how_long_it_takes() -> None:
    shown = html.progress(Sweep(PLAN, MACHINE, status="32 tokens: 7 runs of each", done=1, of=4, left_s=12.4))
    assert "32 tokens: 7 runs of each, about 12 s left" in shown and 'max="4"' in shown
    stopped = html.progress(Sweep(PLAN, MACHINE, records=[ROWS[0]], left_out=[LeftOut("", EVIL, EVIL)], of=4))
    assert "Stopped; kept 1 point (1 row)" in stopped and EVIL not in stopped
    assert seconds_left(300) == "about 5 min left"


def test_captions_name_machine_date_and_agreement() -> None:
    alone = AloneRecord("minilm/pruned", "cpu", 128, 1, 31, 8.0, 8.25, 8.25 / 8)
    shown = html.caption(Benchmark(MACHINE, PLAN, True, tuple(ROWS), (alone,), ()), "Yours.")
    assert "Abacus, 2 cores, 24 GiB, 2026-01-02" in shown
    assert "8.00 ms alone, 8.25 ms in company" in shown


@pytest.mark.parametrize(
    ("same_weights", "said"), [(False, "on other weights"), (None, "not known"), (True, "each run's own noise")]
)
def test_names_from_an_opened_file_are_never_markup(same_weights: bool | None, said: str) -> None:
    then = Benchmark(replace(MACHINE, processor=EVIL), PLAN, True, (), (), ())
    now = row(EVIL, None, 8.0, device=EVIL, order=EVIL)
    change = Change(row("baseline", 32, 10.0), now, Ratio(1.25, 1.2, 1.3, 31), same_weights)
    from html import unescape

    shown = html.compared(then, [change], EVIL + ".json")
    assert EVIL not in shown and said in unescape(shown) and "1.25×" in shown


def test_differing_questions_stand_side_by_side_with_peoples_answer() -> None:
    one, other = catalog.backend("baseline"), catalog.backend("pruned")
    question = Question("1", "", f"Where is {EVIL}?", f"In Rome, {EVIL}.", (GoldAnswer("Rome", 3),))
    right = score(question, Answer("Rome", Span(3, 7), 1.0, 0.0, 0.9))
    wrong = score(question, Answer("", None, 0.0, 1.0, 0.9))
    shown = accuracy_html.differing([Differing(right, wrong)], one, other, asked=40)
    assert "They differ on 1 of 40 questions" in shown and "Baseline is closer" in shown
    assert EVIL not in shown
    assert 'data-number="0"' in shown and "right" in shown and "wrong" in shown and "no answer in this text" in shown
    assert "agree on all 40 questions" in accuracy_html.differing([], one, other, asked=40)
    assert "agree on the one question asked" in accuracy_html.differing([], one, other, asked=1)


def test_ratios_without_a_partner_are_a_dash() -> None:
    assert ratio_cell(None) == "–"
