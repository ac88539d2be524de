"""What most people run today: the question-answering pipeline of transformers, on the same weights and questions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from qa_backends.artefacts.manifest import file_hash, tool_versions
from qa_backends.contract import DEFAULT_SETTINGS, Ran, StageTimes
from qa_backends.measure.plan import PIPELINE
from qa_backends.runtime import on_engine_thread, translated

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from qa_backends.contract import Query


class PipelineReference:
    """``pipeline("question-answering")`` with the settings of our reader. Its whole answer is one time, in no parts."""

    def __init__(self, checkpoint: Path, device: str) -> None:
        """Raises BackendFailed where the pipeline cannot be made."""
        with translated(PIPELINE, "getting ready"):
            self._answer = on_engine_thread(lambda: _pipeline(checkpoint, device))
            self.ran = on_engine_thread(lambda: _ran(checkpoint, device))

    def __call__(self, queries: Sequence[Query]) -> StageTimes:
        """Answers all queries as one batch. Raises BackendFailed where the pipeline fails."""
        with translated(PIPELINE, "answering"):
            return on_engine_thread(lambda: self._timed(queries))

    def _timed(self, queries: Sequence[Query]) -> StageTimes:
        began = time.perf_counter()
        self._answer(
            question=[each.question for each in queries],
            context=[each.context for each in queries],
            batch_size=len(queries),
            max_seq_len=DEFAULT_SETTINGS.max_seq_len,
            doc_stride=DEFAULT_SETTINGS.stride,
            max_question_len=DEFAULT_SETTINGS.max_question_tokens,
            max_answer_len=DEFAULT_SETTINGS.max_answer_tokens,
            handle_impossible_answer=True,
        )
        return StageTimes(0.0, 0.0, time.perf_counter() - began, 0.0)


def _ran(checkpoint: Path, device: str) -> Ran:
    import torch

    return Ran(
        device=torch.cuda.get_device_name() if device == "cuda" else "CPU",
        provider="transformers pipeline, PyTorch",
        precision="FP32",
        threads=torch.get_num_threads(),
        fused_ops={},
        file_hash=file_hash(checkpoint / "model.safetensors"),
        versions=tool_versions(),
    )


def _pipeline(checkpoint: Path, device: str) -> Any:
    from transformers import AutoTokenizer, pipeline

    from qa_backends.artefacts.checkpoint import load_model

    return pipeline(
        "question-answering",
        model=load_model(checkpoint),
        tokenizer=AutoTokenizer.from_pretrained(checkpoint),
        device=device,
    )
