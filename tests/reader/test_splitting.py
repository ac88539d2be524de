"""Byte-level BPE and SentencePiece's Unigram: tokens hold spaces and parts of characters, and answers never do."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kinds import CONFIGS, tokenizer_of
from reader.test_reader import ANYTHING
from tokenizers import Tokenizer

from qa_backends.contract import Answer, Query, ReaderSettings, SpanLogits, Windows
from qa_backends.errors import InputError
from qa_backends.reader.reader import Reader
from qa_backends.reader.tokens import SubwordTokenizer

if TYPE_CHECKING:
    from pathlib import Path

KINDS = ["roberta", "xlm-roberta", "deberta-v2"]
SETTINGS = [ReaderSettings(), ReaderSettings(max_seq_len=48, stride=12)]
QUESTION = "Who came to town?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tokenizers")


@cache
def tokenizer(kind: str, folder: Path) -> SubwordTokenizer:
    (folder / kind).mkdir()
    (folder / kind / "tokenizer.json").write_text(tokenizer_of(kind), encoding="utf-8")
    return SubwordTokenizer(folder / kind)


def any_span(windows: Windows) -> SpanLogits:
    """Likes every token differently, by its id, and never that there is no answer."""
    start, end = np.sin(np.stack([windows.input_ids * 1.7, windows.input_ids * 2.3])).astype(np.float32)
    start[:, 0] = end[:, 0] = -9
    return SpanLogits(start, end)


def ask(kind: str, folder: Path, context: str, options: ReaderSettings = SETTINGS[0]) -> Answer:
    reader = Reader(tokenizer(kind, folder), options)
    (answer,) = reader.read(reader.prepare(Query(QUESTION, context)), any_span).answers
    return answer


def trimmed(context: str, start: int, end: int) -> tuple[int, int] | None:
    """A token's characters without the white space around them; ``None`` for white space alone."""
    text = context[start:end]
    return (start + len(text) - len(text.lstrip()), start + len(text.rstrip())) if text.strip() else None


@pytest.mark.parametrize("kind", sorted(CONFIGS))
def test_a_window_is_what_the_tokenizer_itself_makes_of_the_pair(kind: str, folder: Path) -> None:
    context = "Ada  came to town\r\nby the ferry; nobody else did."
    windows = Reader(tokenizer(kind, folder)).prepare(Query(QUESTION, context)).windows
    theirs = Tokenizer.from_str(tokenizer_of(kind)).encode(QUESTION, context)
    assert windows.input_ids.tolist() == [theirs.ids]
    assert windows.attention_mask.tolist() == [theirs.attention_mask]
    assert windows.answerable.tolist() == [[place == 1 for place in theirs.sequence_ids]]
    ours = [(start, end) for start, end in windows.offsets[0][windows.answerable[0]].tolist()]
    whole = [offset for offset, place in zip(theirs.offsets, theirs.sequence_ids, strict=True) if place == 1]
    assert [each if each[0] < each[1] else None for each in ours] == [trimmed(context, *each) for each in whole]
    segments = windows.token_type_ids
    assert theirs.type_ids == ([0] * len(theirs.ids) if segments is None else segments[0].tolist())


@pytest.mark.parametrize("options", SETTINGS, ids=["one window", "several windows"])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=80)
@given(context=ANYTHING)
@example(context="  Ada  came\r\n\r\n to\ttown   ")
@example(context="\U0001f44d\U0001f3fd" * 30)
@example(context="e\u0301 " * 30)
def test_an_answer_is_its_own_characters_and_has_no_white_space_around_it(
    kind: str, folder: Path, options: ReaderSettings, context: str
) -> None:
    try:
        answer = ask(kind, folder, context, options)
    except InputError:
        return  # nothing in it that the tokenizer knows
    if answer.span is None:
        assert answer.text == ""
        return
    assert 0 <= answer.span.start < answer.span.end <= len(context)
    assert answer.text == context[answer.span.start : answer.span.end] == answer.text.strip() != ""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("prefix", ["\U0001f44d" * 20, "line\r\n" * 20, "e\u0301" * 20, "\u4e2d\u56fd" * 20, "\u00a0"])
def test_text_put_in_front_moves_every_token_by_its_length(kind: str, folder: Path, prefix: str) -> None:
    tokens, text = tokenizer(kind, folder), " Ada came to town"
    alone, behind = tokens.encode(text), tokens.encode(prefix + text)
    words = {tuple(span) for span in (alone.offsets + len(prefix)).tolist() if span[0] < span[1]}
    assert words <= {tuple(span) for span in behind.offsets.tolist()}
    assert {(prefix + text)[start:end] for start, end in words} >= {"came"} or kind != "roberta"


@pytest.mark.parametrize("kind", KINDS)
def test_a_span_of_white_space_alone_is_never_the_answer(kind: str, folder: Path) -> None:
    context = "Ada\n\n\ncame"

    def likes_space(windows: Windows) -> SpanLogits:
        empty = windows.answerable & (windows.offsets[..., 0] >= windows.offsets[..., 1])
        found = np.where(empty, 5, 0).astype(np.float32)
        return SpanLogits(found, found.copy())

    reader = Reader(tokenizer(kind, folder), ReaderSettings(null_threshold=100))
    (answer,) = reader.read(reader.prepare(Query(QUESTION, context)), likes_space).answers
    assert answer.text.strip() == answer.text != ""


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=50)
@given(texts=st.lists(ANYTHING, min_size=1, max_size=4))
def test_many_texts_together_are_tokenised_as_one_by_one(kind: str, folder: Path, texts: list[str]) -> None:
    tokens = tokenizer(kind, folder)
    for one, other in zip(map(tokens.encode, texts), tokens.encode_many(texts), strict=True):
        assert one.ids.tolist() == other.ids.tolist()
        assert one.offsets.tolist() == other.offsets.tolist()
