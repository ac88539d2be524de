"""One question put to several backends: first an answer of each, then turns to tighten the comparison.

Whoever asks is handed what is known as it grows; nothing here knows of the page that draws it.
"""

from __future__ import annotations

import statistics
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.asking.language import language_notice
from qa_backends.contract import StageTimes, same_answer
from qa_backends.errors import InputError, QAError
from qa_backends.measure.timing.load import BUSY_ABOVE, LoadMeter
from qa_backends.measure.timing.rounds import Samples, least_turns_s, settle, take_turns, turns_fit, without_wait
from qa_backends.measure.timing.statistics import LEAST_ROUNDS, LOOKED_AT
from qa_backends.progress import Progress
from qa_backends.reader.reader import check
from qa_backends.runtime.telling import TELL_FROM_S, roughly

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from qa_backends.catalog import Backend, Family
    from qa_backends.contract import Answer, Query, Reading
    from qa_backends.measure.timing.statistics import Ratio
    from qa_backends.reader.reader import Prepared
    from qa_backends.runtime import Runtime, Turn

    Emit = Callable[["Asking"], None]

LIVE_SECONDS = 15.0
"""Turns go on for at most so long, by default."""
LEAST_LIVE_SECONDS = 2.0
"""And for at least so long, however soon the interval is narrow: the first rounds may all be alike by chance."""
TOKENISE_RUNS = 5
TOKENISE_S = 1.0
"""Tokenising is timed so often, and for about so long, before the turns."""
DOES_NOT_FIT = "One reading: it takes no turns, since it does not fit into the memory beside the others."


@dataclass(slots=True)
class Outcome:
    """What one backend gave: a reading, or why there is none; ``cold_s`` is its first run on the question.

    ``early`` is the answer of that first run, known while the text is read again to be timed. ``load_s`` and
    ``memory_bytes`` are those of ``runtime.cost.LoadCost``, when it was loaded, for this question or an earlier one;
    ``build_s`` is what building it took in this process, 0 where it was built already.
    """

    backend: Backend
    reading: Reading | None = None
    cold_s: float = 0.0
    error: str | None = None
    notices: tuple[str, ...] = ()
    early: Answer | None = None
    load_s: float | None = None
    memory_bytes: int | None = None
    build_s: float = 0.0

    @property
    def answer(self) -> Answer | None:
        """As soon as it is known, which on slow machines is before its times are."""
        return self.reading.answer if self.reading else self.early

    def fail(self, sentence: str) -> None:
        """Takes the answer back: who failed has none."""
        self.reading, self.early, self.error = None, None, sentence


@dataclass(slots=True)
class Asking:
    """All that is known of one question so far. ``status`` is empty when nothing more will come; ``timing`` says that
    what follows is timed, and not to be disturbed.

    ``busy`` is the share of this machine's cores that others took while the times that are shown were measured: during
    the turns, or during the first answers where no turns were taken; ``None`` where the system does not tell, it was
    too short, or a backend computes in another process. ``language_notice`` is a sentence where the text does not look
    to be in the models' language, ``turns_notice`` one where there are no turns to go by, or too few.
    """

    query: Query
    family: Family
    device: str
    outcomes: list[Outcome]
    status: str = ""
    timing: bool = False
    tokens: int = 0
    samples: Samples = field(default_factory=Samples)
    busy: float | None = None
    language_notice: str = ""
    turns_notice: str = ""

    @property
    def disturbed(self) -> bool:
        """Whether others took so much of the machine that the times are not to be relied upon."""
        return self.busy is not None and self.busy > BUSY_ABOVE

    def copy(self) -> Asking:
        """All that is known now; what becomes known later does not change it."""
        return replace(self, outcomes=[replace(each) for each in self.outcomes])

    @property
    def answered(self) -> list[Outcome]:
        return [each for each in self.outcomes if each.reading is not None]

    @property
    def baseline(self) -> Outcome | None:
        return next((each for each in self.answered if each.backend.name == catalog.BASELINE), None)

    def timed(self, outcome: Outcome) -> list[StageTimes]:
        """The backend's runs in turns; none while there are fewer rounds than an interval needs."""
        runs = self.samples.times.get(outcome.backend.name, [])
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
        return StageTimes(
            tokenise_s=statistics.median(each.tokenise_s for each in timed),
            wait_s=outcome.reading.times.wait_s,
            forward_s=statistics.median(each.forward_s for each in timed),
            decode_s=statistics.median(each.decode_s for each in timed),
        )

    def speed_up(self, outcome: Outcome, *, among: int = 1) -> Ratio | None:
        """Against the baseline; ``None`` without one, for the baseline itself, and with fewer than five rounds."""
        if self.baseline is None or outcome is self.baseline or not self.timed(outcome):
            return None
        return self.samples.speed_up(outcome.backend.name, catalog.BASELINE, among=among)

    def fastest(self) -> tuple[Outcome, Ratio] | None:
        """The backend whose ratio is the highest, with an interval that holds for all rivals at once."""
        rivals = [each for each in self.answered if each is not self.baseline and self.timed(each)]
        ratios = [(each, self.speed_up(each, among=len(rivals))) for each in rivals]
        found = [(each, ratio) for each, ratio in ratios if ratio is not None]
        return max(found, key=lambda each: each[1].value, default=None)

    def same_answer(self, outcome: Outcome) -> bool | None:
        """Whether the answer is the baseline's; ``None`` without a baseline to compare with."""
        if self.baseline is None or self.baseline.reading is None or outcome.reading is None:
            return None
        return same_answer(outcome.reading.answer, self.baseline.reading.answer)


