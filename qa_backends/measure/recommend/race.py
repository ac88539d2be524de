"""The race: whoever is clearly slower goes as early as can be, until the fastest is known or the time is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.errors import InputError, QAError
from qa_backends.measure.benchmark.contestants import BackendContestant, ContestantFailedError, Reference
from qa_backends.measure.benchmark.inputs import queries_of_length
from qa_backends.measure.benchmark.plan import PIPELINE
from qa_backends.measure.quality.datasets import own_questions
from qa_backends.measure.recommend.heat import heat, reading
from qa_backends.measure.timing.statistics import LEAST_ROUNDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from qa_backends.measure.benchmark.contestants import Contestant
    from qa_backends.measure.recommend.heat import Heat
    from qa_backends.measure.recommend.search import Candidate, Search
    from qa_backends.progress import Progress
    from qa_backends.runtime import Runtime, Turn

TOO_SLOW = 2.0
"""Who takes so many times as long as the best, in the better of two warm readings, needs no interval to be out."""
SIFTING_SHARE = 0.4
"""Of the race's time, for the heat of all who are left after that; the rest is for the last one."""
LEAST_GAIN = 1.02
"""What is within 2 % of the fastest is as fast: nobody decides by less, and a machine's own pace drifts by more."""
LOOKED_AT = frozenset(LEAST_ROUNDS * 2**power for power in range(12))
"""Rounds after which the last heat may end early."""
HEATS = 3
"""Steps of the race: the readings, the sifting, the last heat."""


