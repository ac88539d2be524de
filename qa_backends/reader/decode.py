"""Logits to an answer: the best span over all windows, against "no answer"."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from qa_backends.contract import Answer, FloatArray, IntArray, Query, ReaderSettings, Span, SpanLogits, Windows

if TYPE_CHECKING:
    from numpy.typing import NDArray

SPANS_PER_WINDOW = 20
"""How many spans of a window compete for confidence; the n-best size of the SQuAD evaluation scripts."""
WINDOWS_AT_ONCE = 64
"""Bounds the score table of a long text to ``64 x seq_len x max_answer_tokens`` floats."""


def decode(query: Query, windows: Windows, logits: SpanLogits, settings: ReaderSettings) -> Answer:
    """The answer to ``query``, given the logits of all its windows and of nothing else.

    Scores are sums of raw logits, comparable across windows; a softmax within each window, as pipelines take, is not.
    A text without a single token has no answer.

    Raises:
        ValueError: the logits are infinite or not numbers, as after an overflow in FP16.
    """
    null_score = float((logits.start[:, 0] + logits.end[:, 0]).min())
    if not windows.answerable.any():
        return Answer("", None, float("-inf"), null_score, 1.0)
    spans, scores = best_spans(windows, logits, settings)
    if len(scores) == 0 or not np.isfinite(null_score):
        raise ValueError("the model's logits are not finite")
    best = np.lexsort((spans[:, 1], spans[:, 0], -scores))[0]  # of equal scores the first and shortest
    score = float(scores[best])
    answered = null_score - score <= settings.null_threshold
    confidence = _share(score if answered else null_score, np.append(scores, np.float32(null_score)))
    if not answered:
        return Answer("", None, score, null_score, confidence)
    span = Span(int(spans[best, 0]), _whole_character(query.context, int(spans[best, 1])))
    return Answer(query.context[span.start : span.end], span, score, null_score, confidence)


def best_spans(windows: Windows, logits: SpanLogits, settings: ReaderSettings) -> tuple[IntArray, FloatArray]:
    """The best spans of each window: character offsets ``[n, 2]`` and scores ``[n]``.

    A span seen twice counts once, with its higher score: in overlapping windows, or by tokens that share a character.
    """
    found = [
        _best_of(windows.offsets[at], windows.answerable[at], logits.start[at], logits.end[at], settings)
        for first in range(0, windows.n_windows, WINDOWS_AT_ONCE)
        for at in (slice(first, first + WINDOWS_AT_ONCE),)
    ]
    spans = np.concatenate([each for each, _ in found])
    scores = np.concatenate([each for _, each in found])
    order = np.argsort(-scores, kind="stable")
    _, first_seen = np.unique(spans[order, 0] << 32 | spans[order, 1], return_index=True)
    keep = order[first_seen]
    return spans[keep], scores[keep]


def _best_of(
    offsets: IntArray, answerable: NDArray[np.bool_], start: FloatArray, end: FloatArray, settings: ReaderSettings
) -> tuple[IntArray, FloatArray]:
    """``best_spans`` of a few windows, by a table of every start and every length at once."""
    n, seq_len = start.shape
    widest = min(settings.max_answer_tokens, seq_len)
    low = np.float32(-np.inf)
    starts = np.where(answerable, start, low)
    ends = np.pad(np.where(answerable, end, low), ((0, 0), (0, widest - 1)), constant_values=low)
    # table[w, s, k]: the score of the span in window w from token s to token s + k.
    table = (starts[:, :, None] + sliding_window_view(ends, widest, axis=1)).reshape(n, -1)
    count = min(SPANS_PER_WINDOW, table.shape[1])
    top = np.argpartition(table, table.shape[1] - count, axis=1)[:, -count:]
    scores = np.take_along_axis(table, top, axis=1)
    first, length = np.divmod(top, widest)
    window, _ = real = np.nonzero(np.isfinite(scores))
    spans = np.stack([offsets[window, first[real], 0], offsets[window, first[real] + length[real], 1]], axis=-1)
    return spans, scores[real]


def _share(score: float, against: FloatArray) -> float:
    """``score``'s part of a softmax over ``against``, which holds it."""
    return float(1.0 / np.exp(against.astype(np.float64) - score).sum())


def _whole_character(context: str, end: int) -> int:
    """``end`` moved past marks of the last letter (category Mn), which a tokenizer that strips accents leaves out."""
    while end < len(context) and unicodedata.category(context[end]) == "Mn":
        end += 1
    return end
