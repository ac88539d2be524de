"""What the accuracy tab shows, and of what: the questions to choose from, what ships, a visitor's own evaluation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.measure.quality.datasets import (
    EVERYDAY,
    OWN,
    SQUAD_DEV_BYTES,
    SQUAD_V2_DEV,
    TITLES,
    count_of,
    sha256_of,
)
from qa_backends.measure.quality.evaluation import Differing, Evaluated, differences
from qa_backends.measure.quality.export import commands
from qa_backends.measure.results.shipped import shipped_quality
from qa_backends.web.shared.choices import said

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qa_backends.measure.results.records import QualityRecord

OWN_FILE = "file"
COUNTS = {data: count_of(data) for data in TITLES}
DATA = (
    (f"The app's own {COUNTS[OWN]} questions", OWN),
    (f"The app's {COUNTS[EVERYDAY]} on everyday texts", EVERYDAY),
    (f"SQuAD v2.0 dev, {COUNTS[SQUAD_V2_DEV]:,} questions ({SQUAD_DEV_BYTES / 1e6:.1f} MB, downloaded on first use)",
     SQUAD_V2_DEV),
    ("A SQuAD-format file of mine", OWN_FILE),
)  # fmt: skip
SAID = {
    OWN: f"the app's own {COUNTS[OWN]} questions",
    EVERYDAY: f"the app's {COUNTS[EVERYDAY]} questions on everyday texts",
    SQUAD_V2_DEV: f"the {COUNTS[SQUAD_V2_DEV]:,} questions of SQuAD v2.0 dev",
    OWN_FILE: "the questions of a file of mine",
}


@dataclass(frozen=True, slots=True)
class Shown:
    """A visitor's evaluation."""

    results: tuple[Evaluated, ...]

    def names(self) -> list[tuple[str, str]]:
        return [(each.backend.title, each.backend.name) for each in self.results]

    def pair(self, one: str, other: str) -> tuple[Evaluated, Evaluated]:
        by_name = {each.backend.name: each for each in self.results}
        return by_name[one], by_name[other]

    def differences(self, one: str, other: str) -> list[Differing]:
        first, second = self.pair(one, other)
        return differences(first.scored, second.scored)


def shipped() -> list[QualityRecord]:
    """What ships of the default family's quality: each backend on each data set, one below the other."""
    of = catalog.family(catalog.default_family())
    found = [shipped_quality(of, each, data=data) for each in catalog.offered(of) for data in TITLES]
    return [each for each in found if each]


def said_of(backends: list[str], family: str, device: str, data: str, limit: float | None) -> str:
    """What is chosen, in a line; of a file it is not known yet how many questions it holds."""
    part = f"{int(limit):,} of " if limit and 1 <= limit < COUNTS.get(data, math.inf) else ""
    return f"{said(backends, family, device)} · {part}{SAID[data]}"


def shipped_commands(records: Sequence[QualityRecord]) -> str:
    """The lines that repeat what ships, each data set's by the backends that read it. None of a family of which nothing
    was measured."""
    by_data = {data: [each for each in records if each.data_sha256 == sha256_of(data)] for data in TITLES}
    return "\n".join(commands(found, data) for data, found in by_data.items() if found)
