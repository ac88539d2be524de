"""The answer chosen from logits is the one a plain search over every span would choose."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qa_backends.contract import Query, ReaderSettings, SpanLogits, Windows
from qa_backends.reader.decode import SPANS_PER_WINDOW, WINDOWS_AT_ONCE, best_of, best_spans, decode
from qa_backends.reader.frame import Frame
from qa_backends.reader.tokens import Tokens
from qa_backends.reader.windows import cut

FRAME = Frame(before=(101,), between=(102,), behind=(102,), pad=0, segments=True)
N_QUESTION = 3
FIRST = FRAME.text_start(N_QUESTION)
"""Where the text begins in a window: behind [CLS], the question and [SEP]."""
LOW = -100.0
"""A logit so small that its spans weigh nothing in a softmax of float64 (exp(-90) is below its precision)."""


def words(n: int) -> tuple[Query, Tokens]:
    """A text of ``n`` words of one letter, and its tokens: word ``i`` is character ``2 * i``."""
    at = np.arange(n, dtype=np.int64)
    return Query("which of them", "x " * n), Tokens(1_000 + at, np.stack([2 * at, 2 * at + 1], axis=-1))


def windows_of(context: Tokens, options: ReaderSettings) -> Windows:
    question = Tokens(np.arange(N_QUESTION, dtype=np.int64) + 1, np.zeros((N_QUESTION, 2), dtype=np.int64))
    return cut([(question, context)], FRAME, options)


def quiet(windows: Windows) -> SpanLogits:
    """Logits that favour nothing but "no answer", which scores 0."""
    start, end = (np.full(windows.input_ids.shape, LOW, dtype=np.float32) for _ in range(2))
    start[:, 0] = end[:, 0] = 0
    return SpanLogits(start, end)


def random_logits(windows: Windows, seed: int) -> SpanLogits:
    rng = np.random.default_rng(seed)
    start, end = rng.normal(0, 4, (2, *windows.input_ids.shape)).astype(np.float32)
    return SpanLogits(start, end)


def every_span(windows: Windows, logits: SpanLogits, row: int, longest: int) -> list[tuple[float, tuple[int, int]]]:
    """All spans a window allows, best first: score and characters."""
    found = []
    for first in range(windows.seq_len):
        for last in range(first, min(first + longest, windows.seq_len)):
            if windows.answerable[row, first] and windows.answerable[row, last]:
                score = float(logits.start[row, first] + logits.end[row, last])
                found.append((score, (int(windows.offsets[row, first, 0]), int(windows.offsets[row, last, 1]))))
    return sorted(found, reverse=True)


def competing(windows: Windows, logits: SpanLogits, options: ReaderSettings) -> dict[tuple[int, int], float]:
    """The spans that share the confidence: each window's 20 best, one seen in several windows with its best score."""
    scores: dict[tuple[int, int], float] = {}
    for row in range(windows.n_windows):
        for score, span in every_span(windows, logits, row, options.max_answer_tokens)[:20]:
            scores[span] = max(score, scores.get(span, -math.inf))
    return scores


def null_of(logits: SpanLogits) -> float:
    return min(float(start[0] + end[0]) for start, end in zip(logits.start, logits.end, strict=True))


