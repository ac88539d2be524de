"""Runtimes as their own documentation shows them: a tokenizer, a session on the exported graph, the best start and end.

Nothing of ours is around them but the clock. They read what fits into the model's positions and cut the rest off.
Sources: ONNX Runtime's Python API, "Load and run a model"; OpenVINO's guide, "Integrate OpenVINO with your
application".
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from qa_backends.checkpoints.architectures import architecture_of
from qa_backends.checkpoints.load import read_config
from qa_backends.checkpoints.manifest import file_hash, versions_of
from qa_backends.contract import Ran, StageTimes
from qa_backends.engines.openvino import without_telemetry
from qa_backends.runtime.turns import on_engine_thread

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from qa_backends.contract import Query, ReaderSettings

GRAPH = "model.onnx"
PRECISIONS = {"f32": "FP32", "bf16": "BF16", "f16": "FP16"}


class Plain(ABC):
    """One runtime; made and asked on the engines' thread, like every engine.

    ``takes`` names the graph's inputs: of some models a tokenizer makes more than those.
    """

    ran: Ran
    takes: Sequence[str]

    def __init__(self, checkpoint: Path, artefact: Path, device: str, settings: ReaderSettings) -> None:
        from transformers import AutoTokenizer

        tokenizers: Any = AutoTokenizer  # transformers leaves it untyped
        self._tokenizer: Any = tokenizers.from_pretrained(checkpoint)
        config = read_config(checkpoint)
        self._positions = architecture_of(config).max_tokens(config)
        self._open(artefact / GRAPH, device)

    @abstractmethod
    def _open(self, graph: Path, device: str) -> None:
        """Loads the graph, and says what it takes and what runs."""

    @abstractmethod
    def _logits(self, inputs: dict[str, Any]) -> tuple[Any, Any]:
        """Start and end logits ``[n, seq_len]``."""

    def answer(self, queries: Sequence[Query], batch: int) -> StageTimes:
        """Answers all queries in batches of so many, and says how long that took as a whole."""
        began = time.perf_counter()
        for first in range(0, len(queries), batch):
            self._answer_batch(queries[first : first + batch])
        return StageTimes(0.0, 0.0, time.perf_counter() - began, 0.0)

    def _answer_batch(self, queries: Sequence[Query]) -> None:
        inputs = self._tokenizer(
            [each.question for each in queries], [each.context for each in queries],
            truncation="only_second", max_length=self._positions, padding=True, return_tensors="np",
        )  # fmt: skip
        starts, ends = self._logits({name: inputs[name] for name in self.takes})
        for ids, start, end in zip(inputs["input_ids"], starts, ends, strict=True):
            self._tokenizer.decode(ids[int(start.argmax()) : int(end.argmax()) + 1])

    def close(self) -> None:
        """On the thread that loaded it: some runtimes mind."""
        on_engine_thread(self._unload)

    @abstractmethod
    def _unload(self) -> None:
        """Gives the memory back."""


class PlainOnnxRuntime(Plain):
    def _open(self, graph: Path, device: str) -> None:
        import onnxruntime

        wanted = ["CUDAExecutionProvider", "CPUExecutionProvider"] if device == "cuda" else ["CPUExecutionProvider"]
        self._session: Any = onnxruntime.InferenceSession(str(graph), providers=wanted)
        self.takes = [each.name for each in self._session.get_inputs()]
        provider = self._session.get_providers()[0]
        precision = "FP32" if provider == "CPUExecutionProvider" else _by_itself()
        self.ran = _ran(graph, f"ONNX Runtime as documented, {provider}", precision, 0, "onnxruntime")

    def _logits(self, inputs: dict[str, Any]) -> tuple[Any, Any]:
        start, end = self._session.run(["start_logits", "end_logits"], inputs)
        return start, end

    def _unload(self) -> None:
        self._session = None


def _by_itself() -> str:
    """The precision in which ONNX Runtime multiplies FP32 on a GPU unless it is told not to: TF32 from Ampere on."""
    import torch

    return "TF32" if torch.cuda.get_device_capability() >= (8, 0) else "FP32"


class PlainOpenVino(Plain):
    def _open(self, graph: Path, device: str) -> None:
        without_telemetry()
        import openvino

        self._compiled: Any = openvino.Core().compile_model(str(graph), "CPU")
        self.takes = [each.get_any_name() for each in self._compiled.inputs]
        hint = self._compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
        threads = int(self._compiled.get_property("INFERENCE_NUM_THREADS"))
        self.ran = _ran(graph, "OpenVINO as documented, CPU", PRECISIONS[hint], threads, "openvino")

    def _logits(self, inputs: dict[str, Any]) -> tuple[Any, Any]:
        found = self._compiled(inputs)
        return found["start_logits"], found["end_logits"]

    def _unload(self) -> None:
        self._compiled = None


def _ran(graph: Path, provider: str, precision: str, threads: int, package: str) -> Ran:
    """``threads`` of 0: as many as the runtime takes for itself."""
    return Ran(
        device="CPU" if "CUDA" not in provider else "GPU",
        provider=provider,
        precision=precision,
        threads=threads,
        fused_ops={},
        file_hash=file_hash(graph),
        versions=versions_of((package, "transformers", "tokenizers")),
    )
