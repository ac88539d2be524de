"""Answers as transformers' question-answering pipeline ranks them: probabilities instead of logits, the best ``top_k``.

Within one window the scores are the pipeline's own: the product of two softmaxes, over the starts and over the ends of
the context's tokens and of ``[CLS]``. Over several windows the pipeline takes them window by window, so that a weak
span of a window without rivals outscores a strong one; here all windows share one softmax, in which "no answer" takes
part once, by the window that speaks for it least (Devlin et al. 2019, section 4.3).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from qa_backends.reader.decode import top_spans, whole_character

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from qa_backends.contract import FloatArray, SpanLogits, Windows


class Found(TypedDict):
    """One answer; ``start`` and ``end`` are characters of the context, half-open, both 0 for "no answer"."""

    score: float
    start: int
    end: int
    answer: str


def ranked(
    context: str,
    windows: Windows,
    logits: SpanLogits,
    *,
    top_k: int,
    max_answer_len: int,
    handle_impossible_answer: bool,
    within_word: Callable[[int], bool] | None,
) -> list[Found]:
    """The ``top_k`` best answers of one query's windows, best first; fewer where the text has no more.

    Spans of the same text, whatever its case, are one answer with the sum of their scores. With ``within_word``, which
    says whether a token goes on with the word before it, answers are widened to whole words.

    Raises:
        ValueError: the logits are infinite or not numbers, as after an overflow in FP16.
    """
    null = logits.start[:, 0] + logits.end[:, 0]
    of_starts = _log_sum(logits.start, windows.answerable, int(null.argmin()))
    of_ends = _log_sum(logits.end, windows.answerable, int(null.argmin()))
    if not (math.isfinite(of_starts) and math.isfinite(of_ends)):
        raise ValueError("the model's logits are not finite")
    # As many as the pipeline looks at, since spans that become the same answer add up.
    count = top_k * 2 + 10 if within_word else top_k
    best = sorted(top_spans(windows, logits, max_answer_len, count), key=lambda each: (-each[3], each[:3]))
    found: dict[str, Found] = {}
    for window, first, last, score in best:
        if within_word:
            first, last = _whole_words(windows, window, first, last, within_word)
        start, end = int(windows.offsets[window, first, 0]), int(windows.offsets[window, last, 1])
        if start >= end:  # white space alone
            continue
        text = context[start : (end := whole_character(context, end))]
        answer = found.setdefault(text.lower(), Found(score=0.0, start=start, end=end, answer=text))
        answer["score"] += math.exp(score - of_starts - of_ends)
    answers = list(found.values())
    if handle_impossible_answer or not answers:
        answers.append(Found(score=math.exp(float(null.min()) - of_starts - of_ends), start=0, end=0, answer=""))
    return sorted(answers, key=lambda each: -each["score"])[:top_k]


def _log_sum(logits: FloatArray, answerable: NDArray[np.bool_], null_window: int) -> float:
    """The logarithm of what a softmax over the context's tokens and one ``[CLS]`` divides by."""
    competing = np.append(logits[answerable], logits[null_window, 0]).astype(np.float64)
    with np.errstate(invalid="ignore"):  # what is no number is told by the sum
        return float(np.logaddexp.reduce(competing))


def _whole_words(
    windows: Windows, window: int, first: int, last: int, within_word: Callable[[int], bool]
) -> tuple[int, int]:
    """The span widened to the words it begins and ends in, as far as the window holds them."""
    ids, answerable = windows.input_ids[window], windows.answerable[window]
    while answerable[first - 1] and within_word(int(ids[first])):
        first -= 1
    while last + 1 < len(ids) and answerable[last + 1] and within_word(int(ids[last + 1])):
        last += 1
    return first, last
