"""Where a checkpoint comes from, and how it becomes a folder that can be loaded."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qa_backends.checkpoints import random
from qa_backends.checkpoints.cache import ensure, find
from qa_backends.checkpoints.files import WEIGHTS
from qa_backends.checkpoints.hub import Fetched, fetch, fetched, noted
from qa_backends.checkpoints.manifest import NAME as MANIFEST
from qa_backends.checkpoints.manifest import (
    PACKAGES,
    content_hash,
    file_hash,
    manifest_of,
    read_manifest,
    shapes_hash,
    versions_of,
)
from qa_backends.checkpoints.packing import pack_checkpoint, write_tokenizer
from qa_backends.errors import ArtefactError

if TYPE_CHECKING:
    from qa_backends.progress import Progress

TOKENIZER = "tokenizer"
"""The step in the manifest of a checkpoint that only got its ``tokenizer.json``."""
PACKED = "checkpoint"
"""What packed checkpoints' folders are called in the cache."""


@dataclass(frozen=True, slots=True)
class Source:
    """A folder on this machine, as this project makes them; or one of somebody else's, known by the hash of its
    ``contents``, that is packed first; a repository of the Hub, whose checkpoint is packed when it arrives; or a
    ``shape``, as in "bert-large/pruned", that is filled with random weights. ``most_bytes`` and ``anonymous`` are
    ``hub.fetch``'s."""

    folder: Path | None = None
    contents: str | None = None
    repository: str | None = None
    revision: str | None = None
    shape: str | None = None
    most_bytes: int = 0
    anonymous: bool = False

    @property
    def remote(self) -> bool:
        return self.repository is not None


def ready(source: Source) -> Path | None:
    """The checkpoint's folder, where nothing has to be downloaded, packed or drawn any more."""
    if source.shape is not None:
        return random.made(source.shape)
    if source.contents is not None:
        return find(PACKED, _facts_of_contents(source.contents))
    if source.repository is None:
        return local_folder(source)
    found = noted(source.repository, source.revision)  # what was packed of it does without the download itself
    return find(PACKED, _facts(source.repository, found)) if found else None


def download(source: Source, progress: Progress) -> Path | None:
    """What is ready, as ``ready`` says; where it is not, what must come from the Hub is fetched, and nothing else.

    Raises what ``hub.fetch`` raises.
    """
    folder = ready(source)
    if folder is None and source.repository is not None:
        _fetch(source.repository, source, progress)
    return folder


def make_ready(source: Source, progress: Progress) -> Path:
    """The checkpoint's folder, downloaded and packed, or drawn, if that was not done before.

    Raises:
        ArtefactError: the folder is missing, or does not hold a checkpoint.
        BackendUnavailable, DriftError, Cancelled: see ``fetch`` and ``pack_checkpoint``.
    """
    if source.shape is not None:
        return random.make(source.shape, progress)
    if source.folder is not None and source.contents is not None:
        return _pack_folder(source.folder, source.contents, progress)
    if source.repository is None:
        return local_folder(source)
    if (folder := ready(source)) is not None:
        return folder
    repository = source.repository
    found = _fetch(repository, source, progress)

    def make(folder: Path) -> None:
        progress.say(f"packing {repository} …")
        settings = {"source": repository, "revision": found.revision}
        pack_checkpoint(Path(found.folder), folder, settings, progress)

    return ensure(PACKED, _facts(repository, found), make, progress)


def _fetch(repository: str, source: Source, progress: Progress) -> Fetched:
    return fetch(repository, source.revision, progress, most_bytes=source.most_bytes, anonymous=source.anonymous)


def _pack_folder(own: Path, contents: str, progress: Progress) -> Path:
    """Raises ArtefactError where the folder does not hold any more what it held when it was chosen."""

    def make(folder: Path) -> None:
        if not own.is_dir() or content_hash(own) != contents:
            raise ArtefactError(f"{own} has changed since it was chosen. Choose it again.")
        progress.say(f"packing {own.name} …")
        pack_checkpoint(own, folder, {"source": own.name}, progress)

    return ensure(PACKED, _facts_of_contents(contents), make, progress)


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
    folder = _at_hand(source)
    return None if folder is None else read_manifest(folder).files[WEIGHTS]


def shapes_of_weights(source: Source) -> str | None:
    """What identifies the shapes of the checkpoint's weights, see ``shapes_hash``; ``None`` where they are not at hand,
    or cannot be read, of which loading them tells."""
    folder = _at_hand(source)
    try:
        return None if folder is None else shapes_hash(folder)
    except ArtefactError:
        return None


def _at_hand(source: Source) -> Path | None:
    """The checkpoint's folder, where it is ready; one of this project's must hold weights and manifest."""
    own = source.folder is not None and source.contents is None
    if own and source.folder and not ((source.folder / WEIGHTS).is_file() and (source.folder / MANIFEST).is_file()):
        return None
    return ready(source)


def with_tokenizer(checkpoint: Path, progress: Progress) -> Path:
    """The checkpoint itself, or the same weights and config beside the ``tokenizer.json`` that it predates; a folder
    without weights as it is, which whoever reads them refuses.

    Raises:
        ArtefactError: it holds no tokenizer.
    """
    if (checkpoint / "tokenizer.json").is_file() or not (checkpoint / WEIGHTS).is_file():
        return checkpoint

    def make(folder: Path) -> None:
        for name in (WEIGHTS, "config.json"):
            shutil.copyfile(checkpoint / name, folder / name)
        write_tokenizer(checkpoint, folder)
        manifest_of(folder, step=TOKENIZER, parent=file_hash(checkpoint / WEIGHTS), settings={}).write(folder)

    return ensure(TOKENIZER, {"step": TOKENIZER, "contents": content_hash(checkpoint)}, make, progress)


def nothing_to_fetch(source: Source) -> bool:
    """Whether what had to be downloaded of it came and is there still, or what was packed of that."""
    came = fetched(source.repository, source.revision) if source.repository else None
    return came is not None or ready(source) is not None


def commit_of(source: Source) -> str | None:
    """The commit of a repository that was fetched, and is kept to; ``None`` where nothing was."""
    found = noted(source.repository, source.revision) if source.repository else None
    return found.revision if found else None


def _facts_of_contents(contents: str) -> dict[str, Any]:
    return {"step": "pack", "contents": contents, "versions": versions_of(PACKAGES)}


def _facts(repository: str, found: Fetched) -> dict[str, Any]:
    """The commit stands for the contents, so that gigabytes need not be hashed to find what was packed from them."""
    return {"step": "pack", "source": repository, "revision": found.revision, "versions": versions_of(PACKAGES)}