class Race:
    """One race of a search's candidates that are not out."""

    def __init__(self, runtime: Runtime, search: Search, progress: Progress) -> None:
        self._runtime, self._search, self._progress = runtime, search, progress
        self._wish = search.wish
        reader, questions = runtime.reader(self._wish.of, progress), own_questions()
        self._asked = {
            tokens: queries_of_length(reader, questions, tokens, self._wish.batch) for tokens in self._wish.lengths
        }

    def run(self) -> None:
        """Leaves those as fast as the fastest, and notes how they stand to each other and to transformers' pipeline.

        Raises:
            InputError: five rounds do not fit into the time.
            Cancelled: the progress says to stop.
        """
        self._look()
        sifting_s = SIFTING_SHARE * self._wish.seconds
        if len(self._search.left) > 1:
            self._drop_slower(self._heat("Sifting", self._backends(), sifting_s, lambda _: True))
        self._search.done += 1
        last = self._heat("Last heat", self._with_reference(), self._wish.seconds - sifting_s, self._parted)
        if last is not None:
            self._drop_slower(last)
            self._choose(last)
        self._search.done += 1

    def _backends(self) -> list[Contestant]:
        return [BackendContestant(self._wish.of, catalog.backend(each.name)) for each in self._search.left]

    def _with_reference(self) -> list[Contestant]:
        """Those left, and transformers' pipeline where that fits beside them."""
        found = [*self._backends(), Reference(self._wish.of, PIPELINE)]
        sizes = [each.bytes(self._runtime, self._wish.device) for each in found]
        fits = self._runtime.fitting(sizes, self._wish.device)
        return [each for each, fit in zip(found, fits, strict=True) if fit]

    def _look(self) -> None:
        """The better of two warm readings of each."""
        with self._runtime.turn(self._wish.device, self._progress) as turn:
            for each in self._backends():
                candidate = self._search.candidate(each.name)
                self._progress.say(f"{candidate.title}: first readings …")
                try:
                    _load(each, turn)
                    _, *warm = (reading(turn, each, self._asked) for _ in range(3))
                    candidate.ms = min(warm, key=lambda ms: sum(ms.values()))
                except ContestantFailedError as failed:
                    self._leave_out(failed.name, str(failed))
        for candidate in self._search.left:
            times = candidate.whole_ms / self._search.raced[0].whole_ms
            if times > TOO_SLOW:
                candidate.out = f"In first readings it took {times:.1f} times as long as the fastest."
        self._search.done += 1

    def _heat(
        self, what: str, contestants: Sequence[Contestant], seconds: float, enough: Callable[[Heat], bool]
    ) -> Heat | None:
        """Ends when ``enough`` says so, or after ``seconds``; begins again without whoever fails, if any are left."""
        while self._search.left:
            try:
                with self._runtime.turn(self._wish.device, self._progress) as turn:
                    return self._take_turns(turn, what, contestants, seconds, enough)
            except ContestantFailedError as failed:
                self._leave_out(failed.name, str(failed))
                contestants = [each for each in contestants if each.name != failed.name]
        return None

    def _take_turns(
        self, turn: Turn, what: str, contestants: Sequence[Contestant], seconds: float, enough: Callable[[Heat], bool]
    ) -> Heat:
        for each in contestants:
            _load(each, turn)
        self._progress.say(f"{what}: {len(contestants)} warm up …")
        found: Heat | None = None
        for found in heat(turn, contestants, self._asked, seconds):
            self._search.left_s = max(0.0, seconds - found.samples.spent_s)
            for candidate in self._search.left:
                candidate.ms, candidate.turns = found.p50_ms(candidate.name), found.runs
            self._progress.say(f"{what}: {found.runs} turns of each of {len(contestants)}")
            if found.rounds >= LEAST_ROUNDS and enough(found):
                break
        if found is None or found.rounds < LEAST_ROUNDS:
            raise InputError(
                f"Five turns of each of {len(contestants)} do not fit into {seconds:.0f} s, their part of the race. "
                "Give it more seconds, or choose shorter texts."
            )
        return found

    def _fastest_and_rivals(self) -> tuple[Candidate, list[Candidate]]:
        fastest, *rivals = sorted(self._search.left, key=lambda each: each.whole_ms)
        return fastest, rivals

    def _drop_slower(self, found: Heat | None) -> None:
        """Whoever is surely slower than the fastest."""
        if found is None:
            return
        fastest, rivals = self._fastest_and_rivals()
        fastest.behind = None
        for each in rivals:
            each.behind = found.speed_up(fastest.name, each.name, among=len(rivals))
            if each.behind and each.behind.low > LEAST_GAIN:
                each.out = f"It takes {each.behind} as long as {fastest.title}, {found.runs} turns of each."

    def _parted(self, found: Heat) -> bool:
        """Whether every interval says what it can: nobody else as fast, and the figure against the pipeline narrow.

        Looked at only when the rounds have doubled: who looks after each one stops at the first lucky interval.
        """
        if found.rounds not in LOOKED_AT:
            return False
        fastest, rivals = self._fastest_and_rivals()
        ratios = [found.speed_up(fastest.name, each.name, among=len(rivals)) for each in rivals]
        whole = found.speed_up(fastest.name, PIPELINE)
        return all(each and each.low > LEAST_GAIN for each in ratios) and (whole is None or whole.narrow)

    def _choose(self, last: Heat) -> None:
        """Of those as fast as the fastest, the one that takes the least memory."""
        left = sorted(self._search.left, key=lambda each: each.whole_ms)
        for each in left:
            each.speed_up = last.speed_up(each.name, PIPELINE)
        known = all(each.memory_bytes is not None for each in left)
        best = min(left, key=lambda each: each.memory_bytes or 0) if known else left[0]
        self._search.advised, self._search.tied = best.name, tuple(each.name for each in left)

    def _leave_out(self, name: str, why: str) -> None:
        """A candidate; the reference only stays away."""
        for each in self._search.candidates:
            if each.name == name:
                each.out = why


def _load(contestant: Contestant, turn: Turn) -> None:
    """Raises ContestantFailedError where it cannot be loaded."""
    try:
        contestant.load(turn)
    except QAError as error:
        raise ContestantFailedError(contestant.name, error) from error
