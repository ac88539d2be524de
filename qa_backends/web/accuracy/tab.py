"""The accuracy tab: exact match and F1 of each backend, and the questions on which two of them differ."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence  # at run time too: Gradio reads signatures of what it calls
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gradio as gr

from qa_backends import catalog
from qa_backends.errors import InputError, QAError
from qa_backends.limits import devices
from qa_backends.measure.quality.datasets import OWN, data_set
from qa_backends.measure.quality.evaluation import Evaluated, Evaluation, EvaluationTask, evaluate_all
from qa_backends.measure.quality.export import commands, predictions, whole_evaluation
from qa_backends.measure.quality.scoring import shared_id
from qa_backends.measure.results.files import as_csv, as_text
from qa_backends.measure.results.records import QualityRecord, QualityTable
from qa_backends.progress import Cancelled, Progress
from qa_backends.web.accuracy import html
from qa_backends.web.accuracy.shown import DATA, OWN_FILE, Shown, said_of, shipped, shipped_commands
from qa_backends.web.shared.choices import (
    backend_choices,
    device_choices,
    family_choices,
    filled_in,
    offer,
    preselected,
)
from qa_backends.web.shared.downloads import Downloads
from qa_backends.web.shared.html import finished, idle, running
from qa_backends.web.shared.runbar import RunBar
from qa_backends.web.shared.widgets import CODE_BOX, FOLLOWED, HIDDEN, PRIVATE, Changes, Updates
from qa_backends.web.shared.worker import Worker

if TYPE_CHECKING:
    from qa_backends.runtime import Runtime
    from qa_backends.web.ask.tab import AskTab

TO_TOP = "(...values) => { window.scrollTo(0, 0); return values; }"
CLICKED = """element.addEventListener('click', event => {
  const button = event.target.closest('button[data-number]');
  if (button) trigger('click', {number: Number(button.dataset.number)});
});"""
SHIPS = "Ships with the app, until you run your own."
YOURS = "Your measurement."
SHARED = (
    "Some of these questions share an id, and SQuAD's script knows answers by it: there are no predictions to download."
)
DONE, UNIT = "Done.", "answers"
WHOLE, FLAT, PACKED = "evaluation.json", "evaluation.csv", "predictions.zip"
READY = "Start measures the chosen backends on the chosen questions."
UNTIL_THEN = " Until then the table shows what ships."


class AccuracyTab:
    """Widgets of the tab, and the functions behind them."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._downloads = Downloads()
        self._draw()
        self.stops = [self._bar.stops]
        self._wire()

    def _draw(self) -> None:
        records = shipped()
        self._measured = gr.State(None)
        with gr.Row(elem_classes="qa-start-bar"):
            with gr.Column(scale=8, min_width=280):
                self._draw_choices()
            start = gr.Button("Start", variant="primary", elem_id="qa-accuracy-start", scale=0, min_width=150)
        self._bar = RunBar(start, READY + (UNTIL_THEN if records else ""), "qa-accuracy")
        self._caption = gr.HTML(html.caption(records, SHIPS), elem_id="qa-accuracy-caption")
        self._table = gr.HTML(html.table(records), elem_id="qa-accuracy-table")
        self._draw_downloads(records)
        with gr.Row():
            self._one = gr.Dropdown(
                [], label="Where two of them differ: one backend", elem_id="qa-accuracy-one", min_width=260,
                visible=HIDDEN,
            )  # fmt: skip
            self._other = gr.Dropdown(
                [], label="and another", min_width=260, visible=HIDDEN
            )  # fmt: skip
        self._differing = gr.HTML("", js_on_load=CLICKED, elem_id="qa-differing")
        self._command = gr.Code(
            shipped_commands(records), label="Repeat exactly this", elem_id="qa-accuracy-command", **CODE_BOX
        )
        with gr.Accordion("How to read this", open=False):
            gr.HTML(html.how_to_read())

    def _draw_choices(self) -> None:
        """One line that says what is chosen; unfolded, what there is to choose from."""
        family, there = catalog.default_family(), devices()
        ticked = preselected(family, there[0])
        line = said_of(ticked, family, there[0], OWN, 0)
        with gr.Accordion(line, open=False, elem_id="qa-accuracy-options") as self._options:
            self._backends = gr.CheckboxGroup(
                backend_choices(family, there[0]), value=ticked, label="Backends", elem_id="qa-accuracy-backends",
                elem_classes="qa-backends",
            )  # fmt: skip
            with gr.Row(elem_classes="qa-even"):
                with gr.Column(min_width=260):
                    self._data = gr.Radio(DATA, value=OWN, label="Questions", elem_id="qa-accuracy-data")
                    self._file = gr.File(
                        label="A SQuAD-format file (.json)", file_types=[".json"], visible=False,
                        elem_id="qa-accuracy-file",
                    )  # fmt: skip
                with gr.Column(min_width=260):
                    self.family = gr.Radio(
                        family_choices(), value=family, label="Family", elem_id="qa-accuracy-family",
                        elem_classes="qa-backends",
                    )  # fmt: skip
                    self._device = gr.Radio(device_choices(), value=there[0], label="Device", visible=len(there) > 1)
                    self._limit = gr.Number(
                        0, label="Questions at most, drawn at random (0 for all)", precision=0,
                        elem_id="qa-accuracy-limit",
                    )  # fmt: skip

    def _draw_downloads(self, records: Sequence[QualityRecord]) -> None:
        whole, flat = self._downloads.write({WHOLE: as_text(QualityTable(tuple(records))), FLAT: as_csv(records)})
        with gr.Row():
            self._json = gr.DownloadButton("Download JSON", whole, elem_id="qa-accuracy-json", size="sm")
            self._csv = gr.DownloadButton("Download CSV", flat, elem_id="qa-accuracy-csv", size="sm")
            self._predictions = gr.DownloadButton(
                "Download predictions, as SQuAD's script reads them", elem_id="qa-accuracy-predictions", size="sm",
                visible=False,
            )  # fmt: skip

    def _wire(self) -> None:
        self._data.change(lambda data: gr.File(visible=data == OWN_FILE), self._data, self._file, **PRIVATE)
        for choice in (self.family, self._device):
            choice.input(offer, [self.family, self._device, self._backends], self._backends, queue=False, **FOLLOWED)
        chosen = [self._backends, self.family, self._device, self._data, self._file, self._limit]
        said_by: list[Any] = [self._backends, self.family, self._device, self._data, self._limit]
        gr.on([each.change for each in said_by], lambda *values: gr.Accordion(label=said_of(*values)), said_by,
              self._options, queue=False, **PRIVATE)  # fmt: skip
        outputs = [self._measured, self._caption, self._table, self._json, self._csv, self._predictions, self._one,
                   self._other, self._differing, self._command]  # fmt: skip
        self._bar.wire(self.start, chosen, outputs)
        for compared in (self._one, self._other):
            compared.input(self.show, [self._measured, self._one, self._other], self._differing, **FOLLOWED)

    def wire_ask(self, tab: AskTab, tabs: gr.Tabs) -> None:
        """A click on a differing question asks it in the first tab, of the same two backends."""
        filling = tab.asks(
            [self._differing.click],
            self.ask_it,
            [self._measured, self._one, self._other],
            [tabs, *tab.form, tab.filled],
            js=TO_TOP,
        )
        tab.ask_once_shown(filling)

    def start(
        self, backends: list[str], family: str, device: str, data: str, file: str | None, limit: float,
        request: gr.Request,
    ) -> Iterator[Changes]:  # fmt: skip
        """Evaluates each backend and shows its line when it is done."""
        state: Evaluation | None = None
        shown = 0
        try:
            with self._bar.stops.during(request) as stop:
                yield self._bar.starting()
                for state in Worker[Evaluation](
                    lambda put: self._evaluate(put, backends, family, device, data, file, limit, stop)
                ):
                    bar = running(state.done, state.of, state.status or DONE, unit=UNIT, left_s=state.left_s)
                    grown = self._grown(state.results, data, file) if len(state.results) > shown else {}
                    shown = len(state.results)
                    yield self._bar.going_on(bar, state.status, stop) | grown
        except QAError as error:
            yield self._bar.failed(error)
            return
        if state is not None:
            yield self._finished(state, stopped=stop.is_set()) | self._bar.ended()

    def _grown(self, results: Sequence[Evaluated], data: str, file: str | None) -> Changes:
        """Everything that shows the finished backends, and what can be taken away; earlier differences go."""
        records = [each.record for each in results]
        by_id = shared_id(each.question for each in results[0].scored) is None
        whole, flat, *packed = self._downloads.write(
            {WHOLE: as_text(whole_evaluation(results)), FLAT: as_csv(records)}
            | ({PACKED: predictions(results)} if by_id else {})
        )
        named = Path(file).name if data == OWN_FILE and file else data
        return {
            self._caption: html.caption(records, YOURS, "" if by_id else SHARED),
            self._table: html.table(records),
            # As updates: of a bare file Gradio's page forgets the address when something else is yielded after it.
            self._json: gr.DownloadButton("Download JSON, every answer included", value=whole),
            self._csv: gr.DownloadButton(value=flat),
            self._predictions: gr.DownloadButton(value=packed[0] if packed else None, visible=by_id),
            self._command: commands(records, named, by_id=by_id),
            self._one: gr.Dropdown(visible=HIDDEN),
            self._other: gr.Dropdown(visible=HIDDEN),
            self._differing: "",  # all three are of the evaluation before
        }

    def _evaluate(
        self, put: Callable[[Evaluation], None], backends: list[str], family: str, device: str, data: str,
        file: str | None, limit: float, stop: threading.Event,
    ) -> None:  # fmt: skip
        if not backends:
            raise InputError("No backend is chosen. Tick at least one.")
        if data == OWN_FILE and file is None:
            raise InputError("There is no file. Choose one in SQuAD format, or other questions.")
        chosen = [catalog.resolve(name, family)[1] for name in backends]
        progress = Progress(lambda status: put(Evaluation(of=0, status=status)), stop.is_set)
        try:
            progress.say("Reading the questions …")
            questions = data_set(str(file) if data == OWN_FILE else data, progress)
        except Cancelled:  # while they were downloaded
            return
        task = EvaluationTask(catalog.family(family), device, questions, max(0, int(limit or 0)) or None)
        evaluate_all(self._runtime, task, chosen, emit=lambda state: put(state.copy()), stopped=stop.is_set)

    def _finished(self, state: Evaluation, *, stopped: bool) -> Changes:
        kept = "kept the backends that were finished" if state.results else "no backend was finished"
        sentence = f"Stopped; {kept}." if stopped else DONE
        done, of = state.done, state.of
        bar = finished(done, of, sentence, unit=UNIT, without=state.left_out) if of else idle(sentence)
        found: Changes = {self._bar.progress: bar}
        if not state.results:
            return found
        measured = Shown(tuple(state.results))
        names = measured.names()
        both = len(names) > 1
        shown: Any = True if both else HIDDEN
        one, other = names[0][1], names[-1 if not both else 1][1]
        return found | {
            self._measured: measured,
            self._one: gr.Dropdown(names, value=one, visible=shown),
            self._other: gr.Dropdown(names, value=other, visible=shown),
            self._differing: self.show(measured, one, other) if both else "",
        }

    def show(self, measured: Shown | None, one: str, other: str) -> str:
        """The questions on which the two differ."""
        if measured is None:
            return ""
        if {one, other} - {name for _, name in measured.names()}:
            return ""
        first, second = measured.pair(one, other)
        found = measured.differences(one, other)
        return html.differing(found, first.backend, second.backend, len(first.scored))

    def ask_it(self, measured: Shown | None, one: str, other: str, event: gr.EventData) -> Updates:
        """Goes to the first tab with the clicked question, and asks it as it was evaluated."""
        found = measured.differences(one, other) if measured else []
        number = getattr(event, "number", None)
        if measured is None or not isinstance(number, int) or not 0 <= number < len(found):
            return (*[gr.skip()] * 7,)
        question = found[number].one.question
        record = measured.results[0].record
        family, device = record.backend.rpartition("/")[0], record.device
        asked = offer(family, device, [one, other]), family, device, filled_in(family, device, [one, other])
        return gr.Tabs(selected="ask"), question.context, question.question, *asked
