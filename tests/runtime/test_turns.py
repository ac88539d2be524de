"""Turns: one at a time, in order of arrival, on one thread; who waits is told, can give up, and is not charged."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from helpers import QUESTION, TEXT

from qa_backends import catalog
from qa_backends.catalog import Family
from qa_backends.contract import Query, SpanLogits, Windows
from qa_backends.errors import BackendFailed, InputError
from qa_backends.progress import Cancelled, Progress
from qa_backends.runtime import Runtime

BASELINE = catalog.backend("baseline")


def test_turns_never_overlap_and_come_in_order_of_arrival() -> None:
    runtime = Runtime()
    inside: list[int] = []
    order: list[int] = []
    waited: list[float] = []
    most = 0

    def visit(number: int) -> None:
        nonlocal most
        with runtime.turn("cpu") as turn:
            inside.append(number)
            most = max(most, len(inside))
            order.append(number)
            waited.append(turn.wait_s)
            time.sleep(0.02)
            inside.remove(number)

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
    assert min(waited) > 0 and max(waited) > 4 * 0.02, "who comes last waits for all the others"


def test_who_comes_second_is_told_and_the_wait_is_not_counted_as_work(small_family: Family) -> None:
    runtime = Runtime()
    said: list[str] = []
    with runtime.turn("cpu"):
        runtime.get(small_family, BASELINE, "cpu")
    holding, release = threading.Event(), threading.Event()

    def hold() -> None:
        with runtime.turn("cpu"):
            holding.set()
            release.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    assert holding.wait(10)
    threading.Timer(0.7, release.set).start()
    with runtime.turn("cpu", Progress(said.append)) as turn:
        reading = turn.answer(small_family, BASELINE, turn.prepare(small_family, Query(QUESTION, TEXT)))
    holder.join()
    assert said[0] == "Waiting: 1 question ahead of yours …"
    assert len(said) >= 2, "who waits long is told again"
    assert reading.times.wait_s > 0.6 > reading.times.compute_s


def test_who_gives_up_waiting_does_not_hold_up_the_next() -> None:
    runtime = Runtime()
    with runtime.turn("cpu"):
        with pytest.raises(Cancelled), runtime.turn("cpu", Progress(stopped=lambda: True)):
            pass
        assert runtime.ahead() == 1
    with runtime.turn("cpu") as turn:
        assert turn.wait_s < 1


def test_a_device_nobody_has_is_bad_input(small_family: Family) -> None:
    with pytest.raises(InputError, match=r"no device 'abacus' here\. Choose one of"), Runtime().turn("abacus"):
        pass
    with pytest.raises(InputError, match=r"no device 'abacus' here\. Choose one of"):
        Runtime().make_ready(small_family, BASELINE, "abacus", Progress())


def test_an_engine_that_dies_is_reported_with_its_cause_and_started_afresh(
    small_family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = Runtime()
    with runtime.turn("cpu") as turn:
        prepared = turn.prepare(small_family, Query(QUESTION, TEXT))
        engine = runtime.get(small_family, BASELINE, "cpu").engine

        def die(_windows: Windows) -> SpanLogits:
            raise MemoryError("no memory left on the device")

        monkeypatch.setattr(engine, "forward", die)
        with pytest.raises(
            BackendFailed, match=r"small/baseline failed while answering.*no memory left.*ask again"
        ) as it:
            turn.answer(small_family, BASELINE, prepared)
        assert isinstance(it.value.__cause__, MemoryError)
        assert runtime.loaded("cpu") == []
        assert turn.answer(small_family, BASELINE, prepared).backend == "small/baseline"


def test_logits_that_are_no_numbers_are_a_failure_and_no_answer(
    small_family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = Runtime()
    with runtime.turn("cpu") as turn:
        prepared = turn.prepare(small_family, Query(QUESTION, TEXT))
        nothing = np.full(prepared.windows.input_ids.shape, np.nan, dtype=np.float32)
        engine = runtime.get(small_family, BASELINE, "cpu").engine
        monkeypatch.setattr(engine, "forward", lambda _windows: SpanLogits(nothing, nothing))
        with pytest.raises(BackendFailed, match="not finite"):
            turn.answer(small_family, BASELINE, prepared)


def test_engines_run_on_one_thread_whoever_asks(small_family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Runtime()
    with runtime.turn("cpu"):
        engine = runtime.get(small_family, BASELINE, "cpu").engine
    real, seen = engine.forward, set()

    def forward(windows: Windows) -> SpanLogits:
        seen.add(threading.get_ident())
        return real(windows)

    monkeypatch.setattr(engine, "forward", forward)

    def visit() -> None:
        with runtime.turn("cpu") as turn:
            turn.answer(small_family, BASELINE, turn.prepare(small_family, Query(QUESTION, TEXT)))

    visitors = [threading.Thread(target=visit) for _ in range(3)]
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join()
    visit()
    assert len(seen) == 1
    assert threading.get_ident() not in seen
