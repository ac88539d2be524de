"""Built artefacts, kept in folders named by what they were built from, how, and with which versions."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from qa_backends.artefacts.manifest import intact

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

KEY_LENGTH = 20


def cache_root() -> Path:
    """``QA_CACHE`` where it is set, else the user's cache folder."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "qa_backends"
    return Path(os.environ.get("QA_CACHE") or default)


def key_of(facts: Mapping[str, Any]) -> str:
    """A name for an artefact, from everything that decides its contents."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:KEY_LENGTH]


def ensure(name: str, facts: Mapping[str, Any], make: Callable[[Path], None], root: Path | None = None) -> Path:
    """The folder of the artefact, built by ``make(folder)`` unless an intact one is there.

    A build happens in a folder beside its place and is moved there when it is whole, so a stopped one leaves nothing
    that looks finished. A lock makes a second process wait for the first and then use what that built.
    """
    root = root or cache_root()
    root.mkdir(parents=True, exist_ok=True)
    place = root / f"{name}-{key_of(facts)}"
    with FileLock(f"{place}.lock"):
        if intact(place):
            return place
        shutil.rmtree(place, ignore_errors=True)
        building = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=root))
        try:
            make(building)
            building.replace(place)
        finally:
            shutil.rmtree(building, ignore_errors=True)
    return place
