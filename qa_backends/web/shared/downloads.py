"""Files that a tab makes for its visitors to download."""

from __future__ import annotations

import shutil
import tempfile
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

KEPT = 32
"""Measurements whose files wait to be fetched; Gradio has a copy of its own of what a page offers."""


class Downloads:
    """A folder for each measurement, the oldest going first; all of them go with the tab."""

    def __init__(self) -> None:
        self._root = tempfile.TemporaryDirectory(prefix="qa-downloads-")
        self._folders: deque[Path] = deque()

    def write(self, files: Mapping[str, str | bytes]) -> list[str]:
        """The files' paths, in their order; ``files`` are contents by name."""
        folder = Path(tempfile.mkdtemp(dir=self._root.name))
        self._folders.append(folder)
        if len(self._folders) > KEPT:
            shutil.rmtree(self._folders.popleft(), ignore_errors=True)
        for name, content in files.items():
            (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return [str(folder / name) for name in files]
