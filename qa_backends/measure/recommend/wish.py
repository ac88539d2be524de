"""What is wished for of a backend: how much F1 it may lose, at which lengths, within what memory."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.errors import InputError
from qa_backends.measure.benchmark.plan import LONGEST, MOST_BATCH, MOST_SECONDS, SHORTEST, listed, within
from qa_backends.runtime.loading import check_device

if TYPE_CHECKING:
    from qa_backends.catalog import Family

LEAST_SECONDS = 10


@dataclass(frozen=True)
class Wish:
    """``max_f1_loss`` is against the baseline, in points of 100; ``memory_mb`` bounds what a loaded backend takes.

    ``seconds`` bound the race; building, loading and checking the answers come before it.
    """

    family: str
    device: str = "cpu"
    max_f1_loss: float = 1.0
    lengths: tuple[int, ...] = (128, 384)
    batch: int = 1
    memory_mb: float | None = None
    seconds: float = 120.0

    @cached_property
    def of(self) -> Family:
        """The family whose backends are compared; looked up once, since one's own may be forgotten meanwhile."""
        return catalog.family(self.family)

    @property
    def raced_on(self) -> str:
        """As in "a question of 128 tokens and one of 384"."""
        what = "a question" if self.batch == 1 else f"a batch of {self.batch} questions"
        return " and ".join(
            f"{'one' if number else what} of {tokens}{'' if number else ' tokens'}"
            for number, tokens in enumerate(self.lengths)
        )

    def check(self) -> None:
        """Raises InputError, with what to do, for a wish that nothing could meet."""
        self.of.check_answers()
        check_device(self.device)
        if not self.lengths or len(set(self.lengths)) < len(self.lengths):
            raise InputError("Choose at least one length, and each one once.")
        within("A length", self.lengths, SHORTEST, LONGEST, "tokens")
        within("The batch size", [self.batch], 1, MOST_BATCH, "questions")
        within("The F1 that may be lost", [self.max_f1_loss], 0, 100, "points")
        within("The time for the race", [self.seconds], LEAST_SECONDS, MOST_SECONDS, "seconds")
        if self.memory_mb is not None:
            within("The memory", [self.memory_mb], 1, 1e6, "megabytes")

    def command(self) -> str:
        """The line that asks exactly this again."""
        return shlex.join([
            "python", "-m", "qa_backends", "recommend", *catalog.chosen_by(self.family), "--device", self.device,
            "--max-f1-loss", f"{self.max_f1_loss:g}", "--lengths", listed(self.lengths), "--batch", str(self.batch),
            *(["--memory", f"{self.memory_mb:g}"] if self.memory_mb is not None else []),
            "--seconds", f"{self.seconds:g}",
        ])  # fmt: skip
