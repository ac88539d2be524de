"""Question sets by name or by file; SQuAD v2.0 dev is believed by its hash alone."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any, NoReturn

import pytest
from filelock import FileLock

from qa_backends.errors import ArtefactError, BackendUnavailable, InputError
from qa_backends.measure.quality import datasets
from qa_backends.measure.quality.datasets import data_set, read_set
from qa_backends.progress import UNWATCHED, Cancelled, Progress

QUESTION = {"id": "1", "question": "Where?", "answers": [{"text": "Rome", "answer_start": 3}]}


def squad(context: str = "In Rome.", question: str = "Where?") -> bytes:
    asked = QUESTION | {"question": question}
    return json.dumps({"data": [{"paragraphs": [{"context": context, "qas": [asked]}]}]}).encode()


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("QA_CACHE", str(tmp_path))
    return tmp_path


def serve(monkeypatch: pytest.MonkeyPatch, content: bytes) -> list[str]:
    """Stands in for the official address; gives the list of what was asked of it."""
    asked: list[str] = []

    def urlopen(url: str, timeout: float) -> Any:
        assert timeout > 0
        asked.append(url)
        return io.BytesIO(content)

    monkeypatch.setattr(datasets.urllib.request, "urlopen", urlopen)
    return asked


def test_the_projects_own_questions_have_a_name() -> None:
    own = data_set("own", UNWATCHED)
    assert own.name == "questions.json" and len(own.questions) >= 200


def test_a_compressed_copy_is_the_same_set(tmp_path: Path) -> None:
    import lzma

    plain, packed = tmp_path / "mine.json", tmp_path / "mine.json.xz"
    plain.write_bytes(squad())
    packed.write_bytes(lzma.compress(squad()))
    assert read_set(plain) == read_set(packed)


def test_squad_dev_is_downloaded_once_and_kept(monkeypatch: pytest.MonkeyPatch, fresh: Path) -> None:
    monkeypatch.setattr(datasets, "SQUAD_DEV_SHA256", hashlib.sha256(squad()).hexdigest())
    said: list[str] = []
    asked, progress = serve(monkeypatch, squad()), Progress(said.append)
    first = data_set("squad-v2-dev", progress)
    assert first.name == "dev-v2.0.json" and len(first.questions) == 1
    assert data_set("squad-v2-dev", progress) == first
    assert asked == ["https://rajpurkar.github.io/SQuAD-explorer/dataset/dev-v2.0.json"]
    assert len(said) == 1 and "MB" in said[0]
    (fresh / "data" / "dev-v2.0.json").write_text("cut short")
    assert data_set("squad-v2-dev", progress) == first, "a damaged copy is fetched again"


def test_a_cache_without_room_is_said_with_what_to_do_and_keeps_no_part(
    monkeypatch: pytest.MonkeyPatch, fresh: Path
) -> None:
    def full(_handle: int, _mode: str, **_options: str) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(datasets, "SQUAD_DEV_SHA256", hashlib.sha256(squad()).hexdigest())
    serve(monkeypatch, squad())
    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(ArtefactError, match=r"cannot be written: No space left.*cache clear.*QA_CACHE"):
        data_set("squad-v2-dev", UNWATCHED)
    assert [each.name for each in (fresh / "data").iterdir()] == ["dev-v2.0.json.lock"]


def test_a_download_that_is_stopped_ends_between_two_pieces_and_keeps_nothing(
    monkeypatch: pytest.MonkeyPatch, fresh: Path
) -> None:
    content, pieces = squad("In Rome. " * 50_000), []

    class Served(io.BytesIO):
        def read1(self, size: int | None = -1) -> bytes:
            pieces.append(super().read1(size))
            return pieces[-1]

    monkeypatch.setattr(datasets, "SQUAD_DEV_SHA256", hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(datasets.urllib.request, "urlopen", lambda _url, timeout: Served(content))
    with pytest.raises(Cancelled):
        data_set("squad-v2-dev", Progress(stopped=lambda: len(pieces) == 2))
    assert 0 < sum(map(len, pieces)) < len(content)
    assert list((fresh / "data").glob("*.json")) == []


def test_no_more_is_downloaded_than_the_official_file_has(monkeypatch: pytest.MonkeyPatch, fresh: Path) -> None:
    """However much comes; a server that never ends is given up as one that sends something else."""
    pieces = []

    class Endless(io.BytesIO):
        def read1(self, size: int | None = -1) -> bytes:
            pieces.append(b"x" * (size or 1))
            assert sum(map(len, pieces)) < 10 * limit
            return pieces[-1]

    limit = 5 * datasets.PIECE_BYTES
    monkeypatch.setattr(datasets, "SQUAD_DEV_BYTES", limit)
    monkeypatch.setattr(datasets.urllib.request, "urlopen", lambda _url, timeout: Endless())
    with pytest.raises(BackendUnavailable, match="hash differs"):
        data_set("squad-v2-dev", UNWATCHED)
    assert limit < sum(map(len, pieces)) <= limit + datasets.PIECE_BYTES
    assert list((fresh / "data").glob("*.json")) == []


def test_another_file_at_the_official_address_is_refused(monkeypatch: pytest.MonkeyPatch, fresh: Path) -> None:
    serve(monkeypatch, squad())
    with pytest.raises(BackendUnavailable, match="hash differs"):
        data_set("squad-v2-dev", UNWATCHED)
    assert not (fresh / "data" / "dev-v2.0.json").exists()


def test_nothing_is_downloaded_for_somebody_who_gave_up(monkeypatch: pytest.MonkeyPatch, fresh: Path) -> None:
    asked = serve(monkeypatch, squad())
    with pytest.raises(Cancelled):
        data_set("squad-v2-dev", Progress(stopped=lambda: True))
    assert asked == []


def test_who_waits_for_somebody_elses_download_is_told_and_can_stop(
    monkeypatch: pytest.MonkeyPatch, fresh: Path
) -> None:
    said: list[str] = []
    asked = serve(monkeypatch, squad())
    (fresh / "data").mkdir()
    with FileLock(fresh / "data" / f"{datasets.SQUAD_DEV}.lock"), pytest.raises(Cancelled):
        data_set("squad-v2-dev", Progress(said.append, stopped=lambda: bool(said)))
    assert len(said) == 1 and said[0].startswith(f"waiting for '{datasets.SQUAD_DEV}'")
    assert asked == []


def test_without_a_connection_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch, fresh: Path) -> None:
    monkeypatch.setattr(datasets, "SQUAD_DEV_URL", "https://127.0.0.1:9/dev-v2.0.json")
    with pytest.raises(BackendUnavailable, match="Connect to the internet"):
        data_set("squad-v2-dev", UNWATCHED)


def test_a_set_without_questions_or_with_a_text_too_long_is_refused(tmp_path: Path) -> None:
    empty, long = tmp_path / "empty.json", tmp_path / "long.json"
    empty.write_text('{"data": []}')
    with pytest.raises(InputError, match="no questions"):
        read_set(empty)
    for content in (squad("In Rome. " * 30_000), squad(question="Where? " * 30_000)):
        long.write_bytes(content)
        with pytest.raises(InputError, match="200,000"):
            read_set(long)
