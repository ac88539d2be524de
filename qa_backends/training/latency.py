"""Prune for milliseconds: what heads and FFN columns cost on the engine that will run them, and which to keep for it.

Parameters price the wrong thing. A runtime multiplies in tiles, every matrix costs something however narrow it is, and
attention takes time that no parameter shows. So the parts of a layer are timed, and what is kept is what loses least
within a time: the principle of ZipLM (Kurtic et al. 2023).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from qa_backends.errors import InputError
from qa_backends.paths import write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Any

    import torch
    from numpy.typing import NDArray

    from qa_backends.contract import IntArray

    FloatArray = NDArray[np.float64]
    Shape = tuple[int, int]
    """Heads and FFN columns, of every layer."""
    Seconds = tuple[float, ...]
    """One number a length."""

LENGTHS = (128, 384)
"""Tokens; what is kept is what makes both quick, each by its own measure."""
TILE = 32
"""Columns are kept in multiples of so many, which runtimes multiply at once. A head is as wide, or wider."""
HEADS, COLUMNS = (0, 1, 2, 3, 4, 6, 8, 12), (0, 32, 64, 128, 256, 384, 512, 768, 1024, 1536, 2048, 3072)
"""What is timed, up to all that a layer has; what lies between is interpolated."""
STEPS = 2000
"""Time is counted in so many parts of the whole encoder's."""


def shapes_to_time(config: Mapping[str, Any]) -> list[Shape]:
    """What to time of models like the one of that ``config.json``: each number of heads beside a third of the columns,
    each number of columns beside a third of the heads."""
    heads, columns = int(config["num_attention_heads"]), int(config["intermediate_size"])
    some = _beside(heads, columns)
    numbers = sorted({each for each in HEADS if each < heads} | {heads, some[0]})
    widths = sorted({each for each in COLUMNS if each < columns} | {columns, some[1]})
    return list(dict.fromkeys([*((each, some[1]) for each in numbers), *((some[0], each) for each in widths)]))


