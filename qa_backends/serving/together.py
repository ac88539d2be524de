"""Many questions to one backend in one turn, each with its own answer or its own error."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from qa_backends.contract import Query
from qa_backends.errors import BackendFailed
from qa_backends.reader.decode import decode
from qa_backends.reader.reader import of_each, run_in_batches

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from qa_backends.catalog import Backend, Family
    from qa_backends.contract import Answer, IntArray, SpanLogits, Windows
    from qa_backends.progress import Progress
    from qa_backends.reader.reader import Prepared
    from qa_backends.runtime import Runtime, Turn

WELL = Query("Who sang?", "Ada sang in the garden.")
"""What every engine that works can read."""


SLICE_TOKENS = 32 * 384
"""Of a turn, padding included: what a batch of usual questions has at most."""


def slices(windows: Windows) -> list[IntArray]:
    """Rows of the windows that are read in one turn each."""
    return np.array_split(np.arange(windows.n_windows), math.ceil(windows.n_windows * windows.seq_len / SLICE_TOKENS))


class Together:
    """A backend on a device, asked many questions at once."""

    def __init__(
        self, runtime: Runtime, family: Family, backend: Backend, device: str, *, kept_chars: int = 0,
        progress: Progress | None = None,
    ) -> None:  # fmt: skip
        """Builds and loads it; raises what ``Runtime.load`` raises. Of texts of ``kept_chars``, tokens are kept;
        ``progress`` hears of what is made, in place of the runtime's own."""
        self.name = f"{family.name}/{backend.name}"
        self.family = family
        self.backend = backend
        self.device = device
        self._runtime = runtime
        loaded = runtime.load(family, backend, device, progress or runtime.progress)
        self.ran, self.reader = loaded.ran, loaded.reader.keeping(kept_chars)
        with runtime.turn(device) as turn:
            turn.logits(family, backend, self.reader.prepare(WELL).windows)  # the first call is a slow one

    def read(self, prepared: Sequence[Prepared]) -> list[Answer | BackendFailed]:
        """An answer to each, or why there is none.

        Read in turns in which nothing is timed, so that nobody's measurement has any part of it, and a slice of windows
        in each, so that others get theirs in between however long a text is. A batch that fails is read in halves,
        until the question to blame fails alone. An engine that no longer reads what every engine can is loaded afresh
        first, and the batch is read again as it is, once: what broke the engine may be none of the questions.
        """
        logits = self._logits(prepared, again=True)
        return [self._answer(*each) for each in zip(prepared, logits, strict=True)]

    def _logits(self, prepared: Sequence[Prepared], *, again: bool) -> list[SpanLogits | BackendFailed]:
        try:
            return self._all(prepared)
        except BackendFailed as failure:
            if not self._well():
                with self._turn():
                    self._runtime.drop(self.family, self.backend.name, self.device)
                if again:
                    return self._logits(prepared, again=False)
                if not self._well():
                    return [failure] * len(prepared)
            if len(prepared) == 1:
                return [failure]
        half = len(prepared) // 2
        return [*self._logits(prepared[:half], again=again), *self._logits(prepared[half:], again=again)]

    def _all(self, prepared: Sequence[Prepared]) -> list[SpanLogits | BackendFailed]:
        joined = self.reader.join(prepared)
        logits, _ = run_in_batches(self._slice, joined.windows, slices)
        return [own for _, _, own in of_each(joined, logits)]

    def _slice(self, windows: Windows) -> SpanLogits:
        with self._turn() as turn:
            return turn.logits(self.family, self.backend, windows)

    def _turn(self) -> AbstractContextManager[Turn]:
        return self._runtime.turn(self.device, timed=False)

    def _well(self) -> bool:
        try:
            self._slice(self.reader.prepare(WELL).windows)
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
