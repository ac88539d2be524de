"""The download from the Hugging Face Hub, as a program of its own, so that it can be stopped in its middle.

``python -m qa_backends.checkpoints.download CACHE REPOSITORY`` prints a line of JSON: ``folder`` and ``revision`` (the
commit), or ``problem``, one of the words below. What had come into the folder ``CACHE`` when it was stopped is kept,
and gone on from.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from qa_backends.checkpoints.architectures import architecture, known
from qa_backends.checkpoints.files import CHECKPOINT_FILES, TOKENIZER_SETTINGS, VOCABULARIES, WEIGHTS

if TYPE_CHECKING:
    from huggingface_hub import ModelInfo

CARD = "README.md"
"""Where a model's makers say what it knows and what they measured."""
FILES = [CARD, *CHECKPOINT_FILES, *TOKENIZER_SETTINGS]
CONVERTER = "SFconvertbot"
"""The Hub's own account that offers safetensors copies; anybody else's pull request is not read."""
UNREACHABLE, MISSING, PICKLED, SPLIT, TOO_LARGE = "unreachable", "missing", "pickled", "split", "too large"
UNREAD, UNTAUGHT, FAILED = "unread", "untaught", "failed"
MOST_BESIDE = 100_000_000
"""Bytes of all files but the weights, where the size is bounded: the largest vocabularies take a fifth."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """``most_bytes`` is 0 for any size; ``anonymous`` leaves this machine's own token for the Hub out."""

    cache: str
    repository: str
    revision: str | None = None
    most_bytes: int = 0
    anonymous: bool = False

    @property
    def token(self) -> bool | None:
        """As the Hub's client takes it: the machine's own, or none."""
        return False if self.anonymous else None


class TooLargeError(Exception):
    """Its one argument is how many bytes there are."""


class SplitError(Exception):
    """The weights are in several files."""


class UnfitError(Exception):
    """It is no model that can be asked here. Its arguments: ``UNREAD`` and its kind, or ``UNTAUGHT`` and what it
    lacks."""


def snapshot(wanted: Wanted) -> Path | None:
    """A local folder, named by its commit, with config, tokenizer and safetensors weights; ``None`` without weights.

    Many older repositories hold pickled weights only, with a safetensors copy waiting in a pull request of the Hub's
    conversion service. Without a pinned ``revision``, such a copy is looked for; pickled weights are never read.

    Raises:
        TooLargeError, SplitError, UnfitError: by what the Hub says of it, where ``most_bytes`` are given.
    """
    from huggingface_hub import HfApi

    if folder := _with_weights(wanted, wanted.revision):
        return folder
    api = HfApi(token=wanted.token)
    if wanted.revision is not None:
        # Out of the Hub's reach, what came before a download was stopped looks like a repository without weights.
        api.model_info(wanted.repository, revision=wanted.revision)
        return None
    for request in api.get_repo_discussions(wanted.repository, author=CONVERTER, discussion_type="pull_request"):
        if request.author == CONVERTER and (folder := _with_weights(wanted, request.git_reference)):
            return folder
    return None


def _with_weights(wanted: Wanted, revision: str | None) -> Path | None:
    from huggingface_hub import snapshot_download

    if wanted.most_bytes and (told := _told(wanted, revision)):
        if not _looked_through(told, wanted.most_bytes):
            return None
        _check_taught(wanted, told)
        revision = told.sha  # what was looked through is what is fetched
    folder = Path(
        snapshot_download(
            wanted.repository, revision=revision, cache_dir=wanted.cache, allow_patterns=FILES, token=wanted.token
        )
    )
    return folder if (folder / WEIGHTS).is_file() else None


def complete(folder: Path) -> bool:
    """Whether a snapshot has all that a checkpoint needs. Other clients of the Hub leave parts of one in the folder
    that all of them share, and out of the Hub's reach, what is there is what ``snapshot_download`` gives."""
    has = [name for name in FILES if (folder / name).is_file()]
    return {WEIGHTS, "config.json"} <= set(has) and any(each in has for each in ("tokenizer.json", *VOCABULARIES))


def _told(wanted: Wanted, revision: str | None) -> ModelInfo | None:
    """What the Hub says of the repository; nothing where it cannot be asked and only what is here already will do."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import OfflineModeIsEnabled
    from requests.exceptions import ConnectionError as NoConnectionError

    try:
        return HfApi(token=wanted.token).model_info(wanted.repository, revision=revision or "main", files_metadata=True)
    except (OfflineModeIsEnabled, NoConnectionError):
        if wanted.anonymous:
            raise
        return None


def _looked_through(told: ModelInfo, most_bytes: int) -> bool:
    """Whether there are weights. Raises UnfitError, SplitError and TooLargeError."""
    if (kind := _kind(told)) and kind not in known():
        raise UnfitError(UNREAD, kind)
    sizes = {each.rfilename: each.size or 0 for each in told.siblings or ()}
    if WEIGHTS not in sizes:
        if f"{WEIGHTS}.index.json" in sizes:
            raise SplitError
        return False
    beside = sum(size for name, size in sizes.items() if name in FILES and name != WEIGHTS)
    if (whole := beside + sizes[WEIGHTS]) > most_bytes or beside > MOST_BESIDE:
        raise TooLargeError(whole)
    return True


def _kind(told: ModelInfo) -> str:
    """What the Hub read in ``config.json``; empty where it did not."""
    return str((told.config or {}).get("model_type") or "")


def _check_taught(wanted: Wanted, told: ModelInfo) -> None:
    """Raises UnfitError where the head of the weights' file names no output layer: the rest may be gigabytes."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import SafetensorsParsingError

    if not (kind := _kind(told)):
        return
    api = HfApi(token=wanted.token)
    try:
        weights = api.parse_safetensors_file_metadata(wanted.repository, WEIGHTS, revision=told.sha).tensors
    except (SafetensorsParsingError, struct.error):  # which who reads the file can say better
        return
    if (layer := f"{architecture(kind).head}weight") not in weights:
        raise UnfitError(UNTAUGHT, layer)


def asked() -> Wanted:
    """What the command line wants."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cache")
    parser.add_argument("repository")
    parser.add_argument("--revision")
    parser.add_argument("--most-bytes", type=int, default=0)
    parser.add_argument("--anonymous", action="store_true")
    return Wanted(**vars(parser.parse_args()))


def main() -> None:
    from huggingface_hub.errors import (
        HfHubHTTPError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )
    from requests.exceptions import RequestException

    found: dict[str, object] = {"problem": PICKLED}
    try:
        if folder := snapshot(asked()):
            found = {"folder": str(folder), "revision": folder.name}
    except TooLargeError as error:
        found = {"problem": TOO_LARGE, "bytes": error.args[0]}
    except SplitError:
        found = {"problem": SPLIT}
    except UnfitError as error:
        found = {"problem": error.args[0], "is": error.args[1]}
    except (RepositoryNotFoundError, RevisionNotFoundError):
        found = {"problem": MISSING}
    except (HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled, RequestException) as error:
        found = {"problem": UNREACHABLE, "why": f"{type(error).__name__}: {error}"}
    except OSError as error:
        found = {"problem": FAILED, "why": f"{type(error).__name__}: {error}"}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
