"""Lines of backends in a chart: their names at their ends, and those that coincide told apart.

Where lines lie on each other each is striped, so that the colours of all show in turn, and their markers are rings
around each other.
"""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from qa_backends.web.shared.charts import (
    EDGE_PX,
    LINE_PX,
    PLOT_PX,
    TEXT_PX,
    TICK_PX,
    inked,
    layout,
    plain,
    plotted_px,
    ticks,
    width,
)
from qa_backends.web.shared.palette import colour
from qa_backends.web.shared.wording import SECONDS_FROM_MS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import plotly.graph_objects as go

NAME_CHARS = 14
"""Longer names take more than one line of text, to leave a phone room for the chart."""
SLACK = 1.15
"""How much more room than they fill the names have at least, so that each is near its line."""
LEADER_PX = 16
"""From the end of a line to its name."""
NEAR_PX = 3.5
"""Lines no further apart than this, over most of what they share, hide each other."""
STRIPE_PX = 8
MARKER_PX, RING_PX = 6, 3
"""A marker's width, and how much wider each ring around it is."""
MOST_TICKS = 5
STEPS = (1.0, 2.0, 5.0)
"""What an axis names of each power of ten."""
FINE_STEPS = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)
"""Where values lie so close that none of the others stands between: one of these always does."""


@dataclass(frozen=True, slots=True)
class Line:
    """A backend's values at ascending places; ``name`` is its title, and ``symbol`` tells equal colours apart."""

    name: str
    backend: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    symbol: str = "circle"


@dataclass(frozen=True, slots=True)
class Axis:
    """From where to where an axis goes, and what is named on it.

    A share is how far along the axis a value stands, from 0 to 1.
    """

    low: float
    high: float
    marks: tuple[float, ...]
    log: bool = False

    @staticmethod
    def up(values: Iterable[float], *, log: bool = False) -> Axis:
        """An upright axis with room for all the values: from zero, or from below the least where it is logarithmic."""
        found = list(values)
        if not log:
            return Axis.level(max(found) * 1.06)
        low, high = min(found) / 1.25, max(found) * 1.25
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)))
        coarse, fine = (
            tuple(step * 10.0**power for power in powers for step in steps if low <= step * 10.0**power <= high)
            for steps in (STEPS, FINE_STEPS)
        )
        return Axis(low, high, coarse or fine, True)

    @staticmethod
    def level(high: float) -> Axis:
        """From zero, with equal steps between its marks; of nothing but zeros, up to 1."""
        high = high or 1.0
        size = 10.0 ** math.floor(math.log10(high / MOST_TICKS))
        step = next(size * each for each in (*STEPS, 10.0) if size * each * MOST_TICKS >= high)
        return Axis(0.0, high, tuple(step * number for number in range(math.floor(high / step) + 1)))

    @staticmethod
    def across(values: Iterable[float], *, log: bool = False) -> Axis:
        """A level axis from the first value to the last, naming those there is room for; a single one is in its
        middle."""
        marks = tuple(sorted(set(values)))
        low, high = (marks[0], marks[-1]) if len(marks) > 1 else (marks[0] / 2, marks[0] * 1.5)
        return Axis(low, high, marks, log)

    def share(self, value: float) -> float:
        low, high = self._drawn(self.low), self._drawn(self.high)
        return (self._drawn(value) - low) / (high - low)

    def value(self, share: float) -> float:
        found = self._drawn(self.low) + share * (self._drawn(self.high) - self._drawn(self.low))
        return 10**found if self.log else found

    def plotly(self, unit: str = "") -> dict[str, Any]:
        """As Plotly takes it, with the unit behind each mark."""
        named = ticks(self.marks, [self.share(mark) for mark in self.marks])
        return {
            "range": [self._drawn(self.low), self._drawn(self.high)], "type": "log" if self.log else "linear",
            "tickvals": named, "ticktext": [self.said(mark, unit) for mark in named],
        }  # fmt: skip

    def said(self, value: float, unit: str) -> str:
        """A mark with its unit; many milliseconds are seconds."""
        if unit == " ms" and self.high > SECONDS_FROM_MS:
            return f"{value / 1000:,.10g} s"
        return f"{value:,.10g}{unit}"

    def _drawn(self, value: float) -> float:
        return math.log10(value) if self.log else value


def chart(title: str, subtitle: str, lines: Sequence[Line], across: Axis, up: Axis, unit: str) -> go.Figure:
    """A chart without its lines yet: frame, axes, and the lines' names, at least as high as these need.

    ``unit`` follows each number of the upright axis.
    """
    import plotly.graph_objects as go

    names = [textwrap.wrap(each.name, NAME_CHARS) for each in lines]
    room = max(PLOT_PX, SLACK * sum(LINE_PX * len(name) for name in names))
    left = max(width(up.said(mark, unit)) for mark in up.marks) + TICK_PX + EDGE_PX
    figure = go.Figure(
        layout=layout(
            title, subtitle, plot_px=room, left=left,
            right=LEADER_PX + max(width(text) for name in names for text in name) + EDGE_PX,
        )
    )  # fmt: skip
    figure.update_layout(showlegend=False)
    figure.update_xaxes(across.plotly())
    figure.update_yaxes(up.plotly(unit))
    _name(figure, lines, names, across, up)
    return figure


