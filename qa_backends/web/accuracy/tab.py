"""The accuracy tab: exact match and F1 of each backend, and the questions on which two of them differ."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator  # at run time too: Gradio reads the signatures of what it calls
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gradio as gr

from qa_backends import catalog
from qa_backends.errors import InputError, QAError
from qa_backends.limits import devices
from qa_backends.measure.quality.datasets import (
    OWN,
    SQUAD_DEV_BYTES,
    SQUAD_DEV_QUESTIONS,
    SQUAD_V2_DEV,
    data_set,
    own_questions,
)
from qa_backends.measure.quality.evaluation import Asked, Differing, Evaluated, Evaluation, differences, evaluate_all
from qa_backends.measure.results.shipped import shipped_quality
from qa_backends.progress import Progress
from qa_backends.web.accuracy import html
from qa_backends.web.ask.tab import PRIVATE, AskTab, offer
from qa_backends.web.shared.choices import backend_choices, device_choices, family_choices, preselected
from qa_backends.web.shared.html import problem, running
from qa_backends.web.shared.wording import seconds_left
from qa_backends.web.shared.worker import Worker

if TYPE_CHECKING:
    from qa_backends.runtime import Runtime

Updates = Any
OWN_FILE = "file"
DATA = (
    (f"The app's own {len(own_questions())} questions", OWN),
    (f"SQuAD v2.0 dev, {SQUAD_DEV_QUESTIONS:,} questions ({SQUAD_DEV_BYTES / 1e6:.1f} MB, downloaded on first use)",
     SQUAD_V2_DEV),
    ("A SQuAD-format file of mine", OWN_FILE),
)  # fmt: skip
TO_TOP = "(...values) => { window.scrollTo(0, 0); return values; }"
CLICKED = """element.addEventListener('click', event => {
  const button = event.target.closest('button[data-number]');
  if (button) trigger('click', {number: Number(button.dataset.number)});
});"""
HOW_TO_READ = (
    "EM is the share of answers that equal one of people's, F1 their mean overlap in words, in percent, as the "
    "official SQuAD 2.0 script counts them, with 95 % bootstrap intervals over questions. Questions a second count "
    "the whole reader: tokenise, model, decode."
)


@dataclass(frozen=True, slots=True)
class Shown:
    """A visitor's evaluation."""

    results: tuple[Evaluated, ...]

    def names(self) -> list[tuple[str, str]]:
        return [(each.backend.title, each.backend.name) for each in self.results]

    def pair(self, one: str, other: str) -> tuple[Evaluated, Evaluated]:
        by_name = {each.backend.name: each for each in self.results}
        return by_name[one], by_name[other]

    def differences(self, one: str, other: str) -> list[Differing]:
        first, second = self.pair(one, other)
        return differences(first.scored, second.scored)


def progress_sentence(state: Evaluation) -> str:
    """What is being done, and the time left once something is known of it."""
    left = f", {seconds_left(state.left_s)}" if state.status and state.left_s else ""
    return (state.status or "Done.") + left


