"""What the engines that run on PyTorch share: the model on its device, windows in, logits out."""

from __future__ import annotations

import gc
from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

from qa_backends.checkpoints.architectures import architecture_of
from qa_backends.checkpoints.files import WEIGHTS
from qa_backends.checkpoints.load import load_model
from qa_backends.checkpoints.manifest import file_hash, versions_of
from qa_backends.contract import Choice, Engine, Ran, SpanLogits, Windows
from qa_backends.errors import BackendUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy as np
    import torch
    from transformers import PreTrainedModel

Run = Callable[..., Any]
"""Takes the model's inputs by place; gives start and end logits, ``[n_windows, seq_len]`` each."""

PRECISIONS = {"torch.float32": "FP32", "torch.bfloat16": "BF16", "torch.float16": "FP16"}
AMP = {"amp": Choice("mixed precision", tolerance=5e-2, precision="BF16")}
"""Matrix products in half the bits, and in FP32 what needs more (Micikevicius et al. 2018; PyTorch's autocast)."""
FP16_NOTE = "mixed precision is FP16 on a GPU, BF16 on a CPU"


class TorchEngine(Engine):
    """FP32, or mixed precision: FP16 on a GPU, BF16 on a CPU, whose FP16 is slow where it exists at all."""

    packages: ClassVar[tuple[str, ...]] = ("torch", "transformers", "safetensors")
    reads: ClassVar = ("checkpoint",)
    options: ClassVar = {"precision": AMP}
    in_cycles: ClassVar = False
    """Whether what runs holds itself in cycles, which only a walk through all that the process holds can free."""

    @abstractmethod
    def prepared(self, model: PreTrainedModel) -> Run:
        """What computes the model's logits, ready to be timed; called without gradients."""

    def load(self, artefact: Path, device: str) -> None:
        import torch

        if device == "cuda" and not torch.cuda.is_available():
            raise BackendUnavailable(
                "PyTorch sees no CUDA GPU here.", "Choose the CPU, or install NVIDIA's driver and PyTorch's CUDA build."
            )
        # FP32 means FP32: TF32 keeps 10 bits of each factor's mantissa, and would be faster for a reason not shown.
        torch.backends.cuda.matmul.allow_tf32 = False
        self._device = torch.device(device)
        model = load_model(artefact)
        model.to(self._device)  # type: ignore[arg-type]  # transformers' stub leaves out the device
        self._inputs = architecture_of(model.config).inputs(model)
        self._hash = file_hash(artefact / WEIGHTS)
        with torch.inference_mode():
            self._run = self.prepared(model)
            start, _ = self._run(*self.example(1, 8))
        self._precision = PRECISIONS[str(start.dtype)]

    def forward(self, windows: Windows) -> SpanLogits:
        return self._logits(windows.inputs(self._inputs))

    def _logits(self, feeds: Mapping[str, np.ndarray[Any, Any]]) -> SpanLogits:
        import torch

        with torch.inference_mode():
            start, end = self._run(*[torch.from_numpy(each).to(self._device) for each in feeds.values()])
            return SpanLogits(start.float().cpu().numpy(), end.float().cpu().numpy())

    def describe(self) -> Ran:
        import torch

        return Ran(
            device=torch.cuda.get_device_name() if self._device.type == "cuda" else "CPU",
            provider=f"{self.title} {self._device.type.upper()}",
            precision=self._precision,
            threads=torch.get_num_threads(),
            fused_ops={},
            file_hash=self._hash,
            versions=versions_of(self.packages),
            notes=(FP16_NOTE,) if (self.chosen.get("precision"), self._precision) == ("amp", "FP16") else (),
        )

    def close(self) -> None:
        import torch

        del self._run
        if self.in_cycles:
            gc.collect()
        if self._device.type == "cuda":
            torch.cuda.empty_cache()

    def by_place(self, model: PreTrainedModel) -> torch.nn.Module:
        """The model with inputs by place and start and end logits as a plain pair, in the chosen precision."""
        import torch

        names, autocast = self._inputs, self._autocast

        class Spans(torch.nn.Module):
            def __init__(self, whole: PreTrainedModel) -> None:  # no name of outside: classes live until the collector
                super().__init__()
                self.model = whole

            def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
                with autocast():
                    found = self.model(**dict(zip(names, inputs, strict=True)))
                return found.start_logits, found.end_logits

        return Spans(model).eval()

    def _autocast(self) -> AbstractContextManager[Any]:
        """Mixed precision, where it was chosen."""
        import torch

        if "precision" not in self.chosen:
            return nullcontext()
        dtype = torch.float16 if self._device.type == "cuda" else torch.bfloat16
        return torch.autocast(self._device.type, dtype=dtype)

    def example(self, n_windows: int, seq_len: int) -> list[torch.Tensor]:
        """Inputs of that shape, by place: one token over and over, none of it padding."""
        import torch

        ids = torch.zeros((n_windows, seq_len), dtype=torch.long, device=self._device)
        return [torch.ones_like(ids) if name == "attention_mask" else ids for name in self._inputs]
