"""ONNX Runtime: a built graph on the CPU or, with its inputs and outputs bound to device memory, on a CUDA GPU.

On a GPU, two options: CUDA graphs, and TensorRT in place of ONNX Runtime's own kernels.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any, ClassVar

from qa_backends.checkpoints.manifest import file_hash, read_manifest, versions_of
from qa_backends.contract import Choice, Engine, Ran, SpanLogits, Windows
from qa_backends.engines._cpu_graph import AS_IT_STANDS, SLOW, for_cpu, suits
from qa_backends.engines._onnx import FILE, OUTPUTS
from qa_backends.engines._parts import in_parts
from qa_backends.engines._replay import Replay
from qa_backends.errors import ArtefactError, BackendUnavailable
from qa_backends.limits import thread_count
from qa_backends.paths import cache_root

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import onnxruntime

    from qa_backends.engines._parts import Feeds

CPU, CUDA, TENSORRT = "CPUExecutionProvider", "CUDAExecutionProvider", "TensorrtExecutionProvider"
AT_ONCE = 192
"""Windows that TensorRT's engine is given in a call: ``BATCH_TOKENS`` in the shortest windows that are usual."""
SHAPES = {"min": "1x1", "opt": "1x384", "max": f"{AT_ONCE}x512"}
"""Windows and tokens that it is built for."""
TENSORRT_PACKAGES = ("tensorrt", "tensorrt_libs")
INSTALL_TENSORRT = "pip install 'tensorrt-cu13<11'"
"""ONNX Runtime is linked with version 10."""
PLAIN = "onnx"
"""The step whose graph TensorRT reads: later ones make operators that it does not know, or round for themselves."""
IDLE_SPIN_US = 2_000
"""How long idle threads keep spinning before they sleep: long enough to be awake for the next run of a series, and
asleep before another engine is timed (see ``rounds.settle``). ONNX Runtime counts turns of a loop for it, which last as
long as the processor's own pause: told 10 ms, they spun for 10 on an AMD EPYC, 20 on a Xeon with AMX and 48 on one
without, at 2.5 GHz, where 2 ms become 17. Left alone they spin for 30 ms, and take the cores from every other engine
meanwhile; stopped at once, every run has to wake them, and Linux may wake one on the very core whose thread waits for
it: runs of 0.8 ms took 1.6 ms in the median and 5.5 ms in one of ten (AMD EPYC, 2 cores)."""


