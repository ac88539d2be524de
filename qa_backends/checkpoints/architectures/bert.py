"""BERT (Devlin et al. 2019): MiniLM, BERT-base, BERT-large and their like."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from qa_backends.checkpoints.architectures import Architecture, Block
from qa_backends.checkpoints.emptied import bias_alone, no_columns, no_heads, places_without

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import nn


class Bert(Architecture):
    name: ClassVar = "Bert"
    base: ClassVar = "bert."
    fusion: ClassVar = "bert"
    fuses_embedding: ClassVar[bool] = True
    """Whether the optimiser knows how words and positions are added up: of models that number their positions in the
    graph, it does not."""

    def block(self, layer: Any) -> Block:
        attention = layer.attention
        return Block(
            heads=attention.self.num_attention_heads,
            head_size=attention.self.attention_head_size,
            attention_output=attention.output.dense,
            up=layer.intermediate.dense,
            down=layer.output.dense,
            activation=layer.intermediate.intermediate_act_fn,
            removed=frozenset(attention.pruned_heads),
            remove=partial(_remove_heads, layer),
            replace_ffn=partial(_replace_ffn, layer),
            remove_ffn=partial(_remove_ffn, layer),
        )

    def fuses(self, config: Mapping[str, Any]) -> bool:
        """Neither other activations nor positions by distance are recognised."""
        absolute = config.get("position_embedding_type", "absolute") == "absolute"
        return absolute and config.get("hidden_act", "gelu") in ("gelu", "gelu_python")

    def expected_fusions(self, config: Mapping[str, Any]) -> dict[str, int]:
        layers, pruned = int(config["num_hidden_layers"]), config.get("pruned_heads") or {}
        empty = {int(layer) for layer, heads in pruned.items() if len(heads) == config["num_attention_heads"]}
        attentions = layers - len(empty)
        ffns = layers - list(config.get("intermediate_sizes") or []).count(0)
        return {
            # It is recognised by the attention that follows.
            "EmbedLayerNormalization": int(self.fuses_embedding and 0 not in empty),
            "Attention": attentions,
            "SkipLayerNormalization": attentions + ffns,
            "BiasGelu": ffns,
        }


def _remove_heads(layer: Any, numbers: set[int]) -> None:
    from transformers.pytorch_utils import prune_linear_layer

    attention, own = layer.attention, layer.attention.self
    left = places_without(own.num_attention_heads, own.attention_head_size, numbers, frozenset(attention.pruned_heads))
    attention.pruned_heads = attention.pruned_heads | numbers
    if not len(left):
        attention.self = no_heads(own.attention_head_size)
        attention.output.dense = bias_alone(attention.output.dense.bias.data)
        return
    own.query, own.key, own.value = (prune_linear_layer(each, left) for each in (own.query, own.key, own.value))
    attention.output.dense = prune_linear_layer(attention.output.dense, left, dim=1)
    own.num_attention_heads, own.all_head_size = len(left) // own.attention_head_size, len(left)


def _replace_ffn(layer: Any, up: nn.Linear, down: nn.Linear) -> None:
    layer.intermediate.dense, layer.output.dense = up, down


def _remove_ffn(layer: Any) -> None:
    layer.intermediate.dense, layer.output.dense = no_columns(), bias_alone(layer.output.dense.bias.data)


ARCHITECTURE = Bert()
