"""An engine as slow or as quick as a test wants it, whatever else the machine does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from qa_backends.catalog import Backend

PACED = (Backend("baseline", "checkpoint", "paced"), Backend("pruned", "checkpoint", "paced"))
"""Called "baseline" and "pruned" as PyTorch's are: the engine adds nothing to a name."""
SOURCE = """
    import time

    from paced import PACE

    from qa_backends.engines.fake import Fake


    class Paced(Fake):
        short = ""
        label = ""

        def load(self, artefact, device):
            super().load(artefact, device)
            self.seen = set()

        def forward(self, windows):
            cold_s = 0 if windows.input_ids.shape in self.seen else PACE.cold_s
            self.seen.add(windows.input_ids.shape)
            time.sleep(cold_s + PACE.window_s * windows.n_windows)
            PACE.forwards.append(windows.n_windows)
            return super().forward(windows)
"""


@dataclass
class Pace:
    """Seconds that a window takes, and those that a batch of a new shape takes longer; ``forwards`` are the sizes of
    the batches that were computed."""

    window_s: float = 0.0
    cold_s: float = 0.0
    forwards: list[int] = field(default_factory=list)


PACE = Pace()


def paced(add_engine: Callable[[str, str], None], *, window_s: float = 0.0, cold_s: float = 0.0) -> Pace:
    """Adds the engine of the backends ``PACED``, with that pace."""
    add_engine("paced", SOURCE)
    PACE.window_s, PACE.cold_s = window_s, cold_s
    PACE.forwards.clear()
    return PACE
