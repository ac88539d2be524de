"""Crude rules about English text that changing questions needs: where its sentences are, and which words it holds."""

from __future__ import annotations

import re

_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?])[\"'”’)\]]*\s+(?=[^a-z\s])")
_WORD = re.compile(r"\w+")


def sentences(text: str) -> list[tuple[int, int]]:
    """Characters, half-open, of each sentence with the spaces behind it: together they are the whole text.

    An abbreviation before a capital letter ends a sentence by this rule too.
    """
    starts = [0, *(each.end() for each in _BETWEEN_SENTENCES.finditer(text))]
    return list(zip(starts, [*starts[1:], len(text)], strict=True))


def words(text: str) -> set[str]:
    """Words and numbers in lower case, without signs."""
    return set(_WORD.findall(text.casefold()))
