"""Whatever the text holds, an answer is exactly the characters it stands at; what cannot be read is said in a sentence.

The model here is a stand-in that knows where one word is, so that what is tested is everything but the model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view

from qa_backends.contract import (
    ALWAYS_ANSWERS,
    DEFAULT_SETTINGS,
    Answer,
    IntArray,
    Query,
    ReaderSettings,
    SpanLogits,
    Windows,
)
from qa_backends.errors import InputError
from qa_backends.progress import Cancelled
from qa_backends.reader.reader import MAX_CONTEXT_CHARS, MAX_QUESTION_CHARS, Prepared, Reader, run_in_batches
from qa_backends.reader.tokens import SubwordTokenizer
from qa_backends.reader.windows import by_count, by_tokens, padding_share

Forward = Callable[[Windows], SpanLogits]
Split = Callable[[Windows], Iterable[IntArray]]

BASELINE = Path(__file__).resolve().parents[2] / "assets" / "models" / "minilm" / "baseline"
WORDS = SubwordTokenizer(BASELINE)
QUESTION = "How do you reach Zanzibar?"
SENTENCE = "You reach Zanzibar, an island, by ferry."
FILLER = "The harbour was quiet that year, and nobody asked why. "
SMALL = ReaderSettings(max_seq_len=32, stride=10)
"""Windows so small that a few words fill several."""


def finds(word: str) -> Forward:
    """A model that is sure of every place where the pieces of ``word`` stand, in the question too."""
    ids = WORDS.encode(word).ids

    def forward(windows: Windows) -> SpanLogits:
        start, end = (np.zeros(windows.input_ids.shape, dtype=np.float32) for _ in range(2))
        start[:, 0] = end[:, 0] = 1
        row, first = np.nonzero((sliding_window_view(windows.input_ids, len(ids), axis=1) == ids).all(axis=-1))
        start[row, first] = end[row, first + len(ids) - 1] = 10
        return SpanLogits(start, end)

    return forward


FINDS_ZANZIBAR = finds("zanzibar")


def ask(
    context: str,
    question: str = QUESTION,
    forward: Forward = FINDS_ZANZIBAR,
    options: ReaderSettings = DEFAULT_SETTINGS,
) -> Answer:
    reader = Reader(WORDS, options)
    (answer,) = reader.read(reader.prepare(Query(question, context)), forward).answers
    return answer


def place(answer: Answer) -> tuple[int, int]:
    assert answer.span is not None
    return answer.span.start, answer.span.end


@pytest.mark.parametrize(
    "word", ["zanzibar", "Zanzibar", "ZANZIBAR", "Z\u00e1nz\u00edb\u00e0r", "Za\u0301nzi\u0300bar", "Zanzibar\u0301"]
)
@pytest.mark.parametrize(
    ("before", "after"),
    [("", ""), ("to ", " by ferry"), ("(", ")"), ("\u201c", "\u201d."), ("\r\n", "\r\n"), ("\u4e2d", "\u56fd"),
     ("\U0001f6a2\U0001f44d\U0001f3fd ", " \U0001f680"), ("\u0634\u0627\u0637\u0626 ", " \u05d9\u05dd"),
     ("\x07\x00", "\x1b"), ("\u00a0", "\u3000")],
    ids=["alone", "words", "brackets", "quotes", "line ends", "Chinese", "emoji", "right to left", "control", "spaces"],
)  # fmt: skip
def test_the_answer_is_exactly_the_word_whatever_stands_beside_it(word: str, before: str, after: str) -> None:
    answer = ask(before + word + after)
    assert answer.text == word
    assert place(answer) == (len(before), len(before) + len(word))


@pytest.mark.parametrize("word", ["\u2764\ufe0f", "\u0917\u0941\u0930\u0941"], ids=["red heart", "Hindi"])
def test_the_answer_keeps_the_marks_that_the_tokenizer_drops(word: str) -> None:
    assert ask(f"The sign {word} means more.", "Which sign?", finds(word)).text == word


def test_the_word_in_the_question_is_not_the_answer() -> None:
    answer = ask("You take the ferry.")
    assert answer.text == ""
    assert answer.score == 0


ANYTHING = st.text(st.characters(exclude_categories=())) | st.lists(
    st.sampled_from([
        "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f44d\U0001f3fd", "\u2764\ufe0f", "e\u0301", "\u0301\u0323",
        "\r\n", "\t", "\x00", "\x1b[0m", "\u200b", "\ufeff", "\u202e\u05e9\u05dc\u05d5\u05dd\u202c",
        "\u0645\u0631\u062d\u0628\u0627", "\u4e2d\u56fd", "\ud55c\uad6d\uc5b4", "\u0939\u093f\u0902\u0926\u0941",
        "\ufdfa", "\u0130", "\u1e9e", "\ufb03", "\ud800", "\udfff", "[SEP]", "[CLS]", "[PAD]", "a" * 300, "word ", "!?",
    ]),
    max_size=40,
).map("".join)  # fmt: skip


@pytest.mark.parametrize("options", [DEFAULT_SETTINGS, SMALL], ids=["one window", "several windows"])
@settings(max_examples=150)
@given(prefix=ANYTHING)
@example(prefix="\U0001f44d" * 50)
@example(prefix="e\u0301" * 50)
@example(prefix="line\r\n" * 50)
@example(prefix="\u202e\u0645\u0631\u062d\u0628\u0627 " * 50)
@example(prefix="\u4e2d\u56fd" * 50)
@example(prefix="\x00\x01\x7f" * 50)
@example(prefix="\ud83d\ude00" * 50)
def test_text_put_in_front_moves_the_answer_by_its_length_and_changes_nothing_else(
    options: ReaderSettings, prefix: str
) -> None:
    alone, behind = ask(SENTENCE, options=options), ask(f"{prefix} {SENTENCE}", options=options)
    start, end = place(alone)
    assert SENTENCE[start:end] == alone.text == behind.text == "Zanzibar"
    assert place(behind) == (start + len(prefix) + 1, end + len(prefix) + 1)
    assert behind.score == alone.score


@settings(max_examples=150)
@given(context=ANYTHING, question=ANYTHING)
def test_any_text_is_answered_from_its_own_characters_or_refused_with_a_sentence(context: str, question: str) -> None:
    def forward(windows: Windows) -> SpanLogits:
        start, end = np.sin(np.stack([windows.input_ids * 1.7, windows.input_ids * 2.3])).astype(np.float32)
        start[:, 0] = end[:, 0] = -9
        return SpanLogits(start, end)

    try:
        answer = ask(context, question, forward, SMALL if len(WORDS.encode(question)) < 16 else DEFAULT_SETTINGS)
    except InputError as error:
        assert str(error).count(".") >= 2
        return
    start, end = place(answer)
    assert 0 <= start < end <= len(context)
    assert answer.text == context[start:end]
    assert 0 < answer.confidence <= 1


def long_text(n_chars: int, at: int) -> str:
    """``n_chars`` characters of filler, with the word at ``at``."""
    text = (FILLER * (n_chars // len(FILLER) + 1))[:n_chars]
    return text[:at] + " Zanzibar " + text[at + 10 :]


@pytest.mark.parametrize("at", [0, 50_000, 99_990], ids=["start", "middle", "end"])
def test_the_answer_is_found_anywhere_in_a_hundred_thousand_characters(at: int) -> None:
    text = long_text(100_000, at)
    assert len(text) == 100_000
    answer = ask(text)
    assert answer.text == "Zanzibar"
    assert place(answer) == (at + 1, at + 9)


def test_a_text_of_the_largest_size_allowed_is_read() -> None:
    assert ask(long_text(MAX_CONTEXT_CHARS, MAX_CONTEXT_CHARS - 10)).text == "Zanzibar"


def test_time_grows_with_the_text_and_not_with_its_square() -> None:
    def seconds(n_chars: int) -> float:
        text = long_text(n_chars, n_chars // 2)
        took = []
        for _ in range(3):
            began = time.process_time()  # of this process alone: what else the machine does is no matter
            ask(text)
            took.append(time.process_time() - began)
        return min(took)

    ask(long_text(50_000, 0))
    assert seconds(100_000) / seconds(50_000) < 3  # linear gives 2, the square 4
    assert seconds(200_000) / seconds(50_000) < 8  # linear gives 4, the square 16


def test_a_question_over_its_limit_is_cut_with_a_notice_and_still_answered() -> None:
    reader = Reader(WORDS)
    prepared = reader.prepare(Query("where " * 60 + "why " * 40, SENTENCE))
    (answer,) = reader.read(prepared, FINDS_ZANZIBAR).answers
    assert answer.text == "Zanzibar"
    (notice,) = prepared.notices
    assert "100" in notice
    assert "64" in notice
    read = prepared.windows.input_ids[0, 1:66].tolist()
    assert read == [*WORDS.encode("where " * 60 + "why " * 4).ids, *WORDS.frame.between]


@pytest.mark.parametrize("n_tokens", [1, 64])
def test_a_question_within_its_limit_brings_no_notice(n_tokens: int) -> None:
    assert Reader(WORDS).prepare(Query("where " * n_tokens, SENTENCE)).notices == ()


@pytest.mark.parametrize(
    ("question", "context", "what", "advice"),
    [
        (QUESTION, "", "no text", "Paste a text"),
        (QUESTION, " \t\r\n\u3000\u00a0", "no text", "Paste a text"),
        ("", SENTENCE, "no question", "Type one"),
        (" \n ", SENTENCE, "no question", "Type one"),
        (QUESTION, "a" * 200_001, "200,001", "Shorten"),
        ("a" * (MAX_QUESTION_CHARS + 1), SENTENCE, "2,001", "Shorten"),
        (QUESTION, "\u200b\x00", "text", "Write it in words"),
        ("\u200b\x00", SENTENCE, "question", "Write it in words"),
        (QUESTION, "\u0301\ufe0f", "text", "Write it in words"),
    ],
    ids=["empty text", "blank text", "empty question", "blank question", "text too long", "question too long",
         "text of nothing readable", "question of nothing readable", "text of marks only"],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_a_sentence_that_says_what_to_do(
    question: str, context: str, what: str, advice: str
) -> None:
    with pytest.raises(InputError) as refusal:
        ask(context, question)
    assert what in str(refusal.value)
    assert advice in str(refusal.value)


@pytest.mark.parametrize("half", ["\ud83d", "\udc00", "\ud83d\ude00", "\ude00\ud83d"])
def test_half_characters_do_no_harm_wherever_they_stand(half: str) -> None:
    question = f"How {half} Zanzibar{half}"
    assert ask(half, question, lambda windows: finds(half)(windows)).text == half
    answer = ask(f"{half}to {half} Zanzibar{half}", question)
    assert answer.text == "Zanzibar"
    assert place(answer) == (2 * len(half) + 4, 2 * len(half) + 12)


@pytest.mark.parametrize("max_tokens", [1, 33, 100, 10**9])
def test_logits_are_the_same_however_the_windows_are_batched(max_tokens: int) -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(2, 40_000)).astype(np.float32)
    sizes = []

    def forward(windows: Windows) -> SpanLogits:
        sizes.append(windows.n_windows * windows.seq_len)
        return SpanLogits(table[0, windows.input_ids], table[1, windows.input_ids])

    reader = Reader(WORDS, SMALL)
    queries = [Query(QUESTION, FILLER * n) for n in (1, 12, 2, 1, 5)]
    windows = reader.prepare_all(queries).windows
    assert windows.lengths.tolist() != sorted(windows.lengths, reverse=True)
    real = windows.attention_mask == 1
    expected = forward(windows)
    sizes.clear()
    logits, computed = run_in_batches(forward, windows, partial(by_tokens, max_tokens=max_tokens))
    assert logits.start[real].tolist() == expected.start[real].tolist()
    assert logits.end[real].tolist() == expected.end[real].tolist()
    assert all(size <= max(max_tokens, windows.seq_len) for size in sizes)
    assert [n_windows * seq_len for n_windows, seq_len in computed] == sizes


def test_what_an_engine_pads_for_itself_is_told_and_counted() -> None:
    def forward(windows: Windows) -> SpanLogits:
        logits = FINDS_ZANZIBAR(windows)
        return SpanLogits(logits.start, logits.end, computed=(4, 384))

    reader = Reader(WORDS)
    prepared = reader.prepare(Query(QUESTION, SENTENCE))
    read = reader.read(prepared, forward)
    assert read.answers[0].text == "Zanzibar"
    assert read.computed == ((4, 384),)
    assert padding_share(prepared.windows, read.computed) == 1 - prepared.windows.lengths[0] / (4 * 384)
    assert padding_share(prepared.windows, reader.read(prepared, FINDS_ZANZIBAR).computed) == 0


def test_waiting_for_the_device_is_counted_apart_from_the_work() -> None:
    def forward(windows: Windows) -> SpanLogits:
        time.sleep(0.05)
        return FINDS_ZANZIBAR(windows)

    reader = Reader(WORDS)
    prepared = reader.prepare(Query(QUESTION, SENTENCE))
    times = reader.read(prepared, forward, wait_s=7.0).times
    assert times.wait_s == 7.0
    assert times.tokenise_s == prepared.tokenise_s > 0
    assert times.forward_s >= 0.05
    assert times.decode_s > 0
    assert times.total_s == times.tokenise_s + times.forward_s + times.decode_s + 7.0


def sleeping(windows: Windows) -> SpanLogits:
    time.sleep(0.02)
    return FINDS_ZANZIBAR(windows)


def five_windows_in_batches_of_two() -> tuple[Reader, Prepared, Split]:
    reader = Reader(WORDS, SMALL)
    prepared = reader.prepare(Query(QUESTION, FILLER * 5))
    assert prepared.windows.n_windows == 5
    return reader, prepared, partial(by_count, size=2, sort=False)


def test_who_follows_a_reading_is_told_between_two_batches_and_is_not_timed() -> None:
    reader, prepared, pairs = five_windows_in_batches_of_two()
    told: list[tuple[int, int, float]] = []

    def follow(done: int, of: int, spent_s: float) -> None:
        told.append((done, of, spent_s))
        time.sleep(0.5)

    read = reader.read(prepared, sleeping, split=pairs, follow=follow)
    assert [each[:2] for each in told] == [(2, 5), (4, 5)]
    assert 0.02 <= told[0][2] < told[1][2] <= read.times.forward_s
    assert 0.06 <= read.times.forward_s < 1.0
    assert read.answers == reader.read(prepared, sleeping, split=pairs).answers


def test_who_follows_a_reading_can_end_it_before_the_next_batch() -> None:
    reader, prepared, pairs = five_windows_in_batches_of_two()
    ran: list[int] = []

    def forward(windows: Windows) -> SpanLogits:
        ran.append(windows.n_windows)
        return FINDS_ZANZIBAR(windows)

    def stop(_done: int, _of: int, _spent_s: float) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        reader.read(prepared, forward, split=pairs, follow=stop)
    assert ran == [2]
    ran.clear()
    reader.read(reader.prepare(Query(QUESTION, SENTENCE)), forward, follow=stop)
    assert ran == [1], "a text of one batch has nothing to follow"


def test_a_part_of_what_was_prepared_holds_those_windows_only() -> None:
    _, prepared, _ = five_windows_in_batches_of_two()
    part = prepared.part(np.array([3, 1]))
    for place, row in enumerate((3, 1)):
        length = prepared.windows.lengths[row]
        assert part.windows.lengths[place] == length
        assert (part.windows.input_ids[place, :length] == prepared.windows.input_ids[row, :length]).all()
    assert part.queries == prepared.queries and part.windows.n_windows == 2


def test_a_text_is_cut_to_exactly_the_tokens_that_are_asked_for() -> None:
    reader = Reader(WORDS)
    long = Query(QUESTION, "Unbelievably, anti-disestablishmentarianism reached Zanzibar in 1887! " * 60)
    for length in (17, 32, 33, 128, 384):
        windows = reader.prepare(reader.of_length(long, length)).windows
        assert (windows.n_windows, windows.seq_len) == (1, length)
    beyond = reader.of_length(long, 512)
    assert len(WORDS.encode(beyond.question)) + len(WORDS.encode(beyond.context)) + WORDS.frame.tokens == 512
    assert reader.prepare(beyond).windows.n_windows == 2
    with pytest.raises(InputError, match="too short"):
        reader.of_length(Query(QUESTION, "Short."), 32)
    with pytest.raises(InputError, match="question alone"):
        reader.of_length(Query("why " * 40, SENTENCE), 32)


def test_a_model_that_knows_no_no_answer_says_so_and_always_answers() -> None:
    taught_v1 = ReaderSettings(null_threshold=ALWAYS_ANSWERS)
    reader = Reader(WORDS, taught_v1)
    prepared = reader.prepare(Query(QUESTION, "You take the ferry."))
    assert any("never says that a text holds none" in each for each in prepared.notices)

    def sure_of_none(windows: Windows) -> SpanLogits:
        found = np.zeros(windows.input_ids.shape, dtype=np.float32)
        found[:, 0] = 50
        return SpanLogits(found, found.copy())

    (answer,) = reader.read(prepared, sure_of_none).answers
    assert answer.text


@pytest.mark.parametrize("text", ["Anna planted an apple tree. ", "이 도시는 강가에 자리 잡고 있다. "])
@pytest.mark.parametrize("times", [1, 200])
def test_tokens_are_counted_once_each_however_many_windows_hold_them(text: str, times: int) -> None:
    """Of a Hangul syllable the tokenizer makes several tokens that stand for the same character."""
    query = Query("Who planted it?", times * text)
    prepared = Reader(WORDS).prepare(query)
    assert (prepared.windows.n_windows > 1) == (times > 1)
    assert prepared.tokens == len(WORDS.encode(query.question)) + len(WORDS.encode(query.context)) + WORDS.frame.tokens
    if times == 1:
        assert prepared.tokens == prepared.windows.lengths.sum()
