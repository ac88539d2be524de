"""The benchmark: whole answers, tokenising and decoding included, point by point, backends taking turns at each.

Each point is a turn of its own: a person who asks meanwhile waits for the point, not for the benchmark, and neither is
timed while the other runs. Stopping keeps what was measured.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from qa_backends.errors import QAError
from qa_backends.limits import BUDGETS, DEVICE_TITLES
from qa_backends.measure.benchmark.contestants import EQUAL, ContestantFailedError, charged_to, contestants_of
from qa_backends.measure.benchmark.inputs import mixed_queries, queries_of_length
from qa_backends.measure.benchmark.plan import MIXED_QUESTIONS, SHOWN_AT, BenchmarkPlan, Point
from qa_backends.measure.benchmark.record import AtPoint, Entry, alone_record, record_of
from qa_backends.measure.quality.datasets import own_questions
from qa_backends.measure.results.records import AloneRecord, Benchmark, BenchmarkRecord, LeftOut
from qa_backends.measure.timing.machine import Machine, this_machine
from qa_backends.measure.timing.rounds import Samples, blocks_for, take_turns
from qa_backends.measure.timing.statistics import LEAST_ROUNDS
from qa_backends.progress import Cancelled, Progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from qa_backends.contract import Query, StageTimes
    from qa_backends.measure.benchmark.contestants import Answered, Contestant
    from qa_backends.measure.timing.rounds import Run
    from qa_backends.runtime import Runtime, Turn

    Emit = Callable[["Sweep"], None]

WARM_UP_SHARE = 0.5
"""A point's ten warm-up runs may take up to half of its time before they are cut short."""
SETTLE_ALONE_S = 0.5


@dataclass(slots=True)
class Sweep:
    """All that is measured so far. ``status`` is empty when nothing more will come; ``timing`` says that what follows
    is timed, and not to be disturbed.

    ``left_out`` says of each backend and point that could not be measured why. ``left_s`` is the time left, in seconds,
    by what the points so far have taken; ``done`` of ``of`` counts points.
    """

    plan: BenchmarkPlan
    machine: Machine
    records: list[BenchmarkRecord] = field(default_factory=list)
    alone: list[AloneRecord] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    done: float = 0.0
    of: int = 0
    left_s: float = 0.0
    complete: bool = False
    status: str = ""
    timing: bool = False

    def copy(self) -> Sweep:
        """The sweep as it stands now; what is measured later does not change it."""
        return replace(self, records=list(self.records), alone=list(self.alone), left_out=list(self.left_out))

    def benchmark(self) -> Benchmark:
        """What is measured, as it stands now and as a results file holds it."""
        return Benchmark(
            self.machine, self.plan, self.complete, tuple(self.records), tuple(self.alone), tuple(self.left_out)
        )


def sweep(
    runtime: Runtime, plan: BenchmarkPlan, *, emit: Emit = lambda _: None, stopped: Callable[[], bool] = lambda: False
) -> Sweep:
    """Measures the plan; ``emit`` is given the sweep whenever it has something new. What ``emit`` raises ends it.

    A backend that cannot run or does not fit into the memory, and a point too slow for five rounds, are left out with a
    sentence; the others go on.

    Raises:
        InputError: the plan cannot be measured.
        QAError: the family's tokenizer cannot be had.
    """
    plan.check()
    state = Sweep(plan, this_machine())
    _Sweeping(runtime, state, emit, stopped).run()
    return state


@dataclass(frozen=True, slots=True)
class _Task:
    """A turn's work: all contestants at a point, or one of them alone there."""

    point: Point
    alone: Contestant | None = None


