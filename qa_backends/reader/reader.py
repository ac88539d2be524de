"""The reader: one question through one engine, each stage timed.

query ── prepare ──> Windows ── forward, in batches ──> SpanLogits ── decode ──> Answer

Many questions go the same way together, so that windows of like length share a batch.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from qa_backends.contract import (
    BATCH_TOKENS,
    DEFAULT_SETTINGS,
    Answer,
    Query,
    ReaderSettings,
    SpanLogits,
    StageTimes,
    Windows,
)
from qa_backends.errors import InputError
from qa_backends.reader.decode import decode
from qa_backends.reader.kept import KeptTexts
from qa_backends.reader.tokens import Tokens
from qa_backends.reader.windows import by_tokens, cut, joined

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from qa_backends.contract import IntArray
    from qa_backends.reader.tokens import SubwordTokenizer

    Forward = Callable[[Windows], SpanLogits]
    Split = Callable[[Windows], Iterable[IntArray]]
    Follow = Callable[[int, int, float], None]

MAX_CONTEXT_CHARS = 200_000
MAX_CONTEXT_BYTES = 4 * MAX_CONTEXT_CHARS + 3
"""Of a file with one: UTF-8 takes up to four bytes a character, and three for the mark that some editors put first."""
MAX_QUESTION_CHARS = 2_000
MAX_PADDING = {"cpu": 0.08, "cuda": 1.0}
"""Share of a forward call, by device. A CPU computes padding like any token: a text of 512 tokens, in windows of 384
and 266, took ONNX Runtime 56 ms in one call and 40 ms in two, on 2 cores; below about 8 % of padding, one call is as
fast. A GPU is kept busy by few large calls."""

KNOWS_NO_NULL = (
    "This model was taught with questions that all have an answer (SQuAD v1.1): it never says that a text holds none."
)


@dataclass(frozen=True, slots=True)
class Prepared:
    """Queries cut into windows, ready for any engine of the family.

    ``tokenise_s`` is what that took, and ``tokens`` how many questions, texts and frames make, however many windows
    they were cut into.
    """

    queries: tuple[Query, ...]
    windows: Windows
    tokens: int
    tokenise_s: float
    notices: tuple[str, ...] = ()

    def part(self, rows: IntArray) -> Prepared:
        """Only the windows ``rows``, in that order."""
        return replace(self, windows=self.windows.select(rows))


@dataclass(frozen=True, slots=True)
class Read:
    """What one pass through an engine gave: an answer to each query, where the time of all went, and the shape
    ``(n_windows, seq_len)`` of every batch that was really computed."""

    answers: tuple[Answer, ...]
    times: StageTimes
    computed: tuple[tuple[int, int], ...]


def check(query: Query) -> None:
    """Raises InputError, with what to do, where the query cannot be answered by any backend."""
    if not query.context.strip():
        raise InputError("There is no text to search. Paste a text, or choose an example.")
    if not query.question.strip():
        raise InputError("There is no question. Type one about the text.")
    for name, text, limit in (
        ("text", query.context, MAX_CONTEXT_CHARS),
        ("question", query.question, MAX_QUESTION_CHARS),
    ):
        if len(text) > limit:
            raise InputError(f"The {name} has {len(text):,} characters; the limit is {limit:,}. Shorten it.")


def _check_known(question: Tokens, context: Tokens) -> None:
    """Raises InputError where the tokenizer found nothing in one of them, though there are characters."""
    if len(context) == 0 or len(question) == 0:
        part = "text" if len(context) == 0 else "question"
        raise InputError(f"The {part} holds no letters, digits or signs that the model knows. Write it in words.")


def length_batches(windows: Windows, *, device: str = "cpu", max_tokens: int = BATCH_TOKENS) -> Iterable[IntArray]:
    """How windows are split into forward calls unless a measurement wants it otherwise."""
    return by_tokens(windows, max_tokens=max_tokens, max_padding=MAX_PADDING[device])


class Reader:
    """Prepares queries and reads answers for one family of checkpoints (one tokenizer)."""

    def __init__(self, tokenizer: SubwordTokenizer, settings: ReaderSettings = DEFAULT_SETTINGS) -> None:
        self.settings = settings
        self._tokenizer = tokenizer
        self._encode_context: Callable[[str], Tokens] = tokenizer.encode

    def with_settings(self, settings: ReaderSettings) -> Reader:
        """The same tokenizer, another way to cut and to choose."""
        return Reader(self._tokenizer, settings)

    def keeping(self, most_chars: int) -> Reader:
        """The same reader, for a server: texts prepared one by one are kept as tokens, ``most_chars`` together. What is
        measured is tokenised anew."""
        found = Reader(self._tokenizer, self.settings)
        found._encode_context = KeptTexts(self._tokenizer.encode, most_chars)
        return found

    def within_word(self, token: int) -> bool:
        """Whether the token goes on with the word of the token before it."""
        return self._tokenizer.within_word(token)

    def prepare(self, query: Query) -> Prepared:
        """Checks, tokenises and cuts the query.

        Raises:
            InputError: empty, too long, or a text in which the tokenizer finds nothing.
        """
        check(query)
        began = time.perf_counter()
        question, context = self._tokenizer.encode(query.question), self._encode_context(query.context)
        _check_known(question, context)
        question, notices = self._cut_question(question)
        if self.settings.always_answers:
            notices = (*notices, KNOWS_NO_NULL)
        windows, tokens = self._cut([(question, context)])
        return Prepared((query,), windows, tokens, time.perf_counter() - began, notices)

    def prepare_all(self, queries: Sequence[Query], *, checked: bool = False) -> Prepared:
        """Tokenises and cuts many queries together; unchecked, as a data set's questions are measured as they are.

        Raises:
            InputError: ``checked``, one of them is empty, too long, or holds nothing that the tokenizer finds.
        """
        began = time.perf_counter()
        if checked:
            for each in queries:
                check(each)
        pairs = self._tokenizer.encode_pairs(queries, self.settings.max_question_tokens)
        if checked:
            for question, context in pairs:
                _check_known(question, context)
        windows, tokens = self._cut(pairs)
        return Prepared(tuple(queries), windows, tokens, time.perf_counter() - began)

    def join(self, prepared: Sequence[Prepared]) -> Prepared:
        """What was prepared apart, to be read together."""
        windows = joined([each.windows for each in prepared], self._tokenizer.frame.pad)
        queries = tuple(query for each in prepared for query in each.queries)
        tokens = sum(each.tokens for each in prepared)
        return Prepared(queries, windows, tokens, sum(each.tokenise_s for each in prepared))

    def of_length(self, query: Query, length: int) -> Query:
        """The query with its text cut so that question and text make exactly ``length`` tokens, special ones included.

        Raises:
            InputError: the question alone is longer, or the text too short.
        """
        question, _ = self._cut_question(self._tokenizer.encode(query.question))
        context = self._tokenizer.encode(query.context)
        wanted = length - len(question) - self._tokenizer.frame.tokens
        if wanted < 1:
            raise InputError(f"The question alone makes more than {length} tokens. Choose a greater length.")
        if wanted > len(context):
            raise InputError(f"The text is too short to make {length} tokens. Give a longer one.")
        return Query(query.question, query.context[: int(context.offsets[wanted - 1, 1])])

    def _cut(self, pairs: list[tuple[Tokens, Tokens]]) -> tuple[Windows, int]:
        """The windows, and how many tokens they were cut from."""
        frame = self._tokenizer.frame
        tokens = sum(len(question) + len(context) + frame.tokens for question, context in pairs)
        return cut(pairs, frame, self.settings), tokens

    def _cut_question(self, question: Tokens) -> tuple[Tokens, tuple[str, ...]]:
        limit = self.settings.max_question_tokens
        if len(question) <= limit:
            return question, ()
        notice = f"The question has {len(question)} tokens; the model reads the first {limit}."
        return question.part(0, limit), (notice,)

    def read(
        self,
        prepared: Prepared,
        forward: Forward,
        *,
        wait_s: float = 0.0,
        split: Split = length_batches,
        follow: Follow = lambda _done, _of, _spent_s: None,
    ) -> Read:
        """An answer to each query. ``wait_s`` is what the caller waited before; ``split`` gives each call's rows.

        Between two forward calls ``follow`` is told how many windows are read, of how many, and the seconds that took.
        What it does meanwhile is in no time; what it raises ends the reading.
        """
        followed_s = 0.0

        def between(done: int) -> None:
            nonlocal followed_s
            paused = time.perf_counter()
            follow(done, prepared.windows.n_windows, paused - began - followed_s)
            followed_s += time.perf_counter() - paused

        began = time.perf_counter()
        logits, computed = run_in_batches(forward, prepared.windows, split, between)
        ran = time.perf_counter()
        answers = self._decode(prepared, logits)
        done = time.perf_counter()
        times = StageTimes(prepared.tokenise_s, wait_s, ran - began - followed_s, done - ran)
        return Read(answers, times, computed)

    def _decode(self, prepared: Prepared, logits: SpanLogits) -> tuple[Answer, ...]:
        return tuple(decode(query, own, part, self.settings) for query, own, part in of_each(prepared, logits))


def of_each(prepared: Prepared, logits: SpanLogits) -> Iterator[tuple[Query, Windows, SpanLogits]]:
    """Each query with its own windows and their logits."""
    windows, queries = prepared.windows, prepared.queries
    if len(queries) == 1:
        yield queries[0], windows, logits
        return
    bounds = np.searchsorted(windows.query_index, np.arange(len(queries) + 1))
    for query, first, last in zip(queries, bounds, bounds[1:], strict=False):
        own = windows.select(np.arange(first, last))
        yield query, own, SpanLogits(logits.start[first:last, : own.seq_len], logits.end[first:last, : own.seq_len])


def run_in_batches(
    forward: Forward,
    windows: Windows,
    split: Split = length_batches,
    between: Callable[[int], None] = lambda _done: None,
) -> tuple[SpanLogits, tuple[tuple[int, int], ...]]:
    """Logits ``[n_windows, seq_len]`` of all windows, and the shape of each batch computed; padding gets ``-inf``.

    Before each forward call but the first, ``between`` is given how many windows are done.
    """
    alone = windows.n_windows == 1  # as most texts make: there is nothing to split
    batches = [] if alone else list(split(windows))
    if alone or (len(batches) == 1 and np.array_equal(batches[0], np.arange(windows.n_windows))):
        logits = forward(windows)
        return logits, (logits.shape,)
    shape = (windows.n_windows, windows.seq_len)
    start = np.full(shape, -np.inf, dtype=np.float32)
    end = np.full(shape, -np.inf, dtype=np.float32)
    computed: list[tuple[int, int]] = []
    done = 0
    for rows in batches:
        if done:
            between(done)
        part = windows.select(rows)
        logits = forward(part)
        start[rows, : part.seq_len] = logits.start
        end[rows, : part.seq_len] = logits.end
        computed.append(logits.shape)
        done += len(rows)
    return SpanLogits(start, end), tuple(computed)
