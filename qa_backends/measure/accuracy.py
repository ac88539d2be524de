"""Exact match and F1 over a data set, through the same reader that answers people."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qa_backends.contract import Query, SpanLogits
from qa_backends.reader.decode import decode
from qa_backends.reader.reader import run_in_batches
from qa_backends.reader.windows import cut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qa_backends.contract import Answer, Windows
    from qa_backends.reader.reader import Reader
    from qa_backends.squad import Question

    Forward = Callable[[Windows], SpanLogits]
    Progress = Callable[[int, int], None]

QUESTIONS_AT_ONCE = 1024
"""Windows of so many questions are sorted by length together: little padding, and memory stays bounded."""


@dataclass(frozen=True, slots=True)
class Scored:
    """One question, its answer, and how it compares with the best-matching gold answer; ``f1`` is 0..1."""

    question: Question
    answer: Answer
    exact: bool
    f1: float


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Percentages over ``n`` questions; the parts are ``None`` where the data has no such question."""

    n: int
    exact: float
    f1: float
    has_ans_f1: float | None
    no_ans_f1: float | None
    questions_per_second: float


def sample(questions: Sequence[Question], limit: int | None, seed: int) -> list[Question]:
    """All questions, or ``limit`` of them drawn with the seed, in their order of old."""
    if limit is None or limit >= len(questions):
        return list(questions)
    picked = sorted(random.Random(seed).sample(range(len(questions)), limit))
    return [questions[index] for index in picked]


def evaluate(
    reader: Reader, forward: Forward, questions: Sequence[Question], progress: Progress = lambda _done, _of: None
) -> tuple[Accuracy, list[Scored]]:
    """Answers every question at the reader's threshold and scores it as the official SQuAD 2.0 script does."""
    began = time.perf_counter()
    scored: list[Scored] = []
    for first in range(0, len(questions), QUESTIONS_AT_ONCE):
        part = questions[first : first + QUESTIONS_AT_ONCE]
        for question, answer in zip(part, answer_all(reader, forward, part), strict=True):
            scored.append(score(question, answer))
        progress(len(scored), len(questions))
    return summarise(scored, time.perf_counter() - began), scored


def answer_all(reader: Reader, forward: Forward, questions: Sequence[Question]) -> list[Answer]:
    """The answers, from batches of windows alike in length."""
    windows = cut(reader.tokenise(questions), reader.special, reader.settings, segments=reader.segments)
    logits = run_in_batches(forward, windows)
    bounds = np.searchsorted(windows.query_index, np.arange(len(questions) + 1))
    answers = []
    for number, each in enumerate(questions):
        rows = np.arange(bounds[number], bounds[number + 1])
        own = windows.select(rows)
        part = SpanLogits(logits.start[rows, : own.seq_len], logits.end[rows, : own.seq_len])
        answers.append(decode(Query(each.question, each.context), own, part, reader.settings))
    return answers


def score(question: Question, answer: Answer) -> Scored:
    """Against the gold answer that fits best; an empty answer is right only where there is no gold one."""
    from transformers.data.metrics.squad_metrics import compute_exact, compute_f1

    golds = [gold.text for gold in question.answers] or [""]
    return Scored(
        question,
        answer,
        exact=bool(max(compute_exact(gold, answer.text) for gold in golds)),
        f1=float(max(compute_f1(gold, answer.text) for gold in golds)),
    )


def summarise(scored: Sequence[Scored], seconds: float) -> Accuracy:
    """Raises ValueError for no questions."""
    if not scored:
        raise ValueError("no questions to summarise")

    def percent(values: list[float]) -> float | None:
        return 100 * float(np.mean(values)) if values else None

    overall = percent([each.f1 for each in scored])
    exact = percent([float(each.exact) for each in scored])
    assert overall is not None and exact is not None
    return Accuracy(
        n=len(scored),
        exact=exact,
        f1=overall,
        has_ans_f1=percent([each.f1 for each in scored if each.question.answers]),
        no_ans_f1=percent([each.f1 for each in scored if not each.question.answers]),
        questions_per_second=len(scored) / seconds,
    )
