"""A switch on every attention head and every FFN column: what pruning measures, learns and finally turns off."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from qa_backends.artefacts.packing import keep_columns, keep_heads

if TYPE_CHECKING:
    from transformers import BertForQuestionAnswering


class Gates:
    """Multiplies what each head and each column passes on by a number, 1 at first.

    ``heads`` and ``columns`` hold one float32 tensor a layer, ``[heads]`` and ``[columns]``; assign to their entries to
    change what passes. ``remove`` takes the hooks out again.
    """

    def __init__(self, model: BertForQuestionAnswering) -> None:
        layers = model.bert.encoder.layer
        device = model.device
        self.heads = [torch.ones(each.attention.self.num_attention_heads, device=device) for each in layers]
        self.columns = [torch.ones(each.intermediate.dense.out_features, device=device) for each in layers]
        self._hooks = []
        for number, layer in enumerate(layers):
            size = layer.attention.self.attention_head_size
            self._hooks.append(layer.attention.output.dense.register_forward_pre_hook(self._of_heads(number, size)))
            self._hooks.append(layer.output.dense.register_forward_pre_hook(self._of_columns(number)))

    def _of_heads(self, number: int, size: int):  # noqa: ANN202 (a hook, in the shape torch calls it)
        return lambda _module, inputs: (inputs[0] * self.heads[number].repeat_interleave(size).to(inputs[0].dtype),)

    def _of_columns(self, number: int):  # noqa: ANN202
        return lambda _module, inputs: (inputs[0] * self.columns[number].to(inputs[0].dtype),)

    def remove(self) -> None:
        for hook in self._hooks:
            hook.remove()


def layer_costs(model: BertForQuestionAnswering) -> tuple[int, int]:
    """Parameters of one head and of one FFN column, their biases included."""
    config = model.config
    size = config.hidden_size // config.num_attention_heads
    return 4 * config.hidden_size * size + 3 * size, 2 * config.hidden_size + 1


def encoder_parameters(model: BertForQuestionAnswering) -> int:
    return sum(each.numel() for each in model.bert.encoder.parameters())


def choose(
    heads: list[torch.Tensor], columns: list[torch.Tensor], costs: tuple[int, int], spare: int
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Which heads and columns to keep: the least worth a parameter go first, until ``spare`` parameters are gone.

    ``heads`` and ``columns`` are worths, one tensor a layer. The best head and column of each layer always stay.
    """
    candidates = []
    for kind, (worths, cost) in enumerate(zip((heads, columns), costs, strict=True)):
        for layer, worth in enumerate(worths):
            best = int(worth.argmax())
            candidates += [
                (float(value) / cost, cost, kind, layer, index) for index, value in enumerate(worth) if index != best
            ]
    kept = (
        [torch.ones_like(each, dtype=torch.bool) for each in heads],
        [torch.ones_like(each, dtype=torch.bool) for each in columns],
    )
    for _, cost, kind, layer, index in sorted(candidates):
        if spare <= 0:
            break
        kept[kind][layer][index] = False
        spare -= cost
    return kept


def cut_down(model: BertForQuestionAnswering, heads: list[torch.Tensor], columns: list[torch.Tensor]) -> None:
    """Removes from the model, in place, the heads and columns that are not kept."""
    for number, (kept_heads, kept_columns) in enumerate(zip(heads, columns, strict=True)):
        keep_heads(model, number, kept_heads)
        keep_columns(model.bert.encoder.layer[number], kept_columns)
    model.config.intermediate_sizes = [each.intermediate.dense.out_features for each in model.bert.encoder.layer]
