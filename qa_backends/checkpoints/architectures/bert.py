"""BERT (Devlin et al. 2019): MiniLM, BERT-base, BERT-large and their like.

A packed checkpoint's config carries ``pruned_heads`` (transformers' own key: layer → removed heads) and
``intermediate_sizes`` (ours: FFN columns kept, one number a layer).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from qa_backends.checkpoints.architectures import Architecture, Block

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        # It honours pruned_heads.
        model = BertForQuestionAnswering(config)  # type: ignore[no-untyped-call]  # transformers leaves it untyped
        for layer, size in zip(_layers(model), settings.get("intermediate_sizes") or [], strict=False):
            _replace_ffn(layer, nn.Linear(config.hidden_size, size), nn.Linear(size, config.hidden_size))
        return model

    def blocks(self, model: PreTrainedModel) -> list[Block]:
        return [_block(layer) for layer in _layers(model)]

    def tables(self, model: PreTrainedModel) -> list[nn.Embedding]:
        embeddings: Any = model.get_submodule("bert.embeddings")
        return [embeddings.word_embeddings, embeddings.position_embeddings]

    def expected_fusions(self, layers: int) -> dict[str, int]:
        return {
            "EmbedLayerNormalization": 1,
            "Attention": layers,
            "SkipLayerNormalization": 2 * layers,
            "BiasGelu": layers,
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
        remove=attention.prune_heads,
        replace_ffn=partial(_replace_ffn, layer),
    )


def _replace_ffn(layer: Any, up: nn.Linear, down: nn.Linear) -> None:
    layer.intermediate.dense, layer.output.dense = up, down


ARCHITECTURE = Bert()
