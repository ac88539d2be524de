"""Plotly figures of a benchmark's records."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from qa_backends.measure.benchmark.contestants import ARRIVAL, EQUAL, SORTED
from qa_backends.measure.benchmark.plan import MIXED_BATCH, REFERENCES, nearest_length
from qa_backends.web.shared.charts import layout
from qa_backends.web.shared.palette import PART_OPACITY, colour, faint, title_of
from qa_backends.web.shared.wording import milliseconds, size, step_facts, step_ratios

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import plotly.graph_objects as go

    from qa_backends.measure.results.records import BenchmarkRecord as Record

LADDER_STEP_PX, LADDER_TEXT_PX = 92, 12
"""Height of a step, and how far above the middle of its bar its two or three lines of text end."""
EMPTY_PX = 110
PART_NAMES = {"tokenise": "tokenise", "wait": "wait", "forward": "model", "decode": "decode"}


def latency(records: Sequence[Record], *, log: bool) -> go.Figure:
    """p50 against length with a band to p90, one line a backend; faintly below, what the matrix products alone take."""
    import plotly.graph_objects as go

    figure = go.Figure()
    smallest = min((record.batch for record in records if record.order == EQUAL), default=1)
    shown = [record for record in records if record.order == EQUAL and record.batch == smallest]
    for name, device, line in _lines(shown, "tokens"):
        lengths, ink = [record.tokens for record in line], colour(name)
        label, dash = title_of(name, device), _dash(device)
        band = [record for record in line if record.p90_ms]
        if len(band) > 1:
            edge = [record.p90_ms for record in band] + [record.p50_ms for record in reversed(band)]
            there_and_back = [record.tokens for record in band] + [record.tokens for record in reversed(band)]
            figure.add_scatter(
                x=there_and_back, y=edge, fill="toself", fillcolor=faint(name), line={"width": 0}, mode="lines",
                hoverinfo="skip", showlegend=False, legendgroup=label,
            )  # fmt: skip
        figure.add_scatter(
            name=label, legendgroup=label, mode="lines+markers", x=lengths, y=[record.p50_ms for record in line],
            line={"color": ink, "dash": dash},
            customdata=[f"{record.runs} runs{', unstable' if record.unstable else ''}" for record in line],
            hovertemplate=label + ", %{x} tokens: %{y:.2f} ms, %{customdata}<extra></extra>",
        )  # fmt: skip
        floor = [record for record in line if record.floor_ms]
        if floor:
            figure.add_scatter(
                x=[record.tokens for record in floor], y=[record.floor_ms for record in floor], mode="lines",
                opacity=0.45, line={"color": ink, "dash": "dot", "width": 1}, showlegend=False, legendgroup=label,
                hovertemplate=label + ", compute floor at %{x} tokens: %{y:.2f} ms<extra></extra>",
            )  # fmt: skip
    batch = "" if smallest == 1 else f" of batches of {smallest}"
    _finish(
        figure, f"Latency{batch} by length", "tokens", subtitle="p50, the band up to p90; dotted: the compute floor"
    )
    figure.update_yaxes(type="log" if log else "linear", rangemode="normal" if log else "tozero", ticksuffix=" ms")
    figure.update_xaxes(tickvals=_lengths(records))
    return figure


def per_question(records: Sequence[Record]) -> go.Figure:
    """Milliseconds a question against batch size."""
    return _against_batch(records, "Milliseconds a question", " ms", lambda record: record.p50_ms / record.questions)


def throughput(records: Sequence[Record]) -> go.Figure:
    """Questions a second against batch size."""
    return _against_batch(records, "Questions a second", "", lambda record: record.questions_per_second)


def _against_batch(records: Sequence[Record], title: str, unit: str, value: Callable[[Record], float]) -> go.Figure:
    import plotly.graph_objects as go

    figure = go.Figure()
    sized = [record for record in records if record.order == EQUAL]
    batches = {tokens: {record.batch for record in sized if record.tokens == tokens} for tokens in _lengths(sized)}
    most = max((len(each) for each in batches.values()), default=0)
    at = nearest_length(tokens for tokens, found in batches.items() if len(found) == most)
    for name, device, line in _lines([record for record in sized if record.tokens == at], "batch"):
        label = title_of(name, device)
        figure.add_scatter(
            name=label, mode="lines+markers", x=[record.batch for record in line], y=[value(record) for record in line],
            line={"color": colour(name), "dash": _dash(device)},
            hovertemplate=label + ", batch %{x}: %{y:.2f}" + unit + "<extra></extra>",
        )  # fmt: skip
    _finish(figure, f"{title}, at {at} tokens", "questions in a batch")
    figure.update_yaxes(rangemode="tozero", ticksuffix=unit)
    figure.update_xaxes(type="log", tickvals=sorted({record.batch for record in sized}))
    return figure


def ladder(records: Sequence[Record], at: int) -> go.Figure:
    """One bar a step of optimisation: latency, size and F1, against the baseline and against the step before."""
    import plotly.graph_objects as go

    figure = go.Figure()
    steps = [record for record in _single(records, at) if record.name not in REFERENCES]
    figure.add_bar(
        orientation="h",
        y=[_label(record) for record in steps],
        x=[record.p50_ms for record in steps],
        marker={"color": [colour(record.name) for record in steps]},
        hovertemplate="%{y}: %{x:.2f} ms<extra></extra>",
    )
    for record in steps:
        text = f"<b>{_label(record)}</b> {step_facts(record)}<br>{step_ratios(record)}"
        place = {
            "x": 0,
            "xanchor": "left",
            "yanchor": "bottom",
            "yshift": LADDER_TEXT_PX,
            "align": "left",
            "showarrow": False,
        }
        figure.add_annotation(text=text, y=_label(record), font={"size": 11}, **place)
    _finish(figure, f"The ladder of optimisations, at {at} tokens", "")
    figure.update_layout(showlegend=False, bargap=0.72, height=max(340, LADDER_STEP_PX * len(steps) + 100))
    figure.update_xaxes(ticksuffix=" ms", rangemode="tozero")
    figure.update_yaxes(autorange="reversed", showticklabels=False)
    return figure


def quality(records: Sequence[Record], at: int) -> go.Figure:
    """F1 against latency, one dot a backend: up and to the left is better."""
    import plotly.graph_objects as go

    figure = go.Figure()
    measured = [(record, record.quality) for record in _single(records, at) if record.quality]
    for record, found in measured:
        figure.add_scatter(
            name=_label(record), mode="markers", x=[record.p50_ms], y=[found.f1],
            marker={"color": colour(record.name), "size": 13},
            error_y={
                "type": "data", "symmetric": False, "thickness": 1, "color": colour(record.name),
                "array": [found.f1_interval.high - found.f1],
                "arrayminus": [found.f1 - found.f1_interval.low],
            },
            hovertemplate=f"{_label(record)}: F1 {found.f1:.2f}, {record.p50_ms:.2f} ms, {size(record)}<extra></extra>",
        )  # fmt: skip
    _finish(figure, f"F1 on SQuAD v2.0 dev against latency at {at} tokens", "ms", empty=not measured)
    figure.update_xaxes(rangemode="tozero", ticksuffix=" ms")
    return figure


def parts(records: Sequence[Record], at: int) -> go.Figure:
    """Where a question's time goes, in percent: how far the model is still the bottleneck."""
    import plotly.graph_objects as go

    figure = go.Figure()
    split = [record for record in _single(records, at) if record.name not in REFERENCES]
    for part, shown in PART_NAMES.items():
        times = [_part_ms(record, part) for record in split]
        figure.add_bar(
            name=shown,
            orientation="h",
            y=[_label(record) for record in split],
            x=[100 * time / record.p50_ms for time, record in zip(times, split, strict=True)],
            marker={"color": [colour(record.name) for record in split], "opacity": PART_OPACITY[shown]},
            customdata=[milliseconds(time) for time in times],
            hovertemplate="%{y}: " + shown + " %{customdata}, %{x:.1f} %<extra></extra>",
        )
    subtitle = "from left to right: tokenise, wait, model, decode"
    _finish(figure, f"Where the time goes at {at} tokens", "", subtitle=subtitle)
    figure.update_layout(barmode="stack", showlegend=False, bargap=0.4)
    figure.update_xaxes(ticksuffix=" %", range=[0, 101])
    figure.update_yaxes(autorange="reversed", automargin=True)
    return figure


