"""A text from a file that a person chose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qa_backends.errors import InputError
from qa_backends.reader.reader import MAX_CONTEXT_BYTES, MAX_CONTEXT_CHARS

if TYPE_CHECKING:
    from pathlib import Path


def read_text(path: Path) -> str:
    """Raises InputError for a file that is longer than the page takes, or no text, or that somebody who opened the same
    has read before: equal uploads are one file."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_CONTEXT_BYTES + 1)
    except FileNotFoundError as error:
        raise InputError(f"{path.name} is not here any more. Open it again.") from error
    limit = f"the limit is {MAX_CONTEXT_CHARS:,} characters. Choose a shorter one, or paste a part of it."
    if len(raw) > MAX_CONTEXT_BYTES:
        raise InputError(f"{path.name} is too long; {limit}")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path.name} is no text in UTF-8. Save it as UTF-8, or paste the text.") from error
    if "\0" in text:
        raise InputError(f"{path.name} is no text. Choose a .txt or .md file, or paste the text.")
    if len(text) > MAX_CONTEXT_CHARS:
        raise InputError(f"{path.name} has {len(text):,} characters; {limit}")
    return text.replace("\r\n", "\n")
