"""The benchmark as people run it: points, turns, stopping, what is left out.

Where it does not matter what a model computes, the fake engine stands in for one.
"""

from __future__ import annotations

import statistics
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from helpers import QUESTION, TEXT

from qa_backends import catalog
from qa_backends.asking.ask import ask
from qa_backends.catalog import Backend
from qa_backends.contract import Engine, Query, SpanLogits
from qa_backends.engines.fake import Fake
from qa_backends.errors import BackendUnavailable
from qa_backends.measure.benchmark.floor import matmul_rate, operations
from qa_backends.measure.benchmark.pipeline import LoadedPipeline
from qa_backends.measure.benchmark.plan import BenchmarkPlan
from qa_backends.measure.benchmark.sweep import Sweep, sweep
from qa_backends.measure.results.records import LeftOut
from qa_backends.measure.timing.load import LoadMeter
from qa_backends.progress import Cancelled
from qa_backends.reader.reader import MAX_PADDING
from qa_backends.runtime import Runtime
from qa_backends.web.benchmark.html import caption

if TYPE_CHECKING:
    from pathlib import Path

    from qa_backends.catalog import Family
    from qa_backends.contract import StageTimes, Windows
    from qa_backends.progress import Progress

pytestmark = pytest.mark.usefixtures("no_pause")

MINILM = catalog.family("minilm")
FAKES = ("baseline-fake", "pruned-fake")
SMALL = BenchmarkPlan("minilm", FAKES, ("cpu",), lengths=(32,), batches=(1,), runs=6, seconds=10)


def plan_of(**other: Any) -> BenchmarkPlan:
    return replace(SMALL, **other)


def loaded(runtime: Runtime, name: str) -> Engine:
    with runtime.turn("cpu"):
        return runtime.get(MINILM, catalog.backend(name), "cpu").engine


def test_a_small_sweep_measures_everything_it_promises(runtime: Runtime) -> None:
    states: list[Sweep] = []
    plan = plan_of(backends=("pruned", "baseline"), batches=(1, 2), seconds=60)
    found = sweep(runtime, plan, emit=lambda state: states.append(state.copy()))
    in_rounds = [state.timing for state in states if "warming up" in state.status]
    assert in_rounds and all(in_rounds), "whoever draws these, does it before the round"
    assert not states[0].timing and not states[-1].timing
    names = ("minilm/baseline", "minilm/pruned")
    places = [(each.backend, each.tokens, each.batch, each.order) for each in found.records]
    assert places == [(name, 32, batch, "equal") for batch in (1, 2) for name in names]
    assert found.complete and found.left_out == [] and found.status == ""
    for record in found.records:
        assert record.runs == sum(record.blocks) >= 6
        assert record.warm_up_runs >= 1 and record.cold_ms > 0
        assert record.floor_ms is not None
        assert 0 < record.floor_ms < statistics.median(record.samples_ms.forward), "no faster than the machine can be"
        assert record.ran.precision == "FP32"
        mean_ms = statistics.fmean(record.samples_ms.wholes())
        assert record.questions_per_second == pytest.approx(1000 * record.questions / mean_ms, rel=1e-4)
        assert record.quality is not None and record.quality.data == "dev-v2.0.json"
        assert record.others is None or 0 <= record.others <= 1
    assert [len(state.records) for state in states] == sorted(len(state.records) for state in states)
    assert {0, 2, 4} <= {len(state.records) for state in states}, "records come point by point"
    assert [each.backend for each in found.alone] == list(names)
    assert found.benchmark().rows == tuple(found.records) and found.benchmark().plan == plan


