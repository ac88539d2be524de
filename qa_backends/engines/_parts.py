"""Windows in parts, for engines that take only so many of them in a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from qa_backends.contract import SpanLogits

if TYPE_CHECKING:
    from collections.abc import Callable

    Feeds = dict[str, np.ndarray[Any, Any]]


def in_parts(forward: Callable[[Feeds], SpanLogits], feeds: Feeds, most: int) -> SpanLogits:
    """Logits of inputs ``[n_windows, seq_len]`` by a call that takes at most ``most`` windows."""
    n_windows = len(next(iter(feeds.values())))
    parts = [
        forward({name: array[first : first + most] for name, array in feeds.items()})
        for first in range(0, n_windows, most)
    ]
    return SpanLogits(np.concatenate([each.start for each in parts]), np.concatenate([each.end for each in parts]))
