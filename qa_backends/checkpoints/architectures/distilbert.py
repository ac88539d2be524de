"""DistilBERT (Sanh et al. 2019): BERT's layers under names of their own, without segments.

onnxruntime's optimiser finds its feed-forward networks and not its attention, so the graph is not offered as fused.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from qa_backends.checkpoints.architectures import Architecture, Block
from qa_backends.checkpoints.emptied import bias_alone, no_columns, places_without

if TYPE_CHECKING:
    import torch
    from torch import nn


class DistilBert(Architecture):
    name: ClassVar = "DistilBert"
    base: ClassVar = "distilbert."
    encoder: ClassVar = "transformer"
    renamed: ClassVar = {
        "hidden_size": "dim",
        "num_hidden_layers": "n_layers",
        "num_attention_heads": "n_heads",
        "intermediate_size": "hidden_dim",
    }
    dropouts: ClassVar = ("dropout", "attention_dropout", "qa_dropout")

    def block(self, layer: Any) -> Block:
        attention, ffn = layer.attention, layer.ffn
        return Block(
            heads=attention.n_heads,
            head_size=attention.attention_head_size,
            attention_output=attention.out_lin,
            up=ffn.lin1,
            down=ffn.lin2,
            activation=ffn.activation,
            removed=frozenset(attention.pruned_heads),
            remove=partial(_remove_heads, layer),
            replace_ffn=partial(_replace_ffn, ffn),
            remove_ffn=partial(_remove_ffn, ffn),
        )


def _remove_heads(layer: Any, numbers: set[int]) -> None:
    from transformers.pytorch_utils import prune_linear_layer

    own = layer.attention
    left = places_without(own.n_heads, own.attention_head_size, numbers, frozenset(own.pruned_heads))
    if not len(left):
        layer.attention = _no_heads(own, numbers)
        return
    own.q_lin, own.k_lin, own.v_lin = (prune_linear_layer(each, left) for each in (own.q_lin, own.k_lin, own.v_lin))
    own.out_lin = prune_linear_layer(own.out_lin, left, dim=1)
    own.n_heads, own.dim = len(left) // own.attention_head_size, len(left)
    own.pruned_heads = own.pruned_heads | numbers


def _no_heads(attention: Any, numbers: set[int]) -> nn.Module:
    """What stands in for attention of which the last heads went: its output's bias."""
    from torch import nn

    class NoHeads(nn.Module):
        n_heads, attention_head_size = 0, attention.attention_head_size
        pruned_heads = attention.pruned_heads | numbers

        def __init__(self) -> None:
            super().__init__()
            self.out_lin = bias_alone(attention.out_lin.bias.data)

        def forward(self, query: torch.Tensor, *_: object, **__: object) -> tuple[torch.Tensor]:
            return (self.out_lin(query[..., :0]),)

    return NoHeads()


def _replace_ffn(ffn: Any, up: nn.Linear, down: nn.Linear) -> None:
    ffn.lin1, ffn.lin2 = up, down


def _remove_ffn(ffn: Any) -> None:
    ffn.lin1, ffn.lin2 = no_columns(), bias_alone(ffn.lin2.bias.data)


ARCHITECTURE = DistilBert()
