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

from qa_backends.training.texts import sentences, words

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Iterator, Sequence

    from qa_backends.squad import Question

SHARE_WHERE_NONE = 0.8
"""Of the swapped questions, in paragraphs about which nobody asked an unanswerable one."""
RELATED = 0.5
"""A sentence that holds this share of a question's other words may well answer it."""
SHORTEST = 4
"""Letters of the words that count for that: shorter ones are mostly articles, prepositions and question words."""
STEM = 4
"""Words that begin with the same letters, so many, count as one: "Estonia" and "Estonian"."""

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
    sentence, where it may share the answer, nor in one that holds half of the question's other words.
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
    """The sentences that hold an answer, or half of the question's words but for the old entity."""
    rest = {each for each in words(question.question) - words(old.text) if len(each) >= SHORTEST}
    for start, end in sentences(question.context):
        sentence = question.context[start:end]
        answers = any(each.start < end and each.start + len(each.text) > start for each in question.answers)
        if answers or len(rest & words(sentence)) >= RELATED * len(rest):
            yield sentence


def _stems(text: str) -> set[str]:
    return {each[:STEM] for each in words(text)}


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
