"""Lengths padded to a few: a CUDA graph is recorded for one shape, and texts come in nearly every length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

TOKENS = 32
"""Lengths are padded to a multiple of so many."""


def padded(feeds: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
    """A model's inputs ``[n_windows, seq_len]`` with tokens behind them that no other attends to."""
    seq_len = next(iter(feeds.values())).shape[1]
    return {name: np.pad(array, ((0, 0), (0, -seq_len % TOKENS))) for name, array in feeds.items()}
