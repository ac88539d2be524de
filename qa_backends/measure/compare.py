"""Two benchmark files side by side: the same point, measured then and now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from qa_backends.errors import InputError
from qa_backends.measure.statistics import Ratio, between_runs

PLACE = ("backend", "device", "tokens", "batch", "order")


@dataclass(frozen=True, slots=True)
class Change:
    """One point of both files. ``speed_up`` is how many times as fast now as then."""

    row: dict[str, Any]
    then_ms: float
    now_ms: float
    speed_up: Ratio | None
    same_weights: bool


def changes(then: dict[str, Any], now: dict[str, Any]) -> list[Change]:
    """The points that both hold, in the order of ``now``.

    Raises:
        InputError: a row of ``then`` is not one of a benchmark.
    """
    try:
        before = {tuple(row[key] for key in PLACE): (row, samples_of(row)) for row in then["rows"]}
        return [
            Change(
                row,
                then_ms=float(before[place][0]["p50_ms"]),
                now_ms=row["p50_ms"],
                speed_up=between_runs(before[place][1], samples_of(row)),
                same_weights=before[place][0]["checkpoint"] == row["checkpoint"],
            )
            for row in now["rows"]
            if (place := tuple(row[key] for key in PLACE)) in before
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"The file's rows are not those of a benchmark ({type(error).__name__}: {error}). "
            "Choose one that this tab or `bench --save` wrote."
        ) from error


def samples_of(row: dict[str, Any]) -> list[float]:
    """Whole answers, in milliseconds: the sums of the parts."""
    return [float(sum(parts)) for parts in zip(*row["samples_ms"].values(), strict=True)]
