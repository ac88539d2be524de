"""Which smaller checkpoints were made here of a model: they join its family when that is chosen."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from qa_backends.checkpoints.files import WEIGHTS
from qa_backends.checkpoints.manifest import NAME, file_hash, read_manifest
from qa_backends.paths import cache_root, write_whole

SAME = ("pack", "tokenizer")
"""Steps that leave a model's weights what they were."""


def note(model: Path, name: str, made: Path) -> None:
    """Notes that ``made`` is the model's checkpoint ``name``, as in "pruned"; a later one of that name replaces it."""
    file = _files(model)[-1]
    noted = {**_noted(file), name: str(made.resolve())}
    write_whole(file, json.dumps(noted, indent=1, sort_keys=True) + "\n")


def made_of(model: Path) -> dict[str, Path]:
    """Folders by their checkpoints' names, those left out that are not there any more; the smallest last."""
    there = {name: Path(each) for file in _files(model) for name, each in _noted(file).items()}
    whole = {name: each for name, each in there.items() if (each / WEIGHTS).is_file() and (each / NAME).is_file()}
    return dict(sorted(whole.items(), key=lambda each: -read_manifest(each[1]).encoder_parameters))


def _noted(file: Path) -> dict[str, str]:
    with suppress(OSError, ValueError):
        found = json.loads(file.read_text(encoding="utf-8"))
        return found if isinstance(found, dict) else {}
    return {}


def _files(model: Path) -> list[Path]:
    """Named by its weights, and by those that it came with where it was packed: what is packed again is the same."""
    weights = [file_hash(model / WEIGHTS)]
    if (model / NAME).is_file() and (manifest := read_manifest(model)).step in SAME and manifest.parent:
        weights.append(manifest.parent)
    return [cache_root() / "smaller" / f"{each}.json" for each in weights]
