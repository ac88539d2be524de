"""Backends taking turns on one question: the measurement behind every comparison.

Engines disturb each other inside one process: a pool of idle threads that still spins takes the cores from the next
engine. So a backend's runs come in blocks; before each block the others are given time to settle and one run is
thrown away. Every second round goes back the way that the one before went (A B C, C B A), so that a drift of the
machine hits all alike; and each such pair has an order of its own, so that nobody always follows the same one.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from qa_backends.contract import StageTimes
from qa_backends.measure.timing.load import LoadMeter
from qa_backends.measure.timing.statistics import LEAST_ROUNDS, Ratio, speed_up

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Run = Callable[[], StageTimes]

WARM_UP_RUNS = 10
WARM_UP_SHARE = 0.2
"""Of the time given; slow backends get fewer runs to warm up, so that there is something left to measure in."""
SETTLE_S = 0.035
"""Until all idle threads sleep: ONNX Runtime's, as its documentation sets it up, spin for 31 ms behind a run,
PyTorch's for 10 ms, OpenVINO's for 1 ms (AMD EPYC, 2 cores); those of our own sessions see
``engines.onnxruntime.IDLE_SPIN_US``."""
RUNS_PER_BLOCK = 3


@dataclass(slots=True)
class Samples:
    """Every timed run of each backend, in the order they were taken, and the very first run of each, made cold.

    ``blocks`` are the sizes of the blocks that the runs came in. ``spent_s`` is what all of it took so far, without the
    time in which whoever asked for it looked at what there was. ``others`` is the share that others took of the cores
    meanwhile, see ``load.LoadMeter``: of runs that compute in another process it tells nothing.
    """

    times: dict[str, list[StageTimes]] = field(default_factory=dict)
    cold: dict[str, StageTimes] = field(default_factory=dict)
    blocks: list[int] = field(default_factory=list)
    warm_up_runs: int = 0
    spent_s: float = 0.0
    others: float | None = None

    def compute_s(self, name: str) -> list[float]:
        return [each.compute_s for each in self.times.get(name, [])]

    def speed_up(self, name: str, reference: str, *, among: int = 1) -> Ratio | None:
        """``None`` where one of them has not run, and where there are no five rounds; ``among`` as in
        ``statistics.speed_up``."""
        if name not in self.times or reference not in self.times:
            return None
        return speed_up(self.compute_s(reference), self.compute_s(name), self.blocks, among=among)

    def copy(self) -> Samples:
        """The samples as they are now; what is measured later does not change them."""
        return replace(self, times={name: list(times) for name, times in self.times.items()}, blocks=list(self.blocks))


def take_turns(
    runs: Mapping[str, Run],
    *,
    seconds: float,
    rounds: int | None = None,
    per_block: int = RUNS_PER_BLOCK,
    one_each_s: float = 0.0,
    warm_up_share: float = WARM_UP_SHARE,
) -> Iterator[Samples]:
    """Measures for at most about ``seconds`` and ``rounds``, yielding what there is after every whole round.

    It ends, at once or later, where five rounds do not fit: then one reading is all there is to say. ``one_each_s``,
    what one warm run of each is known to take, spares finding that out by running them, and keeps the warm-up so short
    that five rounds fit. ``warm_up_share`` bounds the runs to warm up, ten otherwise, to a share of ``seconds``. The
    first round takes one run of each, to learn what a round costs; the fifth may end late by half of that. What the
    caller does with what is yielded is not counted in ``seconds``: nothing is measured meanwhile. Neither are the first
    runs, where ``one_each_s`` is not known: what fits in a process that has answered before fits in a new one.
    """
    if not runs or not turns_fit(one_each_s, len(runs), seconds):
        return
    meter = LoadMeter()
    meter.start()
    began = time.perf_counter()
    samples = Samples({name: [] for name in runs}, {name: run() for name, run in runs.items()})
    if not one_each_s:
        one_each_s = _warm_s(runs, time.perf_counter() - began, seconds * (1 - warm_up_share))
        if least_turns_s(one_each_s, len(runs)) - one_each_s > seconds:  # the first run of each is over
            return
        began = time.perf_counter()
    deadline = began + seconds
    # A run of each more than the rounds need: one to warm up may begin just before its time is over.
    least_s = least_turns_s(one_each_s, len(runs))
    _warm_up(runs, samples, min(began + seconds * warm_up_share, deadline - least_s))
    orders = _orders(list(runs))
    round_cost = 0.0  # seconds of one run of each backend, settling included
    while rounds is None or len(samples.blocks) < rounds:
        round_began = time.perf_counter()
        missing = LEAST_ROUNDS if rounds is None else min(LEAST_ROUNDS, rounds - len(samples.blocks))
        count = _block_size(per_block, round_cost, missing, deadline - round_began) if samples.blocks else 1
        for name in next(orders):
            samples.times[name] += _block(runs[name], count)
        ended = time.perf_counter()
        round_cost = (ended - round_began) / (count + 1)
        samples.blocks.append(count)
        samples.spent_s = seconds - (deadline - ended)
        if len(samples.blocks) < LEAST_ROUNDS and _too_late(samples, round_cost, deadline):
            return
        meter.stop()  # whoever draws what is yielded, draws on the same cores
        samples.others = meter.share()
        yield samples.copy()
        meter.start()
        deadline += time.perf_counter() - ended
        if _too_late(samples, round_cost, deadline):
            return


def _orders(names: list[str]) -> Iterator[list[str]]:
    """Each order and the same backwards: first as given, then as drawn, the same at every measurement of as many."""
    drawn = random.Random(len(names))
    while True:
        yield names
        yield names[::-1]
        names = drawn.sample(names, len(names))


def turns_fit(one_each_s: float, backends: int, seconds: float) -> bool:
    """Whether the fewest turns of so many backends fit."""
    return least_turns_s(one_each_s, backends) <= seconds


def least_turns_s(one_each_s: float, backends: int) -> float:
    """Seconds of five rounds behind a first run of each; before every block engines settle and a run is thrown away."""
    return LEAST_ROUNDS * (2 * one_each_s + SETTLE_S * backends) + one_each_s


def _warm_s(runs: Mapping[str, Run], first_s: float, seconds: float) -> float:
    """What one run of each takes, at most: what the first took, unless five rounds of that do not fit. Then a second
    one is run, since first runs may be cold, and slow."""
    if turns_fit(first_s, len(runs), seconds):
        return first_s
    began = time.perf_counter()
    for run in runs.values():
        run()
    return time.perf_counter() - began


def _too_late(samples: Samples, round_cost: float, deadline: float) -> bool:
    """Whether the next round, or all that are missing to the fifth, would end too long after the deadline."""
    missing = LEAST_ROUNDS - len(samples.blocks)
    needed_s = 2 * round_cost * missing - round_cost if missing > 0 else 2 * round_cost
    return time.perf_counter() + needed_s > deadline


def _warm_up(runs: Mapping[str, Run], samples: Samples, deadline: float) -> None:
    """``WARM_UP_RUNS`` runs of each, the first one included, fewer where time is short; notes how many there were.

    A backend's runs follow each other, as they do later.
    """
    done = []
    for number, run in enumerate(runs.values()):
        own_deadline = time.perf_counter() + (deadline - time.perf_counter()) / (len(runs) - number)
        done.append(1)
        while done[-1] < WARM_UP_RUNS and time.perf_counter() < own_deadline:
            run()
            done[-1] += 1
    samples.warm_up_runs = min(done)


def settle() -> None:
    """Waits until the threads of engines that worked before sleep. The first run after that wakes the engine's own, and
    is not one to time."""
    time.sleep(SETTLE_S)


def _block(run: Run, count: int) -> list[StageTimes]:
    settle()
    run()
    return [run() for _ in range(count)]


def _block_size(per_block: int, cost_of_one_each: float, missing: int, left: float) -> int:
    """Runs a block: as many as wanted, unless the missing rounds do not fit, so that single runs are worth more."""
    return per_block if left > cost_of_one_each * (per_block + 1) * missing else 1


def blocks_for(runs: int) -> tuple[int, int]:
    """Rounds, five at least, and runs of each after a first round of one, that make about ``runs`` runs."""
    per_block = max(1, min(RUNS_PER_BLOCK, (runs - 1) // (LEAST_ROUNDS - 1)))
    return 1 + -(-(runs - 1) // per_block), per_block


def without_wait(times: StageTimes, tokenise_s: float) -> StageTimes:
    """A repeated run's times: nobody waits for the device within a turn, and tokenising is charged to each alike."""
    return replace(times, wait_s=0.0, tokenise_s=tokenise_s)
