"""Whether somebody's own checkpoint can be taken: found out from its small files and the head of its weights."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from qa_backends.checkpoints.architectures import architecture_of
from qa_backends.checkpoints.download import FILES
from qa_backends.checkpoints.files import WEIGHTS
from qa_backends.checkpoints.load import json_of, named, read_config
from qa_backends.checkpoints.manifest import weights_in
from qa_backends.checkpoints.packing import check_tokenizer
from qa_backends.errors import ArtefactError, InputError
from qa_backends.reader.tokens import SubwordTokenizer

if TYPE_CHECKING:
    from pathlib import Path

PICKLED = ("pytorch_model.bin", "model.bin", "tf_model.h5", "flax_model.msgpack")
PARTS = f"{WEIGHTS}.index.json"
"""Where transformers lists the files that large weights are split into."""
BYTES_PER_PARAMETER = 4
"""Of loaded weights: FP32 is the most any engine computes in."""
SMALL = tuple(name for name in FILES if name != WEIGHTS)
"""What is read of a folder besides the weights."""
GOES_BEFORE = {
    "do_lower_case": ("normalizer", "BertNormalizer", "lowercase"),
    "strip_accents": ("normalizer", "BertNormalizer", "strip_accents"),
    "add_prefix_space": ("pre_tokenizer", "ByteLevel", "add_prefix_space"),
}
"""What of ``tokenizer_config.json`` transformers goes by, whatever ``tokenizer.json`` says: in which part that has it,
of which kind, and as what."""
MOST_SMALL = 50_000_000
"""Bytes of a config or a vocabulary: those of a hundred languages have 17 million."""
MOST_LAYERS = 128
LAYERS = ("num_hidden_layers", "num_hidden_groups", "inner_group_num")
"""What configs count layers by, ALBERT's those that are shared too; only the first is in every one."""
MOST_OF_ANYTHING = 1_000_000
"""The highest number that a config may hold: the largest vocabularies have a quarter of it, and what is made for every
label or head before shapes are compared must not fill the memory."""
ROUNDED = ("I8", "U8", "I4", "U4", "F4", "F8_E4M3", "F8_E5M2", "F8_E8M0")
"""safetensors' names of types that weights are quantised to."""
SPANS = 2
"""Outputs of the head: a start logit and an end logit for each token."""


def admit(checkpoint: Path, most_bytes: int) -> dict[str, Any]:
    """The config of a checkpoint that can be taken; ``most_bytes`` is what its loaded weights may take.

    Raises:
        InputError: it wants code of its own, holds no safetensors weights in one file, was not taught to find spans, is
            too large, or its weights are quantised, or not those that its config describes, or its tokenizer's files
            contradict each other, or cannot be read; each with what to do.
        ArtefactError: there is no config, or it is of a kind that is not known, or has a tokenizer that is not, or
            none.
    """
    for name in (each for each in SMALL if (checkpoint / each).is_file()):
        if (size := (checkpoint / name).stat().st_size) > MOST_SMALL:
            raise InputError(f"Its {name} has {size / 1e6:,.0f} MB, which no config or vocabulary needs.")
    if any("auto_map" in json_of(checkpoint / name) for name in ("config.json", "tokenizer_config.json")):
        raise InputError("This model brings code of its own to run, which is never done here. Choose one without.")
    config = read_config(checkpoint)
    check_tokenizer(checkpoint)
    _check_splits_as_told(checkpoint)
    _check_opens(checkpoint)
    weights = _weights(checkpoint)
    _check_plain(config, weights)  # before shapes, which packing several numbers into one changes
    shapes = {name: shape for name, (_, shape) in weights.items()}
    head = f"{architecture_of(config).head}weight"
    if shapes.get(head, [])[:1] != [SPANS]:
        raise InputError(
            f"This model was not taught to find answers: it has no output layer '{head}' of {SPANS} rows. "
            "Fine-tune it first: python -m qa_backends train finetune --from FOLDER"
        )
    taken = sum(math.prod(each) for each in shapes.values()) * BYTES_PER_PARAMETER
    if taken > most_bytes:
        raise InputError(
            f"This model takes {taken / 1e9:.1f} GB once it is loaded, and models may take {most_bytes / 1e9:.1f} GB "
            "here. Choose a smaller one, or raise the limit: QA_MEMORY_GB, on a GPU QA_GPU_MEMORY_GB."
        )
    _check_described(config, shapes)
    return config


