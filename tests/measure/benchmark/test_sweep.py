"""The benchmark as people run it: points, turns, stopping, what is left out."""

from __future__ import annotations

import shlex
import threading
import time
from typing import TYPE_CHECKING

import pytest
from helpers import QUESTION, TEXT

from qa_backends import catalog
from qa_backends.contract import Query
from qa_backends.errors import BackendUnavailable, InputError
from qa_backends.measure import sweep as module
from qa_backends.measure.ask import ask
from qa_backends.measure.plan import Plan, Point, plan_from
from qa_backends.measure.sweep import Sweep, sweep
from qa_backends.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable

    from qa_backends.catalog import Backend, Family
    from qa_backends.contract import SpanLogits, Windows
    from qa_backends.runtime import Loaded

MINILM = catalog.family("minilm")
SMALL = Plan("minilm", ("pruned", "baseline"), ("cpu",), lengths=(32,), batches=(1,), runs=6, seconds=10)


def small(**other: object) -> Plan:
    return plan_from(SMALL.as_dict() | other)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"backends": ()}, "No backend"),
        ({"devices": ()}, "No device"),
        ({"lengths": ()}, "No length"),
        ({"batches": ()}, "No batch size"),
        ({"backends": ("nobody",)}, "Choose one of"),
        ({"devices": ("abacus",)}, "Choose one of"),
        ({"lengths": (513,)}, "from 32 to 512"),
        ({"batches": (0,)}, "from 1 to 64"),
        ({"runs": 4}, "from 5"),
        ({"seconds": 0.0}, "from 1 to 600"),
        ({"reference": "memory"}, "hf-pipeline"),
    ],
)
def test_a_plan_that_cannot_be_measured_is_refused_before_anything_runs(other: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        small(**other).check()


def test_lengths_are_measured_at_the_smallest_batch_and_batches_at_one_length() -> None:
    plan = small(lengths=(384, 32, 128), batches=(8, 1, 4), mixed=True)
    assert plan.points() == [
        Point("cpu", 32, 1), Point("cpu", 128, 1), Point("cpu", 384, 1), Point("cpu", 128, 4), Point("cpu", 128, 8),
        Point("cpu", None, 4),
    ]  # fmt: skip


def test_the_command_repeats_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    from qa_backends.commands import measuring

    plan = small(lengths=(32, 128), batches=(1, 8), mixed=True, reference="hf-pipeline", seconds=2.5)
    seen: list[Plan] = []

    def spy(_runtime: Runtime, plan: Plan, **_: object) -> Sweep:
        seen.append(plan)
        return Sweep(plan, {})

    monkeypatch.setattr(module, "sweep", spy)
    words = shlex.split(plan.command())
    assert words[:4] == ["python", "-m", "qa_backends", "bench"]
    from typer.testing import CliRunner

    CliRunner().invoke(measuring.app, words[3:])
    assert seen == [plan]


def test_a_small_sweep_measures_everything_it_promises(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MIXED_QUESTIONS", 8)
    states: list[Sweep] = []
    plan = small(batches=(1, 2), mixed=True, seconds=60)
    found = sweep(runtime, plan, emit=lambda state: states.append(state.copy()))
    places = [(row["backend"], row["tokens"], row["batch"], row["order"]) for row in found.rows]
    names = ("minilm/baseline", "minilm/pruned")
    assert places == [
        *[(name, 32, batch, "equal") for batch in (1, 2) for name in names],
        *[(name, None, 4, order) for name in names for order in ("arrival", "sorted")],
    ]
    assert found.complete and found.left_out == [] and found.status == ""
    for row in found.rows:
        assert row["runs"] == sum(row["blocks"]) >= 6
        assert row["warm_up_runs"] >= 1 and row["cold_ms"] > 0
        assert row["floor_ms"] > 0
        assert row["ran"]["precision"] == "FP32"
        assert row["questions_per_second"] == pytest.approx(1000 * row["questions"] / row["p50_ms"], rel=0.5)
    arrival, by_length = found.rows[-2:]
    assert by_length["padding"] < arrival["padding"]
    assert by_length["against_arrival"]["backend"] == "minilm/pruned"
    assert by_length["against_baseline"]["backend"] == by_length["against_previous"]["backend"] == "minilm/baseline"
    assert [len(state.rows) for state in states] == sorted(len(state.rows) for state in states)
    assert {0, 2, 4, 8} <= {len(state.rows) for state in states}, "rows come point by point"
    assert [row["backend"] for row in found.alone] == list(names)


def test_a_text_of_two_windows_is_measured_as_it_is_answered(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = type(runtime.get(MINILM, catalog.backend("pruned"), "cpu").engine)
    forward, calls = engine.forward, []

    def counted(self: object, windows: Windows) -> SpanLogits:
        calls.append(windows.input_ids.shape)
        return forward(self, windows)

    monkeypatch.setattr(engine, "forward", counted)
    (row,) = list(sweep(runtime, small(backends=("pruned",), lengths=(512,)), emit=lambda _: None).rows)
    assert (row["windows"], row["padding"]) == (2, 0)
    assert {n_windows for n_windows, _ in calls} == {1}, "the shorter window is not padded to the longer"


def test_stopping_keeps_what_was_measured(runtime: Runtime) -> None:
    stop = threading.Event()

    def watch(state: Sweep) -> None:
        if len(state.rows) == 2:
            stop.set()

    found = sweep(runtime, small(lengths=(32, 64, 128)), emit=watch, stopped=stop.is_set)
    assert [row["tokens"] for row in found.rows] == [32, 32]
    assert not found.complete and found.status == "" and found.left_out == []


def test_stopping_in_the_middle_of_a_point_keeps_its_whole_rounds(runtime: Runtime) -> None:
    stop = threading.Event()

    def watch(state: Sweep) -> None:
        if ": 16 runs" in state.status:
            stop.set()

    found = sweep(runtime, small(runs=300), emit=watch, stopped=stop.is_set)
    assert {row["runs"] for row in found.rows} == {16}


def test_a_point_too_slow_for_its_seconds_is_left_out_with_a_sentence(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    with runtime.turn("cpu"):
        engine = runtime.get(MINILM, catalog.backend("baseline"), "cpu").engine
    real = engine.forward

    def slow(windows: Windows) -> SpanLogits:
        time.sleep(0.3 if windows.seq_len > 40 else 0)
        return real(windows)

    monkeypatch.setattr(engine, "forward", slow)
    found = sweep(runtime, small(backends=("baseline",), lengths=(32, 64), seconds=1.0))
    assert {row["tokens"] for row in found.rows} == {32}
    (entry,) = found.left_out
    assert entry["point"] == "64 tokens, batch 1, CPU" and "give more time" in entry["why"]


def test_a_backend_that_cannot_load_is_left_out_while_the_others_are_measured(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = runtime.get

    def get(group: Family, row: Backend, device: str, say: Callable[[str], None] | None = None) -> Loaded:
        if row.name == "pruned":
            raise BackendUnavailable("It is not here.", "Install it.")
        return real(group, row, device, say)

    monkeypatch.setattr(runtime, "get", get)
    found = sweep(runtime, small(lengths=(32, 64)))
    assert [row["backend"] for row in found.rows] == ["minilm/baseline"] * 2
    assert found.left_out == [{"backend": "pruned", "point": "", "why": "It is not here. Install it."}]


def test_a_question_and_a_benchmark_never_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody asks again and again while a benchmark runs; what the engine runs never mixes the two within a point."""
    runtime = Runtime()
    row = catalog.backend("baseline")
    with runtime.turn("cpu") as turn:
        engine = runtime.get(MINILM, row, "cpu").engine
        own = turn.prepare(MINILM, Query(QUESTION, TEXT)).windows.seq_len
    real, ran = engine.forward, []
    lengths = (32, 48, 64, 96)
    assert own not in lengths

    def forward(windows: Windows) -> SpanLogits:
        ran.append(windows.seq_len)
        return real(windows)

    monkeypatch.setattr(engine, "forward", forward)
    ended = threading.Event()

    def measure() -> None:
        sweep(runtime, small(backends=("baseline",), lengths=lengths, runs=20))
        ended.set()

    benchmark = threading.Thread(target=measure)
    benchmark.start()
    waits = []
    while not ended.is_set():
        found = ask(runtime, MINILM, [row], Query(QUESTION, TEXT), "cpu", seconds=0)
        assert found.outcomes[0].reading is not None
        waits.append(found.outcomes[0].reading.times.wait_s)
    benchmark.join()
    for length in lengths[:-1]:  # the last one is measured alone too, in a turn of its own
        first, last = ran.index(length), len(ran) - 1 - ran[::-1].index(length)
        assert set(ran[first : last + 1]) == {length}
    assert max(waits) > 0.05, "a question that comes during a point waits for it"
    assert own in ran[ran.index(32) : len(ran) - 1 - ran[::-1].index(96)], "but not for the whole benchmark"


def test_a_backend_that_dies_at_a_point_is_left_out_there_and_the_others_are_measured(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    with runtime.turn("cpu"):
        engine = runtime.get(MINILM, catalog.backend("pruned"), "cpu").engine
    real, calls = engine.forward, []

    def die_later(windows: Windows) -> SpanLogits:
        calls.append(windows)
        if len(calls) > 12:
            raise MemoryError("no memory left on the device")
        return real(windows)

    monkeypatch.setattr(engine, "forward", die_later)
    found = sweep(runtime, small(lengths=(32, 64)))
    places = [(row["backend"], row["tokens"]) for row in found.rows]
    assert places == [("minilm/baseline", 32), ("minilm/baseline", 64), ("minilm/pruned", 64)]
    assert [(each["backend"], each["point"]) for each in found.left_out] == [("pruned", "32 tokens, batch 1, CPU")]
    assert "no memory left" in found.left_out[0]["why"]


def test_stopping_works_while_others_have_their_turn(runtime: Runtime) -> None:
    stop = threading.Event()
    statuses: list[str] = []

    def watch(state: Sweep) -> None:
        statuses.append(state.status)
        if state.status.startswith("Waiting"):
            stop.set()

    with runtime.turn("cpu"):
        found = sweep(runtime, SMALL, emit=watch, stopped=stop.is_set)
    assert found.rows == [] and not found.complete and statuses[-1] == ""


def test_a_backend_named_twice_is_measured_once() -> None:
    assert [row.name for row in small(backends=("pruned", "baseline", "pruned")).rows] == ["baseline", "pruned"]
