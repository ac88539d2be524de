"""The second question set and the calibration texts, both written for this project, can be trusted."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from qa_backends.paths import CALIBRATION, EVERYDAY_QUESTIONS, EXAMPLES, OWN_QUESTIONS
from qa_backends.squad import Question, read_squad

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

WRITTEN = [EVERYDAY_QUESTIONS, CALIBRATION]
SHARED_WORDS = 8
"""Texts are taken to overlap where they share so many words in a row."""


def named(path: Path) -> str:
    return path.name


@pytest.fixture(scope="module")
def second() -> list[Question]:
    return read_squad(EVERYDAY_QUESTIONS)


@pytest.fixture(scope="module")
def calibration() -> list[Question]:
    return read_squad(CALIBRATION)


def contexts(questions: Iterable[Question]) -> set[str]:
    return {each.context for each in questions}


def kinds(questions: Iterable[Question]) -> Counter[str]:
    """How many texts of each kind there are; a title says the kind before its colon."""
    return Counter(title.split(":")[0] for title in {each.title for each in questions})


def lengths(questions: Iterable[Question]) -> list[int]:
    """Words of each text, the shortest first."""
    return sorted(len(text.split()) for text in contexts(questions))


def runs_of_words(texts: Iterable[str]) -> set[str]:
    """Every run of ``SHARED_WORDS`` words, without case and punctuation."""
    runs: set[str] = set()
    for text in texts:
        words = re.findall(r"\w+", text.lower())
        runs |= {" ".join(words[at : at + SHARED_WORDS]) for at in range(len(words) - SHARED_WORDS + 1)}
    return runs


def everything_in(questions: Iterable[Question]) -> set[str]:
    return {text for each in questions for text in (each.context, each.question)}


def example_texts() -> set[str]:
    return {str(each[part]) for each in json.loads(EXAMPLES.read_bytes()) for part in ("context", "question")}


@pytest.mark.parametrize("path", WRITTEN, ids=named)
def test_every_answer_stands_between_whole_words(path: Path) -> None:
    astray = [
        (each.id, gold.text)
        for each in read_squad(path)
        for gold in each.answers
        if gold.text != gold.text.strip()
        or re.search(r"\w\w", each.context[max(0, gold.start - 1) : gold.start] + gold.text[:1])
        or re.search(r"\w\w", gold.text[-1:] + each.context[gold.start + len(gold.text) :][:1])
    ]
    assert astray == []


@pytest.mark.parametrize("path", WRITTEN, ids=named)
def test_the_file_says_which_questions_are_impossible(path: Path) -> None:
    whole = json.loads(path.read_bytes())
    assert whole["version"] == "v2.0"
    entries = [entry for article in whole["data"] for part in article["paragraphs"] for entry in part["qas"]]
    assert [entry["is_impossible"] for entry in entries] == [not entry["answers"] for entry in entries]


@pytest.mark.parametrize("path", WRITTEN, ids=named)
def test_no_title_text_or_question_is_blank_and_none_is_there_twice(path: Path) -> None:
    questions = read_squad(path)
    assert all(each.title.strip() and each.context.strip() and each.question.strip() for each in questions)
    assert len({each.title for each in questions}) == len(contexts(questions))
    asked = Counter((each.context, " ".join(each.question.lower().split())) for each in questions)
    assert [question for (_, question), times in asked.items() if times > 1] == []


@pytest.mark.parametrize("path", WRITTEN, ids=named)
def test_no_gold_answer_of_a_question_is_given_twice(path: Path) -> None:
    golds = {each.id: [gold.text for gold in each.answers] for each in read_squad(path)}
    assert [name for name, texts in golds.items() if len(texts) != len(set(texts))] == []


def test_no_id_is_used_twice_in_all_sets_together() -> None:
    ids = Counter(each.id for path in (OWN_QUESTIONS, *WRITTEN) for each in read_squad(path))
    assert [name for name, times in ids.items() if times > 1] == []


def test_the_second_set_asks_150_questions_or_more_on_30_texts_or_more(second: list[Question]) -> None:
    assert len(second) >= 150
    assert len(contexts(second)) >= 30


def test_a_third_of_the_second_set_has_no_answer(second: list[Question]) -> None:
    unanswerable = sum(not each.answers for each in second)
    assert 0.31 <= unanswerable / len(second) <= 0.36


def test_every_text_of_the_second_set_is_asked_about_with_and_without_an_answer(second: list[Question]) -> None:
    for text in contexts(second):
        answerable = {bool(each.answers) for each in second if each.context == text}
        assert answerable == {True, False}, text[:60]


def test_the_second_set_is_of_many_kinds_that_people_write(second: list[Question]) -> None:
    count = kinds(second)
    asked_for = {
        "Private letter",
        "Appliance manual",
        "Chat log",
        "Product review",
        "Meeting minutes",
        "Contract",
        "Recipe",
    }
    assert all(count[kind] >= 3 for kind in asked_for), count
    assert len(count) >= 15


def test_the_second_set_holds_questions_as_people_type_them(second: list[Question]) -> None:
    careless = [each for each in second if not each.question.endswith("?")]
    assert len(careless) >= len(second) / 20


def test_texts_of_the_second_set_are_short_and_long(second: list[Question]) -> None:
    words = lengths(second)
    assert words[0] >= 60
    assert words[-1] <= 600
    assert sum(each < 130 for each in words) >= 3
    assert sum(each > 300 for each in words) >= 5


def test_there_are_60_calibration_texts_or_more_of_many_kinds(calibration: list[Question]) -> None:
    assert len(contexts(calibration)) >= 60
    assert len(kinds(calibration)) >= 30


def test_each_calibration_text_comes_with_two_or_three_questions_of_both_sorts(calibration: list[Question]) -> None:
    for text in contexts(calibration):
        about = [bool(each.answers) for each in calibration if each.context == text]
        assert 2 <= len(about) <= 3, text[:60]
        assert set(about) == {True, False}, text[:60]


def test_calibration_texts_reach_from_a_line_or_two_to_a_full_window(calibration: list[Question]) -> None:
    words = lengths(calibration)
    assert 40 <= words[0] <= 60
    assert words[-1] <= 400
    for low, high in ((40, 80), (80, 120), (120, 200), (290, 401)):
        assert sum(low <= each < high for each in words) >= 8, (low, high)


def test_a_copied_sentence_would_be_noticed(calibration: list[Question]) -> None:
    copied = " ".join(calibration[0].context.upper().split()[5:20])
    assert runs_of_words([f"Others wrote: {copied}!"]) & runs_of_words(everything_in(calibration))


@pytest.mark.parametrize("path", [OWN_QUESTIONS, EVERYDAY_QUESTIONS], ids=named)
def test_nothing_that_is_measured_on_is_calibrated_on(path: Path, calibration: list[Question]) -> None:
    measured = runs_of_words(everything_in(read_squad(path)))
    assert sorted(runs_of_words(everything_in(calibration)) & measured) == []


def test_no_example_is_calibrated_on(calibration: list[Question]) -> None:
    assert sorted(runs_of_words(everything_in(calibration)) & runs_of_words(example_texts())) == []


def test_the_second_set_repeats_nothing_of_the_first_or_the_examples(second: list[Question]) -> None:
    others = everything_in(read_squad(OWN_QUESTIONS)) | example_texts()
    assert sorted(runs_of_words(everything_in(second)) & runs_of_words(others)) == []
