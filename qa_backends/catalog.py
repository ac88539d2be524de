"""The table of backends: a backend is a checkpoint, what is built from it, and the engine that runs that.

A new engine is one file in ``engines/`` and one row here; the page, the command line, the measurements and the contract
test read this table and nothing else.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from qa_backends.errors import ArtefactError, BackendUnavailable, UnknownBackend

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from qa_backends.contract import Engine

    Say = Callable[[str], None]

MODELS = Path(__file__).resolve().parent.parent / "assets" / "models"
BASELINE = "baseline"
PRESELECTED = (BASELINE, "pruned-ort-fp16")


@dataclass(frozen=True, slots=True)
class EngineRow:
    """Where an engine's class is, and the packages it cannot do without, with the command that installs them.

    What an engine needs is told here and not by the engine: asking would import the very packages that may be missing.
    """

    title: str
    module: str
    class_name: str
    packages: tuple[str, ...]
    install: str = "pip install -r requirements.txt"


ENGINES = {
    "pytorch": EngineRow(
        "PyTorch", "qa_backends.engines.pytorch", "PyTorchEngine", ("torch", "transformers", "safetensors")
    ),
    "onnxruntime": EngineRow(
        "ONNX Runtime",
        "qa_backends.engines.onnxruntime",
        "OnnxRuntimeEngine",
        ("onnxruntime", "onnx", "optimum", "torch", "transformers"),
    ),
}


@dataclass(frozen=True, slots=True)
class Backend:
    """One row: ``checkpoint`` names one of the family's, ``artefact`` a step of ``artefacts.build`` or "checkpoint"."""

    name: str
    title: str
    checkpoint: str
    artefact: str
    engine: str
    summary: str


BACKENDS = (
    Backend(BASELINE, "Baseline", "baseline", "checkpoint", "pytorch", "the fine-tuned model in PyTorch"),
    Backend("pruned", "Pruned", "pruned", "checkpoint", "pytorch", "heads and FFN columns removed, in PyTorch"),
    Backend("pruned-ort", "Pruned, ONNX", "pruned", "onnx", "onnxruntime", "pruned, exported to ONNX Runtime"),
    Backend(
        "pruned-ort-fused", "Pruned, fused", "pruned", "onnx-fused", "onnxruntime", "pruned, exported, operators fused"
    ),
    Backend(
        "pruned-ort-fp16", "Pruned, fused, FP16", "pruned", "onnx-fused-fp16", "onnxruntime",
        "pruned, exported, operators fused, stored as FP16",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Source:
    """Where a checkpoint comes from: a folder below ``assets/models``, or a repository of the Hub."""

    folder: str | None = None
    repository: str | None = None
    revision: str | None = None


@dataclass(frozen=True, slots=True)
class Family:
    """Checkpoints of one tokenizer, so that their answers and times can stand side by side."""

    name: str
    title: str
    checkpoints: dict[str, Source]

    @property
    def embedded(self) -> bool:
        return all(source.folder for source in self.checkpoints.values())


FAMILIES = (
    Family(
        "minilm",
        "MiniLM, 6 layers (ships with the app)",
        {"baseline": Source(folder="minilm/baseline"), "pruned": Source(folder="minilm/pruned")},
    ),
    Family(
        "bert-large",
        "BERT-large, 24 layers (2.5 GB from the Hugging Face Hub on first use)",
        {
            "baseline": Source(repository="madlag/bert-large-uncased-whole-word-masking-finetuned-squadv2"),
            # The commit in which the Hub's conversion service added safetensors weights.
            "pruned": Source(
                repository="madlag/bert-large-uncased-wwm-squadv2-x2.63-f82.6-d16-hybrid-v1",
                revision="e2e6aed39024de75dcb95497f37b7b4cacdbb356",
            ),
        },
    ),
)


def default_family() -> str:
    """``QA_FAMILY`` where it is set (a Space's setting), else the embedded one."""
    return family(os.environ.get("QA_FAMILY") or FAMILIES[0].name).name


def family(name: str) -> Family:
    """Raises UnknownBackend, listing the families there are."""
    for each in FAMILIES:
        if each.name == name:
            return each
    raise UnknownBackend(f"There is no family '{name}'. Choose one of: {', '.join(f.name for f in FAMILIES)}.")


def backend(name: str) -> Backend:
    """Raises UnknownBackend, listing the backends there are."""
    for each in BACKENDS:
        if each.name == name:
            return each
    raise UnknownBackend(f"There is no backend '{name}'. Choose one of: {', '.join(b.name for b in BACKENDS)}.")


def resolve(name: str, family_name: str | None = None) -> tuple[Family, Backend]:
    """``family/backend``, or a bare backend name with the family given or the default one.

    Raises:
        UnknownBackend: no such family or backend, or two families that contradict each other.
    """
    prefix, slash, bare = name.rpartition("/")
    if slash and family_name and prefix != family_name:
        raise UnknownBackend(f"'{name}' names another family than '{family_name}'. Leave one of them out.")
    return family(prefix or family_name or default_family()), backend(bare)


def unavailable(row: Backend) -> BackendUnavailable | None:
    """Why the backend cannot run on this machine, or ``None``. Imports nothing heavy."""
    engine = ENGINES[row.engine]
    for package in engine.packages:
        if importlib.util.find_spec(package) is None:
            return BackendUnavailable(f"{engine.title} needs the package '{package}'.", f"Install it: {engine.install}")
    return None


def open_engine(row: Backend) -> Engine:
    """A new engine for the backend, nothing loaded yet.

    Raises:
        BackendUnavailable: a package is missing.
    """
    if missing := unavailable(row):
        raise missing
    engine = ENGINES[row.engine]
    return cast("Engine", getattr(importlib.import_module(engine.module), engine.class_name)())


def checkpoint_folder(group: Family, name: str, say: Say) -> Path:
    """The checkpoint's folder, downloaded and packed if it comes from the Hub and is not here yet.

    Raises:
        BackendUnavailable: the Hub cannot be reached.
        ArtefactError: an embedded checkpoint is missing from the installation.
    """
    source = group.checkpoints[name]
    if source.folder is not None:
        folder = MODELS / source.folder
        if not (folder / "model.safetensors").is_file():
            raise ArtefactError(f"The embedded checkpoint {source.folder} is missing; download the project again.")
        return folder
    from qa_backends.artefacts.hub import checkpoint_from, fetch

    assert source.repository is not None
    return checkpoint_from(fetch(source.repository, source.revision, say), source.repository, say)


def download(group: Family, rows: Sequence[Backend], say: Say) -> None:
    """Fetches what the backends need from the Hub, so that no device is held meanwhile.

    Raises:
        BackendUnavailable: the baseline cannot be had, whose tokenizer every backend of the family needs. Another
            checkpoint that cannot is reported when a backend asks for it.
    """
    from qa_backends.artefacts.hub import fetch

    for name in dict.fromkeys([BASELINE, *(row.checkpoint for row in rows)]):
        source = group.checkpoints[name]
        if source.repository is not None:
            with nullcontext() if name == BASELINE else suppress(BackendUnavailable):
                fetch(source.repository, source.revision, say)


@cache
def devices() -> list[str]:
    """``["cpu"]``, with ``"cuda"`` in front where PyTorch sees a GPU."""
    if importlib.util.find_spec("torch") is None:
        return ["cpu"]
    import torch

    return ["cuda", "cpu"] if torch.cuda.is_available() else ["cpu"]
