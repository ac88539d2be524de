"""Which of the measured backends the charts show: of many, at first those that one compares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.measure.benchmark.contestants import EQUAL
from qa_backends.measure.benchmark.floor import with_true_floors
from qa_backends.measure.benchmark.plan import PIPELINE
from qa_backends.web.shared.palette import title_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qa_backends.measure.results.records import BenchmarkRecord as Record

MOST = 6
"""Lines that can be told apart in one chart."""
ALWAYS = (*catalog.PRESELECTED, PIPELINE)


def names_of(records: Sequence[Record]) -> list[str]:
    """Each backend and reference once, in the order of the steps."""
    return list(dict.fromkeys(each.name for each in records))


def choices(records: Sequence[Record]) -> list[tuple[str, str]]:
    """Titles and names, for people to choose from."""
    return [(title_of(name), name) for name in names_of(records)]


def at_first(records: Sequence[Record], at: int) -> list[str]:
    """All, where they can be told apart; else what everything is compared with, and the fastest at the length."""
    names = names_of(records)
    if len(names) <= MOST:
        return names
    there = [each for each in records if each.tokens == at and each.order == EQUAL]
    fastest = [each.name for each in sorted(there, key=lambda each: each.p50_ms / each.questions)]
    chosen = list(dict.fromkeys([*(name for name in ALWAYS if name in names), *fastest]))[:MOST]
    return [name for name in names if name in chosen]


def said(records: Sequence[Record], names: Sequence[str], at: int) -> str:
    """What the charts show, in a line."""
    there = names_of(records)
    count = sum(name in names for name in there) or len(there)
    which = f"{count} of {len(there)} backends" if count < len(there) else "all backends"
    return f"The charts show {which}, those of one length at {at} tokens"


def only(records: Sequence[Record], names: Sequence[str]) -> list[Record]:
    """The records of the names; all, where none of them is there. Their floors are by all records, named or not."""
    there = with_true_floors(records)
    return [each for each in there if each.name in names] or there
