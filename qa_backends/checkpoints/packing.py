"""Pack: what pruning zeroed is really removed, so that every matrix is smaller and the model computes the same.

A head is empty when nothing of it reaches the attention's output layer; an FFN column is empty when nothing of it
reaches the FFN's output layer, or when it holds one constant, which is folded into the output's bias first.
"""

from __future__ import annotations

import shutil
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from qa_backends.checkpoints.architectures import architecture_of
from qa_backends.checkpoints.files import NAMED_IN, NAMING_FILES, VOCABULARIES, WEIGHTS
from qa_backends.checkpoints.fits import kept_fit
from qa_backends.checkpoints.load import json_of, load_model, read_config, save_model
from qa_backends.checkpoints.manifest import file_hash, fitted_of, has_head, known_manifest, manifest_of
from qa_backends.errors import ArtefactError, DriftError
from qa_backends.progress import UNWATCHED

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Any

    import torch
    from torch import nn
    from transformers import PreTrainedModel

    from qa_backends.checkpoints.architectures import Block
    from qa_backends.progress import Progress

PACKING_TOLERANCE = 1e-5
"""Packing removes zeros; it may change logits by no more than rounding the weights of a folded bias does."""
ONE_TOKENIZER = ("Bert", "DistilBert", "Electra")
"""Kinds whose tokenizers differ in their names alone."""
UNREAD = ("tokenizer_config.json", "tokenizer_file")
"""What names a file that transformers does not open where there is no ``tokenizer.json``."""


def pack_checkpoint(source: Path, folder: Path, settings: dict[str, Any], progress: Progress = UNWATCHED) -> None:
    """Writes the checkpoint, packed, with ``tokenizer.json`` and manifest, to ``folder``.

    Raises:
        DriftError: packing changed the logits.
        ArtefactError: there is no checkpoint, it has no output layer, or the weights do not fit the config.
        Cancelled: ``progress`` says to stop; what is in ``folder`` is of no use then.
    """
    import torch

    model = load_model(source)
    if not has_head(source):
        raise ArtefactError(f"{source} has no output layer. Fine-tune it first: train finetune --from {source}")
    before = _probe(model)
    progress.check()
    difference = float((_probe(pack(model)) - before).abs().max() / max(1.0, float(before.abs().max())))
    if not difference <= PACKING_TOLERANCE:
        raise DriftError("pack", difference, PACKING_TOLERANCE)
    progress.check()
    save_model(model, folder, tokenizer_from=source, dtype=torch.float32)
    write_tokenizer(source, folder)
    origin = file_hash(source / WEIGHTS)
    known = known_manifest(source)
    history = known.settings if known else {}  # it stays true of weights that compute the same
    made = manifest_of(folder, step="pack", parent=origin, settings=history | settings, difference=difference)
    replace(made, **asdict(kept_fit(origin) or fitted_of(source))).write(folder)


def pack(model: PreTrainedModel) -> PreTrainedModel:
    """Removes empty heads and FFN columns in place, notes what is left in the model's config, and returns the model."""
    blocks = architecture_of(model.config).blocks
    for number, block in enumerate(blocks(model)):
        keep_heads(model, number, used_heads(block))
    for number, block in enumerate(blocks(model)):
        keep_columns(model, number, used_columns(block))
    return model


def used_heads(block: Block) -> torch.Tensor:
    """Boolean ``[heads]`` of the heads still in the layer."""
    import torch

    if not block.heads:
        return torch.ones(0, dtype=torch.bool)
    weight = block.attention_output.weight
    return weight.reshape(weight.shape[0], block.heads, -1).abs().amax(dim=(0, 2)) > 0


def keep_heads(model: PreTrainedModel, number: int, keep: torch.Tensor) -> None:
    """Removes the heads of layer ``number`` that ``keep`` (over those still there) leaves out."""
    block = architecture_of(model.config).blocks(model)[number]
    there = [head for head in range(model.config.num_attention_heads) if head not in block.removed]
    gone = {head for head, stays in zip(there, keep.tolist(), strict=True) if not stays}
    if gone:
        block.remove(gone)
    everything_gone = sorted(block.removed | gone)
    model.config.pruned_heads = dict(model.config.pruned_heads or {}) | {number: everything_gone}


def keep_layers(model: PreTrainedModel, numbers: Sequence[int]) -> None:
    """Leaves the model, in place, the layers ``numbers``, in that order, and notes their shapes in its config."""
    architecture, config = architecture_of(model.config), model.config
    architecture.replace_layers(model, numbers)
    blocks = architecture.blocks(model)
    config.pruned_heads = {number: sorted(block.removed) for number, block in enumerate(blocks) if block.removed}
    config.intermediate_sizes = [block.up.out_features for block in blocks]


