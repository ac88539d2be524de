"""What was fitted here to models that are packed in the cache: it outlasts their packed copies, which come and go."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING

from qa_backends.checkpoints.manifest import Fitted, fitted_of, read_manifest
from qa_backends.paths import cache_root, write_whole

if TYPE_CHECKING:
    from pathlib import Path


def keep_fit(checkpoint: Path) -> None:
    """Notes what the manifest of a packed checkpoint says was fitted, by the weights that it was packed from."""
    manifest = read_manifest(checkpoint)
    if manifest.step == "pack" and manifest.parent:
        write_whole(_file(manifest.parent), json.dumps(asdict(fitted_of(checkpoint)), indent=1) + "\n")


def kept_fit(weights: str) -> Fitted | None:
    """What was fitted to the weights of this file hash; ``None`` where nothing was, or it cannot be read."""
    with suppress(OSError, ValueError, TypeError):
        return Fitted(**json.loads(_file(weights).read_text(encoding="utf-8")))
    return None


def _file(weights: str) -> Path:
    return cache_root() / "fitted" / f"{weights}.json"
