"""Noise that widens the domain: questions as people type them, and texts unlike an encyclopedia's paragraphs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from qa_backends.squad import GoldAnswer
from qa_backends.training.texts import sentences

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from qa_backends.squad import Question

BETWEEN_PARAGRAPHS = "\n"


def in_lower_case(question: Question) -> Question:
    """The question in lower case and without its question mark, which is what a tokenizer that knows no case sees."""
    return replace(question, question=question.question.lower().rstrip("?").rstrip() or question.question)


def cut(question: Question, rng: random.Random) -> Question:
    """The question about some sentences of its text that follow one another, and that hold its answer, if it has one:
    as many questions are unanswerable as before, or a model would learn to say so of short texts."""
    starts = [start for start, _ in sentences(question.context)]
    ends = [*starts[1:], len(question.context)]
    first = last = rng.randrange(len(starts))
    if question.answers:
        gold = question.answers[0]
        first = max(number for number, start in enumerate(starts) if start <= gold.start)
        last = min(number for number, end in enumerate(ends) if end >= gold.start + len(gold.text))
    start, end = starts[rng.randint(0, first)], ends[rng.randint(last, len(ends) - 1)]
    text = question.context[start:end].rstrip()
    golds = tuple(GoldAnswer(each.text, each.start - start) for each in question.answers[:1])
    return replace(question, context=text, answers=golds)


def join(question: Question, neighbours: Sequence[str], rng: random.Random) -> Question:
    """The question about its text and the paragraph before or after it.

    ``neighbours`` are the article's paragraphs, in order, this one among them. An unanswerable question stays so: it
    was written about its own paragraph. Were such questions left out, long texts would always hold an answer.
    """
    at = neighbours.index(question.context)
    beside = [each for each in (at - 1, at + 1) if 0 <= each < len(neighbours)]
    if not beside:
        return question
    other = rng.choice(beside)
    if other > at:
        return replace(question, context=question.context + BETWEEN_PARAGRAPHS + neighbours[other])
    before = neighbours[other] + BETWEEN_PARAGRAPHS
    golds = tuple(GoldAnswer(each.text, len(before) + each.start) for each in question.answers)
    return replace(question, context=before + question.context, answers=golds)


def misplace(question: Question, paragraphs: Sequence[str], rng: random.Random) -> Question:
    """The question about another paragraph of its article, which does not answer it.

    Unchanged where it is unanswerable already, since another paragraph may answer it, and where the paragraph that is
    drawn says its answer.
    """
    others = [each for each in paragraphs if each != question.context]
    if not question.answers or not others:
        return question
    other = rng.choice(others)
    return question if _says(other, question) else replace(question, context=other, answers=())


def _says(text: str, question: Question) -> bool:
    """Whether one of the question's answers occurs in the text, in whatever case."""
    return any(each.text.casefold() in text.casefold() for each in question.answers)
