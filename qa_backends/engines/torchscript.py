"""TorchScript: the model traced once into a graph of its own and frozen, run without Python between its operators."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, ClassVar

from qa_backends.engines._torch import Run, TorchEngine

if TYPE_CHECKING:
    from transformers import PreTrainedModel

TRACED = (2, 48)
"""Windows and tokens of the trace. Sizes stay free: a trace records what they were computed from."""
SETTLING = ((1, 32), (1, 128), (2, 64))
"""Shapes that are run twice while loading: the first runs of a graph record what they see, and the next ones compile
it anew with that (PyTorch's profiling executor). That is no part of anybody's question."""


class TorchScript(TorchEngine):
    """Mixed precision is decided while tracing: the casts are then part of the graph."""

    title: ClassVar = "TorchScript"
    short: ClassVar = "ts"
    label: ClassVar = "TorchScript"

    def prepared(self, model: PreTrainedModel) -> Run:
        import torch

        # Tracing reads every attribute, also the encoder's loss, which it has none of: transformers would warn.
        encoder: Any = model.base_model
        encoder.loss_type = "ForQuestionAnswering"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that TorchScript is no longer developed, and that constants are constants
            trace: Run = torch.jit.trace  # PyTorch leaves it untyped
            traced = trace(self.by_place(model), tuple(self.example(*TRACED)), check_trace=False)
            frozen: Run = torch.jit.freeze(traced)
        for shape in SETTLING:
            for _ in range(2):
                frozen(*self.example(*shape))
        return frozen
