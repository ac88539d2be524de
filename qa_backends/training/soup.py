"""Average the weights of checkpoints that were trained from one another: a model soup (Wortsman et al. 2022, "Model
soups", arXiv:2203.05482), which takes no longer to answer than one of them.

A checkpoint averaged with what it was trained on from keeps more of what that knew (Wortsman et al. 2022, "Robust
fine-tuning of zero-shot models", arXiv:2109.01903).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qa_backends.checkpoints.files import WEIGHTS
from qa_backends.checkpoints.load import load_model, save_model
from qa_backends.checkpoints.manifest import NAME, file_hash, read_manifest, shapes_of
from qa_backends.errors import InputError
from qa_backends.training.provenance import finish, history, read_alike, weights_of
from qa_backends.training.saved import NOTE, claim

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def soup(checkpoints: Sequence[Path], folder: Path) -> Path:
    """Writes the mean of the checkpoints' weights to ``folder``, which is returned, with the first one's tokenizer; a
    finished mean of the same is left as it is, and one that was stopped is made again.

    Weights of equal shapes may still be of models that have nothing in common, as of two that lost other heads: what
    the mean of such answers is of no use, and only its figures tell.

    Raises:
        InputError: there are fewer than two, their shapes or their tokenizers differ, or ``folder`` holds another
            checkpoint or run.
        ArtefactError: one cannot be read.
    """
    import torch

    hashes = [file_hash(weights_of(each)) for each in checkpoints]
    if _finished(folder, hashes):
        return folder
    _check(checkpoints, folder)
    claim(folder, {"of": hashes})
    first, *others = checkpoints
    mean = load_model(first)
    with torch.no_grad():
        for number, other in enumerate(others, start=2):
            weights = dict(load_model(other).named_parameters())
            for name, each in mean.named_parameters():
                each.lerp_(weights[name], 1 / number)
    save_model(mean, folder, tokenizer_from=first, dtype=torch.float32)
    return finish(folder, step="soup", parent=first, settings={"of": hashes, **history(first)})


def _finished(folder: Path, hashes: list[str]) -> bool:
    """Whether the folder holds the mean of these."""
    return (folder / NAME).is_file() and read_manifest(folder).settings.get("of") == hashes


def _stopped(folder: Path) -> bool:
    """Whether a run that averages, as its note says, wrote weights and no manifest."""
    return (folder / NOTE).is_file() and not (folder / NAME).exists()


def _check(checkpoints: Sequence[Path], folder: Path) -> None:
    if len(checkpoints) < 2:
        raise InputError("There is nothing to average. Name two checkpoints at least.")
    if (folder / WEIGHTS).exists() and not _stopped(folder):
        raise InputError(f"{folder} holds a checkpoint already. Name another folder: --out FOLDER.")
    first, *others = checkpoints
    for each in others:
        if shapes_of(each) != shapes_of(first):
            raise InputError(f"The weights in {each} have other shapes than those in {first}. Average what is alike.")
        if not read_alike(each, first):
            raise InputError(f"{each} and {first} do not have the same tokenizer. Average what reads alike.")
