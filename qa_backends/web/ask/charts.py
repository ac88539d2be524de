"""Plotly figures of a comparison, and of all questions of a visit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.web.shared.charts import layout, plain
from qa_backends.web.shared.palette import PART_OPACITY, colour, title_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from qa_backends.asking.comparison import Comparison


def latency(view: Comparison | None) -> go.Figure:
    """This question's latency: a bar a backend, its parts in shades of the backend's colour."""
    import plotly.graph_objects as go

    figure = go.Figure()
    timed = view.answered if view else []
    for part in ("tokenise", "model", "decode"):
        figure.add_bar(
            name=part,
            orientation="h",
            y=[card.title for card in timed],
            x=[(card.parts_ms or {}).get(part, 0.0) for card in timed],
            marker={"color": [colour(card.backend) for card in timed], "opacity": PART_OPACITY[part]},
            hovertemplate="%{y}: " + part + " %{x:.2f} ms<extra></extra>",
        )
    whose = "Recorded question" if view and view.recorded else "This question"
    figure.update_layout(barmode="stack", showlegend=False, **layout(f"{whose}, ms: tokenise · model · decode"))
    figure.update_yaxes(autorange="reversed", automargin=True)
    return figure


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of a visit, as its history keeps it: its latencies, by the backend's full name and device."""

    number: int
    question: str
    latencies_ms: dict[tuple[str, str, str], float]

    @staticmethod
    def of(view: Comparison, number: int) -> Asked:
        latencies = {(view.family, card.backend, view.device): card.latency_ms or 0.0 for card in view.answered}
        return Asked(number, plain(view.question), latencies)


def history(visit: Sequence[Asked]) -> go.Figure:
    """Every question of this visit: a point a question, a line a backend, family and device."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for key in dict.fromkeys(key for asked in visit for key in asked.latencies_ms):
        family, backend, device = key
        points = [(each.number, each.latencies_ms[key], each.question) for each in visit if key in each.latencies_ms]
        numbers, latencies, questions = zip(*points, strict=True)
        title = title_of(backend)
        figure.add_scatter(
            name=title if family == catalog.default_family() and device == "cpu" else f"{title} ({family}, {device})",
            mode="lines+markers",
            x=numbers,
            y=latencies,
            customdata=questions,
            line={"color": colour(backend), "dash": "solid" if family == catalog.default_family() else "dot"},
            hovertemplate="%{y:.2f} ms<br>%{customdata}<extra>" + title + "</extra>",
        )
    figure.update_layout(**layout("This visit, question by question"))
    figure.update_layout(legend={"orientation": "h", "y": -0.25}, margin={"b": 70})
    figure.update_yaxes(rangemode="tozero", ticksuffix=" ms")
    if not visit:
        figure.add_annotation(text="Your questions will appear here.", showarrow=False)
        figure.update_xaxes(visible=False)
        figure.update_yaxes(visible=False)
        return figure
    first, last = visit[0].number, visit[-1].number
    figure.update_xaxes(dtick=1 if last - first < 12 else None, range=[first - 0.5, last + 0.5])
    return figure
