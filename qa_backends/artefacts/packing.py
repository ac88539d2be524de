"""Pack: what pruning zeroed is really removed, so that every matrix is smaller and the model computes the same.

A head is empty when nothing of it reaches the attention's output layer; an FFN column is empty when nothing of it
reaches the FFN's output layer, or when it holds one constant, which is folded into the output's bias first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from transformers import BertForQuestionAnswering
    from transformers.models.bert.modeling_bert import BertLayer


def pack(model: BertForQuestionAnswering) -> BertForQuestionAnswering:
    """Removes empty heads and FFN columns in place, notes what is left in the model's config, and returns the model."""
    layers = model.bert.encoder.layer
    for number, layer in enumerate(layers):
        keep_heads(model, number, used_heads(layer))
    for layer in layers:
        keep_columns(layer, used_columns(layer))
    model.config.intermediate_sizes = [layer.intermediate.dense.out_features for layer in layers]
    return model


def used_heads(layer: BertLayer) -> torch.Tensor:
    """Boolean ``[heads]`` of the heads still in the layer; at least one is kept, since attention must have a shape."""
    heads = layer.attention.self.num_attention_heads
    weight = layer.attention.output.dense.weight
    used = weight.reshape(weight.shape[0], heads, -1).abs().amax(dim=(0, 2)) > 0
    return _at_least_one(used)


def keep_heads(model: BertForQuestionAnswering, number: int, keep: torch.Tensor) -> None:
    """Removes the heads of layer ``number`` that ``keep`` (over those still there) leaves out."""
    removed_before = set(model.bert.encoder.layer[number].attention.pruned_heads)
    there = [head for head in range(model.config.num_attention_heads) if head not in removed_before]
    gone = {head for head, stays in zip(there, keep.tolist(), strict=True) if not stays}
    if gone:
        model.bert.encoder.layer[number].attention.prune_heads(gone)
    everything_gone = sorted(removed_before | gone)
    model.config.pruned_heads = dict(model.config.pruned_heads or {}) | {number: everything_gone}


def used_columns(layer: BertLayer) -> torch.Tensor:
    """Boolean ``[columns]``; a column of constant value is folded into the output's bias and then counts as empty."""
    import torch

    up, down = layer.intermediate.dense, layer.output.dense
    reaches = down.weight.abs().amax(dim=0) > 0
    varies = up.weight.abs().amax(dim=1) > 0
    constant = reaches & ~varies
    with torch.no_grad():
        value = layer.intermediate.intermediate_act_fn(up.bias[constant])
        down.bias += down.weight[:, constant] @ value
        down.weight[:, constant] = 0
    return _at_least_one(reaches & varies)


def keep_columns(layer: BertLayer, keep: torch.Tensor) -> None:
    """Replaces the FFN of the layer by one that has the columns ``keep`` only."""
    from torch import nn

    up, down = layer.intermediate.dense, layer.output.dense
    size = int(keep.sum())
    smaller_up = nn.Linear(up.in_features, size)
    smaller_down = nn.Linear(size, down.out_features)
    smaller_up.weight.data = up.weight.data[keep].clone()
    smaller_up.bias.data = up.bias.data[keep].clone()
    smaller_down.weight.data = down.weight.data[:, keep].clone()
    smaller_down.bias.data = down.bias.data.clone()
    layer.intermediate.dense, layer.output.dense = smaller_up, smaller_down


def _at_least_one(used: torch.Tensor) -> torch.Tensor:
    if not bool(used.any()):
        used = used.clone()
        used[0] = True
    return used
