"""BERT's splitting into words and pieces, for text of which the tokenizer library would do too much.

The library normalises every character, keeps both spellings aligned and splits what it has normalised. Most English
text needs none of it: a run of ASCII letters and digits is a word, a sign is one by itself, and most words stand in the
vocabulary. What looking them up there saves is in ``assets/results/overhead-cpu.json``.
"""

from __future__ import annotations

import json
import re
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokenizers import Tokenizer

    from qa_backends.contract import IntArray

    Piece = tuple[int, int, int]
    """A token's id, and the characters it stands for, half-open."""

TYPOGRAPHY = frozenset(map(chr, range(0x2010, 0x2028)))
"""Dashes and quotation marks; like ASCII's signs, Unicode calls all of them punctuation."""
WORDS = re.compile(r"([0-9A-Za-z\x80-\u200f\u2028-\U0010ffff]+|[!-/:-@\[-`{-~\u2010-\u2027])")
"""Runs of letters and digits, and of anything beyond ASCII, which the library then splits; signs one by one."""
OTHER = re.compile(r"[\x80-\u200f\u2028-\U0010ffff]+")
MOST_OTHER = 0.01
"""Such runs a character: with more of them, one call for the whole text is quicker than one for each of those words."""
ODD = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""Control characters, which the library takes out of the words they stand in."""


class Words:
    """The same tokens as the library's, sooner."""

    def __init__(self, tokenizer: Tokenizer, model: dict[str, object], *, lower_case: bool) -> None:
        self._library = tokenizer
        self._vocabulary = tokenizer.get_vocab(with_added_tokens=False)
        self._special = [each.content for each in tokenizer.get_added_tokens_decoder().values()]
        self._unknown = self._vocabulary[str(model["unk_token"])]
        self._longest = int(str(model["max_input_chars_per_word"]))
        self._inside = str(model["continuing_subword_prefix"])
        self._spelt: Callable[[str], str] = str.lower if lower_case else str

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Words | None:
        """``None`` where the tokenizer does not split as BERT's does (Devlin et al. 2019, ``tokenization.py``), or was
        given words of its own that it looks for after normalising, so in whatever capitals they are written."""
        rules = json.loads(tokenizer.to_str())
        normalizer, model = rules["normalizer"] or {}, rules["model"]
        kinds = (normalizer.get("type"), (rules["pre_tokenizer"] or {}).get("type"), model["type"])
        if kinds != ("BertNormalizer", "BertPreTokenizer", "WordPiece") or not normalizer["clean_text"]:
            return None
        if any(each.normalized for each in tokenizer.get_added_tokens_decoder().values()):
            return None
        return cls(tokenizer, model, lower_case=normalizer["lowercase"])

    def encode(self, text: str) -> tuple[IntArray, IntArray] | None:
        """Ids ``[n]`` and offsets ``[n, 2]``; ``None`` where only the library knows what the text is split into."""
        if ODD.search(text) or any(each in text for each in self._special):
            return None
        if not text.isascii() and len(OTHER.findall(text)) > MOST_OTHER * len(text):
            return None
        parts = WORDS.split(text)  # words stand at odd places
        words = [*map(self._spelt, parts[1::2])]
        numbers = [*map(self._vocabulary.get, words)]
        if not text.isascii():  # what stands in the vocabulary beyond ASCII, the library may split all the same
            numbers = [number if _plain(word) else None for word, number in zip(words, numbers, strict=True)]
        edges = [*accumulate(map(len, parts))]  # of each word its start, then its end
        ids: list[int | None] = []
        offsets: list[int] = []
        done = 0
        for place in [place for place, number in enumerate(numbers) if number is None]:
            start, word = edges[2 * place], words[place]
            pieces = self._pieces(word) if _plain(word) else self._of_library(parts[2 * place + 1])
            ids += [*numbers[done:place], *(piece for piece, _, _ in pieces)]
            offsets += edges[2 * done : 2 * place]
            offsets += [start + edge for _, *span in pieces for edge in span]
            done = place + 1
        ids += numbers[done:]
        offsets += edges[2 * done : -1]
        return np.array(ids, dtype=np.int64), np.array(offsets, dtype=np.int64).reshape(-1, 2)

    def _pieces(self, word: str) -> list[Piece]:
        """Of a word that is not in the vocabulary: the longest piece that is, and so on; unknown where none fits."""
        nothing = [(self._unknown, 0, len(word))]
        if len(word) > self._longest:
            return nothing
        found: list[Piece] = []
        start = 0
        while start < len(word):
            prefix = self._inside if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if prefix + word[start:end] in self._vocabulary), None)
            if end is None:
                return nothing
            found.append((self._vocabulary[prefix + word[start:end]], start, end))
            start = end
        return found

    def _of_library(self, run: str) -> list[Piece]:
        encoding = self._library.encode(run, add_special_tokens=False)
        return [(number, *span) for number, span in zip(encoding.ids, encoding.offsets, strict=True)]


def _plain(word: str) -> bool:
    """Whether the library leaves the word in one."""
    return word.isascii() or word in TYPOGRAPHY
