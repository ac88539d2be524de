"""Which batches of a text are new to an engine: a runtime compiles, plans or allocates once for each shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from qa_backends.contract import IntArray, Windows


def first_of_each_shape(windows: Windows, batches: Iterable[IntArray]) -> list[IntArray]:
    """Of the batches, given by their rows, the first of each ``(n_windows, seq_len)``."""
    found: dict[tuple[int, int], IntArray] = {}
    for rows in batches:
        found.setdefault((len(rows), int(windows.lengths[rows].max())), rows)
    return list(found.values())


def consecutive(batches: Sequence[IntArray]) -> list[IntArray]:
    """The rows of the same batches in a ``Windows`` that holds nothing else."""
    sizes = [len(each) for each in batches]
    return np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