@pytest.mark.parametrize(("here", "said"), [(True, 0.4), (False, None)], ids=["in this process", "by a server"])
def test_what_others_took_of_the_cores_stands_beside_what_was_timed_meanwhile(
    here: bool, said: float | None, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LoadMeter, "share", lambda _meter: 0.4)
    monkeypatch.setattr(Fake, "computes_here", here)
    found = sweep(runtime, SMALL)
    assert [each.others for each in found.records] == [said, said]
    shown = caption(found.benchmark(), "Yours")
    assert ("Others took up to 40 % of the cores in 2 of 2 measurements" in shown) is here


@pytest.mark.slow
def test_mixed_lengths_are_measured_as_they_come_sorted_and_as_the_app_does(runtime: Runtime, small: Family) -> None:
    plan = plan_of(family=small.name, backends=("pruned", "baseline"), mixed=True, reference="hf-pipeline", seconds=60)
    found = sweep(runtime, plan)
    mixed = [each for each in found.records if each.tokens is None]
    ours, theirs = ("arrival", "sorted", "as asked"), ("arrival", "one by one")
    assert [(each.name, each.order) for each in mixed] == [
        *((name, order) for name in ("baseline", "pruned") for order in ours),
        *(("hf-pipeline", order) for order in theirs),
    ]
    assert {each.batch for each in mixed if each.order in ("arrival", "sorted")} == {4}
    assert mixed[-1].batch == 1 <= mixed[2].batch <= 16, "of the app's own batches, the largest"
    assert {each.name for each in found.records if each.tokens == 32} == {"baseline", "pruned", "hf-pipeline"}
    arrival, by_length, as_asked, *references = mixed[3:]
    assert all(each.padding is None and each.questions_per_second > 0 for each in references)
    assert as_asked.padding is not None and as_asked.padding <= MAX_PADDING["cpu"]
    assert arrival.padding is not None and by_length.padding is not None and by_length.padding < arrival.padding
    assert arrival.floor_ms is not None and by_length.floor_ms is not None and by_length.floor_ms < arrival.floor_ms
    assert arrival.against_arrival is None
    assert by_length.against_arrival is not None and by_length.against_arrival.backend == "small/pruned"
    assert by_length.against_baseline is not None and by_length.against_previous is not None
    assert by_length.against_baseline.backend == by_length.against_previous.backend == "small/baseline"
    assert by_length.quality is None, "nobody measured the quality of these weights"


