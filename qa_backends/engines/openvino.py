"""OpenVINO: the exported ONNX graph on a CPU, in FP32 or in the BF16 that newer processors multiply twice as fast."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from qa_backends.checkpoints.manifest import file_hash, versions_of
from qa_backends.contract import Choice, Engine, Ran, SpanLogits, Windows
from qa_backends.engines._buckets import POSITIONS, padded
from qa_backends.engines._onnx import FILE, OUTPUTS
from qa_backends.errors import ArtefactError
from qa_backends.limits import has_bf16, thread_count

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

HINTS = {"": "f32", "bf16": "bf16"}
"""What OpenVINO is told for each value of ``precision``: told nothing, it takes BF16 wherever the processor has it."""
NAMES = {"f32": "FP32", "bf16": "BF16", "f16": "FP16", "u8": "INT8", "i8": "INT8"}
"""How it calls what it computes in, once the graph is compiled."""
SHORTEST = 64
"""Tokens that are computed at least: of 32 exactly, the logits of INT8 with the rest in BF16 are off by 1 and more
(OpenVINO 2026.4, pruned; Xeon with AMX), of no other length that was tried, from 20 to 384, by more than 0.2."""
PRODUCTS = "FullyConnected"
"""What it calls products with constant weights, where the time goes."""


def without_telemetry() -> None:
    """Called before OpenVINO is imported: keeps it from telling its makers so, with a number of the user's that it
    would keep in their home directory. It does without the package that sends it, where that cannot be imported."""
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]  # Python's own sign for "not there"


without_telemetry()  # here, since an engine's packages are imported before ``load``, where their time is not counted


class OpenVino(Engine):
    """One stream on all threads, as OpenVINO's own hint for latency sets it."""

    title: ClassVar = "OpenVINO"
    short: ClassVar = "ov"
    label: ClassVar = "OpenVINO"
    packages: ClassVar = ("openvino",)
    portable: ClassVar = ("openvino", "openvino")
    devices: ClassVar = ("cpu",)
    # Not DeBERTa: its exported graph branches on shapes, and OpenVINO's CPU plug-in does not run those branches.
    kinds: ClassVar = ("albert", "bert", "distilbert", "electra", "mpnet", "roberta", "xlm-roberta")
    reads: ClassVar = ("onnx", "onnx-qdq")
    called_anywhere: ClassVar = ("cpu",)
    options: ClassVar = {"precision": {"bf16": Choice("BF16", tolerance=5e-2, precision="BF16")}}

    @classmethod
    def refusal(cls, options: Mapping[str, str], device: str | None) -> tuple[str, str] | None:
        if options.get("precision") == "bf16" and not has_bf16("cpu"):
            return "This processor has no BF16 arithmetic.", "Choose the backend without BF16, which computes in FP32."
        return None

    def load(self, artefact: Path, device: str) -> None:
        import openvino

        self._hash = file_hash(artefact / FILE)
        core = openvino.Core()
        settings = {
            "INFERENCE_PRECISION_HINT": HINTS[self.chosen.get("precision", "")],
            "INFERENCE_NUM_THREADS": thread_count(),
            "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY",
        }
        try:
            self._compiled: Any = core.compile_model(str(artefact / FILE), "CPU", settings)
        except RuntimeError as error:
            raise ArtefactError(f"OpenVINO cannot load {artefact.name}: {error}") from error
        self._request: Any = self._compiled.create_infer_request()
        self._tensor: Any = openvino.Tensor
        self._inputs = [each.get_any_name() for each in self._compiled.inputs]

    def forward(self, windows: Windows) -> SpanLogits:
        # Tensors on the arrays where they are, and results read where they lie: handed to ``infer``, the same arrays
        # take 0.06 ms longer, of 1.35 at 128 tokens (pruned-deep in INT8; Xeon with AMX, 2 cores).
        # It prepares its products for each shape that it first sees, and texts come in nearly every length: unpadded, a
        # new length took 120 ms, and 7 after that (pruned in INT8; Xeon with AMX, 2 cores). Padding cost no time there.
        inputs = padded(windows.inputs(self._inputs), POSITIONS, SHORTEST)
        for place, array in enumerate(inputs.values()):
            self._request.set_input_tensor(place, self._tensor(array, shared_memory=True))
        self._request.infer(share_outputs=True)
        tensors = (self._request.get_tensor(name).data for name in OUTPUTS)
        start, end = (np.array(each[:, : windows.seq_len]) for each in tensors)  # copies: what they lie in is reused
        return SpanLogits(start, end, computed=next(iter(inputs.values())).shape)

    def describe(self) -> Ran:
        precision = self._precision()
        rest = NAMES[self._compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()]
        return Ran(
            device="CPU",
            provider="OpenVINO CPU",
            precision=precision,
            threads=int(self._compiled.get_property("INFERENCE_NUM_THREADS")),
            fused_ops={},
            file_hash=self._hash,
            versions=versions_of(self.packages),
            notes=(f"what is not in {precision} is in {rest}",) if precision != rest else (),
        )

    def _precision(self) -> str:
        """What most products with weights are computed in, by the compiled graph itself."""
        found = Counter(
            str(node.get_rt_info()["runtimePrecision"].astype(str))
            for node in self._compiled.get_runtime_model().get_ops()
            if node.get_rt_info()["layerType"].astype(str) == PRODUCTS
        )
        most, _ = found.most_common(1)[0]
        return NAMES.get(most, most)

    def close(self) -> None:
        del self._request, self._compiled
