"""Does a step compute what its parent computes? The largest difference between their logits says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from qa_backends.checkpoints.load import read_config
from qa_backends.contract import ReaderSettings, SpanLogits, Windows
from qa_backends.errors import DriftError
from qa_backends.reader.tokens import SubwordTokenizer
from qa_backends.reader.windows import cut

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Forward = Callable[[Windows], SpanLogits]

PROBES = (
    (
        "What stands on the hill?",
        "An old mill stands on the hill, and behind it the river turns towards the sea. " * 12,
    ),
    ("Who keeps the mill?", "Nobody keeps it any more."),
)
"""Two questions of very different length in one batch, so that a step which mishandles padding is caught."""


def compare(step: str, before: Forward, after: Forward, windows: Windows, tolerance: float) -> float:
    """The largest logit difference between the two, as ``logit_difference`` counts it.

    Raises:
        DriftError: it is above the tolerance, or not a number; ``step`` is what the error calls what was compared.
    """
    difference = logit_difference(before(windows), after(windows), windows)
    if not difference <= tolerance:
        raise DriftError(step, difference, tolerance)
    return difference


def logit_difference(before: SpanLogits, after: SpanLogits, windows: Windows) -> float:
    """Largest difference over all tokens that are not padding, relative to the largest logit where that is above 1."""
    real = windows.attention_mask.astype(bool)
    one = np.concatenate([before.start[real], before.end[real]])
    other = np.concatenate([after.start[real], after.end[real]])
    return float(np.abs(one - other).max() / max(1.0, float(np.abs(one).max())))


def probe_windows(checkpoint: Path) -> Windows:
    """The probes as windows of the checkpoint's own length."""
    tokenizer = SubwordTokenizer(checkpoint)
    limit = min(384, int(read_config(checkpoint)["max_position_embeddings"]))
    encoded = tokenizer.encode_many([text for probe in PROBES for text in probe])
    pairs = list(zip(encoded[::2], encoded[1::2], strict=True))
    return cut(pairs, tokenizer.frame, ReaderSettings(max_seq_len=limit, stride=min(128, limit // 3)))
