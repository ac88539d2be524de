"""The race: whoever is clearly slower goes as early as can be, until the fastest is known or the time is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.errors import InputError
from qa_backends.measure.benchmark.contestants import BackendContestant, ContestantFailedError, Reference, charged_to
from qa_backends.measure.benchmark.inputs import queries_of_length
from qa_backends.measure.benchmark.plan import PIPELINE
from qa_backends.measure.quality.datasets import own_questions
from qa_backends.measure.recommend.heat import heat, reading
from qa_backends.measure.timing.rounds import settle, turns_fit
from qa_backends.measure.timing.statistics import LEAST_ROUNDS, LOOKED_AT

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from qa_backends.measure.benchmark.contestants import Contestant
    from qa_backends.measure.recommend.heat import Heat
    from qa_backends.measure.recommend.search import Candidate, Search
    from qa_backends.progress import Progress
    from qa_backends.runtime import Runtime, Turn

TOO_SLOW = 2.0
"""Who takes so many times as long as the best, in the better of two warm readings, needs no interval to be out."""
SIFTING_SHARE = 0.4
"""Of the race's time, at most, for the heat of all who are left after that; the rest is for the last one."""
LEAST_GAIN = 1.02
"""What is within 2 % of the fastest is as fast: nobody decides by less, and a machine's own pace drifts by more."""
HEATS = 3
"""Steps of the race: the readings, the sifting, the last heat."""


