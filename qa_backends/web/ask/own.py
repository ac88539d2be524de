"""Try your own model: a name in the form becomes a family in every tab, or a sentence that says why not."""

from __future__ import annotations

from collections.abc import Iterator  # Gradio reads the annotations when it runs
from typing import Any

import gradio as gr

from qa_backends import catalog
from qa_backends.checkpoints.architectures import known
from qa_backends.errors import InputError, QAError
from qa_backends.progress import Cancelled, Progress
from qa_backends.runtime.turns import FairLock
from qa_backends.web.ask.allowed import Allowed
from qa_backends.web.shared.choices import backend_choices, family_choices, preselected
from qa_backends.web.shared.html import note, problem
from qa_backends.web.shared.stops import UNFORESEEN, Stops
from qa_backends.web.shared.widgets import PRIVATE, Updates
from qa_backends.web.shared.wording import count
from qa_backends.web.shared.worker import Worker

LOADS_AT_ONCE = 16
"""They take turns: a model is fetched and read by itself."""


class OwnModel:
    """A line of the options: what to load, a button, and how it went."""

    def __init__(self, allowed: Allowed) -> None:
        self._allowed = allowed
        self.stops = Stops()
        self._turns = FairLock()
        either = ", or a folder on this machine" if allowed.folders else ""
        with gr.Row(elem_classes="qa-own-row", visible=allowed.hub):
            self._wanted = gr.Textbox(
                label="Try your own model", placeholder=f"A Hub id, as in deepset/roberta-base-squad2{either}",
                lines=1, max_lines=1, max_length=500, elem_id="qa-own", scale=8, min_width=200,
            )  # fmt: skip
            self._load = gr.Button("Load", elem_id="qa-own-load", scale=0, min_width=88)
            self._stop = gr.Button("Stop", elem_id="qa-own-stop", scale=0, min_width=88, visible=False)
        takes = (
            f"Any model for extractive question answering, saved as safetensors, of these kinds: {', '.join(known())}."
        )
        self._status = gr.HTML(note(takes), elem_id="qa-own-status", visible=allowed.hub)

    def wire(self, page: gr.Blocks, families: list[Any], backends: Any, device: Any) -> None:
        """``families`` are the tabs' choices, the first beside ``backends`` and ``device``. Models that others brought
        since the page was built are in them too, once it is loaded."""
        self._others = len(families) - 1
        page.load(lambda: _choices(len(families)), None, families, queue=False, api_visibility="private")
        if not self._allowed.hub:
            return
        outputs = [self._status, self._stop, *families, backends]
        loading = gr.on(
            [self._load.click, self._wanted.submit], self.load, [self._wanted, device], outputs, trigger_mode="once",
            concurrency_id="own", concurrency_limit=LOADS_AT_ONCE, **PRIVATE,
        )  # fmt: skip
        loading.failure(
            lambda: (problem(UNFORESEEN), gr.Button(visible=False)), None, [self._status, self._stop], queue=False,
            **PRIVATE,
        )  # fmt: skip
        self._stop.click(self.stop, None, None, queue=False, api_visibility="private")

    def stop(self, request: gr.Request) -> None:
        """Ends the visitor's own loading."""
        self.stops.end(request)

    def load(self, wanted: str, device: str, request: gr.Request) -> Iterator[Updates]:
        """Fetches and checks the model; then it is chosen, with its usual backends ticked."""
        unchanged = [gr.skip()] * (self._others + 2)
        allowed = self._allowed.at(request)
        found: list[catalog.Family] = []
        try:
            with self.stops.during(request) as stop:
                yield (note("Looking …"), gr.Button(visible=True), *unchanged)
                for status in Worker[str](
                    lambda put: found.append(self._adopt(wanted, allowed, Progress(put, stop.is_set)))
                ):
                    yield (note(status), gr.skip(), *unchanged)
        except QAError as error:
            yield (problem(str(error)), gr.Button(visible=False), *unchanged)
            return
        except Cancelled:
            kept = "; what had come is kept for the next time" if allowed.folders else ""
            yield (note(f"Stopped{kept}."), gr.Button(visible=False), *unchanged)
            return
        (family,) = found
        said = f"{family.title} is loaded, as the family {family.name}. {family.summary}"
        chosen, *others = _choices(self._others + 1)
        names = preselected(family.name, device)
        yield (
            note(said), gr.Button(visible=False), gr.Radio(chosen.choices, value=family.name), *others,
            gr.CheckboxGroup(backend_choices(family.name, device), value=names),
        )  # fmt: skip

    def _adopt(self, wanted: str, allowed: Allowed, progress: Progress) -> catalog.Family:
        """Raises InputError where this visitor may bring none, or named none."""
        if not allowed.hub:
            raise InputError("Models of one's own can be loaded here by the page's owner alone.")
        if not wanted.strip():
            raise InputError("No model is named. Type the name of one, as in deepset/roberta-base-squad2.")
        self._turns.acquire(lambda ahead: progress.say(f"Waiting: {count(ahead, 'model')} ahead of yours …"))
        try:
            return catalog.adopt(wanted, progress, folders=allowed.folders, anonymous=not allowed.folders)
        finally:
            self._turns.release()


def _choices(tabs: int) -> list[Any]:
    return [gr.Radio(family_choices()) for _ in range(tabs)]
