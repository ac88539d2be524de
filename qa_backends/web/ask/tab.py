"""The first tab: a text, a question, the backends' answers side by side."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import gradio as gr

from qa_backends import catalog
from qa_backends.asking.answer import answer_json
from qa_backends.asking.ask import Asking, ask
from qa_backends.asking.comparison import Comparison, comparison_of
from qa_backends.asking.recorded import examples, recorded_comparison
from qa_backends.contract import Query
from qa_backends.errors import QAError
from qa_backends.limits import devices
from qa_backends.measure.quality.datasets import own_questions
from qa_backends.measure.quality.evaluation import Differing, find_difference
from qa_backends.progress import Progress
from qa_backends.web.ask import charts, html, share
from qa_backends.web.shared.choices import backend_choices, device_choices, family_choices, preselected
from qa_backends.web.shared.html import note, problem
from qa_backends.web.shared.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qa_backends.runtime import Runtime

HISTORY_KEEPS = 50
"""Questions of a visit that its chart shows; older ones are forgotten, so that a visit stays small."""
WAITING_ROOM = 16
"""Questions that may be under way or waiting at once; the next ones wait in Gradio's own queue."""
RUN_TOGETHER: dict[str, Any] = {"concurrency_id": "model", "concurrency_limit": WAITING_ROOM}
HOW_TO_READ = (
    "Times are medians of whole answers, taken in turns. [3.2–3.6] is the range that holds the true ratio with 95 % "
    "confidence; where it holds 1, it is a tie. The sentence on top names the fastest, with a range wide enough for "
    "all backends at once. F1 is the mean overlap, in words, of a backend's answers with people's on SQuAD v2.0 "
    "dev, in percent; its difference to the baseline's is over the same questions."
)
LINK_NOTE = (
    "The address bar holds your question: copy it to share the question. "
    f"A text that would make it longer than {share.LINK_UP_TO:,} characters is left out."
)
SET_ADDRESS = "(link) => { if (link) history.replaceState(null, '', link); }"

Updates = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Visit:
    """What one visitor has asked so far: the last comparison whole, of the others what the history shows."""

    last: Comparison | None = None
    history: tuple[charts.Asked, ...] = ()
    asked: int = 0
    replays: int = 0

    def with_question(self, view: Comparison) -> Visit:
        asked = self.asked + 1
        history = (*self.history, charts.Asked.of(view, asked))[-HISTORY_KEEPS:]
        return Visit(view, history, asked, self.replays + 1)


