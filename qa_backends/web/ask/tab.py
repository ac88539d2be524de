"""The first tab: a text, a question, the backends' answers in one comparison.

Whatever fills the form (a person, an example, a link, a question found) ends by raising the ticket, and the ticket
asks. So there is one way to ask, and a newer question ends the one before.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator  # at run time too: Gradio reads the signatures of what it calls
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gradio as gr

from qa_backends import catalog
from qa_backends.asking.ask import LIVE_SECONDS, Asking, ask
from qa_backends.asking.comparison import Comparison, Fastest, comparison_of
from qa_backends.asking.recorded import examples, recorded_comparison
from qa_backends.contract import Query
from qa_backends.errors import InputError, QAError
from qa_backends.limits import devices
from qa_backends.measure.quality.datasets import own_questions
from qa_backends.measure.quality.evaluation import Differing, find_difference
from qa_backends.measure.results.shipped import shipped_benchmark
from qa_backends.progress import Cancelled, Progress
from qa_backends.reader.reader import MAX_CONTEXT_CHARS
from qa_backends.web.ask import charts, html, scripts, share
from qa_backends.web.ask.own import Allowed, OwnModel
from qa_backends.web.ask.upload import read_text
from qa_backends.web.ask.visits import Visit, Visits
from qa_backends.web.shared.choices import backend_choices, device_choices, family_choices, preselected, said
from qa_backends.web.shared.stops import Stops
from qa_backends.web.shared.worker import Worker

if TYPE_CHECKING:
    from qa_backends.catalog import Backend, Family
    from qa_backends.runtime import Runtime

WAITING_ROOM = 16
"""Questions that may be under way or waiting at once; the next ones wait in Gradio's own queue."""
RUN_TOGETHER: dict[str, Any] = {"concurrency_id": "model", "concurrency_limit": WAITING_ROOM}
PRIVATE: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
FOLLOWED: dict[str, Any] = {"trigger_mode": "always_last", **PRIVATE}
"""For what a control shows at once: a change made while the last is drawn is drawn after it, not dropped."""
LONGER_SECONDS = 180.0
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
    "The address bar holds your question: copy it to share the question. "
    f"A text that would make it longer than {share.LINK_UP_TO:,} characters is left out."
)

CANCELLED = "Cancelled; this is the result before it."

Updates = tuple[Any, ...]


