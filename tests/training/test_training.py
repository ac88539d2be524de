"""Training recipes on a tiny model: they learn, stop and go on, prune to the density asked for, and really pack."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from helpers import BASELINE, ROOT, random_bert

from qa_backends.artefacts.checkpoint import load_model
from qa_backends.artefacts.manifest import read_manifest
from qa_backends.errors import InputError
from qa_backends.reader.tokens import WordPieces
from qa_backends.squad import read_squad
from qa_backends.training import finetune as finetune_module
from qa_backends.training import loop
from qa_backends.training import prune as prune_module
from qa_backends.training.data import answer_tokens, collate, epoch_order, examples, stream
from qa_backends.training.finetune import finetune
from qa_backends.training.gates import Gates, choose, encoder_parameters, layer_costs
from qa_backends.training.loop import Plan, Recipe, Step, rate_at
from qa_backends.training.prune import Pruning, masks
from qa_backends.training.recipes import finish

if TYPE_CHECKING:
    from pathlib import Path

QUESTIONS = read_squad(ROOT / "assets" / "questions.json")[:24]
WORDS = WordPieces(BASELINE)


@pytest.fixture(autouse=True)
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiling a graph takes longer than training a tiny model."""
    monkeypatch.setattr(finetune_module, "compiled", lambda model: model)
    monkeypatch.setattr(prune_module, "compiled", lambda model: model)


def plan(folder: Path, *, passes: float, learning_rate: float = 3e-3, max_tokens: int = 2048) -> Plan:
    return Plan(folder, passes, learning_rate, max_tokens, seed=0, device="cpu")


def train_tiny(start_from: Path, folder: Path, steps: list[Step], passes: float = 6) -> Path:
    return finetune(QUESTIONS, start_from=start_from, plan=plan(folder, passes=passes), progress=steps.append)


def test_labels_are_the_answers_tokens() -> None:
    for example, question in zip(examples(QUESTIONS, WORDS), QUESTIONS, strict=True):
        if not question.answers:
            assert (example.start, example.end) == (0, 0)
            continue
        gold = question.answers[0]
        shift = len(example.question) + 2
        first, last = example.piece.offsets[[example.start - shift, example.end - shift]]
        assert question.context[first[0] : last[1]] == gold.text


def test_an_answer_cut_by_a_window_is_no_answer_there() -> None:
    offsets = WORDS.encode("one two three four").offsets
    assert answer_tokens(offsets, 4, 13) == (1, 2)
    assert answer_tokens(offsets[:2], 4, 13) is None
    assert answer_tokens(offsets[2:], 4, 13) is None


def test_an_epoch_holds_every_window_once_and_keeps_to_its_size() -> None:
    lengths = [20 + 7 * (n % 30) for n in range(500)]
    groups = epoch_order(lengths, max_tokens=1024, seed=1)
    assert sorted(index for group in groups for index in group) == list(range(500))
    assert all(len(group) * max(lengths[i] for i in group) <= 1024 for group in groups)
    assert groups == epoch_order(lengths, max_tokens=1024, seed=1) != epoch_order(lengths, max_tokens=1024, seed=2)


def test_going_on_gives_the_batches_that_would_have_come() -> None:
    data = examples(QUESTIONS, WORDS)
    whole = list(stream(data, WORDS, max_tokens=1024, seed=3, steps=20, skip=0))
    rest = list(stream(data, WORDS, max_tokens=1024, seed=3, steps=20, skip=13))
    assert len(whole) == 20 and len(rest) == 7
    for one, other in zip(whole[13:], rest, strict=True):
        assert torch.equal(one.inputs["input_ids"], other.inputs["input_ids"])


def test_the_rate_warms_up_and_falls_to_nothing() -> None:
    recipe = Recipe(steps=1000, learning_rate=1.0, weight_decay=0.0, max_tokens=1, seed=0)
    rates = [rate_at(step, recipe) for step in range(1000)]
    assert max(rates) == 1.0 and rates.index(1.0) == 59
    assert rates[0] < 0.05 and rates[-1] < 0.01


