"""Training while it computes as INT8 does: it rounds what INT8 rounds, and what comes of it loses less there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnxruntime
import pytest
import torch
from helpers import BASELINE, random_bert
from kinds import checkpoint_of

from qa_backends import catalog
from qa_backends.artefacts.graph import FILE
from qa_backends.artefacts.steps import Making, onnx_int8
from qa_backends.artefacts.texts import queries_of, reader_of
from qa_backends.checkpoints.load import load_model
from qa_backends.errors import ArtefactError, InputError
from qa_backends.paths import CALIBRATION, OWN_QUESTIONS
from qa_backends.progress import UNWATCHED
from qa_backends.squad import read_squad
from qa_backends.training.distil import divergence
from qa_backends.training.material import Material
from qa_backends.training.model import trainable
from qa_backends.training.quantise import calibration_of, quantise
from qa_backends.training.rounded import round_products
from qa_backends.training.settings import Changes, RunSettings
from qa_backends.training.teaching import Teaching

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from qa_backends.runtime import Runtime
    from qa_backends.training.data import Batch
    from qa_backends.training.loop import StepReport

PRUNED = BASELINE.parent / "pruned"
QUESTIONS = read_squad(OWN_QUESTIONS)[:24]


def settings(folder: Path, **chosen: object) -> RunSettings:
    wanted = {"passes": 8, "learning_rate": 1e-4, "max_tokens": 1024, "seed": 0, "device": "cpu"}
    return RunSettings(folder, **wanted | chosen)


def trained(
    start: Path, folder: Path, on_step: Callable[[StepReport], object] = lambda _step: None, **chosen: object
) -> Path:
    return quantise(QUESTIONS, start=start, teaching=Teaching(start), run=settings(folder, **chosen), on_step=on_step)


def rounded_logits(checkpoint: Path, batch: Batch) -> torch.Tensor:
    model = trainable(checkpoint, "cpu")
    round_products(model, calibration_of(checkpoint, model))
    with torch.no_grad():
        return torch.stack(model(**batch.inputs).to_tuple()[:2])


def test_it_loses_less_by_rounding_and_is_a_checkpoint_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qa_backends.training.distil.LABEL_SHARE", 0.0)  # of which a random teacher knows nothing
    start = random_bert(tmp_path / "start", columns=96)
    steps: list[StepReport] = []
    made = trained(start, tmp_path / "run", steps.append)
    before, after = load_model(start), load_model(made)
    assert {name: each.shape for name, each in after.state_dict().items()} == {
        name: each.shape for name, each in before.state_dict().items()
    }
    assert len(steps) == steps[0].of
    batch = next(Material(QUESTIONS, start, settings(tmp_path), steps.append).batches(0, 1))
    with torch.no_grad():
        right = torch.stack(before(**batch.inputs).to_tuple()[:2])
    padding = batch.inputs["attention_mask"] == 0
    lost = [divergence(rounded_logits(each, batch)[0], right[0], padding).mean().item() for each in (start, made)]
    assert 0 < lost[1] < 0.8 * lost[0], lost


@pytest.mark.usefixtures("few_windows")
def test_what_rounds_is_compiled_whole(tmp_path: Path) -> None:
    """In pieces, each layer is compiled for itself, until torch gives up on most of them, and a step takes longer."""
    start = random_bert(tmp_path / "start")
    model = trainable(start, "cpu")
    round_products(model, calibration_of(start, model))
    batch = next(Material(QUESTIONS, start, settings(tmp_path), [].append).batches(0, 1))
    with torch.compiler.set_stance("default"):
        torch.compile(model, backend="eager", dynamic=True, fullgraph=True)(**batch.inputs)


@pytest.mark.slow
def test_it_rounds_of_products_with_weights_what_int8_rounds(
    runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """INT8 is made without rounding queries and keys, which training leaves as they are. The rest is that a value
    between two steps goes to the one or to the other where sums differ by a little."""
    windows = reader_of(PRUNED).prepare_all(queries_of(CALIBRATION)[:12]).windows
    minilm = catalog.family("minilm")
    parent = runtime.make_ready(minilm, catalog.backend("pruned-ort"), "cpu", UNWATCHED)
    monkeypatch.setattr(onnx_int8, "attention_products", lambda _model: [])
    onnx_int8.make(Making(parent, PRUNED, tmp_path, UNWATCHED))
    session = onnxruntime.InferenceSession(tmp_path / FILE, providers=["CPUExecutionProvider"])
    (eight,) = session.run(["start_logits"], windows.inputs([each.name for each in session.get_inputs()]))
    with runtime.turn("cpu") as turn:
        plain = turn.logits(minilm, catalog.backend("pruned"), windows).start
    model = trainable(PRUNED, "cpu")
    round_products(model, calibration_of(PRUNED, model))
    inputs = windows.inputs(["input_ids", "attention_mask", "token_type_ids"])
    with torch.no_grad():
        own = model(**{name: torch.from_numpy(each) for name, each in inputs.items()}).start_logits.numpy()
    real = windows.attention_mask == 1
    apart = [float(np.square(each[real] - eight[real]).mean()) for each in (own, plain)]
    assert apart[0] < 0.5 * apart[1], apart


@pytest.mark.usefixtures("few_windows")
def test_a_stopped_run_gives_the_weights_of_an_unstopped_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped(Exception):
        pass

    def stop_at_two(step: StepReport) -> None:
        if step.number == 2:
            raise Stopped

    start = random_bert(tmp_path / "start")
    whole = trained(start, tmp_path / "whole", passes=1)
    monkeypatch.setattr("qa_backends.training.loop.SAVE_EVERY_S", -1.0)
    with pytest.raises(Stopped):
        trained(start, tmp_path / "stopped", stop_at_two, passes=1)
    again = trained(start, tmp_path / "stopped", passes=1)
    for name, each in load_model(whole).state_dict().items():
        torch.testing.assert_close(load_model(again).state_dict()[name], each, msg=name)


def test_what_cannot_be_trained_is_refused_before_a_folder_is_taken(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match="Name a folder that holds a checkpoint"):
        trained(tmp_path / "nowhere", tmp_path / "run")
    start, other = random_bert(tmp_path / "start"), random_bert(tmp_path / "other")
    (other / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match="do not have the same tokenizer"):
        quantise(QUESTIONS, start=start, teaching=Teaching(other), run=settings(tmp_path / "run"), on_step=[].append)
    with pytest.raises(InputError, match="'deberta-v2' are not made smaller here"):
        trained(checkpoint_of("deberta-v2", tmp_path / "deberta"), tmp_path / "run")
    teaching = Teaching(start, kept=tmp_path / "logits.safetensors")
    with pytest.raises(InputError, match="Leave out --teacher-logits"):
        quantise(
            QUESTIONS, start=start, teaching=teaching, run=settings(tmp_path / "run", changes=Changes(swaps=3)),
            on_step=[].append,
        )  # fmt: skip
    assert not (tmp_path / "run").exists()
