"""What is kept on disk is told, bounded and cleared."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from filelock import FileLock
from helpers import ROOT, random_bert
from stand_in_hub import CHUNK, stand_in_hub
from typer.testing import CliRunner

from qa_backends.catalog import Family
from qa_backends.checkpoints import cache, disk, hub
from qa_backends.checkpoints.cache import ensure, find
from qa_backends.checkpoints.download import FAILED
from qa_backends.checkpoints.hub import fetch, fetched
from qa_backends.checkpoints.manifest import manifest_of
from qa_backends.checkpoints.sources import Source, make_ready
from qa_backends.cli import app
from qa_backends.errors import BackendUnavailable, InputError
from qa_backends.progress import UNWATCHED, Cancelled, Progress

if TYPE_CHECKING:
    from collections.abc import Callable

DAY_S = 86_400


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("QA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def of_size(size: int) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        random_bert(folder)
        manifest_of(folder, step="test", parent=None, settings={"source": "mine"}).write(folder)
        (folder / "more").write_bytes(b"x" * size)

    return make


def used(place: Path, days_ago: float) -> None:
    at = time.time() - days_ago * DAY_S
    os.utime(place, (at, at))


def test_what_was_not_used_for_longest_goes_when_there_is_too_much(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = [ensure("thing", {"number": number}, of_size(10_000_000), UNWATCHED) for number in range(3)]
    for number, place in enumerate(places):
        used(place, 3 - number)
    assert find("thing", {"number": 0}) == places[0], "looking is no use"
    assert cache.used(places[0]) == places[0], "which makes it the one used last"
    monkeypatch.setenv("QA_CACHE_GB", "0.06")
    ensure("thing", {"number": 3}, of_size(20_000_000), UNWATCHED)
    assert find("thing", {"number": 1}) is None
    assert [find("thing", {"number": number}) is None for number in (0, 2, 3)] == [False, False, False]
    assert sum(each.bytes for each in disk.built()) <= 0.06e9


def test_what_was_just_used_stays_beyond_the_bound(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QA_CACHE_GB", "0.001")
    for number in range(2):
        ensure("thing", {"number": number}, of_size(2_000_000), UNWATCHED)
    assert len(disk.built()) == 2
    monkeypatch.setattr(disk, "RECENT_S", 0)
    disk.keep_within_bound()
    assert disk.built() == []


def test_a_bound_that_is_no_number_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QA_CACHE_GB", "plenty")
    with pytest.raises(InputError, match="QA_CACHE_GB is 'plenty'"):
        disk.most_bytes()


def test_downloads_are_told_and_cleared_with_what_was_made_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stand_in_hub(tmp_path) as hub:
        hub.publish("somebody/mine", random_bert(tmp_path / "published"))
        make_ready(Source(repository="somebody/mine"), UNWATCHED)
        assert {(each.what, each.of) for each in disk.entries()} == {
            ("downloaded", "somebody/mine"), ("pack", "somebody/mine"),
        }  # fmt: skip
        assert all(each.bytes > 100_000 for each in disk.entries())
        listed = CliRunner().invoke(app, ["cache"])
        assert "somebody/mine" in listed.stdout and "of 20 GB (QA_CACHE_GB)" in listed.stdout
        monkeypatch.setenv("QA_CACHE_GB", "0.001")
        before = disk.entries()
        disk.keep_within_bound()
        assert disk.entries() == before, "just used"
        assert disk.room() == 0
        monkeypatch.delenv("QA_CACHE_GB")
        kept = CliRunner().invoke(app, ["cache", "clear", "--unused-days", "1"])
        assert "0 deleted" in kept.stdout and len(disk.entries()) == 2
        cleared = CliRunner().invoke(app, ["cache", "clear"])
        assert "2 deleted" in cleared.stdout
        assert disk.entries() == []
        assert fetched("somebody/mine", None) is None
        assert fetch("somebody/mine", None, UNWATCHED).revision, "and it can be fetched again"


def test_what_was_packed_does_without_its_download_and_the_commit_is_kept_to(tmp_path: Path) -> None:
    """Every day's use is of what was packed, so the download is what was not used for longest."""
    with stand_in_hub(tmp_path) as hub:
        commit = hub.publish("somebody/mine", random_bert(tmp_path / "published"))
        source = Source(repository="somebody/mine")
        place = make_ready(source, UNWATCHED)
        disk.clear(disk.downloads())
        hub.asked.clear()
        assert disk.downloads() == [] and make_ready(source, UNWATCHED) == place and hub.asked == []
        disk.clear(disk.entries())
        hub.publish("somebody/mine", random_bert(tmp_path / "later", seed=2))
        assert fetch("somebody/mine", None, UNWATCHED).revision == commit
        assert len(disk.downloads()) == 1, "and it is ours again"