def mixed(records: Sequence[Record]) -> go.Figure:
    """Questions a second on mixed lengths: batches as they come, and sorted by length; what padding costs."""
    import plotly.graph_objects as go

    figure = go.Figure()
    measured = [record for record in records if record.tokens is None]
    for order, shown, opacity in ((ARRIVAL, "as they come", 0.45), (SORTED, "sorted by length", 1.0)):
        own = [record for record in measured if record.order == order]
        figure.add_bar(
            name=shown,
            x=[_label(record) for record in own],
            y=[record.questions_per_second for record in own],
            marker={"color": [colour(record.name) for record in own], "opacity": opacity},
            text=[f"{record.padding or 0:.0%} padding" for record in own],
            textposition="none",
            hovertemplate="%{x}, " + shown + ": %{y:.1f} questions a second, %{text}<extra></extra>",
        )
    padding = {ARRIVAL: "", SORTED: ""} | {record.order: f"{record.padding or 0:.0%}" for record in measured}
    shares = f"pale: as they come, {padding[ARRIVAL]} padding; full: sorted by length, {padding[SORTED]}"
    title = f"Questions a second, mixed lengths, batches of {MIXED_BATCH}"
    _finish(figure, title, "", subtitle=shares if measured else "", empty=not measured)
    figure.update_layout(barmode="group", showlegend=False)
    figure.update_yaxes(rangemode="tozero")
    return figure


