"""Checkpoints from the Hugging Face Hub: fetched on first use, by a process that can be stopped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from qa_backends.checkpoints.architectures import known
from qa_backends.checkpoints.cache import writable
from qa_backends.checkpoints.disk import PARTIAL, discard, keep_within_bound, note_begun, note_ended
from qa_backends.checkpoints.download import (
    FAILED,
    FILES,
    MISSING,
    PICKLED,
    SPLIT,
    TOO_LARGE,
    UNREAD,
    UNTAUGHT,
    complete,
)
from qa_backends.checkpoints.files import WEIGHTS
from qa_backends.errors import BackendUnavailable
from qa_backends.paths import cache_root, write_whole

if TYPE_CHECKING:
    from qa_backends.progress import Progress

TELL_EVERY_S = 1.0
LOOK_EVERY_S = 0.1
MOST_NAMED = 60
"""Characters of a name that the Hub tells."""
REASONS = {
    MISSING: "The Hugging Face Hub has no model {} of that revision, or shows it to nobody without leave.",
    SPLIT: "The weights of {} are split over several files, which are not read.",
}
REMEDY = "Connect to the internet and ask again, or choose the family 'minilm', which ships with the app."


@dataclass(frozen=True, slots=True)
class Fetched:
    """What was fetched: its folder, and the commit it is of; ``brought`` unless it had been there before, in the folder
    that all of the Hub's clients share; ``public`` where it was had without this machine's token."""

    folder: str
    revision: str
    brought: bool = False
    public: bool = False


def fetched(repository: str, revision: str | None) -> Fetched | None:
    """What was fetched of the repository before; ``None`` where nothing was, or it is gone.

    Without a pinned ``revision`` the commit that was resolved first is kept to: what was measured on it stays true.
    """
    found = noted(repository, revision)
    return found if found and complete(Path(found.folder)) else None


def fetch(
    repository: str,
    revision: str | None,
    progress: Progress,
    remedy: str = REMEDY,
    *,
    most_bytes: int = 0,
    bound_by: str = "QA_DOWNLOAD_GB",
    anonymous: bool = False,
) -> Fetched:
    """A local folder with the repository's config, tokenizer and safetensors weights, downloaded if it is not here.

    More than ``most_bytes``, where given, are not downloaded, and the variable that they are ``bound_by`` is named;
    ``anonymous``, nothing that wants this machine's token.

    Raises:
        BackendUnavailable: the Hub cannot be reached, has no such names, or holds no safetensors weights, or too large
            ones; or, where ``most_bytes`` are given, weights of another kind or without an output layer, of which none
            come then.
        Cancelled: ``progress`` says to stop; what had come stays unless ``anonymous``, and the next time goes on from
            there.
    """
    if (found := fetched(repository, revision)) and (found.public or not anonymous):
        with suppress(OSError):  # a folder that can only be read
            os.utime(found.folder)  # what was not used for longest is what goes when there is too much
        return found
    progress.say(f"looking for {repository} …")
    before = noted(repository, revision)
    wanted = ["--revision", pinned] if (pinned := before.revision if before else revision) else []
    wanted += [f"--most-bytes={most_bytes}", *(["--anonymous"] if anonymous else [])]
    blobs = _blobs(repository)
    there = {each.parent.name for each in blobs.parent.glob(f"snapshots/*/{WEIGHTS}")}
    begun = set(blobs.glob(PARTIAL))
    with writable(cache_root()):
        note_begun(repository, blobs)
    try:
        answer = _downloaded(repository, wanted, progress)
    finally:
        if anonymous:  # what a visitor began and did not end is nobody's to go on with
            discard(set(blobs.glob(PARTIAL)) - begun)
        note_ended(repository)
    if "folder" in answer:
        folder, commit = Path(str(answer["folder"])), str(answer["revision"])
        new = commit not in there and {each.name for each in folder.iterdir()} <= set(FILES)
        found = Fetched(str(folder), commit, new or bool(before and before.brought), anonymous)
        with writable(cache_root()):
            for each in {revision, found.revision}:  # so that it is found by its commit too
                write_whole(_note(repository, each), json.dumps(asdict(found)) + "\n")
        keep_within_bound()
        return found
    raise _refusal(repository, answer, remedy, most_bytes, bound_by)


def _refusal(
    repository: str, answer: dict[str, object], remedy: str, most_bytes: int, bound_by: str
) -> BackendUnavailable:
    """Why nothing came, of what the downloading process answered."""
    problem = str(answer.get("problem"))
    if problem == TOO_LARGE:
        return BackendUnavailable(
            f"{repository} takes {int(str(answer['bytes'])) / 1e9:.1f} GB, and downloads are limited to "
            f"{most_bytes / 1e9:g} GB here.",
            f"Choose a smaller model, or raise the limit: {bound_by}.",
        )
    if problem == UNREAD:
        return BackendUnavailable(
            f"{repository} is of the kind '{str(answer['is'])[:MOST_NAMED]}', which cannot be read.",
            f"Choose one of the kinds {', '.join(known())}.",
        )
    if problem == UNTAUGHT:
        return BackendUnavailable(
            f"{repository} was not taught to find answers: it has no output layer '{answer['is']}'.",
            "Choose one that was fine-tuned for extractive question answering.",
        )
    if problem in REASONS:
        return BackendUnavailable(REASONS[problem].format(repository), "Choose another model.")
    if problem == PICKLED:
        return BackendUnavailable(
            f"{repository} holds no safetensors weights, and pickled ones are not read.",
            "Choose another model, or save this one as safetensors: save_pretrained(FOLDER).",
        )
    if problem == FAILED:
        return BackendUnavailable(f"{repository} could not be fetched: {answer['why']}", "Mend that, and ask again.")
    refusal = BackendUnavailable(f"The Hugging Face Hub could not be reached for {repository}.", remedy)
    refusal.__cause__ = RuntimeError(answer["why"])
    return refusal


def _downloaded(repository: str, wanted: list[str], progress: Progress) -> dict[str, object]:
    """What the downloading process printed; it is ended when waiting for it ends early."""
    blobs = _blobs(repository)
    command = [sys.executable, "-m", "qa_backends.checkpoints.download", str(blobs.parents[1]), repository, *wanted]
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
        said = err.decode(errors="replace").strip().splitlines()[-1:] or ["the download ended without a word"]
        return {"problem": FAILED, "why": said[0]}


def _import_root() -> Path:
    """Where this package is imported from, so that the process imports the same one."""
    return Path(__file__).resolve().parents[2]


def _blobs(repository: str) -> Path:
    """Where the Hub's client puts what it downloads of a repository: two folders below its cache. Raises
    BackendUnavailable where nothing there is called so: a path that was mistyped looks like a name."""
    from huggingface_hub.constants import HF_HUB_CACHE
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.file_download import repo_folder_name

    try:
        folder = repo_folder_name(repo_id=repository, repo_type="model")
    except HFValidationError as error:
        raise BackendUnavailable(
            f"There is no folder {repository}, and no model of the Hugging Face Hub can be called so.",
            "Name a folder that is here, or a model as owner/name.",
        ) from error
    return Path(HF_HUB_CACHE).resolve() / folder / "blobs"


def _size(folder: Path) -> int:
    """Bytes of the files in the folder; one that is moved away meanwhile counts as nothing."""
    total = 0
    for file in folder.glob("*"):
        with suppress(OSError):
            total += file.stat().st_size
    return total


def noted(repository: str, revision: str | None) -> Fetched | None:
    """What was noted of the repository when it was fetched, whether that is still there or not."""
    try:
        return Fetched(**json.loads(_note(repository, revision).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _note(repository: str, revision: str | None) -> Path:
    return cache_root() / "hub" / f"{repository}@{revision or 'first'}.json".replace("/", "--")
