"""The times that pruning for milliseconds goes by: medians of enough turns, or a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from helpers import random_bert

from qa_backends import catalog
from qa_backends.checkpoints.load import read_config
from qa_backends.errors import InputError
from qa_backends.measure.benchmark import shapes
from qa_backends.measure.timing.rounds import Samples
from qa_backends.progress import UNWATCHED
from qa_backends.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from qa_backends.measure.timing.rounds import Run


def test_turns_that_became_too_slow_for_five_rounds_give_no_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_round(runs: Mapping[str, Run], **_: float) -> Iterator[Samples]:
        yield Samples(times={name: [run()] for name, run in runs.items()}, blocks=[1])

    monkeypatch.setattr(shapes, "take_turns", one_round)
    config = read_config(random_bert(tmp_path / "model"))
    with pytest.raises(InputError, match="too short for so many models"):
        shapes.time_shapes(Runtime(), catalog.backend("baseline"), config, [(2, 32)], (64,), 5.0, UNWATCHED)
