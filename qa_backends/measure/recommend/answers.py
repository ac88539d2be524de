"""Whether a candidate answers, on this machine, as it should: checked on the app's own questions before it is timed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.artefacts.quantise import LEAST_AGREEMENT
from qa_backends.contract import Query
from qa_backends.errors import QAError
from qa_backends.measure.quality import scoring
from qa_backends.measure.quality.datasets import OWN, own_questions
from qa_backends.measure.recommend.search import F1

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qa_backends.measure.quality.scoring import Scored
    from qa_backends.measure.recommend.search import Candidate
    from qa_backends.measure.recommend.wish import Wish
    from qa_backends.progress import Progress
    from qa_backends.runtime import Runtime

CHECK_S = 30.0
"""How long the baseline may take, at most, for the questions that everybody's answers are checked on: three times what
all of the app's own take the family that ships, so that a busy machine checks no fewer of them."""
LEAST_CHECKED = 32


class AnswerCheck:
    """Everybody on the same questions: as many of the app's own as the baseline answers in about ``CHECK_S``."""

    def __init__(self, runtime: Runtime, wish: Wish, progress: Progress) -> None:
        """Raises QAError where the baseline, which the others are compared with, cannot run."""
        self._runtime, self._wish, self._progress = runtime, wish, progress
        self._known: dict[str, list[Scored]] = {}
        baseline = catalog.backend(catalog.BASELINE)
        progress.say("finding out how many questions there is time for …")
        runtime.make_ready(wish.of, baseline, wish.device, progress)
        few = scoring.sample(own_questions(), scoring.QUESTIONS_AT_FIRST, seed=0)
        answers = scoring.through(runtime, wish.of, baseline, wish.device, progress)
        took_s = []
        for _ in range(2):  # the first may be cold
            with answers([Query(each.question, each.context) for each in few]) as (_, seconds):
                took_s.append(seconds)
        count = int(CHECK_S * len(few) / min(took_s))
        self.questions = scoring.sample(own_questions(), max(LEAST_CHECKED, count), seed=0)

    def check(self, candidate: Candidate) -> None:
        """Notes what loading the candidate costs and how good its answers are.

        Raises:
            QAError: it cannot run, takes more memory than wished, or does not answer as its weights do in PyTorch.
        """
        wish, backend = self._wish, catalog.backend(candidate.name)
        with self._runtime.turn(wish.device, self._progress) as turn:
            cost = self._runtime.get(wish.of, backend, wish.device, turn.progress).cost
        candidate.memory_bytes, candidate.load_ms = cost.memory_bytes, 1000 * cost.load_s
        if wish.memory_mb is not None:
            if cost.memory_bytes is None:
                raise QAError("What it takes of the memory cannot be told on this system.")
            if cost.memory_bytes > 1e6 * wish.memory_mb:
                raise QAError(f"Loaded, it takes {cost.memory_bytes / 1e6:.0f} MB; {wish.memory_mb:g} were allowed.")
        scored = self._scored(candidate.name)
        found = scoring.figures(scored, None, _texts(self._scored(catalog.BASELINE)))
        difference = found.f1_difference if candidate.name != catalog.BASELINE else None
        candidate.here = F1(OWN, found.n, found.f1, found.f1_interval, difference, whole=False)
        plain = catalog.plain(backend)  # whether or not that is a candidate itself
        self._runtime.make_ready(wish.of, plain, wish.device, self._progress)
        candidate.agreement = scoring.agreement(scored, _texts(self._scored(plain.name)))
        if candidate.agreement < 100 * LEAST_AGREEMENT:
            raise QAError(
                f"Only {candidate.agreement:.1f} % of its answers here are those of its weights in PyTorch, where "
                f"{100 * LEAST_AGREEMENT:.0f} % are needed."
            )

    def _scored(self, name: str) -> list[Scored]:
        """A backend's answers, asked for once."""
        if name not in self._known:
            wish = self._wish
            answers = scoring.through(self._runtime, wish.of, catalog.backend(name), wish.device, self._progress)
            self._known[name] = scoring.evaluate(answers, self.questions, lambda _done, _of: self._progress.check())[0]
        return self._known[name]


def _texts(scored: Sequence[Scored]) -> list[str]:
    return [each.answer.text for each in scored]
