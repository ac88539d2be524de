"""Turns, the memory budget, and engines that fail."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
from helpers import QUESTION, TEXT

from qa_backends import catalog, limits
from qa_backends.contract import Query, SpanLogits
from qa_backends.errors import BackendFailed, InputError
from qa_backends.measure.ask import ask
from qa_backends.runtime import Runtime

if TYPE_CHECKING:
    from pathlib import Path

    from qa_backends.contract import Windows

MINILM = catalog.family("minilm")
BOTH = [catalog.backend("baseline"), catalog.backend("pruned")]


def test_the_least_recently_used_backend_is_unloaded_when_the_budget_is_passed() -> None:
    small = Runtime(budget_bytes=120_000_000)
    with small.turn("cpu"):
        small.get(MINILM, BOTH[0], "cpu")
        small.get(MINILM, BOTH[1], "cpu")
    assert [key[1] for key in small.loaded()] == ["pruned"]
    large = Runtime(budget_bytes=1_000_000_000)
    with large.turn("cpu"):
        for row in (*BOTH, BOTH[0]):
            large.get(MINILM, row, "cpu")
    assert [key[1] for key in large.loaded()] == ["pruned", "baseline"]


def test_an_engine_that_dies_is_reported_while_the_others_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Runtime()
    with runtime.turn("cpu"):
        broken = runtime.get(MINILM, BOTH[1], "cpu").engine

    def die(_windows: Windows) -> SpanLogits:
        raise MemoryError("no memory left on the device")

    monkeypatch.setattr(broken, "forward", die)
    found = ask(runtime, MINILM, BOTH, Query(QUESTION, TEXT), "cpu", seconds=0.2)
    alive, dead = found.outcomes
    assert alive.reading is not None and alive.error is None
    assert dead.reading is None and "no memory left" in str(dead.error) and "ask again" in str(dead.error)
    again = ask(runtime, MINILM, BOTH, Query(QUESTION, TEXT), "cpu", seconds=0)
    assert all(each.reading for each in again.outcomes), "asking again must start the backend afresh"


def test_an_engine_that_dies_between_turns_loses_its_card_only(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Runtime()
    with runtime.turn("cpu"):
        engine = runtime.get(MINILM, BOTH[1], "cpu").engine
    real, calls = engine.forward, []

    def die_later(windows: Windows) -> SpanLogits:
        calls.append(windows)
        if len(calls) > 4:
            raise RuntimeError("lost the device")
        return real(windows)

    monkeypatch.setattr(engine, "forward", die_later)
    found = ask(runtime, MINILM, BOTH, Query(QUESTION, TEXT), "cpu", seconds=1)
    assert found.outcomes[0].reading is not None
    assert "lost the device" in str(found.outcomes[1].error)


def test_an_unknown_error_keeps_its_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Runtime()
    with runtime.turn("cpu") as turn:
        prepared = turn.prepare(MINILM, Query(QUESTION, TEXT))
        engine = runtime.get(MINILM, BOTH[0], "cpu").engine
        monkeypatch.setattr(engine, "forward", lambda _windows: np.zeros(1))
        with pytest.raises(BackendFailed) as caught:
            turn.answer(MINILM, BOTH[0], prepared)
    assert caught.value.__cause__ is not None


def test_turns_never_overlap_and_come_in_order_of_arrival() -> None:
    runtime = Runtime()
    inside: list[int] = []
    order: list[int] = []
    most = 0

    def visit(number: int) -> None:
        nonlocal most
        with runtime.turn("cpu") as turn:
            inside.append(number)
            most = max(most, len(inside))
            order.append(number)
            time.sleep(0.02)
            inside.remove(number)
            if number:
                assert turn.wait_s > 0

    with runtime.turn("cpu"):
        threads = []
        for number in range(5):
            threads.append(threading.Thread(target=visit, args=(number,)))
            threads[-1].start()
            while runtime.ahead() < number + 2:
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    assert most == 1
    assert order == [0, 1, 2, 3, 4]


def test_who_comes_second_is_told_and_waits_outside_the_timing() -> None:
    runtime = Runtime()
    said: list[str] = []
    with runtime.turn("cpu"):
        runtime.get(MINILM, BOTH[0], "cpu")
    release = threading.Event()

    def hold() -> None:
        with runtime.turn("cpu"):
            release.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    while runtime.ahead() == 0:
        time.sleep(0.001)
    threading.Timer(1.0, release.set).start()
    query = Query(QUESTION, TEXT)
    found = ask(runtime, MINILM, BOTH[:1], query, "cpu", seconds=0, emit=lambda state: said.append(state.status))
    holder.join()
    assert said[0] == "Waiting: 1 question ahead of yours …"
    reading = found.outcomes[0].reading
    assert reading is not None
    assert reading.times.wait_s > 0.9 > reading.times.compute_s


def test_a_device_nobody_has_is_bad_input() -> None:
    with pytest.raises(InputError, match="Choose one of"), Runtime().turn("abacus"):
        pass


def test_nothing_ticked_is_bad_input(runtime: Runtime) -> None:
    with pytest.raises(InputError, match="Tick at least one"):
        ask(runtime, MINILM, [], Query(QUESTION, TEXT), "cpu")


def test_who_gives_up_waiting_does_not_hold_up_the_next() -> None:
    runtime = Runtime()

    class GaveUpError(Exception):
        pass

    def give_up(_status: str) -> None:
        raise GaveUpError

    with runtime.turn("cpu"):
        with pytest.raises(GaveUpError), runtime.turn("cpu", give_up):
            pass
        assert runtime.ahead() == 1
    with runtime.turn("cpu") as turn:
        assert turn.wait_s < 1


def test_a_build_that_cannot_be_written_is_a_sentence_on_its_card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QA_CACHE", "/proc/nowhere")
    rows = [BOTH[0], catalog.backend("pruned-ort")]
    found = ask(Runtime(), MINILM, rows, Query(QUESTION, TEXT), "cpu", seconds=0)
    assert found.outcomes[0].reading is not None
    assert "getting ready" in str(found.outcomes[1].error)


def test_the_memory_budget_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QA_MEMORY_GB", "1.5")
    assert Runtime().budget_bytes == 1_500_000_000
    monkeypatch.setenv("QA_MEMORY_GB", "much")
    with pytest.raises(InputError, match="QA_MEMORY_GB"):
        Runtime()


def test_a_container_s_limits_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    (tmp_path / "memory.max").write_text("1000000000\n")
    monkeypatch.setattr(limits, "CGROUP", tmp_path)
    monkeypatch.setattr(limits.os, "sched_getaffinity", lambda _pid: set(range(64)))
    assert limits.thread_count.__wrapped__() == 2
    assert limits.memory_bytes() == 1_000_000_000
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert limits.thread_count.__wrapped__() == 64


def test_engines_run_on_one_thread_whoever_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Runtime()
    with runtime.turn("cpu"):
        engine = runtime.get(MINILM, BOTH[0], "cpu").engine
    real, seen = engine.forward, set()

    def forward(windows: Windows) -> SpanLogits:
        seen.add(threading.get_ident())
        return real(windows)

    monkeypatch.setattr(engine, "forward", forward)

    def visit() -> None:
        ask(runtime, MINILM, BOTH[:1], Query(QUESTION, TEXT), "cpu", seconds=0)

    visitors = [threading.Thread(target=visit) for _ in range(3)]
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join()
    visit()
    assert len(seen) == 1
