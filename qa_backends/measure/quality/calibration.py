"""Confidence that means something: of 100 answers given with a confidence of 70 %, 70 should be right.

How far it is from that is the expected calibration error. A temperature, fitted on questions that the model was not
trained on, brings it closer, and changes no answer (Guo et al. 2017). How far "no answer" must be ahead of the best
span, to be the answer, is fitted to the same questions by F1, as SQuAD 2.0's own script does it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qa_backends.contract import Query
from qa_backends.measure.quality.scoring import batch, figures_of, score_text
from qa_backends.reader.decode import best_of, competing, whole_character
from qa_backends.reader.reader import of_each
from qa_backends.runtime.turns import translated

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from qa_backends.catalog import Backend, Family
    from qa_backends.measure.quality.scoring import Done, Figures
    from qa_backends.progress import Progress
    from qa_backends.runtime import Runtime
    from qa_backends.squad import Question

    Numbers = NDArray[np.float64]
    Truths = NDArray[np.bool_]

BINS = 15
"""Of confidence, equally wide, as Guo et al. 2017 count the error."""
TEMPERATURES = np.geomspace(0.25, 4.0, 97)
"""What is tried: steps of 3 %, which no figure here tells apart."""
SAME_F1 = 1e-9
"""Sums of the same numbers differ by less."""
SURE = 1e-6
"""The loss takes no confidence for nearer to 0 or 1 than this: it would be infinite where rounding made it 1."""
AT_ONCE = 64
"""Questions whose logits are held at one time."""


@dataclass(frozen=True, slots=True)
class Rivals:
    """What competed for the answers of ``n`` questions, and what of it would have been right.

    ``scores`` are ``[n, 1 + spans]``: of "no answer", then of the best spans, ``-inf`` where there were fewer.
    ``span_right`` and ``null_right``, ``[n]``, say whether the best span, and "no answer", are exactly right, and
    ``span_f1``, ``[n]``, 0..1, how far the best span is.
    """

    scores: Numbers
    span_right: Truths
    null_right: Truths
    span_f1: Numbers

    @property
    def ahead(self) -> Numbers:
        """``[n]``: by how much "no answer" is ahead of the best span."""
        return np.asarray(self.scores[:, 0] - self.scores[:, 1:].max(axis=1))

    def right(self, null_threshold: float) -> Truths:
        """``[n]``: whether what is answered is exactly right."""
        return np.where(self._answered(null_threshold), self.span_right, self.null_right)

    def confidence(self, temperature: float, null_threshold: float) -> Numbers:
        """``[n]``: of what is answered, as ``reader.decode`` has it."""
        chosen = np.where(self._answered(null_threshold), self.scores[:, 1:].max(axis=1), self.scores[:, 0])
        highest = self.scores.max(axis=1)
        whole = np.exp((self.scores - highest[:, None]) / temperature).sum(axis=1)
        return np.asarray(np.exp((chosen - highest) / temperature) / whole)

    def f1(self, null_threshold: float) -> float:
        """Of what is answered, in percent."""
        return 100 * float(self._f1_of_each(null_threshold).mean())

    def figures(self, null_threshold: float) -> Figures:
        """Of what is answered, as of any answers."""
        return figures_of(self.right(null_threshold), self._f1_of_each(null_threshold), ~self.null_right)

    def _f1_of_each(self, null_threshold: float) -> Numbers:
        return np.where(self._answered(null_threshold), self.span_f1, self.null_right)

    def _answered(self, null_threshold: float) -> Truths:
        return np.asarray(self.ahead <= null_threshold)


def rivals(
    runtime: Runtime,
    family: Family,
    backend: Backend,
    device: str,
    questions: Sequence[Question],
    progress: Progress,
    done: Done = lambda _done, _of: None,
) -> Rivals:
    """What competes for the backend's answers to the questions, each batch in a turn of its own.

    Raises:
        BackendUnavailable, ArtefactError, BackendFailed: it cannot run here, or its logits are no finite numbers.
        Cancelled: ``progress`` says to stop.
    """
    runtime.make_ready(family, backend, device, progress)
    scores: list[Numbers] = []
    right: list[tuple[bool, float]] = []
    while len(scores) < len(questions):
        part = batch(questions[len(scores) :], AT_ONCE)
        with runtime.turn(device, progress) as turn:
            asked = [Query(each.question, each.context) for each in part]
            prepared = runtime.reader(family, progress).prepare_all(asked)
            logits = turn.logits(family, backend, prepared.windows)
        for question, (query, windows, own) in zip(part, of_each(prepared, logits), strict=True):
            with translated(f"{family.name}/{backend.name}", "answering"):
                null, spans = competing(windows, own, family.settings)
            scores.append(np.array([null, *spans.values()]))
            right.append(score_text(question, _best(query.context, spans)) if spans else (False, 0.0))
        done(len(scores), len(questions))
    exact, f1 = map(np.array, zip(*right, strict=True))
    return Rivals(_padded(scores), exact, np.array([not each.answers for each in questions]), f1)


def _best(context: str, spans: Mapping[tuple[int, int], float]) -> str:
    (start, end), _ = best_of(spans)
    return context[start : whole_character(context, end)]


def _padded(scores: Sequence[Numbers]) -> Numbers:
    padded = np.full((len(scores), max(2, *map(len, scores))), -np.inf)
    for row, each in zip(padded, scores, strict=True):
        row[: len(each)] = each
    return padded


def fitted_threshold(of: Rivals) -> float:
    """The threshold of "no answer" at which F1 is highest, half way between questions; of equals the nearest to 0."""
    asked = np.flatnonzero(np.isfinite(of.ahead))  # where there is no span, no threshold makes it the answer
    if not len(asked):
        return 0.0
    order = asked[of.ahead[asked].argsort()]
    gains = np.append(0, (of.span_f1 - of.null_right)[order].cumsum())  # of answering the first 0, 1, … of them
    ahead = of.ahead[order]
    edges = np.concatenate([ahead[:1] - 1, ahead, ahead[-1:] + 1])
    between = edges[:-1] < edges[1:]  # two that are equally far ahead no threshold parts
    thresholds, gains = ((edges[:-1] + edges[1:]) / 2)[between], gains[between]
    return float(min(thresholds[gains >= gains.max() - SAME_F1], key=abs))


def fitted_temperature(of: Rivals, null_threshold: float) -> float:
    """The temperature at which confidence tells best whether an answer is right, by the mean log loss."""
    right = of.right(null_threshold)

    def loss(temperature: float) -> float:
        sure = of.confidence(temperature, null_threshold).clip(SURE, 1 - SURE)
        return float(-np.log(np.where(right, sure, 1 - sure)).mean())

    return float(min(TEMPERATURES, key=loss))


def calibration_error(confidence: Numbers, right: Truths) -> float:
    """Expected calibration error in percent: how far, in the mean over answers, the share of right ones in a bin of
    like confidence is from the mean confidence there."""
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = [abs(float((confidence - right)[bins == each].sum())) for each in range(BINS)]
    return 100 * sum(gaps) / len(confidence)
