"""SQuAD-format files, plain or ``.xz``: the data that models are trained and measured on.

The format is that of Rajpurkar et al. 2018 (SQuAD 2.0); a file in the 1.1 format, without impossible questions, reads
the same.
"""

from __future__ import annotations

import json
import lzma
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from qa_backends.contract import valid_text
from qa_backends.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_FILE_BYTES = 512 * 1024 * 1024
"""An unpacked data file larger than this is refused, so that a small ``.xz`` cannot fill the memory."""
SHOWN = 60
"""Characters of what a file holds that an error shows."""
KINDS = {dict: "an object", list: "a list", str: "text", int: "a whole number"}
"""JSON's types, as errors call them."""


@dataclass(frozen=True, slots=True)
class GoldAnswer:
    text: str
    start: int


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a data set; ``answers`` is empty where the text holds none."""

    id: str
    title: str
    question: str
    context: str
    answers: tuple[GoldAnswer, ...]


def read_squad(path: Path) -> list[Question]:
    """All questions of the file, in order.

    Raises:
        InputError: no such file, it is not in SQuAD format, or holds no questions; the message names the first thing
            that is wrong.
    """
    return parse_squad(unpacked(path), path.name)


def unpacked(path: Path) -> bytes:
    """The file's contents, decompressed where its name ends in ``.xz``.

    Raises:
        InputError: no such file, or it is damaged or too large.
    """
    try:
        with lzma.open(path) if path.suffix == ".xz" else path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise InputError(f"{path.name} cannot be read: {error}.") from error
    if len(raw) > MAX_FILE_BYTES:
        raise InputError(f"{path.name} is larger than {MAX_FILE_BYTES // 2**20} MiB unpacked; split it.")
    return raw


def parse_squad(raw: bytes, name: str) -> list[Question]:
    """The questions of a file's contents; ``name`` is what errors call it. Raises InputError, see ``read_squad``."""
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} is not JSON: {error}.") from error
    try:
        questions = list(_questions(document))
    except ValueError as error:
        raise InputError(f"{name} is not in SQuAD format: {error}.") from error
    if not questions:
        raise InputError(f"{name} holds no questions.")
    return questions


def _questions(document: Any) -> Iterator[Question]:
    """All questions. Raises ValueError, saying what is wrong and where."""
    for article_number, article in enumerate(_part(document, "data", list, "the file"), 1):
        where = f"article {article_number}"
        for number, paragraph in enumerate(_part(article, "paragraphs", list, where), 1):
            place = f"paragraph {number} of {where}"
            context = _text(paragraph, "context", place)
            for entry_number, entry in enumerate(_part(paragraph, "qas", list, place), 1):
                yield _question(entry, str(article.get("title", "")), context, f"question {entry_number} in {place}")


def _question(entry: Any, title: str, context: str, place: str) -> Question:
    name = str(_part(entry, "id", (str, int), place))
    where = f"the question '{name}'"
    question = _text(entry, "question", where)
    gold = tuple(_gold(each, context, f"an answer of {where}") for each in _part(entry, "answers", list, where))
    return Question(id=name, title=title, question=question, context=context, answers=gold)


def _gold(answer: Any, context: str, where: str) -> GoldAnswer:
    """The answer, which must stand in its text where it says it does: models learn from that place."""
    text, start = _text(answer, "text", where), int(_part(answer, "answer_start", int, where))
    end = start + len(text)
    if not text:
        raise ValueError(f"{where} is empty; a question that its text does not answer has an empty list of 'answers'")
    if start < 0 or end > len(context):
        raise ValueError(f"{where} lies beyond its text: at characters {start} to {end} of {len(context)}")
    if context[start:end] != text:
        raise ValueError(f"{where} is '{text[:SHOWN]}', where '{context[start:end][:SHOWN]}' stands in the text")
    return GoldAnswer(text, start)


def _part(holder: Any, key: str, kinds: type | tuple[type, ...], where: str) -> Any:
    """What stands under the key, if it is of one of the kinds: a number or a null must not be read as a word."""
    if not isinstance(holder, dict):
        raise ValueError(f"{where} is {_kind(holder)}, and should be an object")
    if key not in holder:
        raise ValueError(f"{where} has no '{key}'")
    value = holder[key]
    if not isinstance(value, kinds) or isinstance(value, bool):
        wanted = " or ".join(KINDS[kind] for kind in (kinds if isinstance(kinds, tuple) else (kinds,)))
        raise ValueError(f"the '{key}' of {where} is {_kind(value)}, and should be {wanted}")
    return value


def _text(holder: Any, key: str, where: str) -> str:
    """The text under the key, as ``valid_text`` makes it."""
    return valid_text(_part(holder, key, str, where))


def _kind(value: Any) -> str:
    return KINDS.get(type(value), "null" if value is None else str(value))
