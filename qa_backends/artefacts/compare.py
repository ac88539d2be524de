"""Does a step compute what its parent computes? Its logits say so, or, where they must differ, its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from qa_backends.artefacts.texts import queries_of, reader_of
from qa_backends.contract import SpanLogits, Windows, same_answer
from qa_backends.errors import AnswersError, DriftError
from qa_backends.paths import OWN_QUESTIONS
from qa_backends.reader.reader import length_batches
from qa_backends.reader.windows import apart

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from qa_backends.artefacts.steps import Step
    from qa_backends.progress import Progress

    Forward = Callable[[Windows], SpanLogits]


def compare(step: str, before: Forward, after: Forward, windows: Windows, tolerance: float) -> float:
    """The largest logit difference between the two, as ``logit_difference`` counts it.

    Raises:
        DriftError: it is above the tolerance, or not a number; ``step`` is what the error calls what was compared.
    """
    difference = logit_difference(before(windows), after(windows), windows)
    if not difference <= tolerance:
        raise DriftError(step, difference, tolerance)
    return difference


def logit_difference(before: SpanLogits, after: SpanLogits, windows: Windows) -> float:
    """Largest difference over all tokens that are not padding, relative to the largest logit where that is above 1."""
    real = windows.attention_mask.astype(bool)
    one = np.concatenate([before.start[real], before.end[real]])
    other = np.concatenate([after.start[real], after.end[real]])
    return float(np.abs(one - other).max() / max(1.0, float(np.abs(one).max())))


def compare_answers(
    step: Step, before: Forward, after: Forward, checkpoint: Path, progress: Progress, run_by: str = ""
) -> float:
    """The share of the shipped questions on which the two give the same answer, from 0 to 1; each is asked apart where
    company changes the step's answers. ``run_by`` is what the error calls what runs the second, if that needs saying.

    Raises:
        AnswersError: it is below the step's ``least_agreement``.
        Cancelled: ``progress`` says to stop.
    """
    reader = reader_of(checkpoint)
    asked = reader.prepare_all(queries_of(OWN_QUESTIONS))
    split = apart(length_batches, each=step.scaled_by_batch)
    answers = [
        reader.read(asked, forward, split=split, follow=lambda _done, _of, _spent_s: progress.check()).answers
        for forward in (before, after)
    ]
    same, of = sum(same_answer(one, other) for one, other in zip(*answers, strict=True)), len(asked.queries)
    if same / of < step.least_agreement:
        within, instead = (f" in {run_by}", "another backend") if run_by else ("", "a backend without it")
        raise AnswersError(
            f"The step '{step.name}'{within} changed {of - same} of {of} answers on this machine, where it must keep "
            f"{100 * step.least_agreement:.0f} %. What it made is not used{' there' if run_by else ''}; choose "
            f"{instead}."
        )
    return same / of
