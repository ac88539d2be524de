"""F1 against latency: a dot a backend with its interval, its name above, and the frontier through the best.

A name stands at the top of a thin line from its dot, the leftmost dot's highest: so no line crosses a name. Dots that
coincide are rings around each other, and their names share a line.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qa_backends.measure.timing.statistics import on_frontier
from qa_backends.web.shared.charts import (
    EDGE_PX,
    GRID,
    LINE_PX,
    TEXT_PX,
    TICK_PX,
    axis_title,
    inked,
    layout,
    plain,
    width,
)
from qa_backends.web.shared.lines import Axis, ring
from qa_backends.web.shared.palette import colour

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from qa_backends.measure.timing.statistics import Interval

DOTS_PX = 150
"""Below the names: room for the dots and their intervals."""
NAME_PX = 4
"""Between a name and its line."""
NEAR = 0.015
"""Dots no further apart than this share of the slowest one's latency, and of the intervals' spread, hide each other."""
STEPS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
MOST_TICKS = 4
WHOLE = 1.04
"""Where the axis of latency ends, by the slowest dot."""
PHONE_PX = 220
"""The width that a phone has for that axis, at least."""


@dataclass(frozen=True, slots=True)
class Dot:
    """A backend: its latency in milliseconds, its F1 with the interval, and its file's size."""

    name: str
    backend: str
    ms: float
    f1: float
    interval: Interval
    size: str


def chart(title: str, subtitle: str, dots: Sequence[Dot]) -> go.Figure:
    """All the dots, from zero latency on; the axis of F1 ends where the names begin."""
    import plotly.graph_objects as go

    across = sorted(dots, key=lambda dot: dot.ms)
    low, high = min(dot.interval.low for dot in dots), max(dot.interval.high for dot in dots)
    pixel = 1.1 * (high - low) / DOTS_PX
    names_px = LINE_PX * (len(dots) + 1)
    top = high + names_px * pixel
    figure = go.Figure(
        layout=layout(title, subtitle, plot_px=DOTS_PX + names_px, left=width("00.0") + TICK_PX + EDGE_PX,
                      right=_right_px(across))
    )  # fmt: skip
    _frontier(figure, across)
    _name(figure, across, [top - (number + 0.5) * LINE_PX * pixel for number in range(len(across))])
    for dot, place in zip(across, _rings(across, high - low), strict=True):
        _draw(figure, dot, ring(*place))
    step = next((each for each in STEPS if (high - low) / each <= MOST_TICKS), STEPS[-1])
    first, last = math.ceil(low / step), math.floor(high / step)
    figure.update_layout(showlegend=False)
    figure.update_xaxes(Axis.level(WHOLE * across[-1].ms).plotly(" ms"), title=axis_title("latency, p50"))
    figure.update_yaxes(
        range=[high - DOTS_PX * pixel, top], tickvals=[number * step for number in range(first, last + 1)]
    )
    return figure


def _frontier(figure: go.Figure, across: Sequence[Dot]) -> None:
    """A step line through the dots that no other is both quicker and better than."""
    best = [across[index] for index in on_frontier([(dot.ms, dot.f1) for dot in across])]
    if len(best) > 1:
        figure.add_scatter(
            x=[dot.ms for dot in best], y=[dot.f1 for dot in best], mode="lines", hoverinfo="skip", name="frontier",
            line={"color": GRID, "width": 2, "shape": "hv"},
        )  # fmt: skip


def _right_px(across: Sequence[Dot]) -> float:
    """What the names take beyond the axis."""
    left = [(1 - dot.ms / (WHOLE * across[-1].ms)) * PHONE_PX for dot in across]
    beyond = [width(dot.name) + NAME_PX - room for dot, room in zip(across, left, strict=True)]
    return max(0.0, *beyond) + EDGE_PX


def _rings(across: Sequence[Dot], spread: float) -> list[tuple[int, int]]:
    """Of each dot, its number among the neighbours that coincide, and how many these are."""
    groups: list[list[Dot]] = []
    for dot in across:
        last = groups[-1][-1] if groups else None
        near = last and dot.ms - last.ms <= NEAR * across[-1].ms and abs(dot.f1 - last.f1) <= NEAR * spread
        groups = [*groups[:-1], [*groups[-1], dot]] if near else [*groups, [dot]]
    return [(number, len(group)) for group in groups for number in range(len(group))]


def _name(figure: go.Figure, across: Sequence[Dot], places: Sequence[float]) -> None:
    """Each dot's name at its height, and a line from the dot up to it; all at once, since Plotly looks at those it has
    again with each that is added."""
    named = list(zip(across, places, strict=True))
    figure.update_layout(
        shapes=[
            {"type": "line", "line": {"color": colour(dot.backend), "width": 1},
             "x0": dot.ms, "x1": dot.ms, "y0": dot.f1, "y1": at}
            for dot, at in named
        ],
        annotations=[
            {"text": inked(plain(dot.name), dot.backend), "showarrow": False, "borderpad": 0,
             "font": {"color": colour(dot.backend), "size": TEXT_PX},
             "x": dot.ms, "y": at, "xanchor": "left", "xshift": NAME_PX, "yanchor": "middle"}
            for dot, at in named
        ],
    )  # fmt: skip


def _draw(figure: go.Figure, dot: Dot, size: int) -> None:
    ink = colour(dot.backend)
    figure.add_scatter(
        name=plain(dot.name), mode="markers", x=[dot.ms], y=[dot.f1], marker={"color": ink, "size": size + 4},
        error_y={
            "type": "data", "symmetric": False, "thickness": 1, "color": ink,
            "array": [dot.interval.high - dot.f1], "arrayminus": [dot.f1 - dot.interval.low],
        },
        hovertemplate=f"{plain(dot.name)}: F1 {dot.f1:.2f}, {dot.ms:.2f} ms, {dot.size}<extra></extra>",
    )  # fmt: skip
