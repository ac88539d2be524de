"""Checkpoints from the Hugging Face Hub: fetched on first use, by a process that can be stopped."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from qa_backends.checkpoints.download import PICKLED, UNREACHABLE
from qa_backends.errors import BackendUnavailable
from qa_backends.paths import cache_root, write_whole

if TYPE_CHECKING:
    from qa_backends.progress import Progress

TELL_EVERY_S = 1.0
LOOK_EVERY_S = 0.1
REMEDY = "Connect to the internet and ask again, or choose the family 'minilm', which ships with the app."


@dataclass(frozen=True, slots=True)
class Fetched:
    """What was fetched: its folder, and the commit it is of."""

    folder: str
    revision: str


def fetched(repository: str, revision: str | None) -> Fetched | None:
    """What was fetched of the repository before; ``None`` where nothing was, or it is gone.

    Without a pinned ``revision`` the commit that was resolved first is kept to: what was measured on it stays true.
    """
    found = _noted(repository, revision)
    return found if found and (Path(found.folder) / "model.safetensors").is_file() else None


def fetch(repository: str, revision: str | None, progress: Progress, remedy: str = REMEDY) -> Fetched:
    """A local folder with the repository's config, tokenizer and safetensors weights, downloaded if it is not here.

    Raises:
        BackendUnavailable: the Hub cannot be reached, or holds no safetensors weights.
        Cancelled: ``progress`` says to stop; what had come stays, and the next time goes on from there.
    """
    if found := fetched(repository, revision):
        return found
    progress.say(f"looking for {repository} …")
    before = _noted(repository, revision)
    answer = _downloaded(repository, before.revision if before else revision, progress)
    if "folder" in answer:
        found = Fetched(answer["folder"], answer["revision"])
        write_whole(_note(repository, revision), json.dumps(asdict(found)) + "\n")
        return found
    if answer.get("problem") == PICKLED:
        raise BackendUnavailable(f"{repository} holds no safetensors weights, and pickled ones are not read.", remedy)
    why = RuntimeError(answer.get("why", "the download ended without a word"))
    raise BackendUnavailable(f"The Hugging Face Hub could not be reached for {repository}.", remedy) from why


def _downloaded(repository: str, revision: str | None, progress: Progress) -> dict[str, str]:
    """What the downloading process printed; it is ended when waiting for it ends early."""
    from huggingface_hub.constants import HF_HUB_CACHE

    module = "qa_backends.checkpoints.download"
    cache = Path(HF_HUB_CACHE).resolve()
    command = [sys.executable, "-m", module, str(cache), repository, *([revision] if revision else [])]
    blobs = _blobs(cache, repository)
    before, told = _size(blobs), time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=_import_root()) as process:  # noqa: S603 (our own module)
        try:
            while True:
                progress.check()
                if time.monotonic() - told >= TELL_EVERY_S:
                    told = time.monotonic()
                    progress.say(f"downloading {repository}: {(_size(blobs) - before) / 1e6:,.0f} MB so far …")
                with suppress(subprocess.TimeoutExpired):
                    out, err = process.communicate(timeout=LOOK_EVERY_S)  # which reads on: a full pipe would hold it up
                    break
        except BaseException:
            process.kill()
            raise
    try:
        return dict(json.loads(out.decode().splitlines()[-1]))
    except (ValueError, IndexError):
        return {"problem": UNREACHABLE, "why": err.decode(errors="replace")[-2_000:]}


def _import_root() -> Path:
    """Where this package is imported from, so that the process imports the same one."""
    return Path(__file__).resolve().parents[2]


def _blobs(cache: Path, repository: str) -> Path:
    """Where the Hub's client puts what it downloads."""
    from huggingface_hub.file_download import repo_folder_name

    return cache / repo_folder_name(repo_id=repository, repo_type="model") / "blobs"


def _size(folder: Path) -> int:
    """Bytes of the files in the folder; one that is moved away meanwhile counts as nothing."""
    total = 0
    for file in folder.glob("*"):
        with suppress(OSError):
            total += file.stat().st_size
    return total


def _noted(repository: str, revision: str | None) -> Fetched | None:
    """What was noted of the repository when it was fetched, whether that is still there or not."""
    try:
        return Fetched(**json.loads(_note(repository, revision).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _note(repository: str, revision: str | None) -> Path:
    return cache_root() / "hub" / f"{repository.replace('/', '--')}@{revision or 'first'}.json"
