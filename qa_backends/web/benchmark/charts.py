"""Plotly figures of a benchmark's records. One of which nothing was measured is ``None``, not an empty frame."""

from __future__ import annotations

import statistics
from functools import partial
from typing import TYPE_CHECKING

from qa_backends.asking.comparison import quality_beside
from qa_backends.catalog import BASELINE
from qa_backends.measure.benchmark.contestants import ARRIVAL, AS_ASKED, EQUAL, ORDERS, SINGLY, SORTED
from qa_backends.measure.benchmark.plan import MIXED_BATCH, REFERENCES, nearest_length
from qa_backends.measure.quality.datasets import title_of_file
from qa_backends.web.benchmark.bars import Bars, Part
from qa_backends.web.benchmark.bars import chart as bar_chart
from qa_backends.web.benchmark.dots import Dot
from qa_backends.web.benchmark.dots import chart as dot_chart
from qa_backends.web.benchmark.shown import MOST
from qa_backends.web.shared.charts import axis_title, plain
from qa_backends.web.shared.lines import Axis, Line, add, coinciding
from qa_backends.web.shared.lines import chart as line_chart
from qa_backends.web.shared.palette import PART_OPACITY, colour, faint, title_of
from qa_backends.web.shared.wording import milliseconds, percent, size

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import plotly.graph_objects as go

    from qa_backends.asking.comparison import KnownQuality
    from qa_backends.measure.benchmark.plan import BenchmarkPlan
    from qa_backends.measure.results.records import BenchmarkRecord as Record

MOST_STRETCHED = 2.0
"""Lines and dots may become so many times as high as they are, to be as high as the chart beside them."""
PART_NAMES = {"tokenise": "tokenise", "forward": "model", "decode": "decode"}
"""Parts of an answer in a benchmark, where nobody waits, as they are shown."""
STRENGTHS = {ARRIVAL: ("pale", 0.4), SORTED: ("darker", 0.7), AS_ASKED: ("full", 1.0), SINGLY: ("full", 1.0)}
"""How bars of mixed lengths are told apart, by what was done with them."""
SYMBOLS = {"cpu": "circle", "cuda": "diamond"}


def drawn(records: Sequence[Record], at: int, *, log: bool) -> list[go.Figure | None]:
    """All charts, in their order on the page. Two that stand side by side are as high as each other,
    as far as they can be."""
    draw: list[Callable[[float], go.Figure | None]] = [
        partial(_higher, latency(records, log=log)),
        partial(ladder, records, at),
        partial(_higher, quality(records, at)),
        partial(parts, records, at),
        partial(_higher, per_question(records)),
        partial(_higher, throughput(records)),
        partial(mixed, records),
    ]
    figures = [each(0) for each in draw]
    shown = [(number, figure.layout.height) for number, figure in enumerate(figures) if figure is not None]
    for pair in zip(shown[::2], shown[1::2], strict=False):
        for number, _ in pair:
            figures[number] = draw[number](max(height for _, height in pair))
    return figures


def _higher(figure: go.Figure | None, height: float) -> go.Figure | None:
    """The figure as high as that, as far as it keeps its shape."""
    if figure is not None and figure.layout.height < height:
        figure.update_layout(height=min(height, MOST_STRETCHED * figure.layout.height))
    return figure


def to_fill(plan: BenchmarkPlan, records: Sequence[Record]) -> list[str]:
    """What to measure for the charts that are left out."""
    wanted = [
        (len(set(plan.batches)) < 2, "two batch sizes or more show what answering many questions at once wins"),
        (all(each.tokens for each in records), "batches of mixed lengths show what sorting them by length wins"),
        (not any(each.quality for each in records),
         "F1 against latency is drawn once the results hold an F1 of these backends, see assets/results/README.md"),
    ]  # fmt: skip
    return [sentence for missing, sentence in wanted if missing]


