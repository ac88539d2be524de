"""Checkpoints from the Hub, the download replaced by a folder: what they become, what is said when none comes."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

import huggingface_hub
import pytest
import torch
from helpers import BASELINE, QUESTION, TEXT, random_bert
from huggingface_hub.errors import LocalEntryNotFoundError

from qa_backends import catalog
from qa_backends.artefacts import hub as hub_module
from qa_backends.artefacts.checkpoint import load_model, save_model
from qa_backends.artefacts.hub import fetch
from qa_backends.artefacts.manifest import read_manifest
from qa_backends.contract import Query
from qa_backends.errors import BackendUnavailable
from qa_backends.measure.ask import ask
from qa_backends.runtime import Runtime

if TYPE_CHECKING:
    from pathlib import Path

LARGE = catalog.family("bert-large")
ROWS = list(catalog.BACKENDS)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Hub with small random stand-ins; the pruned one as published: heads removed, FFN columns zeroed but there."""
    root = tmp_path / "hub"
    for name, source in LARGE.checkpoints.items():
        assert source.repository is not None
        folder = random_bert(root / source.repository, seed=1)
        (folder / "tokenizer.json").unlink()  # these repositories hold only the older vocab.txt
        if name == "pruned":
            model = load_model(folder)
            model.bert.encoder.layer[0].attention.prune_heads({0, 2})
            model.config.pruned_heads = {0: [0, 2]}
            with torch.no_grad():
                for layer, used in zip(model.bert.encoder.layer, (10, 20), strict=True):
                    layer.intermediate.dense.weight[used:] = 0
                    layer.intermediate.dense.bias[used:] = 0
                    layer.output.dense.weight[:, used:] = 0
            save_model(model, folder, tokenizer_from=folder, dtype=torch.float32)

    def download(repository: str, **_options: object) -> str:
        if not (root / repository).is_dir():
            raise LocalEntryNotFoundError("offline")
        return str(root / repository)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    monkeypatch.setenv("QA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(hub_module, "_fetched", {})
    return root


def test_every_backend_of_the_family_answers(hub: Path) -> None:
    found = ask(Runtime(), LARGE, ROWS, Query(QUESTION, TEXT), "cpu", seconds=0)
    assert [each.error for each in found.outcomes] == [None] * len(ROWS)
    spans = {each.row.name: each.reading.answer.span for each in found.outcomes if each.reading}
    assert spans["pruned"] == spans["pruned-ort"] == spans["pruned-ort-fused"]


def test_empty_columns_are_packed_away(hub: Path) -> None:
    folder = catalog.checkpoint_folder(LARGE, "pruned", lambda _: None)
    model = load_model(folder)
    assert model.config.intermediate_sizes == [10, 20]
    assert [layer.attention.self.num_attention_heads for layer in model.bert.encoder.layer] == [2, 4]
    manifest = read_manifest(folder)
    assert manifest.step == "pack"
    assert manifest.largest_logit_difference is not None and manifest.largest_logit_difference <= 1e-5
    assert (folder / "tokenizer.json").is_file(), "made from vocab.txt"


def test_the_tokenizer_made_from_a_vocabulary_is_the_same(hub: Path) -> None:
    from qa_backends.reader.tokens import WordPieces

    made = WordPieces(catalog.checkpoint_folder(LARGE, "baseline", lambda _: None)).encode("Zoë's naïve café!")
    assert made.ids.tolist() == WordPieces(BASELINE).encode("Zoë's naïve café!").ids.tolist()


def test_an_unreachable_hub_gets_a_sentence_and_a_way_out(hub: Path) -> None:
    shutil.rmtree(hub)
    with pytest.raises(BackendUnavailable, match=r"could not be reached.*Connect to the internet.*minilm"):
        fetch("somebody/something", None, lambda _: None)


def test_one_checkpoint_missing_leaves_the_other_backends_answers(hub: Path) -> None:
    assert LARGE.checkpoints["pruned"].repository is not None
    shutil.rmtree(hub / LARGE.checkpoints["pruned"].repository)
    found = ask(Runtime(), LARGE, ROWS[:2], Query(QUESTION, TEXT), "cpu", seconds=0)
    assert found.outcomes[0].reading is not None
    assert "could not be reached" in str(found.outcomes[1].error)


def test_a_download_tells_how_far_it_is(hub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blobs = tmp_path / "models--somebody--something" / "blobs"
    blobs.mkdir(parents=True)

    def download(_repository: str, **_options: object) -> str:
        (blobs / "weights.incomplete").write_bytes(bytes(7_000_000))
        time.sleep(0.1)
        return str(hub / str(LARGE.checkpoints["pruned"].repository))

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(hub_module, "TELL_EVERY_S", 0.01)
    said: list[str] = []
    fetch("somebody/something", None, said.append)
    assert said[-1] == "downloading somebody/something: 7 MB so far …"


def test_pickled_weights_are_refused(hub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = LARGE.checkpoints["baseline"].repository
    assert repository is not None
    (hub / repository / "model.safetensors").rename(hub / repository / "pytorch_model.bin")

    class Api:
        def get_repo_discussions(self, _repository: str, **_options: object) -> list[object]:
            return []

    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    with pytest.raises(BackendUnavailable, match="no safetensors"):
        fetch(repository, None, lambda _: None)


def test_a_safetensors_copy_is_taken_from_the_hubs_own_converter_only(
    hub: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = LARGE.checkpoints["baseline"].repository
    converted = hub / str(LARGE.checkpoints["pruned"].repository)
    assert repository is not None
    (hub / repository / "model.safetensors").unlink()
    asked: dict[str, object] = {}

    class Api:
        def get_repo_discussions(self, _repository: str, **options: object) -> list[object]:
            asked.update(options)
            return [type("Request", (), {"git_reference": "refs/pr/1"})()]

    def download(name: str, revision: str | None = None, **_options: object) -> str:
        return str(converted if revision == "refs/pr/1" else hub / name)

    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert fetch(repository, None, lambda _: None) == converted
    assert asked == {"author": "SFconvertbot", "discussion_type": "pull_request"}
    assert fetch(repository, None, lambda _: None) == converted, "found again without asking"
