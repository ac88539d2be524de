"""The frame of a window is read from the tokenizer: BERT's, RoBERTa's with two tokens between, or none at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from helpers import BASELINE
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from qa_backends.contract import Query, ReaderSettings, SpanLogits, Windows
from qa_backends.errors import ArtefactError
from qa_backends.reader.frame import Frame, read_frame
from qa_backends.reader.reader import Reader
from qa_backends.reader.tokens import SubwordTokenizer

if TYPE_CHECKING:
    from pathlib import Path

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
TEXT = "Zoë keeps the naïve café. " * 12 + "Ben waters the tree."


def roberta() -> Tokenizer:
    """Byte-level BPE, framed as RoBERTa frames a pair (Liu et al. 2019), its vocabulary learnt from one text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([TEXT], trainer)
    tokenizer.post_processor = processors.RobertaProcessing(sep=("</s>", 2), cls=("<s>", 0), add_prefix_space=False)
    return tokenizer


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A folder that holds nothing of a checkpoint but RoBERTa's tokenizer."""
    roberta().save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def test_the_embedded_models_frame_is_berts() -> None:
    frame = SubwordTokenizer(BASELINE).frame
    assert frame == Frame(before=(101,), between=(102,), behind=(102,), pad=0, segments=True)
    assert frame.tokens == 3
    assert frame.text_start(5) == 7


def test_robertas_frame_has_two_tokens_between_and_no_segments() -> None:
    frame = read_frame(roberta())
    assert frame == Frame(before=(0,), between=(2, 2), behind=(2,), pad=1, segments=False)
    assert frame.tokens == 4
    assert frame.text_start(5) == 8


def test_a_long_text_in_robertas_frame_is_answered_from_its_own_characters(checkpoint: Path) -> None:
    tokenizer = SubwordTokenizer(checkpoint)
    wanted = int(tokenizer.encode(" Ben").ids[-1])

    def forward(windows: Windows) -> SpanLogits:
        found = np.where(windows.answerable & (windows.input_ids == wanted), 10, 0).astype(np.float32)
        return SpanLogits(found, found.copy())

    reader = Reader(tokenizer, ReaderSettings(max_seq_len=32, stride=8))
    prepared = reader.prepare(Query("Who waters the tree?", TEXT))
    assert prepared.windows.n_windows > 2
    assert (prepared.windows.input_ids[prepared.windows.attention_mask == 0] == 1).all(), "RoBERTa pads with token 1"
    (answer,) = reader.read(prepared, forward).answers
    assert answer.span is not None
    assert answer.text == TEXT[answer.span.start : answer.span.end]
    assert TEXT.startswith("Ben", answer.span.start)


@pytest.mark.parametrize(("lacking", "said"), [("frame", "no answer"), ("padding", "padding token")])
def test_a_tokenizer_that_frames_no_pairs_or_cannot_pad_is_refused(tmp_path: Path, lacking: str, said: str) -> None:
    vocabulary = {"a": 0, "b": 1, "[CLS]": 2, "[SEP]": 3} | ({"[PAD]": 4} if lacking != "padding" else {})
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="a"))
    if lacking != "frame":
        tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ArtefactError, match=f"{said}.*Fetch the checkpoint again"):
        SubwordTokenizer(tmp_path)
