"""Which smaller checkpoints were made here of a model: they join its family when that is chosen."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from qa_backends.checkpoints.architectures import architecture_of
from qa_backends.checkpoints.files import WEIGHTS
from qa_backends.checkpoints.load import json_of, read_config
from qa_backends.checkpoints.manifest import content_hash, file_hash, known_manifest
from qa_backends.paths import cache_root, write_whole

SAME = ("pack", "tokenizer")
"""Steps that leave a model's weights what they were."""
PACKED = (
    "pruned_heads", "intermediate_sizes", "architectures", "dtype", "transformers_version", "_name_or_path",
    "gradient_checkpointing",
)  # fmt: skip
"""What packing changes in a config, or nothing computed hangs on."""


def note(model: Path, name: str, made: Path) -> None:
    """Notes that ``made``, as it is now, is the model's checkpoint ``name``, as in "pruned"; a later one of that name
    replaces it."""
    file = _files(model)[-1]
    noted = {**json_of(file), name: {"folder": str(made.resolve()), "contents": content_hash(made)}}
    write_whole(file, json.dumps(noted, indent=1, sort_keys=True) + "\n")


def made_of(model: Path) -> dict[str, Path]:
    """Folders by their checkpoints' names, the smallest last. Those are left out that are not there any more, hold
    something else by now, or do not read as the model does."""
    found = {}
    for name, each in {name: each for file in _files(model) for name, each in json_of(file).items()}.items():
        folder = Path(each["folder"])
        manifest = known_manifest(folder)
        if manifest and content_hash(folder) == each["contents"] and _read_alike(model, folder):
            found[name] = manifest.encoder_parameters, folder
    return {name: folder for name, (_, folder) in sorted(found.items(), key=lambda each: -each[1][0])}


def _read_alike(model: Path, made: Path) -> bool:
    """Whether both are of one kind, and have one tokenizer: a model that predates its ``tokenizer.json`` got one."""
    files = [each / "tokenizer.json" for each in (model, made)]
    same = not all(each.is_file() for each in files) or file_hash(files[0]) == file_hash(files[1])
    return same and read_config(model)["model_type"] == read_config(made)["model_type"]


def _files(model: Path) -> list[Path]:
    """Named by its config and weights, and by those weights that it came with where it was packed: what is packed again
    is the same."""
    weights = [file_hash(model / WEIGHTS)]
    if (manifest := known_manifest(model)) and manifest.step in SAME and manifest.parent:
        weights.append(manifest.parent)
    config = read_config(model)
    whole: dict[str, Any] = architecture_of(config).config(config).to_dict()
    computes = json.dumps({key: each for key, each in whole.items() if key not in PACKED}, sort_keys=True)
    names = [hashlib.sha256(f"{each} {computes}".encode()).hexdigest() for each in weights]
    return [cache_root() / "smaller" / f"{each}.json" for each in names]