def test_what_answers_otherwise_in_company_is_measured_question_by_question(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, forward = list[int](), Fake.forward

    def counting(self: Fake, windows: Windows) -> SpanLogits:
        sizes.append(windows.n_windows)
        return forward(self, windows)

    monkeypatch.setattr(Fake, "forward", counting)
    for apart, most in ((False, 2), (True, 1)):
        monkeypatch.setattr(Backend, "scaled_by_batch", property(lambda _self, apart=apart: apart))
        sizes.clear()
        assert sweep(runtime, plan_of(batches=(2,))).records
        assert max(sizes) == most


def test_a_text_of_two_windows_is_measured_as_it_is_answered(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = loaded(runtime, "pruned-fake")
    forward, calls = engine.forward, []

    def counted(windows: Windows) -> SpanLogits:
        calls.append(windows.input_ids.shape)
        return forward(windows)

    monkeypatch.setattr(engine, "forward", counted)
    (record,) = sweep(runtime, plan_of(backends=("pruned-fake",), lengths=(512,))).records
    assert (record.windows, record.padding) == (2, 0)
    assert {n_windows for n_windows, _ in calls} == {1}, "the shorter window is not padded to the longer"


def test_what_an_engine_padded_for_itself_is_in_its_padding_and_its_floor(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine that computes every batch as four windows of 128 tokens, whatever it was handed."""
    engine = loaded(runtime, "pruned")
    forward = engine.forward

    def padding(windows: Windows) -> SpanLogits:
        return replace(forward(windows), computed=(4, 128))

    monkeypatch.setattr(engine, "forward", padding)
    (record,) = sweep(runtime, plan_of(backends=("pruned",))).records
    assert (record.windows, record.questions) == (1, 1)
    assert record.padding == pytest.approx(1 - 32 / (4 * 128))
    from qa_backends.checkpoints.load import read_config

    folder = MINILM.source("pruned").folder
    rate = matmul_rate("cpu", "FP32")
    assert folder is not None and rate is not None
    assert record.floor_ms == pytest.approx(1000 * operations(read_config(folder), [(4, 128)]) / rate)


def test_stopping_keeps_what_was_measured(runtime: Runtime) -> None:
    stop = threading.Event()

    def watch(state: Sweep) -> None:
        if len(state.records) == 2:
            stop.set()

    found = sweep(runtime, plan_of(lengths=(32, 64, 128)), emit=watch, stopped=stop.is_set)
    assert [each.tokens for each in found.records] == [32, 32]
    assert not found.complete and found.status == "" and found.left_out == []


def test_stopping_in_the_middle_of_a_point_keeps_its_whole_rounds(runtime: Runtime) -> None:
    stop = threading.Event()

    def watch(state: Sweep) -> None:
        if ": 16 runs" in state.status:
            stop.set()

    found = sweep(runtime, plan_of(runs=300), emit=watch, stopped=stop.is_set)
    assert {each.runs for each in found.records} == {16}


def test_stopping_while_a_backend_is_loaded_is_no_failure_of_that_backend(runtime: Runtime) -> None:
    """The second point's loading is broken off; the first point's records stay, and nobody failed."""

    def watch(state: Sweep) -> None:
        if state.records and not state.status.startswith("loading"):
            runtime.drop(MINILM, "pruned-fake", "cpu")
        if state.records and state.status == "loading minilm/pruned-fake on cpu …":
            raise Cancelled

    found = sweep(runtime, plan_of(lengths=(32, 64)), emit=watch)
    assert [(each.name, each.tokens) for each in found.records] == [(name, 32) for name in FAKES]
    assert found.left_out == [] and not found.complete and found.status == ""


@pytest.mark.parametrize("ended_by", ["what it tells raises", "it is told to stop"])
def test_stopping_while_a_backend_is_built_is_no_failure_of_that_backend(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ended_by: str
) -> None:
    monkeypatch.setenv("QA_CACHE", str(tmp_path))
    said: list[str] = []

    def watch(state: Sweep) -> None:
        said.append(state.status)
        if state.status and ended_by == "what it tells raises":
            raise Cancelled

    stopped = ended_by == "it is told to stop"
    found = sweep(Runtime(), plan_of(backends=("pruned-ort",)), emit=watch, stopped=lambda: stopped)
    assert said[-1] == "" and len(said) <= 2
    assert found.records == [] and found.left_out == [] and not found.complete


def test_a_point_too_slow_for_its_seconds_is_left_out_with_a_sentence(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = loaded(runtime, "baseline-fake")
    real = engine.forward

    def slow(windows: Windows) -> SpanLogits:
        time.sleep(0.3 if windows.seq_len > 40 else 0)
        return real(windows)

    monkeypatch.setattr(engine, "forward", slow)
    found = sweep(runtime, plan_of(backends=("baseline-fake",), lengths=(32, 64), seconds=1.0))
    assert {each.tokens for each in found.records} == {32}
    (entry,) = found.left_out
    assert entry.point == "64 tokens, batch 1, CPU" and "give more time" in entry.why


def test_a_backend_that_cannot_load_is_left_out_while_the_others_are_measured(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = runtime.make_ready

    def make_ready(family: Family, backend: Backend, device: str, progress: Progress) -> Path:
        if backend.name == "pruned-fake":
            raise BackendUnavailable("It is not here.", "Install it.")
        return real(family, backend, device, progress)

    monkeypatch.setattr(runtime, "make_ready", make_ready)
    found = sweep(runtime, plan_of(lengths=(32, 64)))
    assert [each.name for each in found.records] == ["baseline-fake"] * 2
    assert found.left_out == [LeftOut("pruned-fake", "", "It is not here. Install it.")]


def test_a_question_and_a_benchmark_never_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody asks again and again while a benchmark runs; what the engine runs never mixes the two within a point."""
    runtime = Runtime()
    backend = catalog.backend("baseline-fake")
    engine = loaded(runtime, backend.name)
    with runtime.turn("cpu") as turn:
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
        sweep(runtime, plan_of(backends=(backend.name,), lengths=lengths, runs=20))
        ended.set()

    benchmark = threading.Thread(target=measure)
    benchmark.start()
    waits = []
    while not ended.is_set():
        found = ask(runtime, MINILM, [backend], Query(QUESTION, TEXT), "cpu", seconds=0)
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
    engine = loaded(runtime, "pruned-fake")
    real, calls = engine.forward, []

    def die_later(windows: Windows) -> SpanLogits:
        calls.append(windows)
        if len(calls) > 12:
            raise MemoryError("no memory left on the device")
        return real(windows)

    monkeypatch.setattr(engine, "forward", die_later)
    found = sweep(runtime, plan_of(lengths=(32, 64)))
    places = [(each.name, each.tokens) for each in found.records]
    assert places == [("baseline-fake", 32), ("baseline-fake", 64), ("pruned-fake", 64)]
    assert [(each.backend, each.point) for each in found.left_out] == [("pruned-fake", "32 tokens, batch 1, CPU")]
    assert "no memory left" in found.left_out[0].why


def test_stopping_works_while_others_have_their_turn(runtime: Runtime) -> None:
    stop = threading.Event()
    statuses: list[str] = []

    def watch(state: Sweep) -> None:
        statuses.append(state.status)
        if state.status.startswith("Waiting"):
            stop.set()

    with runtime.turn("cpu"):
        found = sweep(runtime, SMALL, emit=watch, stopped=stop.is_set)
    assert found.records == [] and not found.complete and statuses[-1] == ""


def test_a_reference_is_measured_like_any_backend_and_starts_afresh_after_it_failed(
    small: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, asked = LoadedPipeline.answer, list[LoadedPipeline]()

    def die_at_first(pipeline: LoadedPipeline, queries: list[Query], batch: int) -> StageTimes:
        asked.append(pipeline)
        if pipeline is asked[0]:
            raise MemoryError("no memory left on the device")
        return real(pipeline, queries, batch)

    monkeypatch.setattr(LoadedPipeline, "answer", die_at_first)
    plan = plan_of(family=small.name, backends=("baseline",), lengths=(32, 48), reference="hf-pipeline", seconds=60)
    found = sweep(Runtime(), plan)
    assert [(each.name, each.tokens) for each in found.records] == [
        ("baseline", 32), ("baseline", 48), ("hf-pipeline", 48),
    ]  # fmt: skip
    (entry,) = found.left_out
    assert (entry.backend, entry.point) == ("hf-pipeline", "32 tokens, batch 1, CPU")
    assert "no memory left" in entry.why
    reference = found.records[-1]
    assert reference.checkpoint == found.records[0].checkpoint
    assert reference.against_baseline is not None and reference.against_previous is None
    assert (reference.padding, reference.floor_ms, reference.quality) == (None, None, None)
    assert [each.name for each in found.alone] == ["baseline"], "a reference is not measured alone"


def test_a_point_is_shown_before_somebody_else_gets_the_turn(runtime: Runtime) -> None:
    """Whoever comes next would otherwise be timed while this point's charts are drawn."""
    seen: dict[int, int] = {}

    def watch(state: Sweep) -> None:
        seen.setdefault(len(state.records), runtime.ahead())

    plan = BenchmarkPlan("minilm", ("pruned",), lengths=(32, 64), batches=(1,), runs=5, seconds=20)
    sweep(runtime, plan, emit=watch)
    assert seen[1] == seen[2] == 1, "the turn is held when a new record is first shown"
