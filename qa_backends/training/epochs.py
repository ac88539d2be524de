"""The questions of each epoch as training windows: the same every time, or changed anew."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from qa_backends.contract import DEFAULT_SETTINGS
from qa_backends.training.data import examples
from qa_backends.training.noise import cut, in_lower_case, join, misplace
from qa_backends.training.settings import UNCHANGED
from qa_backends.training.swaps import Swaps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qa_backends.contract import ReaderSettings
    from qa_backends.reader.tokens import SubwordTokenizer
    from qa_backends.squad import Question
    from qa_backends.training.data import Example
    from qa_backends.training.settings import Changes


class Epochs:
    """What each epoch is made of; it hangs on the questions, the changes, the seed and the epoch's number alone."""

    def __init__(
        self,
        questions: Sequence[Question],
        tokenizer: SubwordTokenizer,
        changes: Changes,
        *,
        seed: int,
        reads: ReaderSettings = DEFAULT_SETTINGS,
        also: Sequence[Question] = (),
        also_times: int = 1,
    ) -> None:
        """``reads`` says how long the model's windows are; ``also`` and ``also_times`` are those of ``RunSettings``."""
        self._reads = reads
        self._also = also
        self._also_times = also_times
        self._questions = questions
        self._tokenizer = tokenizer
        self._changes = changes
        self._seed = seed
        self._swaps = Swaps(questions)
        self._paragraphs: dict[str, list[str]] = {}
        for title, context in dict.fromkeys((each.title, each.context) for each in questions):
            self._paragraphs.setdefault(title, []).append(context)
        self._number = -1
        self._examples: list[Example] = []

    def __call__(self, number: int) -> list[Example]:
        """The windows of an epoch, those of ``also`` last; those of the last epoch that was asked for are kept."""
        number = 0 if self._changes == UNCHANGED else number
        if number != self._number:
            self._examples = examples(self.questions(number), self._tokenizer, self._reads) + self._untaught
            self._number = number
        return self._examples

    @cached_property
    def _untaught(self) -> list[Example]:
        """The windows of ``also``, which are the same in every epoch."""
        found = examples(self._also, self._tokenizer, self._reads)
        return [replace(each, taught=False) for each in found] * self._also_times

    def questions(self, number: int) -> list[Question]:
        """The questions of an epoch, swapped ones last."""
        rng = random.Random(f"{self._seed} {number}")
        swapped = self._swaps.draw(self._changes.swaps, rng)
        asked = [self._changed(each, rng) for each in self._questions]
        return asked + [self._changed(each, rng, swapped=True) for each in swapped]

    def _changed(self, question: Question, rng: random.Random, *, swapped: bool = False) -> Question:
        """The question with its noise: its text is changed in one way at most.

        One that was swapped keeps its text to itself: a paragraph beside it may well say of the new entity what is
        asked.
        """
        changes = self._changes
        paragraphs = self._paragraphs[question.title]
        drawn = rng.random()
        if drawn < changes.misplaced:
            question = misplace(question, paragraphs, rng)
        elif drawn < changes.misplaced + changes.cut:
            question = cut(question, rng)
        elif drawn < changes.misplaced + changes.cut + changes.join and not swapped:
            question = join(question, paragraphs, rng)
        return in_lower_case(question) if rng.random() < changes.lower_case else question
