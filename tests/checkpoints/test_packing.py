"""Packing removes what is empty and computes the same."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch
from helpers import encoder_of, random_bert
from kinds import checkpoint_of

from qa_backends.checkpoints import smaller
from qa_backends.checkpoints.architectures import architecture_of
from qa_backends.checkpoints.files import WEIGHTS
from qa_backends.checkpoints.load import load_model, save_model
from qa_backends.checkpoints.manifest import file_hash, manifest_of, read_manifest
from qa_backends.checkpoints.packing import pack, pack_checkpoint
from qa_backends.errors import ArtefactError

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import PreTrainedModel

    from qa_backends.checkpoints.architectures import Block

IDS = torch.arange(1000, 1060).reshape(2, 30)


def logits(model: PreTrainedModel) -> torch.Tensor:
    with torch.inference_mode():
        out = model(input_ids=IDS)
    return torch.cat([out.start_logits, out.end_logits])


def blocks(model: PreTrainedModel) -> list[Block]:
    return architecture_of(model.config).blocks(model)


def prune_by_hand(model: PreTrainedModel) -> None:
    """Empties head 1 of layer 0, all heads of layer 1, some columns at their input and others at their output."""
    first, second = blocks(model)
    with torch.no_grad():
        first.attention_output.weight[:, 8:16] = 0
        second.attention_output.weight[:] = 0
        first.down.weight[:, :40] = 0
        second.up.weight[5:20] = 0
        second.up.bias[5:12] = 0  # the others hold a constant, which has to be kept


def test_packed_and_masked_logits_agree(tiny: Path, tmp_path: Path) -> None:
    model = load_model(tiny)
    prune_by_hand(model)
    masked = logits(model)
    save_model(pack(model), tmp_path / "packed", tokenizer_from=tiny, dtype=torch.float32)
    packed = load_model(tmp_path / "packed")
    torch.testing.assert_close(logits(packed), masked, atol=1e-5, rtol=0)
    assert packed.config.intermediate_sizes == [8, 33]
    assert [block.heads for block in blocks(packed)] == [3, 0]
    before = sum(each.numel() for each in load_model(tiny).parameters())
    assert sum(each.numel() for each in packed.parameters()) < before


def test_an_ffn_that_nothing_reaches_leaves_its_bias(tiny: Path, tmp_path: Path) -> None:
    model = load_model(tiny)
    with torch.no_grad():
        blocks(model)[0].down.weight[:] = 0
    masked = logits(model)
    save_model(pack(model), tmp_path / "packed", tokenizer_from=tiny, dtype=torch.float32)
    packed = load_model(tmp_path / "packed")
    torch.testing.assert_close(logits(packed), masked, atol=1e-5, rtol=0)
    assert packed.config.intermediate_sizes == [0, 48]
    assert not any(name.startswith("bert.encoder.layer.0.intermediate") for name, _ in packed.named_parameters())


def test_packing_again_changes_nothing(tiny: Path) -> None:
    model = load_model(tiny)
    prune_by_hand(model)
    pack(model)
    once = {name: tuple(weight.shape) for name, weight in model.state_dict().items()}
    pack(model)
    assert {name: tuple(weight.shape) for name, weight in model.state_dict().items()} == once
    assert {number: sorted(heads) for number, heads in model.config.pruned_heads.items()} == {0: [1], 1: [0, 1, 2, 3]}


def test_a_packed_checkpoint_says_what_it_was_made_from(tiny: Path, tmp_path: Path) -> None:
    model = load_model(tiny)
    prune_by_hand(model)
    masked = tmp_path / "masked"
    save_model(model, masked, tokenizer_from=tiny, dtype=torch.float32)
    fitted: dict[str, Any] = {"temperature": 1.5, "null_threshold": -0.5}
    replace(manifest_of(masked, step="test", parent=None, settings={"seed": 1}), **fitted).write(masked)
    pack_checkpoint(masked, tmp_path / "packed", {"source": "masked"})
    packed = load_model(tmp_path / "packed")
    torch.testing.assert_close(logits(packed), logits(model), atol=1e-5, rtol=0)
    manifest = read_manifest(tmp_path / "packed")
    kept = {name: getattr(manifest, name) for name in fitted}
    assert kept == fitted, "what was fitted stays true of weights that compute the same"
    assert manifest.parent == file_hash(masked / WEIGHTS)
    assert manifest.settings == {"source": "masked", "seed": 1}, "and so does how they were trained"
    assert manifest.parameters == sum(each.numel() for each in packed.parameters())
    assert manifest.largest_logit_difference is not None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_a_saved_checkpoint_is_read_back(tmp_path: Path, dtype: torch.dtype) -> None:
    source = random_bert(tmp_path / "source", seed=3)
    model = load_model(source)
    save_model(model, tmp_path / "copy", tokenizer_from=source, dtype=dtype)
    copy = load_model(tmp_path / "copy")
    assert next(copy.parameters()).dtype == torch.float32, "storage precision is not what is computed in"
    torch.testing.assert_close(logits(copy), logits(model), atol=1e-6 if dtype == torch.float32 else 0.2, rtol=0)


def test_what_was_never_taught_is_not_packed(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match="no output layer"):
        pack_checkpoint(encoder_of(tiny), tmp_path / "packed", {})


def test_an_encoder_begins_with_two_outputs_whatever_it_was_trained_for_before(tiny: Path) -> None:
    encoder = encoder_of(tiny)
    config = json.loads((encoder / "config.json").read_text())
    labels = {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
    (encoder / "config.json").write_text(json.dumps(config | labels))
    assert logits(load_model(encoder)).shape == (2 * len(IDS), IDS.shape[1])


def test_what_was_made_of_a_packed_model_stands_beside_it_wherever_it_is_packed_again(
    tiny: Path, tmp_path: Path
) -> None:
    model = load_model(tiny)
    prune_by_hand(model)
    save_model(model, tmp_path / "masked", tokenizer_from=tiny, dtype=torch.float32)
    pack_checkpoint(tmp_path / "masked", tmp_path / "mine", {})
    pack_checkpoint(tmp_path / "mine", tmp_path / "copy", {})
    smaller.note(tmp_path / "copy", "pruned", tmp_path / "mine")
    for each in ("copy", "mine"):
        assert smaller.made_of(tmp_path / each) == {"pruned": tmp_path / "mine"}


def smaller_of(folder: Path, kind: str = "bert", seed: int = 1) -> Path:
    """What training leaves as a smaller checkpoint, in place of what the folder held."""
    shutil.rmtree(folder, ignore_errors=True)
    manifest_of(checkpoint_of(kind, folder, seed=seed), step="prune", parent=None, settings={}).write(folder)
    return folder


def test_what_takes_a_smaller_checkpoints_place_is_not_taken_for_it(tmp_path: Path) -> None:
    one, other = (checkpoint_of("bert", tmp_path / str(seed), seed=seed) for seed in (5, 6))
    place = smaller_of(tmp_path / "pruned")
    smaller.note(one, "pruned", place)
    assert smaller.made_of(one) == {"pruned": place}
    smaller.note(other, "pruned", smaller_of(place, seed=2))
    assert (smaller.made_of(one), smaller.made_of(other)) == ({}, {"pruned": place})
    smaller.note(one, "pruned", smaller_of(place, "electra"))
    assert smaller.made_of(one) == {}, "of another kind"


def test_a_copy_that_computes_otherwise_has_smaller_checkpoints_of_its_own(tmp_path: Path) -> None:
    model, copy = (checkpoint_of("bert", tmp_path / name, seed=5) for name in ("mine", "copy"))
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"hidden_act": "relu"}))
    place = smaller_of(tmp_path / "pruned")
    smaller.note(model, "pruned", place)
    assert smaller.made_of(copy) == {}
    smaller.note(copy, "pruned", smaller_of(tmp_path / "other"))
    assert smaller.made_of(model) == {"pruned": place}
