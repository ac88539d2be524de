"""The benchmark tab: its choices become a plan, and the command it prints does what the page did."""

from __future__ import annotations

import shlex
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from measure.invented import MACHINE, benchmark, benchmark_record
from typer.testing import CliRunner

from qa_backends import cli
from qa_backends.engines.fake import Fake
from qa_backends.measure.benchmark import sweep as module
from qa_backends.measure.benchmark.plan import BATCHES, LENGTHS, PIPELINE, BenchmarkPlan
from qa_backends.measure.benchmark.sweep import Sweep, sweep
from qa_backends.measure.results.shipped import shipped_benchmark
from qa_backends.runtime import Runtime
from qa_backends.web.benchmark.choices import command_of, plan_of, said_of
from qa_backends.web.benchmark.tab import shipped

if TYPE_CHECKING:
    from pathlib import Path

    from qa_backends.contract import SpanLogits, Windows
    from qa_backends.measure.results.records import BenchmarkRecord

DEFAULTS = BenchmarkPlan("minilm")
CHOSEN: dict[str, dict[str, Any]] = {
    "defaults": {},
    "least": {"backends": ["pruned"], "lengths": ["512"], "batches": ["64"], "runs": 5, "seconds": 1},
    "all": {"lengths": [str(each) for each in LENGTHS], "batches": [str(each) for each in BATCHES], "mixed": True,
            "reference": True, "seconds": 60},
    "any order": {"backends": ["pruned-ort", "baseline"], "lengths": ["128", "32"], "batches": ["8", "1"]},
    "odd seconds": {"seconds": 12.3456789, "runs": 4_999},
}  # fmt: skip


def chosen(**other: Any) -> BenchmarkPlan:
    """The plan of what the tab offers to begin with, but for ``other``."""
    first: dict[str, Any] = {
        "backends": list(DEFAULTS.backends), "family": "minilm", "devices": ["cpu"],
        "lengths": [str(each) for each in DEFAULTS.lengths], "batches": [str(each) for each in DEFAULTS.batches],
        "runs": DEFAULTS.runs, "seconds": DEFAULTS.seconds, "mixed": False, "reference": False,
    }  # fmt: skip
    return plan_of(**{**first, **other})


def records_of(plan: BenchmarkPlan) -> list[BenchmarkRecord]:
    """One of every backend at every point of the plan."""
    names = [*plan.backends, *([plan.reference] if plan.reference else [])]
    return [
        benchmark_record(5.0, backend=f"{plan.family}/{name}", device=point.device, tokens=point.tokens,
                         batch=point.batch, order="equal" if point.tokens else "sorted")
        for point in plan.points() for name in names
    ]  # fmt: skip


def test_the_benchmark_that_ships_says_so_where_it_is_not_of_the_family_in_the_form(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = shipped()
    monkeypatch.setenv("QA_FAMILY", "bert-large")
    other = shipped()
    assert usual is not None and "MiniLM" not in usual.whose
    assert other is not None and "It is of MiniLM, not of BERT-large." in other.whose


@pytest.fixture
def repeated(monkeypatch: pytest.MonkeyPatch) -> list[BenchmarkPlan]:
    """The plans that the command line is asked to measure; nothing is measured."""
    seen: list[BenchmarkPlan] = []

    def spy(_runtime: Runtime, plan: BenchmarkPlan, **_: object) -> Sweep:
        seen.append(plan)
        return Sweep(plan, MACHINE)

    monkeypatch.setattr(module, "sweep", spy)
    return seen


def type_in(command: str) -> int:
    """Runs the printed line; gives its exit code."""
    words = shlex.split(command)
    assert words[:4] == ["python", "-m", "qa_backends", "bench"]
    return CliRunner().invoke(cli.app, words[3:]).exit_code


@pytest.mark.parametrize("other", CHOSEN.values(), ids=CHOSEN)
def test_the_printed_command_asks_for_what_the_page_measured(
    other: dict[str, Any], repeated: list[BenchmarkPlan]
) -> None:
    plan = chosen(**other)
    plan.check()
    type_in(command_of(benchmark(*records_of(plan), plan=plan)))
    assert repeated == [plan]


def test_the_command_of_what_ships_is_the_one_that_measured_it(repeated: list[BenchmarkPlan]) -> None:
    shipped = shipped_benchmark()
    assert shipped is not None
    type_in(command_of(shipped))
    left_out = {each.backend for each in shipped.left_out}
    measured = tuple(name for name in shipped.plan.backends if name not in left_out)
    assert left_out == {"pruned-triton-fp16"}, "there was no server to ask"
    assert repeated == [replace(shipped.plan, backends=measured)]


def test_of_a_stopped_benchmark_the_command_repeats_the_part_that_was_measured(repeated: list[BenchmarkPlan]) -> None:
    plan = chosen(lengths=["32", "128", "384"], batches=["1", "8"], mixed=True, reference=True)
    until = [each for each in records_of(plan) if each.tokens in (32, 128) and each.batch == 1]
    type_in(command_of(benchmark(*until, plan=plan, complete=False)))
    type_in(command_of(benchmark(*[each for each in until if each.name == "baseline"], plan=plan)))
    part = replace(plan, lengths=(32, 128), batches=(1,), mixed=False)
    assert repeated == [part, replace(part, backends=("baseline",), reference=None)]


def test_of_a_reference_alone_the_command_can_still_be_measured(repeated: list[BenchmarkPlan]) -> None:
    plan = chosen(reference=True)
    type_in(command_of(benchmark(*[each for each in records_of(plan) if each.name == PIPELINE], plan=plan)))
    repeated[0].check()


@pytest.mark.slow
def test_what_fitted_on_the_page_fits_in_a_new_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An engine whose first answer takes more than the seconds given: the page has warmed it up, a command cannot."""
    forward, seen = Fake.forward, set[Fake]()

    def slow_at_first(engine: Fake, windows: Windows) -> SpanLogits:
        if engine not in seen:
            seen.add(engine)
            time.sleep(2.5)
        return forward(engine, windows)

    monkeypatch.setattr(Fake, "forward", slow_at_first)
    plan = chosen(backends=["baseline-fake"], lengths=["32"], batches=["1"], runs=5, seconds=2)
    runtime = Runtime()
    sweep(runtime, plan)
    page = sweep(runtime, plan)
    assert page.complete and page.records, "the page measures it"
    monkeypatch.chdir(tmp_path)
    assert type_in(command_of(page.benchmark())) == 0
    assert (tmp_path / "benchmark.json").is_file()
    assert len(seen) == 2, "a new process starts cold"


def test_what_is_chosen_is_said_in_a_line_with_the_time_it_takes() -> None:
    assert said_of(chosen()) == (
        "Baseline + Pruned, fused, FP16 · MiniLM · CPU · 32, 128, 384 tokens · batches of 1, 8 · 2 min at most"
    )
    ticked_again = chosen(lengths=["384", "32"], batches=["8", "1"])
    assert "32, 384 tokens · batches of 1, 8" in said_of(ticked_again), "in order, whichever was ticked last"
    assert said_of(chosen(lengths=[])) == "No length is chosen. Choose at least one."
    assert "from 5 to 5000 runs" in said_of(chosen(runs=None))
