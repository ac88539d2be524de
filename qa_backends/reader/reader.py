"""The reader: one question through one engine, each stage timed.

query ── prepare ──> Windows ── forward, in batches ──> SpanLogits ── decode ──> Answer
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qa_backends.contract import (
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
from qa_backends.reader.tokens import Tokens
from qa_backends.reader.windows import batches, cut

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from qa_backends.reader.tokens import WordPieces
    from qa_backends.squad import Question

    Forward = Callable[[Windows], SpanLogits]

MAX_CONTEXT_CHARS = 200_000
MAX_QUESTION_CHARS = 2_000
BATCH_TOKENS = 16 * 384
"""Tokens of one forward call, padding included: enough to fill a CPU's matrix units, few enough to bound memory."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query cut into windows, ready for any engine of the family; ``tokenise_s`` is what that took."""

    query: Query
    windows: Windows
    tokenise_s: float
    notices: tuple[str, ...]


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


class Reader:
    """Prepares queries and reads answers for one family of checkpoints (one tokenizer)."""

    def __init__(
        self, words: WordPieces, settings: ReaderSettings = DEFAULT_SETTINGS, *, segments: bool = True
    ) -> None:
        self.settings = settings
        self.segments = segments
        self.special = words.special
        self._words = words

    def prepare(self, query: Query) -> Prepared:
        """Checks, tokenises and cuts the query.

        Raises:
            InputError: empty, too long, or a text in which the tokenizer finds nothing.
        """
        check(query)
        began = time.perf_counter()
        question, context = self._words.encode(query.question), self._words.encode(query.context)
        if len(context) == 0 or len(question) == 0:
            part = "text" if len(context) == 0 else "question"
            raise InputError(f"The {part} holds no letters, digits or signs that the model knows. Write it in words.")
        question, notices = self._cut_question(question)
        windows = cut([(question, context)], self.special, self.settings, segments=self.segments)
        return Prepared(query, windows, time.perf_counter() - began, notices)

    def tokenise(self, queries: Sequence[Query | Question]) -> list[tuple[Tokens, Tokens]]:
        """Question and context tokens of each, questions cut to their limit; a context met before is not done again."""
        return self._words.encode_pairs(queries, self.settings.max_question_tokens)

    def _cut_question(self, question: Tokens) -> tuple[Tokens, tuple[str, ...]]:
        limit = self.settings.max_question_tokens
        if len(question) <= limit:
            return question, ()
        notice = f"The question has {len(question)} tokens; the model reads the first {limit}."
        return question.part(0, limit), (notice,)

    def read(self, prepared: Prepared, forward: Forward, *, wait_s: float = 0.0) -> tuple[Answer, StageTimes]:
        """The answer, and where the time went. ``wait_s`` is what the caller waited for the device before."""
        began = time.perf_counter()
        logits = run_in_batches(forward, prepared.windows)
        ran = time.perf_counter()
        answer = decode(prepared.query, prepared.windows, logits, self.settings)
        done = time.perf_counter()
        return answer, StageTimes(prepared.tokenise_s, wait_s, ran - began, done - ran)


def run_in_batches(forward: Forward, windows: Windows, *, max_tokens: int = BATCH_TOKENS) -> SpanLogits:
    """Logits ``[n_windows, seq_len]`` of all windows, run in batches of like length; padding gets ``-inf``."""
    if windows.n_windows * windows.seq_len <= max_tokens:
        return forward(windows)
    shape = (windows.n_windows, windows.seq_len)
    start = np.full(shape, -np.inf, dtype=np.float32)
    end = np.full(shape, -np.inf, dtype=np.float32)
    for rows in batches(windows, max_tokens=max_tokens):
        part = windows.select(rows)
        logits = forward(part)
        start[rows, : part.seq_len] = logits.start
        end[rows, : part.seq_len] = logits.end
    return SpanLogits(start, end)
