"""What the tests of training share: no model is compiled."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import pytest
import torch

from qa_backends.artefacts.texts import calibration_windows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from qa_backends.contract import Windows


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
def few_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """INT8's ranges are found on some of the windows that there are to find them on."""

    def some(checkpoint: Path) -> Iterator[Windows]:
        return islice(calibration_windows(checkpoint), 16)

    monkeypatch.setattr("qa_backends.training.quantise.calibration_windows", some)


@pytest.fixture
def two_threads() -> Iterator[None]:
    """PyTorch set to more threads than one, as it sets itself on a host of many cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)
