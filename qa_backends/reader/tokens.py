"""Text to tokens, with the characters each token stands for."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from tokenizers import Encoding, Tokenizer

from qa_backends.contract import IntArray, valid_text
from qa_backends.errors import ArtefactError
from qa_backends.reader.frame import read_frame
from qa_backends.reader.words import Words

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from qa_backends.contract import Query
    from qa_backends.squad import Question


@dataclass(frozen=True, slots=True)
class Tokens:
    """``ids`` int64 ``[n]`` and ``offsets`` int64 ``[n, 2]``, without special tokens."""

    ids: IntArray
    offsets: IntArray

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, start: int, stop: int) -> Tokens:
        """Tokens ``start`` to ``stop``, half-open."""
        return Tokens(self.ids[start:stop], self.offsets[start:stop])


class SubwordTokenizer:
    """A checkpoint's tokenizer, stripped to what the reader needs.

    Question and context are encoded apart, since the tokenizer splits neither differently for standing beside the
    other; a text is then tokenised once however many questions are asked about it.
    """

    def __init__(self, checkpoint: Path) -> None:
        """Reads ``tokenizer.json`` from the checkpoint's folder.

        Raises:
            ArtefactError: the file is missing, or is no tokenizer that frames pairs.
        """
        path = checkpoint / "tokenizer.json"
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
            self._tokenizer.no_truncation()
            self._tokenizer.no_padding()
            self.frame = read_frame(self._tokenizer)
            self._words = Words.of(self._tokenizer)
            self._spaced = _holds_space(self._tokenizer)
        except Exception as error:  # the tokenizers package raises bare Exception, whatever is wrong with the file
            raise ArtefactError(
                f"{path} cannot be read as a tokenizer ({error}). Fetch the checkpoint again."
            ) from error

    def encode(self, text: str) -> Tokens:
        """One text, on this thread: waking the tokenizer's thread pool would cost a short text more than it saves."""
        text = valid_text(text)
        if self._words and (found := self._words.encode(text)):
            return Tokens(*found)
        return self._tokens(self._tokenizer.encode(text, add_special_tokens=False), text)

    def _tokens(self, encoding: Encoding, text: str) -> Tokens:
        offsets = np.fromiter(chain.from_iterable(encoding.offsets), dtype=np.int64, count=2 * len(encoding))
        spans = offsets.reshape(-1, 2)
        ids = np.array(encoding.ids, dtype=np.int64)
        return Tokens(ids, _without_space(spans, text) if self._spaced else spans)

    def within_word(self, token: int) -> bool:
        """Whether the token goes on with the word of the token before it."""
        prefix: str = getattr(self._tokenizer.model, "continuing_subword_prefix", "") or ""
        return prefix != "" and str(self._tokenizer.id_to_token(token)).startswith(prefix)

    def encode_many(self, texts: Sequence[str]) -> list[Tokens]:
        """Many texts; on all cores, where only the library knows how to split."""
        if self._words:
            return [self.encode(text) for text in texts]
        texts = [valid_text(text) for text in texts]
        encodings = self._tokenizer.encode_batch(texts, add_special_tokens=False)
        return [self._tokens(each, text) for each, text in zip(encodings, texts, strict=True)]

    def encode_pairs(self, asked: Sequence[Query | Question], max_question_tokens: int) -> list[tuple[Tokens, Tokens]]:
        """Question, cut to its limit, and context of each; a context that occurs again is not encoded again."""
        contexts = list(dict.fromkeys(each.context for each in asked))
        encoded = dict(zip(contexts, self.encode_many(contexts), strict=True))
        questions = self.encode_many([each.question for each in asked])
        return [
            (question.part(0, max_question_tokens), encoded[each.context])
            for question, each in zip(questions, asked, strict=True)
        ]


def _holds_space(tokenizer: Tokenizer) -> bool:
    """Whether tokens hold white space, as in " town" of SentencePiece's models, or stand for nothing else."""
    text = "a  b a"
    spans = tokenizer.encode(text, add_special_tokens=False).offsets
    return any(text[start:end] != text[start:end].strip() or start == end for start, end in spans)


def _without_space(offsets: IntArray, text: str) -> IntArray:
    """The offsets ``[n, 2]`` without white space: a token begins where its word does, and ends where that ends.

    One of white space alone begins with the next word and ends, before that, with the last one: a span may begin or end
    with it, and is empty where it holds nothing else.
    """
    places = np.arange(len(text))
    word = np.array([not each.isspace() for each in text])
    begins = np.append(np.minimum.accumulate(np.where(word, places, len(text))[::-1])[::-1], len(text))
    ends = np.append(0, np.maximum.accumulate(np.where(word, places + 1, 0)))
    return np.stack([begins[offsets[:, 0]], ends[offsets[:, 1]]], axis=1)
