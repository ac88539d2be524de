"""Downloads, by the real process from a stand-in Hub: told, stopped, gone on with, kept to one commit, refused."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from stand_in_hub import CHUNK, StandInHub, stand_in_hub

from qa_backends.checkpoints import hub as hub_module
from qa_backends.checkpoints.hub import fetch, fetched
from qa_backends.errors import BackendUnavailable
from qa_backends.progress import UNWATCHED, Cancelled, Progress

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = "somebody/something"
SMALL = {"config.json": b"{}", "tokenizer.json": b"{}"}
SAFE = SMALL | {"model.safetensors": b"safe weights"}
PICKLED = SMALL | {"pytorch_model.bin": b"pickled weights"}
LARGE = SMALL | {"model.safetensors": bytes(range(256)) * (CHUNK // 256 + 4_000)}


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[StandInHub]:
    with stand_in_hub(tmp_path) as hub:
        yield hub


def weights(found: hub_module.Fetched) -> bytes:
    return (Path(found.folder) / "model.safetensors").read_bytes()


def downloads() -> list[psutil.Process]:
    """Processes of ours that download."""
    return [each for each in psutil.Process().children() if "qa_backends.checkpoints.download" in each.cmdline()]


def test_what_a_checkpoint_needs_is_fetched_once_and_nothing_else_is(hub: StandInHub) -> None:
    commit = hub.publish(REPOSITORY, SAFE | PICKLED)
    assert fetched(REPOSITORY, None) is None
    found = fetch(REPOSITORY, None, UNWATCHED)
    assert found.revision == commit
    assert {each.name for each in Path(found.folder).iterdir()} == set(SAFE)
    assert weights(found) == b"safe weights"
    hub.asked.clear()
    assert fetch(REPOSITORY, None, UNWATCHED) == fetched(REPOSITORY, None) == found
    assert hub.asked == []


def test_the_first_commit_is_kept_to_though_the_repository_moves_on_and_the_files_are_deleted(hub: StandInHub) -> None:
    hub.publish(REPOSITORY, SAFE)
    first = fetch(REPOSITORY, None, UNWATCHED)
    hub.publish(REPOSITORY, SAFE | {"model.safetensors": b"other weights"})
    assert fetch(REPOSITORY, None, UNWATCHED) == first
    for file in Path(first.folder).iterdir():
        file.unlink()
    assert fetched(REPOSITORY, None) is None
    again = fetch(REPOSITORY, None, UNWATCHED)
    assert again.revision == first.revision
    assert weights(again) == b"safe weights"


def test_half_a_checkpoint_that_others_left_is_kept_to_only_while_the_hub_is_away(
    hub: StandInHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = hub.publish(REPOSITORY, SAFE)
    shared = tmp_path / "downloaded" / "models--somebody--something"
    for file, content in {
        "refs/main": commit.encode(),
        f"snapshots/{commit}/config.json": SAFE["config.json"],
        f"snapshots/{commit}/model.safetensors": SAFE["model.safetensors"],
    }.items():
        (shared / file).parent.mkdir(parents=True, exist_ok=True)
        (shared / file).write_bytes(content)
    with monkeypatch.context() as away:
        away.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
        half = fetch(REPOSITORY, None, UNWATCHED)
    assert half.revision == commit and not (Path(half.folder) / "tokenizer.json").is_file()
    whole = fetch(REPOSITORY, None, UNWATCHED)
    assert whole.revision == commit and (Path(whole.folder) / "tokenizer.json").is_file()


def test_a_bound_that_nobody_names_is_the_one_of_downloads(hub: StandInHub) -> None:
    hub.publish(REPOSITORY, SAFE)
    with pytest.raises(BackendUnavailable, match="raise the limit: QA_DOWNLOAD_GB"):
        fetch(REPOSITORY, None, UNWATCHED, most_bytes=1)


def test_a_pinned_revision_is_fetched_whatever_the_branch_holds(hub: StandInHub) -> None:
    pinned = hub.publish(REPOSITORY, SAFE)
    hub.publish(REPOSITORY, SAFE | {"model.safetensors": b"other weights"})
    found = fetch(REPOSITORY, pinned, UNWATCHED)
    assert found.revision == pinned
    assert weights(found) == b"safe weights"


def test_a_stopped_download_ends_at_once_and_the_next_goes_on_from_there(
    hub: StandInHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_module, "TELL_EVERY_S", 0.05)
    hub.publish(REPOSITORY, LARGE)
    hub.held.add("model.safetensors")
    said: list[str] = []
    enough = f"downloading {REPOSITORY}: 10 MB so far …"

    with pytest.raises(Cancelled):
        fetch(REPOSITORY, None, Progress(said.append, stopped=lambda: enough in said))
    assert said[0] == f"looking for {REPOSITORY} …"
    assert said.index(enough) >= len(said) - 2, "it stops as soon as it is asked to"
    assert downloads() == []
    assert fetched(REPOSITORY, None) is None

    hub.asked.clear()
    found = fetch(REPOSITORY, None, UNWATCHED)  # what is left is not held: the file is not asked for from its beginning
    assert weights(found) == LARGE["model.safetensors"]


def test_a_download_that_is_stopped_before_the_hub_answers_ends_too(hub: StandInHub) -> None:
    hub.publish(REPOSITORY, LARGE)
    hub.held.add("model.safetensors")
    began = time.monotonic()
    with pytest.raises(Cancelled):
        fetch(REPOSITORY, None, Progress(stopped=lambda: time.monotonic() - began > 0.3))
    assert time.monotonic() - began < 5
    assert downloads() == []


def test_a_download_that_talks_a_lot_is_listened_to_and_not_held_up(
    hub: StandInHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.publish(REPOSITORY, SAFE)
    monkeypatch.setenv("PYTHONVERBOSE", "1")  # a line for each module: more than a pipe holds
    began = time.monotonic()
    found = fetch(REPOSITORY, None, Progress(stopped=lambda: time.monotonic() - began > 30))
    assert weights(found) == b"safe weights"


def test_pickled_weights_are_refused(hub: StandInHub) -> None:
    pinned = hub.publish(REPOSITORY, PICKLED)
    for revision in (None, pinned):
        with pytest.raises(BackendUnavailable, match=r"holds no safetensors weights, and pickled .*save_pretrained"):
            fetch(REPOSITORY, revision, UNWATCHED)
    assert not [each for each in hub.asked if "pytorch_model.bin" in each]


def test_a_safetensors_copy_is_taken_from_the_hubs_own_converter_only(hub: StandInHub) -> None:
    hub.publish(REPOSITORY, PICKLED)
    hub.offer(REPOSITORY, SAFE | {"model.safetensors": b"anybody's"}, author="anybody")
    with pytest.raises(BackendUnavailable, match="no safetensors"):
        fetch(REPOSITORY, None, UNWATCHED)
    converted = hub.offer(REPOSITORY, SAFE, author="SFconvertbot")
    hub.offer(REPOSITORY, SAFE | {"model.safetensors": b"anybody's"}, author="sfconvertbot2")
    found = fetch(REPOSITORY, None, UNWATCHED)
    assert found.revision == converted
    assert weights(found) == b"safe weights"
    assert not [each for each in hub.asked if "refs%2Fpr%2F1" in each or "refs%2Fpr%2F3" in each]


def test_an_unreachable_hub_gets_a_sentence_and_a_way_out(hub: StandInHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(BackendUnavailable, match=r"could not be reached.*Connect to the internet.*minilm") as caught:
        fetch(REPOSITORY, None, UNWATCHED)
    assert REPOSITORY in caught.value.reason
    assert "LocalEntryNotFoundError" in str(caught.value.__cause__)


def test_what_went_wrong_here_is_not_blamed_on_the_hub(
    hub: StandInHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BackendUnavailable, match="There is no folder runs/mistyped/model, and no model of the Hugging"):
        fetch("runs/mistyped/model", None, UNWATCHED)
    hub.publish(REPOSITORY, SAFE)
    (tmp_path / "no-folder").write_text("")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "no-folder"))
    with pytest.raises(BackendUnavailable, match=f"{REPOSITORY} could not be fetched: .*Error: .* Mend that"):
        fetch(REPOSITORY, None, UNWATCHED)


def test_a_hub_that_goes_away_in_the_middle_is_not_taken_for_one_without_weights(
    hub: StandInHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_module, "TELL_EVERY_S", 0.05)
    pinned = hub.publish(REPOSITORY, LARGE)
    hub.held.add("model.safetensors")
    said: list[str] = []
    with pytest.raises(Cancelled):
        fetch(REPOSITORY, pinned, Progress(said.append, stopped=lambda: any("10 MB" in each for each in said)))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(BackendUnavailable, match="could not be reached"):
        fetch(REPOSITORY, pinned, UNWATCHED)


def test_a_note_that_cannot_be_read_is_as_good_as_none(hub: StandInHub, tmp_path: Path) -> None:
    hub.publish(REPOSITORY, SAFE)
    found = fetch(REPOSITORY, None, UNWATCHED)
    notes = list((tmp_path / "cache").rglob("*.json"))
    assert len(notes) == 2, "by its commit, and as what came first"
    for note in notes:
        assert json.loads(note.read_text()) == {
            "folder": found.folder,
            "revision": found.revision,
            "brought": True,
            "public": False,
        }
        note.write_text("half a li")
    assert fetched(REPOSITORY, None) is None
    assert fetch(REPOSITORY, None, UNWATCHED).folder == found.folder
