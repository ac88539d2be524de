"""transformers' own question-answering pipeline, loaded with the settings of our reader."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from qa_backends.checkpoints.files import WEIGHTS
from qa_backends.checkpoints.load import load_model
from qa_backends.checkpoints.manifest import file_hash, versions_of
from qa_backends.contract import Ran, StageTimes
from qa_backends.runtime.turns import on_engine_thread

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from qa_backends.contract import Query, ReaderSettings

PACKAGES = ("torch", "transformers", "tokenizers")


class LoadedPipeline:
    """Made and asked on the engines' thread, like every engine."""

    def __init__(self, checkpoint: Path, artefact: Path, device: str, settings: ReaderSettings) -> None:
        """The artefact of the backend whose weights it runs is the checkpoint itself."""
        import torch
        from transformers import AutoTokenizer, pipeline
        from transformers.utils import logging as of_transformers

        self._settings = settings
        make: Any = pipeline  # its many overloads do not fit what they describe
        tokenizers: Any = AutoTokenizer  # transformers leaves it untyped
        parts = {"model": load_model(checkpoint), "tokenizer": tokenizers.from_pretrained(checkpoint)}
        before = of_transformers.get_verbosity()
        of_transformers.set_verbosity(
            logging.ERROR
        )  # or it says on which device it is, in the middle of a command's output
        try:
            self._pipeline: Any = make("question-answering", **parts, device=device)
        finally:
            of_transformers.set_verbosity(before)
        self.ran = Ran(
            device=torch.cuda.get_device_name() if device == "cuda" else "CPU",
            provider="transformers pipeline, PyTorch",
            precision="FP32",
            threads=torch.get_num_threads(),
            fused_ops={},
            file_hash=file_hash(checkpoint / WEIGHTS),
            versions=versions_of(PACKAGES),
        )

    def answer(self, queries: Sequence[Query], batch: int) -> StageTimes:
        """Answers all queries in batches of so many, and says how long that took as a whole."""
        began = time.perf_counter()
        self._pipeline(
            question=[each.question for each in queries],
            context=[each.context for each in queries],
            batch_size=batch,
            max_seq_len=self._settings.max_seq_len,
            doc_stride=self._settings.stride,
            max_question_len=self._settings.max_question_tokens,
            max_answer_len=self._settings.max_answer_tokens,
            handle_impossible_answer=True,
        )
        return StageTimes(0.0, 0.0, time.perf_counter() - began, 0.0)

    def close(self) -> None:
        """On the thread that loaded it: some runtimes mind."""
        on_engine_thread(self._unload)

    def _unload(self) -> None:
        import torch

        self._pipeline = None
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
