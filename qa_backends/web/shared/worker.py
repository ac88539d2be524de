"""Measuring on a thread of its own, and drawing in its pauses.

A slow or closed browser neither delays a measurement nor keeps a device, and what is drawn is drawn while nothing is
measured: the worker holds still at its next state until the page has its drawing. A state that comes too soon after a
drawing is drawn later, while the worker loads or builds. Behind some, timed runs follow: the first of these is drawn
before they begin, however soon it comes, and the others wait for the next state.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Generic, TypeVar

from qa_backends.progress import Cancelled

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

T = TypeVar("T")
REDRAW_S = 0.75
"""Least time between two drawings."""
SILENCE_S = 0.5
"""A state is drawn although no other follows it when the worker was silent for so long: it loads or builds."""
DRAWN_WITHIN_S = 2.0
"""The worker holds still for at most so long: the drawing of a visitor who has gone never ends."""


class Worker(Generic[T]):
    """Runs ``work(put)`` on a thread; iterating gives the newest of what it puts.

    When iterating ends early the work is cancelled at the next state it puts, so that an abandoned question leaves the
    queue and gives its turn back. ``timed`` tells of a state whether what follows it is timed.
    """

    def __init__(
        self, work: Callable[[Callable[[T], None]], object], timed: Callable[[T], bool] = lambda _state: False
    ) -> None:
        self._work, self._timed = work, timed
        self._changed = threading.Condition()
        self._newest: list[T] = []  # at most one, not yet drawn
        self._put_at = 0.0
        self._draw_from = 0.0
        self._drawing = self._holding = self._gave_up = self._timing = False
        self._ended = self._abandoned = False
        self._error: BaseException | None = None

    def __iter__(self) -> Generator[T, None, None]:
        """States as they come, older ones left out where several came since; the last one always comes.

        Raises whatever the work raised.
        """
        threading.Thread(target=self._run, daemon=True).start()
        try:
            while self._wait_for_state():
                yield self._take()
                self._drawn()
        finally:
            with self._changed:
                self._abandoned = True
                self._changed.notify_all()
        if self._error is not None:
            raise self._error

    def _wait_for_state(self) -> bool:
        """Waits until a state may be drawn; false when there will be none any more."""
        with self._changed:
            while not self._may_draw():
                if self._ended and not self._newest:
                    return False
                self._changed.wait(0.05 if self._newest else None)
            return True

    def _may_draw(self) -> bool:
        now = time.monotonic()
        if not self._newest or (now < self._draw_from and not self._ended):
            return False
        if self._holding or self._ended:
            return True
        return now - self._put_at > SILENCE_S and not self._timing

    def _take(self) -> T:
        with self._changed:
            self._drawing = True
            return self._newest.pop()

    def _drawn(self) -> None:
        with self._changed:
            self._drawing = self._gave_up = False
            self._draw_from = time.monotonic() + REDRAW_S
            self._changed.notify_all()

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            self._work(self._put)
        except BaseException as caught:  # handed over whole: the listener raises it in its own thread
            error = caught
        with self._changed:
            self._error, self._ended = error, True
            self._changed.notify_all()

    def _put(self, state: T) -> None:
        """Hands the state over, and holds still while it is drawn if it is time to draw one.

        Raises:
            Cancelled: nobody listens any more.
        """
        with self._changed:
            self._newest, self._put_at = [state], time.monotonic()
            before, self._timing = self._timing, self._timed(state)
            if self._timing and not before:
                self._draw_from = self._put_at
            self._changed.notify_all()
            if not self._gave_up and self._put_at >= self._draw_from:
                self._holding = True
                drawn = self._changed.wait_for(self._drawn_or_abandoned, DRAWN_WITHIN_S)
                self._holding, self._gave_up = False, not drawn
            if self._abandoned:
                raise Cancelled

    def _drawn_or_abandoned(self) -> bool:
        return self._abandoned or not (self._newest or self._drawing)
