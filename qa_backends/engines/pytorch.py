"""PyTorch: the model as transformers runs it, on the CPU or a CUDA GPU, in FP32."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from qa_backends.checkpoints.load import load_model
from qa_backends.checkpoints.manifest import WEIGHTS, file_hash, versions_of
from qa_backends.contract import Engine, Ran, SpanLogits, Windows
from qa_backends.errors import BackendUnavailable

if TYPE_CHECKING:
    from pathlib import Path


class PyTorch(Engine):
    """Eager PyTorch with its fused attention (``scaled_dot_product_attention``)."""

    title: ClassVar = "PyTorch"
    short: ClassVar = ""
    packages: ClassVar = ("torch", "transformers", "safetensors")
    reads: ClassVar = ("checkpoint",)

    def load(self, artefact: Path, device: str) -> None:
        import torch

        if device == "cuda" and not torch.cuda.is_available():
            raise BackendUnavailable(
                "PyTorch sees no CUDA GPU here.", "Choose the CPU, or install NVIDIA's driver and PyTorch's CUDA build."
            )
        # FP32 means FP32: TF32 keeps 10 bits of each factor's mantissa, and would be faster for a reason not shown.
        torch.backends.cuda.matmul.allow_tf32 = False
        self._device = torch.device(device)
        self._model = load_model(artefact)
        self._model.to(self._device)  # type: ignore[arg-type]  # transformers' stub leaves out the device
        self._hash = file_hash(artefact / WEIGHTS)

    def forward(self, windows: Windows) -> SpanLogits:
        import torch

        arrays = {"input_ids": windows.input_ids, "attention_mask": windows.attention_mask}
        if windows.token_type_ids is not None:
            arrays["token_type_ids"] = windows.token_type_ids
        with torch.inference_mode():
            inputs = {name: torch.from_numpy(array).to(self._device) for name, array in arrays.items()}
            out = self._model(**inputs)
            return SpanLogits(out.start_logits.cpu().numpy(), out.end_logits.cpu().numpy())

    def describe(self) -> Ran:
        import torch

        device = torch.cuda.get_device_name() if self._device.type == "cuda" else "CPU"
        return Ran(
            device=device,
            provider=f"PyTorch {self._device.type.upper()}",
            precision="FP32",
            threads=torch.get_num_threads(),
            fused_ops={},
            file_hash=self._hash,
            versions=versions_of(self.packages),
        )

    def close(self) -> None:
        import torch

        del self._model
        if self._device.type == "cuda":
            torch.cuda.empty_cache()