def used_columns(block: Block) -> torch.Tensor:
    """Boolean ``[columns]``; a column of constant value is folded into the output's bias and then counts as empty."""
    import torch

    up, down = block.up, block.down
    if not up.out_features:
        return torch.ones(0, dtype=torch.bool)
    reaches = down.weight.abs().amax(dim=0) > 0
    varies = up.weight.abs().amax(dim=1) > 0
    constant = reaches & ~varies
    with torch.no_grad():
        value = block.activation(up.bias[constant])
        down.bias.add_(down.weight[:, constant] @ value)
        down.weight[:, constant] = 0
    return reaches & varies


def keep_columns(model: PreTrainedModel, number: int, keep: torch.Tensor) -> None:
    """Gives layer ``number`` an FFN of the columns ``keep`` only, and notes its size in the model's config."""
    blocks = architecture_of(model.config).blocks(model)
    sizes = [block.up.out_features for block in blocks]
    size = int(keep.sum())
    if 0 < size < sizes[number]:
        blocks[number].replace_ffn(*_smaller(blocks[number], keep, size))
    elif size < sizes[number]:
        blocks[number].remove_ffn()
    model.config.intermediate_sizes = [*sizes[:number], size, *sizes[number + 1 :]]


def _smaller(block: Block, keep: torch.Tensor, size: int) -> tuple[nn.Linear, nn.Linear]:
    """Both matrices of the FFN with the columns that are kept."""
    from torch import nn

    up, down = nn.Linear(block.up.in_features, size), nn.Linear(size, block.down.out_features)
    up.weight.data = block.up.weight.data[keep].clone()
    up.bias.data = block.up.bias.data[keep].clone()
    down.weight.data = block.down.weight.data[:, keep].clone()
    down.bias.data = block.down.bias.data.clone()
    return up, down


def write_tokenizer(source: Path, folder: Path) -> None:
    """``tokenizer.json``, made from what stood in its place where the checkpoint predates it: ``vocab.txt``, or a list
    of merges, or a model of SentencePiece's.

    Raises:
        ArtefactError: there is none of them, or the model was saved with another tokenizer than its kind's.
    """
    if (source / "tokenizer.json").is_file():
        shutil.copyfile(source / "tokenizer.json", folder / "tokenizer.json")
        return
    import transformers

    check_tokenizer(source)
    name = architecture_of(read_config(source)).name
    kind = getattr(transformers, f"{name}TokenizerFast")
    try:
        kind.from_pretrained(source).backend_tokenizer.save(str(folder / "tokenizer.json"))
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise ArtefactError(f"{source} holds no tokenizer that can be read ({error}). Save one beside it.") from error


def check_tokenizer(source: Path) -> None:
    """Raises ArtefactError where there is no ``tokenizer.json``, and nothing that one can be made from, or the model
    was saved with another tokenizer than its kind's: of the same vocabulary, that would make other tokens. transformers
    opens whatever files the settings name, so they may name none: only the model's own are read."""
    if (source / "tokenizer.json").is_file():
        return
    if not any((source / each).is_file() for each in VOCABULARIES):
        raise ArtefactError(
            "This model has no tokenizer.json, and no vocabulary that one could be made from. Save its tokenizer "
            "beside it; or, where the Hub was out of reach, connect to the internet and ask again."
        )
    for file in NAMED_IN:
        settings = json_of(source / file)
        if named := [each for each in NAMING_FILES if settings.get(each) and (file, each) != UNREAD]:
            raise ArtefactError(
                f"Its {file} names files elsewhere ('{named[0]}'), which are not read. Choose a model that has a "
                "tokenizer.json."
            )
    name = architecture_of(read_config(source)).name
    alike = ONE_TOKENIZER if name in ONE_TOKENIZER else (name,)
    told = [json_of(source / each).get("tokenizer_class") for each in ("tokenizer_config.json", "config.json")]
    wanted = next((str(each) for each in told if each), f"{name}Tokenizer")
    if wanted.removesuffix("Fast") not in [f"{each}Tokenizer" for each in alike]:
        raise ArtefactError(
            f"This model was saved with a {wanted[:60]}, which splits texts otherwise than the {name}Tokenizer that "
            "is read here. Choose a model that has a tokenizer.json."
        )


def _probe(model: PreTrainedModel) -> torch.Tensor:
    """Logits ``[2, n]`` on tokens spread over the vocabulary.

    They are computed in double precision: in single precision, two calls of one unchanged model were seen to differ by
    more than the tolerance.
    """
    import torch

    count = min(64, architecture_of(model.config).max_tokens(model.config.to_dict()))
    ids = torch.linspace(0, model.config.vocab_size - 1, count).long()[None]
    model.double()
    with torch.inference_mode():
        out = model(input_ids=ids, attention_mask=torch.ones_like(ids))
    model.to(torch.float32)  # type: ignore[arg-type]  # as for devices, the stub leaves it out
    return torch.cat([out.start_logits, out.end_logits])