def test_a_family_says_its_size_until_all_of_it_is_here(root: Path, tmp_path: Path) -> None:
    with stand_in_hub(tmp_path) as hub:
        sources = [Source(repository=f"somebody/{name}") for name in ("one", "two")]
        commits = [hub.publish(str(each.repository), random_bert(tmp_path / "published")) for each in sources]
        checkpoints = tuple(zip(("baseline", "pruned"), sources, strict=True))
        family = Family("ours", "Ours", checkpoints, download_mb=300)
        size, come = "0.3 GB from the Hugging Face Hub on first use", " and ".join(each[:8] for each in commits)
        assert family.summary == size
        make_ready(sources[0], UNWATCHED)
        assert family.summary == f"{size}, commit {commits[0][:8]}"
        fetch("somebody/two", None, UNWATCHED)
        assert family.summary == f"from the Hugging Face Hub, commit {come}"
        disk.clear(disk.entries())
        assert family.summary == f"{size}, commit {come}"


def test_what_others_had_downloaded_before_is_theirs(tmp_path: Path) -> None:
    with stand_in_hub(tmp_path) as hub:
        hub.publish("somebody/mine", random_bert(tmp_path / "published"))
        program = [
            sys.executable,
            "-m",
            "qa_backends.checkpoints.download",
            str(tmp_path / "downloaded"),
            "somebody/mine",
        ]
        subprocess.run(program, cwd=ROOT, check=True, capture_output=True)
        found = fetch("somebody/mine", None, UNWATCHED)
        assert not found.brought
        assert disk.downloads() == []
        disk.clear(disk.entries())
        assert (Path(found.folder) / "model.safetensors").is_file()


def test_a_stopped_download_is_told_and_cleared_and_one_that_goes_on_stays(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "TELL_EVERY_S", 0.05)
    blobs = tmp_path / "downloaded" / "models--somebody--large" / "blobs"
    blobs.mkdir(parents=True)
    (theirs := blobs / "theirs.incomplete").touch()
    said: list[str] = []
    with stand_in_hub(tmp_path) as there:
        there.publish("somebody/large", {"config.json": b"{}", "model.safetensors": bytes(CHUNK + 5_000_000)})
        there.held.add("model.safetensors")
        for _ in range(2):  # what was begun before stays ours
            with pytest.raises(Cancelled):
                fetch("somebody/large", None, Progress(said.append, stopped=lambda: any("10 MB" in e for e in said)))
    (others := blobs / "others.incomplete").touch()
    (begun,) = disk.entries()
    assert (begun.what, begun.of, begun.bytes >= CHUNK) == ("begun", "somebody/large", True)
    lock = tmp_path / "downloaded" / ".locks" / "models--somebody--large" / f"{begun.folder.stem}.lock"
    with FileLock(lock):
        disk.clear([begun])
    assert disk.entries() == [begun]
    assert "1 deleted, 0.01 GB" in CliRunner().invoke(app, ["cache", "clear"]).stdout
    assert disk.entries() == [] and theirs.is_file() and others.is_file(), "whenever they were begun"


def test_a_full_disk_is_told_by_the_download_though_its_end_cannot_be_noted(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs = tmp_path / "downloaded" / "models--somebody--large" / "blobs"

    def full(_path: Path, _text: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fill(*_wanted: object) -> dict[str, object]:
        blobs.mkdir(parents=True)
        (blobs / "ours.incomplete").touch()
        monkeypatch.setattr(disk, "write_whole", full)
        return {"problem": FAILED, "why": "the download's own sentence"}

    monkeypatch.setattr(hub, "_downloaded", fill)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "downloaded"))
    with pytest.raises(BackendUnavailable, match="could not be fetched: the download's own sentence"):
        fetch("somebody/large", None, UNWATCHED)
    assert [(each.what, each.folder.name) for each in disk.entries()] == [("begun", "ours.incomplete")]


def test_what_a_killed_build_left_is_told_and_cleared_and_what_is_being_built_stays(root: Path) -> None:
    left, at_work = (root / f".onnx-int8-{digit * 20}-x1y2" for digit in "01")
    for each in (left, at_work):
        each.mkdir(parents=True)
        (each / "file").write_bytes(b"x" * 1_000)
    assert {(each.folder, each.bytes) for each in disk.entries()} == {(left, 1_000), (at_work, 1_000)}
    with FileLock(root / f"onnx-int8-{'1' * 20}.lock"):
        disk.clear(disk.entries())
        assert [each for each in root.iterdir() if each.is_dir()] == [at_work]
    disk.clear(disk.entries())
    assert [each for each in root.iterdir() if each.is_dir()] == []


def test_what_is_not_ours_is_neither_told_nor_touched(root: Path) -> None:
    for name in ("huggingface", "data", "runs-2026", ".hidden", "onnx-0123456789abcdef"):
        (root / name).mkdir(parents=True)
        (root / name / "file").write_bytes(b"x" * 1_000)
    assert disk.entries() == []
    disk.clear(disk.entries())
    assert len([each for each in root.iterdir() if each.is_dir()]) == 5
