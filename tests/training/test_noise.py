"""Noise on questions and texts: the answer stays where it is said to be, or is truly gone."""

from __future__ import annotations

import random

import pytest

from qa_backends.errors import InputError
from qa_backends.paths import OWN_QUESTIONS
from qa_backends.squad import GoldAnswer, Question, read_squad
from qa_backends.training.noise import cut, in_lower_case, join, misplace
from qa_backends.training.settings import Changes

TEXT = "Anna came at noon. Ben slept until 3.5 hours later! Who woke him? Carla did, at dawn. Then all left."
OWN = read_squad(OWN_QUESTIONS)


def ask(answer: str, text: str = TEXT) -> Question:
    golds = (GoldAnswer(answer, text.index(answer)),) if answer else ()
    return Question("q", "People", "Who woke Ben?", text, golds)


def assert_answers_stand_where_they_say(question: Question) -> None:
    for each in question.answers:
        assert question.context[each.start : each.start + len(each.text)] == each.text


def test_a_question_in_lower_case_has_no_question_mark() -> None:
    assert in_lower_case(ask("Carla")).question == "who woke ben"
    assert in_lower_case(ask("Carla")).answers == ask("Carla").answers


@pytest.mark.parametrize("seed", range(40))
def test_a_cut_keeps_the_answer_in_its_place(seed: int) -> None:
    for question in OWN[seed::40]:
        shorter = cut(question, random.Random(seed))
        assert shorter.context in question.context and shorter.context.strip()
        assert_answers_stand_where_they_say(shorter)
        assert bool(shorter.answers) == bool(question.answers)


def test_cuts_are_made_between_sentences() -> None:
    kept = {cut(ask("Carla"), random.Random(seed)).context for seed in range(200)}
    assert {"Carla did, at dawn.", TEXT, "Who woke him? Carla did, at dawn. Then all left."} <= kept
    assert all("Carla did, at dawn." in each for each in kept)


def test_joined_paragraphs_are_neighbours_and_the_answer_moves_along() -> None:
    paragraphs = ["First.", "Second.", TEXT, "Fourth.", "Fifth."]
    joined = [join(ask("Carla"), paragraphs, random.Random(seed)) for seed in range(20)]
    assert {each.context for each in joined} == {f"Second.\n{TEXT}", f"{TEXT}\nFourth."}
    for each in joined:
        assert_answers_stand_where_they_say(each)
        assert len(each.answers) == 1
    assert join(ask("Carla"), [TEXT], random.Random(0)) == ask("Carla")
    assert join(ask(""), ["First.", TEXT], random.Random(0)).answers == ()


def test_a_misplaced_question_is_asked_of_a_paragraph_without_its_answer() -> None:
    paragraphs = [TEXT, "A paragraph about something else.", "And carla was there."]
    found = [misplace(ask("Carla"), paragraphs, random.Random(seed)) for seed in range(20)]
    moved = [each for each in found if each.context != TEXT]
    assert {(each.context, each.answers) for each in moved} == {("A paragraph about something else.", ())}
    assert all(each == ask("Carla") for each in found if each.context == TEXT)


def test_an_unanswerable_question_stays_with_its_paragraph() -> None:
    assert misplace(ask(""), [TEXT, "Another."], random.Random(0)) == ask("")
    assert misplace(ask("Carla"), [TEXT], random.Random(0)) == ask("Carla")


def test_more_than_all_texts_cannot_be_changed() -> None:
    with pytest.raises(InputError, match="must not exceed 1"):
        Changes(cut=0.5, join=0.4, misplaced=0.2)
