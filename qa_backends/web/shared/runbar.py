"""Start, a bar of progress and Stop: how a visitor's measurement begins, goes on and ends, in each tab that has one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gradio as gr

from qa_backends.web.shared.html import idle, problem, running
from qa_backends.web.shared.stops import UNFORESEEN, Stops
from qa_backends.web.shared.widgets import PRIVATE

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Sequence

    from qa_backends.web.shared.widgets import Changes

AT_ONCE = 16
"""Measurements of one tab that are under way together; they take turns at the machine."""


class RunBar:
    """Draws the bar, and Stop beside it; ``start`` is the button that is there already."""

    def __init__(self, start: gr.Button, ready: str, name: str) -> None:
        """``ready`` is said until something runs; ``name`` begins the elements' ids."""
        self.stops = Stops()
        self._start, self._name = start, name
        with gr.Row(elem_classes="qa-running"):
            self.progress = gr.HTML(idle(ready), elem_id=f"{name}-progress")
            self._stop = gr.Button("Stop", elem_id=f"{name}-stop", scale=0, min_width=110, visible=False)

    def wire(self, work: Callable[..., Iterator[Changes]], inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Start begins the work, and Stop ends the visitor's own. After an error that nobody translated it can be
        started again: Gradio's page would say no more than that there was one."""
        begun = self._start.click(
            work, list(inputs), [self.progress, self._start, self._stop, *outputs], trigger_mode="once",
            concurrency_id=self._name, concurrency_limit=AT_ONCE, **PRIVATE,
        )  # fmt: skip
        begun.failure(
            lambda: (problem(UNFORESEEN), gr.Button(interactive=True), gr.Button(visible=False)),
            None, [self.progress, self._start, self._stop], queue=False, **PRIVATE,
        )  # fmt: skip
        self._stop.click(self.stop, None, self._stop, queue=False, **PRIVATE)

    def stop(self, request: gr.Request) -> Any:
        """Ends the visitor's own work, at its next run or batch."""
        self.stops.end(request)
        return gr.Button(interactive=False)

    def starting(self) -> Changes:
        """Work has begun, and says nothing of itself yet."""
        return {
            self.progress: running(0, 0, "Starting …"),
            self._start: gr.Button(interactive=False),
            self._stop: gr.Button(visible=True, interactive=False),
        }

    def going_on(self, bar: str, status: str, stop: threading.Event) -> Changes:
        """It is as far as the bar says; by its status, empty once it is over, there may be something to stop."""
        return {self.progress: bar, self._stop: gr.Button(interactive=bool(status) and not stop.is_set())}

    def ended(self) -> Changes:
        """It is over: another may be started."""
        return {self._start: gr.Button(interactive=True), self._stop: gr.Button(visible=False)}

    def failed(self, error: Exception) -> Changes:
        """It is over, for this reason."""
        return {self.progress: problem(str(error)), **self.ended()}
