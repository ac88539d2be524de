"""What was measured of an artefact on a machine, noted beside it: numbers by name.

Of a cache that can only be read, such as one that another user built, the notes are this process's own.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from qa_backends.checkpoints.load import json_of
from qa_backends.paths import write_whole

if TYPE_CHECKING:
    from pathlib import Path

_unwritten: dict[Path, dict[str, float]] = {}


def noted(file: Path) -> dict[str, float]:
    """What the file holds; nothing of one that is not there, or holds something else."""
    return json_of(file) | _unwritten.get(file, {})


def note(file: Path, name: str, value: float) -> None:
    """Adds it to the file, or keeps it where that cannot be written."""
    try:
        write_whole(file, json.dumps(noted(file) | {name: value}) + "\n")
    except OSError:
        _unwritten.setdefault(file, {})[name] = value
