"""The compute floor: what a question would cost if nothing but the model's matrix products took time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

SIZE = 1024
"""Rows and columns of the matrices whose product is timed: large enough to fill a processor, small enough to be quick.

An accelerator is filled by larger ones.
"""
SIZE_ON_GPU = 8192
TRIES = 20


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
    """Operations a second of the best of several large matrix products.

    The best and not the median: a floor is what the machine can do when nothing is in its way. ``None`` for a precision
    that PyTorch does not multiply in.
    """
    import torch

    dtype = {"FP32": torch.float32, "FP16": torch.float16, "BF16": torch.bfloat16}.get(precision)
    if dtype is None:
        return None
    size = SIZE_ON_GPU if device == "cuda" else SIZE
    left, right = (torch.ones((size, size), dtype=dtype, device=device) for _ in range(2))
    best = min(_seconds(left, right) for _ in range(TRIES))
    return 2 * size**3 / best


def _seconds(left: torch.Tensor, right: torch.Tensor) -> float:
    import torch

    began = time.perf_counter()
    torch.mm(left, right)
    if left.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - began
