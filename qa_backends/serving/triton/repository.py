"""A model repository for Triton: one model, its windows in and its start and end logits out.

Two forms of it, of one name and with the same inputs and outputs, so that who asks need not know which is running:

- ``onnxruntime``, for the server's own container: the graph on Triton's ONNX Runtime backend;
- ``python``, for a server that has the Python backend alone: ``model.py`` beside the graph.

Cutting a text into windows, and choosing the answer, stays with who asks: ``engines/triton.py``.
"""

from __future__ import annotations

import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qa_backends import catalog
from qa_backends.checkpoints.manifest import file_hash
from qa_backends.engines._onnx import FILE, OUTPUTS
from qa_backends.engines.triton import ARTEFACT, ENGINE, PRECISION
from qa_backends.serving.export import fitted_to, taken, write_model

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qa_backends.catalog import Backend, Family
    from qa_backends.progress import Progress
    from qa_backends.runtime import Runtime

NATIVE, PYTHON = "onnxruntime", "python"
VERSION = "1"
MODEL = Path(__file__).with_name("model.py")
TYPES = {1: "TYPE_FP32", 6: "TYPE_INT32", 7: "TYPE_INT64"}
"""Triton's name of what ONNX numbers (onnx.TensorProto.DataType)."""
MOST_WINDOWS = 32
"""In a batch; what a batch of so many takes is in the page's chart of batch sizes."""

ALONE = "# No dynamic batching: this model's answer would hang on what else is in its batch."


def export_repository(
    runtime: Runtime, family: Family, backend: Backend, device: str, folder: Path, progress: Progress
) -> dict[str, Any]:
    """Writes the repository's forms, each in a folder of its own; returns the settings of what runs.

    Raises:
        InputError, ArtefactError, BackendUnavailable, BackendFailed: see ``export.taken``.
    """
    with taken(runtime, family, backend, device, folder, progress) as (artefact, making):
        shared = not backend.scaled_by_batch
        version = making / PYTHON / backend.name / VERSION
        version.mkdir(parents=True)
        settings = write_model(artefact, version, family, backend, device)
        shutil.copyfile(MODEL, version / MODEL.name)
        facts = {
            ARTEFACT: file_hash(artefact / FILE),
            ENGINE: backend.engine_class.title,
            PRECISION: "FP32"
            if (device, backend.precision) == ("cpu", "FP16")
            else backend.precision,  # see ``for_cpu``
        }
        _configure(version, PYTHON, device, facts, shared=shared)
        if backend.engine == NATIVE:
            native = making / NATIVE / backend.name / VERSION
            native.mkdir(parents=True)  # on a CPU the server may fuse again what ``for_cpu`` took apart
            shutil.copyfile(version / FILE, native / FILE)
            _configure(native, NATIVE, device, facts, shared=shared)
        (making / "README.md").write_text(_readme(family, backend, device) + fitted_to(settings), encoding="utf-8")
    return settings


def _configure(version: Path, form: str, device: str, facts: Mapping[str, str], *, shared: bool) -> None:
    """Writes the model's configuration (Triton's documentation, Model Configuration); ``shared`` is whether requests of
    several clients may be computed together."""
    # Who asks while a batch is being read joins the next one; a delay makes the first one wait for others.
    batching = "dynamic_batching { max_queue_delay_microseconds: 0 }" if shared else ALONE
    text = f"""name: "{version.parent.name}"
backend: "{form}"
max_batch_size: {MOST_WINDOWS}
{_inputs(version / FILE, ragged=form == PYTHON)}
{_each("output", [f'{{ name: "{name}" data_type: TYPE_FP32 dims: [ -1 ] }}' for name in OUTPUTS])}
{batching}
instance_group [ {{ kind: {"KIND_GPU" if device == "cuda" else "KIND_CPU"} count: 1 }} ]
"""
    text += "".join(
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n' for key, value in facts.items()
    )
    version.with_name("config.pbtxt").write_text(text, encoding="utf-8")


def _inputs(graph: Path, *, ragged: bool) -> str:
    """Windows of unlike length may come together where ``model.py`` sorts them out."""
    import onnx

    own = " allow_ragged_batch: true" if ragged else ""
    found = {each.name: TYPES[each.type.tensor_type.elem_type] for each in onnx.load(graph).graph.input}
    return _each("input", [f'{{ name: "{name}" data_type: {kind} dims: [ -1 ]{own} }}' for name, kind in found.items()])


def _each(name: str, entries: list[str]) -> str:
    return f"{name} [\n  " + ",\n  ".join(entries) + "\n]"


def _readme(family: Family, backend: Backend, device: str) -> str:
    gpus = " --gpus all" if device == "cuda" else ""
    native = f"""In the server's container, on its ONNX Runtime backend:

    docker run --rm{gpus} -p 8000:8000 -p 8001:8001 -v "$PWD/{NATIVE}:/models" \\
      nvcr.io/nvidia/tritonserver:RELEASE-py3 tritonserver --model-repository=/models

"""
    asking = replace(backend, engine="triton", options=())
    where = shlex.join([*catalog.chosen_by(family.name), "--device", device])
    return f"""# {backend.title}, for Triton

From this folder. {native if backend.engine == NATIVE else ""}Where only the Python backend is there:

    python -m qa_backends triton serve . --environment ENVIRONMENT

The model takes windows of tokens and gives start and end logits. To ask it questions, name the server to the project:

    QA_TRITON_URL=http://127.0.0.1:8000 python -m qa_backends answer {where} --backend {asking.name} \\
      --question … --context …
"""
