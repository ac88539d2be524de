"""What the tests of asking share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from paced import paced

if TYPE_CHECKING:
    from collections.abc import Callable

    AddFile = Callable[[str, str], None]


@pytest.fixture
def quick(add_engine: AddFile) -> None:
    """The engine of the backends ``PACED``, so quick that turns fit however busy the machine is."""
    paced(add_engine)
