"""One question put to several backends: first an answer of each, then turns to tighten the comparison.

Whoever asks is handed the comparison as it grows; nothing here knows of the page that draws it.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.errors import InputError, QAError
from qa_backends.measure.rounds import Samples, take_turns, without_wait
from qa_backends.measure.statistics import LEAST_ROUNDS
from qa_backends.reader.reader import check

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from qa_backends.catalog import Backend, Family
    from qa_backends.contract import Query, Reading, StageTimes
    from qa_backends.measure.statistics import Ratio
    from qa_backends.reader.reader import Prepared
    from qa_backends.runtime import Runtime, Turn

    Emit = Callable[["Comparison"], None]

LIVE_SECONDS = 3.0
TOKENISE_RUNS = 5


@dataclass(slots=True)
class Outcome:
    """What one backend gave: a reading, or why there is none; ``cold_s`` is its first run on the question."""

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

    def timed(self, outcome: Outcome) -> list[StageTimes]:
        """The backend's runs in turns; none while there are fewer rounds than an interval needs."""
        runs = self.samples.times.get(outcome.row.name, [])
        return runs if len(self.samples.blocks) >= LEAST_ROUNDS else []

    def latency_s(self, outcome: Outcome) -> float:
        """The median of the timed runs, or the one reading where there are none."""
        assert outcome.reading is not None
        timed = self.timed(outcome)
        return statistics.median(each.compute_s for each in timed) if timed else outcome.reading.times.compute_s

    def parts(self, outcome: Outcome) -> StageTimes:
        """Medians of each part over the timed runs, with the wait of the one reading."""
        assert outcome.reading is not None
        timed = self.timed(outcome)
        if not timed:
            return outcome.reading.times
        median = {
            part: statistics.median(getattr(t, part) for t in timed) for part in ("tokenise_s", "forward_s", "decode_s")
        }
        return type(timed[0])(wait_s=outcome.reading.times.wait_s, **median)

    def speed_up(self, outcome: Outcome) -> Ratio | None:
        """Against the baseline; ``None`` without one, for the baseline itself, and with fewer than five rounds."""
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
    emit: Emit = lambda _: None,
) -> Comparison:
    """Asks every backend and returns the comparison; ``emit`` is given it whenever it has something new.

    ``seconds`` bounds the turns after the first answers; 0 leaves them out. What goes wrong with one backend is in its
    outcome, while the others' results stay.

    Raises:
        InputError: nothing to ask, or nobody to ask it of.
        QAError: the family's tokenizer cannot be had, so that no backend can answer.
    """
    check(query)
    if not rows:
        raise InputError("No backend is chosen. Tick at least one.")
    state = Comparison(query, group, device, [Outcome(row) for row in rows])

    def say(status: str) -> None:
        state.status = status
        emit(state)

    catalog.download(group, rows, say)
    with runtime.turn(device, say) as turn:
        say("Reading the text …")
        prepared = turn.prepare(group, query)
        for outcome in state.outcomes:
            say(f"{outcome.row.title} is answering …")
            try:
                outcome.reading, outcome.cold_s = turn.warm_answer(group, outcome.row, prepared)
            except QAError as error:
                outcome.error = str(error)
        if seconds > 0 and state.answered:
            _take_turns(turn, state, prepared, seconds, say)
    say("")
    return state


def _take_turns(turn: Turn, state: Comparison, prepared: Prepared, seconds: float, say: Callable[[str], None]) -> None:
    """Tightens the comparison; a backend that dies meanwhile loses its answer to the sentence that says so."""
    say("Taking turns to compare speeds …")
    tokenise_s = statistics.median(turn.prepare(state.group, state.query).tokenise_s for _ in range(TOKENISE_RUNS))

    def run_of(outcome: Outcome) -> Callable[[], StageTimes]:
        def run() -> StageTimes:
            try:
                return without_wait(turn.answer(state.group, outcome.row, prepared).times, tokenise_s)
            except QAError as error:
                outcome.reading, outcome.error = None, str(error)
                raise

        return run

    runs = {each.row.name: run_of(each) for each in state.answered}
    one_each_s = sum(each.reading.times.compute_s for each in state.answered if each.reading)
    try:
        for samples in take_turns(runs, seconds=seconds, one_each_s=one_each_s):
            state.samples = samples
            say(state.status)
    except QAError:
        state.samples = Samples()  # one of a round is missing, so what is left are the first readings
