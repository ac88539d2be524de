"""Two benchmark files side by side: the same point, measured then and now."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from qa_backends.errors import InputError
from qa_backends.measure.machine import Machine
from qa_backends.measure.plan import MOST_RUNS
from qa_backends.measure.rounds import RUNS_PER_BLOCK
from qa_backends.measure.statistics import Ratio, between_runs

PLACE = ("backend", "device", "tokens", "batch", "order")


@dataclass(frozen=True, slots=True)
class Comparison:
    """The points that two files share, and the machine of the earlier one."""

    machine: Machine
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """One point of both files. ``speed_up`` is how many times as fast now as then."""

    row: dict[str, Any]
    then_ms: float
    now_ms: float
    speed_up: Ratio | None
    same_weights: bool


def compare(then: dict[str, Any], now: dict[str, Any]) -> Comparison:
    """The points that both hold, in the order of ``now``; ``then`` may be anybody's file.

    Raises:
        InputError: ``then`` is not what a benchmark writes.
    """
    try:
        machine = Machine(**then["machine"])
        before = {tuple(row[key] for key in PLACE): (row, samples_of(row)) for row in then["rows"]}
        found = tuple(
            Change(
                row,
                then_ms=float(before[place][0]["p50_ms"]),
                now_ms=row["p50_ms"],
                speed_up=between_runs(before[place][1], samples_of(row)),
                same_weights=_weights(before[place][0]) == _weights(row),
            )
            for row in now["rows"]
            if (place := tuple(row[key] for key in PLACE)) in before
        )
        return Comparison(machine, found)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise InputError(
            f"The file does not hold what a benchmark writes ({type(error).__name__}: {error}). "
            "Choose one that this tab or `bench --save` wrote."
        ) from error


def _weights(row: dict[str, Any]) -> str:
    """What identifies a row's weights: the embedded checkpoint's hash, or that of the file that ran."""
    return str(row["checkpoint"] or row["ran"]["file_hash"])


def samples_of(row: dict[str, Any]) -> list[float]:
    """Whole answers, in milliseconds: the sums of the parts.

    Raises:
        ValueError: not as many of each part, more than a benchmark takes, or values that no time can have.
    """
    samples = [float(sum(parts)) for parts in zip(*row["samples_ms"].values(), strict=True)]
    if len(samples) > MOST_RUNS + RUNS_PER_BLOCK or not all(0 < each < math.inf for each in samples):
        raise ValueError("samples that no benchmark takes")
    return samples
