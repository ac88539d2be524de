"""Plotly figures of a benchmark's rows."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from qa_backends.measure.plan import MIXED_BATCH, PIPELINE
from qa_backends.web.charts import layout
from qa_backends.web.palette import PART_OPACITY, colour, faint, title_of
from qa_backends.web.wording import milliseconds, size, step_facts, step_ratios

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import plotly.graph_objects as go

    Row = dict[str, Any]

LADDER_STEP_PX, LADDER_TEXT_PX = 92, 12
"""Height of a step, and how far above the middle of its bar its two or three lines of text end."""
EMPTY_PX = 110
PART_NAMES = {"tokenise": "tokenise", "wait": "wait", "forward": "model", "decode": "decode"}


def latency(rows: Sequence[Row], *, log: bool) -> go.Figure:
    """p50 against length with a band to p90, one line a backend; faintly below, what the matrix products alone take."""
    import plotly.graph_objects as go

    figure = go.Figure()
    smallest = min((row["batch"] for row in rows if row["order"] == "equal"), default=1)
    for name, device, line in _lines(rows, by="tokens", batch=smallest):
        lengths, ink = [row["tokens"] for row in line], colour(name)
        label, dash = title_of(name, device), _dash(device)
        band = [row for row in line if row["p90_ms"]]
        if len(band) > 1:
            edge = [row["p90_ms"] for row in band] + [row["p50_ms"] for row in reversed(band)]
            there_and_back = [row["tokens"] for row in band] + [row["tokens"] for row in reversed(band)]
            figure.add_scatter(
                x=there_and_back, y=edge, fill="toself", fillcolor=faint(name), line={"width": 0}, mode="lines",
                hoverinfo="skip", showlegend=False, legendgroup=label,
            )  # fmt: skip
        figure.add_scatter(
            name=label, legendgroup=label, mode="lines+markers", x=lengths, y=[row["p50_ms"] for row in line],
            line={"color": ink, "dash": dash},
            customdata=[f"{row['runs']} runs{', unstable' if row['unstable'] else ''}" for row in line],
            hovertemplate=label + ", %{x} tokens: %{y:.2f} ms, %{customdata}<extra></extra>",
        )  # fmt: skip
        floor = [row for row in line if row["floor_ms"]]
        if floor:
            figure.add_scatter(
                x=[row["tokens"] for row in floor], y=[row["floor_ms"] for row in floor], mode="lines", opacity=0.45,
                line={"color": ink, "dash": "dot", "width": 1}, showlegend=False, legendgroup=label,
                hovertemplate=label + ", compute floor at %{x} tokens: %{y:.2f} ms<extra></extra>",
            )  # fmt: skip
    batch = "" if smallest == 1 else f" of batches of {smallest}"
    _finish(
        figure, f"Latency{batch} by length", "tokens", subtitle="p50, the band up to p90; dotted: the compute floor"
    )
    figure.update_yaxes(type="log" if log else "linear", rangemode="normal" if log else "tozero", ticksuffix=" ms")
    figure.update_xaxes(tickvals=sorted({row["tokens"] for row in rows if row["tokens"] is not None}))
    return figure


def per_question(rows: Sequence[Row]) -> go.Figure:
    """Milliseconds a question against batch size."""
    return _against_batch(rows, "Milliseconds a question", " ms", lambda row: row["p50_ms"] / row["questions"])


def throughput(rows: Sequence[Row]) -> go.Figure:
    """Questions a second against batch size."""
    return _against_batch(rows, "Questions a second", "", lambda row: row["questions_per_second"])


def _against_batch(rows: Sequence[Row], title: str, unit: str, value: Any) -> go.Figure:
    import plotly.graph_objects as go

    figure = go.Figure()
    sized = [row for row in rows if row["order"] == "equal"]
    batches = {
        row["tokens"]: len({each["batch"] for each in sized if each["tokens"] == row["tokens"]}) for row in sized
    }
    at = max(batches, key=lambda tokens: (batches[tokens], -abs(tokens - 128)), default=128)
    for name, device, line in _lines(rows, by="batch", tokens=at):
        label = title_of(name, device)
        figure.add_scatter(
            name=label, mode="lines+markers", x=[row["batch"] for row in line], y=[value(row) for row in line],
            line={"color": colour(name), "dash": _dash(device)},
            hovertemplate=label + ", batch %{x}: %{y:.2f}" + unit + "<extra></extra>",
        )  # fmt: skip
    _finish(figure, f"{title}, at {at} tokens", "questions in a batch")
    figure.update_yaxes(rangemode="tozero", ticksuffix=unit)
    figure.update_xaxes(type="log", tickvals=sorted({row["batch"] for row in sized}))
    return figure


def ladder(rows: Sequence[Row], at: int) -> go.Figure:
    """One bar a step of optimisation: latency, size and F1, against the baseline and against the step before."""
    import plotly.graph_objects as go

    figure = go.Figure()
    steps = [row for row in _single(rows, at) if _name(row) != PIPELINE]
    figure.add_bar(
        orientation="h",
        y=[_label(row) for row in steps],
        x=[row["p50_ms"] for row in steps],
        marker={"color": [colour(_name(row)) for row in steps]},
        hovertemplate="%{y}: %{x:.2f} ms<extra></extra>",
    )
    for row in steps:
        text = f"<b>{_label(row)}</b> {step_facts(row)}<br>{step_ratios(row)}"
        place = {
            "x": 0,
            "xanchor": "left",
            "yanchor": "bottom",
            "yshift": LADDER_TEXT_PX,
            "align": "left",
            "showarrow": False,
        }
        figure.add_annotation(text=text, y=_label(row), font={"size": 11}, **place)
    _finish(figure, f"The ladder of optimisations, at {at} tokens", "")
    figure.update_layout(showlegend=False, bargap=0.72, height=max(340, LADDER_STEP_PX * len(steps) + 100))
    figure.update_xaxes(ticksuffix=" ms", rangemode="tozero")
    figure.update_yaxes(autorange="reversed", showticklabels=False)
    return figure


def quality(rows: Sequence[Row], at: int) -> go.Figure:
    """F1 against latency, one dot a backend: up and to the left is better."""
    import plotly.graph_objects as go

    figure = go.Figure()
    measured = [row for row in _single(rows, at) if row["quality"]]
    for row in measured:
        found = row["quality"]
        figure.add_scatter(
            name=_label(row), mode="markers", x=[row["p50_ms"]], y=[found["f1"]],
            marker={"color": colour(_name(row)), "size": 13},
            error_y={
                "type": "data", "symmetric": False, "thickness": 1, "color": colour(_name(row)),
                "array": [found["f1_interval"]["high"] - found["f1"]],
                "arrayminus": [found["f1"] - found["f1_interval"]["low"]],
            },
            hovertemplate=f"{_label(row)}: F1 {found['f1']:.2f}, {row['p50_ms']:.2f} ms, {size(row)}<extra></extra>",
        )  # fmt: skip
    _finish(figure, f"F1 on SQuAD v2.0 dev against latency at {at} tokens", "ms", empty=not measured)
    figure.update_xaxes(rangemode="tozero", ticksuffix=" ms")
    return figure


def parts(rows: Sequence[Row], at: int) -> go.Figure:
    """Where a question's time goes, in percent: how far the model is still the bottleneck."""
    import plotly.graph_objects as go

    figure = go.Figure()
    split = [row for row in _single(rows, at) if _name(row) != PIPELINE]
    for part, shown in PART_NAMES.items():
        times = [_part_ms(row, part) for row in split]
        figure.add_bar(
            name=shown,
            orientation="h",
            y=[_label(row) for row in split],
            x=[100 * time / row["p50_ms"] for time, row in zip(times, split, strict=True)],
            marker={"color": [colour(_name(row)) for row in split], "opacity": PART_OPACITY[shown]},
            customdata=[milliseconds(time) for time in times],
            hovertemplate="%{y}: " + shown + " %{customdata}, %{x:.1f} %<extra></extra>",
        )
    subtitle = "from left to right: tokenise, wait, model, decode"
    _finish(figure, f"Where the time goes at {at} tokens", "", subtitle=subtitle)
    figure.update_layout(barmode="stack", showlegend=False, bargap=0.4)
    figure.update_xaxes(ticksuffix=" %", range=[0, 101])
    figure.update_yaxes(autorange="reversed", automargin=True)
    return figure


