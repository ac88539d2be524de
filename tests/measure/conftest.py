"""What the tests of benchmarks share: a family of small models, known by its name, as a plan wants it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from qa_backends import catalog

if TYPE_CHECKING:
    from qa_backends.catalog import Family


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """No half a second of rest before each backend is measured by itself: for tests that are not about its times."""
    monkeypatch.setattr("qa_backends.measure.benchmark.sweep.SETTLE_ALONE_S", 0.0)


@pytest.fixture
def small(small_family: Family) -> Family:
    catalog.register(small_family)
    return small_family
