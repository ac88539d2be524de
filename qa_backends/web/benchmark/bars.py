"""Level bars, one row or two a backend, with what is said of them above: so they fit a phone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from qa_backends.web.shared.charts import LINE_PX, TEXT_PX, inked, layout, plain, plotted_px
from qa_backends.web.shared.lines import Axis
from qa_backends.web.shared.palette import colour

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

BAR_PX, BETWEEN_PX, APART_PX = 14, 3, 14
"""A bar's thickness; what is between a backend's two bars; what is between two backends."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a bar: ``size`` along the axis, ``strength`` from 0 to 1, and what is said on hovering."""

    size: float
    strength: float
    said: str


@dataclass(frozen=True, slots=True)
class Bars:
    """A backend's bars, each of one or more parts, with its name and lines of text above them."""

    name: str
    backend: str
    said: tuple[str, ...]
    bars: tuple[tuple[Part, ...], ...]

    @property
    def text_px(self) -> float:
        return LINE_PX * (1 + len(self.said)) + BETWEEN_PX

    @property
    def height_px(self) -> float:
        return self.text_px + len(self.bars) * (BAR_PX + BETWEEN_PX) + APART_PX


def chart(
    title: str, subtitle: str, backends: Sequence[Bars], *, most: float, unit: str = "", height: float = 0
) -> go.Figure:
    """One below the other, from zero to ``most``, drawn in pixels from the top.

    The axis is named in the ``unit``, and left out where there is none. The chart is as high as it must be, and where
    ``height`` is more, what stands below each other is moved apart.
    """
    import plotly.graph_objects as go

    figure = go.Figure(layout=layout(title, subtitle, plot_px=sum(each.height_px for each in backends)))
    if not unit:
        figure.update_layout(height=plotted_px(figure) + figure.layout.margin.t, margin={"b": 0})
    apart = max(0.0, height - figure.layout.height) / len(backends)
    figure.update_layout(height=max(height, figure.layout.height), barmode="stack", showlegend=False)
    top, said = 0.0, []
    for each in backends:
        said.append(_said(each, top + each.text_px))
        for number, bar in enumerate(each.bars):
            middle = top + each.text_px + number * (BAR_PX + BETWEEN_PX) + BAR_PX / 2
            _draw(figure, each, bar, middle)
        top += each.height_px + apart
    figure.update_layout(annotations=said)  # at once: Plotly looks at those it has again with each that is added
    figure.update_xaxes(Axis.level(most).plotly(unit), visible=bool(unit))
    figure.update_yaxes(range=[top, 0], visible=False)
    return figure


def _said(backend: Bars, bottom: float) -> dict[str, Any]:
    """The name and what is said, above that place, as Plotly takes it."""
    name = f"<b>{inked(plain(backend.name), backend.backend)}</b>"
    return {
        "text": "<br>".join([name, *backend.said]), "align": "left", "showarrow": False, "font": {"size": TEXT_PX},
        "borderpad": 0, "xref": "paper", "x": 0, "xanchor": "left",
        "yref": "y", "y": bottom - BETWEEN_PX, "yanchor": "bottom",
    }  # fmt: skip


def _draw(figure: go.Figure, backend: Bars, bar: Sequence[Part], middle: float) -> None:
    for part in bar:
        figure.add_bar(
            orientation="h", x=[part.size], y=[middle], width=BAR_PX, name=plain(backend.name),
            marker={"color": colour(backend.backend), "opacity": part.strength, "line": {"width": 0}},
            hovertemplate=f"{plain(backend.name)}: {part.said}<extra></extra>",
        )  # fmt: skip
