"""What ends a visitor's own work in a tab, whoever else works there."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import gradio as gr

DRAWN_WITHIN_S = 0.5
"""Who is to end finds out before the next drawing; what is being drawn is handed over by then."""


class Stops:
    """An event for each visitor's work under way. Gradio's own way to cancel misses an event that is just handing over
    a drawing; this one is looked at by the work itself."""

    def __init__(self) -> None:
        self._events: dict[str, threading.Event] = {}
        self._changed = threading.Condition()

    def begin(self, request: gr.Request) -> threading.Event:
        """What ends the work that begins now; it ends the visitor's work before."""
        self.end(request)
        stop = self._events[request.session_hash or ""] = threading.Event()
        return stop

    def end(self, request: gr.Request) -> None:
        """Tells the visitor's work to end, if there is any."""
        if stop := self._events.get(request.session_hash or ""):
            stop.set()

    def end_and_wait(self, request: gr.Request) -> None:
        """Tells it to end, and waits until it draws nothing more: until it is over, or too long for one drawing."""
        self.end(request)
        with self._changed:
            self._changed.wait_for(lambda: (request.session_hash or "") not in self._events, DRAWN_WITHIN_S)

    def over(self, request: gr.Request, stop: threading.Event) -> None:
        """Forgets work that is over, unless the visitor has begun anew meanwhile."""
        with self._changed:
            if self._events.get(request.session_hash or "") is stop:
                del self._events[request.session_hash or ""]
            self._changed.notify_all()