def latency(records: Sequence[Record], *, log: bool) -> go.Figure | None:
    """p50 against length with a band to p90, one line a backend; dotted below, what the matrix products alone take."""
    equal = [record for record in records if record.order == EQUAL]
    smallest = min((record.batch for record in equal), default=1)
    found = _lines([record for record in equal if record.batch == smallest], "tokens", lambda record: record.p50_ms)
    if not found:
        return None
    shown = [record for _, own in found for record in own]
    floors, shaded = _floors(found), len(found) <= MOST  # of more, bands cannot be told apart
    values = [record.p50_ms for record in shown] + [ms for _, _, floor in floors for ms in floor]
    values += [record.p90_ms for record in shown if shaded and record.p90_ms]
    up, lines = Axis.up(values, log=log), [line for line, _ in found]
    figure = line_chart(
        "Latency by length" if smallest == 1 else f"Latency by length, batches of {smallest}",
        f"p50{', shaded up to p90' if shaded else ''}; dotted: compute floor",
        lines, Axis.across(record.tokens or 0 for record in shown), up, " ms",
    )  # fmt: skip
    for _, own in found if shaded else ():
        _band(figure, own)
    for names, lengths, floor in floors:
        figure.add_scatter(
            x=lengths, y=floor, mode="lines", line={"color": colour(names[0]), "dash": "1px,4px", "width": 1.5},
            hovertemplate=f"{plain(', '.join(map(title_of, names)), 200)}<br>compute floor at %{{x}} tokens: "
            "%{y:.2f} ms<extra></extra>",
        )  # fmt: skip
    for (line, own), place in zip(found, coinciding(figure, lines, up), strict=True):
        add(figure, line, place, said=[_runs(record) for record in own],
            hover="%{x} tokens: %{y:.2f} ms, %{customdata}")  # fmt: skip
    figure.update_xaxes(title=axis_title("tokens"))
    return figure


def _band(figure: go.Figure, records: Sequence[Record]) -> None:
    there = [record for record in records if record.p90_ms]
    if len(there) > 1:
        figure.add_scatter(
            x=[record.tokens for record in [*there, *reversed(there)]],
            y=[record.p90_ms for record in there] + [record.p50_ms for record in reversed(there)],
            fill="toself", fillcolor=faint(there[0].name), line={"width": 0}, mode="lines", hoverinfo="skip",
            showlegend=False,
        )  # fmt: skip


def _floors(found: Sequence[tuple[Line, Sequence[Record]]]) -> list[tuple[list[str], list[int], list[float]]]:
    """Names, lengths and compute floors, in milliseconds; backends of the same floor share one."""
    shared: dict[tuple[tuple[int, float], ...], list[str]] = {}
    for line, own in found:
        floor = tuple((record.tokens or 0, record.floor_ms) for record in own if record.floor_ms)
        if floor:
            shared.setdefault(floor, []).append(line.backend)
    return [(names, [tokens for tokens, _ in floor], [ms for _, ms in floor]) for floor, names in shared.items()]


def per_question(records: Sequence[Record]) -> go.Figure | None:
    """Milliseconds a question against batch size."""
    return _against_batch(records, "Milliseconds a question", " ms", lambda record: record.p50_ms / record.questions)


def throughput(records: Sequence[Record]) -> go.Figure | None:
    """Questions a second against batch size."""
    return _against_batch(records, "Questions a second", "", lambda record: record.questions_per_second)