class AskTab:
    """Widgets of the tab, and the functions behind them."""

    def __init__(self, runtime: Runtime, allowed: Allowed) -> None:
        self._runtime = runtime
        self._allowed = allowed
        self._stops = Stops()
        self._visits = Visits()
        self._draw()
        self._wire()

    def _draw(self) -> None:
        recorded, there = first_sight(), devices()
        question, context, family, ticked, _ = shown = first_asked()
        self.visit = gr.State(Visit())
        self.ticket = gr.Number(0, visible=False, precision=0)
        self._address = gr.Textbox(visible=False)
        self._kept, self._key = gr.Textbox(visible=False), gr.Textbox(visible=False)
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
                self._find = gr.Button("Find one that pruning changes", size="sm", elem_id="qa-find", min_width=60)
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
                self._chart = gr.Plot(
                    charts.visit(history, shipped_benchmark()), show_label=False, elem_id="qa-history"
                )
        with gr.Accordion("How to read this", open=False):
            gr.HTML(f'<p class="qa-soft">{HOW_TO_READ}</p>')
        with gr.Accordion("Copy as code, or as a link", open=False):
            gr.HTML(f'<p class="qa-soft">{LINK_NOTE}</p>')
            self._python = gr.Code(share.as_python(*shown, share.page_address(None)), label="Python", **share.CODE_BOX)
            self._shell = gr.Code(share.as_shell(*shown), label="Command line", **share.CODE_BOX)
            self._deploy = gr.Code(_deployed(recorded), label="Deploy the fastest", **share.CODE_BOX)
        gr.HTML("", js_on_load=scripts.LISTEN, elem_id="qa-listen")  # last: it looks for what stands above

    @property
    def form(self) -> list[Any]:
        """What a question is made of."""
        return [self._context, self._question, self._backends, self.family, self._device]

    @property
    def shown(self) -> list[Any]:
        """What shows a comparison that is over."""
        return [self.visit, self._result, self._marked, self._chart, self._python, self._shell, self._deploy]

    @property
    def outputs(self) -> list[Any]:
        """What asking changes."""
        return [*self.shown, self._address, self._cancel]

    def _wire(self) -> None:
        self._asking: list[Any] = [
            self.ticket.change(
                self.ask_now, [self.visit, *self.form], self.outputs, trigger_mode="multiple", **PRIVATE, **RUN_TOGETHER
            )
        ]  # fmt: skip
        self._asking.append(
            self._longer.click(
                self.ask_longer, [self.visit, *self.form], self.outputs, trigger_mode="multiple", **PRIVATE,
                **RUN_TOGETHER,
            )
        )  # fmt: skip
        self._asking.append(
            self._find.click(
                self.find, [self.ticket, *self.form], [*self.form, self.ticket, self._result, self._cancel],
                trigger_mode="multiple", **PRIVATE, **RUN_TOGETHER,
            )
        )  # fmt: skip
        self.asks([self._ask.click, self._question.submit], lambda ticket: ticket + 1, [self.ticket], [self.ticket])
        for button, example in zip(self._examples, examples(), strict=True):
            self.asks(
                [button.click],
                lambda ticket, example=example: (example["context"], example["question"], ticket + 1),
                [self.ticket],
                [self._context, self._question, self.ticket],
            )
        self._cancel.click(
            self.cancelled, [self.visit, self._context, self._question], [self._result, self._marked, self._cancel],
            cancels=self._asking, **PRIVATE,
        )  # fmt: skip
        self._watch.click(self.watch, self.visit, [self.visit, self._result], **PRIVATE)
        self._address.change(None, [self._address, self._context], None, js=scripts.SET_ADDRESS)
        self._open.upload(self.open_text, self._open, [self._context, self._result], queue=False, **PRIVATE)
        for choice in (self.family, self._device):
            choice.input(offer, [self.family, self._device, self._backends], self._backends, queue=False, **FOLLOWED)
        for chosen in (self._backends, self.family, self._device):
            chosen.change(
                lambda names, family, device: gr.Accordion(label=said(names, family, device)),
                [self._backends, self.family, self._device], self._options, queue=False, **PRIVATE,
            )  # fmt: skip

    def asks(self, triggers: list[Any], fill: Any, inputs: list[Any], outputs: list[Any], **options: Any) -> None:
        """Wires events that fill the form and raise the ticket; what is being asked or looked for is ended first."""
        gr.on(triggers, fill, inputs, outputs, cancels=self._asking, **PRIVATE, **options)

    def ask_now(
        self, visit: Visit, context: str, question: str, backends: list[str], family: str, device: str,
        request: gr.Request,
    ) -> Iterator[Updates]:  # fmt: skip
        """Draws the comparison as it comes; the last drawing adds the chart, the code and the link."""
        yield from self._ask_for(LIVE_SECONDS, visit, context, question, backends, family, device, request)

    def ask_longer(
        self, visit: Visit, context: str, question: str, backends: list[str], family: str, device: str,
        request: gr.Request,
    ) -> Iterator[Updates]:  # fmt: skip
        """The same question again, with more time for the turns."""
        yield from self._ask_for(LONGER_SECONDS, visit, context, question, backends, family, device, request)

    def _ask_for(
        self, seconds: float, visit: Visit, context: str, question: str, backends: list[str], family: str,
        device: str, request: gr.Request,
    ) -> Iterator[Updates]:  # fmt: skip
        skipped = [gr.skip()] * 5
        view: Comparison | None = None
        drawn_answers = -1
        stop = self._stops.begin(request)
        try:
            asked = catalog.family(family)
            chosen = catalog.ladder(catalog.resolve(name, family)[1] for name in backends)
            query = Query(question, context)
            waiting = html.pending(question, [(each.name, each.title) for each in chosen])
            yield (gr.skip(), waiting, "", *skipped, gr.Button(visible=True))
            states = Worker[Asking](
                lambda put: ask(
                    self._runtime, asked, chosen, query, device, seconds=seconds,
                    emit=lambda state: put(state.copy()), stopped=stop.is_set,
                )
            )  # fmt: skip
            for state in states:
                if stop.is_set():
                    return
                view = comparison_of(state)
                new_answers = len(view.told) > drawn_answers
                drawn_answers = max(drawn_answers, len(view.told))
                marks = html.marked(view) if new_answers else gr.skip()
                yield (gr.skip(), html.result(view), marks, *skipped, gr.skip())
        except QAError as error:
            yield (gr.skip(), html.trouble(str(error)), "", *skipped, gr.Button(visible=False))
            return
        except Cancelled:
            return
        finally:
            self._stops.over(request, stop)
        if view is None or not view.answered or stop.is_set():
            yield (*[gr.skip()] * 8, gr.Button(visible=False))
            return
        visit = visit.with_question(view)
        self._visits.keep(visit)
        link = share.link(question, context, family, [card.backend for card in view.cards])
        address = json.dumps({"link": link, "key": visit.key, "asked": visit.races})
        yield (*_shown(visit, view, request), address, gr.Button(visible=False))

    def find(
        self, ticket: int, context: str, question: str, backends: list[str], family: str, device: str,
        request: gr.Request,
    ) -> Iterator[Updates]:  # fmt: skip
        """Reads the project's own questions, in random order, until a smaller model's answer, or rounding, differs from
        the baseline's; then asks that one."""
        questions = own_questions()
        random.shuffle(questions)
        found: list[Differing | None] = []
        unchanged = [gr.skip()] * 6
        stop = self._stops.begin(request)
        yield (*unchanged, html.remark("Looking for a question …"), gr.Button(visible=True))
        try:
            asked, baseline = catalog.resolve(catalog.BASELINE, family)
            pair = (baseline, _compared(asked, backends))
            for status in Worker[str](
                lambda put: found.append(
                    find_difference(self._runtime, asked, pair, device, questions, Progress(put, stop.is_set))
                )
            ):
                yield (*unchanged, html.remark(status), gr.skip())
        except QAError as error:
            yield (*unchanged, html.trouble(str(error)), gr.Button(visible=False))
            return
        except Cancelled:
            return
        finally:
            self._stops.over(request, stop)
        if not found or found[0] is None:
            sentence = f"{baseline.title} and {pair[1].title} agree on all {len(questions)} questions tried."
            yield (*unchanged, html.remark(sentence), gr.Button(visible=False))
            return
        changed = found[0].one.question
        names = list(dict.fromkeys([*backends, *(each.name for each in pair)]))
        yield (changed.context, changed.question, names, family, device, ticket + 1, gr.skip(), gr.skip())

    def open_text(self, path: str) -> Updates:
        """The uploaded text in the form. ``path`` is where Gradio put the upload, not one from the request."""
        try:
            return read_text(Path(path)), gr.skip()
        except InputError as error:
            return gr.skip(), html.trouble(str(error))

    def cancelled(self, visit: Visit, context: str, question: str, request: gr.Request) -> Updates:
        """Ends the visitor's own work, and shows again what stood there before, dimmed if it is of another question."""
        self._stops.end(request)
        view, hidden = visit.last or first_sight(), gr.Button(visible=False)
        if view is None:
            return html.remark(CANCELLED), "", hidden
        stale = (view.question, view.context) != (question, context)
        return html.result(view, note=CANCELLED, stale=stale), html.marked(view, stale=stale), hidden

    def watch(self, visit: Visit) -> tuple[Visit, str]:
        """Starts the race again: the visitor's last question, or the recorded one before they asked."""
        visit = replace(visit, races=visit.races + 1)
        view = visit.last or first_sight()
        return visit, html.result(view, visit.races) if view else ""

    def open_link(self, ticket: int, kept: str, key: str, request: gr.Request) -> dict[Any, Any]:
        """Fills the form from the address, where it says something; shows the result of it again after a reload, else
        asks it.

        ``kept`` is the text where the address had no room for it, and ``key`` that of the visit, if this browser asked
        it before.
        """
        found = share.read_link(dict(request.query_params))
        if found is None:
            return {self._python: share.as_python(*first_asked(), share.page_address(request))}
        context = found.context or kept
        form = {
            self._context: context, self._question: found.question, self._backends: found.backends,
            self.family: found.family,
        }  # fmt: skip
        if not context:
            note = "The text was too long for the link you opened. Paste it, then press Ask."
            return form | {self._result: html.remark(note, found.question)}
        visit = self._visits.of(key, found.question, context)
        if visit is None or visit.last is None or not visit.last.asked(found.family, found.backends):
            return form | {self.ticket: ticket + 1}
        shown = zip(self.shown, _shown(visit, visit.last, request), strict=True)
        return form | {self._device: visit.last.device} | dict(shown)

    def wire_own(self, page: gr.Blocks, others: list[Any]) -> None:
        """``others`` are the other tabs' choices of a family."""
        self._own.wire(page, [self.family, *others], self._backends, self._device)

    def wire_link(self, page: gr.Blocks) -> None:
        page.load(
            self.open_link, [self.ticket, self._kept, self._key], [*self.form, self.ticket, *self.shown],
            js=scripts.KEPT, **PRIVATE,
        )  # fmt: skip


