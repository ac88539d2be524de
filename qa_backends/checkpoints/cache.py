"""Built folders, kept under names made of all that decides their contents."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from qa_backends.checkpoints.manifest import intact
from qa_backends.paths import cache_root
from qa_backends.progress import Cancelled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from qa_backends.progress import Progress

KEY_LENGTH = 20


def key_of(facts: Mapping[str, Any]) -> str:
    """A name for a folder, from everything that decides its contents."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:KEY_LENGTH]


def find(name: str, facts: Mapping[str, Any]) -> Path | None:
    """The finished folder, if there is an intact one."""
    place = cache_root() / f"{name}-{key_of(facts)}"
    return place if intact(place) else None


def ensure(name: str, facts: Mapping[str, Any], make: Callable[[Path], None], progress: Progress) -> Path:
    """The folder, made by ``make(folder)`` unless an intact one is there.

    It is made beside its place and moved there when it is whole, so a stopped build leaves nothing that looks finished.
    A lock makes a second process wait for the first and then use what that made.

    Raises:
        Cancelled: ``progress`` said to stop while another process was waited for.
    """
    root = cache_root()
    root.mkdir(parents=True, exist_ok=True)
    place = root / f"{name}-{key_of(facts)}"
    try:
        lock = FileLock(f"{place}.lock").acquire(cancel_check=progress.stopped)
    except Timeout as stopped:  # there is no limit but that check
        raise Cancelled from stopped
    with lock:
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