def _against_batch(
    records: Sequence[Record], title: str, unit: str, value: Callable[[Record], float]
) -> go.Figure | None:
    """At the length where most batch sizes were measured; ``None`` where there is but one to show."""
    sized = [record for record in records if record.order == EQUAL and record.tokens]
    batches = {record.tokens: {each.batch for each in sized if each.tokens == record.tokens} for record in sized}
    most = max((len(each) for each in batches.values()), default=0)
    if most < 2:
        return None
    at = nearest_length(tokens for tokens, found in batches.items() if tokens and len(found) == most)
    found = _lines([record for record in sized if record.tokens == at], "batch", value)
    lines = [line for line, _ in found]
    up = Axis.up([each for line in lines for each in line.y])
    across = Axis.across((place for line in lines for place in line.x), log=True)
    figure = line_chart(f"{title}, at {at} tokens", "", lines, across, up, unit)
    for (line, own), place in zip(found, coinciding(figure, lines, up), strict=True):
        add(figure, line, place, said=[_runs(record) for record in own],
            hover=f"batches of %{{x}}: %{{y:.2f}}{unit}, %{{customdata}}")  # fmt: skip
    figure.update_xaxes(title=axis_title("questions in a batch"))
    return figure


def ladder(records: Sequence[Record], at: int, height: float = 0) -> go.Figure | None:
    """One bar a step of optimisation: latency and size, against the baseline and against the step before, and F1 on
    each data set."""
    steps = [record for record in _single(records, at) if record.name not in REFERENCES]
    if not steps:
        return None
    quality = quality_beside(steps)
    rows = [
        Bars(_title(record), record.name,
             (f"{milliseconds(record.p50_ms)} · {size(record)}", *_ratios(record, above), *map(_f1, known)),
             ((Part(record.p50_ms, 1.0, milliseconds(record.p50_ms)),),))
        for above, record, known in zip([None, *steps], steps, quality, strict=False)
    ]  # fmt: skip
    most = 1.02 * max(record.p50_ms for record in steps)
    said = "F1 with its 95 % interval, and the difference to the baseline's" if any(quality) else ""
    return bar_chart(f"Step by step, at {at} tokens", said, rows, most=most, unit=" ms", height=height)


def _f1(known: KnownQuality) -> str:
    """On one data set, a line that fits a phone of 360 pixels; that it is F1 stands below the title."""
    return f"{plain(known.title)}: {known.f1_interval.around(known.f1, known.f1_difference)}"


def _ratios(record: Record, above: Record | None) -> list[str]:
    """Against the baseline and, where that is another, against the step before: by its name, unless it stands above."""
    whole, last = record.against_baseline, record.against_previous
    said = [f"{whole.ratio} to the baseline"] if whole else []
    if last and (whole is None or last.backend != whole.backend):
        there = above is not None and above.backend == last.backend
        step = "the step before" if there else title_of(last.backend.rpartition("/")[2])
        said.append(f"{last.ratio} to {step}")
    return said or (["what the others are measured against"] if record.name == BASELINE else [])


def parts(records: Sequence[Record], at: int, height: float = 0) -> go.Figure | None:
    """Where a question's time goes, in percent: how far the model is still the bottleneck."""
    split = [record for record in _single(records, at) if record.name not in REFERENCES]
    if not split:
        return None
    rows = []
    for record in split:
        times = {shown: statistics.median(getattr(record.samples_ms, part)) for part, shown in PART_NAMES.items()}
        shares = {shown: 100 * time / record.p50_ms for shown, time in times.items()}
        bar = tuple(
            Part(shares[shown], PART_OPACITY[shown], f"{shown} {milliseconds(time)}, {shares[shown]:.1f} %")
            for shown, time in times.items()
        )
        said = " · ".join(f"{shown} {share:.0f} %" for shown, share in shares.items())
        rows.append(Bars(_title(record), record.name, (said,), (bar,)))
    return bar_chart(f"Where the time goes, at {at} tokens", "", rows, most=100, height=height)