def _part_ms(record: Record, part: str) -> float:
    """Median of a part over the runs. Nobody waits within a benchmark: each point is a turn of its own."""
    return 0.0 if part == "wait" else statistics.median(getattr(record.samples_ms, part))


def _single(records: Sequence[Record], at: int) -> list[Record]:
    """Each backend's record at the length, with the smallest batch measured there."""
    here = [record for record in records if record.tokens == at]
    smallest = min((record.batch for record in here), default=1)
    return [record for record in here if record.batch == smallest]


def _lines(records: Sequence[Record], along: str) -> Iterator[tuple[str, str, list[Record]]]:
    """Name, device and records of each backend on each device, in the order of the field ``along``."""
    for name, device in dict.fromkeys((record.name, record.device) for record in records):
        line = [record for record in records if (record.name, record.device) == (name, device)]
        yield name, device, sorted(line, key=lambda record: int(getattr(record, along)))


def _lengths(records: Sequence[Record]) -> list[int]:
    return sorted({record.tokens for record in records if record.tokens is not None})


def _label(record: Record) -> str:
    return title_of(record.name, record.device)


def _dash(device: str) -> str:
    return "solid" if device == "cpu" else "dash"


def _finish(figure: go.Figure, title: str, x: str, *, subtitle: str = "", empty: bool | None = None) -> None:
    """Layout that all charts share; a chart without data says so, and takes little room."""
    figure.update_layout(**layout(title, subtitle))
    figure.update_layout(legend={"orientation": "h", "y": -0.22}, margin={"b": 64, "t": 56}, height=340)
    figure.update_xaxes(title={"text": x, "font": {"size": 11}, "standoff": 4})
    if empty if empty is not None else not figure.data or all(not len(each.y or ()) for each in figure.data):
        figure.add_annotation(
            text="Not measured in this run.", showarrow=False, xref="paper", yref="paper", x=0.5, y=0.5
        )
        figure.update_layout(height=EMPTY_PX, margin={"b": 8})
        figure.update_xaxes(visible=False)
        figure.update_yaxes(visible=False)
