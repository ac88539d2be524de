"""An engine that fails as a test wants it to: for good, or whenever it is given a certain word."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from qa_backends.catalog import Backend

MOODY = Backend("baseline", "checkpoint", "moody")
POISON = "arsenic"
SOURCE = """
    import numpy as np

    from serving.moody import MOOD

    from qa_backends.engines.fake import Fake


    class Moody(Fake):
        short = "moody"
        label = "Moody"

        def load(self, artefact, device):
            super().load(artefact, device)
            MOOD.loaded += 1
            self.dead = False

        def forward(self, windows):
            MOOD.forwards.append(windows.n_windows)
            assert MOOD.let.wait(60)
            if MOOD.dies.is_set():
                MOOD.dies.clear()
                self.dead = True
            if self.dead:
                raise RuntimeError("the engine is dead")
            if (windows.input_ids == MOOD.poison).any():
                self.dead = MOOD.kills
                raise RuntimeError("poisoned")
            logits = super().forward(windows)
            logits.start[(windows.input_ids == MOOD.overflow).any(axis=1)] = np.nan
            return logits
"""


@dataclass
class Mood:
    """``forwards`` are the windows of each call; none returns unless ``let`` is set. Where the poison ``kills``, the
    engine answers nothing more behind it."""

    poison: int = -1
    kills: bool = False
    overflow: int = -1
    loaded: int = 0
    forwards: list[int] = field(default_factory=list)
    dies: threading.Event = field(default_factory=threading.Event)
    let: threading.Event = field(default_factory=threading.Event)


MOOD = Mood()


def moody(add_engine: Callable[[str, str], None]) -> Mood:
    """Adds the engine of the backend ``MOODY``, in good mood."""
    add_engine("moody", SOURCE)
    MOOD.poison = MOOD.overflow = -1
    MOOD.loaded, MOOD.kills = 0, False
    MOOD.forwards.clear()
    MOOD.dies.clear()
    MOOD.let.set()
    return MOOD
