"""Training batches: labels where the answers are, every window once an epoch, the same series for the same seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from helpers import BASELINE
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing

from qa_backends.contract import ReaderSettings
from qa_backends.errors import InputError
from qa_backends.paths import OWN_QUESTIONS
from qa_backends.reader.tokens import SubwordTokenizer
from qa_backends.squad import GoldAnswer, Question, read_squad
from qa_backends.training.data import answer_tokens, collate, epoch_order, examples, steps_of, stream

if TYPE_CHECKING:
    from pathlib import Path

QUESTIONS = read_squad(OWN_QUESTIONS)[:24]
TOKENIZER = SubwordTokenizer(BASELINE)


def test_labels_are_the_answers_tokens() -> None:
    for example, question in zip(examples(QUESTIONS, TOKENIZER), QUESTIONS, strict=True):
        if not question.answers:
            assert (example.start, example.end) == (0, 0)
            continue
        gold = question.answers[0]
        shift = TOKENIZER.frame.text_start(len(example.question))
        first, last = example.piece.offsets[[example.start - shift, example.end - shift]]
        assert question.context[first[0] : last[1]] == gold.text


def framed_with_two_between(folder: Path) -> SubwordTokenizer:
    """The embedded tokenizer with RoBERTa's frame: two tokens between question and text, and no segments."""
    tokenizer = Tokenizer.from_file(str(BASELINE / "tokenizer.json"))
    special = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] [SEP] $B:0 [SEP]", special_tokens=special
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return SubwordTokenizer(folder)


@pytest.mark.parametrize("between", [1, 2])
def test_a_batchs_labels_point_at_the_answers_ids(between: int, tmp_path: Path) -> None:
    tokenizer = TOKENIZER if between == 1 else framed_with_two_between(tmp_path)
    assert len(tokenizer.frame.between) == between
    answered = [each for each in QUESTIONS if each.answers]
    found = examples(answered, tokenizer)
    batch = collate(found, tokenizer)
    assert ("token_type_ids" in batch.inputs) == (between == 1)
    assert batch.inputs["attention_mask"].sum(dim=1).tolist() == [each.length for each in found]
    for question, ids, start, end in zip(answered, batch.inputs["input_ids"], batch.start, batch.end, strict=True):
        assert ids[start : end + 1].tolist() == tokenizer.encode(question.answers[0].text).ids.tolist()


def test_an_answer_cut_by_a_window_is_no_answer_there() -> None:
    text = " ".join(f"word{number}" for number in range(300))
    answer = "word70 word71 word72"
    settings = ReaderSettings(max_seq_len=96, stride=16)
    asked = Question("1", "T", "Which?", text, (GoldAnswer(answer, text.index(answer)),))
    found = examples([asked], TOKENIZER, settings)
    held = [answer in text[each.piece.offsets[0, 0] : each.piece.offsets[-1, 1]] for each in found]
    assert 0 < sum(held) < len(held)
    assert [each.end > 0 for each in found] == held


@pytest.mark.parametrize(("answer", "token"), [("cafe\u0301", "cafe"), ("two ", "two"), (" two", "two")])
def test_what_no_token_holds_is_not_missing_from_an_answer(answer: str, token: str) -> None:
    text = "The cafe\u0301 has two doors."
    start = text.index(answer)
    tokens = TOKENIZER.encode(text)
    first, last = answer_tokens(tokens.offsets, start, start + len(answer)) or (0, -1)
    assert tokens.ids[first : last + 1].tolist() == TOKENIZER.encode(token).ids.tolist()


def test_an_epoch_holds_every_window_once_and_keeps_to_its_size() -> None:
    lengths = [20 + 7 * (n % 30) for n in range(500)]
    batches = epoch_order(lengths, max_tokens=1024, seed=1)
    assert sorted(index for batch in batches for index in batch) == list(range(500))
    assert all(len(batch) * max(lengths[i] for i in batch) <= 1024 for batch in batches)
    assert batches == epoch_order(lengths, max_tokens=1024, seed=1) != epoch_order(lengths, max_tokens=1024, seed=2)


def test_going_on_gives_the_batches_that_would_have_come() -> None:
    data = examples(QUESTIONS, TOKENIZER)
    whole = list(stream(lambda _epoch: data, TOKENIZER, max_tokens=1024, seed=3, steps=20, skip=0))
    rest = list(stream(lambda _epoch: data, TOKENIZER, max_tokens=1024, seed=3, steps=20, skip=13))
    assert len(whole) == 20 and len(rest) == 7
    for one, other in zip(whole[13:], rest, strict=True):
        assert torch.equal(one.inputs["input_ids"], other.inputs["input_ids"])


def test_too_little_training_for_one_step_is_refused() -> None:
    data = examples(QUESTIONS, TOKENIZER)
    assert steps_of(data, passes=2, max_tokens=1024, seed=0) == 2 * steps_of(data, passes=1, max_tokens=1024, seed=0)
    with pytest.raises(InputError, match="Give more passes"):
        steps_of(data, passes=0.01, max_tokens=1024, seed=0)
