"""Measuring on a thread of its own: a slow or closed browser neither delays a measurement nor keeps a device."""

from __future__ import annotations

import queue
import threading
import time
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

T = TypeVar("T")
REDRAW_S = 0.75
"""Least time between two states that are passed on: drawing costs the cores that are being measured."""


class _End:
    """The last thing a worker sends: what stopped it, if anything did."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class _AbandonedError(Exception):
    """Nobody listens any more; stops the work at its next state."""


class Worker(Generic[T]):
    """Runs ``work(put)`` on a thread; iterating gives the newest of what it puts.

    When iterating ends early the work is stopped at the next state it puts, so that an abandoned question leaves the
    queue and gives its turn back.
    """

    def __init__(self, work: Callable[[Callable[[T], None]], object]) -> None:
        self._states: queue.Queue[T | _End] = queue.Queue()
        self._work = work
        self._abandoned = threading.Event()

    def __iter__(self) -> Generator[T, None, None]:
        """States as they come, older ones skipped where several are waiting; the last one always comes.

        Raises whatever the work raised.
        """
        threading.Thread(target=self._run, daemon=True).start()
        try:
            while True:
                newest = self._states.get()
                while not isinstance(newest, _End) and not self._states.empty():
                    following = self._states.get()
                    if isinstance(following, _End):
                        yield newest
                    newest = following
                if isinstance(newest, _End):
                    if newest.error is not None:
                        raise newest.error
                    return
                yield newest
                time.sleep(REDRAW_S)
        finally:
            self._abandoned.set()

    def _run(self) -> None:
        try:
            self._work(self._put)
        except BaseException as error:  # handed over whole: the listener raises it in its own thread
            self._states.put(_End(error))
        else:
            self._states.put(_End(None))

    def _put(self, state: T) -> None:
        if self._abandoned.is_set():
            raise _AbandonedError
        self._states.put(state)
