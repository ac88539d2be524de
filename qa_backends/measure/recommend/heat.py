"""A heat: contestants take turns on a question of each length, until somebody has seen enough."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from qa_backends.measure.benchmark.contestants import AS_ASKED, charged_to
from qa_backends.measure.benchmark.plan import PIPELINE
from qa_backends.measure.timing.rounds import take_turns
from qa_backends.measure.timing.statistics import speed_up

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from qa_backends.contract import Query, StageTimes
    from qa_backends.measure.benchmark.contestants import Contestant
    from qa_backends.measure.timing.rounds import Samples
    from qa_backends.measure.timing.statistics import Ratio
    from qa_backends.runtime import Turn

    Asked = Mapping[int, Sequence[Query]]
    """By length, the queries that make one run."""

WARM_UP_SHARE = 0.3
"""Of a heat's time, for ten warm-up runs of each at every length."""


@dataclass(frozen=True, slots=True)
class Heat:
    """The samples so far, by contestant and length."""

    samples: Samples
    lengths: tuple[int, ...]

    @property
    def rounds(self) -> int:
        return len(self.samples.blocks)

    @property
    def runs(self) -> int:
        """Of each contestant at each length."""
        return sum(self.samples.blocks)

    @property
    def backends(self) -> int:
        """How many take turns, transformers' pipeline not counted."""
        everybody = len(self.samples.times) // len(self.lengths)
        return everybody - (_key(PIPELINE, self.lengths[0]) in self.samples.times)

    def p50_ms(self, name: str) -> dict[int, float]:
        """Median of whole answers, by length."""
        return {tokens: 1000 * statistics.median(self._at(name, tokens)) for tokens in self.lengths}

    def speed_up(self, name: str, reference: str, *, among: int = 1) -> Ratio | None:
        """By the time of one run at each length together, so that no length counts for more than it takes; ``None``
        where one of them took no part."""
        if not {_key(name, self.lengths[0]), _key(reference, self.lengths[0])} <= self.samples.times.keys():
            return None
        return speed_up(self._wholes(reference), self._wholes(name), self.samples.blocks, among=among)

    def _wholes(self, name: str) -> list[float]:
        """Runs of the same round and place, of every length, make one whole."""
        return [sum(each) for each in zip(*(self._at(name, tokens) for tokens in self.lengths), strict=True)]

    def _at(self, name: str, tokens: int) -> list[float]:
        return self.samples.compute_s(_key(name, tokens))


def heat(
    turn: Turn, contestants: Sequence[Contestant], asked: Asked, seconds: float, *, one_each_s: float = 0.0
) -> Iterator[Heat]:
    """What there is after every whole round, for at most about ``seconds``; nothing where five rounds do not fit.
    ``one_each_s`` as in ``take_turns``.

    Raises:
        ContestantFailedError: one of them failed; the others can start again without it.
        Cancelled: the turn's progress says to stop.
    """
    runs = {
        _key(each.name, tokens): partial(_run, turn, each, queries)
        for each in contestants
        for tokens, queries in asked.items()
    }
    for samples in take_turns(runs, seconds=seconds, one_each_s=one_each_s, warm_up_share=WARM_UP_SHARE):
        yield Heat(samples, tuple(asked))


def reading(turn: Turn, contestant: Contestant, asked: Asked) -> dict[int, float]:
    """Milliseconds of one run at each length. Raises what ``heat`` raises."""
    return {tokens: 1000 * _run(turn, contestant, queries).compute_s for tokens, queries in asked.items()}


def _run(turn: Turn, contestant: Contestant, queries: Sequence[Query]) -> StageTimes:
    turn.progress.check()
    with charged_to(contestant.name):
        return contestant.answer(turn, queries, AS_ASKED).times


def _key(name: str, tokens: int) -> str:
    return f"{name} {tokens}"
