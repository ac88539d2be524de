"""Articles that nothing is trained on: what choices between recipes are made on."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qa_backends.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qa_backends.squad import Question

ARTICLES = 20
"""Held out unless a person chooses otherwise."""


@dataclass(frozen=True, slots=True)
class Split:
    """``learned`` are the questions to train on, ``held_out`` those of the ``articles`` that are kept apart."""

    learned: tuple[Question, ...]
    held_out: tuple[Question, ...]
    articles: tuple[str, ...]


def split(questions: Sequence[Question], articles: int, seed: int) -> Split:
    """Holds out so many articles, by their titles; the same seed and data give the same ones.

    Raises:
        InputError: nothing would be left to train on.
    """
    titles = sorted({each.title for each in questions})
    if articles >= len(titles):
        raise InputError(
            f"{articles} articles cannot be held out of {len(titles)}. Hold out fewer, or none: --hold-out 0."
        )
    chosen = sorted(random.Random(seed).sample(titles, articles))
    return Split(
        tuple(each for each in questions if each.title not in chosen),
        tuple(each for each in questions if each.title in chosen),
        tuple(chosen),
    )
