"""Crude rules about English text that changing questions needs: where its sentences are, and which words it holds."""

from __future__ import annotations

import re

_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?])[\"'”’)\]]*\s+(?=[^a-z\s])")
_WORD = re.compile(r"\w+")
_EMPTY = frozenset(
    _WORD.findall(
        "a an the this that these those some any each other such same it its he him his she her they them their "
        "we us our you your i my and or but nor so as if than then of in on at by to from for with into over "
        "about after before between during through under until since while is are was were be been being do does "
        "did has have had can could may might will would shall should not no how many much more most what when "
        "where which who whom whose why there here also only both all one mr mrs ms dr st s t"
    )
)
"""What any text holds, whatever it is about, and any question."""


def sentences(text: str) -> list[tuple[int, int]]:
    """Characters, half-open, of each sentence with the spaces behind it: together they are the whole text.

    An abbreviation before a capital letter ends a sentence by this rule too.
    """
    starts = [0, *(each.end() for each in _BETWEEN_SENTENCES.finditer(text))]
    return list(zip(starts, [*starts[1:], len(text)], strict=True))


def words(text: str) -> set[str]:
    """Words and numbers in lower case, without signs."""
    return set(_WORD.findall(text.casefold()))


def telling(text: str) -> set[str]:
    """Its words, see ``words``, that say what it is about: without articles, pronouns, prepositions and the like."""
    return words(text) - _EMPTY
