"""What a search for the fastest backend found, as HTML and as a chart. Values pass ``escape``."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from qa_backends.measure.quality.datasets import TITLES
from qa_backends.measure.recommend.search import advice, timed
from qa_backends.web.benchmark.dots import Dot
from qa_backends.web.benchmark.dots import chart as dot_chart
from qa_backends.web.shared.html import finished, problem, running
from qa_backends.web.shared.tables import Cell, Column, f1_cell, number, table_of, text, with_interval

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from qa_backends.measure.recommend.search import F1, Candidate, Search


def progress(search: Search) -> str:
    """A bar, and what is being done; how it ended, once it has."""
    if search.status:
        return running(search.done, search.of, search.status, unit="steps", left_s=search.left_s)
    came = "Done." if search.advised else "Stopped; nothing is advised." if search.left else "Done; nobody is left."
    return finished(search.done, search.of, came, unit="steps")


def verdict(search: Search) -> str:
    """The advice, and what was timed."""
    said = advice(search)
    if not search.advised:
        return problem(said) if said else ""
    how = timed(search)
    return f'<div class="qa-verdict" role="status"><p>{escape(said)}</p><p class="qa-status">{escape(how)}</p></div>'


def table(search: Search) -> str:
    """Every backend that was looked at: what was measured of it, and why it is out."""
    lengths = search.wish.lengths
    head = (
        Column("backend", number=False), *(Column(f"{tokens} tokens,", "ms") for tokens in lengths),
        Column("against pipeline"), *(Column(f"F1, {title},", "%") for title in TITLES.values()),
        Column("loaded,", "MB"), Column("loading,", "s"), Column("standing", number=False),
    )  # fmt: skip
    name = "-".join(["fastest", *map(str, lengths)])  # a sort is kept by the table's name, and by the column's place
    return table_of(name, "Every backend that was looked at", "backend", head,
                    [_cells(search, each) for each in search.ranked])  # fmt: skip


def _cells(search: Search, each: Candidate) -> list[Cell]:
    ratio = each.speed_up
    return [
        text(each.title),
        *(_ms(each, tokens) for tokens in search.wish.lengths),
        with_interval(str(ratio), ratio.value) if ratio else number(None),
        *(_f1(each.f1_on(data)) for data in TITLES),
        number(each.memory_bytes / 1e6 if each.memory_bytes is not None else None),
        number(each.load_ms / 1000 if each.load_ms is not None else None, 1),
        text(search.standing(each)),
    ]


def _ms(each: Candidate, tokens: int) -> Cell:
    """The median; of one that went after its first readings, about what it took."""
    median = number(each.ms.get(tokens), 2)
    return median if each.turns or not each.ms else Cell(f"≈{median.html}", median.value)


def _f1(f1: F1 | None) -> Cell:
    """A dash where it is not known."""
    return f1_cell(f1.value, f1.interval, f1.difference) if f1 else number(None)


def chart(search: Search) -> go.Figure | None:
    """F1 against latency of those that were timed and can be compared, with the frontier; ``None`` while none was."""
    if not search.charted:
        return None
    _, f1 = search.charted[0]
    said = f"{search.wish.raced_on}; F1 over {f1.n:,} questions, {TITLES[f1.data]}, 95 % intervals; line: the frontier"
    return dot_chart("F1 against latency, raced here", said, [_dot(*each) for each in search.charted])


def _dot(each: Candidate, f1: F1) -> Dot:
    title = each.title if each.turns else f"{each.title} ≈"
    loaded = "–" if each.memory_bytes is None else f"{each.memory_bytes / 1e6:.0f} MB loaded"
    return Dot(title, each.name, each.whole_ms, f1.value, f1.interval, loaded)