class _Sweeping:
    """One run of a plan: who takes part in it, and how far it is."""

    def __init__(self, runtime: Runtime, state: Sweep, emit: Emit, stopped: Callable[[], bool]) -> None:
        self._runtime, self._state, self._emit = runtime, state, emit
        self._plan = state.plan
        self._progress = Progress(self._tell, stopped)
        self._questions = own_questions()
        self._contestants: dict[str, list[Contestant]] = {}
        self._last: dict[str, Answered] = {}
        self._cold: dict[str, StageTimes] = {}  # of the point under way, also where it is measured again
        self._work_done = self._spent_s = 0.0
        self._cost_s = self._rest_s = 0.0

    def _tell(self, status: str) -> None:
        self._state.status = status
        self._emit(self._state)

    def run(self) -> None:
        with suppress(Cancelled):
            self._runtime.download(self._plan.of, self._plan.chosen, self._progress)
            for device in dict.fromkeys(self._plan.devices):
                self._contestants[device] = self._taking_part(device)
            self._measure_all(self._tasks())
            self._state.complete = not self._progress.stopped()
        self._state.left_s = 0.0
        self._tell("")

    def _taking_part(self, device: str) -> list[Contestant]:
        """Those that can run on the device and fit into its memory together: nobody is reloaded between two blocks."""
        sized = []
        for each in contestants_of(self._plan):
            try:
                each.make_ready(self._runtime, device, self._progress)
                sized.append((each, each.bytes(self._runtime, device)))
            except QAError as error:
                self._leave_out(each.name, None, str(error))
        ready = [each for each, _ in sized]
        fit = self._runtime.fitting([size for _, size in sized], device)
        for each in (each for each, fits in zip(ready, fit, strict=True) if not fits):
            budget = self._runtime.budget_bytes(device) / 1e9
            self._leave_out(
                each.name, None,
                f"It does not fit beside the others into the {budget:.1f} GB that weights may take on the "
                f"{DEVICE_TITLES[device]}. Choose fewer backends, or set {BUDGETS[device]} higher.",
            )  # fmt: skip
        return [each for each, fits in zip(ready, fit, strict=True) if fits]

    def _measure_all(self, tasks: list[_Task]) -> None:
        self._state.of = len(tasks)
        for number, task in enumerate(tasks):
            self._cost_s = self._cost(task)
            self._rest_s = sum(self._cost(each) for each in tasks[number + 1 :])
            self._state.left_s = self._rest_s + self._cost_s
            with self._runtime.turn(task.point.device, self._progress) as turn:
                began = time.perf_counter()
                self._do(turn, task)
                self._work_done += self._work(task)
                self._spent_s += time.perf_counter() - began
                self._state.done = number + 1
                self._emit(self._state)  # within the turn, so that nobody else is timed while it is drawn

    def _tasks(self) -> list[_Task]:
        """Every point; then, for each device, each backend alone at one of them."""
        smallest = min(self._plan.batches)
        alone = [
            _Task(Point(device, self._plan.shown_at, smallest), each)
            for device, contestants in self._contestants.items()
            for each in contestants
            if each.measured_alone
        ]
        return [*map(_Task, self._plan.points()), *alone]

    def _work(self, task: _Task) -> float:
        """Tokens of one run, roughly: what the time of a task grows with. Mixed lengths are read in three ways."""
        point = task.point
        tokens = (point.tokens or SHOWN_AT) * (point.batch if point.tokens else 3 * MIXED_QUESTIONS) + 100
        return tokens / (len(self._plan.backends) if task.alone else 1)

    def _cost(self, task: _Task) -> float:
        """Seconds that the task should take: its time limit, or less where the tasks so far were quicker."""
        limit = self._plan.seconds
        return min(limit, self._work(task) * self._spent_s / self._work_done) if self._work_done else limit

    def _do(self, turn: Turn, task: _Task) -> None:
        try:
            queries = self._queries(turn, task.point)
        except QAError as error:
            self._leave_out("", task.point, str(error))
            return
        if task.alone:
            self._measure_alone(turn, task.point, task.alone, queries)
        else:
            self._measure(turn, task.point, queries)

    def _measure(self, turn: Turn, point: Point, queries: list[Query]) -> None:
        """All contestants at the point; again without the one that failed, if one does."""
        entries = self._entries(turn, point)
        self._cold = {}
        while entries:
            try:
                samples = self._take_turns(turn, entries, point, queries)
            except ContestantFailedError as failed:
                self._leave_out(failed.name, point, str(failed))
                entries = [each for each in entries if each.contestant.name != failed.name]
                continue
            if samples is None:
                self._leave_out("", point, f"five runs of each do not fit in {self._plan.seconds:g} s; give more time")
                return
            samples = replace(samples, cold=samples.cold | self._cold)
            at = AtPoint(self._plan.family, point, entries, samples, dict(self._last), len(queries))
            self._state.records += [record_of(at, each, each.contestant.facts(turn)) for each in entries]
            return

    def _entries(self, turn: Turn, point: Point) -> list[Entry]:
        """Who takes part at the point, loaded; who cannot be loaded is left out from then on."""
        loaded = []
        for each in self._contestants[turn.device]:
            try:
                each.load(turn)
            except QAError as error:
                self._leave_out(each.name, None, str(error))
            else:
                loaded.append(each)
        self._contestants[turn.device] = loaded
        return [Entry(each, order) for each in loaded for order in each.orders(mixed=point.tokens is None)]

    def _measure_alone(self, turn: Turn, point: Point, contestant: Contestant, queries: list[Query]) -> None:
        """One backend by itself, to show that company did not change what was measured."""
        entry = Entry(contestant, EQUAL)
        place = (f"{self._plan.family}/{contestant.name}", point.device, point.tokens, point.batch, EQUAL)
        company = next((each for each in self._state.records if each.place == place), None)
        if company is None:
            return
        time.sleep(SETTLE_ALONE_S)
        try:
            samples = self._take_turns(turn, [entry], point, queries, "alone, ")
        except ContestantFailedError as failed:
            self._leave_out(contestant.name, point, str(failed))
            return
        if samples is not None:
            self._state.alone.append(alone_record(company, samples, entry))

    def _take_turns(
        self, turn: Turn, entries: list[Entry], point: Point, queries: list[Query], note: str = ""
    ) -> Samples | None:
        """The samples when the point ends; ``None`` where five rounds do not fit.

        Raises:
            Cancelled: stopped before there were five rounds.
            ContestantFailedError: one of them failed.
        """
        self._state.timing = True
        rounds, per_block = blocks_for(self._plan.runs)
        done = int(self._state.done)
        samples = Samples()
        runs: dict[str, Run] = {each.key: partial(self._run, turn, each, queries) for each in entries}
        turns = take_turns(
            runs, seconds=self._plan.seconds, rounds=rounds, per_block=per_block, warm_up_share=WARM_UP_SHARE
        )
        try:
            self._progress.say(f"{note}{point}: warming up …")
            for samples in turns:
                taken = sum(samples.blocks)
                share = max(taken / self._plan.runs, samples.spent_s / self._plan.seconds)
                self._state.done = done + min(share, 0.99)
                self._state.left_s = self._rest_s + self._cost_s * max(0.0, 1 - share)
                self._progress.say(f"{note}{point}: {taken} run{'s' if taken > 1 else ''} of each")
        except Cancelled:
            if len(samples.blocks) < LEAST_ROUNDS:
                raise
        finally:
            self._state.timing = False
        return samples if len(samples.blocks) >= LEAST_ROUNDS else None

    def _run(self, turn: Turn, entry: Entry, queries: list[Query]) -> StageTimes:
        self._progress.check()
        with charged_to(entry.contestant.name):
            answered = entry.contestant.answer(turn, queries, entry.order)
        self._last[entry.key] = answered
        self._cold.setdefault(entry.key, answered.times)
        return answered.times

    def _queries(self, turn: Turn, point: Point) -> list[Query]:
        reader = turn.runtime.reader(self._plan.of, turn.progress)
        if point.tokens is None:
            return mixed_queries(reader, self._questions, MIXED_QUESTIONS)
        return queries_of_length(reader, self._questions, point.tokens, point.batch)

    def _leave_out(self, name: str, point: Point | None, why: str) -> None:
        self._state.left_out.append(LeftOut(name, str(point or ""), why))
