"""What a long job is handed: say what you do, and find out that you should stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


class Cancelled(Exception):
    """Raised out of a job that was asked to stop. It passes through everything that translates errors."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The job's way to those who wait for it: ``tell`` is given sentences, ``stopped`` is asked whether to go on."""

    tell: Callable[[str], object] = lambda _sentence: None
    stopped: Callable[[], bool] = lambda: False

    def check(self) -> None:
        """Raises Cancelled once the job should stop; call it where stopping leaves nothing half done."""
        if self.stopped():
            raise Cancelled

    def say(self, sentence: str) -> None:
        """Tells what is being done now. Raises Cancelled once the job should stop."""
        self.check()
        self.tell(sentence)


UNWATCHED = Progress()
"""For a job that nobody follows."""
