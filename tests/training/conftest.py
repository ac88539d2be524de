"""What the tests of training share: no model is compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def uncompiled() -> Iterator[None]:
    """Compiling a graph takes longer than training a tiny model."""
    with torch.compiler.set_stance("force_eager"):
        yield


@pytest.fixture(autouse=True)
def few_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which heads of a tiny random model matter is nothing to be sure about."""
    monkeypatch.setattr("qa_backends.training.prune.IMPORTANCE_BATCHES", 4)


@pytest.fixture
def two_threads() -> Iterator[None]:
    """PyTorch set to more threads than one, as it sets itself on a host of many cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)
