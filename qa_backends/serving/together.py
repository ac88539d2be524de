"""Many questions to one backend in one turn, each with its own answer or its own error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from qa_backends.artefacts.steps import chain_of
from qa_backends.contract import Query, SpanLogits
from qa_backends.errors import BackendFailed
from qa_backends.reader.decode import decode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qa_backends.catalog import Backend, Family
    from qa_backends.contract import Answer
    from qa_backends.reader.reader import Prepared, Reader
    from qa_backends.runtime import Runtime, Turn

WELL = Query("Who sang?", "Ada sang in the garden.")
"""What every engine that works can read."""


def batchable(backend: Backend) -> bool:
    """Whether a question's answer is the same in any company."""
    return not any(step.scaled_by_batch for step in chain_of(backend.artefact))


class Together:
    """A backend on a device, asked many questions at once."""

    def __init__(self, runtime: Runtime, family: Family, backend: Backend, device: str) -> None:
        """Builds and loads it; raises what ``Runtime.make_ready`` and ``Runtime.get`` raise."""
        self.name = f"{family.name}/{backend.name}"
        self.family = family
        self.backend = backend
        self.device = device
        self._runtime = runtime
        runtime.make_ready(family, backend, device, runtime.progress)
        with runtime.turn(device) as turn:
            self.ran = runtime.get(family, backend, device).ran
            self.reader: Reader = runtime.reader(family)
            turn.logits(family, backend, self.reader.prepare(WELL).windows)  # the first call is a slow one

    def read(self, prepared: Sequence[Prepared]) -> list[Answer | Exception]:
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
        windows = self.reader.join(prepared).windows
        logits = turn.logits(self.family, self.backend, windows)
        ends = np.cumsum([each.windows.n_windows for each in prepared])
        return [
            SpanLogits(logits.start[end - own.n_windows : end, : own.seq_len],
                       logits.end[end - own.n_windows : end, : own.seq_len])
            for end, own in zip(ends, (each.windows for each in prepared), strict=True)
        ]  # fmt: skip

    def _well(self, turn: Turn) -> bool:
        try:
            turn.logits(self.family, self.backend, self.reader.prepare(WELL).windows)
        except BackendFailed:
            return False
        return True

    def _answer(self, prepared: Prepared, logits: SpanLogits | BackendFailed) -> Answer | Exception:
        if isinstance(logits, BackendFailed):
            return logits
        try:
            return decode(prepared.queries[0], prepared.windows, logits, self.reader.settings)
        except ValueError as error:
            return BackendFailed(f"{self.name} failed while answering: {error}. Ask another backend.")
