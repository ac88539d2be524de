"""What ends a visitor's own work in a tab, whoever else works there, and what lets it be started again."""

from __future__ import annotations

import threading
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import gradio as gr

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from qa_backends.web.shared.widgets import Updates

DRAWN_WITHIN_S = 0.5
"""Who is to end finds out before the next drawing; what is being drawn is handed over by then."""
UNFORESEEN = (
    "This could not be started, or failed in a way that the app did not expect. If no message on this page says why, "
    "the app's log does. Start it again, or choose less of it."
)
"""What is said of an error that nobody translated, of which Gradio's page says no more than that there was one."""


LEFT_S = 10.0
"""For so long work that was ended is remembered as that: Gradio's page calls what it cancels failed, a moment later."""


class Stops:
    """An event for each visitor's work under way. Gradio's own way to cancel misses an event that is just handing over
    a drawing; this one is looked at by the work itself."""

    def __init__(self) -> None:
        self._events: dict[str, threading.Event] = {}
        self._left: dict[str, list[float]] = {}
        self._changed = threading.Condition()

    def begin(self, request: gr.Request) -> threading.Event:
        """What ends the work that begins now; it ends the visitor's work before."""
        with self._changed:
            self.end(request)
            stop = self._events[request.session_hash or ""] = threading.Event()
            self._changed.notify_all()
        return stop

    @contextmanager
    def during(self, request: gr.Request) -> Iterator[threading.Event]:
        """What ends the visitor's work, which is that within: see ``begin`` and ``over``."""
        stop = self.begin(request)
        try:
            yield stop
        finally:
            self.over(request, stop)

    def end(self, request: gr.Request) -> None:
        """Tells the visitor's work to end, if there is any."""
        if stop := self._events.get(request.session_hash or ""):
            stop.set()

    def under_way(self, request: gr.Request) -> bool:
        """Whether any of the visitor's work is."""
        return (request.session_hash or "") in self._events

    def end_and_wait(self, request: gr.Request) -> bool:
        """Tells it to end, and waits until it draws nothing more: until it is over, or too long for one drawing.

        False where the visitor has begun anew meanwhile: the page is the newer work's then.
        """
        visitor = request.session_hash or ""
        with self._changed:
            if (stop := self._events.get(visitor)) is None:
                return True
            stop.set()
            self._changed.wait_for(lambda: self._events.get(visitor) is not stop, DRAWN_WITHIN_S)
            return self._events.get(visitor) in (None, stop)

    def over(self, request: gr.Request, stop: threading.Event) -> None:
        """Forgets work that is over, unless the visitor has begun anew meanwhile; that it was ended is remembered for a
        moment."""
        now, visitor = time.monotonic(), request.session_hash or ""
        with self._changed:
            left = {each: [at for at in times if now - at < LEFT_S] for each, times in self._left.items()}
            self._left = {each: times for each, times in left.items() if times}
            if stop.is_set():
                self._left.setdefault(visitor, []).append(now)
            if self._events.get(visitor) is stop:
                del self._events[visitor]
            self._changed.notify_all()

    def was_left(self, request: gr.Request) -> bool:
        """Whether what the page takes for a failure is work that the visitor has just ended, or replaced by what is
        under way; each piece of work that was ended is asked about once."""
        visitor = request.session_hash or ""
        with self._changed:
            left = self._left.get(visitor, [])
            recent = bool(left) and time.monotonic() - left.pop(0) < LEFT_S
            return recent or visitor in self._events

    def until_stopped(
        self, request: gr.Request, work: Callable[[threading.Event], Generator[Updates]]
    ) -> Iterator[Updates]:
        """What the visitor's work draws, as long as nothing ends it; what it would draw then stands nowhere.

        The last word of work that was stopped leaves all as it is: Gradio repeats the last one when an event is over,
        and would draw over what a newer question, or Cancel, has drawn since.
        """
        drawing: Updates = ()
        with self.during(request) as stop:
            try:
                with closing(work(stop)) as drawings:
                    for drawing in drawings:
                        if stop.is_set():
                            break
                        yield drawing
            except GeneratorExit:  # cancelled, or its page was closed
                stop.set()
                raise
        if stop.is_set():
            yield tuple(gr.skip() for _ in drawing)
