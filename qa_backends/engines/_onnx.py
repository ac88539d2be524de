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
    arrays = {name: getattr(windows, name) for name in inputs}
    # A model that tells segments apart, whose tokenizer does not: all of it is the first.
    zeros = np.zeros_like(windows.input_ids)
    return {name: zeros if each is None else np.ascontiguousarray(each) for name, each in arrays.items()}
