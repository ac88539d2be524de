"""What ships with the app can be trusted: our own questions, and the examples."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from qa_backends.paths import EXAMPLES, OWN_QUESTIONS
from qa_backends.squad import Question, read_squad


@pytest.fixture(scope="module")
def questions() -> list[Question]:
    return read_squad(OWN_QUESTIONS)


@pytest.fixture(scope="module")
def examples() -> list[dict[str, Any]]:
    return json.loads(EXAMPLES.read_text(encoding="utf-8"))


def test_there_are_enough_questions_on_forty_texts(questions: list[Question]) -> None:
    assert len(questions) >= 200
    assert len({each.context for each in questions}) == 40
    assert len({each.title for each in questions}) == 40


def test_between_20_and_30_percent_of_the_questions_have_no_answer(questions: list[Question]) -> None:
    unanswerable = sum(not each.answers for each in questions)
    assert 0.2 <= unanswerable / len(questions) <= 0.3


def test_the_file_says_of_itself_that_it_is_squad_v2_and_which_questions_are_impossible() -> None:
    whole = json.loads(OWN_QUESTIONS.read_text(encoding="utf-8"))
    assert whole["version"] == "v2.0"
    paragraphs = [paragraph for article in whole["data"] for paragraph in article["paragraphs"]]
    entries = [entry for paragraph in paragraphs for entry in paragraph["qas"]]
    assert [entry["is_impossible"] for entry in entries] == [not entry["answers"] for entry in entries]


def test_no_gold_answer_begins_or_ends_with_a_space(questions: list[Question]) -> None:
    assert [gold.text for each in questions for gold in each.answers if gold.text != gold.text.strip()] == []


def test_no_id_is_used_twice_and_no_question_asked_twice_of_a_text(questions: list[Question]) -> None:
    ids = Counter(each.id for each in questions)
    asked = Counter((each.context, " ".join(each.question.lower().split())) for each in questions)
    assert [name for name, times in ids.items() if times > 1] == []
    assert [question for (_, question), times in asked.items() if times > 1] == []


def test_no_question_or_text_is_blank(questions: list[Question]) -> None:
    assert all(each.question.strip() and each.context.strip() and each.id for each in questions)


def test_the_first_example_is_the_pigs(examples: list[dict[str, Any]]) -> None:
    first = examples[0]
    assert first["question"] == "Who worked a little bit harder?"
    assert first["answer"] == "The second little pig"


def test_every_example_holds_its_answer(examples: list[dict[str, Any]]) -> None:
    for each in examples:
        assert each["title"].strip()
        assert each["question"].strip()
        assert each["context"].strip()
        assert each["answer"] is None or (each["answer"] and each["answer"] in each["context"])


def test_the_examples_show_an_answer_and_no_answer(examples: list[dict[str, Any]]) -> None:
    assert {each["answer"] is None for each in examples} == {True, False}
