"""CUDA graphs: a forward call is recorded once for each shape, and then replayed without launching kernel by kernel.

A small model's kernels take less time than launching them does. A recording holds for one shape and one place in
memory, so each shape has inputs and outputs of its own (onnxruntime's documentation, CUDA execution provider, "Using
CUDA Graphs").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from qa_backends.checkpoints.architectures import LENGTHS
from qa_backends.contract import SpanLogits
from qa_backends.engines._buckets import POSITIONS, padded
from qa_backends.engines._onnx import OUTPUTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    import onnxruntime

MOST = 24
"""Recordings that are kept; each holds its activations' memory. Shapes beyond these run as if there were none."""
MOST_BATCHES = MOST - POSITIONS // LENGTHS
"""Of several windows: all lengths of a single one find room, whatever batches came before."""
NOT_RECORDED = -1
"""As a recording's number: onnxruntime neither records nor replays."""


@dataclass(frozen=True, slots=True)
class _Bound:
    """Inputs and outputs of one shape, in places of their own, and how to run with them."""

    inputs: dict[str, onnxruntime.OrtValue]
    outputs: list[onnxruntime.OrtValue]
    binding: Any
    options: onnxruntime.RunOptions


class Replay:
    """Runs a session whose provider records graphs."""

    def __init__(self, session: onnxruntime.InferenceSession, device: str) -> None:
        self._session = session
        self._device = device
        self._recorded: dict[tuple[int, int], _Bound] = {}

    def run(self, feeds: Mapping[str, np.ndarray[Any, Any]]) -> SpanLogits:
        """Logits of inputs ``[n_windows, seq_len]``; computed is a length of few."""
        seq_len, wide = next(iter(feeds.values())).shape[1], padded(feeds, POSITIONS)
        shape = next(iter(wide.values())).shape
        bound = self._recorded.get(shape) or self._bind(shape, feeds)
        for name, array in wide.items():
            bound.inputs[name].update_inplace(array)
        self._session.run_with_iobinding(bound.binding, bound.options)
        start, end = (each.numpy()[:, :seq_len].copy() for each in bound.outputs)  # the next call writes there again
        return SpanLogits(start, end, computed=shape)

    def _bind(self, shape: tuple[int, int], feeds: Mapping[str, np.ndarray[Any, Any]]) -> _Bound:
        import onnxruntime

        def place(kind: Any) -> onnxruntime.OrtValue:
            return onnxruntime.OrtValue.ortvalue_from_shape_and_type(list(shape), kind, self._device, 0)

        inputs = {name: place(array.dtype.type) for name, array in feeds.items()}
        outputs = [place(np.float32) for _ in OUTPUTS]
        binding = self._session.io_binding()
        for name, value in inputs.items():
            binding.bind_ortvalue_input(name, value)
        for name, value in zip(OUTPUTS, outputs, strict=True):
            binding.bind_ortvalue_output(name, value)
        options = onnxruntime.RunOptions()
        batches = sum(windows > 1 for windows, _ in self._recorded)
        full = len(self._recorded) == MOST or (shape[0] > 1 and batches == MOST_BATCHES)
        number = NOT_RECORDED if full else len(self._recorded) + 1
        options.add_run_config_entry("gpu_graph_id", str(number))
        bound = _Bound(inputs, outputs, binding, options)
        if number != NOT_RECORDED:
            self._recorded[shape] = bound
        return bound
