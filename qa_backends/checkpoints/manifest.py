"""``manifest.json``: what a checkpoint or artefact is, from what it was made and how it can be recognised."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import packages_distributions, version
from typing import TYPE_CHECKING, Any

from qa_backends.checkpoints.architectures import architecture_of, parameter_counts
from qa_backends.checkpoints.files import CHECKPOINT_FILES, TOKENIZER_SETTINGS, WEIGHTS
from qa_backends.checkpoints.load import read_config
from qa_backends.errors import ArtefactError
from qa_backends.paths import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = "manifest.json"
STORED = {"F16": "FP16", "BF16": "BF16", "F32": "FP32"}
"""Types of weights, by safetensors' names."""
COSTS = ("model_type", "num_attention_heads", "hidden_act", "activation")
"""What of a config, as ``read_config`` gives it, the time of an answer hangs on besides the weights' shapes."""
PACKAGES = ("torch", "transformers", "safetensors")
"""What makes checkpoints."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Travels with every checkpoint and artefact, beside its files.

    ``parent`` is the file hash of the weights it was made from. ``largest_logit_difference`` is against that parent, on
    the CPU, relative to the parent's largest logit where that is above 1; ``None`` where training, not conversion, made
    it. ``agreement`` is how often, from 0 to 1, the answers to the shipped questions are the parent's on the machine
    that built it, of steps that must keep the answers and not the logits. ``precision`` is that of the stored weights,
    read off the files. ``files`` are SHA-256 hashes. ``temperature`` and ``null_threshold`` are a checkpoint's, see
    ``ReaderSettings``.
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
    agreement: float | None = None
    temperature: float = 1.0
    null_threshold: float = 0.0
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def runs(self) -> Iterator[dict[str, Any]]:
        """The settings of what trained it, and of what had trained that which it began as; the last one first."""
        run = self.settings
        while run:
            yield run
            run = run.get("before", {})

    def write(self, folder: Path) -> None:
        write_whole(folder / NAME, json.dumps(asdict(self), indent=1, sort_keys=True) + "\n")


def read_manifest(folder: Path) -> Manifest:
    """The folder's manifest.

    Raises:
        ArtefactError: there is none, or it is not one of ours.
    """
    try:
        return Manifest(**json.loads((folder / NAME).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise ArtefactError(f"{folder / NAME} cannot be read ({error}). Build the artefact again.") from error


def known_manifest(folder: Path) -> Manifest | None:
    """The folder's manifest; ``None`` where there is none of ours, as in somebody else's checkpoint."""
    try:
        return read_manifest(folder)
    except ArtefactError:
        return None


def manifest_of(
    folder: Path,
    *,
    step: str,
    parent: str | None,
    settings: dict[str, Any],
    difference: float | None = None,
) -> Manifest:
    """The manifest of a checkpoint that was just saved to ``folder``."""
    total, encoder = count_parameters(folder)
    return Manifest(
        step=step,
        parent=parent,
        precision=stored_precision(folder),
        bytes=(folder / WEIGHTS).stat().st_size,
        parameters=total,
        encoder_parameters=encoder,
        files={name: file_hash(folder / name) for name in CHECKPOINT_FILES if (folder / name).is_file()},
        largest_logit_difference=difference,
        settings=settings,
        versions=versions_of(PACKAGES),
    )


@dataclass(frozen=True, slots=True)
class Fitted:
    """What was fitted to a checkpoint: see ``ReaderSettings``."""

    temperature: float = 1.0
    null_threshold: float = 0.0


def fitted_of(folder: Path) -> Fitted:
    """What its manifest says; nothing where it was never fitted, or the folder is somebody else's."""
    if (found := known_manifest(folder)) is None:
        return Fitted()
    numbers = (found.temperature, found.null_threshold)
    usable = all(isinstance(each, int | float) and math.isfinite(each) for each in numbers)
    return Fitted(*numbers) if usable and found.temperature > 0 else Fitted()


def count_parameters(checkpoint: Path) -> tuple[int, int]:
    """Parameters of the checkpoint in all, and those of its encoder's layers; only the file's head is read."""
    return parameter_counts(architecture_of(read_config(checkpoint)), shapes_of(checkpoint))