def add(figure: go.Figure, line: Line, place: tuple[int, int], *, said: Sequence[str], hover: str) -> None:
    """Draws a line that has such a place among those that coincide with it, see ``coinciding``."""
    number, of = place
    ink = colour(line.backend)
    figure.add_scatter(
        name=plain(line.name),
        mode="lines+markers",
        x=line.x,
        y=line.y,
        line={"color": ink, "dash": stripes(number, of), "width": 2},
        marker={"color": ink, "symbol": line.symbol, "size": ring(number, of), "opacity": 1},
        customdata=said,
        hovertemplate=f"{plain(line.name)}, {hover}<extra></extra>",
        cliponaxis=False,
    )


def stripes(number: int, of: int) -> str:
    """The dash of one of so many lines on each other: each shows where the others leave a gap."""
    if of == 1:
        return "solid"
    return f"0px,{number * STRIPE_PX}px,{STRIPE_PX}px,{(of - 1 - number) * STRIPE_PX}px"


def ring(number: int, of: int) -> int:
    """The width of a marker on which smaller ones of other lines are drawn."""
    return MARKER_PX + RING_PX * (of - 1 - number)


def coinciding(figure: go.Figure, lines: Sequence[Line], up: Axis) -> list[tuple[int, int]]:
    """Of each line, its number among those that lie on each other, and how many these are; ``(0, 1)`` for one that is
    seen by itself."""
    room_px = plotted_px(figure)
    groups: list[list[int]] = []
    for number, line in enumerate(lines):
        near = [group for group in groups if any(_hide(lines[each], line, up, room_px) for each in group)]
        groups = [group for group in groups if group not in near] + [[*chain.from_iterable(near), number]]
    places = {each: (place, len(group)) for group in groups for place, each in enumerate(sorted(group))}
    return [places[number] for number in range(len(lines))]


def _hide(one: Line, other: Line, up: Axis, room_px: float) -> bool:
    values = dict(zip(one.x, one.y, strict=True))
    apart = [
        abs(up.share(values[place]) - up.share(value)) * room_px
        for place, value in zip(other.x, other.y, strict=True)
        if place in values
    ]
    return bool(apart) and sum(each <= NEAR_PX for each in apart) > len(apart) / 2


def spread(wanted: Sequence[float], sizes: Sequence[float], room: float) -> list[float]:
    """Centres of things of these sizes, as near as possible to those wanted, in their order, without overlap, between
    0 and ``room``.

    Neighbours that would overlap are joined, and stand together where they are best placed on average.
    """
    joined: list[tuple[float, list[int]]] = []  # where the first one begins, and who they are
    for number in sorted(range(len(wanted)), key=lambda each: wanted[each]):
        together = [number]
        while joined and joined[-1][0] + sum(sizes[each] for each in joined[-1][1]) > _begin(
            together, wanted, sizes, room
        ):
            together = joined.pop()[1] + together
        joined.append((_begin(together, wanted, sizes, room), together))
    centres = [0.0] * len(wanted)
    for begin, together in joined:
        for each in together:
            centres[each] = begin + sizes[each] / 2
            begin += sizes[each]
    return centres


def _begin(together: Sequence[int], wanted: Sequence[float], sizes: Sequence[float], room: float) -> float:
    """Where neighbours that touch begin, so that their centres are nearest to those wanted."""
    before, wished = 0.0, 0.0
    for each in together:
        wished += wanted[each] - sizes[each] / 2 - before
        before += sizes[each]
    return max(0.0, min(wished / len(together), room - before))


def _name(figure: go.Figure, lines: Sequence[Line], names: Sequence[Sequence[str]], across: Axis, up: Axis) -> None:
    """Each line's name right of what is plotted, beside its end, and a thin line that leads there."""
    room = plotted_px(figure)
    ends = [up.share(line.y[-1]) for line in lines]
    centres = spread([end * room for end in ends], [LINE_PX * len(name) for name in names], room)
    annotations, shapes = [], []
    for line, name, end, centre in zip(lines, names, ends, centres, strict=True):
        ink = {"color": colour(line.backend), "width": 1}
        annotations.append({
            "text": inked("<br>".join(plain(text) for text in name), line.backend), "showarrow": False, "align": "left",
            "font": {"color": colour(line.backend), "size": TEXT_PX}, "borderpad": 0,
            "xref": "paper", "x": 1, "xanchor": "left", "xshift": LEADER_PX,
            "yref": "paper", "y": centre / room, "yanchor": "middle",
        })  # fmt: skip
        shapes.append({
            "type": "line", "line": ink, "xref": "paper", "xsizemode": "pixel", "xanchor": 1, "x0": 4,
            "x1": LEADER_PX - 2, "yref": "y", "y0": up.value(end), "y1": up.value(centre / room),
        })  # fmt: skip
        if line.x[-1] < across.high:
            shapes.append({
                "type": "line", "line": ink | {"dash": "1px,4px"}, "xref": "x", "x0": line.x[-1], "x1": across.high,
                "yref": "y", "y0": up.value(end), "y1": up.value(end),
            })  # fmt: skip
    # All at once: Plotly looks at those it has again with each that is added.
    figure.update_layout(annotations=annotations, shapes=shapes)
