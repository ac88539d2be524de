"""A student of some of the teacher's layers: it begins as them, learns what they compute, and goes on where it was."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch
from helpers import BASELINE, random_bert

from qa_backends.checkpoints.files import WEIGHTS
from qa_backends.checkpoints.load import load_model
from qa_backends.checkpoints.packing import keep_layers
from qa_backends.errors import InputError
from qa_backends.paths import OWN_QUESTIONS
from qa_backends.reader.tokens import SubwordTokenizer
from qa_backends.squad import read_squad
from qa_backends.training.data import Batch, collate, examples
from qa_backends.training.distil import hidden_loss
from qa_backends.training.gates import cut_down
from qa_backends.training.settings import RunSettings
from qa_backends.training.student import HIDDEN, LABELS, LOGITS, Distilling
from qa_backends.training.teaching import Teaching

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from qa_backends.training.loop import StepReport

QUESTIONS = read_squad(OWN_QUESTIONS)[:24]


@pytest.fixture
def teacher(tmp_path: Path) -> Path:
    return random_bert(tmp_path / "teacher", layers=3)


def distilling(
    teacher: Path,
    folder: Path,
    on_step: Callable[[StepReport], object] = lambda _step: None,
    passes: float = 2,
    **chosen: Any,
) -> Distilling:
    run = RunSettings(folder, passes, learning_rate=1e-3, max_tokens=1024, seed=0, device="cpu")
    wanted = {"layers": (0, 2), "hidden_passes": 1.0} | chosen
    return Distilling(QUESTIONS, teaching=Teaching(teacher), run=run, on_step=on_step, **wanted)


def batch() -> Batch:
    tokenizer = SubwordTokenizer(BASELINE)
    return collate(examples(QUESTIONS[:4], tokenizer), tokenizer)


def test_a_student_begins_as_the_layers_that_are_named(teacher: Path) -> None:
    model = load_model(teacher)
    cut_down(model, [torch.arange(4) < n for n in (4, 3, 2)], [torch.arange(48) < n for n in (48, 32, 16)])
    before = {name: each.clone() for name, each in model.state_dict().items()}
    keep_layers(model, (2, 0))
    assert model.config.num_hidden_layers == 2
    assert model.config.pruned_heads == {0: [2, 3]} and model.config.intermediate_sizes == [16, 48]
    for new, old in ((0, 2), (1, 0)):
        name = "bert.encoder.layer.{}.attention.output.dense.weight"
        assert torch.equal(model.state_dict()[name.format(new)], before[name.format(old)])


def test_hidden_states_are_compared_where_there_are_tokens() -> None:
    asked = batch()
    shape = (*asked.inputs["input_ids"].shape, 8)
    one = torch.rand(shape)
    other = one + 2.0
    real = asked.inputs["attention_mask"].bool()
    padded = torch.where(real[..., None], other, other + 100)
    assert hidden_loss([one], [padded], asked).item() == pytest.approx(4.0, rel=1e-5)
    assert hidden_loss([one, one], [one, padded], asked).item() == pytest.approx(2.0, rel=1e-5)
    first = torch.arange(len(asked)) == 0
    untaught = torch.where(first[:, None, None], padded, padded + 100)
    assert hidden_loss([one], [untaught], replace(asked, taught=first)).item() == pytest.approx(4.0, rel=1e-5)
    assert hidden_loss([one], [padded], replace(asked, taught=first & False)).item() == 0.0


def test_a_student_comes_to_compute_and_to_answer_as_the_teacher_does(teacher: Path, tmp_path: Path) -> None:
    steps: list[StepReport] = []
    made = distilling(teacher, tmp_path / "run", steps.append, passes=4, hidden_passes=2.0).run()
    assert made == tmp_path / "run" / LOGITS / "model"
    student = load_model(made)
    assert student.config.num_hidden_layers == 2
    assert [each.number for each in steps] == list(range(1, steps[0].of + 1)), "one count for both of its parts"
    hidden = [each.loss for each in steps[: steps[0].of // 2] if each.loss is not None]
    assert hidden[-1] < hidden[0]
    assert (tmp_path / "run" / HIDDEN / "model" / WEIGHTS).is_file()
    first = load_model(tmp_path / "run" / HIDDEN / "model")
    assert torch.equal(first.state_dict()["qa_outputs.weight"], load_model(teacher).state_dict()["qa_outputs.weight"])
    assert not torch.equal(student.state_dict()["qa_outputs.weight"], first.state_dict()["qa_outputs.weight"])


def test_a_student_of_all_layers_has_nothing_to_learn_of_them(teacher: Path, tmp_path: Path) -> None:
    steps: list[StepReport] = []
    distilling(teacher, tmp_path / "run", steps.append, layers=(0, 1, 2)).run()
    assert steps[0].loss is not None and steps[0].loss < 1e-4


class Stopped(Exception):
    pass


@pytest.mark.parametrize("at", [0.25, 0.75], ids=["by hidden states", "by logits"])
def test_a_stopped_run_gives_the_weights_of_an_unstopped_one(
    teacher: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: float
) -> None:
    whole = distilling(teacher, tmp_path / "whole").run()
    monkeypatch.setattr("qa_backends.training.loop.SAVE_EVERY_S", 0.0)
    done: list[StepReport] = []

    def stop(step: StepReport) -> None:
        done.append(step)
        if len(done) == max(1, round(step.of * at)):
            raise Stopped

    with pytest.raises(Stopped):
        distilling(teacher, tmp_path / "stopped", stop).run()
    again = distilling(teacher, tmp_path / "stopped").run()
    for name, each in load_model(whole).state_dict().items():
        torch.testing.assert_close(load_model(again).state_dict()[name], each, msg=name)


def test_the_same_student_is_trained_as_long_without_the_teacher(teacher: Path, tmp_path: Path) -> None:
    taught: list[StepReport] = []
    alone: list[StepReport] = []
    distilling(teacher, tmp_path / "taught", taught.append).run()
    made = distilling(teacher, tmp_path / "alone", alone.append, by_labels=True).run()
    assert made == tmp_path / "alone" / LABELS / "model"
    assert len(alone) == len(taught)


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"layers": (0, 3)}, "layers 0 to 2"),
        ({"layers": (1, 1)}, "each once"),
        ({"layers": ()}, "Name some"),
        ({"hidden_passes": 4.0}, "--hidden-passes is above 0 and below --passes"),
        ({"hidden_passes": 0.0}, "--hidden-passes is above 0"),
    ],
)
def test_what_makes_no_student_is_refused(teacher: Path, tmp_path: Path, chosen: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        distilling(teacher, tmp_path / "run", **chosen)
    assert not (tmp_path / "run").exists(), "the folder can be used for another run"


def test_a_folder_holds_one_run(teacher: Path, tmp_path: Path) -> None:
    distilling(teacher, tmp_path / "run").run()
    with pytest.raises(InputError, match="other settings"):
        distilling(teacher, tmp_path / "run", layers=(0, 1))
