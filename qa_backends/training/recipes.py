"""What the recipes share: where an encoder comes from, and the manifest of what was made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch

from qa_backends.artefacts.checkpoint import load_model, save_model
from qa_backends.artefacts.hub import checkpoint_manifest, fetch
from qa_backends.artefacts.manifest import NAME, file_hash, read_manifest

if TYPE_CHECKING:
    from collections.abc import Callable

REMEDY = "Name a folder that holds the encoder: --from FOLDER."


def encoder_folder(source: str, say: Callable[[str], None]) -> Path:
    """The folder itself, or the Hub repository of that name, downloaded.

    Raises:
        BackendUnavailable: it is no folder here, and the Hub cannot be reached.
    """
    folder = Path(source)
    return folder if folder.is_dir() else fetch(source, None, say, remedy=REMEDY)


def history(folder: Path) -> dict[str, object]:
    """The settings a checkpoint of this project was trained with, for the manifest of what is trained on from it."""
    return {"before": read_manifest(folder).settings} if (folder / NAME).is_file() else {}


def finish(folder: Path, *, step: str, parent: Path | None, settings: dict[str, object]) -> Path:
    """Stores a trained checkpoint's weights as FP16 and writes its manifest; returns the folder."""
    model = load_model(folder)
    save_model(model, folder, tokenizer_from=folder, dtype=torch.float16)
    weights = parent / "model.safetensors" if parent else None
    origin = file_hash(weights) if weights and weights.is_file() else None
    checkpoint_manifest(model, folder, step=step, parent=origin, settings=settings).write(folder)
    return folder
