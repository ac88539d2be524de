"""A checkpoint: an ordinary folder with ``config.json``, ``model.safetensors`` and ``tokenizer.json``."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

from qa_backends.checkpoints.architectures import architecture_of
from qa_backends.checkpoints.files import NAMED_IN, NAMING_FILES, TOKENIZER_SETTINGS, WEIGHTS
from qa_backends.checkpoints.tensors import save_tensors
from qa_backends.errors import ArtefactError
from qa_backends.paths import write_whole

if TYPE_CHECKING:
    from pathlib import Path

    import torch
    from transformers import PreTrainedModel

    from qa_backends.checkpoints.architectures import Architecture

LABELS = ("id2label", "label2id", "num_labels")
"""What configs say of their output layer's rows: two, where they say nothing."""
OLD_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


def read_config(checkpoint: Path) -> dict[str, Any]:
    """``config.json``, its sizes under their common names.

    Raises:
        ArtefactError: there is none, it is not JSON, or it describes a kind of model that cannot be read.
    """
    path = checkpoint / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ArtefactError(f"{path} cannot be read ({error}). Name a folder that holds a checkpoint.") from error
    if not isinstance(config, dict):
        raise ArtefactError(f"{path} does not describe a model. Name a folder that holds a checkpoint.")
    return architecture_of(config).common(config)


def json_of(file: Path) -> dict[str, Any]:
    """An object as it stands; empty where there is none, which is noticed elsewhere if it matters."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def load_model(checkpoint: Path, *, attention: str = "sdpa", **overrides: object) -> PreTrainedModel:
    """The checkpoint's model in float32, in evaluation mode. ``overrides`` replace entries of the config.

    A checkpoint that was never fine-tuned for questions gets a fresh, random output layer: that is where training
    starts. Whatever else is missing is an error.

    Raises:
        ArtefactError: no weights as safetensors, or weights that do not fit the config.
    """
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    settings = read_config(checkpoint) | overrides
    architecture = architecture_of(settings)
    try:
        weights = load_file(checkpoint / WEIGHTS)
    except (OSError, SafetensorError) as error:
        raise ArtefactError(
            f"{checkpoint / WEIGHTS} cannot be read ({error}). Weights are read as safetensors only."
        ) from error
    renamed = {named(name, architecture): each for name, each in weights.items()}
    if not any(name.startswith(architecture.head) for name in renamed):
        # The labels of what it was trained for before, a class or a score of the text, are none of a span's two ends.
        settings = {key: each for key, each in settings.items() if key not in LABELS}
    model = architecture.model(settings, attention)
    try:
        missing, _ = model.load_state_dict({k: w.to(torch.float32) for k, w in renamed.items()}, strict=False)
    except RuntimeError as error:
        raise ArtefactError(f"The weights in {checkpoint} do not fit its config.json: {error}") from error
    absent = [name for name in missing if not name.startswith(architecture.head)]
    if absent:
        raise ArtefactError(f"{checkpoint} lacks weights, among them {absent[0]}. Fetch the checkpoint again.")
    model.train(False)
    return model


def named(weight: str, architecture: Architecture) -> str:
    """What the model calls the weight: one saved without a head lacks a prefix, and early ones gamma and beta."""
    for old, name in OLD_NAMES.items():
        weight = weight.replace(old, name)
    known = weight.startswith((architecture.base, architecture.head))
    return weight if known else architecture.base + weight


def save_model(model: PreTrainedModel, folder: Path, *, tokenizer_from: Path, dtype: torch.dtype) -> None:
    """Writes config, the tokenizer's files and, last and at once, the weights: where they stand, the rest does too.

    ``dtype`` is the precision of storage, not of computation.
    """
    folder.mkdir(parents=True, exist_ok=True)
    weights = {
        name: weight.detach().to("cpu", dtype).contiguous()
        for name, weight in model.state_dict().items()
        if weight.is_floating_point()
    }
    config = model.config.to_dict() | {"architectures": [type(model).__name__], "dtype": "float32"}
    config = {key: value for key, value in config.items() if key not in ("_name_or_path", "transformers_version")}
    write_whole(folder / "config.json", json.dumps(config, indent=1, sort_keys=True) + "\n")
    if tokenizer_from != folder:
        _copy_tokenizer(tokenizer_from, folder)
    save_tensors(weights, folder / WEIGHTS, {"format": "pt"})


def _copy_tokenizer(source: Path, folder: Path) -> None:
    """The tokenizer's files, and of its settings what names no file: transformers, which is asked beside the backends,
    would open that, whatever it is."""
    for name in ("tokenizer.json", "vocab.txt", *TOKENIZER_SETTINGS):
        if not (source / name).is_file():
            continue
        told = json_of(source / name) if name in NAMED_IN else {}
        if any(each in told for each in NAMING_FILES):
            kept = {key: value for key, value in told.items() if key not in NAMING_FILES}
            write_whole(folder / name, json.dumps(kept, indent=1) + "\n")
        else:
            shutil.copyfile(source / name, folder / name)
