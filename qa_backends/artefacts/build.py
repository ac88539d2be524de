"""Builds artefacts: each step is made once, checked against its parent, and kept.

A step's key is the checkpoint's hash and the chain of steps to it, each with its settings and the versions of its own
packages. So a package that a step does not use rebuilds nothing, and a finished artefact needs none of its parents,
unless something else than before is to run it: some are then compared with their parents once more.
"""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from qa_backends.artefacts.compare import compare, compare_answers
from qa_backends.artefacts.notes import note, noted
from qa_backends.artefacts.rounded import answers_matter, compare_with, kept_with
from qa_backends.artefacts.steps import CHECKPOINT, Making, Step, chain_of
from qa_backends.artefacts.texts import probe_windows
from qa_backends.checkpoints import cache
from qa_backends.checkpoints.files import WEIGHTS
from qa_backends.checkpoints.manifest import (
    Manifest,
    content_hash,
    count_parameters,
    file_hash,
    versions_of,
)
from qa_backends.errors import ArtefactError
from qa_backends.limits import device_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from qa_backends.artefacts.rounded import Runner
    from qa_backends.contract import SpanLogits, Windows
    from qa_backends.progress import Progress

    Forward = Callable[[Windows], SpanLogits]
    Open = Callable[[Path, str, str], AbstractContextManager[Forward]]

PLAIN_ENGINE = "pytorch"
"""What opens a checkpoint to compare its logits."""
COMPARED = "compared.json"
"""Largest logit difference by the device's name, of the GPUs that an artefact was compared on after it was built."""


def build(
    checkpoint: Path,
    artefact: str,
    open_with: Open,
    progress: Progress,
    device: str = "cpu",
    runner: Runner | None = None,
) -> Path:
    """The artefact's folder, ready to be run on the device; built, with all it depends on, only where missing.

    ``open_with(folder, engine, device)`` opens a checkpoint or artefact for comparing logits. ``runner`` is what will
    run the artefact, where that is not what its step is compared by anyway.

    Raises:
        DriftError: a step changed the logits by more than it may.
        AnswersError: a step changed more answers than it may, or does so as the runner runs it.
        ArtefactError: no such step, the checkpoint cannot be read, or the result is not what the step promises.
        Cancelled: ``progress`` says to stop; finished steps are kept.
    """
    for step in missing(checkpoint, artefact, device, runner):
        _finish(checkpoint, step, open_with, progress, device)
        if runner and step.name == artefact and _unanswered(checkpoint, _folder(checkpoint, artefact), step, runner):
            parent = build(checkpoint, step.parent, open_with, progress)
            with open_with(parent, _opened_by(step.parent), "cpu") as before:
                compare_with(runner, step, before, _folder(checkpoint, artefact), checkpoint, progress)
    return _folder(checkpoint, artefact)


def missing(checkpoint: Path, artefact: str, device: str = "cpu", runner: Runner | None = None) -> list[Step]:
    """The steps that ``build`` would have to make or compare, in order; none where the artefact is ready.

    They begin behind the last one that is there: its own parents are not needed any more.
    """
    chain = chain_of(artefact)
    if not chain or ready(checkpoint, artefact, device, runner):
        return []
    steps = [chain.pop()]
    while chain and find(checkpoint, chain[-1].name) is None:
        steps.insert(0, chain.pop())
    return steps


def find(checkpoint: Path, artefact: str) -> Path | None:
    """The artefact's folder, if it is built; the checkpoint's own for that."""
    return checkpoint if artefact == CHECKPOINT else cache.find(artefact, facts_of(checkpoint, artefact))


def ready(checkpoint: Path, artefact: str, device: str, runner: Runner | None = None) -> Path | None:
    """The artefact's folder, if it is built and was compared wherever it must be before the device, or the runner, runs
    it."""
    folder = find(checkpoint, artefact)
    if folder is None or not chain_of(artefact):
        return folder
    step = chain_of(artefact)[-1]
    if _uncompared(folder, step, device) or (runner and _unanswered(checkpoint, folder, step, runner)):
        return None
    return folder


def discard(checkpoint: Path, artefact: str) -> None:
    """Deletes the artefact and the steps to it, where they are built."""
    for step in chain_of(artefact):
        if folder := find(checkpoint, step.name):
            shutil.rmtree(folder)


