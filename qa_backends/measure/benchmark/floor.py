"""The compute floor: what a question would cost if nothing but the model's matrix products took time."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import torch

    from qa_backends.measure.results.records import BenchmarkRecord

SIZE = 1024
"""Rows and columns of the matrices whose product is timed: large enough to fill a processor, small enough to be quick.

An accelerator is filled by larger ones.
"""
SIZE_ON_GPU = 8192
TRIES = 20
MOST_TRYING_S = 1.0
"""No further product begins later: nobody can stop them, and a processor without BF16 takes seconds for each."""


@dataclass(frozen=True, slots=True)
class Floor:
    """What a floor is made of: a checkpoint's config, and operations a second of the device at the precision.

    It says what a question would cost if nothing but the model's matrix products took time, padding included.
    """

    config: dict[str, Any]
    rate: float

    def seconds(self, shapes: Sequence[tuple[int, int]]) -> float:
        """For batches of ``(n_windows, seq_len)``."""
        return operations(self.config, shapes) / self.rate


def operations(config: dict[str, Any], shapes: Sequence[tuple[int, int]]) -> int:
    """Multiplications and additions of the encoder's matrix products, for batches of ``(n_windows, seq_len)``.

    Counted from the checkpoint's own shapes, heads and FFN columns that were removed left out; embeddings, softmax and
    normalisation are not matrix products.
    """
    return sum(2 * n * seq_len * _products_per_token(config, seq_len) for n, seq_len in shapes)


def _products_per_token(config: dict[str, Any], seq_len: int) -> int:
    hidden, layers = config["hidden_size"], config["num_hidden_layers"]
    head_size = hidden // config["num_attention_heads"]
    removed = {int(layer): len(heads) for layer, heads in (config.get("pruned_heads") or {}).items()}
    columns = config.get("intermediate_sizes") or [config["intermediate_size"]] * layers
    total: int = 2 * hidden  # the output layer
    for layer in range(layers):
        attended = (config["num_attention_heads"] - removed.get(layer, 0)) * head_size
        total += 4 * hidden * attended  # query, key, value, output
        total += 2 * seq_len * attended  # scores, and the values they weigh
        total += 2 * hidden * columns[layer]
    return total


@cache
def matmul_rate(device: str, precision: str) -> float | None:
    """Operations a second of the best of several large matrix products, begun within about a second.

    The best and not the median: a floor is what the machine can do when nothing is in its way. ``None`` for a precision
    that PyTorch does not multiply in.
    """
    import torch

    dtype = {"FP32": torch.float32, "FP16": torch.float16, "BF16": torch.bfloat16}.get(precision)
    if dtype is None:
        return None
    size = SIZE_ON_GPU if device == "cuda" else SIZE
    left, right = (torch.ones((size, size), dtype=dtype, device=device) for _ in range(2))
    return 2 * size**3 / min(_tries(left, right))


def _tries(left: torch.Tensor, right: torch.Tensor) -> Iterator[float]:
    """Seconds of each product, one at least."""
    deadline = time.perf_counter() + MOST_TRYING_S
    for _ in range(TRIES):
        yield _seconds(left, right)
        if time.perf_counter() > deadline:
            return


def _seconds(left: torch.Tensor, right: torch.Tensor) -> float:
    import torch

    began = time.perf_counter()
    torch.mm(left, right)
    if left.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - began


def with_true_floors(records: Sequence[BenchmarkRecord]) -> list[BenchmarkRecord]:
    """All records of one benchmark, with floors that no answer went below.

    Some engine may multiply faster than PyTorch, and then what PyTorch reaches is no floor. So the rate at a precision
    on a device is the best that was seen there, of the products or of whole answers.
    """
    surpassed: dict[tuple[str, str], float] = {}
    for each in records:
        if each.floor_ms is not None:
            rate = each.device, each.ran.precision
            surpassed[rate] = max(surpassed.get(rate, 1.0), each.floor_ms / each.p50_ms)
    return [
        replace(each, floor_ms=each.floor_ms / surpassed[each.device, each.ran.precision]) if each.floor_ms else each
        for each in records
    ]
