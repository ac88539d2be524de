"""Plotly figures from views. Text is coloured by the style sheet, so that one figure serves light and dark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qa_backends import catalog
from qa_backends.web.palette import PART_OPACITY, colour

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from qa_backends.measure.view import View

GRID = "rgba(128,128,128,0.25)"
CLEAR = "rgba(0,0,0,0)"


def latency(view: View | None) -> go.Figure:
    """This question's latency: a bar a backend, its parts in shades of the backend's colour."""
    import plotly.graph_objects as go

    figure = go.Figure()
    timed = view.answered if view else []
    for part, opacity in PART_OPACITY.items():
        figure.add_bar(
            name=part,
            orientation="h",
            y=[card.title for card in timed],
            x=[(card.parts_ms or {}).get(part, 0.0) for card in timed],
            marker={"color": [colour(card.backend) for card in timed], "opacity": opacity},
            hovertemplate="%{y}: " + part + " %{x:.2f} ms<extra></extra>",
        )
    figure.update_layout(barmode="stack", showlegend=False, **_layout("This question, ms: tokenise · model · decode"))
    figure.update_yaxes(autorange="reversed", automargin=True)
    return figure


def history(visit: Sequence[View]) -> go.Figure:
    """Every question of this visit: a line a backend, a point a question."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for row in catalog.BACKENDS:
        points = [
            (number, card.latency_ms, view.question)
            for number, view in enumerate(visit, start=1)
            for card in view.answered
            if card.backend == row.name
        ]
        if points:
            numbers, latencies, questions = zip(*points, strict=True)
            figure.add_scatter(
                name=row.title,
                mode="lines+markers",
                x=numbers,
                y=latencies,
                customdata=[_plain(question) for question in questions],
                line={"color": colour(row.name)},
                hovertemplate="%{y:.2f} ms<br>%{customdata}<extra>" + row.title + "</extra>",
            )
    figure.update_layout(**_layout("This visit, question by question"))
    figure.update_layout(legend={"orientation": "h", "y": -0.25}, margin={"b": 70})
    figure.update_xaxes(dtick=1 if len(visit) < 12 else None, range=[0.5, len(visit) + 0.5])
    figure.update_yaxes(rangemode="tozero", ticksuffix=" ms")
    if not figure.data:
        figure.add_annotation(text="Your questions will appear here.", showarrow=False)
        figure.update_xaxes(visible=False)
        figure.update_yaxes(visible=False)
    return figure


def _layout(title: str) -> dict[str, Any]:
    return {
        "title": {"text": title, "font": {"size": 13}, "x": 0, "xref": "container", "pad": {"l": 12}},
        "xaxis": {"gridcolor": GRID, "zeroline": False, "fixedrange": True},
        "yaxis": {"gridcolor": GRID, "zeroline": False, "fixedrange": True},
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "height": 280,
        "margin": {"l": 8, "r": 12, "t": 40, "b": 40},
        "dragmode": False,
        "modebar": {"remove": ["select", "lasso2d", "zoom", "pan", "autoscale", "zoomin", "zoomout", "resetscale"]},
    }


def _plain(question: str) -> str:
    """Plotly reads a little HTML in labels; a question is shown as it was typed, shortened."""
    short = question if len(question) <= 60 else question[:59] + "…"
    return short.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