def ask(
    runtime: Runtime,
    family: Family,
    backends: Sequence[Backend],
    query: Query,
    device: str,
    *,
    seconds: float = LIVE_SECONDS,
    emit: Emit = lambda _: None,
    stopped: Callable[[], bool] = lambda: False,
) -> Asking:
    """Asks every backend and returns all that became known; ``emit`` is given it whenever there is something new.

    After the first answers the backends take turns until the fastest one's ratio is known well, or for ``seconds``; 0
    leaves the turns out. What goes wrong with one backend is in its outcome, while the others' results stay.

    Raises:
        InputError: nothing to ask, or nobody to ask it of; or the family's weights are random.
        QAError: the family's tokenizer cannot be had, so that no backend can answer.
        Cancelled: ``stopped()``, or ``emit`` raised it.
    """
    check(query)
    family.check_answers()
    if not backends:
        raise InputError("No backend is chosen. Tick at least one.")
    state = Asking(query, family, device, [Outcome(each) for each in backends])
    state.language_notice = language_notice(query.context, family.language)

    place = ""  # which of the backends is at work, where there are several

    def tell(status: str) -> None:
        state.status = status and place + status
        emit(state)

    progress = Progress(tell, stopped)
    runtime.download(family, backends, progress)
    for outcome in state.outcomes:
        with _noting(outcome):
            runtime.make_ready(family, outcome.backend, device, progress)
    if all(each.error for each in state.outcomes):
        tell("")
        return state
    with runtime.turn(device, progress) as turn:
        progress.say("Reading the text …")
        prepared = turn.prepare(family, query)
        state.tokens = prepared.tokens
        meter = LoadMeter()
        asked = [each for each in state.outcomes if each.error is None]
        for number, outcome in enumerate(asked, 1):
            place = f"{number} of {len(asked)}: " if len(asked) > 1 else ""
            with _noting(outcome):
                _first_answer(turn, state, outcome, prepared, meter)
        place = ""
        state.busy = _of_ours(state, meter.share())
        if seconds > 0 and state.answered:
            _take_turns(turn, state, prepared, seconds)
    tell("")
    return state


def _of_ours(state: Asking, others: float | None) -> float | None:
    """What others took of the cores, where the backends work on these."""
    return others if all(each.backend.engine_class.computes_here for each in state.answered) else None


@contextmanager
def _noting(outcome: Outcome) -> Iterator[None]:
    """For work on one of them: what goes wrong is the outcome's own."""
    try:
        yield
    except QAError as error:
        outcome.fail(str(error))


def _first_answer(turn: Turn, state: Asking, outcome: Outcome, prepared: Prepared, meter: LoadMeter) -> None:
    """What loading the backend cost; its answer, as soon as it is known; then its times.

    ``meter`` runs while it answers, and not while it is loaded: a compiler that PyTorch starts is none of the others.
    """

    def known(cold: Reading) -> None:
        outcome.early = cold.answer
        if cold.times.compute_s > TELL_FROM_S:
            about = roughly(cold.times.compute_s)
            turn.progress.say(f"{outcome.backend.title} has answered, and is timed on a second run, {about} …")

    family, backend = state.family, outcome.backend
    cost = turn.runtime.get(family, backend, turn.device, turn.progress).cost
    outcome.load_s, outcome.memory_bytes = cost.load_s, cost.memory_bytes
    outcome.build_s = turn.runtime.build_s(family, backend, turn.device)
    state.timing = True
    turn.progress.say(f"{backend.title} is answering …")
    settle()
    meter.start()
    try:
        outcome.reading, outcome.cold_s = turn.warm_answer(family, backend, prepared, known)
    finally:
        meter.stop()
        state.timing = False


