"""Gates and what they decide: a closed gate is a removed head, and what is worth least goes first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from helpers import BASELINE, random_bert
from kinds import checkpoint_of

from qa_backends.checkpoints.architectures import architecture_of
from qa_backends.checkpoints.load import load_model, save_model
from qa_backends.paths import OWN_QUESTIONS
from qa_backends.reader.tokens import SubwordTokenizer
from qa_backends.squad import read_squad
from qa_backends.training.data import collate, examples
from qa_backends.training.gates import Gates, choose, cut_down, drop_emptied, encoder_parameters, layer_costs

if TYPE_CHECKING:
    from pathlib import Path


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
    tokenizer = SubwordTokenizer(BASELINE)
    inputs = collate(examples(read_squad(OWN_QUESTIONS)[:4], tokenizer), tokenizer).inputs
    first, second = architecture_of(model.config).blocks(model)
    with torch.inference_mode():
        gates = Gates(model)
        gates.heads[1][2] = 0.0
        gates.columns[0][5] = 0.0
        closed = model(**inputs).start_logits
        gates.remove()
        second.attention_output.weight[:, 16:24] = 0
        first.down.weight[:, 5] = 0
        torch.testing.assert_close(model(**inputs).start_logits, closed, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", ["bert", "distilbert"])
def test_gates_leave_a_layer_without_heads_as_it_is(kind: str, tmp_path: Path) -> None:
    model = load_model(checkpoint_of(kind, tmp_path / kind))
    blocks = architecture_of(model.config).blocks(model)
    heads = [torch.full((each.heads,), number > 0) for number, each in enumerate(blocks)]
    cut_down(model, heads, [torch.full((each.up.out_features,), True) for each in blocks])
    ids = torch.arange(9)[None]
    with torch.inference_mode():
        without = model(ids).start_logits
        gates = Gates(model)
        assert [len(each) for each in gates.heads] == [int(each.sum()) for each in heads]
        torch.testing.assert_close(model(ids).start_logits, without)


def test_cutting_down_saves_what_heads_and_columns_cost(tiny: Path) -> None:
    model = load_model(tiny)
    before, (head, column) = encoder_parameters(model), layer_costs(model)
    heads = [torch.tensor([True, False, True, False]), torch.tensor([True] * 4)]
    columns = [torch.arange(48) < 48, torch.arange(48) < 41]
    cut_down(model, heads, columns)
    assert encoder_parameters(model) == before - 2 * head - 7 * column
    assert model.config.intermediate_sizes == [48, 41]


def test_layers_that_lost_all_they_had_go(tmp_path: Path) -> None:
    model = load_model(random_bert(tmp_path / "whole", layers=4))
    heads, columns = ([torch.arange(size) < left for left in (2, 0, 0, 1)] for size in (4, 48))
    columns[2] = torch.arange(48) < 32
    cut_down(model, heads, columns)
    ids = torch.arange(9)[None]
    drop_emptied(model)
    assert [(each.heads, each.up.out_features) for each in architecture_of(model.config).blocks(model)] == [
        (2, 2), (0, 32), (1, 1),
    ]  # fmt: skip
    save_model(model, tmp_path / "made", tokenizer_from=tmp_path / "whole", dtype=torch.float32)
    with torch.inference_mode():
        read = load_model(tmp_path / "made")(ids).start_logits
        torch.testing.assert_close(read, model(ids).start_logits, atol=1e-5, rtol=0)


def test_of_layers_that_all_lost_everything_one_stays(tmp_path: Path) -> None:
    model = load_model(random_bert(tmp_path / "whole", layers=2))
    cut_down(model, [torch.zeros(4) > 0] * 2, [torch.zeros(48) > 0] * 2)
    drop_emptied(model)
    assert model.config.num_hidden_layers == 1
