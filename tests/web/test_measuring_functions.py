"""What the measuring tabs draw: charts hold the rows' numbers, tables say what must be said, nothing is markup."""

from __future__ import annotations

from typing import Any

import pytest

from qa_backends import catalog
from qa_backends.contract import Answer, Span
from qa_backends.measure.accuracy import score
from qa_backends.measure.compare import Change, Comparison
from qa_backends.measure.evaluation import Difference
from qa_backends.measure.machine import Machine
from qa_backends.measure.plan import Plan
from qa_backends.measure.statistics import Ratio
from qa_backends.measure.sweep import Sweep
from qa_backends.squad import GoldAnswer, Question
from qa_backends.web import accuracy_render, bench_charts, bench_render
from qa_backends.web.wording import ratio_cell, seconds_left

EVIL = "<img src=x onerror=alert(1)>"
RATIO = {"backend": "minilm/baseline", "value": 2.0, "low": 1.9, "high": 2.1, "runs": 31}
RAN = {"device": "CPU", "provider": "PyTorch CPU", "precision": "FP32", "threads": 2, "fused_ops": {}, "file_hash": "a",
       "versions": {}, "notes": []}  # fmt: skip
QUALITY = {"device": "cpu", "data": "dev", "n": 11_873, "exact": 65.0, "f1": 68.5,
           "f1_interval": {"low": 67.7, "high": 69.3}, "agreement": 91.25}  # fmt: skip
MACHINE = {"processor": "Abacus", "threads": 2, "memory_gib": 24, "gpu": None, "system": "Linux", "python": "3.11",
           "versions": {}, "date": "2026-01-02"}  # fmt: skip


def row(name: str, tokens: int | None, p50: float, **other: Any) -> dict[str, Any]:
    return {
        "backend": f"minilm/{name}", "device": "cpu", "tokens": tokens, "batch": 1, "order": "equal", "questions": 1,
        "p50_ms": p50, "p90_ms": p50 * 1.2, "cold_ms": 2 * p50, "runs": 31, "unstable": False,
        "questions_per_second": 1000 / p50, "padding": 0.0, "against_baseline": None, "against_previous": None,
        "floor_ms": p50 / 3, "bytes": 45_000_000, "quality": QUALITY, "ran": RAN,
        "samples_ms": {"tokenise": [0.1] * 31, "forward": [p50 - 0.3] * 31, "decode": [0.2] * 31},
    } | other  # fmt: skip


FAST = {"against_baseline": RATIO, "against_previous": RATIO}
ROWS = [
    row("baseline", 32, 8.0), row("pruned", 32, 4.0, **FAST), row("hf-pipeline", 32, 9.0, quality=None, bytes=None),
    row("baseline", 128, 18.0), row("pruned", 128, 9.0, **FAST),
    row("pruned-ort", 128, 8.0, against_baseline=RATIO, against_previous=RATIO | {"backend": "minilm/pruned"}),
    row("baseline", 128, 80.0, batch=8, questions=8, questions_per_second=100.0),
    row("baseline", None, 40.0, batch=4, questions=16, order="arrival", padding=0.4, questions_per_second=50.0),
    row("baseline", None, 30.0, batch=4, questions=16, order="sorted", padding=0.1, questions_per_second=70.0),
]  # fmt: skip


def lines(figure: Any) -> dict[str, tuple[list[float], list[float]]]:
    return {each.name: (list(each.x), list(each.y)) for each in figure.data if each.name}


def test_latency_has_a_line_a_backend_a_band_and_the_floor() -> None:
    figure = bench_charts.latency(ROWS, log=True)
    assert figure.layout.yaxis.type == "log"
    assert lines(figure)["Baseline"] == ([32, 128], [8.0, 18.0])
    assert lines(figure)["transformers pipeline"] == ([32], [9.0])
    bands = [each for each in figure.data if each.fill == "toself"]
    assert list(bands[0].y) == [8.0 * 1.2, 18.0 * 1.2, 18.0, 8.0]
    floors = [each for each in figure.data if each.line.dash == "dot"]
    assert list(floors[0].y) == [8.0 / 3, 18.0 / 3]


def test_batches_are_shown_per_question_and_per_second_at_the_length_they_were_measured() -> None:
    each, rate = bench_charts.per_question(ROWS), bench_charts.throughput(ROWS)
    assert lines(each)["Baseline"] == ([1, 8], [18.0, 10.0])
    assert lines(rate)["Baseline"][1][1] == 100.0
    assert "at 128 tokens" in each.layout.title.text


def test_the_ladder_has_a_step_a_backend_with_size_f1_and_both_ratios() -> None:
    figure = bench_charts.ladder(ROWS, 128)
    assert list(figure.data[0].x) == [18.0, 9.0, 8.0]
    said = [each.text for each in figure.layout.annotations]
    assert "18.0 ms · 45.0 MB · F1 68.5" in said[0] and "measured against" in said[0]
    assert "2.00× [1.90–2.10] to the baseline" in said[1] and "step before" not in said[1]
    assert "to the step before" in said[2]
    assert list(bench_charts.ladder(ROWS, 32).data[0].x) == [8.0, 4.0], "a reference is no step"


