"""Pruning by milliseconds: the table orders shapes as they were timed, and what is kept is the best that fits."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
import torch

from qa_backends.errors import InputError
from qa_backends.training.latency import TILE, LatencyTable, choose_by_time, shapes_to_time

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = {"num_attention_heads": 6, "intermediate_size": 128, "num_hidden_layers": 2}
REST_S = 0.001


def timed(heads: int, columns: int) -> tuple[float, float]:
    """Seconds of a model whose two layers have this shape, at both lengths: a matrix costs something by itself."""
    short = 3e-4 * (heads > 0) + 1e-4 * heads + 2e-4 * (columns > 0) + 4e-6 * columns
    long = 5e-4 * (heads > 0) + 5e-4 * heads + 3e-4 * (columns > 0) + 9e-6 * columns
    return REST_S + 2 * short, REST_S + 2 * long


@pytest.fixture
def table() -> LatencyTable:
    return LatencyTable.of(CONFIG, {shape: timed(*shape) for shape in shapes_to_time(CONFIG)}, {"machine": "made up"})


def test_a_table_gives_back_what_models_were_timed_at(table: LatencyTable) -> None:
    for shape in itertools.product((0, 1, 2, 4, 6), (0, 32, 64, 128)):
        expected = [(t - REST_S) / (whole - REST_S) for t, whole in zip(timed(*shape), timed(6, 128), strict=True)]
        assert table.of_model([shape] * 2) == pytest.approx(sum(expected) / 2)


def test_a_table_orders_shapes_as_they_were_timed(table: LatencyTable) -> None:
    shapes = [(1, 128), (6, 32), (4, 0), (0, 96), (3, 64), (2, 64)]

    def as_timed(shape: tuple[int, int]) -> float:
        return sum(each / whole for each, whole in zip(timed(*shape), timed(6, 128), strict=True))

    assert sorted(shapes, key=lambda shape: table.of_model([shape] * 2)) == sorted(shapes, key=as_timed)


def test_a_table_is_read_back(table: LatencyTable, tmp_path: Path) -> None:
    table.write(tmp_path / "table.json")
    assert LatencyTable.read(tmp_path / "table.json") == table


def test_what_is_no_table_is_refused_with_the_command_that_makes_one(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("[]")
    for name in ("other.json", "absent.json"):
        with pytest.raises(InputError, match="train latency --out"):
            LatencyTable.read(tmp_path / name)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5, 0.8])
def test_what_is_kept_is_the_best_that_fits(table: LatencyTable, share: float) -> None:
    torch.manual_seed(0)
    heads, columns = [torch.rand(6) for _ in range(2)], [torch.rand(128) / 9 for _ in range(2)]
    kept = choose_by_time(heads, columns, table, share)
    shapes = [(int(h.sum()), int(c.sum())) for h, c in zip(*kept, strict=True)]
    assert table.of_model(shapes) <= share + 0.002

    worths = [*heads, *columns]
    possible = itertools.product(range(7), range(7), range(0, 129, TILE), range(0, 129, TILE))
    best = max(
        sum(float(each.sort(descending=True).values[:n].sum()) for each, n in zip(worths, counts, strict=True))
        for counts in possible
        if table.of_model([(counts[0], counts[2]), (counts[1], counts[3])]) <= share - 0.002
    )
    found = sum(float(worth[stays].sum()) for worth, stays in zip(worths, [*kept[0], *kept[1]], strict=True))
    assert found >= best - 1e-6


def test_all_of_it_fits_into_all_of_the_time(table: LatencyTable) -> None:
    kept = choose_by_time([torch.rand(6)] * 2, [torch.rand(128)] * 2, table, 1.01)
    assert all(bool(each.all()) for kind in kept for each in kind)


def test_columns_beyond_the_last_whole_tile_can_all_stay(table: LatencyTable) -> None:
    kept = choose_by_time([torch.rand(6)] * 2, [torch.rand(41)] * 2, table, 1.01)
    assert all(bool(each.all()) for kind in kept for each in kind)


def test_a_table_of_another_size_of_model_is_refused(table: LatencyTable) -> None:
    table.check(CONFIG)
    with pytest.raises(InputError, match="2 layers of 6 heads and 128 FFN columns, the teacher has 3 layers of 6"):
        table.check(CONFIG | {"num_hidden_layers": 3})


def test_a_part_that_costs_more_than_it_is_worth_goes_as_a_whole(table: LatencyTable) -> None:
    heads, columns = [torch.ones(6), torch.full((6,), 1e-6)], [torch.ones(128)] * 2
    kept_heads, _ = choose_by_time(heads, columns, table, 0.7)
    assert int(kept_heads[0].sum()) == 6
    assert int(kept_heads[1].sum()) == 0
