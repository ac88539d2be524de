"""Many questions to one backend in one turn, each with its own answer or its own error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qa_backends.artefacts.steps import chain_of
from qa_backends.contract import Query
from qa_backends.errors import BackendFailed
from qa_backends.reader.decode import decode
from qa_backends.reader.reader import of_each

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qa_backends.catalog import Backend, Family
    from qa_backends.contract import Answer, SpanLogits
    from qa_backends.reader.reader import Prepared
    from qa_backends.runtime import Runtime, Turn

WELL = Query("Who sang?", "Ada sang in the garden.")
"""What every engine that works can read."""


def batchable(backend: Backend) -> bool:
    """Whether a question's answer is the same in any company."""
    return not any(step.scaled_by_batch for step in chain_of(backend.artefact))


class Together:
    """A backend on a device, asked many questions at once."""

    def __init__(self, runtime: Runtime, family: Family, backend: Backend, device: str) -> None:
        """Builds and loads it; raises what ``Runtime.load`` raises."""
        self.name = f"{family.name}/{backend.name}"
        self.family = family
        self.backend = backend
        self.device = device
        self._runtime = runtime
        loaded = runtime.load(family, backend, device, runtime.progress)
        self.ran, self.reader = loaded.ran, loaded.reader
        with runtime.turn(device) as turn:
            turn.logits(family, backend, self.reader.prepare(WELL).windows)  # the first call is a slow one

    def read(self, prepared: Sequence[Prepared]) -> list[Answer | BackendFailed]:
        """An answer to each, or why there is none; read in one turn, so that nobody's measurement has any part of it.

        A batch that fails is read in halves, until the question to blame fails alone. An engine that no longer reads
        what every engine can is loaded afresh first, once.
        """
        with self._runtime.turn(self.device, timed=False) as turn:
            logits = self._logits(turn, prepared, afresh=True)
        return [self._answer(*each) for each in zip(prepared, logits, strict=True)]

    def _logits(self, turn: Turn, prepared: Sequence[Prepared], *, afresh: bool) -> list[SpanLogits | BackendFailed]:
        try:
            return self._all(turn, prepared)
        except BackendFailed as failure:
            if afresh and not self._well(turn):
                self._runtime.drop(self.family, self.backend.name, self.device)
                return self._logits(turn, prepared, afresh=False)
            if len(prepared) == 1:
                return [failure]
        half = len(prepared) // 2
        return [
            *self._logits(turn, prepared[:half], afresh=afresh),
            *self._logits(turn, prepared[half:], afresh=afresh),
        ]

    def _all(self, turn: Turn, prepared: Sequence[Prepared]) -> list[SpanLogits | BackendFailed]:
        joined = self.reader.join(prepared)
        logits = turn.logits(self.family, self.backend, joined.windows)
        return [own for _, _, own in of_each(joined, logits)]

    def _well(self, turn: Turn) -> bool:
        try:
            turn.logits(self.family, self.backend, self.reader.prepare(WELL).windows)
        except BackendFailed:
            return False
        return True

    def _answer(self, prepared: Prepared, logits: SpanLogits | BackendFailed) -> Answer | BackendFailed:
        if isinstance(logits, BackendFailed):
            return logits
        try:
            return decode(prepared.queries[0], prepared.windows, logits, self.reader.settings)
        except ValueError as error:
            return BackendFailed(f"{self.name} failed while answering: {error}. Ask another backend.")