def test_quality_and_parts_follow_the_length_that_is_chosen() -> None:
    quality = bench_charts.quality(ROWS, 32)
    assert [(each.x[0], each.y[0]) for each in quality.data] == [(8.0, 68.5), (4.0, 68.5)]
    parts = {each.name: list(each.x) for each in bench_charts.parts(ROWS, 32).data}
    assert list(parts) == ["tokenise", "wait", "model", "decode"]
    assert parts["model"] == pytest.approx([100 * 7.7 / 8, 100 * 3.7 / 4])
    assert [sum(values) for values in zip(*parts.values(), strict=True)] == pytest.approx([100, 100])


def test_mixed_lengths_show_what_sorting_wins() -> None:
    figure = bench_charts.mixed(ROWS)
    assert {each.name: list(each.y) for each in figure.data} == {"as they come": [50.0], "sorted by length": [70.0]}
    assert "40%" in figure.layout.title.subtitle.text and "10%" in figure.layout.title.subtitle.text


@pytest.mark.parametrize("draw", [bench_charts.per_question, bench_charts.throughput, bench_charts.mixed,
                                  lambda rows: bench_charts.latency(rows, log=False),
                                  lambda rows: bench_charts.ladder(rows, 128),
                                  lambda rows: bench_charts.quality(rows, 128),
                                  lambda rows: bench_charts.parts(rows, 128)])  # fmt: skip
def test_a_chart_without_data_says_so(draw: Any) -> None:
    assert "Not measured" in draw([]).layout.annotations[0].text


def test_the_table_says_runs_interval_stability_quality_and_what_ran() -> None:
    html = bench_render.table([row("pruned", 32, 4.0, unstable=True, **FAST)])
    for said in ("31 <em>unstable</em>", "2.00× [1.90–2.10]", "68.5 on 11,873 questions", "91.2 %", "PyTorch CPU"):
        assert said in html, said
    elsewhere = bench_render.table([row("pruned", 32, 4.0, device="cuda")])
    assert "68.5 on 11,873 questions, on CPU" in elsewhere
    tie = row("pruned", 32, 4.0, against_baseline=RATIO | {"low": 0.98})
    assert "tie [0.98–2.10]" in bench_render.table([tie])


def test_progress_says_what_runs_and_how_long_it_takes() -> None:
    plan = Plan("minilm", ("baseline",), ("cpu",))
    html = bench_render.progress(Sweep(plan, MACHINE, status="32 tokens: 7 runs of each", done=1, of=4, left_s=12.4))
    assert "32 tokens: 7 runs of each, about 12 s left" in html and 'max="4"' in html
    stopped = bench_render.progress(
        Sweep(plan, MACHINE, rows=[ROWS[0]], left_out=[{"backend": "", "point": EVIL, "why": EVIL}], of=4)
    )
    assert "Stopped; kept 1 point (1 row)" in stopped and EVIL not in stopped
    assert seconds_left(300) == "about 5 min left"


def test_captions_name_machine_date_and_agreement() -> None:
    alone = {"backend": "minilm/pruned", "device": "cpu", "tokens": 128, "p50_ms": 8.0, "company_p50_ms": 8.25}
    html = bench_render.caption({"machine": MACHINE, "rows": ROWS, "alone": [alone]}, "Yours.")
    assert "Abacus, 2 cores, 24 GiB, 2026-01-02" in html
    assert "8.00 ms alone, 8.25 ms in company" in html


def test_names_from_an_opened_file_are_never_markup() -> None:
    machine = Machine(**MACHINE | {"processor": EVIL})
    change = Change(ROWS[0], 10.0, 8.0, Ratio(1.25, 1.2, 1.3, 31), same_weights=False)
    html = bench_render.compared(Comparison(machine, (change,)), EVIL + ".json")
    assert EVIL not in html and "other weights" in html and "1.25×" in html


def test_differing_questions_stand_side_by_side_with_peoples_answer() -> None:
    one, other = catalog.backend("baseline"), catalog.backend("pruned")
    question = Question("1", "", f"Where is {EVIL}?", f"In Rome, {EVIL}.", (GoldAnswer("Rome", 3),))
    right = score(question, Answer("Rome", Span(3, 7), 1.0, 0.0, 0.9))
    wrong = score(question, Answer("", None, 0.0, 1.0, 0.9))
    html = accuracy_render.differing([Difference(right, wrong)], one, other, asked=40)
    assert "They differ on 1 of 40 questions" in html and "Baseline is closer" in html
    assert EVIL not in html
    assert 'data-number="0"' in html and "right" in html and "wrong" in html and "no answer in this text" in html
    assert "agree on all 40" in accuracy_render.differing([], one, other, asked=40)


def test_ratios_without_a_partner_are_a_dash() -> None:
    assert ratio_cell(None) == "–"