def shapes_of(checkpoint: Path) -> dict[str, list[int]]:
    """The shape of each weight, by its name. Raises ArtefactError where the weights cannot be read."""
    return {name: shape for name, (_, shape) in weights_in(checkpoint).items()}


def stored_precision(checkpoint: Path) -> str:
    """The precision most of the checkpoint's weights are stored in."""
    sizes: dict[str, int] = {}
    for kind, shape in weights_in(checkpoint).values():
        sizes[kind] = sizes.get(kind, 0) + math.prod(shape)
    most = max(sizes, key=lambda each: sizes[each])
    return STORED.get(most, most)


def weights_in(checkpoint: Path) -> dict[str, tuple[str, list[int]]]:
    """The type, by safetensors' name, and the shape of each weight, by its name; only the file's head is read.

    Raises:
        ArtefactError: the weights cannot be read.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(checkpoint / WEIGHTS, framework="np") as weights:
            parts = ((name, weights.get_slice(name)) for name in weights.keys())  # noqa: SIM118 (not a mapping)
            return {name: (part.get_dtype(), part.get_shape()) for name, part in parts}
    except (OSError, SafetensorError) as error:
        raise _unreadable(checkpoint, error) from error


def _unreadable(checkpoint: Path, error: Exception) -> ArtefactError:
    return ArtefactError(f"{checkpoint / WEIGHTS} cannot be read ({error}). Download or make it again.")


def intact(folder: Path) -> bool:
    """Whether every file the manifest names is there with the contents it had when it was made."""
    try:
        manifest = read_manifest(folder)
        return all(file_hash(folder / name) == expected for name, expected in manifest.files.items())
    except (ArtefactError, OSError):
        return False


def has_head(checkpoint: Path) -> bool:
    """Whether the checkpoint has an output layer for spans. Raises ArtefactError where config or weights cannot be
    read."""
    return f"{architecture_of(read_config(checkpoint)).head}weight" in shapes_of(checkpoint)


def file_hash(path: Path) -> str:
    """SHA-256 of the file, in hex. A file that has not changed since, by its size and time, is not read again."""
    return _hash_of(path.resolve(), _as_it_is(path))


def shapes_hash(checkpoint: Path) -> str:
    """SHA-256, in hex, over what the time of a checkpoint's answers hangs on: what its config says of ``COSTS``, and
    the name, type and shape of each weight. Weights that are trained on keep it. Only the file's head is read, once.

    Raises:
        ArtefactError: config or weights cannot be read.
    """
    files = (checkpoint / "config.json", checkpoint / WEIGHTS)
    try:
        return _hash_of_shapes(checkpoint.resolve(), tuple(map(_as_it_is, files)))
    except OSError as error:  # one of them is not there
        raise _unreadable(checkpoint, error) from error


def _as_it_is(path: Path) -> tuple[int, int, int]:
    """What changes when a file does."""
    state = path.stat()
    return state.st_ino, state.st_size, state.st_mtime_ns


@cache
def _hash_of(path: Path, _state: tuple[int, int, int]) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@cache
def _hash_of_shapes(checkpoint: Path, _states: tuple[tuple[int, int, int], ...]) -> str:
    config = read_config(checkpoint)
    costs = {name: config.get(name) for name in COSTS}
    return hashlib.sha256(json.dumps([costs, weights_in(checkpoint)], sort_keys=True).encode()).hexdigest()


def content_hash(checkpoint: Path) -> str:
    """SHA-256 over all that decides what a checkpoint computes: weights, config and tokenizer."""
    whole = hashlib.sha256()
    made = (checkpoint / "tokenizer.json").is_file()
    for name in CHECKPOINT_FILES if made else (*CHECKPOINT_FILES, *TOKENIZER_SETTINGS):
        if (checkpoint / name).is_file():
            whole.update(f"{name} {file_hash(checkpoint / name)}\n".encode())
    return whole.hexdigest()


def versions_of(packages: Iterable[str]) -> dict[str, str]:
    """Installed versions of importable packages, by the names they are installed under; the missing are left out."""
    return {name: version(name) for package in packages for name in _distributions().get(package, ())}


@cache
def _distributions() -> dict[str, tuple[str, ...]]:
    """Which installed distributions each importable package comes from: "onnxruntime" may be "onnxruntime-gpu"."""
    return {package: tuple(dict.fromkeys(names)) for package, names in packages_distributions().items()}
