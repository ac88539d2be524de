"""The first tab: a text, a question, the backends' answers in one comparison.

Whatever fills the form (a person, an example, a link, a question found) ends by raising the ticket, and the ticket
asks. So there is one way to ask, and a newer question ends the one before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gradio as gr

from qa_backends.asking.ask import LIVE_SECONDS
from qa_backends.asking.recorded import examples
from qa_backends.limits import devices
from qa_backends.measure.results.shipped import shipped_benchmark
from qa_backends.reader.reader import MAX_CONTEXT_CHARS
from qa_backends.web.ask import charts, html, scripts, share
from qa_backends.web.ask.allowed import Allowed
from qa_backends.web.ask.answering import Answering
from qa_backends.web.ask.asked import first_asked, key, key_of
from qa_backends.web.ask.own import OwnModel
from qa_backends.web.ask.shown import deployed, first_sight, updates_of
from qa_backends.web.ask.visits import Visit
from qa_backends.web.shared.choices import (
    backend_choices,
    device_choices,
    family_choices,
    filled_in,
    new_ticket,
    offer,
    said,
)
from qa_backends.web.shared.html import room_for
from qa_backends.web.shared.widgets import CODE_BOX, FOLLOWED, HIDDEN, PRIVATE

if TYPE_CHECKING:
    from qa_backends.runtime import Runtime
    from qa_backends.web.shared.stops import Stops

WAITING_ROOM = 16
"""Questions that may be under way or waiting at once; the next ones wait in Gradio's own queue."""
RUN_TOGETHER: dict[str, Any] = {"concurrency_id": "model", "concurrency_limit": WAITING_ROOM}
HOW_TO_READ = (
    "A time is the median of whole answers (tokenise, model, decode). The backends take turns until the fastest one's "
    f"ratio to the baseline is known within 5 %, or for {LIVE_SECONDS:.0f} seconds. A range such as “3.2 to 3.6 times” "
    "holds the true ratio with 95 % confidence; of several backends the fastest is named, with a range wide enough for "
    "all of them at once; where it holds 1, it is a tie. F1 is the mean overlap, in words, of a backend's answers with "
    "people's, in percent, on SQuAD v2.0 dev and on two sets of questions written for this app: on well-written texts "
    "of other kinds, and on everyday ones such as letters, manuals and chat. Its difference to the baseline's is over "
    "the same questions. How confident an answer is, under “what ran”, is what the model says of itself: on texts "
    "unlike Wikipedia it says too much, and the model card tells by how much."
)
LINK_NOTE = (
    "The link opens this page with your question, and asks it. It stands in the address bar too, unless the page is "
    f"part of another one, as on Hugging Face. What would make it longer than {share.LINK_UP_TO:,} characters is "
    "left out: the text, and the question too where that is long in another script."
)


