"""BERT (Devlin et al. 2019): MiniLM, BERT-base, BERT-large and their like.

A packed checkpoint's config carries ``pruned_heads`` (transformers' own key: layer → removed heads) and
``intermediate_sizes`` (ours: FFN columns kept, one number a layer). Where a layer keeps no head or no column, see
``emptied``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from qa_backends.checkpoints.architectures import Architecture, Block
from qa_backends.checkpoints.emptied import bias_alone, no_columns, no_heads

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import nn
    from transformers import PreTrainedModel


class Bert(Architecture):
    base = "bert."
    head = "qa_outputs."
    fusion = "bert"

    def model(self, settings: Mapping[str, Any], attention: str) -> PreTrainedModel:
        from torch import nn
        from transformers import BertConfig, BertForQuestionAnswering

        config = BertConfig.from_dict(dict(settings), attn_implementation=attention)
        pruned = config.pruned_heads or {}
        config.pruned_heads = {}  # of which it would remove no layer's all
        model = BertForQuestionAnswering(config)  # type: ignore[no-untyped-call]  # transformers leaves it untyped
        config.pruned_heads = pruned
        for number, heads in pruned.items():
            _remove_heads(_layers(model)[number], set(heads))
        for layer, size in zip(_layers(model), settings.get("intermediate_sizes") or [], strict=False):
            if size:
                _replace_ffn(layer, nn.Linear(config.hidden_size, size), nn.Linear(size, config.hidden_size))
            else:
                _remove_ffn(layer)
        return model

    def blocks(self, model: PreTrainedModel) -> list[Block]:
        return [_block(layer) for layer in _layers(model)]

    def replace_layers(self, model: PreTrainedModel, numbers: Sequence[int]) -> None:
        from torch import nn

        layers = _layers(model)
        encoder: Any = model.get_submodule("bert.encoder")
        encoder.layer = nn.ModuleList(layers[number] for number in numbers)
        model.config.num_hidden_layers = len(numbers)

    def tables(self, model: PreTrainedModel) -> list[nn.Embedding]:
        embeddings: Any = model.get_submodule("bert.embeddings")
        return [embeddings.word_embeddings, embeddings.position_embeddings]

    def expected_fusions(self, config: Mapping[str, Any]) -> dict[str, int]:
        layers, pruned = int(config["num_hidden_layers"]), config.get("pruned_heads") or {}
        empty = {int(layer) for layer, heads in pruned.items() if len(heads) == config["num_attention_heads"]}
        attentions = layers - len(empty)
        ffns = layers - list(config.get("intermediate_sizes") or []).count(0)
        return {
            "EmbedLayerNormalization": int(0 not in empty),  # it is recognised by the attention that follows
            "Attention": attentions,
            "SkipLayerNormalization": attentions + ffns,
            "BiasGelu": ffns,
        }


def _layers(model: PreTrainedModel) -> list[Any]:
    """transformers' own layer modules; ``Any`` since their parts are found by name when they run."""
    return list(model.get_submodule("bert.encoder.layer").children())


def _block(layer: Any) -> Block:
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


def _remove_heads(layer: Any, numbers: set[int]) -> None:
    attention = layer.attention
    if len(numbers) < attention.self.num_attention_heads:
        attention.prune_heads(numbers)
        return
    attention.pruned_heads = attention.pruned_heads | numbers
    attention.self = no_heads(attention.self.attention_head_size)
    attention.output.dense = bias_alone(attention.output.dense.bias.data)


def _replace_ffn(layer: Any, up: nn.Linear, down: nn.Linear) -> None:
    layer.intermediate.dense, layer.output.dense = up, down


def _remove_ffn(layer: Any) -> None:
    layer.intermediate.dense, layer.output.dense = no_columns(), bias_alone(layer.output.dense.bias.data)


ARCHITECTURE = Bert()
