"""SQuAD-format files, plain or ``.xz``: the data that models are trained and measured on.

The format is that of Rajpurkar et al. 2018 (SQuAD 2.0); a file in the 1.1 format, without impossible questions, reads
the same.
"""

from __future__ import annotations

import json
import lzma
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from qa_backends.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

MAX_FILE_BYTES = 512 * 1024 * 1024
"""An unpacked data file larger than this is refused, so that a small ``.xz`` cannot fill the memory."""


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
        InputError: no such file, or it is not in SQuAD format; the message names the first thing that is wrong.
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
        return [_question(article, paragraph, entry) for article, paragraph, entry in _entries(document)]
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise InputError(
            f"{name} is not in SQuAD format: expected data → paragraphs → qas with 'id', 'question' and 'answers' "
            f"({type(error).__name__}: {error})."
        ) from error


def _entries(document: Any) -> list[tuple[Any, Any, Any]]:
    return [
        (article, paragraph, entry)
        for article in document["data"]
        for paragraph in article["paragraphs"]
        for entry in paragraph["qas"]
    ]


def _question(article: Any, paragraph: Any, entry: Any) -> Question:
    return Question(
        id=str(entry["id"]),
        title=str(article.get("title", "")),
        question=_text(entry["question"]),
        context=_text(paragraph["context"]),
        answers=tuple(GoldAnswer(_text(gold["text"]), int(gold["answer_start"])) for gold in entry["answers"]),
    )


def _text(value: Any) -> str:
    """The value, if it is text: a number or a null must not be read as a word.

    Halves of surrogate pairs, which JSON can hold and Unicode cannot, become "?": every offset stays in its place.
    """
    if not isinstance(value, str):
        raise TypeError(f"expected text, found {type(value).__name__}")
    return value.encode("utf-8", "replace").decode("utf-8")
