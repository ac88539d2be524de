"""What was built is kept whole, noticed when broken, made once when two want it, and hashed once to be known."""

from __future__ import annotations

import errno
import hashlib
import multiprocessing
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest

from qa_backends.checkpoints import cache
from qa_backends.checkpoints.cache import ensure, find
from qa_backends.checkpoints.manifest import Manifest, file_hash, read_manifest
from qa_backends.errors import ArtefactError
from qa_backends.progress import UNWATCHED, Cancelled, Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.queues import Queue
    from multiprocessing.synchronize import Event


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("QA_CACHE", str(tmp_path))
    return tmp_path


def write(folder: Path, content: str = "x") -> None:
    (folder / "model.onnx").write_text(content)
    files = {"model.onnx": file_hash(folder / "model.onnx")}
    manifest = Manifest(
        step="test", parent=None, precision="FP32", bytes=1, parameters=1, encoder_parameters=1, files=files
    )
    manifest.write(folder)


@pytest.mark.parametrize("damage", ["model.onnx", "manifest.json"])
def test_a_broken_entry_is_noticed_and_built_again(root: Path, damage: str) -> None:
    facts = {"version": 1}
    place = ensure("thing", facts, lambda folder: write(folder, "right"), UNWATCHED)
    assert find("thing", facts) == place
    (place / damage).write_text("half a fi")
    assert find("thing", facts) is None
    again = ensure("thing", facts, lambda folder: write(folder, "right"), UNWATCHED)
    assert again == find("thing", facts) == place
    assert (again / "model.onnx").read_text() == "right"


def test_what_is_there_is_used_where_the_cache_can_only_be_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_lock: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    place = ensure("thing", {}, write, UNWATCHED)
    monkeypatch.setattr(cache, "locked", refuse)
    assert ensure("thing", {}, write, UNWATCHED) == place
    with pytest.raises(ArtefactError, match="cannot be written: Permission denied"):
        ensure("another", {}, write, UNWATCHED)


def test_what_is_made_can_be_read_by_other_users(root: Path) -> None:
    assert ensure("thing", {}, write, UNWATCHED).stat().st_mode & 0o777 == 0o755


def test_other_facts_are_another_entry(root: Path) -> None:
    one, two = (ensure("thing", {"version": v}, write, UNWATCHED) for v in (1, 2))
    assert one != two and one.is_dir() and two.is_dir()


@pytest.mark.parametrize("error", [ArtefactError("stopped"), Cancelled()])
def test_a_failed_or_cancelled_build_leaves_nothing_behind(root: Path, error: Exception) -> None:
    def fail(folder: Path) -> None:
        write(folder, "half")
        raise error

    with pytest.raises(type(error)):
        ensure("thing", {}, fail, UNWATCHED)
    assert [each.name for each in root.iterdir() if each.is_dir()] == []


def test_what_a_killed_process_had_begun_goes_with_the_next_build(root: Path) -> None:
    place = ensure("thing", {}, write, UNWATCHED)
    for other in (place.name, "thing-of-others"):
        (root / f".{other}-begun").mkdir()
    (place / "manifest.json").unlink()
    ensure("thing", {}, write, UNWATCHED)
    assert [each.name for each in root.glob(".*")] == [".thing-of-others-begun"], "others may be at theirs"


def slow_build(built: Queue[str]) -> None:
    def make(folder: Path) -> None:
        built.put("built")
        time.sleep(0.5)
        write(folder)

    ensure("thing", {}, make, UNWATCHED)


def test_two_processes_build_once(root: Path) -> None:
    context = multiprocessing.get_context("fork")
    built: Queue[str] = context.Queue()
    workers = [context.Process(target=slow_build, args=(built,)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert built.get(timeout=5) == "built" and built.empty()


def build_until(building: Event, release: Event) -> None:
    def make(folder: Path) -> None:
        building.set()
        release.wait(30)
        write(folder)

    ensure("thing", {}, make, UNWATCHED)


@contextmanager
def another_builds() -> Iterator[Event]:
    """While another process makes the same thing, until the event that is given."""
    context = multiprocessing.get_context("fork")
    building, release = context.Event(), context.Event()
    other = context.Process(target=build_until, args=(building, release))
    other.start()
    assert building.wait(30)
    yield release
    release.set()
    other.join(30)
    assert other.exitcode == 0


def test_a_disk_that_is_full_is_said_with_what_to_do(root: Path) -> None:
    def full(_folder: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(ArtefactError, match=r"cannot be written: No space left.*cache clear.*QA_CACHE"):
        ensure("thing", {}, full, UNWATCHED)


def test_who_waits_for_another_process_can_stop(root: Path) -> None:
    with another_builds():
        began = time.monotonic()
        with pytest.raises(Cancelled):
            ensure("thing", {}, write, Progress(stopped=lambda: time.monotonic() - began > 0.2))
        assert time.monotonic() - began < 2
    assert find("thing", {}) is not None, "the other one's work is not touched"


def test_who_waits_for_another_process_is_told_and_gets_what_that_made(root: Path) -> None:
    said: list[str] = []

    def tell(sentence: str) -> None:
        said.append(sentence)
        release.set()

    with another_builds() as release:
        place = ensure("thing", {}, lambda _folder: pytest.fail("the other process made it"), Progress(tell))
    assert said == ["waiting for 'thing', which others are at, 0 s so far …"]
    assert find("thing", {}) == place
    said.clear()
    ensure("thing", {}, write, Progress(tell))
    assert said == [], "nobody waits for what is there"


def test_a_file_is_hashed_once_until_it_changes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []
    digest: Callable[..., Any] = hashlib.file_digest

    def counting(file: IO[bytes], *rest: Any) -> Any:
        hashed.append(Path(file.name).name)
        return digest(file, *rest)

    monkeypatch.setattr(hashlib, "file_digest", counting)
    place = ensure("thing", {}, write, UNWATCHED)
    hashed.clear()
    for _ in range(3):
        assert ensure("thing", {}, write, UNWATCHED) == find("thing", {}) == place
    assert hashed == ["model.onnx"], "once at its new place, and never again"
    (place / "model.onnx").write_text("something longer")
    assert find("thing", {}) is None
    assert hashed == ["model.onnx"] * 2


def test_a_manifest_is_read_back(tmp_path: Path) -> None:
    write(tmp_path)
    manifest = replace(read_manifest(tmp_path), settings={"opset": 17})
    manifest.write(tmp_path)
    assert read_manifest(tmp_path) == manifest


@pytest.mark.parametrize("content", ["half a fi", "[]", '{"step": "onnx"}', '{"colour": "red"}'])
def test_a_manifest_that_is_not_ours_is_refused_with_a_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(ArtefactError, match=r"cannot be read .* Build the artefact again"):
        read_manifest(tmp_path)
