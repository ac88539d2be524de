"""Logits to an answer: the best span over all windows, against "no answer"."""

from __future__ import annotations

import math
import unicodedata
from typing import TYPE_CHECKING

import numpy as np

from qa_backends.contract import Answer, FloatArray, Query, ReaderSettings, Span, SpanLogits, Windows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

SPANS_PER_WINDOW = 20
"""How many spans of a window compete for confidence; the n-best size of the SQuAD evaluation scripts."""
WINDOWS_AT_ONCE = 64
"""Bounds the score table of a long text to ``64 x seq_len x max_answer_tokens`` floats."""
LOWEST = np.float32(-np.inf)


def decode(query: Query, windows: Windows, logits: SpanLogits, settings: ReaderSettings) -> Answer:
    """The answer to ``query``, given the logits of all its windows and of nothing else.

    Scores are sums of raw logits, comparable across windows; a softmax within each window, as pipelines take, is not.
    A text without a single token has no answer.

    Raises:
        ValueError: the logits are infinite or not numbers, as after an overflow in FP16.
    """
    null, scores = competing(windows, logits, settings)
    if not scores:
        return Answer("", None, float("-inf"), null, 1.0)
    (start, end), score = best_of(scores)
    answered = null - score <= settings.null_threshold
    confidence = _share(score if answered else null, [*scores.values(), null], settings.temperature)
    if not answered:
        return Answer("", None, score, null, confidence)
    span = Span(start, whole_character(query.context, end))
    return Answer(query.context[span.start : span.end], span, score, null, confidence)


def competing(
    windows: Windows, logits: SpanLogits, settings: ReaderSettings
) -> tuple[float, dict[tuple[int, int], float]]:
    """The score of "no answer" and those of the best spans, as ``best_spans`` has them: what the answer is chosen from.

    Raises:
        ValueError: the logits are infinite or not numbers, as after an overflow in FP16.
    """
    null = null_score(logits)
    scores = best_spans(windows, logits, settings)
    if not math.isfinite(null) or not (scores or _finite(windows, logits)):
        raise ValueError("the model's logits are not finite")
    return null, scores


def _finite(windows: Windows, logits: SpanLogits) -> bool:
    """Whether all logits of the text are."""
    return all(bool(np.isfinite(each[windows.answerable]).all()) for each in (logits.start, logits.end))


def null_score(logits: SpanLogits) -> float:
    """Of "no answer", by the window that speaks for it least (Devlin et al. 2019, section 4.3)."""
    sums = logits.start[:, 0] + logits.end[:, 0]
    return float(sums[0] if len(sums) == 1 else sums.min())  # most texts make one window, and a reduction takes 20 µs


def best_of(scores: Mapping[tuple[int, int], float]) -> tuple[tuple[int, int], float]:
    """The span of the highest score, with that; of equals the first, and of these the shortest."""
    return min(scores.items(), key=lambda each: (-each[1], each[0]))


def best_spans(windows: Windows, logits: SpanLogits, settings: ReaderSettings) -> dict[tuple[int, int], float]:
    """Scores of the best spans of each window, by the characters, half-open, that they cover.

    A span seen twice counts once, with its higher score: in overlapping windows, or by tokens that share a character.
    """
    scores: dict[tuple[int, int], float] = {}
    for window, first, last, score in top_spans(windows, logits, settings.max_answer_tokens, SPANS_PER_WINDOW):
        span = windows.offsets.item(window, first, 0), windows.offsets.item(window, last, 1)
        if span[0] < span[1]:  # a span of white space is none
            scores[span] = max(score, scores.get(span, score))
    return scores


def top_spans(windows: Windows, logits: SpanLogits, widest: int, count: int) -> Iterator[tuple[int, int, int, float]]:
    """The ``count`` best spans of each window, of at most ``widest`` tokens, unsorted: the window, the span's first and
    last token in it, and start logit + end logit."""
    for done in range(0, windows.n_windows, WINDOWS_AT_ONCE):
        at = slice(done, done + WINDOWS_AT_ONCE)
        for window, first, last, score in _top_of(
            windows.answerable[at], logits.start[at], logits.end[at], min(widest, windows.seq_len), count
        ):
            yield done + window, first, last, score


def _top_of(
    answerable: NDArray[np.bool_], start: FloatArray, end: FloatArray, widest: int, count: int
) -> Iterator[tuple[int, int, int, float]]:
    """Of a few windows, by a table of every start and every length at once.

    One question's decoding is a dozen small steps, each on code and data that the model has just pushed out of the
    caches; so steps are few, and the winners, being few, are read in plain Python.
    """
    n, seq_len = start.shape
    starts = np.where(answerable, start, LOWEST)
    ends = np.full((n, seq_len + widest - 1), LOWEST)
    np.copyto(ends[:, :seq_len], end, where=answerable)
    # following[w, s, k] is ends[w, s + k], so table[w, s * widest + k] is the span from token s to token s + k.
    row, step = ends.strides
    following = np.ndarray((n, seq_len, widest), ends.dtype, ends, strides=(row, step, step))
    table = (starts[:, :, None] + following).reshape(n, -1)
    count = min(count, table.shape[1])
    top = table.argpartition(table.shape[1] - count, axis=1)[:, -count:]
    for window, places in enumerate(top.tolist()):
        for place in places:
            score = table.item(window, place)
            if math.isfinite(score):
                first, length = divmod(place, widest)
                yield window, first, first + length, score


def _share(score: float, against: Sequence[float], temperature: float) -> float:
    """``score``'s part of a softmax over ``against``, which holds it."""
    highest = max(against)
    whole = math.fsum(math.exp((each - highest) / temperature) for each in against)
    return math.exp((score - highest) / temperature) / whole


def whole_character(context: str, end: int) -> int:
    """``end`` moved past marks of the last letter (category Mn), which a tokenizer that strips accents leaves out."""
    while end < len(context) and unicodedata.category(context[end]) == "Mn":
        end += 1
    return end
