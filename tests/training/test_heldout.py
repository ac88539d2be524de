"""Held-out articles: chosen by their seed, whole, and never trained on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from helpers import encoder_of

from qa_backends.checkpoints.manifest import manifest_of
from qa_backends.checkpoints.sources import TOKENIZER
from qa_backends.errors import InputError
from qa_backends.paths import OWN_QUESTIONS
from qa_backends.squad import read_squad
from qa_backends.training.heldout import split
from qa_backends.training.provenance import history, seen_before

if TYPE_CHECKING:
    from pathlib import Path

QUESTIONS = read_squad(OWN_QUESTIONS)


def test_articles_are_held_out_whole() -> None:
    parts = split(QUESTIONS, 3, seed=0)
    assert len(parts.articles) == 3
    assert {each.title for each in parts.held_out} == set(parts.articles)
    assert not {each.title for each in parts.learned} & set(parts.articles)
    assert {*parts.learned, *parts.held_out} == set(QUESTIONS)


def test_the_seed_chooses_them() -> None:
    assert split(QUESTIONS, 3, seed=0).articles == split(QUESTIONS[::-1], 3, seed=0).articles
    assert split(QUESTIONS, 3, seed=0).articles != split(QUESTIONS, 3, seed=1).articles


def test_none_are_held_out_where_none_are_wanted() -> None:
    parts = split(QUESTIONS, 0, seed=0)
    assert parts.learned == tuple(QUESTIONS) and parts.held_out == () and parts.articles == ()


def test_something_must_be_left_to_train_on() -> None:
    with pytest.raises(InputError, match="--hold-out 0"):
        split(QUESTIONS, len({each.title for each in QUESTIONS}), seed=0)


@pytest.mark.parametrize(
    ("settings", "seen"),
    [
        ({"held_out": {"articles": ["A", "B", "C"]}}, False),
        ({"held_out": {"articles": ["A"]}}, True),
        ({}, True),
        ({"held_out": {"articles": ["A", "B"]}, "before": {}}, True),
        ({"held_out": {"articles": ["A", "B"]}, "before": {"held_out": {"articles": ["B", "A"]}}}, False),
        ({"held_out": {"articles": ["A", "B"], "seen_before": True}}, True),
    ],
    ids=["more were", "one was not", "none were", "not in the run before", "in both runs", "not by its teacher"],
)
def test_a_checkpoint_knows_whether_it_saw_them(tiny: Path, settings: dict[str, object], seen: bool) -> None:
    assert seen_before([tiny], ["A", "B"]), "who knows what somebody else's was fine-tuned on"
    encoder = encoder_of(tiny)
    assert not seen_before([encoder], ["A", "B"]), "an encoder was trained on none"
    manifest_of(encoder, step=TOKENIZER, parent=None, settings={}).write(encoder)
    assert not seen_before([encoder], ["A", "B"]), "nor by getting its tokenizer.json"
    assert history(encoder) == {}
    manifest_of(tiny, step="finetune", parent=None, settings=settings).write(tiny)
    assert seen_before([tiny], ["A", "B"]) == seen
    assert seen_before([encoder, tiny], ["A", "B"]) == seen, "what one of them saw, the student may know"
