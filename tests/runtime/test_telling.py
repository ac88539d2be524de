"""A long reading says how far it is, not too often; a short one is silent; and either can be stopped."""

from __future__ import annotations

from itertools import pairwise

import pytest

from qa_backends.progress import Cancelled, Progress
from qa_backends.runtime.telling import Telling, roughly


def told(pace_s: float, batches: int, of: int) -> list[tuple[float, str]]:
    """What is said, and when, in a reading of ``of`` windows whose batches take ``pace_s`` each."""
    said: list[tuple[float, str]] = []
    now = 0.0
    telling = Telling(Progress(lambda sentence: said.append((now, sentence))), "Pruned is reading", lambda: now)
    for batch in range(1, batches):
        now += pace_s
        telling(batch * of // batches, of, now)
    return said


def test_it_says_windows_done_and_the_time_left_as_that_falls() -> None:
    assert told(2.0, 10, 160)[1:8:3] == [
        (4.0, "Pruned is reading window 32 of 160, about 16 s left"),
        (10.0, "Pruned is reading window 80 of 160, about 10 s left"),
        (16.0, "Pruned is reading window 128 of 160, about 4 s left"),
    ]


def test_quick_batches_are_not_told_one_by_one() -> None:
    times = [when for when, _ in told(0.01, 200, 3200)]
    assert len(times) >= 5
    assert min(later - earlier for earlier, later in pairwise(times)) >= 0.3


@pytest.mark.parametrize(("pace_s", "speaks"), [(0.09, False), (0.11, True)])
def test_only_what_takes_longer_than_a_second_is_told(pace_s: float, speaks: bool) -> None:
    assert bool(told(pace_s, 10, 160)) == speaks


@pytest.mark.parametrize("spent_s", [0.001, 5.0], ids=["in a short one", "in a long one"])
def test_it_stops_when_told_to(spent_s: float) -> None:
    with pytest.raises(Cancelled):
        Telling(Progress(stopped=lambda: True), "Pruned is reading")(1, 2, spent_s)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.4, "less than 1 s"), (1.2, "about 1 s"), (59.6, "about 60 s"), (99, "about 99 s"), (150, "about 2 min")],
)
def test_time_left_is_said_roughly(seconds: float, said: str) -> None:
    assert roughly(seconds) == said
