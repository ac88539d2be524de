"""DeepSpeed-Inference: BERT's layers replaced by kernels that compute several operators at once, on a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from qa_backends.checkpoints.architectures import architecture_of
from qa_backends.contract import Choice
from qa_backends.engines._torch import Run, TorchEngine
from qa_backends.errors import ArtefactError

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class DeepSpeed(TorchEngine):
    """Its kernels are compiled when it first loads. They take layers of equal width, so no pruned ones."""

    title: ClassVar = "DeepSpeed-Inference"
    short: ClassVar = "deepspeed"
    label: ClassVar = "DeepSpeed"
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
        engine = deepspeed.init_inference(model, dtype=dtype, replace_with_kernel_inject=True)
        return self.by_place(engine.module)
