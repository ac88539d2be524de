"""Checkpoints of a published shape with random weights: what a model costs can be measured without having it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from qa_backends.checkpoints.architectures import architecture_of
from qa_backends.checkpoints.cache import ensure, find
from qa_backends.checkpoints.load import save_model
from qa_backends.checkpoints.manifest import PACKAGES, manifest_of, versions_of
from qa_backends.paths import MODELS, SHAPES

if TYPE_CHECKING:
    from pathlib import Path

    from qa_backends.progress import Progress

RANDOM = "random"
"""The step in the manifest of such a checkpoint. What it answers means nothing."""
TOKENIZER = MODELS / "minilm" / "baseline"
"""Its vocabulary is that of every uncased English BERT."""
SEED = 0


def made(shape: str) -> Path | None:
    """The folder, if it was made before."""
    return find(RANDOM, _facts(shape))


def make(shape: str, progress: Progress) -> Path:
    """The folder of random weights of that shape, as in "bert-large/pruned"; made if it is not there."""

    def write(folder: Path) -> None:
        progress.say(f"drawing random weights of the shape {shape} …")
        draw(_config(shape), folder, {"shape": shape})

    return ensure(RANDOM, _facts(shape), write, progress)


def draw(config: dict[str, Any], folder: Path, settings: dict[str, Any]) -> None:
    """Writes a checkpoint of the config's shape, always the same, to the folder; ``settings`` are its manifest's."""
    import torch

    torch.manual_seed(SEED)
    model = architecture_of(config).model(config, "sdpa")
    save_model(model, folder, tokenizer_from=TOKENIZER, dtype=torch.float16)
    manifest_of(folder, step=RANDOM, parent=None, settings={**settings, "seed": SEED}).write(folder)


def _config(shape: str) -> dict[str, Any]:
    family, checkpoint = shape.split("/")
    config: dict[str, Any] = json.loads(SHAPES.read_text(encoding="utf-8"))[family][checkpoint]["config"]
    return config | {"pruned_heads": {int(layer): heads for layer, heads in config.get("pruned_heads", {}).items()}}


def _facts(shape: str) -> dict[str, Any]:
    return {"step": RANDOM, "shape": shape, "seed": SEED, "config": _config(shape), "versions": versions_of(PACKAGES)}
