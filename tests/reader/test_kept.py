"""Texts kept as tokens: another question about one is spared the tokenising, within bounds, and never a measurement."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np

from qa_backends.contract import Query
from qa_backends.reader.kept import LEAST_CHARS, KeptTexts
from qa_backends.reader.reader import Reader
from qa_backends.reader.tokens import SubwordTokenizer, Tokens

WORDS = SubwordTokenizer(Path(__file__).resolve().parents[2] / "assets" / "models" / "minilm" / "baseline")
TEXT = "The ferry to Zanzibar leaves Dar es Salaam at nine. It takes two hours."


def test_a_text_asked_about_again_is_not_tokenised_again(encoded: list[str]) -> None:
    reader = Reader(WORDS).keeping(1000)
    first, second = Query("When does it leave?", TEXT), Query("How long does it take?", TEXT)
    reader.prepare(first)
    kept = reader.prepare(second)
    assert encoded == [first.question, TEXT, second.question]
    anew = Reader(WORDS).prepare(second)
    for name in ("input_ids", "attention_mask", "token_type_ids", "offsets", "answerable"):
        assert np.array_equal(getattr(kept.windows, name), getattr(anew.windows, name)), name


def test_a_reader_that_measures_tokenises_every_time(encoded: list[str]) -> None:
    reader = Reader(WORDS)
    for _ in range(3):
        reader.prepare(Query("When does it leave?", TEXT))
    assert encoded.count(TEXT) == 3


def test_the_text_that_was_not_used_longest_goes_first(encoded: list[str]) -> None:
    kept = KeptTexts(WORDS.encode, 250)
    for text in ("one " * 30, "two " * 30, "one " * 30, "six " * 30, "one " * 30, "two " * 30):
        kept(text)
    assert encoded == ["one " * 30, "two " * 30, "six " * 30, "two " * 30]


def test_short_texts_are_kept_in_numbers_that_memory_bounds(encoded: list[str]) -> None:
    """However short, a text takes some hundred bytes."""
    kept = KeptTexts(WORDS.encode, 10 * LEAST_CHARS)
    for number in range(11):
        kept(str(number))
    assert len(kept._kept) == 10 and encoded == [str(number) for number in range(11)]
    kept("1")
    kept("0")
    assert encoded[11:] == ["0"], "only the one that was not used longest went"


def test_a_text_longer_than_all_that_may_be_kept_is_read_and_not_kept(encoded: list[str]) -> None:
    kept = KeptTexts(WORDS.encode, 30)
    kept("short")
    assert len(kept(TEXT)) == len(kept(TEXT)) > 0
    assert encoded.count(TEXT) == 2
    nothing = KeptTexts(WORDS.encode, 0)
    assert len(nothing("word")) == len(nothing("word")) == 1


def test_a_text_that_two_threads_read_at_once_is_kept_once() -> None:
    both = Barrier(2)

    def encode(text: str) -> Tokens:
        both.wait(60)
        return WORDS.encode(text)

    kept = KeptTexts(encode, 10 * len(TEXT))
    with ThreadPoolExecutor(2) as threads:
        one, other = threads.map(kept, [TEXT] * 2)
    assert np.array_equal(one.ids, other.ids)
    assert kept._chars == LEAST_CHARS and list(kept._kept) == [TEXT]


def test_many_threads_get_the_tokens_of_their_own_texts() -> None:
    kept = KeptTexts(WORDS.encode, 5 * LEAST_CHARS)
    texts = [f"{'word ' * (number % 7 + 1)}{number}" for number in range(40)] * 5
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(kept, texts))
    for text, each in zip(texts, found, strict=True):
        assert np.array_equal(each.ids, WORDS.encode(text).ids)