def _shown(visit: Visit, view: Comparison, request: gr.Request) -> Updates:
    """A comparison that is over, as the page shows it: the result, the marked text, the chart and the code."""
    names = [card.backend for card in view.cards]
    asked = (view.question, view.context, view.family, names, view.device)
    return (
        visit,
        html.result(view, visit.races),
        html.marked(view),
        charts.visit(visit.history, shipped_benchmark()),
        share.as_python(*asked, share.page_address(request)),
        share.as_shell(*asked),
        _deployed(view),
    )


def _deployed(view: Comparison | None) -> str:
    """How the fastest is put to use; the last that was ticked, where none is known to be."""
    if view is None:
        _, _, family, names, device = first_asked()
        return share.as_deployed(family, names[-1], device)
    name = view.fastest.backend if view.fastest else view.cards[-1].backend
    return share.as_deployed(view.family, name, view.device)


def first_asked() -> tuple[str, str, str, list[str], str]:
    """What the form holds to begin with: question, text, family, backends ticked, device."""
    first, family, device = examples()[0], catalog.default_family(), devices()[0]
    return first["question"], first["context"], family, preselected(family, device), device


def first_sight() -> Comparison | None:
    """The recorded comparison, of the backends that are ticked to begin with."""
    recorded = recorded_comparison()
    if recorded is None:
        return None
    ticked = preselected(recorded.family)
    cards = tuple(card for card in recorded.cards if card.backend in ticked)
    fastest = [Fastest(card.backend, card.speed_up) for card in cards if card.speed_up]
    return replace(recorded, cards=cards, fastest=fastest[0] if len(fastest) == 1 else recorded.fastest)


def _compared(of: Family, ticked: list[str]) -> Backend:
    """What is compared with the baseline: the first ticked backend that runs the family's smallest weights, else those
    in PyTorch; of a family without smaller ones, its usual faster backend."""
    smaller = of.smallest if of.smallest != catalog.BASELINE else ""
    plain = smaller or catalog.usual(of)[-1]
    chosen = [catalog.resolve(name, of.name)[1] for name in [*ticked, plain]]
    return next(each for each in chosen if each.checkpoint == smaller or each.name == plain)


def offer(family: str, device: str | None, chosen: list[str]) -> Any:
    """The backends that the family has and the device, where given, can run; a tick stays where it is still offered."""
    choices = backend_choices(family, device)
    return gr.CheckboxGroup(choices, value=preselected(family, device, chosen) or preselected(family, device))