class AskTab:
    """Widgets of the tab, and the functions behind them."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._fillers: list[tuple[list[Any], Any]] = []
        self._draw()
        self._wire()

    def _draw(self) -> None:
        first = examples()[0]
        recorded = recorded_comparison()
        self.visit = gr.State(Visit())
        self._link = gr.Textbox(visible=False)
        with gr.Row(elem_classes="qa-columns"):
            with gr.Column(scale=5, min_width=320):
                self._context = gr.Textbox(
                    value=first["context"], label="Text", lines=9, max_lines=14, elem_id="qa-context",
                    placeholder="Paste a text of up to 200,000 characters",
                )  # fmt: skip
                self._question = gr.Textbox(
                    value=first["question"], label="Question", lines=1, max_lines=1, elem_id="qa-question",
                    placeholder="Ask something the text can answer, then press Enter",
                )  # fmt: skip
                with gr.Row(elem_classes="qa-examples"):
                    self._examples = [gr.Button(each["title"], size="sm", min_width=80) for each in examples()]
                    self._find = gr.Button("Find a question that pruning changes", size="sm", elem_id="qa-find")
                there, family = devices(), catalog.default_family()
                self._backends = gr.CheckboxGroup(
                    backend_choices(family, there[0]), value=preselected(family, there[0]), label="Backends",
                    elem_id="qa-backends",
                )  # fmt: skip
                with gr.Row():
                    self._family = gr.Radio(family_choices(), value=family, label="Family", elem_id="qa-family")
                    self._device = gr.Radio(device_choices(), value=there[0], label="Device", visible=len(there) > 1)
                self._ask = gr.Button("Ask", variant="primary", elem_id="qa-ask")
            with gr.Column(scale=6, min_width=320):
                self._verdict = gr.HTML(html.verdict(recorded) if recorded else "", elem_id="qa-verdict")
                self._cards = gr.HTML(html.cards(recorded) if recorded else "", elem_id="qa-cards")
                gr.HTML(f'<p class="qa-parts">{HOW_TO_READ}</p>')
                self._marked = gr.HTML(html.marked(recorded) if recorded else "", elem_id="qa-marked")
        with gr.Row(elem_classes="qa-columns"):
            self._latency = gr.Plot(charts.latency(recorded), show_label=False, elem_id="qa-latency")
            self._history = gr.Plot(charts.history([]), show_label=False, elem_id="qa-history")
        self._replay_button = gr.Button("Replay in slow motion", size="sm", elem_id="qa-replay-button")
        self._replay = gr.HTML("", elem_id="qa-replay")
        with gr.Accordion("Copy as code, or as a link", open=False):
            gr.HTML(f'<p class="qa-parts">{LINK_NOTE}</p>')
            shown = (first["question"], first["context"], family, preselected(family, there[0]), there[0])
            self._python = gr.Code(share.as_python(*shown), label="Python", **share.CODE_BOX)
            self._shell = gr.Code(share.as_shell(*shown), label="Command line", **share.CODE_BOX)

    def _wire(self) -> None:
        asking = gr.on(
            [self._ask.click, self._question.submit],
            self.ask,
            [self.visit, *self.form],
            self.outputs,
            api_name="ask",
            show_progress="hidden",
            trigger_mode="once",
            **RUN_TOGETHER,
        )
        finding = self._find.click(
            self.find,
            [self.visit, self._family, self._device],
            [*self.form, *self.outputs],
            api_visibility="private",
            show_progress="hidden",
            trigger_mode="once",
            **RUN_TOGETHER,
        )
        self.add_filler([self._ask.click, self._question.submit], asking)
        self.add_filler([self._find.click], finding)
        self._link.change(None, self._link, None, js=SET_ADDRESS)
        for choice in (self._family, self._device):
            choice.input(
                offer, [self._family, self._device, self._backends], self._backends, api_visibility="private",
                queue=False,
            )  # fmt: skip
        for button, example in zip(self._examples, examples(), strict=True):
            button.click(
                lambda example=example: (example["context"], example["question"]),
                None,
                [self._context, self._question],
                api_visibility="private",
                queue=False,
            )
        self._replay_button.click(
            self.replay, self.visit, [self.visit, self._replay], api_visibility="private", show_progress="hidden"
        )

    def add_filler(self, triggers: list[Any], event: Any) -> None:
        """Of all events that draw this tab's cards and write its visit, the one triggered last goes on, alone."""
        for other_triggers, other in self._fillers:
            gr.on(triggers, None, cancels=other)
            gr.on(other_triggers, None, cancels=event)
        self._fillers.append((triggers, event))

    def ask(
        self, visit: Visit, context: str, question: str, backends: list[str], family: str, device: str
    ) -> Iterator[Updates]:
        """Draws the comparison as it comes; the last drawing adds the charts, the replay, the code and the link."""
        view: Comparison | None = None
        drawn_answers = -1
        try:
            asked = catalog.family(family)
            backends_asked = catalog.ladder(catalog.resolve(name, family)[1] for name in backends)
            query = Query(question, context)
            states = Worker[Asking](
                lambda put: ask(
                    self._runtime, asked, backends_asked, query, device, emit=lambda state: put(state.copy())
                )
            )
            for state in states:
                view = comparison_of(state)
                new_answers = len(view.answered) > drawn_answers
                drawn_answers = max(drawn_answers, len(view.answered))
                yield (
                    gr.skip(),
                    html.verdict(view),
                    html.cards(view),
                    html.marked(view) if new_answers else gr.skip(),
                    charts.latency(view) if new_answers and view.answered else gr.skip(),
                    *[gr.skip()] * 5,
                )
        except QAError as error:
            yield (gr.skip(), problem(str(error)), *[gr.skip()] * 8)
            return
        if view is None or not view.answered:
            return
        visit = visit.with_question(view)
        names = [card.backend for card in view.cards]
        yield (
            visit,
            html.verdict(view),
            html.cards(view),
            html.marked(view),
            charts.latency(view),
            charts.history(visit.history),
            html.replay(view, visit.replays),
            share.as_python(question, context, family, names, device),
            share.as_shell(question, context, family, names, device),
            share.link(question, context, family, names),
        )

    @property
    def form(self) -> list[Any]:
        """What a question is made of."""
        return [self._context, self._question, self._backends, self._family, self._device]

    @property
    def outputs(self) -> list[Any]:
        """What asking changes."""
        shown = [self.visit, self._verdict, self._cards, self._marked, self._latency, self._history]
        return [*shown, self._replay, self._python, self._shell, self._link]

    def fill_and_ask(
        self, visit: Visit, context: str, question: str, backends: list[str], family: str, device: str
    ) -> Iterator[Updates]:
        """Puts the question into the form, then asks it: updates of ``form`` and ``outputs``."""
        yield (context, question, backends, family, device, *[gr.skip()] * len(self.outputs))
        for update in self.ask(visit, context, question, backends, family, device):
            yield (*[gr.skip()] * len(self.form), *update)

    def find(self, visit: Visit, family: str, device: str) -> Iterator[Updates]:
        """Reads the project's own questions, in random order, until pruning changes an answer; then asks that one."""
        questions = own_questions()
        random.shuffle(questions)
        found: list[Differing | None] = []
        unchanged = [gr.skip()] * len(self.form)
        rest = [gr.skip()] * (len(self.outputs) - 2)
        try:
            asked, baseline = catalog.resolve(catalog.BASELINE, family)
            pair = (baseline, catalog.resolve("pruned", family)[1])
            for status in Worker[str](
                lambda put: found.append(find_difference(self._runtime, asked, pair, device, questions, Progress(put)))
            ):
                yield (*unchanged, gr.skip(), note(status), *rest)
        except QAError as error:
            yield (*unchanged, gr.skip(), problem(str(error)), *rest)
            return
        if not found or found[0] is None:
            sentence = f"Baseline and Pruned agree on all {len(questions)} questions that ship with the app."
            yield (*unchanged, gr.skip(), note(sentence), *rest)
            return
        question = found[0].one.question
        names = [each.name for each in pair]
        yield from self.fill_and_ask(visit, question.context, question.question, names, family, device)

    def replay(self, visit: Visit) -> tuple[Visit, str]:
        """Starts the race again: the visitor's last question, or the recorded one before they asked."""
        visit = replace(visit, replays=visit.replays + 1)
        view = visit.last or recorded_comparison()
        return visit, html.replay(view, visit.replays) if view else ""

    def open_link(self, request: gr.Request) -> Updates:
        """Fills the form from the address, where it says something, and clears away what was recorded of another."""
        found = share.read_link(dict(request.query_params))
        if found is None:
            return tuple(gr.skip() for _ in range(8))
        sentence = "This is the question of the link you opened. Press Ask to measure it here."
        if not found.context:
            sentence = "The text was too long for the link you opened. Paste it, then press Ask."
        return (
            found.context,
            found.question,
            found.backends,
            found.family,
            note(sentence),
            "",
            "",
            charts.latency(None),
        )

    def wire_link(self, page: gr.Blocks) -> None:
        form = [self._context, self._question, self._backends, self._family]
        page.load(
            self.open_link,
            None,
            [*form, self._verdict, self._cards, self._marked, self._latency],
            api_visibility="private",
            show_progress="hidden",
        )

    def answer(
        self, question: str, context: str, backend: str = catalog.PRESELECTED[-1], family: str = "", device: str = ""
    ) -> dict[str, Any]:
        """One backend's answer as JSON, for programs. ``family`` and ``device`` may be empty for the defaults."""
        where = device or devices()[0]
        try:
            asked, chosen = catalog.resolve(backend, family or None)
            found = ask(self._runtime, asked, [chosen], Query(question, context), where, seconds=0)
        except QAError as error:
            raise gr.Error(str(error), print_exception=False) from error
        (outcome,) = found.outcomes
        if outcome.reading is None:
            raise gr.Error(outcome.error or "The backend gave no answer.", print_exception=False)
        return answer_json(outcome.reading, outcome.cold_s)


def offer(family: str, device: str, chosen: list[str]) -> Any:
    """The backends of the family that the device can run; what was ticked stays so where it is still offered."""
    choices = backend_choices(family, device)
    return gr.CheckboxGroup(choices, value=preselected(family, device, chosen) or preselected(family, device))
