"""What a training run is: what a person chooses of it, and the recipe that follows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from qa_backends.errors import InputError
from qa_backends.limits import has_bf16

if TYPE_CHECKING:
    from pathlib import Path

LEARNING_RATE, BATCH_TOKENS = 1.2e-4, 4096
"""Of every recipe, unless a person chooses otherwise."""
WEIGHT_DECAY = 0.01
ALSO = ("also", "also_times")
"""What manifests and notes hold only of runs that were given further questions, as those before there were such."""
BF16, FP32 = "bf16", "fp32"
PRECISIONS = (BF16, FP32)
"""What products are computed in: under bfloat16 autocast, or as the weights are stored."""


def faster_precision(device: str) -> str:
    """BF16 where the device multiplies in it; a processor that has to imitate that takes many times as long."""
    return BF16 if has_bf16(device) else FP32


@dataclass(frozen=True, slots=True)
class Recipe:
    """What decides a loop's result. A folder holds one run, and a changed recipe needs another folder.

    ``ema`` is the decay of the weights' average, see ``Average``; 0 keeps the last weights.
    """

    steps: int
    learning_rate: float
    weight_decay: float
    max_tokens: int
    seed: int
    ema: float = 0.0


@dataclass(frozen=True, slots=True)
class Changes:
    """What is changed of the questions, in every epoch anew; by default nothing.

    ``swaps`` counts the questions with another entity that an epoch gets on top, see ``Swaps``. The rest are shares of
    all questions, 0 to 1, see ``noise``: asked in lower case; asked of a part of their text; of two paragraphs; of
    another paragraph.
    """

    swaps: int = 0
    lower_case: float = 0.0
    cut: float = 0.0
    join: float = 0.0
    misplaced: float = 0.0

    def __post_init__(self) -> None:
        """Raises InputError where more than all texts would be changed."""
        if self.cut + self.join + self.misplaced > 1:
            raise InputError(
                "A text is changed in one way at most: --cut, --join and --misplaced together must not exceed 1."
            )


UNCHANGED = Changes()


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What a person chooses: the run's folder, ``passes`` over the questions, how to step, and on which device.

    ``max_tokens`` bounds the tokens of a step, padding included. ``dropout`` is the share of hidden values and of
    attention that is left out at random; ``precision`` is one of ``PRECISIONS``. ``also`` is a SQuAD-format file of
    questions that every epoch holds ``also_times`` besides, unchanged, and that are learned by their labels alone, for
    a teacher may never have seen texts of their kind.
    """

    folder: Path
    passes: float
    learning_rate: float
    max_tokens: int
    seed: int
    device: str
    ema: float = 0.0
    dropout: float = 0.0
    freeze_embeddings: bool = True
    changes: Changes = UNCHANGED
    precision: str = FP32
    also: Path | None = None
    also_times: int = 1

    def __post_init__(self) -> None:
        """Raises InputError for a precision that there is not, or where ``also_times`` says how often of nothing."""
        if self.precision not in PRECISIONS:
            raise InputError(f"There is no precision '{self.precision}'. Choose one of: {', '.join(PRECISIONS)}.")
        if self.also is None and self.also_times != 1:
            raise InputError("--also-times says how often a pass holds further questions. Name them: --also FILE.")

    def recipe(self, steps: int) -> Recipe:
        return Recipe(steps, self.learning_rate, WEIGHT_DECAY, self.max_tokens, self.seed, self.ema)

    def facts(self) -> dict[str, object]:
        """What of it decides the result, for manifests and notes."""
        chosen: dict[str, Any] = asdict(self)
        also = {"also": self.also.name, "also_times": self.also_times} if self.also else {}
        return {key: value for key, value in chosen.items() if key not in ("folder", "device", *ALSO)} | also
