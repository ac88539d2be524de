"""Packing removes what is empty and computes the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from helpers import random_bert

from qa_backends.artefacts.checkpoint import load_model, save_model
from qa_backends.artefacts.packing import pack

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import BertForQuestionAnswering

IDS = torch.arange(1000, 1060).reshape(2, 30)


def logits(model: BertForQuestionAnswering) -> torch.Tensor:
    with torch.inference_mode():
        out = model(input_ids=IDS)
    return torch.cat([out.start_logits, out.end_logits])


def prune_by_hand(model: BertForQuestionAnswering) -> None:
    """Empties head 1 of layer 0, all heads of layer 1, some columns at their input and others at their output."""
    first, second = model.bert.encoder.layer
    with torch.no_grad():
        first.attention.output.dense.weight[:, 8:16] = 0
        second.attention.output.dense.weight[:] = 0
        first.output.dense.weight[:, :40] = 0
        second.intermediate.dense.weight[5:20] = 0
        second.intermediate.dense.bias[5:12] = 0  # the others hold a constant, which has to be kept


def test_packed_and_masked_logits_agree(tiny: Path, tmp_path: Path) -> None:
    model = load_model(tiny)
    prune_by_hand(model)
    masked = logits(model)
    save_model(pack(model), tmp_path / "packed", tokenizer_from=tiny, dtype=torch.float32)
    packed = load_model(tmp_path / "packed")
    torch.testing.assert_close(logits(packed), masked, atol=1e-5, rtol=0)
    assert packed.config.intermediate_sizes == [8, 33]
    kept = [layer.attention.self.num_attention_heads for layer in packed.bert.encoder.layer]
    assert kept == [3, 1], "attention must keep one head to have a shape"
    before = sum(each.numel() for each in load_model(tiny).parameters())
    assert sum(each.numel() for each in packed.parameters()) < before


def test_packing_again_changes_nothing(tiny: Path) -> None:
    model = load_model(tiny)
    prune_by_hand(model)
    pack(model)
    once = {name: tuple(weight.shape) for name, weight in model.state_dict().items()}
    pack(model)
    assert {name: tuple(weight.shape) for name, weight in model.state_dict().items()} == once
    assert {number: sorted(heads) for number, heads in model.config.pruned_heads.items()} == {0: [1], 1: [1, 2, 3]}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_a_saved_checkpoint_is_read_back(tmp_path: Path, dtype: torch.dtype) -> None:
    source = random_bert(tmp_path / "source", seed=3)
    model = load_model(source)
    save_model(model, tmp_path / "copy", tokenizer_from=source, dtype=dtype)
    copy = load_model(tmp_path / "copy")
    assert next(copy.parameters()).dtype == torch.float32, "storage precision is not what is computed in"
    torch.testing.assert_close(logits(copy), logits(model), atol=1e-6 if dtype == torch.float32 else 0.2, rtol=0)
