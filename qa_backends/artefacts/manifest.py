"""``manifest.json``: what an artefact is, from what it was made and how it can be recognised."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from qa_backends.errors import ArtefactError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

NAME = "manifest.json"
TOOLS = ("torch", "transformers", "optimum", "optimum-onnx", "onnx", "onnxruntime-gpu", "onnxruntime")
WEIGHT_FILES = ("model.safetensors", "model.onnx")
DESCRIBING_FILES = ("config.json", "tokenizer.json", "vocab.txt")


@dataclass(frozen=True, slots=True)
class Manifest:
    """Travels with every artefact, beside its files.

    ``parent`` is the file hash of the weights it was made from. ``largest_logit_difference`` is against that parent,
    relative to the parent's largest logit where that is above 1; ``None`` where training, not conversion, made it.
    ``precision`` is that of the stored weights. Comparisons run on the CPU, where FP16 weights compute in FP32.
    """

    step: str
    parent: str | None
    precision: str
    bytes: int
    parameters: int
    encoder_parameters: int
    files: dict[str, str]
    fused_ops: dict[str, int] = field(default_factory=dict)
    largest_logit_difference: float | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        (folder / NAME).write_text(json.dumps(asdict(self), indent=1, sort_keys=True) + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> Manifest:
    """The folder's manifest.

    Raises:
        ArtefactError: there is none, or it is not one of ours.
    """
    try:
        return Manifest(**json.loads((folder / NAME).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise ArtefactError(f"{folder / NAME} cannot be read ({error}). Build the artefact again.") from error


def intact(folder: Path) -> bool:
    """Whether every file the manifest names is there with the contents it had when it was made."""
    try:
        manifest = read_manifest(folder)
        return all(file_hash(folder / name) == expected for name, expected in manifest.files.items())
    except (ArtefactError, OSError):
        return False


def file_hash(path: Path) -> str:
    """SHA-256 of the file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content_hash(folder: Path) -> str:
    """SHA-256 over all that decides what a checkpoint or artefact computes: weights, config and tokenizer."""
    whole = hashlib.sha256()
    for name in (*WEIGHT_FILES, *DESCRIBING_FILES):
        if (folder / name).is_file():
            whole.update(f"{name} {file_hash(folder / name)}\n".encode())
    return whole.hexdigest()


def weights_of(folder: Path) -> Path:
    """The file of the folder that holds the weights.

    Raises:
        ArtefactError: it holds none.
    """
    for name in WEIGHT_FILES:
        if (folder / name).is_file():
            return folder / name
    raise ArtefactError(f"{folder} holds no weights ({' or '.join(WEIGHT_FILES)}).")


def tool_versions() -> dict[str, str]:
    """Versions of the packages an artefact or a measurement depends on; those not installed are left out."""
    found = {}
    for tool in TOOLS:
        try:
            found[tool] = version(tool)
        except PackageNotFoundError:
            continue
    return found


def parameter_counts(shapes: Mapping[str, Iterable[int]]) -> tuple[int, int]:
    """Parameters in all, and those of the encoder's layers (without embeddings and output layer)."""
    total = encoder = 0
    for name, shape in shapes.items():
        count = 1
        for size in shape:
            count *= size
        total += count
        encoder += count if ".encoder." in name else 0
    return total, encoder
