"""Kinds of model that can be read: one small file each, named as the config's ``model_type`` names them."""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from qa_backends.contract import DEFAULT_SETTINGS, ReaderSettings
from qa_backends.errors import ArtefactError

if TYPE_CHECKING:
    import torch
    from torch import nn
    from transformers import PretrainedConfig, PreTrainedModel

SEGMENTS = "token_type_ids"
INPUTS = ("input_ids", "attention_mask", SEGMENTS)
LENGTHS = 32
"""What engines that prepare for each length pad windows to multiples of."""


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


OF_THE_CALLER = ("attn_implementation", "torchscript", "return_dict", "output_attentions", "output_hidden_states")
"""What configs can say of how a model is called, which is said here."""


class Architecture:
    """What loading, packing, pruning, exporting and fusing must know of a kind of model, and nothing more.

    A packed checkpoint's config carries ``pruned_heads`` (transformers' own key: layer → removed heads) and
    ``intermediate_sizes`` (ours: FFN columns kept, one number a layer). Where a layer keeps no head or no column, see
    ``emptied``.
    """

    name: ClassVar[str]
    """What the names of its classes in transformers begin with, as in "Roberta"."""
    base: ClassVar[str]
    """Prefix of the encoder's weights in a question-answering checkpoint, which one saved without a head lacks."""
    head: ClassVar[str] = "qa_outputs."
    """Prefix of the output layer's weights."""
    encoder: ClassVar[str] = "encoder"
    """What the module of the layers is called."""
    fusion: ClassVar[str] = ""
    """What onnxruntime's optimiser calls the kind; empty where it does not fuse all that there is to fuse."""
    layers_known: ClassVar[bool] = True
    """Whether ``blocks`` tells what a layer is made of, so that it can be packed and pruned."""
    fused_attention: ClassVar[bool] = True
    """Whether transformers has it with PyTorch's fused attention."""
    first_position: ClassVar[int] = 0
    """The number of a window's first position; the table's places before are never used by tokens."""
    dropouts: ClassVar[tuple[str, ...]] = ("hidden_dropout_prob", "attention_probs_dropout_prob")
    """The config's shares of what is left out at random in training."""

    renamed: ClassVar[Mapping[str, str]] = {}
    """What this kind's configs call otherwise than most do: the common name, and its own."""

    def model(self, settings: Mapping[str, Any], attention: str) -> PreTrainedModel:
        """A model of the shape that ``config.json`` describes, its weights random; ``attention`` as transformers names
        its implementations.

        Raises:
            ArtefactError: layers are to be pruned whose parts are not known.
        """
        import transformers
        from torch import nn

        config = self.config(settings, attention if self.fused_attention else "eager")
        pruned, sizes = config.pruned_heads or {}, settings.get("intermediate_sizes") or []
        config.pruned_heads = {}  # of which it would remove no layer's all
        model: PreTrainedModel = getattr(transformers, f"{self.name}ForQuestionAnswering")(config)
        config.pruned_heads = pruned
        if (pruned or sizes) and not self.layers_known:
            raise ArtefactError(f"Pruned models of the kind '{config.model_type}' cannot be read. Use a whole one.")
        for number, heads in pruned.items():
            self.blocks(model)[number].remove(set(heads))
        for block, size in zip(self.blocks(model) if sizes else [], sizes, strict=False):
            if size:
                hidden = block.down.out_features
                block.replace_ffn(nn.Linear(hidden, size), nn.Linear(size, hidden))
            else:
                block.remove_ffn()
        return model

    def config(self, settings: Mapping[str, Any], attention: str = "eager") -> PretrainedConfig:
        """What ``config.json`` says as transformers has it, with whatever that leaves out."""
        import transformers

        kind: Any = getattr(transformers, f"{self.name}Config")
        # What begins with "_" is transformers' own, and could name code to fetch.
        public = {key: each for key, each in settings.items() if key[:1] != "_" and key not in OF_THE_CALLER}
        config: PretrainedConfig = kind.from_dict(public, attn_implementation=attention)
        return config

    def blocks(self, model: PreTrainedModel) -> list[Block]:
        """The encoder's layers, first to last; none where ``layers_known`` is false."""
        return [self.block(layer) for layer in self.layers(model)] if self.layers_known else []

    def block(self, layer: Any) -> Block:
        """One of transformers' layer modules by its parts; ``Any`` since they are found by name when it runs."""
        raise NotImplementedError

    def layers(self, model: PreTrainedModel) -> list[Any]:
        """transformers' own layer modules."""
        return list(model.get_submodule(f"{self.base}{self.encoder}.layer").children())

    def replace_layers(self, model: PreTrainedModel, numbers: Sequence[int]) -> None:
        """Leaves, in place, only the layers ``numbers``, in that order, and notes how many in the config."""
        from torch import nn

        layers = self.layers(model)
        encoder: Any = model.get_submodule(self.base + self.encoder)
        encoder.layer = nn.ModuleList(layers[number] for number in numbers)
        model.config.num_hidden_layers = len(numbers)

    def tables(self, model: PreTrainedModel) -> list[nn.Embedding]:
        """The large embedding tables: words and, where they are learned, positions."""
        embeddings = dict(model.get_submodule(f"{self.base}embeddings").named_children())
        found: Any = [embeddings.get(name) for name in ("word_embeddings", "position_embeddings")]
        return [each for each in found if each is not None]

    def max_tokens(self, config: Mapping[str, Any]) -> int:
        """The longest window that a model of that ``config.json`` reads."""
        return int(config["max_position_embeddings"]) - self.first_position

    def reads(self, config: Mapping[str, Any]) -> ReaderSettings:
        """How its texts are cut: as everybody's, or shorter where it reads less at once: then still a multiple of
        ``LENGTHS``, since engines that prepare for each length pad to one, which must not be beyond its positions."""
        limit = min(DEFAULT_SETTINGS.max_seq_len, self.max_tokens(config))
        limit = limit // LENGTHS * LENGTHS or limit
        return ReaderSettings(
            max_seq_len=limit,
            stride=min(DEFAULT_SETTINGS.stride, limit // 3),
            max_question_tokens=min(DEFAULT_SETTINGS.max_question_tokens, limit // 3),
        )

    def expected_fusions(self, config: Mapping[str, Any]) -> dict[str, int]:
        """How often each fused operator occurs in the graph of a model of that ``config.json`` when all of it was
        fused; only asked where ``fuses`` says so."""
        raise NotImplementedError

    def fuses(self, config: Mapping[str, Any]) -> bool:
        """Whether onnxruntime's optimiser fuses all that there is to fuse of a model of that ``config.json``."""
        return bool(self.fusion)

    def inputs(self, model: PreTrainedModel) -> list[str]:
        """Of the arrays of ``Windows``, those that the model takes: segments only where it tells two of them apart."""
        takes = inspect.signature(model.forward).parameters
        segments = getattr(model.config, "type_vocab_size", 0) > 1
        return [name for name in INPUTS if name in takes and (segments or name != SEGMENTS)]

    def common(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """A ``config.json`` with what most kinds call hidden size, layers, heads and columns under those names too."""
        return {**config, **{name: config[own] for name, own in self.renamed.items() if own in config}}

    def in_encoder(self, weight: str) -> bool:
        """Whether a weight, by its name, belongs to the encoder's layers."""
        return f".{self.encoder}." in weight


def known() -> list[str]:
    """The kinds there are, as configs name them."""
    return sorted(each.name.replace("_", "-") for each in pkgutil.iter_modules(__path__))


def architecture_of(config: Mapping[str, Any] | PretrainedConfig) -> Architecture:
    """The kind that the config names.

    Raises:
        ArtefactError: it names none of those that can be read.
    """
    kind = config.get("model_type") if isinstance(config, Mapping) else config.model_type
    return architecture(str(kind))


def architecture(kind: str) -> Architecture:
    """The kind of that name, as in "xlm-roberta". Raises what ``architecture_of`` raises."""
    if kind not in known():
        raise ArtefactError(
            f"Models of the kind '{kind}' cannot be read. Choose one of the kinds {', '.join(known())}."
        )
    found: Architecture = importlib.import_module(f"{__name__}.{kind.replace('-', '_')}").ARCHITECTURE
    return found


def parameter_counts(of: Architecture, shapes: Mapping[str, Iterable[int]]) -> tuple[int, int]:
    """Parameters in all, and those of the encoder's layers (without embeddings and output layer)."""
    total = encoder = 0
    for name, shape in shapes.items():
        count = math.prod(shape)
        total += count
        encoder += count if of.in_encoder(name) else 0
    return total, encoder
