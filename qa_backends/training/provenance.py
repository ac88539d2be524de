"""Where a checkpoint comes from: the encoder to start with, and the manifest of what was made of it."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qa_backends.checkpoints.architectures import architecture, architecture_of, known
from qa_backends.checkpoints.files import WEIGHTS
from qa_backends.checkpoints.hub import fetch
from qa_backends.checkpoints.load import load_model, read_config, save_model
from qa_backends.checkpoints.manifest import NAME, file_hash, has_head, known_manifest, manifest_of, read_manifest
from qa_backends.checkpoints.sources import TOKENIZER, with_tokenizer
from qa_backends.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qa_backends.checkpoints.manifest import Fitted
    from qa_backends.progress import Progress

REMEDY = "Name a folder that holds the encoder: --from FOLDER."


def encoder_folder(source: str, progress: Progress) -> Path:
    """The folder itself, or the Hub repository of that name, downloaded; with a ``tokenizer.json`` in any case.

    Raises:
        BackendUnavailable: it is no folder here, and the Hub cannot be reached.
        Cancelled: ``progress`` says to stop.
    """
    folder = Path(source)
    if not folder.is_dir():
        folder = Path(fetch(source, None, progress, remedy=REMEDY).folder)
    return with_tokenizer(folder, progress)


def weights_of(checkpoint: Path) -> Path:
    """The file with the checkpoint's weights. Raises InputError where the folder holds none."""
    file = checkpoint / WEIGHTS
    if not file.is_file():
        raise InputError(f"{checkpoint} holds no {WEIGHTS}. Name a folder that holds a checkpoint.")
    return file


def check_taught(checkpoint: Path) -> None:
    """Raises InputError where the folder holds no weights, or ones that were never taught to find spans: loaded, they
    would be given an output layer of random ones."""
    weights_of(checkpoint)
    if not has_head(checkpoint):
        raise InputError(
            f"{checkpoint} was never taught to find answers: it has no output layer. Fine-tune it first: "
            f"python -m qa_backends train finetune --from {checkpoint}"
        )


def check_layers_known(checkpoint: Path) -> None:
    """Raises InputError where it is not known what a checkpoint's layers are made of, ArtefactError where it cannot be
    read."""
    config = read_config(checkpoint)
    if not architecture_of(config).layers_known:
        able = ", ".join(kind for kind in known() if architecture(kind).layers_known)
        raise InputError(f"Models of the kind '{config['model_type']}' are not made smaller here, but these: {able}.")


def read_alike(one: Path, other: Path) -> bool:
    """Whether both checkpoints see a text as the same tokens."""
    return file_hash(one / "tokenizer.json") == file_hash(other / "tokenizer.json")


def check_read_alike(start: Path, teacher: Path) -> None:
    """Raises InputError where the two would not see a text as the same tokens."""
    if not read_alike(start, teacher):
        raise InputError(
            f"{start} and its teacher {teacher} do not have the same tokenizer. Name a teacher that reads as it does: "
            "--teacher FOLDER."
        )


def history(folder: Path) -> dict[str, object]:
    """The settings a checkpoint of this project was trained with, the step that did it and the hash of the weights it
    began as, for the manifest of what is trained on from it."""
    trained = _training_of(folder)
    if trained is None:
        return {}
    manifest = read_manifest(folder)
    return {"before": {"step": manifest.step, "parent": manifest.parent, **trained}}


def _training_of(folder: Path) -> dict[str, Any] | None:
    """The settings of a checkpoint's last run; ``None`` of one that was not trained here, though it may have got its
    ``tokenizer.json`` here."""
    if not (folder / NAME).is_file():
        return None
    manifest = read_manifest(folder)
    return None if manifest.step == TOKENIZER else manifest.settings


def seen_before(origins: Sequence[Path], articles: Sequence[str]) -> bool:
    """Whether one of the checkpoints that another began as, or learned from, may have been trained on some of the
    articles."""
    return any(_has_seen(each, articles) for each in origins)


def _has_seen(folder: Path, articles: Sequence[str]) -> bool:
    """Whether a checkpoint may have been trained on some of the articles: its manifest says of one of its runs that
    they were not all held out, or it tells of none, and has an output layer. Figures on articles that were seen say
    little."""
    run = _training_of(folder)
    if run is None:
        return has_head(folder)
    while run is not None:
        held_out = run.get("held_out", {})
        if held_out.get("seen_before") or not set(articles) <= set(held_out.get("articles", ())):
            return True
        run = run.get("before")
    return False


def add_to_manifest(folder: Path, facts: dict[str, object], fitted: Fitted | None = None) -> None:
    """Adds to the settings in a checkpoint's manifest what became known after it was finished, and sets what was
    ``fitted``."""
    manifest = read_manifest(folder)
    changed = asdict(fitted) if fitted else {}
    replace(manifest, settings=manifest.settings | facts, **changed).write(folder)


def finish(folder: Path, *, step: str, parent: Path, settings: dict[str, object]) -> Path:
    """Stores a trained checkpoint's weights as FP16 and writes its manifest; returns the folder.

    Where the same command finished it before, its manifest stays: what was fitted and measured since stands there.
    """
    import torch

    save_model(load_model(folder), folder, tokenizer_from=folder, dtype=torch.float16)
    known = known_manifest(folder)
    if known is None or known.files.get(WEIGHTS) != file_hash(folder / WEIGHTS):
        manifest_of(folder, step=step, parent=file_hash(weights_of(parent)), settings=settings).write(folder)
    return folder
