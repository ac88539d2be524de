"""Exact match and F1 over a data set, through the same reader that answers people."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from qa_backends.contract import Query
from qa_backends.measure.timing.load import BUSY_ABOVE, LoadMeter
from qa_backends.measure.timing.statistics import Difference, Interval, interval_of_mean, paired_difference

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qa_backends.catalog import Backend, Family
    from qa_backends.contract import Answer
    from qa_backends.progress import Progress
    from qa_backends.runtime import Runtime
    from qa_backends.squad import Question

    Done = Callable[[int, int], None]

AnswerAll = Callable[[Sequence[Query]], AbstractContextManager[tuple[Sequence["Answer"], float]]]
"""Answers of many queries, and the seconds of work that took. Nobody else is timed until they are let go."""

QUESTIONS_AT_ONCE = 256
"""Windows of at most so many questions are sorted by length together; between two batches others get their turn."""
QUESTIONS_AT_FIRST = 16
CHARACTERS_AT_ONCE = 1_000 * QUESTIONS_AT_ONCE
"""Bounds the memory of a batch whose texts are long."""
TURN_S = 5.0
"""A batch should take about this long, so that nobody else waits for much longer."""


@dataclass(frozen=True, slots=True)
class Scored:
    """One question, its answer, and how it compares with the best-matching gold answer; ``f1`` is 0..1."""

    question: Question
    answer: Answer
    exact: bool
    f1: float


@dataclass(frozen=True, slots=True)
class Figures:
    """Percentages over ``n`` questions; the parts are ``None`` where the data has no such question.

    ``agreement`` is the share of questions on which the answer is the baseline's, in percent, and ``f1_difference`` is
    the paired difference to the baseline's F1; both are ``None`` where the baseline's answers are not at hand.
    ``parent_difference`` is the same to the F1 of what the backend's weights were rounded from.
    ``questions_per_second`` is ``None`` where others took too much of the machine meanwhile.
    Intervals are bootstrapped over questions, at 95 %.
    """

    n: int
    exact: float
    f1: float
    has_ans_f1: float | None
    no_ans_f1: float | None
    questions_per_second: float | None
    exact_interval: Interval
    f1_interval: Interval
    has_ans_f1_interval: Interval | None
    no_ans_f1_interval: Interval | None
    agreement: float | None = None
    f1_difference: Difference | None = None
    parent_difference: Difference | None = None


def sample(questions: Sequence[Question], limit: int | None, seed: int) -> list[Question]:
    """All questions, or ``limit`` of them drawn with the seed, in the order of the file."""
    if limit is None or limit >= len(questions):
        return list(questions)
    picked = sorted(random.Random(seed).sample(range(len(questions)), limit))
    return [questions[index] for index in picked]


def evaluate(
    answer_all: AnswerAll, questions: Sequence[Question], done: Done = lambda _done, _of: None, *, here: bool = True
) -> tuple[list[Scored], float | None]:
    """Answers every question at the reader's threshold and scores it as the official SQuAD 2.0 script does.

    Scoring, and what ``done`` does, disturbs nobody's measurement.

    Returns the scored questions, in their order, and the seconds of work; ``None`` for these where others took so much
    of the machine that they tell nothing, as far as the work is this process's (``here``). What ``done`` raises ends
    it.
    """
    meter = LoadMeter()
    meter.start()
    scored: list[Scored] = []
    seconds = 0.0
    at_once = QUESTIONS_AT_FIRST
    while len(scored) < len(questions):
        part = batch(questions[len(scored) :], min(at_once, QUESTIONS_AT_ONCE))
        with answer_all([Query(each.question, each.context) for each in part]) as (answers, took):
            scored += [score(question, answer) for question, answer in zip(part, answers, strict=True)]
            done(len(scored), len(questions))
        seconds += took
        at_once = max(1, int(TURN_S * len(part) / took))
    meter.stop()
    taken = meter.share() if here else None
    return scored, None if taken is not None and taken > BUSY_ABOVE else seconds


def batch(questions: Sequence[Question], most: int) -> Sequence[Question]:
    """The first questions, at most so many, whose texts together are not too long; one at least."""
    characters = 0
    for count, each in enumerate(questions[:most]):
        characters += len(each.context)
        if count and characters > CHARACTERS_AT_ONCE:
            return questions[:count]
    return questions[:most]


def through(runtime: Runtime, family: Family, backend: Backend, device: str, progress: Progress) -> AnswerAll:
    """A backend's answers, each batch of questions in a turn of its own, so that nobody waits for the whole set."""

    @contextmanager
    def answer_all(queries: Sequence[Query]) -> Iterator[tuple[Sequence[Answer], float]]:
        with runtime.turn(device, progress) as turn:
            prepared = runtime.reader(family, progress).prepare_all(queries)
            read = turn.answer_all(family, backend, prepared)
            yield read.answers, read.times.compute_s

    return answer_all


