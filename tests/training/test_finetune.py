"""Fine-tuning a tiny model: it learns, stops and goes on, and keeps to the threads it may use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from qa_backends import limits
from qa_backends.checkpoints.load import load_model
from qa_backends.checkpoints.manifest import WEIGHTS, file_hash, read_manifest
from qa_backends.errors import InputError
from qa_backends.paths import OWN_QUESTIONS
from qa_backends.progress import UNWATCHED
from qa_backends.squad import read_squad
from qa_backends.training import loop
from qa_backends.training.finetune import finetune
from qa_backends.training.provenance import encoder_folder, finish, history
from qa_backends.training.settings import RunSettings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from qa_backends.training.loop import StepReport

QUESTIONS = read_squad(OWN_QUESTIONS)[:24]


def train_tiny(start_from: Path, folder: Path, on_step: Callable[[StepReport], None], passes: float = 6) -> Path:
    run = RunSettings(folder, passes, learning_rate=3e-3, max_tokens=2048, seed=0, device="cpu")
    return finetune(QUESTIONS, start_from=start_from, run=run, on_step=on_step)


def test_finetuning_learns_and_goes_on_from_where_it_stopped(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[StepReport] = []
    made = train_tiny(tiny, tmp_path / "whole", steps.append)
    assert steps[-1].number == steps[-1].of == len(steps)
    assert steps[-1].loss < steps[0].loss
    monkeypatch.setattr(loop, "SAVE_EVERY_S", 0.0)

    class Stopped(Exception):
        pass

    def stop_halfway(step: StepReport) -> None:
        if step.number == step.of // 2 + 1:
            raise Stopped

    with pytest.raises(Stopped):
        train_tiny(tiny, tmp_path / "halves", stop_halfway)
    rest: list[StepReport] = []
    resumed = train_tiny(tiny, tmp_path / "halves", rest.append)
    assert rest[0].number == steps[-1].of // 2 + 1, "no step is done again, none left out"
    one, other = load_model(made), load_model(resumed)
    for name, weight in one.state_dict().items():
        torch.testing.assert_close(weight, other.state_dict()[name], atol=2e-2, rtol=0)


def test_a_folder_holds_one_recipe(tiny: Path, tmp_path: Path) -> None:
    train_tiny(tiny, tmp_path / "run", lambda _: None, passes=1)
    with pytest.raises(InputError, match="other settings"):
        train_tiny(tiny, tmp_path / "run", lambda _: None, passes=2)


@pytest.mark.usefixtures("two_threads")
def test_finetuning_keeps_to_the_containers_cores(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cpu.max").write_text("100000 100000\n")
    monkeypatch.setattr(limits, "CGROUP", tmp_path)
    threads: set[int] = set()
    train_tiny(tiny, tmp_path / "run", lambda _: threads.add(torch.get_num_threads()), passes=1)
    assert threads == {1}


def test_a_finished_checkpoint_says_what_it_was_made_of(tiny: Path, tmp_path: Path) -> None:
    settings: dict[str, object] = {"passes": 1}
    made = train_tiny(tiny, tmp_path / "run", lambda _: None, passes=1)
    finish(made, step="finetune", parent=tiny, settings=settings)
    manifest = read_manifest(made)
    assert (manifest.step, manifest.parent, manifest.precision) == ("finetune", file_hash(tiny / WEIGHTS), "FP16")
    assert history(made) == {"before": settings}
    assert history(tiny) == {}


def test_an_encoder_that_is_a_folder_is_taken_as_it_is(tiny: Path) -> None:
    assert encoder_folder(str(tiny), UNWATCHED) == tiny
