"""The visit's questions as they come: latency against length, a line a backend, the shipped benchmark faint behind."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qa_backends.measure.benchmark.contestants import EQUAL
from qa_backends.web.shared.charts import axis_title, plain, sentence
from qa_backends.web.shared.lines import Axis, Line, chart, coinciding, ring, stripes
from qa_backends.web.shared.palette import colour, title_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from qa_backends.asking.comparison import Comparison
    from qa_backends.measure.results.records import Benchmark

Key = tuple[str, str, str]
"""Family, backend, device."""
TITLE = "Questions asked, by length of text"
SYMBOLS = ("circle", "diamond", "square", "cross")
"""Families and devices are told apart by these, in the order they come; a backend has one colour in all of them."""
BEHIND_OPACITY, BEHIND_PX = 0.3, 4
LEAST_TOKENS = 128
"""The axis of lengths goes at least so far, so that short questions too stand before what was measured."""
DOT_PX = 3
"""How much wider a question's dot is than a marker on a line."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of a visit, as its chart keeps it: its length, and latencies by family, backend and device."""

    question: str
    tokens: int
    latencies_ms: dict[Key, float]

    @staticmethod
    def of(view: Comparison) -> Asked:
        latencies = {(view.family, card.backend, view.device): card.latency_ms or 0.0 for card in view.answered}
        return Asked(plain(view.question), view.tokens, latencies)


def visit(asked: Sequence[Asked], shipped: Benchmark | None) -> go.Figure:
    """A dot a question and backend, and a line through the medians at each length; behind them, what the shipped
    benchmark measured of the same backends."""
    keys = list(dict.fromkeys(key for each in asked for key in each.latencies_ms))
    if not keys:
        return sentence(TITLE, "Ask something: the time of each backend is drawn here, question by question.")
    lines = [_line(key, asked, keys) for key in keys]
    recorded = [_recorded(key, shipped) for key in keys]
    across = Axis.level(max(LEAST_TOKENS, *(each.tokens for each in asked)))
    up = Axis.up(
        [ms for each in asked for ms in each.latencies_ms.values()]
        + [ms for line in recorded for ms in _up_to(across.high, line)]
    )
    said = f"pale: measured on {plain(shipped.machine.processor)}" if shipped and any(recorded) else ""
    figure = chart(TITLE, said, lines, across, up, " ms")
    for line, behind in zip(lines, recorded, strict=True):
        _draw_behind(figure, line.backend, behind)
    for key, line, place in zip(keys, lines, coinciding(figure, lines, up), strict=True):
        _draw_line(figure, line, place)
        _draw_dots(figure, line, place, [each for each in asked if key in each.latencies_ms], key)
    figure.update_xaxes(title=axis_title("tokens"))
    return figure


def _line(key: Key, asked: Sequence[Asked], keys: Sequence[Key]) -> Line:
    """Through the median at each length that was asked."""
    family, backend, device = key
    at: dict[int, list[float]] = {}
    for each in asked:
        if key in each.latencies_ms:
            at.setdefault(each.tokens, []).append(each.latencies_ms[key])
    lengths = sorted(at)
    medians = tuple(statistics.median(at[tokens]) for tokens in lengths)
    kinds = list(dict.fromkeys((other, where) for other, _, where in keys))
    title = title_of(backend, device) + ("" if family == "minilm" else f" ({family})")
    symbol = SYMBOLS[kinds.index((family, device)) % len(SYMBOLS)]
    return Line(title, backend, tuple(map(float, lengths)), medians, symbol)


def _recorded(key: Key, shipped: Benchmark | None) -> list[tuple[int, float]]:
    """Lengths, and what the shipped benchmark measured of the backend at batches of one, if it did."""
    family, backend, device = key
    return sorted(
        (each.tokens, each.p50_ms)
        for each in (shipped.rows if shipped else ())
        if (each.backend, each.device) == (f"{family}/{backend}", device)
        and each.tokens is not None and each.order == EQUAL and each.batch == 1
    )  # fmt: skip


def _up_to(most: float, line: Sequence[tuple[int, float]]) -> list[float]:
    """What a line goes through up to so many tokens, its place there included where it goes on."""
    inside = [ms for tokens, ms in line if tokens <= most]
    if not inside or len(inside) == len(line):
        return inside
    return [*inside, float(np.interp(most, [tokens for tokens, _ in line], [ms for _, ms in line]))]


def _draw_behind(figure: go.Figure, backend: str, recorded: Sequence[tuple[int, float]]) -> None:
    if recorded:
        figure.add_scatter(
            mode="lines", x=[tokens for tokens, _ in recorded], y=[ms for _, ms in recorded], showlegend=False,
            line={"color": colour(backend), "width": BEHIND_PX}, opacity=BEHIND_OPACITY, hoverinfo="skip",
        )  # fmt: skip


def _draw_line(figure: go.Figure, line: Line, place: tuple[int, int]) -> None:
    figure.add_scatter(
        mode="lines", x=line.x, y=line.y, line={"color": colour(line.backend), "dash": stripes(*place), "width": 1.5},
        showlegend=False, hoverinfo="skip", cliponaxis=False,
    )  # fmt: skip


def _draw_dots(figure: go.Figure, line: Line, place: tuple[int, int], asked: Sequence[Asked], key: Key) -> None:
    figure.add_scatter(
        name=plain(line.name), mode="markers", x=[each.tokens for each in asked],
        y=[each.latencies_ms[key] for each in asked],
        customdata=[each.question for each in asked], cliponaxis=False,
        marker={"color": colour(line.backend), "symbol": line.symbol, "size": DOT_PX + ring(*place), "opacity": 1},
        hovertemplate=f"%{{y:.2f}} ms at %{{x}} tokens<br>%{{customdata}}<extra>{plain(line.name)}</extra>",
    )  # fmt: skip
