"""Find the fastest: every backend checked and raced on this machine, and one of them advised."""

from __future__ import annotations

import threading
from collections.abc import Iterator  # at run time too: Gradio reads the signatures of what it calls
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import gradio as gr

from qa_backends import catalog
from qa_backends.errors import InputError, QAError
from qa_backends.limits import devices
from qa_backends.measure.benchmark.plan import LENGTHS
from qa_backends.measure.recommend.recommend import recommend
from qa_backends.measure.recommend.search import Search
from qa_backends.measure.recommend.wish import Wish
from qa_backends.web.benchmark import found
from qa_backends.web.shared.choices import place_of
from qa_backends.web.shared.runbar import RunBar
from qa_backends.web.shared.widgets import CODE_BOX, HIDDEN, PRIVATE, Changes
from qa_backends.web.shared.worker import Worker

if TYPE_CHECKING:
    from qa_backends.runtime import Runtime

MOST_SECONDS_HERE = 120
DEFAULTS = replace(Wish(family=""), seconds=60.0)
READY = (
    "Every tested backend whose known F1 is good enough is built, its answers are checked, and they race on this "
    "machine. Slow and wrong ones go early."
)


class Fastest:
    """The button with its wishes, and what it finds. Family and devices are the tab's."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._draw()
        self.stops = self._bar.stops

    def _draw(self) -> None:
        first = _title(catalog.default_family(), list(devices()[:1]))
        with gr.Accordion(first, open=False, elem_id="qa-fastest") as self._whole:
            with gr.Row(elem_classes="qa-start-bar"):
                with gr.Column(scale=8, min_width=280):
                    self._draw_wishes()
                start = gr.Button("Find the fastest", elem_id="qa-fastest-start", scale=0, min_width=190)
            self._bar = RunBar(start, READY, "qa-fastest")
            self._verdict = gr.HTML("", elem_id="qa-fastest-verdict", visible=HIDDEN)
            self._chart = gr.Plot(show_label=False, visible=HIDDEN, elem_id="qa-fastest-chart")
            self._table = gr.HTML("", elem_id="qa-fastest-table", visible=HIDDEN)
            self._command = gr.Code("", label="Find it again", visible=HIDDEN, elem_id="qa-fastest-command", **CODE_BOX)

    def _draw_wishes(self) -> None:
        with gr.Row(elem_classes="qa-even"):
            self._loss = gr.Number(
                DEFAULTS.max_f1_loss, label="F1 that may be lost", min_width=130, elem_id="qa-fastest-loss"
            )
            self._memory = gr.Number(0, label="MB loaded (0: any)", min_width=130)
            self._batch = gr.Number(DEFAULTS.batch, label="Questions at once", precision=0, min_width=130)
            self._seconds = gr.Number(
                DEFAULTS.seconds, label="Seconds of the race", min_width=130, elem_id="qa-fastest-seconds"
            )
        self._lengths = gr.CheckboxGroup(
            list(map(str, LENGTHS)), value=list(map(str, DEFAULTS.lengths)), label="Lengths of text, in tokens",
            elem_id="qa-fastest-lengths",
        )  # fmt: skip

    def wire(self, family: gr.Radio, chosen: gr.CheckboxGroup) -> None:
        """Searches among the backends of the family, on the first of the chosen devices."""
        wishes: list[Any] = [self._loss, self._memory, self._batch, self._seconds, self._lengths]
        self._bar.wire(self.start, [family, chosen, *wishes], [self._verdict, self._chart, self._table, self._command])
        gr.on([family.change, chosen.change], lambda *values: gr.Accordion(label=_title(*values)), [family, chosen],
              self._whole, queue=False, **PRIVATE)  # fmt: skip

    def start(
        self, family: str, on: list[str], loss: float, memory: float | None, batch: float, seconds: float,
        lengths: list[str], request: gr.Request,
    ) -> Iterator[Changes]:  # fmt: skip
        """Searches and draws as it goes."""
        wish = _wish(family or catalog.default_family(), (on or ["cpu"])[0], loss, memory, batch, seconds, lengths)
        try:
            with self._bar.stops.during(request) as stop:
                yield from self._search(wish, stop)
        except QAError as error:
            yield self._bar.failed(error)
            return
        yield {self._command: gr.Code(wish.command(), visible=True), **self._bar.ended()}

    def _search(self, wish: Wish, stop: threading.Event) -> Iterator[Changes]:
        if wish.seconds > MOST_SECONDS_HERE:
            raise InputError(
                f"On this page a race takes at most {MOST_SECONDS_HERE} seconds, so that others get their turn. The "
                "command line takes more."
            )
        wish.check()  # before what was found earlier is hidden
        yield self._bar.starting() | {
            self._verdict: gr.HTML(visible=HIDDEN), self._chart: gr.Plot(visible=HIDDEN),
            self._table: gr.HTML(visible=HIDDEN), self._command: gr.Code(visible=HIDDEN),
        }  # fmt: skip
        raced = 0
        for search in Worker[Search](
            lambda put: recommend(self._runtime, wish, emit=lambda each: put(each.copy()), stopped=stop.is_set),
            timed=lambda each: each.timing,
        ):
            grown = self._grown(search) if not search.status or len(search.raced) > raced else {}
            raced = len(search.raced)
            yield self._bar.going_on(found.progress(search), search.status, stop) | grown

    def _grown(self, search: Search) -> Changes:
        """What shows the candidates: when they were first timed, and in the end."""
        figure, said = found.chart(search), found.verdict(search)
        return {
            self._verdict: gr.HTML(said, visible=True) if said else gr.skip(),
            self._chart: gr.Plot(figure, visible=True) if figure else gr.skip(),
            self._table: gr.HTML(found.table(search), visible=True),
        }


def _title(family: str, chosen: list[str]) -> str:
    """Which backends are searched, on which device."""
    return f"Which one should I use? Find the fastest on this machine · {place_of(family, (chosen or ['cpu'])[0])}"


def _wish(
    family: str, device: str, loss: float, memory: float | None, batch: float, seconds: float, lengths: list[str]
) -> Wish:  # fmt: skip
    """What the choices ask for. What nothing could meet is found by the wish's own check."""
    return Wish(
        family, device, float(loss or 0), tuple(sorted(map(int, lengths))), int(batch or 0), memory or None,
        float(seconds or 0),
    )  # fmt: skip
