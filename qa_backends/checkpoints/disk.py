"""What is kept on disk, packed and built folders and the Hub's downloads: told, bounded, cleared."""

from __future__ import annotations

import json
import re
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from qa_backends.checkpoints.manifest import NAME as MANIFEST
from qa_backends.checkpoints.manifest import known_manifest, read_manifest
from qa_backends.limits import gigabytes
from qa_backends.paths import MODELS, cache_root, write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable

    from qa_backends.checkpoints.manifest import Manifest

VARIABLE = "QA_CACHE_GB"
MOST_BYTES = 20_000_000_000
"""Of packed and built folders and downloads, unless the variable says otherwise."""
RECENT_S = 3_600
"""What was used within so many seconds stays, also beyond the bound: somebody may be at it."""
DOWNLOADED = "downloaded"
BEGUN = "begun"
OURS = re.compile(r"[a-z][a-z0-9-]*-[0-9a-f]{20}")
"""What ``cache.key_of`` and the engines name their folders."""
HALF_BUILT = re.compile(rf"\.({OURS.pattern})-.+")
"""What ``cache.ensure`` calls them until they are whole. Of one that a killed process left, nobody holds the lock."""
PARTIAL = "*.incomplete"
"""What the Hub's client calls a file until all of it is there."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One folder, or one file of a download that was only begun: ``what`` it is, ``of`` which model (empty where that
    is not known any more), and when it was last used, in seconds since 1970."""

    what: str
    of: str
    bytes: int
    used_at: float
    folder: Path


def most_bytes() -> int:
    """What all that is kept may take together. Raises InputError where the variable is no number above 0."""
    return gigabytes(VARIABLE) or MOST_BYTES


def entries() -> list[Entry]:
    """Everything that is kept, what was used last first."""
    return sorted([*built(), *half_built(), *downloads(), *half_downloaded()], key=lambda each: -each.used_at)


def built() -> list[Entry]:
    """Packed and built folders, by their names: whatever else lies in the cache is somebody else's."""
    folders = [each for each in cache_root().glob("*") if OURS.fullmatch(each.name) and each.is_dir()]
    manifests = {folder: found for folder in folders if (found := known_manifest(folder))}
    names = {digest: _shipped_name(manifest) for manifest in MODELS.glob(f"*/*/{MANIFEST}") for digest in
             read_manifest(manifest.parent).files.values()}  # fmt: skip
    made = {digest: found for found in manifests.values() for digest in found.files.values()}

    def origin(found: Manifest | None) -> str:
        seen: set[str] = set()
        while found is not None and (parent := found.parent or "") not in seen:
            if name := found.settings.get("source") or names.get(parent):
                return str(name)
            seen.add(parent)  # weights that a step left as they were are their own parent
            found = made.get(parent)
        return ""

    return [_entry(folder, _step(folder, manifests.get(folder)), origin(manifests.get(folder))) for folder in folders]


def half_built() -> list[Entry]:
    """Folders that are being built, or that were when their process was killed."""
    return [_entry(each, BEGUN, "") for each in cache_root().glob(".*") if HALF_BUILT.fullmatch(each.name)]


def downloads() -> list[Entry]:
    """What this project brought from the Hub, into the folder that all of the Hub's clients share; what they had
    brought before is theirs."""
    found = {}
    for note in _notes().glob("*.json"):
        with suppress(OSError, ValueError, KeyError, TypeError):
            told = json.loads(note.read_text(encoding="utf-8"))
            folder = Path(told["folder"])
            if told.get("brought") and folder.is_dir():
                found[folder] = _entry(folder, DOWNLOADED, note.name.partition("@")[0].replace("--", "/", 1))
    return list(found.values())


def note_begun(repository: str, blobs: Path) -> None:
    """Notes, before a download, that what will be partial of it in the Hub's folder ``blobs`` is ours; what others had
    begun there is theirs."""
    note = _begun(repository)
    ours = {each.name for each in _partials(note)}
    theirs = sorted({each.name for each in blobs.glob(PARTIAL)} - ours)
    write_whole(note, json.dumps({"blobs": str(blobs), "theirs": theirs}) + "\n")


def note_ended(repository: str) -> None:
    """Notes what is partial by now, so that what others begin later is theirs; where nothing is, the note goes."""
    note = _begun(repository)
    if partials := _partials(note):
        ours = sorted(each.name for each in partials)
        with suppress(OSError):  # on a full disk, which is what is said then, the earlier note tells of them too
            write_whole(note, json.dumps({"blobs": str(partials[0].parent), "ours": ours}) + "\n")
    else:
        note.unlink(missing_ok=True)


