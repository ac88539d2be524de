"""Checkpoints from a stand-in Hub: what they become, which commit they say they are of, and what cannot be one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from helpers import BASELINE, QUESTION, TEXT, random_bert
from stand_in_hub import StandInHub, stand_in_hub

from qa_backends import catalog
from qa_backends.artefacts.steps import chain_of
from qa_backends.checkpoints import sources
from qa_backends.checkpoints.architectures import architecture_of
from qa_backends.checkpoints.files import WEIGHTS
from qa_backends.checkpoints.load import load_model, save_model
from qa_backends.checkpoints.manifest import read_manifest
from qa_backends.checkpoints.sources import Source
from qa_backends.contract import Query
from qa_backends.engines.torch_compile import TorchCompile
from qa_backends.errors import ArtefactError, BackendUnavailable
from qa_backends.progress import UNWATCHED, Cancelled, Progress
from qa_backends.reader.tokens import SubwordTokenizer
from qa_backends.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGE = catalog.family("bert-large")


def prune_as_published(folder: Path) -> None:
    """As such checkpoints are published: heads are removed, FFN columns zeroed but still there."""
    model = load_model(folder)
    model.config.pruned_heads = {0: [0, 2]}
    with torch.no_grad():
        for block, used in zip(architecture_of(model.config).blocks(model), (10, 20), strict=True):
            block.remove({0, 2} if used == 10 else set())
            block.up.weight[used:] = 0
            block.up.bias[used:] = 0
            block.down.weight[:, used:] = 0
    save_model(model, folder, tokenizer_from=folder, dtype=torch.float32)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandInHub]:
    """A Hub with small random models under the names of the family's large ones."""
    folder = tmp_path_factory.mktemp("hub")
    with stand_in_hub(folder) as hub:
        for name, source in LARGE.checkpoints:
            checkpoint = random_bert(folder / name, seed=1)
            (checkpoint / "tokenizer.json").unlink()  # these repositories hold only the older vocab.txt
            if name == "pruned":
                prune_as_published(checkpoint)
            hub.publish(str(source.repository), checkpoint, commit=source.revision or "")
        yield hub


@pytest.fixture(scope="module")
def folders(hub: StandInHub) -> dict[str, Path]:
    return {name: sources.make_ready(source, UNWATCHED) for name, source in LARGE.checkpoints}


@pytest.mark.slow
def test_every_backend_of_the_family_answers(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """But those whose answers must stay their parent's: random weights have none worth keeping, and are refused."""
    monkeypatch.setattr(TorchCompile, "devices", ("cuda",))  # which compiles whatever PyTorch runs, in a minute
    offered = catalog.offered(LARGE, "cpu")
    kept = [each for each in offered if not any(step.least_agreement for step in chain_of(each.artefact))]
    runtime, spans = Runtime(), {}
    with runtime.turn("cpu") as turn:
        prepared = turn.prepare(LARGE, Query(QUESTION, TEXT))
        for backend in (each for each in kept if not catalog.unavailable(each, "cpu")):
            spans[backend.name] = turn.answer(LARGE, backend, prepared).answer.span
    assert offered == [each for each in catalog.BACKENDS if "cpu" in each.runs_on and LARGE.has(each.checkpoint)]
    assert spans["pruned"] == spans["pruned-ort"] == spans["pruned-ort-fused"] == spans["pruned-ov"]


def test_empty_columns_are_packed_away(folders: dict[str, Path]) -> None:
    model = load_model(folders["pruned"])
    blocks = architecture_of(model.config).blocks(model)
    assert model.config.intermediate_sizes == [10, 20]
    assert [block.heads for block in blocks] == [2, 4]
    manifest = read_manifest(folders["pruned"])
    assert manifest.step == "pack"
    assert manifest.largest_logit_difference is not None and manifest.largest_logit_difference <= 1e-5
    assert (folders["pruned"] / "tokenizer.json").is_file(), "made from vocab.txt"


def test_a_packed_checkpoint_says_which_commit_it_is_of(hub: StandInHub, folders: dict[str, Path]) -> None:
    for name, source in LARGE.checkpoints:
        assert source.repository is not None
        commit = source.revision or hub.commit_of(source.repository, "main")
        assert read_manifest(folders[name]).settings == {"source": source.repository, "revision": commit}


def test_the_tokenizer_made_from_a_vocabulary_is_the_same(folders: dict[str, Path]) -> None:
    made, shipped = (SubwordTokenizer(each) for each in (folders["baseline"], BASELINE))
    text = "Zoë's naïve café!"
    assert made.encode(text).ids.tolist() == shipped.encode(text).ids.tolist()
    assert made.frame == shipped.frame


def test_what_is_ready_is_found_without_asking_the_hub(hub: StandInHub, folders: dict[str, Path]) -> None:
    hub.asked.clear()
    for name, source in LARGE.checkpoints:
        assert sources.ready(source) == sources.make_ready(source, UNWATCHED) == folders[name]
        assert sources.weights_hash(source) == read_manifest(folders[name]).files[WEIGHTS]
    assert hub.asked == []


def test_a_checkpoint_that_was_never_fetched_is_not_ready_and_has_no_hash(hub: StandInHub) -> None:
    hub.asked.clear()
    source = Source(repository="somebody/something")
    assert sources.ready(source) is None
    assert sources.weights_hash(source) is None
    assert hub.asked == []


def test_packing_that_is_stopped_leaves_nothing_half_done(
    hub: StandInHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QA_CACHE", str(tmp_path))
    source, said = LARGE.source("baseline"), list[str]()
    with pytest.raises(Cancelled):
        sources.make_ready(source, Progress(said.append, stopped=lambda: any("packing" in each for each in said)))
    assert sources.ready(source) is None
    assert not list(tmp_path.rglob("model.safetensors"))


def test_a_checkpoint_that_the_hub_does_not_hold_is_reported_for_its_backend_alone(
    hub: StandInHub, folders: dict[str, Path]
) -> None:
    family = catalog.Family(
        "half", "Half", (*LARGE.checkpoints[:1], ("pruned", Source(repository="nobody/nothing"))), LARGE.settings
    )
    runtime = Runtime()
    baseline, pruned = (catalog.backend(name) for name in ("baseline", "pruned"))
    runtime.download(family, [baseline, pruned], UNWATCHED)
    with runtime.turn("cpu") as turn:
        prepared = turn.prepare(family, Query(QUESTION, TEXT))
        assert turn.answer(family, baseline, prepared).backend == "half/baseline"
        with pytest.raises(BackendUnavailable, match="has no model nobody/nothing"):
            turn.answer(family, pruned, prepared)


@pytest.mark.parametrize("folder", [None, Path("/nowhere")])
def test_a_folder_without_weights_is_no_checkpoint(folder: Path | None) -> None:
    source = Source(folder=folder)
    assert sources.weights_hash(Source(folder=Path("/nowhere"))) is None
    with pytest.raises(ArtefactError, match=r"holds no model\.safetensors.*Name a checkpoint's folder"):
        sources.make_ready(source, UNWATCHED)
