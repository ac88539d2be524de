"""Operations counted by hand, and a rate that the machine really reaches."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from helpers import BASELINE
from measure.invented import RAN, benchmark_record

from qa_backends.checkpoints.architectures import architecture_of
from qa_backends.checkpoints.load import read_config
from qa_backends.measure.benchmark import floor
from qa_backends.measure.benchmark.floor import SIZE, Floor, matmul_rate, operations, with_true_floors

# 8 wide, 2 heads of 4, 16 FFN columns, one layer.
TINY = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}


def test_operations_are_those_counted_by_hand() -> None:
    # A token, multiplications: query, key, value, output 4 * 8 * 8; scores and values 2 * seq_len * 8; FFN 2 * 8 * 16;
    # output layer 2 * 8. Each counts twice, for it is also added.
    assert operations(TINY, [(1, 10)]) == 2 * 10 * (256 + 160 + 256 + 16)
    assert operations(TINY, [(3, 10), (1, 20)]) == 3 * operations(TINY, [(1, 10)]) + operations(TINY, [(1, 20)])
    assert Floor(TINY, rate=1000.0).seconds([(1, 10)]) == 2 * 10 * (256 + 160 + 256 + 16) / 1000


def test_removed_heads_and_columns_are_not_counted() -> None:
    pruned = TINY | {"pruned_heads": {"0": [1]}, "intermediate_sizes": [5]}
    assert operations(pruned, [(1, 10)]) == 2 * 10 * (128 + 80 + 80 + 16)


def test_the_count_agrees_with_pytorchs_own_counter() -> None:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    config = read_config(BASELINE)
    model = architecture_of(config).model(config, "eager").eval()
    with FlopCounterMode(display=False) as counter, torch.inference_mode():
        model(input_ids=torch.ones((2, 64), dtype=torch.long))
    assert operations(config, [(2, 64)]) == counter.get_total_flops()


def test_the_rate_is_what_another_library_reaches_on_this_machine() -> None:
    """NumPy multiplies matrices of the same size with a library of its own; neither can be far from the machine's best.

    The best of many counts for both, so that other programs on the machine do not decide.
    """
    rate = matmul_rate("cpu", "FP32")
    left, right = (np.ones((SIZE, SIZE), dtype=np.float32) for _ in range(2))

    def seconds() -> float:
        began = time.perf_counter()
        left @ right
        return time.perf_counter() - began

    numpys = 2 * SIZE**3 / min(seconds() for _ in range(20))
    assert rate is not None
    assert numpys / 4 < rate < numpys * 4


def test_there_is_no_rate_at_what_is_no_precision() -> None:
    assert matmul_rate("cpu", "made of cheese") is None


def test_products_that_take_seconds_are_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in BF16 on a processor without it, where twenty of them took 42 s in which nothing could be stopped."""
    began: list[float] = []

    def slow(*_: object) -> float:
        began.append(2.0)
        monkeypatch.setattr(floor.time, "perf_counter", lambda: sum(began))
        return 2.0

    monkeypatch.setattr(floor.time, "perf_counter", lambda: 0.0)
    monkeypatch.setattr(floor, "_seconds", slow)
    rate = matmul_rate.__wrapped__("cpu", "BF16")
    monkeypatch.undo()
    assert began == [2.0] and rate == 2 * SIZE**3 / 2.0


def test_an_engine_that_multiplies_faster_lowers_the_floors_of_its_precision() -> None:
    bf16 = replace(RAN, precision="BF16")
    records = [
        benchmark_record(10.0, floor_ms=16.0),
        benchmark_record(40.0, floor_ms=32.0, tokens=256),
        benchmark_record(40.0, floor_ms=32.0, device="cuda"),
        benchmark_record(40.0, floor_ms=32.0, ran=bf16),
        benchmark_record(40.0, floor_ms=None),
    ]
    assert [each.floor_ms for each in with_true_floors(records)] == [10.0, 20.0, 32.0, 32.0, None]
