"""Entity swaps: questions that name another entity of their text, and that it therefore does not answer.

The method is that of Gautam, Zhang and Klakow 2023 ("A Lightweight Method to Generate Unanswerable Questions in
English"), with rules for what an entity is in place of a tagger: months, years, other numbers, and runs of capitalised
words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from qa_backends.training.texts import sentences, telling, words

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Iterator, Sequence

    from qa_backends.squad import Question

SHARE_WHERE_NONE = 0.8
"""Of the swapped questions, in paragraphs about which nobody asked an unanswerable one."""
RELATED = 0.5
"""A sentence that holds this share of a question's other telling words may well answer it."""
STEM = 4
"""Words that begin with the same letters, so many, count as one: "Estonia" and "Estonian", "live" and "lived"."""

_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_CAPITALISED = r"(?:(?:[A-Z]\.){2,}|[A-ZÀ-ÖØ-Þ]\w+(?:[-'’](?!s\b)\w+)*)"
_NAME = rf"(?<![\w-]){_CAPITALISED}(?: (?:of (?:the )?)?(?:{_CAPITALISED}|[A-Z]\b))*"
_ENTITY = re.compile(
    rf"(?P<month>\b(?:{_MONTH})\b)"
    r"|(?P<year>(?<![\w.,-])(?:1\d|20)\d\d\b(?![.,]\d))"
    r"|(?P<number>(?<![\w.,-])\d+(?:[.,]\d+)*\b)"
    rf"|(?P<name>{_NAME})"
)


@dataclass(frozen=True, slots=True)
class Entity:
    """A part of a text; ``kind`` is "month", "year", "number" or "name"."""

    kind: str
    start: int
    text: str

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class Swaps:
    """Draws swapped questions from a set, most where unanswerable ones are missing."""

    def __init__(self, questions: Sequence[Question]) -> None:
        negative = {each.context for each in questions if not each.answers}
        answered = [each for each in questions if each.answers]
        self._where_none = [each for each in answered if each.context not in negative]
        self._elsewhere = [each for each in answered if each.context in negative]
        self._asked = {(each.context, each.question.casefold()) for each in questions}

    def draw(self, count: int, rng: random.Random) -> list[Question]:
        """So many swapped questions, each of another one; fewer where no more can be had."""
        where_none, elsewhere = self._of(self._where_none, rng), self._of(self._elsewhere, rng)
        found = [*islice(where_none, round(count * SHARE_WHERE_NONE))]
        found += islice(elsewhere, count - len(found))
        found += islice(where_none, count - len(found))  # where too few could be had elsewhere
        return found

    def _of(self, pool: Sequence[Question], rng: random.Random) -> Iterator[Question]:
        for each in rng.sample(pool, len(pool)):
            swapped = swap(each, rng)
            if swapped and (swapped.context, swapped.question.casefold()) not in self._asked:
                yield swapped


def swap(question: Question, rng: random.Random) -> Question | None:
    """The question about another entity, without an answer; ``None`` where the rules allow no swap.

    The identifier ends in "-swap"; the rest of the question and its text stay as they are.
    """
    choices = possible(question)
    if not choices:
        return None
    old, new = rng.choice(choices)
    asked = question.question[: old.start] + new + question.question[old.end :]
    return replace(question, id=f"{question.id}-swap", question=asked, answers=())


def possible(question: Question) -> list[tuple[Entity, str]]:
    """Each entity of an answerable question, its first word apart, with what may take its place.

    That is of the same kind, stands in the text, and shares no word with the question or its answers. As far as rules
    can tell, the text says nothing that answers the new question: no word of the entity stands in the answer's own
    sentence, where it may share the answer, nor in a related one.
    """
    taken = _stems(" ".join([question.question, *(each.text for each in question.answers)]))
    others = [each for each in _named(question.context) if not _stems(each.text) & taken]
    found = []
    for old in _asked_about(question):
        related = _stems(" ".join(_related(question, old)))
        new = [each.text for each in others if each.kind == old.kind and not _stems(each.text) & related]
        found += [(old, each) for each in dict.fromkeys(new)]
    return found


def _related(question: Question, old: Entity) -> Iterable[str]:
    """The sentences that hold an answer, half of the question's telling words but for the old entity, or one of those
    of an answer's sentence but for the answer: it may say the same of another, as "signed in 1920" and "in 1921"."""
    answering, others = _by_answer(question)
    rest = _telling(question.question) - _stems(old.text)
    said = _telling(" ".join(answering)) - _stems(" ".join([old.text, *(each.text for each in question.answers)]))
    yield from answering
    for sentence in others:
        here = _telling(sentence)
        if here & said or len(here & rest) >= RELATED * len(rest):
            yield sentence


def _by_answer(question: Question) -> tuple[list[str], list[str]]:
    """The text's sentences that hold a part of an answer, and the others."""
    answering: list[str] = []
    others: list[str] = []
    for start, end in sentences(question.context):
        answers = any(each.start < end and each.start + len(each.text) > start for each in question.answers)
        (answering if answers else others).append(question.context[start:end])
    return answering, others


def _stems(text: str) -> set[str]:
    return {each[:STEM] for each in words(text)}


def _telling(text: str) -> set[str]:
    return {each[:STEM] for each in telling(text)}


def _asked_about(question: Question) -> Iterable[Entity]:
    """Entities of the question behind its first word, whose capital says nothing."""
    text = question.question
    first, _, _ = text.partition(" ")
    for each in _entities(text, len(first)):
        continues = each.start == len(first) + 1 and each.kind == "name"
        if not (continues and text[: each.end] in question.context):
            yield each


def _named(context: str) -> Iterable[Entity]:
    """Entities of a text. A capital at a sentence's start says nothing, nor that of a word also written without."""
    starts = {start for start, _ in sentences(context)}
    uncapitalised = {each for each in re.findall(r"\w+", context) if each[0].islower()}
    for each in _entities(context):
        first = re.split(r"\W", each.text, maxsplit=1)[0]
        if each.kind != "name" or (each.start not in starts and first.lower() not in uncapitalised):
            yield each


def _entities(text: str, start: int = 0) -> Iterable[Entity]:
    return (Entity(str(each.lastgroup), each.start(), each.group()) for each in _ENTITY.finditer(text, start))
