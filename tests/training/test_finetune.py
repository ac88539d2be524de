"""Fine-tuning a tiny model: it learns, stops and goes on, and keeps to the threads it may use."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch
from helpers import BASELINE, encoder_of, random_bert

from qa_backends import limits
from qa_backends.catalog import backend
from qa_backends.checkpoints.files import WEIGHTS
from qa_backends.checkpoints.load import load_model
from qa_backends.checkpoints.manifest import file_hash, manifest_of, read_manifest
from qa_backends.errors import InputError
from qa_backends.paths import OWN_QUESTIONS
from qa_backends.progress import UNWATCHED
from qa_backends.squad import read_squad
from qa_backends.training import loop
from qa_backends.training.distil import LABEL_SHARE
from qa_backends.training.finetune import finetune
from qa_backends.training.provenance import encoder_folder, finish, history
from qa_backends.training.settings import Changes, RunSettings
from qa_backends.training.teaching import Teaching

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from qa_backends.squad import Question
    from qa_backends.training.loop import StepReport

QUESTIONS = read_squad(OWN_QUESTIONS)[:24]


EVERYTHING = {
    "passes": 3,
    "ema": 0.9,
    "dropout": 0.1,
    "freeze_embeddings": False,
    "changes": Changes(swaps=4, lower_case=0.2, cut=0.2, join=0.2, misplaced=0.2),
}
"""Every technique at once."""


def train_tiny(
    start_from: Path,
    folder: Path,
    on_step: Callable[[StepReport], None],
    *,
    teaching: Teaching | None = None,
    questions: Sequence[Question] = QUESTIONS,
    **chosen: Any,
) -> Path:
    settings = {"passes": 6, "learning_rate": 3e-3, "max_tokens": 2048, "seed": 0, "device": "cpu"}
    run = RunSettings(folder, **(settings | chosen))
    return finetune(questions, start_from=start_from, run=run, on_step=on_step, teaching=teaching)


class Stopped(Exception):
    pass


def stop_halfway(step: StepReport) -> None:
    if step.number == step.of // 2 + 1:
        raise Stopped


def test_finetuning_learns_and_goes_on_from_where_it_stopped(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[StepReport] = []
    made = train_tiny(tiny, tmp_path / "whole", steps.append)
    assert steps[-1].number == steps[-1].of == len(steps)
    assert steps[-1].loss < steps[0].loss
    monkeypatch.setattr(loop, "SAVE_EVERY_S", 0.0)
    with pytest.raises(Stopped):
        train_tiny(tiny, tmp_path / "halves", stop_halfway)
    rest: list[StepReport] = []
    resumed = train_tiny(tiny, tmp_path / "halves", rest.append)
    assert rest[0].number == steps[-1].of // 2 + 1, "no step is done again, none left out"
    assert file_hash(resumed / WEIGHTS) == file_hash(made / WEIGHTS)


def test_a_folder_holds_one_recipe(tiny: Path, tmp_path: Path) -> None:
    train_tiny(tiny, tmp_path / "run", lambda _: None, passes=1)
    for other in ({"passes": 2}, {"changes": Changes(lower_case=0.5)}, {"dropout": 0.1}, {"ema": 0.9}):
        with pytest.raises(InputError, match="other settings"):
            train_tiny(tiny, tmp_path / "run", lambda _: None, **{"passes": 1, **other})
    with pytest.raises(InputError, match="other settings"):
        train_tiny(random_bert(tmp_path / "other", seed=1), tmp_path / "run", lambda _: None, passes=1)


def test_a_stopped_run_gives_the_weights_of_an_unstopped_one(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train_tiny(tiny, tmp_path / "whole", lambda _: None, **EVERYTHING)
    monkeypatch.setattr(loop, "SAVE_EVERY_S", 0.0)
    with pytest.raises(Stopped):
        train_tiny(tiny, tmp_path / "halves", stop_halfway, **EVERYTHING)
    resumed = train_tiny(tiny, tmp_path / "halves", lambda _: None, **EVERYTHING)
    assert file_hash(resumed / WEIGHTS) == file_hash(whole / WEIGHTS)
    plain = train_tiny(tiny, tmp_path / "plain", lambda _: None, passes=EVERYTHING["passes"])
    assert file_hash(plain / WEIGHTS) != file_hash(whole / WEIGHTS)


def test_a_teacher_is_learned_from_with_a_tenth_of_the_labels(tiny: Path, tmp_path: Path) -> None:
    other = random_bert(tmp_path / "other", seed=1)
    by_labels: list[StepReport] = []
    by_itself: list[StepReport] = []
    by_both: list[StepReport] = []
    train_tiny(tiny, tmp_path / "labels", by_labels.append, passes=1)
    train_tiny(tiny, tmp_path / "itself", by_itself.append, passes=1, teaching=Teaching(tiny))
    assert by_itself[0].loss == pytest.approx(LABEL_SHARE * by_labels[0].loss), "nothing else is left to learn"
    train_tiny(tiny, tmp_path / "both", by_both.append, teaching=Teaching(tiny, others=(other,)))
    assert by_itself[0].loss < by_both[-1].loss < by_both[0].loss
    with pytest.raises(InputError, match="other settings"):
        train_tiny(tiny, tmp_path / "both", by_both.append, teaching=Teaching(tiny))


def test_further_questions_are_learned_by_their_labels_whoever_teaches(tiny: Path, tmp_path: Path) -> None:
    also = tmp_path / "also.json"
    also.write_text(json.dumps({"data": json.loads(OWN_QUESTIONS.read_text())["data"][5:7]}))
    seen: list[StepReport] = []
    run = {"passes": 1, "also": also, "also_times": 2, "learning_rate": 1e-9, "max_tokens": 10**6}
    train_tiny(tiny, tmp_path / "labels", seen.append, **run)
    train_tiny(tiny, tmp_path / "taught", seen.append, **run, teaching=Teaching(tiny))
    train_tiny(tiny, tmp_path / "alone", seen.append, passes=1, learning_rate=1e-9, max_tokens=10**6)
    labels, taught, alone = (each.loss for each in seen)
    share = len(QUESTIONS) / (len(QUESTIONS) + 2 * len(read_squad(also)))
    less = (1 - LABEL_SHARE) * share * alone
    assert taught == pytest.approx(labels - less, rel=1e-3), "a teacher that is the student itself has nothing to teach"
    with pytest.raises(InputError, match="other settings"):
        train_tiny(tiny, tmp_path / "labels", seen.append, **run | {"also_times": 1})
    with pytest.raises(InputError, match=r"nowhere\.json cannot be read"):
        train_tiny(tiny, tmp_path / "other", seen.append, also=tmp_path / "nowhere.json")


def test_a_folder_holds_one_set_of_questions(tiny: Path, tmp_path: Path) -> None:
    """As many others, or the same with other answers, are not what was stopped."""
    train_tiny(tiny, tmp_path / "run", lambda _: None, passes=1)
    corrected = [replace(each, answers=()) if at == 0 else each for at, each in enumerate(QUESTIONS)]
    with pytest.raises(InputError, match="other settings \\(sha256"):
        train_tiny(tiny, tmp_path / "run", lambda _: None, passes=1, questions=corrected)


def test_a_fresh_output_layer_is_the_seeds_whoever_teaches(tiny: Path, tmp_path: Path) -> None:
    """What a teacher's build draws at random is not missing afterwards."""
    encoder = encoder_of(random_bert(tmp_path / "encoder"))
    manifest_of(tiny, step="finetune", parent=None, settings={}).write(tiny)
    drawn = []
    for name, by in (("live", None), ("built", backend("baseline-ort"))):
        steps: list[StepReport] = []
        train_tiny(encoder, tmp_path / name, steps.append, passes=1, teaching=Teaching(tiny, by))
        drawn.append(steps[0].loss)
    assert drawn[0] == pytest.approx(drawn[1], rel=1e-3)


@pytest.mark.parametrize("frozen", [True, False])
def test_embeddings_are_trained_where_they_are_not_frozen(tiny: Path, tmp_path: Path, frozen: bool) -> None:
    made = train_tiny(tiny, tmp_path / "run", lambda _: None, passes=1, freeze_embeddings=frozen)
    before, after = (load_model(each).get_input_embeddings().weight for each in (tiny, made))
    assert torch.equal(after, before.half().float()) == frozen


def test_a_fine_tuned_checkpoint_is_trained_on_from_what_it_knows(tmp_path: Path) -> None:
    steps: list[StepReport] = []
    train_tiny(BASELINE, tmp_path / "run", steps.append, passes=0.25, learning_rate=1e-6)
    assert steps[0].loss < 2.5, "a fresh output layer would begin near the logarithm of the tokens, above 4"


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
    assert history(made) == {"before": {"step": "finetune", "parent": file_hash(tiny / WEIGHTS), **settings}}
    assert history(tiny) == {}


def test_an_encoder_that_is_a_folder_is_taken_as_it_is(tiny: Path) -> None:
    assert encoder_folder(str(tiny), UNWATCHED) == tiny
