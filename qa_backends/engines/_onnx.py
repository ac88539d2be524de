"""What the engines that read ONNX graphs share: the file, and its inputs and outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from qa_backends.contract import Windows

FILE = "model.onnx"
OUTPUTS = ("start_logits", "end_logits")


def feeds_of(windows: Windows, inputs: Iterable[str]) -> dict[str, np.ndarray[Any, Any]]:
    """The windows as a graph with these inputs takes them."""
    return {name: np.ascontiguousarray(getattr(windows, name)) for name in inputs}
