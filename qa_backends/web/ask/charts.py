"""The visit's questions as they come: latency against length, the shipped benchmark faint behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from qa_backends.measure.benchmark.contestants import EQUAL
from qa_backends.web.shared.charts import layout, plain
from qa_backends.web.shared.palette import colour, title_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from qa_backends.asking.comparison import Comparison
    from qa_backends.measure.results.records import Benchmark


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of a visit, as its chart keeps it: its length, and latencies by family, backend and device."""

    question: str
    tokens: int
    latencies_ms: dict[tuple[str, str, str], float]

    @staticmethod
    def of(view: Comparison) -> Asked:
        latencies = {(view.family, card.backend, view.device): card.latency_ms or 0.0 for card in view.answered}
        return Asked(plain(view.question), view.tokens, latencies)


def visit(asked: Sequence[Asked], shipped: Benchmark | None) -> go.Figure:
    """A point a question and backend; behind them, what the shipped benchmark measured of the same backends."""
    import plotly.graph_objects as go

    figure = go.Figure()
    keys = dict.fromkeys(key for each in asked for key in each.latencies_ms)
    for key in keys:
        _line_behind(figure, key, shipped)
    for key in keys:
        family, backend, device = key
        points = [(each.tokens, each.latencies_ms[key], each.question) for each in asked if key in each.latencies_ms]
        lengths, latencies, questions = zip(*points, strict=True)
        title = title_of(backend, device) + ("" if family == "minilm" else f" ({family})")
        figure.add_scatter(
            name=title, mode="markers", x=lengths, y=latencies, customdata=questions,
            marker={"color": colour(backend), "size": 9, "line": {"width": 1, "color": "white"}},
            hovertemplate="%{y:.2f} ms at %{x} tokens<br>%{customdata}<extra>" + title + "</extra>",
        )  # fmt: skip
    subtitle = "lines: measured with the app, on its own machine" if shipped and figure.data else ""
    figure.update_layout(**layout("Your questions, by length of text", subtitle))
    figure.update_layout(legend={"orientation": "h", "y": -0.3, "font": {"size": 11}}, margin={"t": 56, "b": 64})
    figure.update_xaxes(title={"text": "tokens", "font": {"size": 11}, "standoff": 4}, rangemode="tozero")
    figure.update_yaxes(ticksuffix=" ms", rangemode="tozero")
    return figure


def _line_behind(figure: go.Figure, key: tuple[str, str, str], shipped: Benchmark | None) -> None:
    """What the shipped benchmark measured of the backend at batches of one, if it did."""
    family, backend, device = key
    line = sorted(
        (each.tokens, each.p50_ms)
        for each in (shipped.rows if shipped else ())
        if (each.backend, each.device) == (f"{family}/{backend}", device)
        and each.tokens is not None and each.order == EQUAL and each.batch == 1
    )  # fmt: skip
    if line:
        figure.add_scatter(
            mode="lines", x=[tokens for tokens, _ in line], y=[p50 for _, p50 in line], showlegend=False,
            line={"color": colour(backend), "width": 2}, opacity=0.35, hoverinfo="skip",
        )  # fmt: skip