def facts_of(checkpoint: Path, artefact: str) -> dict[str, Any]:
    """All that decides an artefact's contents."""
    return {
        "checkpoint": content_hash(checkpoint),
        "steps": [
            {"step": step.name, "settings": dict(step.settings), "versions": versions_of(step.packages)}
            for step in chain_of(artefact)
        ],
    }


def _folder(checkpoint: Path, artefact: str) -> Path:
    folder = find(checkpoint, artefact)
    if folder is None:
        raise ArtefactError(f"'{artefact}' was built, but is not there any more. Ask again to build it anew.")
    return folder


def _finish(checkpoint: Path, step: Step, open_with: Open, progress: Progress, device: str) -> None:
    """Makes the step unless it is there, and compares it on the device if it must be."""

    def make(folder: Path) -> None:
        progress.say(f"{step.doing} …")
        parent = _folder(checkpoint, step.parent)
        step.make(Making(parent, checkpoint, folder, progress))
        manifest = _describe(folder, parent, checkpoint, step)
        manifest.write(folder)  # before comparing: an engine reads from it what it opens
        progress.check()
        with _side_by_side(step, parent, folder, open_with, "cpu") as (before, after):
            difference = compare(step.name, before, after, probe_windows(checkpoint), step.tolerance)
            agreement = None
            if answers_matter(step, checkpoint):
                progress.say(f"comparing the answers of '{step.name}' with those before …")
                agreement = compare_answers(step, before, after, checkpoint, progress)
        replace(manifest, largest_logit_difference=difference, agreement=agreement).write(folder)

    folder = cache.ensure(step.name, facts_of(checkpoint, step.name), make, progress)
    if _uncompared(folder, step, device):
        parent = build(checkpoint, step.parent, open_with, progress)
        progress.say(f"comparing what '{step.name}' computes on {device} …")
        with _side_by_side(step, parent, folder, open_with, device) as (before, after):
            difference = compare(step.name, before, after, probe_windows(checkpoint), step.tolerance)
        note(folder / COMPARED, device_name(device), difference)


@contextmanager
def _side_by_side(
    step: Step, parent: Path, folder: Path, open_with: Open, device: str
) -> Iterator[tuple[Forward, Forward]]:
    """The parent and what the step made of it, to be compared on the device."""
    with (
        open_with(parent, _opened_by(step.parent), device) as before,
        open_with(folder, step.opened_by, device) as after,
    ):
        yield before, after


def _opened_by(artefact: str) -> str:
    return PLAIN_ENGINE if artefact == CHECKPOINT else chain_of(artefact)[-1].opened_by


def _unanswered(checkpoint: Path, folder: Path, step: Step, runner: Runner) -> bool:
    """Whether the step's answers must be compared as the runner runs it, and were not."""
    return answers_matter(step, checkpoint) and not kept_with(folder, runner)


def _uncompared(folder: Path, step: Step, device: str) -> bool:
    """Whether the step must be compared on the device and was not: on the CPU it was when it was built."""
    return device != "cpu" and device in step.compared_on and device_name(device) not in noted(folder / COMPARED)


def _describe(folder: Path, parent: Path, checkpoint: Path, step: Step) -> Manifest:
    """The manifest of what the step made.

    Raises:
        ArtefactError: a file is missing, or the weights are not stored in the step's precision.
    """
    absent = [name for name in step.files if not (folder / name).is_file()]
    if absent:
        raise ArtefactError(f"The step '{step.name}' made no {absent[0]}; nothing was kept. Mend the step.")
    precision = step.precision_of(folder)
    if precision != step.precision:
        raise ArtefactError(
            f"The step '{step.name}' promises weights in {step.precision} and made them in {precision}; "
            "nothing was kept. Mend the step."
        )
    total, encoder = count_parameters(checkpoint)
    first = WEIGHTS if step.parent == CHECKPOINT else chain_of(step.parent)[-1].files[0]
    return Manifest(
        step=step.name,
        parent=file_hash(parent / first),
        precision=precision,
        bytes=sum((folder / name).stat().st_size for name in step.files),
        parameters=total,
        encoder_parameters=encoder,
        files={name: file_hash(folder / name) for name in step.files},
        fused_ops=step.fused_ops(folder),
        settings=dict(step.settings),
        versions=versions_of(step.packages),
    )
