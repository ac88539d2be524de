"""A switch on every attention head and every FFN column: what pruning measures, learns and finally turns off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qa_backends.checkpoints.architectures import architecture_of, parameter_counts
from qa_backends.checkpoints.packing import keep_columns, keep_heads, keep_layers

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch
    from transformers import PreTrainedModel

    Hook = Callable[[torch.nn.Module, tuple[torch.Tensor, ...]], tuple[torch.Tensor]]


class Gates:
    """Multiplies what each head and each column passes on by a number, 1 at first.

    ``heads`` and ``columns`` hold one float32 tensor a layer, ``[heads]`` and ``[columns]``, empty where pruning left
    none; assign to their entries to change what passes. ``remove`` takes the hooks out again.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        import torch

        blocks = architecture_of(model.config).blocks(model)
        self.heads = [torch.ones(each.heads, device=model.device) for each in blocks]
        self.columns = [torch.ones(each.up.out_features, device=model.device) for each in blocks]
        self._hooks = []
        for number, block in enumerate(blocks):
            self._hooks.append(
                block.attention_output.register_forward_pre_hook(self._of_heads(number, block.head_size))
            )
            self._hooks.append(block.down.register_forward_pre_hook(self._of_columns(number)))

    def _of_heads(self, number: int, size: int) -> Hook:
        return lambda _module, inputs: (inputs[0] * self.heads[number].repeat_interleave(size).to(inputs[0].dtype),)

    def _of_columns(self, number: int) -> Hook:
        return lambda _module, inputs: (inputs[0] * self.columns[number].to(inputs[0].dtype),)

    def remove(self) -> None:
        for hook in self._hooks:
            hook.remove()


def layer_costs(model: PreTrainedModel) -> tuple[int, int]:
    """Parameters of one head and of one FFN column, their biases included; every layer's cost the same."""
    block = architecture_of(model.config).blocks(model)[0]
    hidden, size = block.attention_output.out_features, block.head_size
    return 4 * hidden * size + 3 * size, 2 * hidden + 1


def encoder_parameters(model: PreTrainedModel) -> int:
    """Parameters of the encoder's layers, without embeddings and output layer."""
    shapes = {name: tuple(each.shape) for name, each in model.named_parameters()}
    return parameter_counts(architecture_of(model.config), shapes)[1]


def choose(
    heads: list[torch.Tensor], columns: list[torch.Tensor], costs: tuple[int, int], spare: int
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Which heads and columns to keep: the least worth a parameter go first, until ``spare`` parameters are gone.

    ``heads`` and ``columns`` are worths, one tensor a layer. The best head and column of each layer always stay.
    """
    candidates = []
    for kind, (worths, cost) in enumerate(zip((heads, columns), costs, strict=True)):
        for layer, worth in enumerate(worths):
            best = int(worth.argmax()) if len(worth) else None
            candidates += [
                (float(value) / cost, cost, kind, layer, index) for index, value in enumerate(worth) if index != best
            ]
    kept = (
        [each.new_ones(each.shape).bool() for each in heads],
        [each.new_ones(each.shape).bool() for each in columns],
    )
    for _, cost, kind, layer, index in sorted(candidates):
        if spare <= 0:
            break
        kept[kind][layer][index] = False
        spare -= cost
    return kept


def cut_down(model: PreTrainedModel, heads: list[torch.Tensor], columns: list[torch.Tensor]) -> None:
    """Removes from the model, in place, the heads and columns that are not kept."""
    for number, (kept_heads, kept_columns) in enumerate(zip(heads, columns, strict=True)):
        keep_heads(model, number, kept_heads)
        keep_columns(model, number, kept_columns)


def drop_emptied(model: PreTrainedModel) -> None:
    """Removes from the model, in place, the layers that have neither heads nor columns left; one layer stays.

    Such a layer adds one vector to every token and normalises it twice, which its neighbours learn to do without.
    """
    blocks = architecture_of(model.config).blocks(model)
    left = [number for number, each in enumerate(blocks) if each.heads or each.up.out_features]
    if len(left) < len(blocks):
        keep_layers(model, left or [0])