class OnnxRuntime(Engine):
    """One session of one graph. On the CPU an FP16 graph computes in FP32 on its FP16 weights, and says so; a fused one
    does without the operator that is slower there."""

    title: ClassVar = "ONNX Runtime"
    short: ClassVar = "ort"
    packages: ClassVar = ("onnxruntime", "onnx", "torch")
    portable: ClassVar = ("onnxruntime", "onnxruntime-gpu")
    reads: ClassVar = ("onnx", "onnx-microsoft", "onnx-dynamic", "onnx-qdq")
    options: ClassVar = {
        "replay": {"graphs": Choice("CUDA graphs")},
        "provider": {"tensorrt": Choice("TensorRT", tolerance=5e-2, precision="FP16")},
    }
    called_anywhere: ClassVar = ("cpu",)  # not a GPU: its graphs and buffers are each thread's own
    batch_tokens: ClassVar = 512
    """A window of 384 tokens takes it 19 ms by itself and 25 ms in a batch of 16 (INT8, 2 cores with VNNI; FP32 35 and
    45 ms): what it puts between its operators no longer fits into the caches. Of 128 tokens, four together are best."""

    @classmethod
    def refusal(cls, options: Mapping[str, str], device: str | None) -> tuple[str, str] | None:
        if not options:
            return None
        if device == "cpu":
            return "CUDA graphs and TensorRT need an NVIDIA GPU.", "Choose the backend without them."
        if len(options) > 1:
            return "CUDA graphs are recorded of ONNX Runtime's own kernels.", "Choose them or TensorRT."
        if "provider" in options and not any(map(importlib.util.find_spec, TENSORRT_PACKAGES)):
            return "TensorRT's libraries are not here.", f"Install them: {INSTALL_TENSORRT}"
        return None

    def load(self, artefact: Path, device: str) -> None:
        import torch  # noqa: F401  (first: its CUDA and cuDNN libraries are the ones ONNX Runtime's GPU build finds)

        import onnxruntime

        self._manifest = read_manifest(artefact)
        self._hash = file_hash(artefact / FILE)
        self._stored_fp16 = self._manifest.precision == "FP16"
        self._refitted = device == "cpu" and not suits(self._manifest)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = thread_count()
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        settings = {"session.intra_op.spin_duration_us": str(IDLE_SPIN_US)} | (AS_IT_STANDS if device == "cpu" else {})
        for key, value in settings.items():
            options.add_session_config_entry(key, value)
        graph = _refitted(artefact) if self._refitted else str(artefact / FILE)
        providers = self._providers(artefact, device)
        try:
            # Without its fallback to the CPU, which would hide why a GPU could not be used.
            self._session: onnxruntime.InferenceSession | None = onnxruntime.InferenceSession(
                graph, options, providers, enable_fallback=0
            )
        except Exception as error:  # ONNX Runtime raises one class per status, all derived from Exception alone
            raise ArtefactError(f"ONNX Runtime cannot load {artefact.name}: {error}") from error
        self._provider = self._session.get_providers()[0]
        self._check_provider(device)
        self._device = device
        self._note, self._precision = "", "FP16" if self._tensorrt else self._manifest.precision
        if self._stored_fp16 and self._refitted:
            self._note = "weights stored as FP16, computed in FP32: this CPU path has no FP16 arithmetic"
        elif self._manifest.precision == "INT8" and device == "cuda":
            self._note = "weights stored as INT8, computed in FP32: ONNX Runtime multiplies INT8 on CPUs alone"
        if self._note:
            self._precision = "FP32"
        self._inputs = [each.name for each in self._session.get_inputs()]
        self._replay = Replay(self._session, device) if "replay" in self.chosen else None

    @property
    def _tensorrt(self) -> bool:
        return "provider" in self.chosen

    def _providers(self, artefact: Path, device: str) -> list[Any]:
        """Raises ArtefactError for a graph that TensorRT cannot read."""
        if device == "cpu":
            return [CPU]
        # Without the first, matrix products of FP32 graphs would silently be TF32.
        cuda = (CUDA, {"use_tf32": "0", "enable_cuda_graph": str(int("replay" in self.chosen))})
        if not self._tensorrt:
            return [cuda, CPU]
        if self._manifest.step != PLAIN:
            raise ArtefactError(f"TensorRT reads no '{self._manifest.step}'. Choose the backend of the plain graph.")
        for name in filter(importlib.util.find_spec, TENSORRT_PACKAGES):
            importlib.import_module(name)  # which loads its libraries: pip puts them where the system does not look
        return [(TENSORRT, _tensorrt_options(artefact, self._hash)), cuda, CPU]

    def _check_provider(self, device: str) -> None:
        """Raises BackendUnavailable where something else than what was asked for would compute."""
        wanted, what = (TENSORRT, "TensorRT") if self._tensorrt else (CUDA, "a CUDA GPU")
        if device == "cpu" or self._provider == wanted:
            return
        further = f", and TensorRT 10: {INSTALL_TENSORRT}" if self._tensorrt else ""
        raise BackendUnavailable(
            f"ONNX Runtime could not use {what} here and would have fallen back to {self._provider}.",
            "Choose another backend, or install the GPU build for this machine's CUDA: pip install onnxruntime-gpu"
            f"{further}",
        )

    def forward(self, windows: Windows) -> SpanLogits:
        assert self._session is not None
        feeds = windows.inputs(self._inputs)
        if self._replay:
            return self._replay.run(feeds)
        if self._device == "cpu":
            return SpanLogits(*self._session.run(OUTPUTS, feeds))
        return in_parts(self._forward_bound, feeds, AT_ONCE) if self._tensorrt else self._forward_bound(feeds)

    def _forward_bound(self, feeds: Feeds) -> SpanLogits:
        """One copy to the device and one back, instead of one around each operator that would want it."""
        assert self._session is not None
        binding = self._session.io_binding()
        for name, array in feeds.items():
            binding.bind_cpu_input(name, array)
        for name in OUTPUTS:
            binding.bind_output(name, "cuda")
        self._session.run_with_iobinding(binding)
        return SpanLogits(*binding.copy_outputs_to_cpu())

    def describe(self) -> Ran:
        import torch

        assert self._session is not None
        return Ran(
            device=torch.cuda.get_device_name() if self._device == "cuda" else "CPU",
            provider=f"ONNX Runtime {self._provider.removesuffix('ExecutionProvider')}",
            precision=self._precision,
            threads=self._session.get_session_options().intra_op_num_threads,
            fused_ops={
                name: count
                for name, count in self._manifest.fused_ops.items()
                if count and not (self._refitted and name == SLOW)
            },
            file_hash=self._hash,
            versions=versions_of(self.packages),
            notes=(self._note,) if self._note else (),
        )

    def close(self) -> None:
        self._session = self._replay = None


def _tensorrt_options(artefact: Path, graph: str) -> dict[str, str]:
    """FP16, and an engine that is built once for each graph and kept (onnxruntime's documentation, TensorRT execution
    provider)."""
    import onnx

    inputs = [each.name for each in onnx.load(artefact / FILE).graph.input]
    profiles = {
        f"trt_profile_{bound}_shapes": ",".join(f"{name}:{shape}" for name in inputs) for bound, shape in SHAPES.items()
    }
    folder = str(cache_root() / f"tensorrt-{graph[:20]}")
    return profiles | {
        "trt_fp16_enable": "1",
        "trt_engine_cache_enable": "1",
        "trt_engine_cache_path": folder,
        "trt_timing_cache_enable": "1",
        "trt_timing_cache_path": folder,
    }


def _refitted(artefact: Path) -> bytes:
    import onnx

    return bytes(for_cpu(onnx.load(artefact / FILE)).SerializeToString())
