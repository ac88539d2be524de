"""Pruning a tiny model: it reaches the density asked for, really packs, and goes on where it was."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
import torch
from helpers import random_bert

from qa_backends import limits
from qa_backends.checkpoints.architectures import architecture_of
from qa_backends.checkpoints.files import WEIGHTS
from qa_backends.checkpoints.load import load_model, save_model
from qa_backends.checkpoints.manifest import file_hash, read_manifest
from qa_backends.errors import InputError
from qa_backends.paths import OWN_QUESTIONS
from qa_backends.squad import read_squad
from qa_backends.training.distil import hidden_loss
from qa_backends.training.gates import cut_down, encoder_parameters, layer_costs
from qa_backends.training.latency import TILE, LatencyTable
from qa_backends.training.model import showing
from qa_backends.training.provenance import finish
from qa_backends.training.prune import Pruning
from qa_backends.training.settings import FP32, UNCHANGED, Changes, RunSettings
from qa_backends.training.teaching import Teaching

if TYPE_CHECKING:
    from pathlib import Path

    from qa_backends.training.loop import StepReport

QUESTIONS = read_squad(OWN_QUESTIONS)[:24]


TABLE = LatencyTable(
    lengths=(128, 384),
    layers=2,
    heads={0: (0.0, 0.0), 1: (0.002, 0.004), 4: (0.003, 0.008)},
    columns={0: (0.0, 0.0), 32: (0.002, 0.002), 96: (0.003, 0.004)},
    facts={},
)
"""Of a model of two layers: the first head of a layer costs more than the others together at 128 tokens."""


def prune(
    teacher: Path,
    folder: Path,
    *,
    density: float = 0.5,
    passes: float = 1,
    start: Path | None = None,
    steps: list[StepReport] | None = None,
    teacher_logits: Path | None = None,
    changes: Changes = UNCHANGED,
    latency: LatencyTable | None = None,
    hidden_passes: float = 0.0,
) -> Pruning:
    run = RunSettings(folder, passes, learning_rate=1e-3, max_tokens=1024, seed=0, device="cpu", changes=changes)
    return Pruning(
        QUESTIONS,
        teaching=Teaching(teacher, kept=teacher_logits),
        density=density,
        run=run,
        on_step=(steps if steps is not None else []).append,
        start=start,
        latency=latency,
        hidden_passes=hidden_passes,
    )


def test_pruning_reaches_its_density_and_packs(tmp_path: Path) -> None:
    teacher = random_bert(tmp_path / "teacher", columns=96)
    steps: list[StepReport] = []
    pruning = prune(teacher, tmp_path / "run", passes=2, steps=steps)
    made = finish(pruning.run(), step="prune", parent=teacher, settings={"density": 0.5})
    whole = encoder_parameters(load_model(teacher))
    model = load_model(made)
    one_head, _ = layer_costs(load_model(teacher))
    assert 0.4 * whole < encoder_parameters(model) <= 0.5 * whole + one_head
    manifest = read_manifest(made)
    assert manifest.encoder_parameters == encoder_parameters(model)
    assert manifest.parent == file_hash(teacher / WEIGHTS)
    whole = pruning._material.steps
    assert [each.number for each in steps if each.loss is not None] == list(range(1, whole + 1)), "of all its stages"
    assert {each.of for each in steps} == {whole}
    judged = [(each.number, each.doing) for each in steps if each.loss is None]
    assert judged == [
        (step, f"finding what matters least, batch {number} of 4")
        for _, step, _ in pruning._stages
        for number in (1, 2, 3, 4)
    ]


def test_a_model_with_an_emptied_layer_is_pruned_further(tmp_path: Path) -> None:
    teacher, emptied = random_bert(tmp_path / "teacher", columns=96), tmp_path / "emptied"
    model = load_model(teacher)
    cut_down(model, [torch.arange(4) < each for each in (4, 0)], [torch.arange(96) < each for each in (0, 96)])
    save_model(model, emptied, tokenizer_from=teacher, dtype=torch.float32)
    made = prune(emptied, tmp_path / "run", density=0.8, passes=1).run()
    assert encoder_parameters(load_model(made)) < encoder_parameters(model)


def test_pruning_by_time_fits_the_time_in_tiles_and_goes_on_where_it_was(tmp_path: Path) -> None:
    teacher = random_bert(tmp_path / "teacher", columns=96)
    made = prune(teacher, tmp_path / "run", density=0.4, latency=TABLE).run()
    model = load_model(made)
    blocks = architecture_of(model.config).blocks(model)
    shapes = [(each.heads, each.up.out_features) for each in blocks]
    assert 0.2 < TABLE.of_model(shapes) <= 0.405
    assert all(columns % TILE == 0 for _, columns in shapes)
    assert prune(teacher, tmp_path / "run", density=0.4, latency=TABLE).run() == made
    with pytest.raises(InputError, match="other settings"):
        prune(teacher, tmp_path / "run", density=0.4)


def test_a_layer_that_loses_all_it_has_goes_unless_hidden_states_are_taught(tmp_path: Path) -> None:
    teacher = random_bert(tmp_path / "teacher", columns=96)
    shapes = []
    for name, hidden_passes in (("without", 0.0), ("with", 0.2)):
        made = prune(teacher, tmp_path / name, density=0.15, latency=TABLE, hidden_passes=hidden_passes).run()
        model = load_model(made)
        shapes.append([(each.heads, each.up.out_features) for each in architecture_of(model.config).blocks(model)])
    assert shapes[0] == [(0, TILE)], "all that the time allows"
    assert sorted(shapes[1]) == [(0, 0), (0, TILE)]


def test_each_stage_goes_on_in_the_questions_where_the_last_one_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []

    def train(*given: Any, **_: Any) -> None:
        _parameters, _loss, batches_from, recipe, *_ = given
        numbers = [next(iter(batches_from(0))).numbers.tolist(), len(list(batches_from(0)))]
        seen.append((everything.index(numbers[0]), recipe.steps))
        assert numbers[1] == recipe.steps

    monkeypatch.setattr("qa_backends.training.material.train", train)
    pruning = prune(random_bert(tmp_path / "teacher", columns=96), tmp_path / "run", density=0.3, passes=2)
    material = pruning._material
    everything = [each.numbers.tolist() for each in material.batches(0, material.steps)]
    pruning.run()
    assert len(seen) == 4, "all of its stages, and the last"
    assert [first for first, _ in seen] == [0, *itertools.accumulate(steps for _, steps in seen[:-1])]
    assert sum(steps for _, steps in seen) == material.steps


def test_hidden_states_are_taught_after_the_last_cut(tmp_path: Path) -> None:
    teacher = random_bert(tmp_path / "teacher", columns=96)
    run = prune(teacher, tmp_path / "run", passes=8, hidden_passes=6).run()
    plain = prune(teacher, tmp_path / "plain", passes=8).run()
    batch = next(prune(teacher, tmp_path / "other")._material.batches(0, 1))

    def apart(folder: Path) -> float:
        with torch.no_grad():
            one, other = (showing(load_model(each), "cpu", FP32)(batch)[1] for each in (folder, teacher))
        return hidden_loss(one[1:], other[1:], batch).item()

    assert apart(run) < 0.9 * apart(plain)


def test_hidden_states_of_other_layers_are_not_taught(tmp_path: Path) -> None:
    teacher, start = random_bert(tmp_path / "teacher", layers=3), random_bert(tmp_path / "start")
    with pytest.raises(InputError, match=r"3 layers of 32 values a token, and .*start 2 layers of 32 values"):
        prune(teacher, tmp_path / "run", start=start, hidden_passes=0.5)
    assert not (tmp_path / "run").exists(), "the folder can be used for another run"


def test_hidden_states_are_taught_no_longer_than_the_last_stage(tmp_path: Path) -> None:
    teacher = random_bert(tmp_path / "teacher", columns=96)
    with pytest.raises(InputError, match=r"After the last cut come 4.* passes\. Choose fewer"):
        prune(teacher, tmp_path / "run", density=0.3, passes=8, hidden_passes=6)
    assert not (tmp_path / "run").exists()


def test_a_latency_table_of_another_size_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="96 FFN columns, the teacher has 2 layers of 4 heads and 48"):
        prune(random_bert(tmp_path / "teacher"), tmp_path / "run", latency=TABLE)


def test_a_pruned_checkpoint_is_trained_on_without_losing_more(tmp_path: Path) -> None:
    teacher = random_bert(tmp_path / "teacher", columns=96)

    first = prune(teacher, tmp_path / "first", passes=2).run()
    second = prune(teacher, tmp_path / "second", passes=1, start=first).run()
    assert [each.name for each in (tmp_path / "second").glob("stage-*")] == ["stage-0"], "nothing is left to cut"
    before, after = load_model(first), load_model(second)
    assert encoder_parameters(after) == encoder_parameters(before)
    assert any(not one.equal(other) for one, other in zip(before.parameters(), after.parameters(), strict=True))


def test_a_run_stopped_within_a_stage_gives_the_weights_of_an_unstopped_one(tiny: Path, tmp_path: Path) -> None:
    whole = prune(tiny, tmp_path / "whole").run()

    def stop(step: StepReport) -> None:
        if step.number == step.of - 1:
            raise KeyboardInterrupt

    stopped = prune(tiny, tmp_path / "stopped")
    stopped._material._on_step = stop
    with pytest.raises(KeyboardInterrupt):
        stopped.run()
    rest: list[StepReport] = []
    again = prune(tiny, tmp_path / "stopped", steps=rest).run()
    assert [each.of - each.number for each in rest] == [0], "what was saved is not done again, nor judged again"
    for name, each in load_model(whole).state_dict().items():
        torch.testing.assert_close(load_model(again).state_dict()[name], each, msg=name)


def test_a_pruning_folder_holds_one_run(tiny: Path, tmp_path: Path) -> None:
    first = prune(tiny, tmp_path / "run").run()
    assert prune(tiny, tmp_path / "run").run() == first, "a finished run is found again"
    with pytest.raises(InputError, match="other settings"):
        prune(tiny, tmp_path / "run", density=0.3)


def test_kept_logits_serve_several_runs(tiny: Path, tmp_path: Path) -> None:
    logits = tmp_path / "teacher.safetensors"
    steps: list[StepReport] = []
    prune(tiny, tmp_path / "one", teacher_logits=logits, steps=steps).run()
    taught = [each for each in steps if each.doing == "the teacher's logits"]
    assert [each.number for each in taught] == list(range(1, taught[0].of + 1))
    assert any(each.loss for each in steps)
    again: list[StepReport] = []
    prune(tiny, tmp_path / "two", density=0.3, teacher_logits=logits, steps=again).run()
    assert again and not any("the teacher" in each.doing for each in again), "the teacher ran once"


def test_logits_of_questions_that_change_cannot_be_kept(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Leave out --teacher-logits"):
        prune(tiny, tmp_path / "run", teacher_logits=tmp_path / "teacher.safetensors", changes=Changes(swaps=3))


def test_a_start_that_is_no_checkpoint_is_refused(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Name a folder that holds a checkpoint"):
        prune(tiny, tmp_path / "run", start=tmp_path / "nowhere")


@pytest.mark.usefixtures("two_threads")
def test_pruning_keeps_to_the_containers_cores(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cpu.max").write_text("100000 100000\n")
    monkeypatch.setattr(limits, "CGROUP", tmp_path)
    threads: set[int] = set()
    pruning = prune(tiny, tmp_path / "run", passes=1)
    pruning._material._on_step = lambda _: threads.add(torch.get_num_threads())
    pruning.run()
    assert threads == {1}