def mixed(rows: Sequence[Row]) -> go.Figure:
    """Questions a second on mixed lengths: batches as they come, and sorted by length; what padding costs."""
    import plotly.graph_objects as go

    figure = go.Figure()
    measured = [row for row in rows if row["tokens"] is None]
    for order, shown, opacity in (("arrival", "as they come", 0.45), ("sorted", "sorted by length", 1.0)):
        own = [row for row in measured if row["order"] == order]
        figure.add_bar(
            name=shown,
            x=[_label(row) for row in own],
            y=[row["questions_per_second"] for row in own],
            marker={"color": [colour(_name(row)) for row in own], "opacity": opacity},
            text=[f"{row['padding']:.0%} padding" for row in own],
            textposition="none",
            hovertemplate="%{x}, " + shown + ": %{y:.1f} questions a second, %{text}<extra></extra>",
        )
    padding = {"arrival": "", "sorted": ""} | {row["order"]: f"{row['padding']:.0%}" for row in measured}
    shares = f"pale: as they come, {padding['arrival']} padding; full: sorted by length, {padding['sorted']}"
    title = f"Questions a second, mixed lengths, batches of {MIXED_BATCH}"
    _finish(figure, title, "", subtitle=shares if measured else "", empty=not measured)
    figure.update_layout(barmode="group", showlegend=False)
    figure.update_yaxes(rangemode="tozero")
    return figure


def _part_ms(row: Row, part: str) -> float:
    """Median of a part over the runs. Nobody waits within a benchmark: each point is a turn of its own."""
    return 0.0 if part == "wait" else statistics.median(row["samples_ms"][part])


def _single(rows: Sequence[Row], at: int) -> list[Row]:
    """Each backend's row at the length, with the smallest batch measured there."""
    here = [row for row in rows if row["tokens"] == at]
    smallest = min((row["batch"] for row in here), default=1)
    return [row for row in here if row["batch"] == smallest]


def _lines(rows: Sequence[Row], *, by: str, **where: int) -> Iterator[tuple[str, str, list[Row]]]:
    """Name, device and rows of each backend on each device, in the order of ``by``."""
    chosen = [row for row in rows if row["order"] == "equal" and all(row[key] == value for key, value in where.items())]
    for name, device in dict.fromkeys((_name(row), row["device"]) for row in chosen):
        line = [row for row in chosen if (_name(row), row["device"]) == (name, device)]
        yield name, device, sorted(line, key=lambda row: int(row[by]))


def _name(row: Row) -> str:
    return str(row["backend"]).rpartition("/")[2]


def _label(row: Row) -> str:
    return title_of(_name(row), row["device"])


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