def half_downloaded() -> list[Entry]:
    """Files that this project has begun to fetch from the Hub, or had when it was stopped."""
    found = []
    for note in _notes().glob("*.begun"):
        for each in _partials(note):
            with suppress(OSError):  # it may be whole by now
                state = each.stat()
                found.append(Entry(BEGUN, note.stem.replace("--", "/", 1), state.st_size, state.st_mtime, each))
    return found


def discard(partials: Iterable[Path]) -> None:
    """Deletes what came of files, but for those that another process is fetching, which holds the lock that the Hub's
    client has for each, and those that belong to another user."""
    for each in partials:
        blobs = each.parent
        lock = blobs.parents[1] / ".locks" / blobs.parent.name / f"{each.stem}.lock"
        with suppress(Timeout, OSError), FileLock(lock, timeout=0):
            each.unlink(missing_ok=True)


def clear(chosen: Iterable[Entry]) -> None:
    """Deletes them; what is asked for again is fetched and built again."""
    for each in chosen:
        if each.what == DOWNLOADED:
            _forget_download(each.folder)
        elif each.what == BEGUN and each.folder.match(PARTIAL):
            discard([each.folder])
            note_ended(each.of)
        elif each.what == BEGUN:
            _forget_half(each.folder)
        else:
            shutil.rmtree(each.folder, ignore_errors=True)
            each.folder.with_name(f"{each.folder.name}.lock").unlink(missing_ok=True)


def keep_within_bound() -> None:
    """Deletes what was not used for longest, until the rest is within the bound.

    Raises:
        InputError: the variable is no number above 0.
    """
    bound, there = most_bytes(), entries()[::-1]
    total, gone = sum(each.bytes for each in there), []
    for each in there:
        if total <= bound or _recent(each):
            break
        total -= each.bytes
        gone.append(each)
    clear(gone)


def room() -> int:
    """Bytes that are left of the bound where everything went that may go; 0 where none are."""
    return max(0, most_bytes() - sum(each.bytes for each in entries() if _recent(each)))


def _recent(entry: Entry) -> bool:
    return entry.used_at > time.time() - RECENT_S


def _forget_download(folder: Path) -> None:
    """Takes one commit out of the Hub's own folder, with the files that no other commit shares. Which commit it was
    stays noted: by it what was packed is found, and that one comes when it is asked for again."""
    from huggingface_hub import scan_cache_dir

    root = folder.parents[2]  # …/models--owner--name/snapshots/<commit>
    scan_cache_dir(root).delete_revisions(folder.name).execute()
    for note in _notes().glob("*.json"):
        if folder.name in (told := note.read_text(encoding="utf-8")):
            write_whole(note, json.dumps(json.loads(told) | {"brought": False}) + "\n")


def _forget_half(folder: Path) -> None:
    """Deletes what nobody builds any more."""
    half = HALF_BUILT.fullmatch(folder.name)
    assert half, "it was listed by its name"
    lock = folder.with_name(f"{half[1]}.lock")
    with suppress(Timeout), FileLock(lock, timeout=0):
        shutil.rmtree(folder, ignore_errors=True)
        lock.unlink(missing_ok=True)


def _entry(folder: Path, what: str, of: str) -> Entry:
    size, used_at = 0, 0.0
    with suppress(OSError):  # another process may be deleting it
        used_at = folder.stat().st_mtime
        size = sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())
    return Entry(what, of, size, used_at, folder)


def _step(folder: Path, manifest: Manifest | None) -> str:
    return manifest.step if manifest else folder.name.rpartition("-")[0] or folder.name


def _shipped_name(manifest: Path) -> str:
    return "/".join(manifest.parent.parts[-2:])


def _partials(note: Path) -> list[Path]:
    """What is partial, and ours, of a download by its note; nothing where that is gone."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        told = json.loads(note.read_text(encoding="utf-8"))
        there = list(Path(told["blobs"]).glob(PARTIAL))
        if "ours" in told:
            return [each for each in there if each.name in told["ours"]]
        return [each for each in there if each.name not in told["theirs"]]
    return []


def _begun(repository: str) -> Path:
    return _notes() / f"{repository.replace('/', '--')}.begun"


def _notes() -> Path:
    return cache_root() / "hub"
