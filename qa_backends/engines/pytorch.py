"""PyTorch: the model as transformers runs it, operator by operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from qa_backends.engines._torch import Run, TorchEngine

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class PyTorch(TorchEngine):
    """Eager PyTorch with its fused attention (``scaled_dot_product_attention``)."""

    title: ClassVar = "PyTorch"
    short: ClassVar = ""

    def prepared(self, model: PreTrainedModel) -> Run:
        return self.by_place(model)
