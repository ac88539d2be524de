"""A fake engine: answers without a model, for tests and for trying the app's own cost and behaviour.

It reads the embedded checkpoints like any other engine, so that everything around an engine can be exercised; what it
answers is a word by its place in the text, and means nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from qa_backends.checkpoints.files import WEIGHTS
from qa_backends.checkpoints.manifest import file_hash
from qa_backends.contract import Choice, Engine, Ran, SpanLogits, Windows

if TYPE_CHECKING:
    from pathlib import Path

LOGIT = 5.0


class Fake(Engine):
    """Finds the first token of the text, or the last one with the option ``place=last``."""

    title: ClassVar = "Fake"
    short: ClassVar = "fake"
    label: ClassVar = "Fake"
    packages: ClassVar = ()
    reads: ClassVar = ("checkpoint",)
    devices: ClassVar = ("cpu",)
    options: ClassVar = {"place": {"last": Choice("last token")}}
    tolerance: ClassVar = float("inf")

    def load(self, artefact: Path, device: str) -> None:
        self._hash = file_hash(artefact / WEIGHTS)
        self._device = device

    def forward(self, windows: Windows) -> SpanLogits:
        logits = np.zeros(windows.input_ids.shape, dtype=np.float32)
        for row, answerable in enumerate(windows.answerable):
            places = np.flatnonzero(answerable)
            if len(places):
                logits[row, places[-1 if self.chosen.get("place") == "last" else 0]] = LOGIT
        return SpanLogits(logits, logits.copy())

    def describe(self) -> Ran:
        return Ran(
            device=self._device.upper(),
            provider="Fake",
            precision="none",
            threads=1,
            fused_ops={},
            file_hash=self._hash,
            versions={},
            notes=("no model ran: the answer is a word by its place in the text",),
        )

    def close(self) -> None:
        del self._hash
