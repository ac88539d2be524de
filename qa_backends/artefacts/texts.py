"""What builds are calibrated and checked on: shipped texts, as windows of a checkpoint's own length."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from qa_backends.checkpoints.architectures import architecture_of
from qa_backends.checkpoints.load import read_config
from qa_backends.contract import Query
from qa_backends.paths import CALIBRATION
from qa_backends.reader.reader import Reader
from qa_backends.reader.tokens import SubwordTokenizer
from qa_backends.squad import read_squad

if TYPE_CHECKING:
    from pathlib import Path

    from qa_backends.contract import Windows

PROBES = (
    Query(
        "What stands on the hill?",
        "An old mill stands on the hill, and behind it the river turns towards the sea. " * 12,
    ),
    Query("Who keeps the mill?", "Nobody keeps it any more."),
)
"""Two questions of very different length in one batch, so that a step which mishandles padding is caught."""


def reader_of(checkpoint: Path) -> Reader:
    """Cuts texts as people's are cut, or shorter where the checkpoint reads less at once."""
    config = read_config(checkpoint)
    return Reader(SubwordTokenizer(checkpoint), architecture_of(config).reads(config))


def probe_windows(checkpoint: Path) -> Windows:
    """The probes, in one batch."""
    return reader_of(checkpoint).prepare_all(PROBES).windows


def calibration_windows(checkpoint: Path) -> list[Windows]:
    """What INT8 is calibrated on: each window by itself, and so without padding, which would widen the ranges for
    nothing."""
    windows = reader_of(checkpoint).prepare_all(queries_of(CALIBRATION)).windows
    return [windows.select(np.array([number])) for number in range(windows.n_windows)]


def queries_of(file: Path) -> list[Query]:
    """The questions of a file in SQuAD format, with their texts."""
    return [Query(each.question, each.context) for each in read_squad(file)]
