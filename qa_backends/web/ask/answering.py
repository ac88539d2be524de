"""What the tab's buttons do: ask, look for a question, cancel, watch the race again, read a file."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator  # at run time too: Gradio reads the signatures of what it calls
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import gradio as gr

from qa_backends import catalog
from qa_backends.asking.ask import LIVE_SECONDS, Asking, ask
from qa_backends.asking.comparison import Comparison, comparison_of
from qa_backends.contract import Query, valid_text
from qa_backends.errors import InputError, QAError
from qa_backends.measure.quality.datasets import own_questions
from qa_backends.measure.quality.evaluation import Differing, find_difference
from qa_backends.progress import Cancelled, Progress
from qa_backends.web.ask import html, share
from qa_backends.web.ask.asked import key
from qa_backends.web.ask.shown import first_sight, updates_of
from qa_backends.web.ask.upload import read_text
from qa_backends.web.ask.visits import Visit, Visits
from qa_backends.web.shared.choices import new_ticket
from qa_backends.web.shared.stops import UNFORESEEN, Stops
from qa_backends.web.shared.widgets import Updates
from qa_backends.web.shared.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Generator
    from threading import Event

    from qa_backends.catalog import Backend, Family
    from qa_backends.runtime import Runtime

LONGER_SECONDS = 180.0
CANCELLED = "Cancelled; this is the result before it."
NOTHING_BEFORE = "Cancelled."


class Answering:
    """What visitors ask and what of it is under way, one thing at a time of each; ``visits`` outlive a reload."""

    def __init__(self, runtime: Runtime) -> None:
        self.visits = Visits()
        self.stops = Stops()
        self._runtime = runtime

    def ask_now(
        self, visit: Visit, context: str, question: str, backends: list[str], family: str, device: str,
        request: gr.Request,
    ) -> Iterator[Updates]:  # fmt: skip
        """Draws the comparison as it comes; the last drawing adds the chart, the code and the link."""
        form = (context, question, backends, family, device)
        yield from self.stops.until_stopped(
            request, lambda stop: self._asked(stop, LIVE_SECONDS, visit, *form, request)
        )

    def ask_longer(self, visit: Visit, request: gr.Request) -> Iterator[Updates]:
        """The question whose result is shown, whatever the form holds by now, with more time for the turns."""
        view = visit.last or first_sight()
        if view is None:
            yield (gr.skip(), html.remark("There is nothing to measure longer yet. Ask first."), *[gr.skip()] * 8)
            return
        shown = (view.context, view.question, [card.backend for card in view.cards], view.family, view.device)
        yield from self.stops.until_stopped(
            request, lambda stop: self._asked(stop, LONGER_SECONDS, visit, *shown, request)
        )

    def _asked(
        self, stop: Event, seconds: float, visit: Visit, context: str, question: str, backends: list[str], family: str,
        device: str, request: gr.Request,
    ) -> Generator[Updates]:  # fmt: skip
        skipped = [gr.skip()] * 6
        view: Comparison | None = None
        drawn_answers = -1
        context, question = valid_text(context), valid_text(question)  # half an emoji ends Gradio's stream
        try:
            asked = catalog.family(family)
            chosen = catalog.ladder(catalog.resolve(name, family)[1] for name in backends)
            query = Query(question, context)
            of = key(question, context, family, backends, device)
            waiting = html.pending(question, [(each.name, each.title) for each in chosen], of)
            yield (gr.skip(), waiting, "", *skipped, gr.Button(visible=True))
            states = Worker[Asking](
                lambda put: ask(
                    self._runtime, asked, chosen, query, device, seconds=seconds,
                    emit=lambda state: put(state.copy()), stopped=stop.is_set,
                ),
                timed=lambda state: state.timing,
            )  # fmt: skip
            for state in states:
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
        if view is None or not view.answered or stop.is_set():
            yield (*[gr.skip()] * 9, gr.Button(visible=False))
            return
        visit = visit.with_question(view)
        self.visits.keep(visit)
        link = share.link(question, context, family, [card.backend for card in view.cards], device)
        address = json.dumps({"link": link, "key": visit.key, "question": question, "context": context})
        yield (*updates_of(visit, view, request), address, gr.Button(visible=False))

    def find(
        self, context: str, question: str, backends: list[str], family: str, device: str, request: gr.Request
    ) -> Iterator[Updates]:
        """Reads the project's own questions, in random order, until a smaller model's answer, or rounding, differs from
        the baseline's; then asks that one."""
        yield from self.stops.until_stopped(request, lambda stop: self._found(stop, backends, family, device))

    def _found(self, stop: Event, backends: list[str], family: str, device: str) -> Generator[Updates]:
        questions = own_questions()
        random.shuffle(questions)
        found: list[Differing | None] = []
        unchanged = [gr.skip()] * 6
        yield (*unchanged, html.remark("Looking for a question …", looking=True), gr.Button(visible=True))
        try:
            asked, baseline = catalog.resolve(catalog.BASELINE, family)
            pair = (baseline, _compared(asked, backends))
            for status in Worker[str](
                lambda put: found.append(
                    find_difference(self._runtime, asked, pair, device, questions, Progress(put, stop.is_set))
                )
            ):
                yield (*unchanged, html.remark(status, looking=True), gr.skip())
        except QAError as error:
            yield (*unchanged, html.trouble(str(error)), gr.Button(visible=False))
            return
        except Cancelled:
            return
        if not found or found[0] is None:
            sentence = f"{baseline.title} and {pair[1].title} agree on all {len(questions)} questions tried."
            yield (*unchanged, html.remark(sentence), gr.Button(visible=False))
            return
        changed = found[0].one.question
        names = list(dict.fromkeys([*backends, *(each.name for each in pair)]))
        yield (changed.context, changed.question, names, family, device, new_ticket(), gr.skip(), gr.skip())

    def open_text(self, visit: Visit, path: str) -> Updates:
        """The uploaded text in the form, above the last result, which is of another one. Gradio lets ``path``
        be none outside its own folder of files; it is not kept."""
        try:
            text = read_text(Path(path))
        except InputError as error:
            return gr.skip(), html.trouble(str(error)), gr.skip()
        finally:
            Path(path).unlink(missing_ok=True)
        view = visit.last or first_sight()
        return text, html.result(view) if view else "", html.marked(view) if view else ""

    def cancelled(self, visit: Visit, request: gr.Request) -> Updates:
        """Ends the visitor's own work, and shows again what stood there before; nothing where a newer question was
        asked meanwhile. Of work that was over by then nothing is said."""
        under_way = self.stops.under_way(request)
        if not self.stops.end_and_wait(request):
            return gr.skip(), gr.skip(), gr.skip()
        view, hidden = visit.last or first_sight(), gr.Button(visible=False)
        if view is None:
            return html.remark(NOTHING_BEFORE) if under_way else gr.skip(), "", hidden
        return html.result(view, note=CANCELLED if under_way else ""), html.marked(view), hidden

    def failed(self, request: gr.Request) -> Updates:
        """What the page's own word of a failure changes: nothing, where the visitor asked anew meanwhile."""
        if self.stops.was_left(request):
            return gr.skip(), gr.skip()
        return html.trouble(UNFORESEEN), gr.Button(visible=False)

    def watch(self, visit: Visit) -> Updates:
        """Starts the race again: the visitor's last question, or the recorded one before they asked."""
        view = visit.last or first_sight()
        if view is None:
            return gr.skip(), gr.skip()
        visit = replace(visit, races=visit.races + 1)
        return visit, html.result(view, visit.races)


def _compared(of: Family, ticked: list[str]) -> Backend:
    """What is compared with the baseline: the first ticked backend of other weights, else the family's usual smaller
    ones in PyTorch; of a family without those, its usual faster backend."""
    usual = catalog.backend(catalog.usual(of)[-1])
    chosen = [catalog.resolve(name, of.name)[1] for name in ticked]
    other = next((each for each in chosen if each.checkpoint != catalog.BASELINE), None)
    return other or (usual if usual.checkpoint == catalog.BASELINE else catalog.plain(usual))
