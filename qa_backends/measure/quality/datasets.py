"""Question sets to measure quality on: the project's own two, SQuAD v2.0 dev from its official address, any file."""

from __future__ import annotations

import hashlib
import urllib.request
from dataclasses import dataclass
from functools import cache
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING

from qa_backends.checkpoints.cache import locked, writable
from qa_backends.errors import BackendUnavailable, InputError
from qa_backends.paths import EVERYDAY_QUESTIONS, OWN_QUESTIONS, cache_root, write_whole
from qa_backends.reader.reader import MAX_CONTEXT_CHARS
from qa_backends.squad import SHOWN, parse_squad, unpacked

if TYPE_CHECKING:
    from qa_backends.progress import Progress
    from qa_backends.squad import Question

OWN, EVERYDAY, SQUAD_V2_DEV = "own", "everyday", "squad-v2-dev"
"""What data sets are called where they are asked for; anything else is a path."""
TITLES = {SQUAD_V2_DEV: "SQuAD", OWN: "other texts", EVERYDAY: "everyday texts"}
"""What people call the sets whose figures ship, in the order they are shown: what was trained for, well-written texts
of other kinds, and letters, manuals, chat and the like with their slang and slips."""
SHIPPED = {OWN: OWN_QUESTIONS, EVERYDAY: EVERYDAY_QUESTIONS}
"""Those that ship, written for the project."""
SQUAD_DEV = "dev-v2.0.json"
SQUAD_DEV_URL = f"https://rajpurkar.github.io/SQuAD-explorer/dataset/{SQUAD_DEV}"
SQUAD_DEV_SHA256 = "80a5225e94905956a6446d296ca1093975c4d3b3260f1d6c8f68bc2ab77182d8"
"""Of the official file, whose git blob in the SQuAD-explorer repository is c6fa1a89a12c90b7fbfa8f6fb437cfff27af41ca."""
SQUAD_DEV_BYTES, SQUAD_DEV_QUESTIONS = 4_370_528, 11_873
DATA_FILES = {SQUAD_V2_DEV: SQUAD_DEV, **{name: path.name for name, path in SHIPPED.items()}}
"""What the files of the sets in ``TITLES`` are called."""
TIMEOUT_S = 30
PIECE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class DataSet:
    """``sha256`` is of the file's contents, unpacked, so that a compressed copy counts as the same set."""

    name: str
    sha256: str
    questions: tuple[Question, ...]


def own_questions() -> list[Question]:
    """The questions that ship with the project, written for it, in a list of the caller's own."""
    return list(shipped_set(OWN).questions)


@cache
def shipped_set(name: str) -> DataSet:
    """One of those in ``SHIPPED``, read once."""
    return read_set(SHIPPED[name])


def sha256_of(name: str) -> str:
    """Of the contents of one of the sets in ``TITLES``, without downloading any."""
    return shipped_set(name).sha256 if name in SHIPPED else SQUAD_DEV_SHA256


def count_of(name: str) -> int:
    """Questions of one of the sets in ``TITLES``, without downloading any."""
    return len(shipped_set(name).questions) if name in SHIPPED else SQUAD_DEV_QUESTIONS


def title_of_file(file: str) -> str:
    """What people call the data set of that file; somebody else's is called as its file."""
    return next((TITLES[name] for name, own in DATA_FILES.items() if own == file), file)


def data_set(wanted: str, progress: Progress) -> DataSet:
    """One of the project's own sets ("own", "everyday"), SQuAD v2.0 dev ("squad-v2-dev"), or the file at that path.

    Raises:
        InputError: no such file, not in SQuAD format, or without questions.
        ArtefactError: SQuAD v2.0 dev is not here yet, and the cache cannot be written.
        BackendUnavailable: SQuAD v2.0 dev is not here yet and cannot be downloaded.
    """
    if wanted in SHIPPED:
        return shipped_set(wanted)
    return read_set(squad_dev(progress)) if wanted == SQUAD_V2_DEV else read_set(Path(wanted))


def read_set(path: Path) -> DataSet:
    """Raises InputError for a file that is not in SQuAD format or holds no questions."""
    raw = unpacked(path)
    name = path.name.removesuffix(".xz")
    questions = parse_squad(raw, path.name)
    for each in questions:
        longest = max(len(each.context), len(each.question))
        if longest > MAX_CONTEXT_CHARS:
            raise InputError(
                f"{path.name} holds a text of {longest:,} characters (question '{each.id[:SHOWN]}'); the limit is "
                f"{MAX_CONTEXT_CHARS:,}. Shorten it."
            )
    return DataSet(name, _sha256(raw), tuple(questions))


def squad_dev(progress: Progress) -> Path:
    """SQuAD v2.0 dev in the cache, downloaded on first use and checked by its hash.

    Raises:
        ArtefactError: the cache cannot be written.
        BackendUnavailable: it cannot be downloaded, or what came is not it.
    """
    path = cache_root() / "data" / SQUAD_DEV
    with writable(path.parent), locked(f"{path}.lock", SQUAD_DEV, progress):
        if not path.is_file() or _sha256(path.read_bytes()) != SQUAD_DEV_SHA256:
            progress.say(f"downloading SQuAD v2.0 dev ({SQUAD_DEV_BYTES / 1e6:.1f} MB) …")
            write_whole(path, _downloaded(progress).decode())
    return path


def _downloaded(progress: Progress) -> bytes:
    """The official file; Cancelled between two pieces of it where ``progress`` says to stop."""
    raw = b""
    remedy = "Connect to the internet and start again, or choose a file that you have."
    try:
        with urllib.request.urlopen(SQUAD_DEV_URL, timeout=TIMEOUT_S) as response:
            while len(raw) <= SQUAD_DEV_BYTES and (piece := response.read1(PIECE_BYTES)):
                raw += piece
                progress.check()
    except (OSError, HTTPException) as error:
        raise BackendUnavailable(f"{SQUAD_DEV_URL} cannot be reached ({error}).", remedy) from error
    if _sha256(raw) != SQUAD_DEV_SHA256:
        raise BackendUnavailable(f"What {SQUAD_DEV_URL} sent is not the official file: its hash differs.", remedy)
    return raw


def _sha256(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()
