"""How numbers are said, the same wherever they are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qa_backends.limits import DEVICE_TITLES
from qa_backends.measure.quality.datasets import TITLES, sha256_of

if TYPE_CHECKING:
    from qa_backends.measure.results.records import BenchmarkRecord, QualityRecord


SECONDS_FROM_MS = 10_000
"""What takes longer is said in seconds."""


def milliseconds(value: float) -> str:
    """About three significant digits: 0.42, 4.21, 42.1, 421; from ten seconds on in seconds."""
    if round(value) >= SECONDS_FROM_MS:
        return f"{value / 1000:,.1f} s"
    for limit, digits in ((10, 2), (100, 1)):
        if round(value, digits) < limit:
            return f"{value:.{digits}f} ms"
    return f"{value:,.0f} ms"


def percent(share: float) -> str:
    """As in "42 %", of 0.42."""
    return f"{100 * share:.0f} %"


def count(number: int, what: str) -> str:
    """As in "1 question" and "1,000 questions"."""
    return f"{number:,} {what}{'s' if number != 1 else ''}"


def unbroken(figure: str) -> str:
    """A figure with its interval that stays on one line, also where that wraps at a dash."""
    return figure.replace(" ", "\N{NO-BREAK SPACE}").replace("–", "\N{WORD JOINER}–\N{WORD JOINER}")


def device_title(device: str) -> str:
    """As people call it; what a file calls otherwise is said as it stands."""
    return DEVICE_TITLES.get(device, device)


def set_title(record: QualityRecord) -> str:
    """What people call the data set: as where its figures ship, or the name of somebody's file."""
    known = (title for name, title in TITLES.items() if record.data_sha256 == sha256_of(name))
    return next(known, record.data)


def size(record: BenchmarkRecord) -> str:
    """What the backend's file takes on disk; a reference's is not known."""
    return "–" if record.bytes is None else f"{record.bytes / 1e6:.1f} MB"
