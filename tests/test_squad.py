"""Data files: SQuAD's two formats are read, packed or not; what is not such a file is refused in words."""

from __future__ import annotations

import json
import lzma
import re
from typing import TYPE_CHECKING, Any

import pytest

from qa_backends import squad
from qa_backends.errors import InputError
from qa_backends.paths import OWN_QUESTIONS
from qa_backends.squad import read_squad

if TYPE_CHECKING:
    from pathlib import Path

ENTRY = {"id": 7, "question": "Where?", "answers": [{"text": "Rome", "answer_start": 3}]}


def document(entry: Any = ENTRY, context: str = "In Rome.") -> dict[str, Any]:
    return {"version": "v2.0", "data": [{"title": "A", "paragraphs": [{"context": context, "qas": [entry]}]}]}


def answered(gold: Any) -> dict[str, Any]:
    """A file of one question with this answer."""
    return document({"id": 1, "question": "Where?", "answers": [gold]})


def write(folder: Path, content: Any, name: str = "mine.json") -> Path:
    path = folder / name
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    path.write_bytes(lzma.compress(raw) if name.endswith(".xz") else raw)
    return path


def test_a_plain_and_a_compressed_file_read_the_same(tmp_path: Path) -> None:
    raw = OWN_QUESTIONS.read_bytes()
    plain, packed = write(tmp_path, raw, "q.json"), write(tmp_path, raw, "q.json.xz")
    assert packed.stat().st_size < plain.stat().st_size
    assert read_squad(plain) == read_squad(packed) == read_squad(OWN_QUESTIONS)


def test_a_file_of_the_older_format_without_impossible_questions_is_read(tmp_path: Path) -> None:
    (question,) = read_squad(write(tmp_path, document()))
    assert (question.id, question.title, question.question, question.context) == ("7", "A", "Where?", "In Rome.")
    assert [(gold.text, gold.start) for gold in question.answers] == [("Rome", 3)]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{not json", "is not JSON"),
        (b"", "is not JSON"),
        (b"\xff\xfe\x00", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        ([], "the file is a list, and should be an object"),
        ({}, "the file has no 'data'"),
        ({"data": 3}, "the 'data' of the file is a whole number, and should be a list"),
        ({"data": [{"title": "A"}]}, "article 1 has no 'paragraphs'"),
        ({"data": ["A"]}, "article 1 is text, and should be an object"),
        ({"data": [{"paragraphs": [{"qas": [ENTRY]}]}]}, "paragraph 1 of article 1 has no 'context'"),
        (document({"id": 1, "question": "Where?"}), "the question '1' has no 'answers'"),
        (document({"id": 1, "question": "Where?", "answers": None}), "the 'answers' of the question '1' is null"),
        (document({"id": 1, "answers": []}), "the question '1' has no 'question'"),
        (document({"id": 1, "question": 3, "answers": []}), "the 'question' of the question '1' is a whole number"),
        (document({"question": "Where?", "answers": []}), "question 1 in paragraph 1 of article 1 has no 'id'"),
        (document({"id": None, "question": "Where?", "answers": []}), "should be text or a whole number"),
        (answered({"text": "Rome"}), "an answer of the question '1' has no 'answer_start'"),
        (answered({"text": "Rome", "answer_start": "three"}), "is text, and should be a whole number"),
        (answered({"text": "Rome", "answer_start": True}), "should be a whole number"),
        (answered({"text": "Rome", "answer_start": float("inf")}), "is inf, and should be a whole number"),
        (answered({"text": "Rome", "answer_start": 5}), "of the question '1' lies beyond its text"),
        (answered({"text": "Rome", "answer_start": -5}), "of the question '1' lies beyond its text"),
        (answered({"text": "Rome", "answer_start": 2}), "of the question '1' is 'Rome', where ' Rom' stands"),
        (answered({"text": "", "answer_start": 3}), "of the question '1' is empty"),
    ],
    ids=["not JSON", "empty", "not text", "nested too deep", "a list", "no data", "data not a list", "no paragraphs",
         "article not an object", "no context", "no answers", "answers null", "no question", "question not text",
         "no id", "id null", "answer without start", "start not a number", "start is true or false",
         "start without end", "answer beyond its text", "answer before its text", "answer beside its place",
         "answer empty"],
)  # fmt: skip
@pytest.mark.parametrize("name", ["mine.json", "mine.json.xz"])
def test_a_file_that_is_not_squad_is_refused_in_words_by_its_name(
    tmp_path: Path, content: Any, said: str, name: str
) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(name)} .*{re.escape(said)}") as refusal:
        read_squad(write(tmp_path, content, name))
    assert "Error" not in str(refusal.value)


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
