"""The benchmark: whole answers, tokenising and decoding included, point by point, backends taking turns at each.

Each point is a turn of its own: a person who asks meanwhile waits for the point, not for the benchmark, and neither is
timed while the other runs. Stopping keeps what was measured.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from qa_backends import catalog
from qa_backends.errors import QAError
from qa_backends.measure.contestants import Contestants
from qa_backends.measure.inputs import mixed_queries, own_questions, queries_of_length
from qa_backends.measure.machine import this_machine
from qa_backends.measure.plan import MIXED_QUESTIONS, Plan, Point
from qa_backends.measure.rounds import Samples, StoppedError, blocks_for, take_turns
from qa_backends.measure.rows import Contestant, alone_row
from qa_backends.measure.statistics import LEAST_ROUNDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from qa_backends.contract import Query, StageTimes
    from qa_backends.measure.rounds import Run
    from qa_backends.runtime import Runtime, Turn

    Emit = Callable[["Sweep"], None]

WARM_UP_SHARE = 0.5
"""A point's ten warm-up runs may take up to half of its time before they are cut short."""
SETTLE_ALONE_S = 0.5
ALONE_AT = 128
"""Backends are measured alone at the length nearest to this one."""


@dataclass(slots=True)
class Sweep:
    """All that is measured so far. ``status`` is empty when nothing more will come.

    ``left_out`` says of each backend and point that could not be measured why. ``left_s`` is the time left, in seconds,
    by what the points so far have taken; ``done`` of ``of`` counts points.
    """

    plan: Plan
    machine: dict[str, Any]
    rows: list[dict[str, Any]] = field(default_factory=list)
    alone: list[dict[str, Any]] = field(default_factory=list)
    left_out: list[dict[str, str]] = field(default_factory=list)
    done: float = 0.0
    of: int = 0
    left_s: float = 0.0
    complete: bool = False
    status: str = ""

    def copy(self) -> Sweep:
        """The sweep as it stands now; what is measured later does not change it."""
        return replace(self, rows=list(self.rows), alone=list(self.alone), left_out=list(self.left_out))

    def content(self) -> dict[str, Any]:
        """As a results file holds it."""
        return {
            "kind": "benchmark",
            "machine": self.machine,
            "plan": self.plan.as_dict(),
            "complete": self.complete,
            "rows": list(self.rows),
            "alone": list(self.alone),
            "left_out": list(self.left_out),
        }


def sweep(
    runtime: Runtime, plan: Plan, *, emit: Emit = lambda _: None, stopped: Callable[[], bool] = lambda: False
) -> Sweep:
    """Measures the plan; ``emit`` is given the sweep whenever it has something new. What ``emit`` raises ends it.

    A backend that cannot run, and a point too slow for five rounds, are left out with a sentence; the others go on.

    Raises:
        InputError: the plan cannot be measured.
        QAError: the family's tokenizer cannot be had.
    """
    plan.check()
    state = Sweep(plan, this_machine().as_dict())
    job = _Job(runtime, plan, state, emit, stopped)
    catalog.download(plan.group, plan.rows, job.say)
    job.run()
    return state


class _FailedError(Exception):
    """One contestant failed at a point; the others can repeat it without that one."""

    def __init__(self, key: str, cause: QAError) -> None:
        super().__init__(str(cause))
        self.key = key


@dataclass(frozen=True, slots=True)
class _Task:
    """A turn's work: all contestants at a point, or one backend alone there."""

    point: Point
    alone: str | None = None


