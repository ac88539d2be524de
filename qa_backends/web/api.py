"""The app's endpoints for programs: named values in, JSON out."""

from __future__ import annotations

from collections.abc import Generator, Iterator  # at run time too: Gradio reads the signatures of what it calls
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import gradio as gr
from pydantic import TypeAdapter, ValidationError

from qa_backends import catalog
from qa_backends.asking.answer import answer_json
from qa_backends.asking.ask import LIVE_SECONDS, Asking, ask
from qa_backends.asking.comparison import comparison_of
from qa_backends.contract import Query, valid_text
from qa_backends.errors import InputError, QAError
from qa_backends.limits import devices
from qa_backends.web.shared.worker import Worker

if TYPE_CHECKING:
    from qa_backends.runtime import Runtime

MOST_SECONDS = 60.0
"""Of turns that a program may ask for, so that others get theirs."""
NAMES = ("question", "context", "backends", "family", "device", "seconds")
Given = tuple[str, str, list[str] | None, str, str, float]
"""What the endpoints take, by ``NAMES``."""


class Endpoints:
    """What ``gradio_client`` reaches under the functions' names.

    What they give last is the answer. Before it they give ``None`` now and then: only between two of what an endpoint
    gives does Gradio end the work of a client that has left.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def answer(
        self, question: str, context: str, backend: str = "", family: str = "", device: str = ""
    ) -> Iterator[dict[str, Any] | None]:
        """Finds the answer to a question in a text, by one backend; says so where the text holds none.

        Args:
            question: what to ask, up to 2,000 characters.
            context: the text that is searched, up to 200,000 characters.
            backend: a name such as baseline, pruned or pruned-ort-fp16; empty for the family's usual faster one.
            family: of models; empty for the default one.
            device: cpu or cuda; empty for the default one.
        """
        found = yield from self._asked(question, context, [backend], family, device, 0.0)
        (outcome,) = found.outcomes
        if outcome.reading is None:
            raise gr.Error(outcome.error or "The backend gave no answer.", print_exception=False)
        yield answer_json(outcome.reading, outcome.cold_s)

    def ask(
        self,
        question: str,
        context: str,
        backends: list[str] | None = None,
        family: str = "",
        device: str = "",
        seconds: float = LIVE_SECONDS,
    ) -> Iterator[dict[str, Any] | None]:
        """Asks several backends and measures them: for each the answer, times, ratio and quality, and the fastest.

        Args:
            question: what to ask, up to 2,000 characters.
            context: the text that is searched, up to 200,000 characters.
            backends: names such as baseline, pruned and pruned-ort-fp16; baseline among them is what the others are
                compared with. Left out for the family's usual ones.
            family: of models; empty for the default one.
            device: cpu or cuda; empty for the default one.
            seconds: that the backends take turns at most; 0 gives single readings. Times are in milliseconds.
        """
        asked = yield from self._asked(question, context, backends, family, device, seconds)
        found = asdict(comparison_of(asked))
        yield {key: value for key, value in found.items() if key not in ("status", "recorded")}

    def _asked(
        self, question: str, context: str, backends: list[str] | None, family: str, device: str, seconds: float
    ) -> Generator[None, None, Asking]:
        """Raises gr.Error with the sentence of whatever stands in the way."""
        try:
            seconds = _checked(question, context, backends, family, device, seconds)
            if not 0 <= seconds <= MOST_SECONDS:
                raise InputError(f"The backends can take turns for 0 to {MOST_SECONDS:.0f} seconds, not {seconds:g}.")
            if backends is None:
                backends = list(catalog.usual(catalog.family(family or catalog.default_family())))
            # Each name once: looking one up takes milliseconds, and a program may send a hundred thousand of them.
            resolved = [catalog.resolve(name, family or None) for name in dict.fromkeys(backends)]
            families = {of.name: of for of, _ in resolved}
            if len(families) > 1:
                raise InputError("The backends are of several families. Ask one family at a time.")
            of = next(iter(families.values()), None) or catalog.family(family or catalog.default_family())
            chosen = catalog.ladder(each for _, each in resolved)
            query = Query(valid_text(question), valid_text(context))  # half an emoji could not be sent back
            where, found = device or devices()[0], list[Asking]()
            for _ in Worker[Asking](
                lambda put: found.append(ask(self._runtime, of, chosen, query, where, seconds=seconds, emit=put)),
                lambda state: state.timing,
            ):
                yield None
            return found[0]
        except QAError as error:
            raise gr.Error(str(error), print_exception=False) from error


def _checked(*given: Any) -> float:
    """The seconds, of values that came as JSON: whatever a program sends, not what the signature says.

    Raises:
        InputError: one is of another kind than it should be.
    """
    try:
        return TypeAdapter(Given).validate_python(given)[-1]
    except ValidationError as error:
        first = error.errors()[0]
        place, *within = first["loc"]
        name = "backend" if within and isinstance(within[-1], int) else NAMES[int(place)]
        raise InputError(f"'{name}' cannot be read: {first['msg'].lower()}.") from error