@settings(max_examples=80)
@given(
    n_words=st.integers(1, 90),
    max_seq_len=st.integers(16, 40),
    stride=st.integers(0, 9),
    longest=st.integers(1, 12),
    threshold=st.sampled_from([0.0, -6.0, 3.5, 1e9, -1e9]),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_answer_is_the_one_a_search_over_every_span_finds(
    n_words: int, max_seq_len: int, stride: int, longest: int, threshold: float, seed: int
) -> None:
    options = ReaderSettings(max_seq_len, stride, max_answer_tokens=longest, null_threshold=threshold)
    query, context = words(n_words)
    windows = windows_of(context, options)
    logits = random_logits(windows, seed)
    answer = decode(query, windows, logits, options)

    scores = competing(windows, logits, options)
    null = null_of(logits)
    span, score = max(scores.items(), key=lambda each: each[1])
    assert answer.score == score
    assert answer.null_score == null
    chosen = score
    if null - score > threshold:
        chosen = null
        assert (answer.span, answer.text) == (None, "")
    else:
        assert answer.span is not None
        assert (answer.span.start, answer.span.end) == span
        assert answer.text == query.context[span[0] : span[1]]
    total = math.fsum(math.exp(each - chosen) for each in [*scores.values(), null])
    assert answer.confidence == pytest.approx(1 / total, rel=1e-9)


def test_a_text_of_more_windows_than_are_searched_at_once_is_searched_to_its_end() -> None:
    options = ReaderSettings(max_seq_len=16, stride=4)
    query, context = words((2 * WINDOWS_AT_ONCE + 5) * (16 - FIRST - 1 - 4))
    windows = windows_of(context, options)
    assert windows.n_windows > 2 * WINDOWS_AT_ONCE
    logits = random_logits(windows, seed=1)
    scores = competing(windows, logits, options)
    assert best_spans(windows, logits, options) == scores
    logits.start[-1, FIRST] = logits.end[-1, FIRST] = 50
    answer = decode(query, windows, logits, options)
    assert answer.span is not None
    assert answer.span.start == windows.offsets[-1, FIRST, 0]


def test_spans_of_a_window_beyond_the_twentieth_take_no_share_of_the_confidence() -> None:
    options = ReaderSettings(max_answer_tokens=1)
    query, context = words(60)
    windows = windows_of(context, options)
    logits = quiet(windows)
    logits.start[:, FIRST : FIRST + 60] = logits.end[:, FIRST : FIRST + 60] = 0
    assert SPANS_PER_WINDOW == 20
    assert decode(query, windows, logits, options).confidence == pytest.approx(1 / 21)


def test_an_answer_has_thirty_tokens_at_most_however_good_a_longer_one_looks() -> None:
    options = ReaderSettings()
    query, context = words(100)
    windows = windows_of(context, options)
    logits = quiet(windows)
    logits.start[0, FIRST + 10] = 20
    logits.end[0, FIRST + 10 + 30] = 20  # would make 31 tokens
    logits.end[0, FIRST + 10 + 29] = 5
    answer = decode(query, windows, logits, options)
    assert answer.span is not None
    assert answer.score == 25
    assert answer.text.split() == ["x"] * 30
    assert answer.span.start == 2 * 10


def test_an_answer_never_ends_before_it_starts() -> None:
    options = ReaderSettings()
    query, context = words(20)
    windows = windows_of(context, options)
    logits = quiet(windows)
    logits.start[0, FIRST + 9] = 200
    logits.end[0, FIRST + 8] = 200
    answer = decode(query, windows, logits, options)
    assert answer.span is not None
    assert answer.span.end > answer.span.start


def test_an_answer_is_never_taken_from_the_question_the_frame_or_the_padding() -> None:
    options = ReaderSettings(max_seq_len=20, stride=4)
    query, context = words(18)
    windows = windows_of(context, options)
    assert windows.n_windows == 2
    assert windows.lengths[1] < windows.seq_len
    logits = quiet(windows)
    outside = ~windows.answerable
    outside[:, 0] = False
    logits.start[outside] = logits.end[outside] = 1_000
    logits.start[1, FIRST + 5] = logits.end[1, FIRST + 6] = 2
    answer = decode(query, windows, logits, options)
    assert answer.span is not None
    assert answer.score == 4
    assert (answer.span.start, answer.span.end) == (windows.offsets[1, FIRST + 5, 0], windows.offsets[1, FIRST + 6, 1])


@pytest.mark.parametrize("threshold", [0.0, 1.5, -1.5])
def test_no_answer_is_given_only_above_the_threshold_and_a_tie_lets_the_answer_stand(threshold: float) -> None:
    options = ReaderSettings(null_threshold=threshold)
    query, context = words(8)
    windows = windows_of(context, options)
    logits = quiet(windows)
    logits.start[0, FIRST] = logits.end[0, FIRST] = 4
    logits.start[0, 0] = 8 + threshold
    tie = decode(query, windows, logits, options)
    assert tie.null_score - tie.score == threshold
    assert tie.text == "x"
    logits.start[0, 0] = np.nextafter(np.float32(8 + threshold), np.float32(np.inf))
    above = decode(query, windows, logits, options)
    assert (above.text, above.span) == ("", None)
    assert above.score == tie.score, "the best span's score is told although it was not good enough"


@pytest.mark.parametrize("order", permutations([(8, 9), (4, 7), (4, 5), (6, 7)]))
def test_of_spans_as_good_as_each_other_the_first_is_the_answer_and_of_these_the_shortest(
    order: tuple[tuple[int, int], ...],
) -> None:
    assert best_of({**dict.fromkeys(order, 2.0), (0, 1): 1.9}) == ((4, 5), 2.0)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_a_temperature_changes_the_confidence_and_nothing_else(temperature: float) -> None:
    query, context = words(8)
    windows = windows_of(context, ReaderSettings())
    logits = quiet(windows)
    logits.start[0, FIRST] = logits.end[0, FIRST] = 1.5  # 3 together, and 0 for no answer
    plain = decode(query, windows, logits, ReaderSettings())
    found = decode(query, windows, logits, ReaderSettings(temperature=temperature))
    assert found.confidence == pytest.approx(1 / (1 + math.exp(-3 / temperature)), rel=1e-6)
    assert replace(found, confidence=plain.confidence) == plain


def test_confidence_is_that_of_no_answer_where_that_is_the_result() -> None:
    options = ReaderSettings()
    query, context = words(8)
    windows = windows_of(context, options)
    logits = quiet(windows)
    logits.start[0, FIRST] = logits.end[0, FIRST] = -1
    answer = decode(query, windows, logits, options)
    assert answer.span is None
    assert answer.confidence == pytest.approx(1 / (1 + math.exp(-2)), rel=1e-12)


def two_windows() -> tuple[Query, Windows, ReaderSettings]:
    """Fourteen words in windows of ten that share six: words 4 to 9 stand in both, at ``FIRST`` to ``FIRST + 5``
    of the second."""
    options = ReaderSettings(max_seq_len=FIRST + 11, stride=6)
    query, context = words(14)
    windows = windows_of(context, options)
    assert windows.n_windows == 2
    assert windows.offsets[0, FIRST + 4].tolist() == windows.offsets[1, FIRST].tolist()
    return query, windows, options


@pytest.mark.parametrize("better", [0, 1])
def test_a_span_seen_in_two_windows_counts_once_with_its_higher_score(better: int) -> None:
    query, windows, options = two_windows()
    logits = quiet(windows)
    at = (FIRST + 5, FIRST + 1)  # the same word, as either window sees it
    for row, token in enumerate(at):
        logits.start[row, token] = logits.end[row, token] = 1.5 if row == better else 1
    answer = decode(query, windows, logits, options)
    assert answer.score == 3
    assert answer.text == "x"
    assert answer.confidence == pytest.approx(1 / (1 + math.exp(-3)), rel=1e-12)


def test_spans_of_different_windows_compete_with_their_raw_scores() -> None:
    query, windows, options = two_windows()
    logits = quiet(windows)
    logits.start[0, FIRST] = logits.end[0, FIRST] = 2.0  # alone in its window
    # The best of the second window is better, yet has rivals: a softmax within each window would rank it lower.
    for k, gain in enumerate((2.5, 2.4, 2.3)):
        logits.start[1, FIRST + 6 + k] = logits.end[1, FIRST + 6 + k] = gain
    answer = decode(query, windows, logits, options)
    assert answer.span is not None
    assert answer.span.start == windows.offsets[1, FIRST + 6, 0]
    assert answer.score == 5


def test_no_answer_must_win_in_every_window() -> None:
    query, windows, options = two_windows()
    logits = quiet(windows)
    logits.start[0, 0] = 9
    logits.start[1, 0] = 1
    logits.start[1, FIRST + 7] = logits.end[1, FIRST + 7] = 2
    answer = decode(query, windows, logits, options)
    assert answer.null_score == 1
    assert answer.text == "x"


@pytest.mark.parametrize("broken", [0, 1])
def test_a_window_whose_logits_overflowed_is_a_failure_and_no_answer(broken: int) -> None:
    query, windows, options = two_windows()
    logits = quiet(windows)
    logits.start[broken] = np.nan
    with pytest.raises(ValueError, match="not finite"):
        decode(query, windows, logits, options)


def test_ends_that_are_no_numbers_are_a_failure_although_the_starts_are() -> None:
    query, windows, options = two_windows()
    logits = quiet(windows)
    logits.end[windows.answerable] = np.nan
    with pytest.raises(ValueError, match="not finite"):
        decode(query, windows, logits, options)


@pytest.mark.parametrize("padding", [-np.inf, np.nan], ids=["minus infinity", "not a number"])
def test_what_stands_in_the_padding_does_not_matter(padding: float) -> None:
    options = ReaderSettings(max_seq_len=20, stride=4)
    query, context = words(18)
    windows = windows_of(context, options)
    logits = random_logits(windows, seed=3)
    expected = decode(query, windows, logits, options)
    unread = windows.attention_mask == 0
    assert unread.any()
    logits.start[unread] = logits.end[unread] = padding
    assert decode(query, windows, logits, options) == expected


@pytest.mark.parametrize(
    ("context", "token", "expected"),
    [
        ("un cafe\u0301 noir", (3, 7), "cafe\u0301"),
        ("un cafe\u0301", (3, 7), "cafe\u0301"),
        ("cho\u0323\u0302 x", (0, 3), "cho\u0323\u0302"),
        ("\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd x", (0, 1), "\u05e9\u05c1\u05b8"),
        ("un cafe noir", (3, 7), "cafe"),
        ("un caf\u00e9 noir", (3, 7), "caf\u00e9"),
        ("I \u2764\ufe0f it", (2, 3), "\u2764\ufe0f"),
        ("\u0917\u0941\u0930\u0941 x", (0, 3), "\u0917\u0941\u0930\u0941"),
    ],
    ids=[
        "accent before a space", "accent at the end", "two marks", "Hebrew points", "no mark", "composed letter",
        "emoji presentation", "Hindi vowel sign",
    ],
)  # fmt: skip
def test_an_answer_keeps_the_marks_of_its_last_letter(context: str, token: tuple[int, int], expected: str) -> None:
    options = ReaderSettings()
    windows = windows_of(Tokens(np.asarray([1_000]), np.asarray([token])), options)
    logits = quiet(windows)
    logits.start[0, FIRST] = logits.end[0, FIRST] = 4
    answer = decode(Query("what", context), windows, logits, options)
    assert answer.text == expected
    assert answer.span is not None
    assert context[answer.span.start : answer.span.end] == expected