def _check_splits_as_told(checkpoint: Path) -> None:
    """Raises InputError where transformers would split texts otherwise than by ``tokenizer.json``, which is all that is
    read of a tokenizer here."""
    told, rules = json_of(checkpoint / "tokenizer_config.json"), json_of(checkpoint / "tokenizer.json")
    if told.get("tokenizer_class") == "PreTrainedTokenizerFast":  # which goes by tokenizer.json alone
        return
    for name, (part, kind, own) in GOES_BEFORE.items():
        found = each if isinstance(each := rules.get(part), dict) else {}
        said = found.get(own)
        if said is None:  # accents go where capitals do
            said = found.get("lowercase")
        known = found.get("type") == kind and isinstance(told.get(name), bool) and said is not None
        if known and told[name] != said:
            raise InputError(
                f"Its tokenizer_config.json says {told[name]} of '{name}', and its tokenizer.json {said}: "
                "transformers reads texts by the first, and here they would be read by the second. Save the tokenizer "
                "again: AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)."
            )


def _check_opens(checkpoint: Path) -> None:
    """Raises InputError where ``tokenizer.json`` is none that can be read."""
    if not (checkpoint / "tokenizer.json").is_file():
        return
    try:
        SubwordTokenizer(checkpoint)
    except ArtefactError as error:
        raise InputError(f"Its tokenizer.json cannot be read ({error.__cause__}). Save the tokenizer again.") from error


def _check_described(config: dict[str, Any], shapes: dict[str, list[int]]) -> None:
    """Compares the weights with the model that the config describes, before anything of that size is made.

    Raises:
        InputError: the config describes no model, or a weight is missing or of another shape.
    """
    import torch

    architecture = architecture_of(config)
    for name in (each for each in LAYERS if each in config or each == LAYERS[0]):
        layers = config.get(name)
        if not isinstance(layers, int) or not 0 < layers <= MOST_LAYERS:
            raise InputError(f"Its config.json says {layers!r} of '{name}'; models of 1 to {MOST_LAYERS} are read.")
    for name, value in config.items():
        if isinstance(value, int) and value > MOST_OF_ANYTHING:
            raise InputError(f"Its config.json says {value:,} of '{name[:60]}'; at most {MOST_OF_ANYTHING:,} is read.")
    try:
        with torch.device("meta"):  # which has shapes and no memory
            described = architecture.model(config, "eager").state_dict()
        architecture.reads(config)
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError, ArithmeticError) as error:
        raise InputError(f"Its config.json does not describe a model ({error}). Save the model again.") from error
    there = {named(name, architecture): shape for name, shape in shapes.items()}
    for name, weight in described.items():
        if there.get(name) != list(weight.shape):
            raise InputError(
                f"Its weights are not those that its config.json describes: '{name}' has the shape {there.get(name)} "
                f"and should have {list(weight.shape)}. Save the model again."
            )


def _check_plain(config: dict[str, Any], weights: dict[str, tuple[str, list[int]]]) -> None:
    """Raises InputError where the weights were rounded, and what they must be scaled by stands beside them: taken as
    they are, they are another model's."""
    rounded = next((name for name, (kind, _) in weights.items() if kind in ROUNDED), "")
    if rounded or config.get("quantization_config"):
        raise InputError(
            f"Its weights were quantised{f' (as {rounded[:60]!r})' if rounded else ''}, which is not read. Choose the "
            "model that they were made of: what it is rounded to is a matter of backends here."
        )


def _weights(checkpoint: Path) -> dict[str, tuple[str, list[int]]]:
    if (checkpoint / WEIGHTS).is_file():
        try:
            return weights_in(checkpoint)
        except ArtefactError as error:
            raise InputError(f"Its {WEIGHTS} cannot be read ({error.__cause__}). Save the model again.") from error
    if (checkpoint / PARTS).is_file():
        raise InputError(
            'Its weights are split over several files. Save them in one: save_pretrained(FOLDER, max_shard_size="5GB").'
        )
    if any((checkpoint / name).is_file() for name in PICKLED):
        raise InputError(
            "It holds pickled weights, which are never read: loading them runs whatever they hold. Save it as "
            f"safetensors where you trust it: save_pretrained(FOLDER) writes {WEIGHTS}."
        )
    raise InputError(f"It holds no {WEIGHTS}. Name a folder that save_pretrained wrote a fine-tuned model to.")