class Race:
    """One race of a search's candidates that are not out; what was ``loaded_before`` the search stays loaded."""

    def __init__(
        self, runtime: Runtime, search: Search, progress: Progress, loaded_before: Collection[str] = ()
    ) -> None:
        self._runtime, self._search, self._progress = runtime, search, progress
        self._loaded_before = loaded_before
        self._wish = search.wish
        self._left_s = self._wish.seconds
        reader, questions = runtime.reader(self._wish.of, progress), own_questions()
        self._asked = {
            tokens: queries_of_length(reader, questions, tokens, self._wish.batch) for tokens in self._wish.lengths
        }

    def run(self) -> None:
        """Leaves those as fast as the fastest, and notes how they stand to each other and to transformers' pipeline.

        Raises:
            InputError: five rounds of a single one do not fit into the time.
            Cancelled: the progress says to stop.
        """
        self._look()
        self._fit_together()
        self._search.done += 1
        if len(self._search.left) > 1:
            self._heat("Sifting", SIFTING_SHARE * self._left_s, lambda found: found.rounds in LOOKED_AT)
        self._search.done += 1
        last = self._heat("Last heat", self._left_s, self._parted, last=True)
        if last is not None:
            self._choose(last)

    def _look(self) -> None:
        """The better of two warm readings of each, each in a turn of its own."""
        for candidate in self._search.left:
            self._progress.say(f"{candidate.title}: first readings …")
            with self._runtime.turn(self._wish.device, self._progress) as turn:
                self._read(candidate, turn)
        quickest = self._search.quickest
        for candidate in self._search.left:
            times = candidate.whole_ms / quickest[0].whole_ms
            if times > TOO_SLOW:
                candidate.lose_to(quickest[0], f"In first readings it took {times:.1f} times as long as the fastest.")

    def _read(self, candidate: Candidate, turn: Turn) -> None:
        contestant = self._contestant(candidate)
        try:
            with charged_to(contestant.name):
                contestant.load(turn)
            self._search.timing = True
            self._progress.say(f"{candidate.title}: first readings …")
            settle()
            candidate.ms = reading(turn, contestant, self._asked)
            if not self._fits(candidate):
                candidate.ms = reading(turn, contestant, self._asked)  # first runs may be slow
            if not self._fits(candidate):
                candidate.out = f"Five turns do not fit into the race: one takes {candidate.whole_ms / 1000:.1f} s."
                return
            candidate.ms = min(
                (reading(turn, contestant, self._asked) for _ in range(2)), key=lambda ms: sum(ms.values())
            )
        except ContestantFailedError as failed:
            self._leave_out(failed)
        finally:
            self._search.timing = False

    def _fits(self, candidate: Candidate) -> bool:
        """Whether the fewest turns of it do."""
        return turns_fit(sum(candidate.ms.values()) / 1000, len(candidate.ms), self._wish.seconds)

    def _contestant(self, candidate: Candidate) -> BackendContestant:
        return BackendContestant(self._wish.of, catalog.backend(candidate.name))

    def _fit_together(self) -> None:
        """The quickest first: those whose weights do not fit into the memory beside them are out."""
        quickest = self._search.quickest
        sizes = [self._contestant(each).bytes(self._runtime, self._wish.device) for each in quickest]
        for each, fits in zip(quickest, self._runtime.fitting(sizes, self._wish.device), strict=True):
            if not fits:
                each.lose_to(quickest[0], "Its weights do not fit into the memory budget beside those of quicker ones.")

    def _heat(self, what: str, seconds: float, enough: Callable[[Heat], bool], *, last: bool = False) -> Heat | None:
        """Ends when ``enough`` says so, or after ``seconds``, and drops who is slower; ``None``: all are out, or
        five rounds of all do not fit and another heat comes, which has more time.

        It begins again without whoever fails, and the ``last`` one, where five rounds do not fit, without the
        reference, which only that one has, then without the slowest. Raises InputError where they do not fit even for
        one.
        """
        reference = last
        while self._search.left:
            contestants = self._line_up(reference=reference)
            try:
                with self._runtime.turn(self._wish.device, self._progress) as turn:
                    self._unload_who_is_out()
                    found = self._take_turns(turn, what, contestants, seconds, enough)
                    if found is not None:
                        self._drop_slower(found, last=last)
                        self._unload_who_is_out()
            except ContestantFailedError as failed:
                reference = reference and failed.name != PIPELINE
                self._leave_out(failed)
                self._fit_together()  # who is back may have been out for want of room
                continue
            if found is not None:
                self._left_s -= min(self._left_s, found.samples.spent_s)
                return found
            if not last:
                return None
            if not reference:
                self._drop_slowest(seconds)
            reference = False
        return None

    def _unload_who_is_out(self) -> None:
        left = [each.name for each in self._search.left]
        unload_but(left, self._runtime, self._search, self._loaded_before)

    def _line_up(self, *, reference: bool) -> list[Contestant]:
        """Those left, and transformers' pipeline where it is wanted and fits beside them."""
        found: list[Contestant] = [self._contestant(each) for each in self._search.left]
        if not reference:
            return found
        found.append(Reference(self._wish.of, PIPELINE))
        fits = self._runtime.fitting(
            [each.bytes(self._runtime, self._wish.device) for each in found], self._wish.device
        )
        return [each for each, fit in zip(found, fits, strict=True) if fit]

    def _take_turns(
        self, turn: Turn, what: str, contestants: Sequence[Contestant], seconds: float, enough: Callable[[Heat], bool]
    ) -> Heat | None:
        """What there is in the end; ``None`` where five rounds do not fit."""
        for each in contestants:
            with charged_to(each.name):
                each.load(turn)
        self._search.left_s, self._search.timing = 0.0, True
        found: Heat | None = None
        try:
            self._progress.say(f"{what}: {len(contestants)} warm up …")
            for found in heat(turn, contestants, self._asked, seconds, one_each_s=self._one_each_s(contestants)):
                self._search.left_s = max(0.0, self._left_s - found.samples.spent_s)
                for candidate in self._search.left:
                    candidate.ms, candidate.turns = found.p50_ms(candidate.name), found.runs
                self._progress.say(f"{what}: {found.runs} turns of each of {len(contestants)}")
                if found.rounds >= LEAST_ROUNDS and enough(found):
                    break
        finally:
            self._search.timing = False
        if found is None or found.rounds < LEAST_ROUNDS:
            return None
        here = all(each.computes_here for each in contestants)
        self._search.others.append(found.samples.others if here else None)
        return found

    def _one_each_s(self, contestants: Sequence[Contestant]) -> float:
        """Of a run of each at each length, by what is known of them; 0 with the pipeline, which had no reading."""
        candidates = [self._search.candidate(each.name) for each in contestants if each.name != PIPELINE]
        return sum(each.whole_ms for each in candidates) / 1000 if len(candidates) == len(contestants) else 0.0

    def _drop_slower(self, found: Heat, *, last: bool) -> None:
        """Whoever is surely slower than the fastest, which only as many rounds tell as the first look waits for; of the
        ``last`` heat, whose time is over, whoever seems so by fewer."""
        fastest, *rivals = self._search.quickest
        fastest.behind = None
        for each in rivals:
            each.behind = found.speed_up(fastest.name, each.name, among=len(rivals))
            if each.behind is None or each.behind.low <= LEAST_GAIN:
                continue
            took = f"{each.behind} as long as {fastest.title}"
            if found.rounds >= min(LOOKED_AT):
                each.lose_to(fastest, f"It takes {took}, {found.runs} turns of each.")
            elif last:
                each.lose_to(
                    fastest, f"It took {took}, in only {found.runs} turns of each: give it more seconds to be sure."
                )

    def _drop_slowest(self, seconds: float) -> None:
        """Where the time is too short for all of them."""
        *others, slowest = self._search.quickest
        if not others:
            raise InputError(
                f"Five turns of {slowest.title} alone do not fit into {seconds:.0f} s. Give the race more seconds, or "
                "choose shorter texts."
            )
        times = slowest.whole_ms / others[0].whole_ms
        slowest.lose_to(others[0], f"There was no time to race it; it takes about {times:.1f} times as long.")

    def _parted(self, found: Heat) -> bool:
        """Whether every interval says what it can: nobody else as fast, and the figure against the pipeline narrow."""
        if found.rounds not in LOOKED_AT:
            return False
        fastest, *rivals = self._search.quickest
        ratios = [found.speed_up(fastest.name, each.name, among=len(rivals)) for each in rivals]
        whole = found.speed_up(fastest.name, PIPELINE, among=found.backends)
        return all(each and each.low > LEAST_GAIN for each in ratios) and (whole is None or whole.narrow)

    def _choose(self, last: Heat) -> None:
        """Of those that may be as fast as the fastest, one that takes clearly less memory than it and is known to be
        about as fast, else itself: few turns tell neither."""
        left = self._search.quickest
        lighter = [
            each
            for each in left
            if each.lighter_than(left[0])
            and (ratio := last.speed_up(left[0].name, each.name, among=last.backends))
            and ratio.narrow
        ]
        best = min(lighter, key=lambda each: each.memory_bytes or 0, default=left[0])
        for each in left:
            each.speed_up = last.speed_up(each.name, PIPELINE, among=last.backends)
            each.behind = last.speed_up(best.name, each.name, among=last.backends) if each is not best else None
        self._search.advised, self._search.tied = best.name, tuple(each.name for each in left)

    def _leave_out(self, failed: ContestantFailedError) -> None:
        """A candidate that failed, and who was out only for being slower than it is back; the reference stays away."""
        for each in self._search.candidates:
            if each.name == failed.name:
                each.out = str(failed)
            elif each.slower_than == failed.name:
                each.out = each.slower_than = ""


def unload_but(kept: Collection[str], runtime: Runtime, search: Search, loaded_before: Collection[str]) -> None:
    """All candidates but those named, and the pipeline, unless they were ``loaded_before`` the search; within a turn,
    when nobody is at work with them. Engines keep what they make for each length that they meet: over the questions of
    a search up to half a gigabyte each, which no budget counts."""
    family, device = search.wish.of, search.wish.device
    for name in (PIPELINE, *(each.name for each in search.candidates)):
        if name not in kept and f"{family.name}/{name}" not in loaded_before:
            runtime.drop(family, name, device)
