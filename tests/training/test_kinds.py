"""A model of one's own is made smaller, whatever its kind, and what comes of it joins the model's family."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
from kinds import HEADS, answer, checkpoint_of, same_weights, tokenizer_of

from qa_backends import catalog
from qa_backends.checkpoints.architectures import architecture
from qa_backends.checkpoints.load import load_model
from qa_backends.checkpoints.manifest import read_manifest
from qa_backends.checkpoints.sources import make_ready
from qa_backends.cli import main
from qa_backends.paths import OWN_QUESTIONS
from qa_backends.progress import UNWATCHED
from qa_backends.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Train = Callable[..., int]


pytestmark = pytest.mark.usefixtures("own_forgotten")


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Train:
    """Runs ``train`` on five articles of the project's own questions, for one pass; gives the exit code."""
    document = json.loads(OWN_QUESTIONS.read_text())
    (tmp_path / "questions.json").write_text(json.dumps({"data": document["data"][:5]}))

    def command(*arguments: str) -> int:
        given = [*arguments, "--data", str(tmp_path / "questions.json"), "--hold-out=1", "--device=cpu"]
        monkeypatch.setattr(sys, "argv", ["qa_backends", "train", *given])
        with pytest.raises(SystemExit) as left:
            main()
        return int(left.value.code or 0)

    return command


@pytest.mark.parametrize("kind", ["roberta", "distilbert"])
@pytest.mark.slow
def test_one_is_pruned_and_distilled_and_stands_beside_the_model_it_was_made_of(
    kind: str, tmp_path: Path, train: Train
) -> None:
    model = checkpoint_of(kind, tmp_path / "mine")
    alone = catalog.adopt(str(model), UNWATCHED)
    assert [name for name, _ in alone.checkpoints] == ["baseline"]
    assert train("prune", "--teacher", str(model), "--out", str(tmp_path / "p"), "--density=0.5", "--passes=1") == 0
    assert train("distil", "--teacher", str(model), "--out", str(tmp_path / "d"), "--passes=2") == 0

    family = catalog.adopt(str(model), UNWATCHED)
    assert family.name == alone.name
    assert [name for name, _ in family.checkpoints] == ["baseline", "distilled", "pruned"]
    pruned, distilled = (make_ready(family.source(name), UNWATCHED) for name in ("pruned", "distilled"))
    whole = read_manifest(make_ready(family.source("baseline"), UNWATCHED)).encoder_parameters
    assert read_manifest(pruned).encoder_parameters <= 0.55 * whole
    blocks = architecture(kind).blocks(load_model(pruned))
    assert all(0 < each.heads <= HEADS and each.up.out_features > 0 for each in blocks)
    assert len(architecture(kind).blocks(load_model(distilled))) == 1, "every second of two layers"

    assert {each.checkpoint for each in catalog.offered(family, "cpu")} == {"baseline", "distilled", "pruned"}
    runtime = Runtime()
    for name in ("baseline", "distilled", *catalog.usual(family)):
        plain = catalog.plain(catalog.resolve(name, family.name)[1])
        assert same_weights(answer(runtime, family, name), answer(runtime, family, plain.name)), name
    assert catalog.usual(family)[-1].startswith("pruned-ort")


def predating(folder: Path, seed: int) -> Path:
    """A model saved before there was a ``tokenizer.json``."""
    model = checkpoint_of("roberta", folder, seed=seed)
    (model / "tokenizer.json").unlink()
    split = json.loads(tokenizer_of("roberta"))["model"]
    (model / "vocab.json").write_text(json.dumps(split["vocab"]), encoding="utf-8")
    merges = [each if isinstance(each, str) else " ".join(each) for each in split["merges"]]
    (model / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n", encoding="utf-8")
    return model


def test_a_model_that_predates_tokenizer_json_is_made_smaller_too(tmp_path: Path, train: Train) -> None:
    model = predating(tmp_path / "old", seed=6)
    assert train("prune", "--teacher", str(model), "--out", str(tmp_path / "p"), "--density=0.5", "--passes=1") == 0
    family = catalog.adopt(str(model), UNWATCHED)
    assert [name for name, _ in family.checkpoints] == ["baseline", "pruned"]


def test_models_that_predate_tokenizer_json_are_averaged_too(tmp_path: Path, train: Train) -> None:
    models = [predating(tmp_path / str(seed), seed) for seed in (6, 7)]
    assert train("soup", *map(str, models), "--out", str(tmp_path / "soup")) == 0
    words = json.loads((tmp_path / "soup" / "tokenizer.json").read_text())["model"]["vocab"]
    assert words == json.loads((models[0] / "vocab.json").read_text())


def test_a_kind_whose_layers_are_not_known_is_not_made_smaller(
    tmp_path: Path, train: Train, capsys: pytest.CaptureFixture[str]
) -> None:
    model = checkpoint_of("albert", tmp_path / "mine")
    for command in ("prune", "distil"):
        assert train(command, "--teacher", str(model), "--out", str(tmp_path / command)) == 2
        assert "'albert' are not made smaller here, but these: bert, distilbert" in " ".join(
            capsys.readouterr().err.split()
        )
