"""torch.compile: the model's graph captured, its operators fused and compiled for this machine when it is loaded."""

from __future__ import annotations

import importlib.util
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

from qa_backends.checkpoints.architectures import architecture_of
from qa_backends.contract import SpanLogits
from qa_backends.engines._buckets import padded
from qa_backends.engines._torch import Run, TorchEngine
from qa_backends.errors import ArtefactError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from transformers import PreTrainedModel

    from qa_backends.contract import Windows

COMPILERS = ("c++", "g++", "clang++", "cl")
"""What PyTorch's code generator looks for on a CPU (torch._inductor.cpp_builder)."""
COMPILED = ((2, 48), (1, 48))
"""One program for batches of any size and length, and one for single windows: PyTorch compiles a size of 1 apart."""
UNTIL_RECORDED = 2
"""Calls of a new shape on a GPU before it is replayed: one as it is, one that is recorded (torch._inductor
.cudagraph_trees)."""


@contextmanager
def compiler_errors() -> Iterator[None]:
    """Around what compiles, or may. Raises ArtefactError, which says what to delete, where PyTorch's compiler fails."""
    from torch._dynamo.exc import BackendCompilerFailed
    from torch._inductor.runtime.cache_dir_utils import cache_dir

    try:
        yield
    except BackendCompilerFailed as error:
        raise ArtefactError(
            f"torch.compile failed ({type(error.inner_exception).__name__}). Where a process was stopped while it "
            f"compiled, PyTorch has kept half a library: delete {cache_dir()}, and try again."
        ) from error


class TorchCompile(TorchEngine):
    """Compiling takes from seconds to a minute, and is part of loading."""

    title: ClassVar = "torch.compile"
    short: ClassVar = "compiled"
    label: ClassVar = "compiled"
    in_cycles: ClassVar = True

    @classmethod
    def refusal(cls, options: Mapping[str, str], device: str | None) -> tuple[str, str] | None:
        if device == "cuda" and importlib.util.find_spec("triton") is None:
            return "torch.compile needs Triton on a GPU, and it is not here.", "Install PyTorch's CUDA build for Linux."
        if any(map(shutil.which, COMPILERS)):
            return None
        return "torch.compile needs a C++ compiler, and there is none here.", "Install one: apt-get install g++"

    def prepared(self, model: PreTrainedModel) -> Run:
        self._positions = architecture_of(model.config).max_tokens(model.config.to_dict())
        self._recorded: set[tuple[int, ...]] = set()
        with compiler_errors():
            return self._compiled(model)

    def _compiled(self, model: PreTrainedModel) -> Run:
        import torch

        mode = "reduce-overhead" if self._device.type == "cuda" else None  # on a GPU: recorded as CUDA graphs
        # Isolated: else all models compiled in a process share eight programs, and the ninth would not be compiled.
        compiled: Run = torch.compile(  # type: ignore[call-overload]  # torch's stubs leave the last argument out
            self.by_place(model), dynamic=True, mode=mode, isolate_recompiles=True
        )
        for shape in COMPILED:
            compiled(*self.example(*shape))
        return compiled

    def forward(self, windows: Windows) -> SpanLogits:
        """On a GPU every shape is recorded as a graph of its own, so lengths are few there; at its first call, so that
        the second, which is shown as a warm one, is replayed."""
        if self._device.type == "cpu":
            return super().forward(windows)
        feeds = padded(windows.inputs(self._inputs), self._positions)
        if (shape := next(iter(feeds.values())).shape) not in self._recorded:
            for _ in range(UNTIL_RECORDED):
                self._logits(feeds)
            self._recorded.add(shape)
        found = self._logits(feeds)
        return SpanLogits(found.start[:, : windows.seq_len], found.end[:, : windows.seq_len], computed=found.shape)
