"""Words are split exactly as the tokenizer library splits them, whatever the text."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from helpers import BASELINE
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from qa_backends.paths import CALIBRATION, OWN_QUESTIONS
from qa_backends.reader.tokens import SubwordTokenizer
from qa_backends.reader.words import Words
from qa_backends.squad import read_squad

LIBRARY = Tokenizer.from_file(str(BASELINE / "tokenizer.json"))
LIBRARY.no_truncation()
LIBRARY.no_padding()
SPELT = Tokenizer.from_str(LIBRARY.to_str())
SPELT.normalizer = normalizers.BertNormalizer(lowercase=False)
"""The same vocabulary in a tokenizer that keeps capitals, which it does not hold: their words are unknown."""

PLAIN = "Anna planted an apple tree behind the school, and Ben watered it for 12 years. " * 20
"""So that what comes behind it is a small part of the text."""


def expected(tokenizer: Tokenizer, text: str) -> tuple[list[int], list[tuple[int, int]]]:
    found = tokenizer.encode(text, add_special_tokens=False)
    return found.ids, found.offsets


@cache
def words_of(tokenizer: Tokenizer) -> Words:
    words = Words.of(tokenizer)
    assert words is not None
    return words


def found(tokenizer: Tokenizer, text: str) -> tuple[list[int], list[tuple[int, int]]] | None:
    tokens = words_of(tokenizer).encode(text)
    return tokens and (tokens[0].tolist(), [(first, last) for first, last in tokens[1].tolist()])


@pytest.mark.parametrize("file", [OWN_QUESTIONS, CALIBRATION], ids=["own", "calibration"])
def test_the_projects_texts_and_questions_become_the_librarys_tokens(file: Path) -> None:
    asked = read_squad(file)
    texts = {each.context for each in asked} | {each.question for each in asked}
    split = {text: tokens for text in texts if (tokens := found(LIBRARY, text)) is not None}
    assert len(split) > 0.9 * len(texts), "hardly any is left to the library"
    for text, tokens in split.items():
        assert tokens == expected(LIBRARY, text)


def test_many_texts_together_become_the_librarys_tokens() -> None:
    texts = [
        PLAIN,
        "",
        "Zoë ate 2 crêpes.",
        "東京 is large",
        "[SEP] it is",
        *(each.context for each in read_squad(CALIBRATION)),
    ]
    for text, tokens in zip(texts, SubwordTokenizer(BASELINE).encode_many(texts), strict=True):
        ids, offsets = expected(LIBRARY, text)
        assert (tokens.ids.tolist(), tokens.offsets.tolist()) == (ids, [list(each) for each in offsets])


@pytest.mark.parametrize("tokenizer", [LIBRARY, SPELT], ids=["lower case", "as spelt"])
@pytest.mark.parametrize(
    "text",
    [
        "", " \t\r\n", "Naïve café—“quoted” Ångström, 10 µm; it's 中文字 and 한국어.", "re\u0301sume\u0301 a\u0301!",
        "\u0301", "x" * 100, "x" * 101, "Kelvin \u212a, \u0130stanbul, \u00df, \ufb01", "zero\u200bwidth",
        "soft\u00adhyphen",
        "don't_stop@here.com (50%) $3.20 #1 <b>[not special]</b> `~^|\\", "a\u00a0b\u2028c\u0085d\u3000e", "👍🏽 good",
    ],
)  # fmt: skip
def test_odd_texts_become_the_librarys_tokens(tokenizer: Tokenizer, text: str) -> None:
    text = PLAIN + text
    assert found(tokenizer, text) == expected(tokenizer, text)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_any_text_becomes_the_librarys_tokens_or_is_left_to_it(text: str) -> None:
    tokens = found(LIBRARY, text)
    assert tokens is None or tokens == expected(LIBRARY, text)


@given(st.text([*"aAbtheING .,'-", *map(chr, range(0x2000, 0x2070))], max_size=40))
def test_typography_becomes_the_librarys_tokens(text: str) -> None:
    tokens = found(LIBRARY, text)
    assert tokens is None or tokens == expected(LIBRARY, text)


@given(st.text("aAbtheING .,'-é中\u0301\u200b\u00a0", max_size=40))
def test_words_beside_what_is_no_ascii_become_the_librarys_tokens(text: str) -> None:
    text = PLAIN + text
    assert found(LIBRARY, text) == expected(LIBRARY, text)


@pytest.mark.parametrize("text", ["the [SEP] of it", "bell\x07bell", "vertical\x0btab", "\x7f"])
def test_what_the_library_treats_in_its_own_way_is_left_to_it(text: str) -> None:
    assert found(LIBRARY, text) is None
    tokens = SubwordTokenizer(BASELINE).encode(text)
    assert tokens.ids.tolist() == expected(LIBRARY, text)[0]


@pytest.mark.parametrize("text", ["Анна посадила яблоню за школой.", "安娜在学校后面种了一棵苹果树", "é a à b ü c ö"])
def test_other_languages_are_left_to_the_library(text: str) -> None:
    assert found(LIBRARY, text) is None, "one call for all of it is quicker than one for every word"


def test_another_kind_of_tokenizer_is_left_to_the_library() -> None:
    assert Words.of(Tokenizer(models.BPE())) is None
    rules = json.loads(LIBRARY.to_str())
    for changed in ({"pre_tokenizer": None}, {"normalizer": {**rules["normalizer"], "clean_text": False}}):
        assert Words.of(Tokenizer.from_str(json.dumps(rules | changed))) is None
    with_words = Tokenizer.from_str(LIBRARY.to_str())
    with_words.add_tokens(["covid19"])
    assert Words.of(with_words) is None, "it is found in COVID19 too"
    other = Tokenizer.from_str(LIBRARY.to_str())
    other.pre_tokenizer = pre_tokenizers.Whitespace()
    assert Words.of(other) is None
