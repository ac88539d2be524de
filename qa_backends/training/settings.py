"""What a training run is: what a person chooses of it, and the recipe that follows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

LEARNING_RATE, BATCH_TOKENS = 1.2e-4, 4096
"""Of every recipe, unless a person chooses otherwise."""
WEIGHT_DECAY = 0.01


@dataclass(frozen=True, slots=True)
class Recipe:
    """What decides a loop's result. A folder holds one run, and a changed recipe needs another folder."""

    steps: int
    learning_rate: float
    weight_decay: float
    max_tokens: int
    seed: int


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What a person chooses: the run's folder, ``passes`` over the questions, how to step, and on which device.

    ``max_tokens`` bounds the tokens of a step, padding included.
    """

    folder: Path
    passes: float
    learning_rate: float
    max_tokens: int
    seed: int
    device: str

    def recipe(self, steps: int) -> Recipe:
        return Recipe(steps, self.learning_rate, WEIGHT_DECAY, self.max_tokens, self.seed)

    def facts(self) -> dict[str, object]:
        """What of it decides the result, for manifests and notes."""
        chosen = asdict(self)
        return {key: value for key, value in chosen.items() if key not in ("folder", "device")}