def test_finetuning_learns_and_goes_on_from_where_it_stopped(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[Step] = []
    made = train_tiny(tiny, tmp_path / "whole", steps)
    assert steps[-1].number == steps[-1].of == len(steps)
    assert steps[-1].loss < steps[0].loss
    monkeypatch.setattr(loop, "CHECKPOINT_EVERY_S", 0.0)

    class Stopped(Exception):
        pass

    def stop_halfway(step: Step) -> None:
        if step.number == step.of // 2 + 1:
            raise Stopped

    with pytest.raises(Stopped):
        finetune(QUESTIONS, start_from=tiny, plan=plan(tmp_path / "halves", passes=6), progress=stop_halfway)
    rest: list[Step] = []
    resumed = train_tiny(tiny, tmp_path / "halves", rest)
    assert rest[0].number == steps[-1].of // 2 + 1, "no step is done again, none left out"
    one, other = load_model(made), load_model(resumed)
    for name, weight in one.state_dict().items():
        torch.testing.assert_close(weight, other.state_dict()[name], atol=2e-2, rtol=0)


def test_a_folder_holds_one_recipe(tiny: Path, tmp_path: Path) -> None:
    train_tiny(tiny, tmp_path / "run", [], passes=1)
    with pytest.raises(InputError, match="other settings"):
        train_tiny(tiny, tmp_path / "run", [], passes=2)


@pytest.mark.parametrize("method", ["importance", "movement"])
def test_pruning_reaches_its_density_and_packs(method: str, tmp_path: Path) -> None:
    teacher = random_bert(tmp_path / "teacher", columns=96)
    steps: list[Step] = []
    run = plan(tmp_path / "run", passes=4, learning_rate=1e-3, max_tokens=1024)
    pruning = Pruning(QUESTIONS, method=method, teacher=teacher, density=0.5, plan=run, progress=steps.append)
    made = finish(pruning.run(), step="prune", parent=teacher, settings={"method": method})
    whole = encoder_parameters(load_model(teacher))
    model = load_model(made)
    one_head, _ = layer_costs(load_model(teacher))
    assert 0.4 * whole < encoder_parameters(model) <= 0.5 * whole + one_head
    manifest = read_manifest(made)
    assert manifest.encoder_parameters == encoder_parameters(model)
    assert manifest.parent == read_parent(teacher)
    assert steps


def test_a_pruned_checkpoint_is_trained_on_without_losing_more(tmp_path: Path) -> None:
    teacher = random_bert(tmp_path / "teacher", columns=96)

    def prune(folder: str, passes: float, start: Path | None) -> Path:
        run = plan(tmp_path / folder, passes=passes, learning_rate=1e-3, max_tokens=1024)
        pruning = Pruning(
            QUESTIONS, method="importance", teacher=teacher, density=0.5, plan=run, progress=lambda _: None, start=start
        )
        return pruning.run()

    first = prune("first", 4, None)
    second = prune("second", 2, first)
    assert [each.name for each in (tmp_path / "second").glob("stage-*")] == ["stage-0"], "nothing is left to cut"
    before, after = load_model(first), load_model(second)
    assert encoder_parameters(after) == encoder_parameters(before)
    assert any(not one.equal(other) for one, other in zip(before.parameters(), after.parameters(), strict=True))


def test_a_pruning_folder_holds_one_run(tiny: Path, tmp_path: Path) -> None:
    run = plan(tmp_path / "run", passes=1, learning_rate=1e-3, max_tokens=1024)

    def pruning(density: float) -> Pruning:
        return Pruning(
            QUESTIONS, method="importance", teacher=tiny, density=density, plan=run, progress=lambda _step: None
        )

    first = pruning(0.5).run()
    assert pruning(0.5).run() == first, "a finished run is found again"
    with pytest.raises(InputError, match="other settings"):
        pruning(0.3)


def read_parent(teacher: Path) -> str:
    from qa_backends.artefacts.manifest import file_hash

    return file_hash(teacher / "model.safetensors")


def test_what_is_worth_least_a_parameter_goes_first() -> None:
    heads = [torch.tensor([5.0, 0.1, 7.0])]
    columns = [torch.tensor([0.3, 0.02, 0.9, 0.0])]
    kept_heads, kept_columns = choose(heads, columns, (10, 1), spare=12)
    assert kept_heads[0].tolist() == [True, False, True]
    assert kept_columns[0].tolist() == [True, False, True, False]


def test_everything_may_go_but_the_best_of_each_layer() -> None:
    kept_heads, kept_columns = choose([torch.rand(4)] * 2, [torch.rand(9)] * 2, (10, 1), spare=10_000)
    assert [int(each.sum()) for each in (*kept_heads, *kept_columns)] == [1, 1, 1, 1]


def test_a_closed_gate_is_a_removed_head(tiny: Path) -> None:
    model = load_model(tiny)
    inputs = collate(examples(QUESTIONS[:4], WORDS), WORDS).inputs
    with torch.inference_mode():
        gates = Gates(model)
        gates.heads[1][2] = 0.0
        gates.columns[0][5] = 0.0
        closed = model(**inputs).start_logits
        gates.remove()
        model.bert.encoder.layer[1].attention.output.dense.weight[:, 16:24] = 0
        model.bert.encoder.layer[0].output.dense.weight[:, 5] = 0
        torch.testing.assert_close(model(**inputs).start_logits, closed, atol=1e-5, rtol=0)


def test_a_masks_gradient_reaches_its_score() -> None:
    scores = [torch.tensor([0.3, -0.2, 0.1], requires_grad=True), torch.tensor([-0.5, -0.6], requires_grad=True)]
    found = masks(scores, 0.4)
    assert [each.detach().tolist() for each in found] == [[1.0, 0.0, 1.0], [1.0, 0.0]]
    (found[0] * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert scores[0].grad is not None and (scores[0].grad > 0).all()
