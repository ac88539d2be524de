"""A model of one's own from the Hub: what its card reports, what is refused, and what a visitor may fetch."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from filelock import FileLock
from helpers import random_bert
from kinds import answer, checkpoint_of, same_weights
from safetensors.numpy import save
from stand_in_hub import CHUNK, StandInHub, stand_in_hub

from qa_backends import catalog
from qa_backends.checkpoints import hub as hub_module
from qa_backends.checkpoints.files import WEIGHTS
from qa_backends.errors import BackendUnavailable, InputError
from qa_backends.progress import UNWATCHED, Cancelled, Progress
from qa_backends.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Iterator


CARD = """---
language: en
datasets:
- squad_v2
model-index:
- name: somebody/mine
  results:
  - task:
      type: question-answering
      name: Question Answering
    dataset:
      type: squad_v2
      name: squad_v2
    metrics:
    - type: exact_match
      value: 70.0
    - type: f1
      value: 73.25
---
# Mine
"""


NESTED = [f"x{level}: &x{level} [{', '.join([f'*x{level - 1}' if level else 'a'] * 9)}]" for level in range(11)]
BILLIONS = CARD.replace("language: en", "\n".join(NESTED)).replace("type: squad_v2", "type: *x10")
"""A data set whose name would be some billions of words."""

pytestmark = pytest.mark.usefixtures("own_forgotten")


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[StandInHub]:
    with stand_in_hub(tmp_path) as hub:
        yield hub


def test_a_repository_becomes_a_family_with_what_its_card_reports(hub: StandInHub, tmp_path: Path) -> None:
    folder = checkpoint_of("roberta", tmp_path / "published")
    (folder / "README.md").write_text(CARD, encoding="utf-8")
    commit = hub.publish("somebody/mine", folder)
    family = catalog.adopt("somebody/mine", UNWATCHED, anonymous=True)
    assert family.name == f"mine-{commit[:12]}"
    assert family.summary == (
        f"English; from the Hugging Face Hub, commit {commit[:8]}; published F1 73.2 on SQuAD v2 (baseline)"
    )
    said = answer(Runtime(), family)
    assert same_weights(said, answer(Runtime(), catalog.adopt(str(folder), UNWATCHED), "baseline"))
    hub.publish("somebody/mine", checkpoint_of("roberta", tmp_path / "other", seed=9))
    again = catalog.adopt("somebody/mine", UNWATCHED, anonymous=True)
    assert again == family, "the commit that came first is kept to"
    hub.asked.clear()
    assert answer(Runtime(), family) == said
    assert hub.asked == []


def test_a_card_of_the_first_squad_makes_a_family_that_always_answers(tmp_path: Path) -> None:
    folder = random_bert(tmp_path / "mine")
    (folder / "README.md").write_text(CARD.replace("squad_v2", "rajpurkar/squad"), encoding="utf-8")
    family = catalog.adopt(str(folder), UNWATCHED)
    assert family.settings.always_answers
    assert "on SQuAD v1.1" in family.summary


@pytest.mark.parametrize(
    "card",
    [
        "---\n: [\n---\n",
        "no card",
        "---\nlanguage: {a: 1}\nmodel-index: 3\n---\n",
        "---\n- a\n---",
        BILLIONS,
        "---\neval_results: [x]\n---\n",
        "---\nlanguage: 5\n---\n",
        "---\ndatasets: true\n---\n",
    ],
)
def test_a_card_that_cannot_be_read_is_no_reason_to_refuse(card: str, tmp_path: Path) -> None:
    folder = random_bert(tmp_path / "mine")
    (folder / "README.md").write_text(card, encoding="utf-8")
    assert catalog.adopt(str(folder), UNWATCHED).published == ()


def test_more_than_the_stated_limit_is_not_downloaded(hub: StandInHub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.publish("somebody/large", {"config.json": b"{}", WEIGHTS: b"x" * 2_000_000})
    monkeypatch.setenv("QA_DOWNLOAD_GB", "0.001")
    for anonymous in (False, True):
        with pytest.raises(
            BackendUnavailable, match=r"takes 0\.0 GB, .* 0\.001 GB.* raise the limit: QA_DOWNLOAD_GB\."
        ):
            catalog.adopt("somebody/large", UNWATCHED, anonymous=anonymous)
    assert not any(WEIGHTS in each for each in hub.asked)


def test_where_the_disks_bound_leaves_no_room_visitors_bring_nothing(
    hub: StandInHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QA_CACHE_GB", "0.001")
    hub.publish("somebody/mine", checkpoint_of("roberta", tmp_path / "published"))
    with pytest.raises(BackendUnavailable, match=r"downloads are limited to .* raise the limit: QA_CACHE_GB\."):
        catalog.adopt("somebody/mine", UNWATCHED, anonymous=True)
    answer(Runtime(), catalog.adopt("somebody/mine", UNWATCHED))
    with pytest.raises(InputError, match="no room for another model now"):
        catalog.adopt("somebody/other", UNWATCHED, anonymous=True)


@pytest.fixture
def held_half_way(hub: StandInHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """A download of somebody/large tells that it goes on, and does not come to its end."""
    monkeypatch.setattr(hub_module, "TELL_EVERY_S", 0.05)
    hub.publish("somebody/large", {"config.json": b"{}", WEIGHTS: bytes(CHUNK + 5_000_000)})
    hub.held.add(WEIGHTS)


@pytest.mark.usefixtures("held_half_way")
def test_what_others_are_fetching_is_left_when_a_visitors_download_ends(tmp_path: Path) -> None:
    cached = tmp_path / "downloaded"
    blobs, locks = (cached / "models--somebody--large" / "blobs", cached / ".locks" / "models--somebody--large")
    for each in (blobs, locks):
        each.mkdir(parents=True)
    before, meanwhile, nobodys = (blobs / f"{name}.incomplete" for name in ("before", "meanwhile", "nobodys"))
    before.touch()

    def others_begin(said: str) -> None:
        if said.startswith("downloading"):
            meanwhile.touch()
            nobodys.touch()

    watched = Progress(others_begin, stopped=meanwhile.exists)
    with FileLock(locks / "meanwhile.lock"), pytest.raises(Cancelled):
        catalog.adopt("somebody/large", watched, anonymous=True)
    assert {each.name for each in blobs.glob("*.incomplete")} == {before.name, meanwhile.name}


@pytest.fixture
def token(hub: StandInHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine's own for the Hub, which its client sends unless told not to."""
    monkeypatch.setenv("HF_TOKEN", "hf_ours")
    monkeypatch.setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "0")