def _beside(heads: int, columns: int) -> Shape:
    return max(1, heads // 3), max(TILE, columns // 3 // TILE * TILE)


@dataclass(frozen=True, slots=True)
class LatencyTable:
    """Seconds that the heads, and the columns, of one layer take, by their number, at each of the ``lengths``.

    A layer of neither counts as nothing, though its two normalisations take time until it is removed. ``layers`` is
    how many the whole model has; ``facts`` say what was timed, and on what.
    """

    lengths: tuple[int, ...]
    layers: int
    heads: dict[int, Seconds]
    columns: dict[int, Seconds]
    facts: dict[str, Any]

    @classmethod
    def of(cls, config: Mapping[str, Any], times: Mapping[Shape, Seconds], facts: dict[str, Any]) -> LatencyTable:
        """The table that the ``times`` of ``shapes_to_time`` make: of models whose layers are all of that shape."""
        layers = int(config["num_hidden_layers"])
        some = _beside(int(config["num_attention_heads"]), int(config["intermediate_size"]))

        def alone(of: Shape, without: Shape) -> Seconds:
            return tuple((t - t0) / layers for t, t0 in zip(times[of], times[without], strict=True))

        heads = {h: alone((h, c), (0, c)) for h, c in sorted(times) if c == some[1]}
        columns = {c: alone((h, c), (h, 0)) for h, c in sorted(times) if h == some[0]}
        return cls(LENGTHS, layers, heads, columns, facts)

    @classmethod
    def read(cls, file: Path) -> LatencyTable:
        """Raises InputError where the file holds none."""
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
            heads, columns = ({int(n): tuple(s) for n, s in found[kind].items()} for kind in ("heads", "columns"))
            return cls(tuple(found["lengths"]), int(found["layers"]), heads, columns, dict(found["facts"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"{file} holds no latency table ({error}). Make one: python -m qa_backends train latency --out {file}"
            ) from error

    def check(self, config: Mapping[str, Any]) -> None:
        """Raises InputError where it was made of models of another size than that of the ``config.json``."""
        timed = self.layers, max(self.heads), max(self.columns)
        here = tuple(int(config[key]) for key in ("num_hidden_layers", "num_attention_heads", "intermediate_size"))
        if timed != here:
            of, at = ("{} layers of {} heads and {} FFN columns".format(*each) for each in (timed, here))
            raise InputError(
                f"The latency table is of {of}, the teacher has {at}. Make one of the teacher's family: train latency."
            )

    def write(self, file: Path) -> None:
        write_whole(file, self._text())

    @property
    def hash(self) -> str:
        """SHA-256 of all that it says."""
        return hashlib.sha256(self._text().encode()).hexdigest()

    def _text(self) -> str:
        return json.dumps(asdict(self), indent=1) + "\n"

    def of_heads(self, count: int) -> float:
        """Share of the whole encoder's time that so many heads of one layer take, the mean over lengths."""
        return self._share(self.heads, count)

    def of_columns(self, count: int) -> float:
        """Share of the whole encoder's time that so many columns of one layer take, the mean over lengths."""
        return self._share(self.columns, count)

    def of_model(self, shapes: Sequence[Shape]) -> float:
        """Share of the whole encoder's time that layers of these shapes take together."""
        return sum(self.of_heads(heads) + self.of_columns(columns) for heads, columns in shapes)

    def _share(self, table: dict[int, Seconds], count: int) -> float:
        most = self.heads[max(self.heads)], self.columns[max(self.columns)]
        wholes = [self.layers * sum(each) for each in zip(*most, strict=True)]
        taken = [np.interp(count, list(table), each) for each in zip(*table.values(), strict=True)]
        return float(np.mean([part / whole for part, whole in zip(taken, wholes, strict=True)]))


def choose_by_time(
    heads: Sequence[torch.Tensor], columns: Sequence[torch.Tensor], table: LatencyTable, share: float
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Which heads and columns to keep: those whose loss costs least, within ``share`` of the whole encoder's time.

    ``heads`` and ``columns`` are worths, one tensor a layer; the most worthy of each layer stay, as many as pay, in the
    FFN by the ``TILE``, or all that there are. Each layer's heads, and each layer's columns, are one choice of a
    knapsack problem, solved exactly in steps of the time.
    """
    parts = [(each, list(range(len(each) + 1)), table.of_heads) for each in heads]
    parts += [(each, sorted({*range(0, len(each), TILE), len(each)}), table.of_columns) for each in columns]
    costs = [np.array([round(STEPS * max(0.0, cost(n))) for n in numbers]) for _, numbers, cost in parts]
    losses = [_loss_of_keeping(worths)[numbers] for worths, numbers, _ in parts]
    kept = [
        _best(worths, numbers[choice])
        for (worths, numbers, _), choice in zip(parts, _cheapest(costs, losses, round(share * STEPS)), strict=True)
    ]
    return kept[: len(heads)], kept[len(heads) :]


def _loss_of_keeping(worths: torch.Tensor) -> FloatArray:
    """What is lost by keeping the best 0, 1, … all: the worth of the others."""
    falling = np.sort(worths.double().cpu().numpy())[::-1]
    return np.append(falling.sum() - np.insert(np.cumsum(falling), 0, 0.0)[:-1], 0.0)


def _best(worths: torch.Tensor, count: int) -> torch.Tensor:
    """True for the ``count`` of the highest worth."""
    import torch

    kept = torch.zeros_like(worths, dtype=torch.bool)
    kept[worths.argsort(descending=True)[:count]] = True
    return kept


def _cheapest(costs: Sequence[IntArray], losses: Sequence[FloatArray], budget: int) -> list[int]:
    """Of each part, the number of the choice, so that all losses together are least and all costs within the budget.

    ``least[b]`` is the least loss of the parts so far within the budget ``b``. Keeping nothing costs nothing.
    """
    least = np.zeros(budget + 1)
    choices = []
    for cost, loss in zip(costs, losses, strict=True):
        options = np.full((len(cost), budget + 1), np.inf)
        for number, (taken, lost) in enumerate(zip(cost, loss, strict=True)):
            options[number, taken:] = least[: max(0, budget + 1 - taken)] + lost
        choices.append(options.argmin(axis=0))
        least = options.min(axis=0)
    chosen: list[int] = []
    for cost, choice in zip(reversed(costs), reversed(choices), strict=True):
        chosen.insert(0, int(choice[budget]))
        budget -= int(cost[chosen[0]])
    return chosen
