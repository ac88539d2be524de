"""Built folders, kept under names made of all that decides their contents."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from qa_backends.checkpoints.disk import keep_within_bound, most_bytes
from qa_backends.checkpoints.manifest import intact
from qa_backends.errors import ArtefactError
from qa_backends.paths import cache_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from qa_backends.progress import Progress

KEY_LENGTH = 20
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS)
"""What the system says of a disk that is full, or of a folder that is not to be written in."""
TELL_EVERY_S = 2.0
"""Who waits for another process is told so this often."""


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
    A lock makes a second process wait for the first, which ``progress`` is told, and then use what that made.

    Raises:
        ArtefactError: the cache cannot be written.
        InputError: see ``disk.most_bytes``.
        Cancelled: ``progress`` said to stop while another process was waited for.
    """
    root = cache_root()
    most_bytes()  # before the work, if the variable is no number
    place = root / f"{name}-{key_of(facts)}"
    if intact(place):  # without the lock, which a cache that can only be read has no room for
        return used(place)
    with writable(root), locked(f"{place}.lock", name, progress):
        if intact(place):
            return used(place)
        # What a process that was killed had begun is nobody's: who holds the lock is the only one at it.
        for stale in (place, *root.glob(f".{place.name}-*")):
            shutil.rmtree(stale, ignore_errors=True)
        building = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=root))
        try:
            make(building)
            building.chmod(0o755)  # mkdtemp's folders are their owner's alone, and who builds may not be who serves
            building.replace(place)
        finally:
            shutil.rmtree(building, ignore_errors=True)
    keep_within_bound()
    return place


@contextmanager
def writable(root: Path) -> Iterator[None]:
    """The cache's folder, or one in it, there to be written in.

    Raises:
        ArtefactError: it is not, or its disk is full.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise ArtefactError(
            f"{root} cannot be written: {error.strerror}. Make room, python -m qa_backends cache clear, or name "
            "another folder: QA_CACHE."
        ) from error


def used(place: Path) -> Path:
    """Notes that the folder was used now: what was not for longest is what goes when there is too much."""
    with suppress(OSError):  # a cache that can only be read
        os.utime(place)
    return place


@contextmanager
def locked(file: str, what: str, progress: Progress) -> Iterator[None]:
    """Holds the lock; while another has it, says so now and then. Raises Cancelled when ``progress`` says to stop."""
    lock = FileLock(file)
    began = time.monotonic()
    limit_s = 0.0
    while not lock.is_locked:
        try:
            lock.acquire(limit_s, cancel_check=progress.stopped)
        except Timeout:
            waited_s = time.monotonic() - began
            progress.say(f"waiting for '{what}', which others are at, {waited_s:.0f} s so far …")
            limit_s = TELL_EVERY_S
    try:
        yield
    finally:
        lock.release()
