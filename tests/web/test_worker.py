"""The worker behind the tabs: what it draws, when it holds still, and that it stops when nobody listens."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from qa_backends.progress import Cancelled
from qa_backends.web.shared import worker as module
from qa_backends.web.shared.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable

    Put = Callable[[int], None]


def test_abandoned_work_is_cancelled_at_its_next_state() -> None:
    stopped = threading.Event()

    def work(put: Put) -> None:
        try:
            for number in range(1000):
                put(number)
                time.sleep(0.01)
        except Cancelled:
            stopped.set()
            raise

    states = iter(Worker[int](work))
    next(states)
    states.close()
    assert stopped.wait(5)


def test_work_that_fails_fails_for_its_listener() -> None:
    def work(put: Put) -> None:
        put(1)
        raise KeyError("lost")

    seen: list[int] = []
    with pytest.raises(KeyError, match="lost"):
        seen.extend(Worker[int](work))
    assert seen == [1]


def test_the_last_state_always_comes_and_older_ones_are_left_out() -> None:
    def work(put: Put) -> None:
        for number in range(200):
            put(number)
            time.sleep(0.01)

    seen = list(Worker[int](work))
    assert seen[0] == 0 and seen[-1] == 199
    assert seen == sorted(seen) and len(seen) < 20


def test_nothing_is_measured_while_a_state_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REDRAW_S", 0.05)
    ran_at: list[float] = []

    def work(put: Put) -> None:
        for number in range(40):
            put(number)
            ran_at.append(time.monotonic())
            time.sleep(0.01)

    drawings: list[tuple[float, float]] = []
    for _ in Worker[int](work):
        began = time.monotonic()
        time.sleep(0.1)
        drawings.append((began, time.monotonic()))
    assert len(drawings) > 2
    during = [at for at in ran_at for began, ended in drawings[:-1] if began < at < ended]
    assert during == []


def test_no_round_is_timed_while_the_page_draws_however_long_rounds_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds shorter and longer than the pause between two drawings, behind states that come too soon to be drawn."""
    monkeypatch.setattr(module, "REDRAW_S", 0.06)
    monkeypatch.setattr(module, "SILENCE_S", 0.02)
    rounds: list[tuple[float, float]] = []

    def work(put: Put) -> None:
        put(-1)
        time.sleep(0.1)
        for number, lasts in enumerate((0.05, 0.03, 0.055, 0.1, 0.045, 0.058, 0.01, 0.05, 0.07, 0.04) * 2):
            put(number)
            began = time.monotonic()
            time.sleep(lasts)
            rounds.append((began, time.monotonic()))

    drawings: list[tuple[float, float]] = []
    for _ in Worker[int](work, timed=lambda number: number >= 0):
        began = time.monotonic()
        time.sleep(0.02)
        drawings.append((began, time.monotonic()))
    assert len(drawings) > 5
    assert [each for each in rounds for began, ended in drawings if began < each[1] and each[0] < ended] == []


def test_what_is_said_before_something_is_timed_is_drawn_however_soon_it_comes() -> None:
    began: list[float] = []

    def work(put: Put) -> None:
        put(-1)
        put(1)
        began.append(time.monotonic())
        time.sleep(1.0)
        put(2)

    seen = [(each, time.monotonic()) for each in Worker[int](work, timed=lambda number: number >= 0)]
    assert [each for each, _ in seen] == [-1, 1, 2] and seen[1][1] <= began[0]


def test_a_state_is_drawn_although_none_follows_it() -> None:
    loaded = threading.Event()

    def work(put: Put) -> None:
        put(1)
        put(2)
        assert loaded.wait(10)

    states = iter(Worker[int](work))
    assert next(states) == 1
    assert next(states) == 2, "what is being loaded is said while it is loading"
    loaded.set()
    assert list(states) == []


def test_a_visitor_who_never_looks_again_does_not_hold_up_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DRAWN_WITHIN_S", 0.2)
    done = threading.Event()

    def work(put: Put) -> None:
        for number in range(100):
            put(number)
        done.set()

    states = iter(Worker[int](work))
    next(states)  # and then nothing: the page was closed, the connection is not noticed yet
    assert done.wait(3)
    states.close()