class AccuracyTab:
    """Widgets of the tab, and the functions behind them."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._stops: dict[str, threading.Event] = {}
        self._draw()
        self._wire()

    def _draw(self) -> None:
        family, there = catalog.default_family(), devices()
        of = catalog.family(family)
        records = [found for each in catalog.offered(of) if (found := shipped_quality(of, each))]
        self._measured = gr.State(None)
        with gr.Row(elem_classes="qa-columns"):
            with gr.Column(scale=6, min_width=320):
                self._backends = gr.CheckboxGroup(
                    backend_choices(family, there[0]), value=preselected(family, there[0]), label="Backends",
                    elem_id="qa-accuracy-backends",
                )  # fmt: skip
                self._data = gr.Radio(DATA, value=OWN, label="Questions", elem_id="qa-accuracy-data")
                self._file = gr.File(
                    label="A SQuAD-format file (.json)", file_types=[".json"], visible=False, elem_id="qa-accuracy-file"
                )
            with gr.Column(scale=5, min_width=320):
                self._family = gr.Radio(family_choices(), value=family, label="Family")
                self._device = gr.Radio(device_choices(), value=there[0], label="Device", visible=len(there) > 1)
                self._limit = gr.Number(
                    0,
                    label="Questions at most, drawn at random (0 for all)",
                    precision=0,
                    minimum=0,
                    elem_id="qa-accuracy-limit",
                )
        with gr.Row():
            self._start = gr.Button("Start", variant="primary", elem_id="qa-accuracy-start")
            self._stop = gr.Button("Stop and keep what was finished", interactive=False, elem_id="qa-accuracy-stop")
        self._progress = gr.HTML("", elem_id="qa-accuracy-progress")
        self._caption = gr.HTML(
            html.caption(records, "Ships with the app, until you run your own:"), elem_id="qa-accuracy-caption"
        )
        self._table = gr.HTML(html.table(records), elem_id="qa-accuracy-table")
        gr.HTML(f'<p class="qa-parts">{HOW_TO_READ}</p>')
        with gr.Row(visible=False) as self._choice:
            self._one = gr.Dropdown([], label="Where they differ: one backend")
            self._other = gr.Dropdown([], label="and another")
        self._differing = gr.HTML("", js_on_load=CLICKED, elem_id="qa-differing")

    def _wire(self) -> None:
        self._data.change(lambda data: gr.File(visible=data == OWN_FILE), self._data, self._file, **PRIVATE)
        for choice in (self._family, self._device):
            choice.input(offer, [self._family, self._device, self._backends], self._backends, queue=False, **PRIVATE)
        chosen = [self._backends, self._family, self._device, self._data, self._file, self._limit]
        outputs = [self._measured, self._progress, self._stop, self._caption, self._table, self._choice, self._one,
                   self._other, self._differing]  # fmt: skip
        self._start.click(self.start, chosen, outputs, trigger_mode="once", concurrency_id="accuracy",
                          concurrency_limit=16, **PRIVATE)  # fmt: skip
        self._stop.click(self.stop, None, self._stop, queue=False, **PRIVATE)
        for compared in (self._one, self._other):
            compared.input(self.show, [self._measured, self._one, self._other], self._differing, **PRIVATE)

    def wire_ask(self, tab: AskTab, tabs: gr.Tabs) -> None:
        """A click on a differing question asks it in the first tab, of the same two backends."""
        tab.asks(
            [self._differing.click],
            self.ask_it,
            [self._measured, self._one, self._other, tab.ticket],
            [tabs, *tab.form, tab.ticket],
            js=TO_TOP,
        )

    def start(
        self, backends: list[str], family: str, device: str, data: str, file: str | None, limit: float,
        request: gr.Request,
    ) -> Iterator[Updates]:  # fmt: skip
        """Evaluates each backend and shows its line when it is done."""
        session = request.session_hash or ""
        stop = self._stops[session] = threading.Event()
        state: Evaluation | None = None
        try:
            for state in Worker[Evaluation](
                lambda put: self._evaluate(put, backends, family, device, data, file, limit, stop)
            ):
                going = gr.Button(interactive=bool(state.status) and not stop.is_set())
                bar = running(state.done, state.of, progress_sentence(state))
                yield {self._progress: bar, self._stop: going, **self._lines(state)}
        except QAError as error:
            yield {self._progress: problem(str(error)), self._stop: gr.Button(interactive=False)}
            return
        finally:
            self._stops.pop(session, None)
        if state is not None:
            yield self._finished(state, stopped=stop.is_set())

    def _lines(self, state: Evaluation) -> Updates:
        records = [each.record for each in state.results]
        if not records:
            return {}
        return {
            self._caption: html.caption(records, "Your measurement:"),
            self._table: html.table(records),
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
        progress = Progress(lambda status: put(Evaluation(data, of=1, status=status)), stop.is_set)
        progress.say("Reading the questions …")
        questions = data_set(str(file) if data == OWN_FILE else data, progress)
        asked = Asked(catalog.family(family), device, questions, max(0, int(limit or 0)) or None)
        evaluate_all(self._runtime, asked, chosen, emit=lambda state: put(state.copy()), stopped=stop.is_set)

    def _finished(self, state: Evaluation, *, stopped: bool) -> Updates:
        ended = "Stopped; kept the backends that were finished." if stopped else "Done."
        bar = running(state.done, state.of, ended, state.left_out)
        found: Updates = {self._progress: bar, self._stop: gr.Button(interactive=False), **self._lines(state)}
        if not state.results:
            return found
        measured = Shown(tuple(state.results))
        names = measured.names()
        both = len(names) > 1
        one, other = names[0][1], names[-1 if not both else 1][1]
        return found | {
            self._measured: measured,
            self._choice: gr.Row(visible=both),
            self._one: gr.Dropdown(names, value=one),
            self._other: gr.Dropdown(names, value=other),
            self._differing: self.show(measured, one, other) if both else "",
        }

    def stop(self, request: gr.Request) -> Any:
        """Ends the visitor's own evaluation after the questions under way."""
        if event := self._stops.get(request.session_hash or ""):
            event.set()
        return gr.Button(interactive=False)

    def show(self, measured: Shown | None, one: str, other: str) -> str:
        """The questions on which the two differ."""
        if measured is None:
            return ""
        if {one, other} - {name for _, name in measured.names()}:
            return ""
        first, second = measured.pair(one, other)
        found = measured.differences(one, other)
        return html.differing(found, first.backend, second.backend, len(first.scored))

    def ask_it(self, measured: Shown | None, one: str, other: str, ticket: int, event: gr.EventData) -> Updates:
        """Goes to the first tab with the clicked question, and asks it as it was evaluated."""
        found = measured.differences(one, other) if measured else []
        number = getattr(event, "number", None)
        if measured is None or not isinstance(number, int) or not 0 <= number < len(found):
            return tuple(gr.skip() for _ in range(7))
        question = found[number].one.question
        record = measured.results[0].record
        family, device = record.backend.rpartition("/")[0], record.device
        return gr.Tabs(selected="ask"), question.context, question.question, [one, other], family, device, ticket + 1