def mixed(records: Sequence[Record], height: float = 0) -> go.Figure | None:
    """Questions a second on mixed lengths: in batches as they come, sorted by length, and as the app makes them; what
    padding costs. References sort nothing, and are asked one by one instead."""
    measured = [record for record in records if record.tokens is None]
    if not measured:
        return None
    rows = []
    for name, device in _backends(measured):
        own = {record.order: record for record in measured if (record.name, record.device) == (name, device)}
        there = [(own[order], shown, STRENGTHS[order][1]) for order, shown in ORDERS.items() if order in own]
        said = [f"{record.questions_per_second:.0f} {shown}" for record, shown, _ in there]
        bars = tuple(
            (Part(record.questions_per_second, strength,
                  f"{record.questions_per_second:.1f} questions a second {shown}{_padding(record)}"),)
            for record, shown, strength in there
        )  # fmt: skip
        lines = tuple(", ".join(said[first : first + 2]) for first in range(0, len(said), 2))  # two fit a phone
        rows.append(Bars(title_of(name, device), name, lines, bars))
    most = 1.02 * max(record.questions_per_second for record in measured)
    return bar_chart("Questions a second, mixed lengths", _ways(measured), rows, most=most, height=height)


def _ways(measured: Sequence[Record]) -> str:
    """What each strength of a bar stands for, of those that are drawn, with the padding where it is one for all."""
    padded = {record.order: _padding(record) for record in measured if record.padding is not None}
    said = {
        ARRIVAL: f"batches of {MIXED_BATCH} {ORDERS[ARRIVAL]}{padded.get(ARRIVAL, '')}",
        SORTED: f"{ORDERS[SORTED]}{padded.get(SORTED, '')}",
        AS_ASKED: ORDERS[AS_ASKED],
        SINGLY: f"{ORDERS[SINGLY]} where nothing is sorted",
    }
    ways: dict[str, list[str]] = {}
    for order, words in said.items():
        if any(record.order == order for record in measured):
            ways.setdefault(STRENGTHS[order][0], []).append(words)
    return "; ".join(f"{strength}: {', or '.join(words)}" for strength, words in ways.items())


def _padding(record: Record) -> str:
    return "" if record.padding is None else f", {percent(record.padding)} padding"


def quality(records: Sequence[Record], at: int) -> go.Figure | None:
    """F1 against latency, one dot a backend: up and to the left is better."""
    known = [record for record in _single(records, at) if record.quality]
    if not known:
        return None
    (file, n), *_ = dict.fromkeys((record.quality.data, record.quality.n) for record in known if record.quality)
    dots = [Dot(_title(record), record.name, record.p50_ms, record.quality.f1, record.quality.f1_interval, size(record))
            for record in known if record.quality]  # fmt: skip
    data = plain(title_of_file(file))
    said = f"{n:,} questions of {data}, 95 % intervals; up and to the left is better; line: the frontier"
    return dot_chart(f"F1 against latency, at {at} tokens", said, dots)


def _single(records: Sequence[Record], at: int) -> list[Record]:
    """Each backend's record at the length, with the smallest batch measured there."""
    here = [record for record in records if record.tokens == at]
    smallest = min((record.batch for record in here), default=1)
    return [record for record in here if record.batch == smallest]


def _lines(records: Sequence[Record], along: str, value: Callable[[Record], float]) -> list[tuple[Line, list[Record]]]:
    """Each backend on each device as a line, with its records in the order of the field ``along``."""
    found = []
    for name, device in _backends(records):
        own = [record for record in records if (record.name, record.device) == (name, device)]
        own.sort(key=lambda record: int(getattr(record, along)))
        places = tuple(float(getattr(record, along)) for record in own)
        values = tuple(value(record) for record in own)
        found.append((Line(title_of(name, device), name, places, values, SYMBOLS.get(device, "square")), own))
    return found


def _backends(records: Sequence[Record]) -> dict[tuple[str, str], None]:
    """Names and devices, in the order they were measured."""
    return dict.fromkeys((record.name, record.device) for record in records)


def _title(record: Record) -> str:
    return title_of(record.name, record.device)


def _runs(record: Record) -> str:
    return f"{record.runs} runs{', unstable' if record.unstable else ''}"
