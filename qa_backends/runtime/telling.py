"""How far a long reading is, said between two forward calls."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from qa_backends.progress import Progress

TELL_FROM_S = 1.0
"""A reading that will be over sooner tells nothing."""
TELL_EVERY_S = 0.3
"""Least time between two sentences."""


class Telling:
    """What ``Reader.read`` follows: says windows done and time left, as in "Pruned is reading window 48 of 167, about
    6 s left"."""

    def __init__(self, progress: Progress, doing: str, clock: Callable[[], float] = time.perf_counter) -> None:
        """``doing`` begins the sentence, as "Pruned is reading" does."""
        self._progress = progress
        self._doing = doing
        self._clock = clock
        self._quiet_until = 0.0

    def __call__(self, done: int, of: int, spent_s: float) -> None:
        """Raises Cancelled once the job should stop, whether there is something to say or not."""
        left_s = spent_s / done * (of - done)
        if spent_s + left_s < TELL_FROM_S or self._clock() < self._quiet_until:
            self._progress.check()
            return
        self._progress.say(f"{self._doing} window {done} of {of}, {roughly(left_s)} left")
        self._quiet_until = self._clock() + TELL_EVERY_S


def roughly(seconds: float) -> str:
    """As in "about 6 s", "about 3 min" or "less than 1 s"."""
    if seconds < 1:
        return "less than 1 s"
    return f"about {seconds:.0f} s" if seconds < 100 else f"about {seconds / 60:.0f} min"
