"""Kinds of model that can be read: one small file each, named as the config's ``model_type`` names them."""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from qa_backends.errors import ArtefactError

if TYPE_CHECKING:
    import torch
    from torch import nn
    from transformers import PretrainedConfig, PreTrainedModel


@dataclass(frozen=True, slots=True)
class Block:
    """One layer of the encoder, by the parts that packing and pruning touch.

    ``heads`` are those still there, each ``head_size`` wide; ``attention_output`` is ``[hidden, heads * head_size]``.
    ``up`` and ``down`` are the feed-forward network (FFN), with ``activation`` between. Of either, nothing may be left.
    ``removed`` are the numbers, in the unpruned layer, of heads that are gone; ``remove`` takes more of those numbers
    out, ``replace_ffn`` sets both matrices anew, ``remove_ffn`` leaves its output's bias.
    """

    heads: int
    head_size: int
    attention_output: nn.Linear
    up: nn.Linear
    down: nn.Linear
    activation: Callable[[torch.Tensor], torch.Tensor]
    removed: frozenset[int]
    remove: Callable[[set[int]], None]
    replace_ffn: Callable[[nn.Linear, nn.Linear], None]
    remove_ffn: Callable[[], None]


class Architecture(ABC):
    """What loading, packing, pruning, exporting and fusing must know of a kind of model, and nothing more."""

    base: ClassVar[str]
    """Prefix of the encoder's weights in a question-answering checkpoint, which one saved without a head lacks."""
    head: ClassVar[str]
    """Prefix of the output layer's weights."""
    fusion: ClassVar[str]
    """What onnxruntime's optimiser calls the kind."""

    @abstractmethod
    def model(self, settings: Mapping[str, Any], attention: str) -> PreTrainedModel:
        """A model of the shape that ``config.json`` describes, its weights random; ``attention`` as transformers names
        its implementations."""

    @abstractmethod
    def blocks(self, model: PreTrainedModel) -> list[Block]:
        """The encoder's layers, first to last."""

    @abstractmethod
    def replace_layers(self, model: PreTrainedModel, numbers: Sequence[int]) -> None:
        """Leaves, in place, only the layers ``numbers``, in that order, and notes how many in the config."""

    @abstractmethod
    def tables(self, model: PreTrainedModel) -> list[nn.Embedding]:
        """The large embedding tables: words and positions."""

    @abstractmethod
    def expected_fusions(self, config: Mapping[str, Any]) -> dict[str, int]:
        """How often each fused operator occurs in the graph of a model of that ``config.json`` when all of it was
        fused."""

    def in_encoder(self, weight: str) -> bool:
        """Whether a weight, by its name, belongs to the encoder's layers."""
        return ".encoder." in weight


def known() -> list[str]:
    """The kinds there are."""
    return sorted(each.name for each in pkgutil.iter_modules(__path__))


def architecture_of(config: Mapping[str, Any] | PretrainedConfig) -> Architecture:
    """The kind that the config names.

    Raises:
        ArtefactError: it names none of those that can be read.
    """
    kind = config.get("model_type") if isinstance(config, Mapping) else config.model_type
    if kind not in known():
        raise ArtefactError(
            f"Models of the kind '{kind}' cannot be read. Choose one of the kinds {', '.join(known())}."
        )
    found: Architecture = importlib.import_module(f"{__name__}.{kind}").ARCHITECTURE
    return found


def parameter_counts(architecture: Architecture, shapes: Mapping[str, Iterable[int]]) -> tuple[int, int]:
    """Parameters in all, and those of the encoder's layers (without embeddings and output layer)."""
    total = encoder = 0
    for name, shape in shapes.items():
        count = 1
        for size in shape:
            count *= size
        total += count
        encoder += count if architecture.in_encoder(name) else 0
    return total, encoder