class AskTab:
    """Widgets of the tab, and what each of them sets off."""

    def __init__(self, runtime: Runtime, allowed: Allowed) -> None:
        self._answering = Answering(runtime)
        self._allowed = allowed
        self._draw()
        self._wire()

    def _draw(self) -> None:
        recorded, there = first_sight(), devices()
        question, context, family, ticked, _ = shown = first_asked()
        self.visit = gr.State(Visit())
        self.ticket = gr.Number(0, visible=False, precision=0)
        self.filled = gr.Textbox('{"ticket": 0}', visible=False)
        self._address = gr.Textbox(visible=False)
        self._kept, self._key = [gr.Textbox(visible=False) for _ in range(2)], gr.Textbox(visible=False)
        with gr.Column(elem_classes="qa-form", elem_id="qa-form"):
            self._context = gr.Textbox(
                value=context, label="Text", lines=3, max_lines=10, elem_id="qa-context",
                placeholder=f"Paste a text of up to {MAX_CONTEXT_CHARS:,} characters",
            )  # fmt: skip
            with gr.Row(elem_classes="qa-ask-row"):
                self._question = gr.Textbox(
                    value=question, label="Question", lines=1, max_lines=1, elem_id="qa-question", scale=8,
                    placeholder="Ask something the text can answer, then press Enter", min_width=200,
                )  # fmt: skip
                self._cancel = gr.Button("Cancel", elem_id="qa-cancel", scale=0, min_width=88, visible=False)
                self._ask = gr.Button("Ask", variant="primary", elem_id="qa-ask", scale=0, min_width=88)
            with gr.Row(elem_classes="qa-examples", elem_id="qa-examples"):
                self._examples = [
                    gr.Button(
                        each["title"] if each["answer"] else f"A trap: {each['title']}",
                        size="sm",
                        min_width=60,
                        elem_classes="" if each["answer"] else "qa-trap",
                    )
                    for each in examples()
                ]
                self._find = gr.Button("Find one they answer differently", size="sm", elem_id="qa-find", min_width=60)
                self._open = gr.UploadButton(
                    "Open a .txt or .md", file_types=[".txt", ".md"], size="sm", elem_id="qa-open", min_width=60
                )
            with gr.Accordion(said(ticked, family, there[0]), open=False, elem_id="qa-options") as self._options:
                self._backends = gr.CheckboxGroup(
                    backend_choices(family, there[0]), value=ticked, label="Backends", elem_id="qa-backends",
                    elem_classes="qa-backends",
                )  # fmt: skip
                self._device = gr.Radio(device_choices(), value=there[0], label="Device", visible=len(there) > 1)
                self.family = gr.Radio(
                    family_choices(), value=family, label="Family", elem_id="qa-family", elem_classes="qa-backends"
                )
                self._own = OwnModel(self._allowed)
        self._result = gr.HTML(html.result(recorded) if recorded else "", elem_id="qa-result")
        with gr.Row(elem_classes="qa-after"):
            self._watch = gr.Button("Watch the race", size="sm", elem_id="qa-watch", min_width=60)
            self._longer = gr.Button("Measure longer", size="sm", elem_id="qa-longer", min_width=60)
        with gr.Row(elem_classes="qa-columns"):
            with gr.Column(scale=6, min_width=320):
                self._marked = gr.HTML(html.marked(recorded) if recorded else "", elem_id="qa-marked")
            with gr.Column(scale=5, min_width=320):
                history = (charts.Asked.of(recorded),) if recorded else ()
                figure = charts.visit(history, shipped_benchmark())
                gr.HTML(room_for({"qa-history": figure.layout.height}), visible=HIDDEN)
                self._chart = gr.Plot(figure, show_label=False, elem_id="qa-history")
        with gr.Accordion("How to read this", open=False):
            gr.HTML(f'<p class="qa-soft">{HOW_TO_READ}</p>')
        with gr.Accordion("Copy as code, or as a link", open=False):
            gr.HTML(f'<p class="qa-soft">{LINK_NOTE}</p>')
            self._link = gr.Code(share.page_address(None) + share.link(*shown), label="Link", **CODE_BOX)
            self._python = gr.Code(share.as_python(*shown, share.page_address(None)), label="Python", **CODE_BOX)
            self._shell = gr.Code(share.as_shell(*shown), label="Command line", **CODE_BOX)
            self._deploy = gr.Code(deployed(recorded), label="Deploy the fastest", **CODE_BOX)
        gr.HTML("", js_on_load=scripts.LISTEN, elem_id="qa-listen")  # last: it looks for what stands above

    @property
    def form(self) -> list[Any]:
        """What a question is made of."""
        return [self._context, self._question, self._backends, self.family, self._device]

    @property
    def shown(self) -> list[Any]:
        """What shows a comparison that is over."""
        return [
            self.visit, self._result, self._marked, self._chart, self._link, self._python, self._shell, self._deploy,
        ]  # fmt: skip

    @property
    def stops(self) -> list[Stops]:
        """What ends a visitor's work here."""
        return [self._answering.stops, self._own.stops]

    @property
    def outputs(self) -> list[Any]:
        """What asking changes."""
        return [*self.shown, self._address, self._cancel]

    def _wire(self) -> None:
        does = self._answering
        self._asking: list[Any] = [
            self.ticket.change(
                does.ask_now, [self.visit, *self.form], self.outputs, trigger_mode="multiple", **PRIVATE, **RUN_TOGETHER
            )
        ]  # fmt: skip
        self._asking.append(
            self._longer.click(
                does.ask_longer, self.visit, self.outputs, trigger_mode="multiple", **PRIVATE, **RUN_TOGETHER
            )
        )  # fmt: skip
        self._asking.append(
            self._find.click(
                does.find, [*self.form], [*self.form, self.ticket, self._result, self._cancel],
                trigger_mode="multiple", **PRIVATE, **RUN_TOGETHER,
            )
        )  # fmt: skip
        for work in self._asking:
            work.failure(does.failed, None, [self._result, self._cancel], queue=False, **PRIVATE)
        self.asks([self._ask.click, self._question.submit], new_ticket, [], [self.ticket])
        for button, example in zip(self._examples, examples(), strict=True):
            self.asks(
                [button.click],
                lambda example=example: (example["context"], example["question"], new_ticket()),
                [],
                [self._context, self._question, self.ticket],
            )
        self._cancel.click(
            does.cancelled, self.visit, [self._result, self._marked, self._cancel], queue=False, **PRIVATE
        )
        self._watch.click(does.watch, self.visit, [self.visit, self._result], **PRIVATE)
        self._address.change(None, self._address, None, js=scripts.SET_ADDRESS)
        gr.on([each.change for each in self.form], None, self.form, None, js=scripts.FORM_CHANGED, **FOLLOWED)
        self._open.upload(
            does.open_text,
            [self.visit, self._open],
            [self._context, self._result, self._marked],
            queue=False,
            **PRIVATE,
        )
        for choice in (self.family, self._device):
            choice.input(offer, [self.family, self._device, self._backends], self._backends, queue=False, **FOLLOWED)
        for chosen in (self._backends, self.family, self._device):
            chosen.change(
                lambda names, family, device: gr.Accordion(label=said(names, family, device)),
                [self._backends, self.family, self._device], self._options, queue=False, **PRIVATE,
            )  # fmt: skip

    def asks(self, triggers: list[Any], fill: Any, inputs: list[Any], outputs: list[Any], **options: Any) -> Any:
        """Wires events that fill the form and raise the ticket; what is being asked or looked for is ended first."""
        return gr.on(triggers, fill, inputs, outputs, cancels=self._asking, **PRIVATE, **options)

    def ask_once_shown(self, filling: Any) -> None:
        """Raises the ticket to what ``filling``, an event, left in ``filled``. Where it offers other backends too, a
        ticket that it raised itself would ask those that were ticked before."""
        filling.then(None, [self.filled, self.ticket], self.ticket, js=scripts.ONCE_SHOWN, **PRIVATE)

    def open_link(self, kept_question: str, kept_context: str, visit_key: str, request: gr.Request) -> dict[Any, Any]:
        """Fills the form from the address, where it says something; shows the result of it again after a reload, else
        asks it.

        What was kept is what the address had no room for, and ``visit_key`` that of the visit, if this browser asked it
        before.
        """
        found, page = share.read_link(dict(request.query_params)), share.page_address(request)
        if found is None:
            first = first_asked()
            return {self._link: page + share.link(*first), self._python: share.as_python(*first, page)}
        context, question = found.context or kept_context, found.question or kept_question
        shared = question, context, found.family, found.backends, found.device
        form = {
            self._context: context, self._question: question, self.family: found.family,
            self._backends: offer(found.family, found.device, found.backends),
            self._link: page + share.link(*shared), self._python: share.as_python(*shared, page),
        }  # fmt: skip
        if len(devices()) > 1:
            form[self._device] = found.device
        if not context or not question:
            lacking = " and ".join(what for what, given in (("text", context), ("question", question)) if not given)
            note = f"The link you opened had no room for the {lacking}. Paste what is missing, then press Ask."
            return form | {self._result: html.remark(note, question), self._marked: ""}
        visit = self._answering.visits.of(visit_key)
        asked = key(question, context, found.family, found.backends, found.device)
        if visit is None or visit.last is None or key_of(visit.last) != asked:
            return form | {self.filled: filled_in(found.family, found.device, found.backends)}
        return form | dict(zip(self.shown, updates_of(visit, visit.last, request), strict=True))

    def wire_own(self, page: gr.Blocks, others: list[Any]) -> None:
        """``others`` are the other tabs' choices of a family."""
        self._own.wire(page, [self.family, *others], self._backends, self._device)

    def wire_link(self, page: gr.Blocks) -> None:
        opened = page.load(
            self.open_link, [*self._kept, self._key], [*self.form, self.filled, *self.shown],
            js=scripts.KEPT, **PRIVATE,
        )  # fmt: skip
        self.ask_once_shown(opened)
