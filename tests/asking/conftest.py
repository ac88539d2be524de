"""What the tests of asking share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from paced import paced

if TYPE_CHECKING:
    from collections.abc import Callable

    AddFile = Callable[[str, str], None]


@pytest.fixture
def quick(add_engine: AddFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine of the backends ``PACED``, so quick that turns fit however busy the machine is; it has no threads that
    others would have to wait for."""
    monkeypatch.setattr("qa_backends.measure.timing.rounds.SETTLE_S", 0.002)
    paced(add_engine)
