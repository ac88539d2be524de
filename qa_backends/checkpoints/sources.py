"""Where a checkpoint comes from, and how it becomes a folder that can be loaded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qa_backends.checkpoints import random
from qa_backends.checkpoints.cache import ensure, find
from qa_backends.checkpoints.hub import Fetched, fetch, fetched
from qa_backends.checkpoints.manifest import NAME as MANIFEST
from qa_backends.checkpoints.manifest import PACKAGES, WEIGHTS, read_manifest, versions_of
from qa_backends.checkpoints.packing import pack_checkpoint
from qa_backends.errors import ArtefactError

if TYPE_CHECKING:
    from qa_backends.progress import Progress

PACKED = "checkpoint"
"""What packed checkpoints' folders are called in the cache."""


@dataclass(frozen=True, slots=True)
class Source:
    """A folder on this machine; a repository of the Hub, whose checkpoint is packed when it arrives; or a ``shape``, as
    in "bert-large/pruned", that is filled with random weights."""

    folder: Path | None = None
    repository: str | None = None
    revision: str | None = None
    shape: str | None = None

    @property
    def remote(self) -> bool:
        return self.repository is not None


def download(source: Source, progress: Progress) -> None:
    """Fetches what must come from the Hub, and nothing else; raises what ``hub.fetch`` raises."""
    if source.repository is not None:
        fetch(source.repository, source.revision, progress)


def ready(source: Source) -> Path | None:
    """The checkpoint's folder, where nothing has to be downloaded, packed or drawn any more."""
    if source.shape is not None:
        return random.made(source.shape)
    if source.repository is None:
        return local_folder(source)
    found = fetched(source.repository, source.revision)
    return find(PACKED, _facts(source.repository, found)) if found else None


def make_ready(source: Source, progress: Progress) -> Path:
    """The checkpoint's folder, downloaded and packed, or drawn, if that was not done before.

    Raises:
        ArtefactError: the folder is missing, or does not hold a checkpoint.
        BackendUnavailable, DriftError, Cancelled: see ``fetch`` and ``pack_checkpoint``.
    """
    if source.shape is not None:
        return random.make(source.shape, progress)
    if source.repository is None:
        return local_folder(source)
    repository = source.repository
    found = fetch(repository, source.revision, progress)

    def make(folder: Path) -> None:
        progress.say(f"packing {repository} …")
        settings = {"source": repository, "revision": found.revision}
        pack_checkpoint(Path(found.folder), folder, settings, progress)

    return ensure(PACKED, _facts(repository, found), make, progress)


def local_folder(source: Source) -> Path:
    """Raises ArtefactError where the folder holds no checkpoint."""
    if source.folder is None or not (source.folder / WEIGHTS).is_file():
        raise ArtefactError(
            f"{source.folder} holds no {WEIGHTS}. Name a checkpoint's folder, or download the app again "
            "if it came with that."
        )
    if not (source.folder / MANIFEST).is_file():
        raise ArtefactError(
            f"{source.folder} holds no {MANIFEST}. Make a folder that has one: "
            f"python -m qa_backends train pack --checkpoint {source.folder} --out FOLDER"
        )
    return source.folder


def weights_hash(source: Source) -> str | None:
    """What identifies the checkpoint's weights in results; ``None`` where they would have to be downloaded to know."""
    if source.folder is not None and not ((source.folder / WEIGHTS).is_file() and (source.folder / MANIFEST).is_file()):
        return None
    folder = ready(source)
    return None if folder is None else read_manifest(folder).files[WEIGHTS]


def _facts(repository: str, found: Fetched) -> dict[str, Any]:
    """The commit stands for the contents, so that gigabytes need not be hashed to find what was packed from them."""
    return {"step": "pack", "source": repository, "revision": found.revision, "versions": versions_of(PACKAGES)}