@pytest.mark.usefixtures("token")
def test_a_visitors_download_never_uses_this_machines_token(hub: StandInHub, tmp_path: Path) -> None:
    hub.publish("somebody/mine", checkpoint_of("roberta", tmp_path / "published"))
    catalog.adopt("somebody/mine", UNWATCHED, anonymous=True)
    assert hub.tokens == {None}
    hub.publish("somebody/other", checkpoint_of("roberta", tmp_path / "published"))
    catalog.adopt("somebody/other", UNWATCHED)
    assert "Bearer hf_ours" in hub.tokens, "its owner's own does"


@pytest.mark.usefixtures("token")
def test_what_the_owner_fetched_with_a_token_is_no_visitors(hub: StandInHub, tmp_path: Path) -> None:
    hub.publish("somebody/private", checkpoint_of("roberta", tmp_path / "published"))
    hub.private.add("somebody/private")
    catalog.adopt("somebody/private", UNWATCHED)
    with pytest.raises(BackendUnavailable, match="shows it to nobody without leave"):
        catalog.adopt("somebody/private", UNWATCHED, anonymous=True)


@pytest.mark.usefixtures("held_half_way")
def test_a_stopped_download_of_a_visitor_leaves_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    watched = Progress(said.append, stopped=lambda: any("10 MB" in each for each in said))
    with pytest.raises(Cancelled):
        catalog.adopt("somebody/large", watched, anonymous=True)
    assert sum(each.stat().st_size for each in (tmp_path / "downloaded").rglob("*") if each.is_file()) < 1_000_000


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("gpt2", "of the kind 'gpt2', which cannot be read. Choose one of the kinds albert, bert, "),
        ("bert", "was not taught to find answers: it has no output layer 'qa_outputs.weight'. Choose one that was"),
    ],
)
def test_what_could_not_be_asked_is_refused_before_its_weights_come(
    hub: StandInHub, tmp_path: Path, kind: str, said: str
) -> None:
    weights = save({"cls.predictions.bias": np.zeros(1_000_000, np.float32)})
    hub.publish("somebody/other", {"config.json": json.dumps({"model_type": kind}).encode(), WEIGHTS: weights})
    with pytest.raises(BackendUnavailable, match=re.escape(said)):
        catalog.adopt("somebody/other", UNWATCHED)
    assert not list((tmp_path / "downloaded").rglob(WEIGHTS))


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"config.json": b"{}", f"{WEIGHTS}.index.json": b"{}"}, "split over several files"),
        ({"config.json": b"{}", "pytorch_model.bin": b"x"}, "no safetensors weights, and pickled ones"),
    ],
)
def test_a_repository_that_cannot_be_read_says_why(hub: StandInHub, files: dict[str, bytes], said: str) -> None:
    hub.publish("somebody/mine", files)
    with pytest.raises(BackendUnavailable, match=said):
        catalog.adopt("somebody/mine", UNWATCHED)
    with pytest.raises(BackendUnavailable, match="has no model somebody/nothing"):
        catalog.adopt("somebody/nothing", UNWATCHED)