def score(question: Question, answer: Answer) -> Scored:
    """Against the gold answer that fits best; an empty answer is right only where there is no gold one."""
    exact, f1 = score_text(question, answer.text)
    return Scored(question, answer, exact, f1)


def score_text(question: Question, text: str) -> tuple[bool, float]:
    """Whether the text is exactly right, and its F1, 0..1, as the official SQuAD 2.0 script counts them.

    As there, a gold answer of nothing but articles and punctuation does not count.
    """
    from transformers.data.metrics import squad_metrics

    official: Any = squad_metrics  # transformers leaves it untyped
    golds = [gold.text for gold in question.answers if official.normalize_answer(gold.text)] or [""]
    return (
        bool(max(official.compute_exact(gold, text) for gold in golds)),
        float(max(official.compute_f1(gold, text) for gold in golds)),
    )


def figures(
    scored: Sequence[Scored],
    seconds: float | None,
    baseline: Sequence[str] | None = None,
    parent: Sequence[str] | None = None,
) -> Figures:
    """The figures of a data set; ``baseline`` is the baseline's answer to each question, in the same order, and
    ``parent`` that of the same weights in FP32.

    ``seconds`` is the time of work, ``None`` where that is not to be relied upon.

    Raises:
        ValueError: no questions.
    """
    found = figures_of(
        np.asarray([each.exact for each in scored]),
        np.asarray([each.f1 for each in scored]),
        np.asarray([bool(each.question.answers) for each in scored]),
    )
    return replace(
        found,
        questions_per_second=len(scored) / seconds if seconds else None,
        agreement=agreement(scored, baseline) if baseline is not None else None,
        f1_difference=_difference(scored, baseline) if baseline is not None else None,
        parent_difference=_difference(scored, parent) if parent is not None else None,
    )


def figures_of(exact: NDArray[np.bool_], f1: NDArray[np.float64], answerable: NDArray[np.bool_]) -> Figures:
    """The figures of questions of which is known, ``[n]`` each, whether the answer is exactly right, its F1, 0..1, and
    whether there is one.

    Raises:
        ValueError: no questions.
    """
    if not len(f1):
        raise ValueError("no questions to take figures of")
    right, f1 = np.where(exact, 100.0, 0.0), 100 * f1
    return Figures(
        n=len(f1),
        exact=float(right.mean()),
        f1=float(f1.mean()),
        has_ans_f1=float(f1[answerable].mean()) if answerable.any() else None,
        no_ans_f1=float(f1[~answerable].mean()) if not answerable.all() else None,
        questions_per_second=None,
        exact_interval=interval_of_mean(right),
        f1_interval=interval_of_mean(f1),
        has_ans_f1_interval=interval_of_mean(f1[answerable]) if answerable.any() else None,
        no_ans_f1_interval=interval_of_mean(f1[~answerable]) if not answerable.all() else None,
    )


def agreement(scored: Sequence[Scored], others: Sequence[str]) -> float:
    """Percent of the answers that are another backend's, as ``contract.same_answer`` counts them."""
    return 100 * float(np.mean([each.answer.text == text for each, text in zip(scored, others, strict=True)]))


def _difference(scored: Sequence[Scored], others: Sequence[str]) -> Difference:
    """How much F1, in percent, is above that of another backend's answers to the same questions."""
    theirs = [score_text(each.question, text)[1] for each, text in zip(scored, others, strict=True)]
    return paired_difference(100 * np.asarray([each.f1 for each in scored]), 100 * np.asarray(theirs))


def answers_by_id(scored: Sequence[Scored]) -> dict[str, str]:
    """Answer texts as the official SQuAD 2.0 script reads them: by question id, empty for "no answer"."""
    return {each.question.id: each.answer.text for each in scored}


def shared_id(questions: Iterable[Question]) -> str | None:
    """An id that several of the questions have, if there is one: their answers, kept by it, take each other's place."""
    seen: set[str] = set()
    for each in questions:
        if each.id in seen:
            return each.id
        seen.add(each.id)
    return None
