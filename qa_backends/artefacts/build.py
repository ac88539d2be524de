"""The steps from a checkpoint to what ONNX Runtime runs, each checked against the one before.

checkpoint ── export ──> onnx ── fuse ──> onnx-fused ── FP16 ──> onnx-fused-fp16
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from qa_backends.artefacts import onnx_graph
from qa_backends.artefacts.cache import ensure
from qa_backends.artefacts.manifest import (
    Manifest,
    content_hash,
    file_hash,
    parameter_counts,
    tool_versions,
    weights_of,
)
from qa_backends.contract import ReaderSettings, SpanLogits, Windows
from qa_backends.errors import DriftError
from qa_backends.reader.tokens import WordPieces
from qa_backends.reader.windows import cut

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    Forward = Callable[[Windows], SpanLogits]
    ForwardOf = Callable[[Path], AbstractContextManager[Forward]]
    Say = Callable[[str], None]

PROBES = (
    (
        "What stands on the hill?",
        "An old mill stands on the hill, and behind it the river turns towards the sea. " * 12,
    ),
    ("Who keeps the mill?", "Nobody keeps it any more."),
)
"""Two questions of very different length in one batch, so that a step which mishandles padding is caught."""


@dataclass(frozen=True, slots=True)
class Step:
    """``limit`` is the largest relative logit difference from the parent that the step may cause."""

    name: str
    parent: str
    precision: str
    limit: float
    doing: str


STEPS = {
    step.name: step
    for step in (
        Step("onnx", "checkpoint", "FP32", 1e-4, "exporting to ONNX"),
        Step("onnx-fused", "onnx", "FP32", 1e-4, "fusing operators"),
        Step("onnx-fused-fp16", "onnx-fused", "FP16", 1e-2, "storing as FP16"),
    )
}


def build(
    checkpoint: Path, name: str, forward_of: ForwardOf, say: Say = lambda _: None, root: Path | None = None
) -> Path:
    """The folder of the artefact ``name`` made from the checkpoint, with all it depends on; built only where missing.

    ``forward_of(folder)`` opens a checkpoint or artefact for comparing logits; ``say`` is told what is being done.

    Raises:
        DriftError: a step changed the logits by more than it may.
        ArtefactError: the checkpoint cannot be read, or operators were left unfused.
    """
    if name == "checkpoint":
        return checkpoint
    step = STEPS[name]
    parent = build(checkpoint, step.parent, forward_of, say, root)
    origin = file_hash(weights_of(parent))
    facts = {
        "step": name,
        "checkpoint": content_hash(checkpoint),
        "parent": origin,
        "versions": tool_versions(),
        "opset": onnx_graph.OPSET,
        "fused": onnx_graph.FUSED_OPS,
    }

    def make(folder: Path) -> None:
        say(f"{step.doing} …")
        if name == "onnx":
            onnx_graph.export(parent, folder)
        elif name == "onnx-fused":
            onnx_graph.fuse(parent, folder, checkpoint)
        else:
            onnx_graph.to_fp16(parent, folder)
        manifest = describe(folder, checkpoint, step, origin)
        manifest.write(folder)  # before comparing: an engine reads from it what it opens
        difference = compare(step, parent, folder, forward_of, probe_windows(checkpoint))
        replace(manifest, largest_logit_difference=difference).write(folder)

    return ensure(name, facts, make, root)


def compare(step: Step, parent: Path, child: Path, forward_of: ForwardOf, windows: Windows) -> float:
    """The largest logit difference between the two, relative to the parent's largest logit where that is above 1.

    Raises:
        DriftError: it is above the step's limit, or not a number.
    """
    with forward_of(parent) as before, forward_of(child) as after:
        difference = logit_difference(before(windows), after(windows), windows)
    if not difference <= step.limit:
        raise DriftError(step.name, difference, step.limit)
    return difference


def logit_difference(before: SpanLogits, after: SpanLogits, windows: Windows) -> float:
    """Largest difference over all tokens that are not padding, relative where logits are larger than 1."""
    real = windows.attention_mask.astype(bool)
    one = np.concatenate([before.start[real], before.end[real]])
    other = np.concatenate([after.start[real], after.end[real]])
    return float(np.abs(one - other).max() / max(1.0, float(np.abs(one).max())))


def probe_windows(checkpoint: Path) -> Windows:
    words = WordPieces(checkpoint)
    limit = min(384, int(onnx_graph.read_config(checkpoint)["max_position_embeddings"]))
    pairs = [tuple(words.encode_many(pair)) for pair in PROBES]
    return cut(pairs, words.special, ReaderSettings(max_seq_len=limit, stride=min(128, limit // 3)))  # type: ignore[arg-type]


def describe(folder: Path, checkpoint: Path, step: Step, parent: str) -> Manifest:
    """The manifest of a built ``model.onnx``."""
    import onnx
    from safetensors import safe_open

    path = folder / "model.onnx"
    with safe_open(checkpoint / "model.safetensors", framework="np") as weights:
        shapes = {name: weights.get_slice(name).get_shape() for name in weights.keys()}  # noqa: SIM118 (not a mapping)
    total, encoder = parameter_counts(shapes)
    return Manifest(
        step=step.name,
        parent=parent,
        precision=step.precision,
        bytes=path.stat().st_size,
        parameters=total,
        encoder_parameters=encoder,
        files={"model.onnx": file_hash(path)},
        fused_ops=onnx_graph.count_fused(onnx.load(path, load_external_data=False)),
        settings={"opset": onnx_graph.OPSET},
        versions=tool_versions(),
    )
