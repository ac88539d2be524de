"""The texts that ship to be trained on: nothing of them is measured with, nor chosen by."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import pytest

from qa_backends.paths import CALIBRATION, EVERYDAY_QUESTIONS, OWN_QUESTIONS, WRITTEN, WRITTEN_HELD_OUT
from qa_backends.squad import Question, read_squad

if TYPE_CHECKING:
    from pathlib import Path

RUN = 8
"""So many words in a row that two texts share are no coincidence."""
LEARNED, HELD_OUT = read_squad(WRITTEN), read_squad(WRITTEN_HELD_OUT)


def runs_of_words(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.casefold())
    return {tuple(words[at : at + RUN]) for at in range(len(words) - RUN + 1)}


@cache
def runs_in(file: Path) -> set[tuple[str, ...]]:
    """Those of all of a file's texts."""
    return {run for text in {each.context for each in read_squad(file)} for run in runs_of_words(text)}


@pytest.mark.parametrize("apart", [OWN_QUESTIONS, EVERYDAY_QUESTIONS, CALIBRATION, WRITTEN_HELD_OUT])
def test_no_text_that_is_measured_or_chosen_with_is_trained_on(apart: Path) -> None:
    for text in {each.context for each in read_squad(apart)}:
        assert not runs_of_words(text) & runs_in(WRITTEN), text


@pytest.mark.parametrize("apart", [OWN_QUESTIONS, EVERYDAY_QUESTIONS])
def test_nothing_is_chosen_by_what_is_measured_with(apart: Path) -> None:
    for text in {each.context for each in read_squad(apart)}:
        assert not runs_of_words(text) & runs_in(WRITTEN_HELD_OUT), text


@pytest.mark.parametrize("questions", [LEARNED, HELD_OUT], ids=["learned", "held out"])
def test_every_text_is_asked_for_what_it_says_and_for_what_it_leaves_open(questions: list[Question]) -> None:
    by_text: dict[str, set[bool]] = {}
    for each in questions:
        by_text.setdefault(each.context, set()).add(bool(each.answers))
    assert all(kinds == {True, False} for kinds in by_text.values())
    assert len({each.id for each in questions}) == len(questions)
    assert len({each.title for each in questions}) == len(by_text), "as many as can be held out one by one"
    assert 1 / 3 < sum(not each.answers for each in questions) / len(questions) < 1 / 2
