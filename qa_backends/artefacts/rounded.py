"""What was rounded is compared by its answers again, before its first use, by whatever runs it otherwise than it was
compared when it was built: another engine, or one with options, rounds in another way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from qa_backends.artefacts.compare import compare_answers
from qa_backends.artefacts.notes import note, noted
from qa_backends.checkpoints.manifest import read_manifest
from qa_backends.checkpoints.random import RANDOM

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from qa_backends.artefacts.steps import Step
    from qa_backends.contract import SpanLogits, Windows
    from qa_backends.progress import Progress

    Forward = Callable[[Windows], SpanLogits]

ANSWERED = "answered.json"
"""Share of the answers that stayed, by the runner's key."""


@dataclass(frozen=True, slots=True)
class Runner:
    """What will run an artefact: ``title`` for people, as in "OpenVINO, BF16"; ``key`` of all that its answers may hang
    on besides the artefact; and how it opens one."""

    title: str
    key: str
    open: Callable[[Path], AbstractContextManager[Forward]]


def answers_matter(step: Step, checkpoint: Path) -> bool:
    """Whether the step's answers are compared: not those of random weights, which mean nothing."""
    return bool(step.least_agreement) and read_manifest(checkpoint).step != RANDOM


def kept_with(folder: Path, runner: Runner) -> bool:
    """Whether the artefact was compared as the runner runs it, and kept enough answers."""
    return runner.key in noted(folder / ANSWERED)


def compare_with(
    runner: Runner, step: Step, before: Forward, folder: Path, checkpoint: Path, progress: Progress
) -> None:
    """Compares the answers of the step's artefact, as the runner runs it, with those of its parent, and notes it.

    Raises:
        AnswersError: fewer stayed than the step's ``least_agreement``.
        Cancelled: ``progress`` says to stop.
    """
    progress.say(f"comparing the answers of '{step.name}' in {runner.title} with those before …")
    with runner.open(folder) as after:
        share = compare_answers(step, before, after, checkpoint, progress, run_by=runner.title)
    note(folder / ANSWERED, runner.key, share)
