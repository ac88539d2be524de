"""Checkpoints as the Hub has them: vocabularies from before ``tokenizer.json``, weights of other names and types."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import torch
from kinds import checkpoint_of, texts, tokenizer_of
from safetensors.torch import load_file, save_file

from qa_backends.checkpoints.load import load_model, read_config
from qa_backends.checkpoints.packing import pack_checkpoint
from qa_backends.errors import ArtefactError
from qa_backends.reader.tokens import SubwordTokenizer

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "Ada came to Z\u00fcrich, and nobody else did."


def published(kind: str, folder: Path) -> Path:
    """A checkpoint without ``tokenizer.json``."""
    checkpoint_of(kind, folder)
    (folder / "tokenizer.json").unlink()
    return folder


def test_a_list_of_merges_becomes_the_same_tokenizer(tmp_path: Path) -> None:
    source = published("roberta", tmp_path / "published")
    model = json.loads(tokenizer_of("roberta"))["model"]
    (source / "vocab.json").write_text(json.dumps(model["vocab"]), encoding="utf-8")
    merges = [each if isinstance(each, str) else " ".join(each) for each in model["merges"]]
    (source / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n", encoding="utf-8")
    pack_checkpoint(source, tmp_path / "packed", {})
    (tmp_path / "known").mkdir()
    (tmp_path / "known" / "tokenizer.json").write_text(tokenizer_of("roberta"), encoding="utf-8")
    ours, known = SubwordTokenizer(tmp_path / "packed"), SubwordTokenizer(tmp_path / "known")
    assert ours.frame == known.frame
    assert ours.encode(TEXT).ids.tolist() == known.encode(TEXT).ids.tolist()
    assert ours.encode(TEXT).offsets.tolist() == known.encode(TEXT).offsets.tolist()


SENTENCEPIECE: dict[str, tuple[str, dict[str, object]]] = {
    "xlm-roberta": ("sentencepiece.bpe.model", {}),
    "albert": (
        "spiece.model",
        {"pad_id": 0, "pad_piece": "<pad>", "unk_id": 1, "bos_id": 2, "bos_piece": "[CLS]", "eos_id": 3,
         "eos_piece": "[SEP]", "user_defined_symbols": "[MASK]"},
    ),
    "deberta-v2": (
        "spm.model",
        {"pad_id": 0, "pad_piece": "[PAD]", "bos_id": 1, "bos_piece": "[CLS]", "eos_id": 2, "eos_piece": "[SEP]",
         "unk_id": 3, "unk_piece": "[UNK]"},
    ),
}  # fmt: skip
"""Of each kind: its file on the Hub, and how the published ones number their special tokens."""


@pytest.mark.parametrize("kind", sorted(SENTENCEPIECE))
def test_a_model_of_sentencepieces_becomes_a_tokenizer(kind: str, tmp_path: Path) -> None:
    import sentencepiece

    source, (file, special) = published(kind, tmp_path / "published"), SENTENCEPIECE[kind]
    (tmp_path / "texts.txt").write_text("\n".join(texts()), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(tmp_path / "texts.txt"), model_prefix=str(tmp_path / "learnt"), vocab_size=500, minloglevel=2,
        **special,
    )  # fmt: skip
    (tmp_path / "learnt.model").rename(source / file)
    pack_checkpoint(source, tmp_path / "packed", {})
    tokenizer = SubwordTokenizer(tmp_path / "packed")
    tokens = tokenizer.encode(TEXT)
    words = [TEXT[start:end] for start, end in tokens.offsets.tolist() if start < end]
    assert "".join(words) == TEXT.replace(" ", "")
    assert len(tokenizer.frame.between) == (2 if kind == "xlm-roberta" else 1)
    assert tokenizer.frame.pad == (1 if kind == "xlm-roberta" else 0)


@pytest.mark.parametrize(
    ("beside", "said"),
    [((), "has no tokenizer.json, and no vocabulary"), (("vocab.json",), "holds no tokenizer that can be read")],
)
def test_a_checkpoint_without_a_whole_tokenizer_says_so(beside: tuple[str, ...], said: str, tmp_path: Path) -> None:
    source = published("roberta", tmp_path / "published")
    for name in beside:
        (source / name).write_text("{}", encoding="utf-8")
    with pytest.raises(ArtefactError, match=said):
        pack_checkpoint(source, tmp_path / "packed", {})


def test_weights_in_half_precision_and_of_the_old_names_are_read(tmp_path: Path) -> None:
    """Checkpoints of 2019 call a normalisation's weight and bias gamma and beta."""
    folder = checkpoint_of("roberta", tmp_path)
    expected = load_model(folder).state_dict()
    weights = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): each
        for name, each in load_file(folder / "model.safetensors").items()
    }
    save_file({name: each.half() for name, each in weights.items()}, folder / "model.safetensors")
    for name, each in load_model(folder).state_dict().items():
        assert torch.allclose(each, expected[name].half().to(each.dtype)), name


def test_a_config_is_read_under_the_common_names(tmp_path: Path) -> None:
    config = read_config(checkpoint_of("distilbert", tmp_path))
    assert config["hidden_size"] == config["dim"]
    assert config["num_hidden_layers"] == config["n_layers"]