def _take_turns(turn: Turn, state: Asking, prepared: Prepared, seconds: float) -> None:
    """Tightens the comparison; a backend that dies meanwhile loses its answer to the sentence that says so.

    Where even the fewest turns would take longer than ``seconds``, the first readings are left as they are.
    """
    compared, beyond = _fitting(turn, state)
    first = [each.reading.times for each in compared if each.reading]
    one_each_s = sum(each.forward_s + each.decode_s for each in first)  # a turn does not tokenise again
    if not turns_fit(one_each_s, len(first), seconds):
        needed = roughly(least_turns_s(one_each_s, len(first)))
        state.turns_notice = f"One reading of each: turns that tell more take {needed}, and {seconds:.0f} s were given."
        return
    for each in beyond:
        each.notices = (DOES_NOT_FIT,)
    compared = _loaded(turn, state, compared)
    state.timing = True
    turn.progress.say(f"Taking turns to compare speeds, for at most {seconds:.0f} s …")
    tokenise_s = _tokenise_s(turn, state)
    runs = {each.backend.name: partial(_run, turn, state, each, prepared, tokenise_s) for each in compared}
    of_first = state.busy
    try:
        for samples in take_turns(runs, seconds=seconds, one_each_s=one_each_s):
            state.samples = samples
            if len(samples.blocks) >= LEAST_ROUNDS:  # before that, the first readings are what is shown
                state.busy = _of_ours(state, samples.others)
            turn.progress.say(_turns_so_far(samples, seconds))
            if samples.spent_s >= min(seconds, LEAST_LIVE_SECONDS) and _known_well(state):
                break
    except QAError:
        state.samples, state.busy = Samples(), of_first  # one of a round is missing: left are the first readings
        state.turns_notice = "One reading of each: a backend failed while they took turns."
        return
    if runs and len(state.samples.blocks) < LEAST_ROUNDS:
        needed = f"{LEAST_ROUNDS} rounds did not fit into {seconds:.0f} s"
        state.turns_notice = f"One reading of each: turns were slower than the first answers, and {needed}."


def _tokenise_s(turn: Turn, state: Asking) -> float:
    """The median of a few runs; of the longest texts, which take long to tokenise, of fewer."""
    took: list[float] = []
    while len(took) < TOKENISE_RUNS and sum(took) < TOKENISE_S:
        turn.progress.check()
        took.append(turn.prepare(state.family, state.query).tokenise_s)
    return statistics.median(took)


def _turns_so_far(samples: Samples, seconds: float) -> str:
    runs = sum(samples.blocks)
    return (
        f"Taking turns: {runs} run{'s' if runs != 1 else ''} of each, {samples.spent_s:.0f} of at most {seconds:.0f} s"
    )


def _known_well(state: Asking) -> bool:
    """Whether more turns would not say more: the fastest one's interval is narrow, or there is nothing to compare."""
    rounds = len(state.samples.blocks)
    if state.baseline is None or len(state.samples.times) < 2:
        return rounds >= LEAST_ROUNDS
    fastest = state.fastest() if rounds in LOOKED_AT else None
    return fastest is not None and fastest[1].narrow


def _fitting(turn: Turn, state: Asking) -> tuple[list[Outcome], list[Outcome]]:
    """Those that fit into the device's memory together, the baseline before all, without which there is no ratio; and
    the others.

    Turns that reload a model each time would leave no time to measure in.
    """
    sized: list[tuple[Outcome, int]] = []
    for each in sorted(state.answered, key=lambda each: each is not state.baseline):
        with _noting(each):
            sized.append((each, turn.runtime.size_of(state.family, each.backend, turn.device)))
    fit = turn.runtime.fitting([size for _, size in sized], turn.device)
    compared = [each for (each, _), fits in zip(sized, fit, strict=True) if fits]
    return compared, [each for (each, _), fits in zip(sized, fit, strict=True) if not fits]


def _loaded(turn: Turn, state: Asking, outcomes: list[Outcome]) -> list[Outcome]:
    """Those that are loaded, or could be again after they made room for others: the turns' time is not for loading."""
    for outcome in outcomes:
        with _noting(outcome):
            turn.runtime.get(state.family, outcome.backend, turn.device, turn.progress)
    return [each for each in outcomes if each.error is None]


def _run(turn: Turn, state: Asking, outcome: Outcome, prepared: Prepared, tokenise_s: float) -> StageTimes:
    try:
        return without_wait(turn.answer(state.family, outcome.backend, prepared).times, tokenise_s)
    except QAError as error:
        outcome.fail(str(error))
        raise
