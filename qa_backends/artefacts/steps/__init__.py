"""Build steps: one file each, named as the step with "_" for "-"; what a step is stands in its ``STEP``.

checkpoint ── onnx ──> onnx-fused ──> onnx-fused-fp16
                  ├──> onnx-int8-dynamic
                  └──> onnx-int8
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qa_backends.errors import ArtefactError
from qa_backends.progress import Progress

CHECKPOINT = "checkpoint"
"""The beginning of every chain of steps, and the format that it has."""


@dataclass(frozen=True, slots=True)
class Making:
    """What a step is made with: the parent's folder, the checkpoint's, its own, empty one, and who waits for it."""

    parent: Path
    checkpoint: Path
    folder: Path
    progress: Progress


def _no_fused_ops(_folder: Path) -> dict[str, int]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step: from its parent's files to its own.

    ``make`` writes ``files``, the weights first, into its folder. ``precision_of`` reads off them what the weights are
    stored in, and the step fails where that is not ``precision``; ``fused_ops`` reads off how often each fused operator
    occurs. ``tolerance`` is the largest logit difference from the parent that the step may cause, relative to the
    parent's largest logit where that is above 1. Parent and child are compared by the engine ``opened_by``, on the CPU
    when the step is built, and before its first use on each other device of ``compared_on``: where the arithmetic
    differs by device. Of a step with fewer bits than logits survive, also the answers to the shipped questions are
    compared when it is built, and before its first use by each other engine or option, see ``rounded``: at least the
    share ``least_agreement`` of them must stay. ``settings`` and the versions of ``packages`` are part of the
    artefact's key.
    """

    name: str
    parent: str
    short: str
    """What the step adds to a backend's name."""
    label: str
    """What it adds to a backend's title."""
    summary: str
    """What was done, for a list of steps: "exported"."""
    doing: str
    """What is being done, for those who wait."""
    format: str
    """What engines must be able to read."""
    files: tuple[str, ...]
    precision: str
    tolerance: float
    least_agreement: float = 0.0
    packages: tuple[str, ...]
    """Importable names of what ``make`` cannot do without."""
    opened_by: str
    make: Callable[[Making], None]
    precision_of: Callable[[Path], str]
    fused_ops: Callable[[Path], dict[str, int]] = _no_fused_ops
    compared_on: tuple[str, ...] = ("cpu",)
    devices: tuple[str, ...] = ("cuda", "cpu")
    """Where what it makes can run: an engine may know its operators on one device alone."""
    fuses: bool = False
    """Whether it wants a model that onnxruntime's optimiser knows, see ``Architecture.fuses``."""
    scaled_by_batch: bool = False
    """Whether activations are scaled by all that a forward call holds, so that a question's logits hang on its company.
    """
    settings: Mapping[str, Any] = field(default_factory=dict)
    install: str = "pip install -r requirements.txt"
    """The command that installs the packages."""


def step_names() -> list[str]:
    """The steps there are."""
    return sorted(each.name.replace("_", "-") for each in pkgutil.iter_modules(__path__))


def step_of(name: str) -> Step:
    """Raises ArtefactError, listing the steps there are."""
    place = f"{__name__}.{name.replace('-', '_')}"
    # Looking into the folder would cost every answer a millisecond.
    if place not in sys.modules and name not in step_names():
        raise ArtefactError(f"There is no build step '{name}'. Choose one of: {', '.join(step_names())}.")
    # Not what sys.modules holds: that is half a module while another thread imports it, and this waits.
    found: Step = importlib.import_module(place).STEP
    if found.name != name:
        raise ArtefactError(f"The file of the build step '{name}' says it is '{found.name}'; rename one of them.")
    return found


def chain_of(artefact: str) -> list[Step]:
    """The steps from a checkpoint to the artefact, in order; none for the checkpoint itself."""
    if artefact == CHECKPOINT:
        return []
    step = step_of(artefact)
    return [*chain_of(step.parent), step]


def format_of(artefact: str) -> str:
    """What an engine must be able to read to run the artefact."""
    return CHECKPOINT if artefact == CHECKPOINT else step_of(artefact).format
