"""What ships with the app can be trusted: our own questions, the examples, and how data files are read."""

from __future__ import annotations

import json
import lzma
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from qa_backends import squad
from qa_backends.errors import InputError
from qa_backends.squad import Question, read_squad

ASSETS = Path(__file__).resolve().parents[1] / "assets"


@pytest.fixture(scope="module")
def questions() -> list[Question]:
    return read_squad(ASSETS / "questions.json")


@pytest.fixture(scope="module")
def examples() -> list[dict[str, Any]]:
    return json.loads((ASSETS / "examples.json").read_text(encoding="utf-8"))


def test_there_are_enough_questions_on_forty_texts(questions: list[Question]) -> None:
    assert len(questions) >= 200
    assert len({each.context for each in questions}) == 40
    assert len({each.title for each in questions}) == 40


def test_between_20_and_30_percent_of_the_questions_have_no_answer(questions: list[Question]) -> None:
    unanswerable = sum(not each.answers for each in questions)
    assert 0.2 <= unanswerable / len(questions) <= 0.3


def test_the_file_says_of_itself_that_it_is_squad_v2_and_which_questions_are_impossible() -> None:
    whole = json.loads((ASSETS / "questions.json").read_text(encoding="utf-8"))
    assert whole["version"] == "v2.0"
    paragraphs = [paragraph for article in whole["data"] for paragraph in article["paragraphs"]]
    entries = [entry for paragraph in paragraphs for entry in paragraph["qas"]]
    assert [entry["is_impossible"] for entry in entries] == [not entry["answers"] for entry in entries]


def test_every_gold_answer_stands_where_it_is_said_to(questions: list[Question]) -> None:
    astray = [
        (each.id, gold.text)
        for each in questions
        for gold in each.answers
        if not gold.text or each.context[gold.start : gold.start + len(gold.text)] != gold.text
    ]
    assert astray == []


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


ENTRY = {"id": 7, "question": "Where?", "answers": [{"text": "Rome", "answer_start": 3}]}


def document(entry: Any = ENTRY, context: str = "In Rome.") -> dict[str, Any]:
    return {"version": "v2.0", "data": [{"title": "A", "paragraphs": [{"context": context, "qas": [entry]}]}]}


def write(folder: Path, content: Any, name: str = "mine.json") -> Path:
    path = folder / name
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    path.write_bytes(lzma.compress(raw) if name.endswith(".xz") else raw)
    return path


def test_a_plain_and_a_compressed_file_read_the_same(tmp_path: Path) -> None:
    raw = (ASSETS / "questions.json").read_bytes()
    plain, packed = write(tmp_path, raw, "q.json"), write(tmp_path, raw, "q.json.xz")
    assert packed.stat().st_size < plain.stat().st_size
    assert read_squad(plain) == read_squad(packed) == read_squad(ASSETS / "questions.json")


def test_a_file_of_the_older_format_without_impossible_questions_is_read(tmp_path: Path) -> None:
    (question,) = read_squad(write(tmp_path, document()))
    assert (question.id, question.title, question.question, question.context) == ("7", "A", "Where?", "In Rome.")
    assert [(gold.text, gold.start) for gold in question.answers] == [("Rome", 3)]


@pytest.mark.parametrize(
    "content",
    [
        b"{not json",
        b"",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        [],
        {},
        {"data": 3},
        {"data": [{"title": "A"}]},
        {"data": ["A"]},
        {"data": [{"paragraphs": [{"qas": [ENTRY]}]}]},
        document({"id": 1, "question": "Where?"}),
        document({"id": 1, "question": "Where?", "answers": None}),
        document({"id": 1, "answers": []}),
        document({"question": "Where?", "answers": []}),
        document({"id": 1, "question": "Where?", "answers": [{"text": "Rome"}]}),
        document({"id": 1, "question": "Where?", "answers": [{"text": "Rome", "answer_start": "three"}]}),
        document({"id": 1, "question": "Where?", "answers": [{"text": "Rome", "answer_start": float("inf")}]}),
    ],
    ids=["not JSON", "empty", "not text", "nested too deep", "a list", "no data", "data not a list", "no paragraphs",
         "article not an object", "no context", "no answers", "answers null", "no question", "no id",
         "answer without start", "start not a number",
         "start without end"],
)  # fmt: skip
@pytest.mark.parametrize("name", ["mine.json", "mine.json.xz"])
def test_a_file_that_is_not_squad_is_refused_by_its_name(tmp_path: Path, content: Any, name: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(name)} "):
        read_squad(write(tmp_path, content, name))


@pytest.mark.parametrize("name", ["missing.json", "missing.json.xz"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(name)} cannot be read"):
        read_squad(tmp_path / name)


def test_a_folder_is_refused_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(InputError, match=r"^folder\.json cannot be read"):
        read_squad(tmp_path / "folder.json")


@pytest.mark.parametrize("damage", ["not xz", "cut short", "flipped"])
def test_a_damaged_compressed_file_is_named(tmp_path: Path, damage: str) -> None:
    whole = lzma.compress(json.dumps(document()).encode())
    middle = len(whole) // 2
    raw = {
        "not xz": json.dumps(document()).encode(),
        "cut short": whole[:middle],
        "flipped": whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :],
    }[damage]
    path = tmp_path / "mine.json.xz"
    path.write_bytes(raw)
    with pytest.raises(InputError, match=r"^mine\.json\.xz cannot be read"):
        read_squad(path)


@pytest.mark.parametrize("name", ["big.json", "big.json.xz"])
def test_a_file_too_large_unpacked_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    path = write(tmp_path, document(context="In Rome. " * 1_000), name)
    assert len(read_squad(path)) == 1
    monkeypatch.setattr(squad, "MAX_FILE_BYTES", 4_000)
    with pytest.raises(InputError, match=f"^{re.escape(name)} is larger"):
        read_squad(path)


def test_half_a_surrogate_pair_becomes_a_question_mark_in_its_place(tmp_path: Path) -> None:
    (question,) = read_squad(write(tmp_path, document(ENTRY | {"question": "Where \ud83d?"}, "In Rome \ud83d.")))
    assert (question.question, question.context) == ("Where ??", "In Rome ?.")
