"""DeepSpeed-Inference: BERT's layers replaced by kernels that compute several operators at once, on a GPU."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

from qa_backends.checkpoints.architectures import architecture_of
from qa_backends.contract import Choice, SpanLogits
from qa_backends.engines._parts import in_parts
from qa_backends.engines._torch import Run, TorchEngine
from qa_backends.errors import ArtefactError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from qa_backends.contract import Windows

AT_ONCE = 16
"""Windows in a call. The kernels' workspace is made by the first one, for as many as that has, and is not checked."""
LONGEST = 512
"""Tokens of a window that it has room for, more than the kinds it takes can read."""


class DeepSpeed(TorchEngine):
    """Its kernels are compiled when it first loads. They take layers of equal width, so no pruned ones."""

    title: ClassVar = "DeepSpeed-Inference"
    short: ClassVar = "deepspeed"
    label: ClassVar = "DeepSpeed"
    in_cycles: ClassVar = True
    packages: ClassVar[tuple[str, ...]] = (*TorchEngine.packages, "deepspeed")
    install: ClassVar = "pip install --no-build-isolation deepspeed==0.19.8"
    devices: ClassVar = ("cuda",)
    kinds: ClassVar = ("bert", "roberta")  # whose layers it replaces (deepspeed/module_inject/containers/bert.py)
    options: ClassVar = {"precision": {"fp16": Choice("FP16", tolerance=5e-2, precision="FP16")}}

    def prepared(self, model: PreTrainedModel) -> Run:
        import deepspeed
        import torch

        if any(block.removed for block in architecture_of(model.config).blocks(model)):
            raise ArtefactError(
                "DeepSpeed's kernels take layers with all their heads. Choose a checkpoint that was not pruned."
            )
        dtype = torch.half if "precision" in self.chosen else torch.float32
        engine = deepspeed.init_inference(model, dtype=dtype, replace_with_kernel_inject=True, max_out_tokens=LONGEST)
        run = self.by_place(engine.module)
        run(*self.example(AT_ONCE, 8))
        return run

    def forward(self, windows: Windows) -> SpanLogits:
        return in_parts(self._logits, windows.inputs(self._inputs), AT_ONCE)

    def _autocast(self) -> AbstractContextManager[Any]:
        """None: the kernels compute in the precision that they were made for, and take no inputs in another."""
        return nullcontext()
