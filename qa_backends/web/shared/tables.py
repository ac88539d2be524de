"""A table that can be sorted, filtered and scrolled: its HTML. What moves it in the browser is ``scripts.TABLES``."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from qa_backends.web.shared.wording import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qa_backends.measure.timing.statistics import Difference, Interval

NONE = "–"
"""What stands where there is no value; such rows come last, whichever way the column is sorted."""


@dataclass(frozen=True, slots=True)
class Column:
    """What its cells hold, with the unit. Numbers stand to the right and sort as numbers; text is left and may wrap."""

    title: str
    unit: str = ""
    number: bool = True


@dataclass(frozen=True, slots=True)
class Cell:
    """HTML, and in a column of numbers what it is sorted by; ``None`` comes last."""

    html: str
    value: float | None = None


def text(shown: str) -> Cell:
    """Anything a person typed or a file holds."""
    return Cell(escape(shown))


def number(value: float | None, digits: int = 0) -> Cell:
    """With so many decimals; a dash where there is none."""
    return Cell(NONE if value is None else f"{value:,.{digits}f}", value)


def with_interval(said: str, value: float, *below: str) -> Cell:
    """A figure and its interval, as in "70.8 [70.0–71.6]": the interval, and what is said below, each in small on a
    line of its own."""
    figure, *small = *said.split(" ", 1), *below
    return Cell(" ".join([escape(figure), *(f"<small>{escape(each)}</small>" for each in small)]), value)


def f1_cell(f1: float, interval: Interval, difference: Difference | None, *below: str) -> Cell:
    """F1 in percent with its interval and, below, the paired difference to the baseline's with its own."""
    return with_interval(interval.around(f1), f1, *([difference.spelt()] if difference else []), *below)


def table_of(name: str, title: str, what: str, head: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> str:
    """The table under its filter. ``what`` is what a row is, in the singular.

    ``name`` tells the page's tables apart: by it the script knows how a person sorted and filtered this one.
    """
    tops = "".join(_top(each) for each in head)
    body = "".join(f"<tr>{''.join(map(_cell, row, head))}</tr>" for row in rows)
    whole, label = count(len(rows), what), escape(title, quote=True)
    return (
        f'<div class="qa-table" data-name="{escape(name, quote=True)}"><div class="qa-tools">'
        '<label>Filter <input type="search" placeholder="words, as in: fused fp32" autocomplete="off"></label>'
        f'<span class="qa-shown" role="status" data-whole="{whole}">{whole}</span></div>'
        f'<div class="qa-frame"><div class="qa-scroll" tabindex="0" role="region" aria-label="{label}">'
        f"<table><thead><tr>{tops}</tr></thead><tbody>{body}</tbody></table>"
        '<p class="qa-nothing" hidden>Nothing matches. Clear the filter to see all again.</p></div></div></div>'
    )


def _top(column: Column) -> str:
    unit = f" <span>{escape(column.unit)}</span>" if column.unit else ""
    side = ' class="qa-number"' if column.number else ""
    return f'<th scope="col"{side}><button type="button">{escape(column.title)}{unit}</button></th>'


def _cell(cell: Cell, column: Column) -> str:
    if not column.number:
        return f"<td>{cell.html}</td>"
    return f'<td class="qa-number" data-value="{"" if cell.value is None else cell.value}">{cell.html}</td>'