class _Job:
    """One run of a plan: what is loaded for it, and how far it is."""

    def __init__(self, runtime: Runtime, plan: Plan, state: Sweep, emit: Emit, stopped: Callable[[], bool]) -> None:
        self._runtime, self._plan, self._state = runtime, plan, state
        self._emit, self._stopped = emit, stopped
        self._questions = own_questions()
        self._contestants = Contestants(runtime, plan, lambda name, why: self._leave_out(name, None, why))
        self._work_done = 0.0
        self._spent_s = 0.0
        self._cost_s = self._rest_s = 0.0

    def say(self, status: str) -> None:
        self._state.status = status
        self._emit(self._state)

    def run(self) -> None:
        tasks = self._tasks()
        self._state.of = len(tasks)
        with suppress(StoppedError):
            for number, task in enumerate(tasks):
                self._cost_s = self._cost(task)
                self._rest_s = sum(self._cost(each) for each in tasks[number + 1 :])
                self._state.left_s = self._rest_s + self._cost_s
                with self._runtime.turn(task.point.device, self._wait) as turn:
                    began = time.perf_counter()
                    self._do(turn, task)
                self._work_done += self._work(task)
                self._spent_s += time.perf_counter() - began
                self._state.done = number + 1
                self._emit(self._state)
        self._state.complete = not self._stopped()
        self._state.left_s = 0.0
        self.say("")

    def _tasks(self) -> list[_Task]:
        """Every point; then, for each device, each backend alone at one of them."""
        nearest = min(sorted(self._plan.lengths), key=lambda tokens: abs(tokens - ALONE_AT))
        alone = [
            _Task(Point(device, nearest, min(self._plan.batches)), row.name)
            for device in dict.fromkeys(self._plan.devices)
            for row in self._plan.rows
        ]
        return [*map(_Task, self._plan.points()), *alone]

    def _work(self, task: _Task) -> float:
        """Tokens of one run, roughly: what the time of a task grows with."""
        point = task.point
        tokens = (point.tokens or ALONE_AT) * (point.batch if point.tokens else 2 * MIXED_QUESTIONS) + 100
        return tokens / (len(self._plan.rows) if task.alone else 1)

    def _cost(self, task: _Task) -> float:
        """Seconds that the task should take: its time limit, or less where the tasks so far were quicker."""
        limit = self._plan.seconds
        return min(limit, self._work(task) * self._spent_s / self._work_done) if self._work_done else limit

    def _wait(self, status: str) -> None:
        """Told again and again while others have their turn, so that stopping works then too."""
        if self._stopped():
            raise StoppedError
        self.say(status)

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
        entrants = self._contestants.at(turn, point)
        samples = None
        while entrants and samples is None:
            runs = {each.key: self._contestants.run_of(turn, each, queries) for each in entrants}
            try:
                samples = self._take_turns(runs, point)
            except _FailedError as failed:
                name = next(each.name for each in entrants if each.key == failed.key)
                self._leave_out(name, point, str(failed))
                entrants = [each for each in entrants if each.name != name]
                continue
            if samples is None:
                self._leave_out("", point, f"five rounds do not fit in {self._plan.seconds:g} s; give more time")
                return
        if samples is not None:
            self._state.rows += self._contestants.rows(turn, point, entrants, samples, queries)

    def _measure_alone(self, turn: Turn, point: Point, name: str, queries: list[Query]) -> None:
        """One backend by itself, to show that company did not change what was measured."""
        contestant = Contestant(name, "equal")
        company = next((each for each in self._state.rows if _is(each, self._plan, name, point)), None)
        if company is None:
            return
        time.sleep(SETTLE_ALONE_S)
        try:
            run = self._contestants.run_of(turn, contestant, queries)
            samples = self._take_turns({contestant.key: run}, point, "alone, ")
        except _FailedError as failed:
            self._leave_out(name, point, str(failed))
            return
        if samples is not None:
            self._state.alone.append(alone_row(company, samples, contestant))

    def _take_turns(self, runs: dict[str, Run], point: Point, note: str = "") -> Samples | None:
        """The samples when the point ends; ``None`` where five rounds do not fit.

        Raises:
            StoppedError: stopped before there were five rounds.
            _FailedError: a contestant failed.
        """
        self.say(f"{note}{point}: warming up …")
        rounds, per_block = blocks_for(self._plan.runs)
        began, done = time.perf_counter(), self._state.done
        samples = Samples()
        turns = take_turns(
            {key: partial(self._checked, key, run) for key, run in runs.items()},
            seconds=self._plan.seconds,
            rounds=rounds,
            per_block=per_block,
            warm_up_share=WARM_UP_SHARE,
        )
        try:
            for samples in turns:
                taken = sum(samples.blocks)
                share = max(taken / self._plan.runs, (time.perf_counter() - began) / self._plan.seconds)
                self._state.done = int(done) + min(share, 0.99)
                self._state.left_s = self._rest_s + self._cost_s * max(0.0, 1 - share)
                self.say(f"{note}{point}: {taken} run{'s' if taken > 1 else ''} of each")
        except StoppedError:
            if len(samples.blocks) < LEAST_ROUNDS:
                raise
        return samples.whole_rounds() if len(samples.blocks) >= LEAST_ROUNDS else None

    def _checked(self, key: str, run: Run) -> StageTimes:
        if self._stopped():
            raise StoppedError
        try:
            return run()
        except QAError as error:
            raise _FailedError(key, error) from error

    def _queries(self, turn: Turn, point: Point) -> list[Query]:
        reader = self._contestants.reader(turn)
        if point.tokens is None:
            return mixed_queries(reader, self._questions, MIXED_QUESTIONS)
        return queries_of_length(reader, self._questions, point.tokens, point.batch)

    def _leave_out(self, name: str, point: Point | None, why: str) -> None:
        self._state.left_out.append({"backend": name, "point": str(point or ""), "why": why})


def _is(row: dict[str, Any], plan: Plan, name: str, point: Point) -> bool:
    found = (row["backend"], row["device"], row["tokens"], row["batch"])
    return found == (f"{plan.family}/{name}", point.device, point.tokens, point.batch)
