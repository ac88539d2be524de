"""One question put to several backends: first an answer of each, then turns to tighten the comparison.

The states this yields are what the page draws; nothing here knows of the page.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.errors import InputError, QAError
from qa_backends.measure.rounds import Samples, take_turns, without_wait
from qa_backends.reader.reader import check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from qa_backends.catalog import Backend, Family
    from qa_backends.contract import Query, Reading, StageTimes
    from qa_backends.measure.statistics import Ratio
    from qa_backends.reader.reader import Prepared
    from qa_backends.runtime import Runtime, Turn

LIVE_SECONDS = 3.0
TOKENISE_RUNS = 5


@dataclass(slots=True)
class Outcome:
    """What one backend gave: a reading, or the sentence that says why not; ``cold_s`` is its very first run."""

    row: Backend
    reading: Reading | None = None
    cold_s: float = 0.0
    error: str | None = None


@dataclass(slots=True)
class Comparison:
    """All that is known of one question so far. ``status`` is empty when nothing more will come."""

    query: Query
    group: Family
    device: str
    outcomes: list[Outcome]
    status: str = ""
    samples: Samples = field(default_factory=Samples)

    @property
    def answered(self) -> list[Outcome]:
        return [each for each in self.outcomes if each.reading is not None]

    @property
    def baseline(self) -> Outcome | None:
        return next((each for each in self.answered if each.row.name == catalog.BASELINE), None)

    def latency_s(self, outcome: Outcome) -> float:
        """The median of the timed runs, or the one reading where there are none."""
        assert outcome.reading is not None
        timed = self.samples.compute_s(outcome.row.name)
        return statistics.median(timed) if timed else outcome.reading.times.compute_s

    def parts(self, outcome: Outcome) -> StageTimes:
        """Medians of each part over the timed runs, with the wait of the one reading."""
        assert outcome.reading is not None
        timed = self.samples.times.get(outcome.row.name)
        if not timed:
            return outcome.reading.times
        median = {
            part: statistics.median(getattr(t, part) for t in timed) for part in ("tokenise_s", "forward_s", "decode_s")
        }
        return type(timed[0])(wait_s=outcome.reading.times.wait_s, **median)

    def speed_up(self, outcome: Outcome) -> Ratio | None:
        """Against the baseline; ``None`` without one, for the baseline itself, and with fewer than five pairs."""
        if self.baseline is None or outcome is self.baseline:
            return None
        return self.samples.speed_up(outcome.row.name, catalog.BASELINE)

    def same_answer(self, outcome: Outcome) -> bool | None:
        """Whether the span is the baseline's; ``None`` without a baseline to compare with."""
        if self.baseline is None or self.baseline.reading is None or outcome.reading is None:
            return None
        return outcome.reading.answer.span == self.baseline.reading.answer.span


def ask(
    runtime: Runtime,
    group: Family,
    rows: Sequence[Backend],
    query: Query,
    device: str,
    *,
    seconds: float = LIVE_SECONDS,
) -> Iterator[Comparison]:
    """Yields the comparison whenever it has something new, the last one with an empty status.

    Raises:
        InputError: nothing to ask, or nobody to ask it of. What goes wrong with one backend is in its outcome.
    """
    check(query)
    if not rows:
        raise InputError("No backend is chosen. Tick at least one.")
    state = Comparison(query, group, device, [Outcome(row) for row in rows])
    ahead = runtime.waiting(device)
    if ahead:
        state.status = f"Waiting: {ahead} question{'s' if ahead > 1 else ''} ahead of yours …"
        yield state
    with runtime.turn(device) as turn:
        state.status = "Reading the text …"
        yield state
        prepared = turn.prepare(group, query)
        yield from _first_answers(turn, state, prepared)
        if seconds > 0 and state.answered:
            yield from _turns(turn, state, seconds)
    state.status = ""
    yield state


def _first_answers(turn: Turn, state: Comparison, prepared: Prepared) -> Iterator[Comparison]:
    for outcome in state.outcomes:
        state.status = f"{outcome.row.title} is preparing and answering …"
        yield state
        try:
            outcome.reading, outcome.cold_s = turn.warm_answer(state.group, outcome.row, prepared)
        except QAError as error:
            outcome.error = str(error)
        yield state


def _turns(turn: Turn, state: Comparison, seconds: float) -> Iterator[Comparison]:
    tokenise_s = statistics.median(turn.prepare(state.group, state.query).tokenise_s for _ in range(TOKENISE_RUNS))
    prepared = turn.prepare(state.group, state.query)

    def run_of(row: Backend) -> Callable[[], StageTimes]:
        return lambda: without_wait(turn.answer(state.group, row, prepared).times, tokenise_s)

    state.status = "Taking turns to compare speeds …"
    yield state
    try:
        for samples in take_turns({each.row.name: run_of(each.row) for each in state.answered}, seconds=seconds):
            state.samples = samples
            yield state
    except QAError as error:
        state.status = str(error)
        yield state
