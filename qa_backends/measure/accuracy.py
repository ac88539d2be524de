"""Exact match and F1 over a data set, through the same reader that answers people."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qa_backends.contract import Query
from qa_backends.measure.statistics import Interval, interval_of_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qa_backends.catalog import Backend, Family
    from qa_backends.contract import Answer
    from qa_backends.runtime import Runtime, Say
    from qa_backends.squad import Question

    Progress = Callable[[int, int], None]

AnswerAll = Callable[[Sequence[Query]], tuple[list["Answer"], float]]
"""Answers of many queries, and the seconds of work that took."""

QUESTIONS_AT_ONCE = 256
"""Windows of so many questions are sorted by length together; between two such groups others get their turn."""


@dataclass(frozen=True, slots=True)
class Scored:
    """One question, its answer, and how it compares with the best-matching gold answer; ``f1`` is 0..1."""

    question: Question
    answer: Answer
    exact: bool
    f1: float


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Percentages over ``n`` questions; the parts are ``None`` where the data has no such question.

    ``agreement`` is the share of questions on which the answer is the baseline's, in percent; ``None`` where the
    baseline's answers are not at hand. Intervals are bootstrapped over questions, at 95 %.
    """

    n: int
    exact: float
    f1: float
    has_ans_f1: float | None
    no_ans_f1: float | None
    questions_per_second: float
    exact_interval: Interval
    f1_interval: Interval
    agreement: float | None = None


def sample(questions: Sequence[Question], limit: int | None, seed: int) -> list[Question]:
    """All questions, or ``limit`` of them drawn with the seed, in their order of old."""
    if limit is None or limit >= len(questions):
        return list(questions)
    picked = sorted(random.Random(seed).sample(range(len(questions)), limit))
    return [questions[index] for index in picked]


def evaluate(
    answer_all: AnswerAll, questions: Sequence[Question], progress: Progress = lambda _done, _of: None
) -> tuple[list[Scored], float]:
    """Answers every question at the reader's threshold and scores it as the official SQuAD 2.0 script does.

    Returns the scored questions, in their order, and the seconds of work. What ``progress`` raises ends it.
    """
    scored: list[Scored] = []
    seconds = 0.0
    for first in range(0, len(questions), QUESTIONS_AT_ONCE):
        part = questions[first : first + QUESTIONS_AT_ONCE]
        answers, took = answer_all([Query(each.question, each.context) for each in part])
        scored += [score(question, answer) for question, answer in zip(part, answers, strict=True)]
        seconds += took
        progress(len(scored), len(questions))
    return scored, seconds


def through(runtime: Runtime, group: Family, row: Backend, device: str, say: Say) -> AnswerAll:
    """A backend's answers, each group of questions in a turn of its own, so that nobody waits for the whole set."""

    def answer_all(queries: Sequence[Query]) -> tuple[list[Answer], float]:
        with runtime.turn(device, say) as turn:
            prepared = runtime.reader(group, say).prepare_all(queries)
            answers, times = turn.answer_all(group, row, prepared)
        return answers, times.compute_s

    return answer_all


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


def summarise(scored: Sequence[Scored], seconds: float, baseline: Mapping[str, str] | None = None) -> Accuracy:
    """The figures of a data set; ``baseline`` is the baseline's answer to each question, by its id.

    Raises:
        ValueError: no questions.
    """
    if not scored:
        raise ValueError("no questions to summarise")
    f1 = 100 * np.asarray([each.f1 for each in scored])
    exact = 100 * np.asarray([float(each.exact) for each in scored])
    answerable = np.asarray([bool(each.question.answers) for each in scored])
    same = None if baseline is None else [baseline.get(each.question.id) == each.answer.text for each in scored]
    return Accuracy(
        n=len(scored),
        exact=float(exact.mean()),
        f1=float(f1.mean()),
        has_ans_f1=float(f1[answerable].mean()) if answerable.any() else None,
        no_ans_f1=float(f1[~answerable].mean()) if not answerable.all() else None,
        questions_per_second=len(scored) / seconds,
        exact_interval=interval_of_mean(exact),
        f1_interval=interval_of_mean(f1),
        agreement=None if same is None else 100 * float(np.mean(same)),
    )


def answers_by_id(scored: Sequence[Scored]) -> dict[str, str]:
    """Answer texts as the official SQuAD 2.0 script reads them: by question id, empty for "no answer"."""
    return {each.question.id: each.answer.text for each in scored}
