"""The benchmark tab: choose what to measure, watch it grow, stop, keep, compare."""

from __future__ import annotations

import threading
from collections.abc import (  # at run time too: Gradio reads the signatures of what it calls
    Generator,
    Iterator,
    Sequence,
)
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gradio as gr

from qa_backends import catalog
from qa_backends.errors import InputError, QAError
from qa_backends.limits import devices
from qa_backends.measure.benchmark.compare import changes
from qa_backends.measure.benchmark.plan import BATCHES, LENGTHS, SHOWN_AT, BenchmarkPlan, nearest_length
from qa_backends.measure.benchmark.sweep import Sweep, sweep
from qa_backends.measure.results.files import as_csv, as_text, read_benchmark
from qa_backends.measure.results.records import Benchmark, BenchmarkRecord
from qa_backends.measure.results.report import of_earlier_weights
from qa_backends.measure.results.shipped import shipped_benchmark
from qa_backends.web.benchmark import charts, html, shown
from qa_backends.web.benchmark.choices import command_of, plan_of, said_of
from qa_backends.web.benchmark.fastest import Fastest
from qa_backends.web.shared.choices import backend_choices, device_choices, family_choices, offer, preselected
from qa_backends.web.shared.downloads import Downloads
from qa_backends.web.shared.html import problem, room_for
from qa_backends.web.shared.runbar import RunBar
from qa_backends.web.shared.widgets import CODE_BOX, FOLLOWED, HIDDEN, PRIVATE, Changes
from qa_backends.web.shared.worker import Worker

if TYPE_CHECKING:
    from qa_backends.runtime import Runtime

OWN = "Your measurement."
DEFAULTS = BenchmarkPlan(family="")
READY = "Start measures what is chosen. Until then the charts show what ships."
HOW_TO_READ = (
    "Every backend answers the same questions whole: tokenise, model, decode. They take turns, three answers each; "
    "at the end each of the app's is measured alone, to see whether the others beside it disturbed. A batch is the "
    "questions answered at once: lengths are measured at the smallest batch size chosen, batch sizes at the length "
    f"nearest to {SHOWN_AT} tokens. The first answers, at least ten where time allows, warm up and are not counted. A "
    "measurement ends at its runs or its seconds, whichever comes first. p50 is the median: half of the runs took "
    "longer, while one in ten took longer than p90. Lines that lie on each other are striped in the colours of all. "
    "Unstable means that the medians of the last three groups of three runs differ by more than 10 %: something else "
    "ran, or the "
    "processor changed its pace. The compute floor is the model's multiplications and additions over the best "
    "rate seen on this device at that precision: of PyTorch's matrix products or, where an engine was quicker, of "
    "whole answers."
)
MOST_SECONDS_HERE = 60
WHOLE, FLAT = "benchmark.json", "benchmark.csv"


@dataclass(frozen=True, slots=True)
class Shown:
    """What the tab shows: a measurement, and whose it is."""

    benchmark: Benchmark
    whose: str


@dataclass(slots=True)
class _View:
    """How a visitor looks at the charts of their benchmark under way."""

    log: bool
    at: int | None
    names: list[str] = field(default_factory=list)


class BenchmarkTab:
    """Widgets of the tab, and the functions behind them."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._views: dict[str, _View] = {}
        self._downloads = Downloads()
        fastest = Fastest(runtime)
        self._draw()
        self.stops = [self._bar.stops, fastest.stops]
        self._wire()
        fastest.wire(self.family, self._devices)

    def _draw(self) -> None:
        first = shipped()
        self._own = gr.State(None)
        with gr.Row(elem_classes="qa-start-bar"):
            with gr.Column(scale=8, min_width=280):
                self._draw_choices()
            start = gr.Button("Start", variant="primary", elem_id="qa-bench-start", scale=0, min_width=190)
        self._bar = RunBar(start, READY, "qa-bench")
        self._caption = gr.HTML(html.caption(first.benchmark, first.whose) if first else "", elem_id="qa-bench-caption")
        self._draw_charts(first)
        self._draw_details(first)

    def _draw_choices(self) -> None:
        """One line that says what is chosen; unfolded, what there is to choose from."""
        family, there = catalog.default_family(), devices()
        chosen = replace(DEFAULTS, family=family, backends=tuple(preselected(family)), devices=there[:1])
        with gr.Accordion(said_of(chosen), open=False, elem_id="qa-bench-options") as self._options:
            self._backends = gr.CheckboxGroup(
                backend_choices(family), value=list(chosen.backends), label="Backends", elem_id="qa-bench-backends",
                elem_classes="qa-backends",
            )  # fmt: skip
            with gr.Row(elem_classes="qa-even"):
                self._lengths = gr.CheckboxGroup(
                    list(map(str, LENGTHS)), value=list(map(str, DEFAULTS.lengths)), label="Lengths of text, in tokens",
                    elem_id="qa-bench-lengths", min_width=260,
                )  # fmt: skip
                self._batches = gr.CheckboxGroup(
                    list(map(str, BATCHES)), value=list(map(str, DEFAULTS.batches)), min_width=260,
                    label="Batch sizes: questions answered at once", elem_id="qa-bench-batches",
                )  # fmt: skip
            with gr.Row(elem_classes="qa-even"):
                self.family = gr.Radio(
                    family_choices(), value=family, label="Family", min_width=260, elem_id="qa-bench-family",
                    elem_classes="qa-backends",
                )  # fmt: skip
                with gr.Row():
                    self._runs = gr.Number(
                        DEFAULTS.runs,
                        label="Runs of each, about",
                        precision=0,
                        min_width=130,
                        elem_id="qa-bench-runs",
                    )
                    self._seconds = gr.Number(
                        DEFAULTS.seconds, label="Seconds each time, at most", min_width=130, elem_id="qa-bench-seconds"
                    )
            with gr.Row(elem_classes="qa-even"):
                self._mixed = gr.Checkbox(
                    False, label="Mixed lengths too: as they come, sorted, and as the app batches them", min_width=260
                )
                self._reference = gr.Checkbox(False, label="transformers' own pipeline beside them", min_width=260)
            self._devices = gr.CheckboxGroup(
                device_choices(), value=list(chosen.devices), label="Devices", visible=len(there) > 1
            )

    def _draw_charts(self, first: Shown | None) -> None:
        records = first.benchmark.rows if first else ()
        at = start_at(records)
        names = shown.at_first(records, at)
        with gr.Accordion(shown.said(records, names, at), open=False, elem_id="qa-bench-view") as self._view:
            self._names = gr.CheckboxGroup(
                shown.choices(records), value=names, label="Backends in the charts", elem_id="qa-bench-names",
                elem_classes="qa-backends", show_select_all=True,
            )  # fmt: skip
            with gr.Row(elem_classes="qa-view"):
                self._at = gr.Dropdown(length_choices(records), value=at, label="Length shown", min_width=160)
                self._log = gr.Checkbox(False, label="Logarithmic latency", min_width=160)
        drawn = {
            f"qa-bench-chart-{number}": figure
            for number, figure in enumerate(charts.drawn(shown.only(records, names), at, log=False))
        }
        gr.HTML(room_for({name: figure.layout.height for name, figure in drawn.items() if figure}), visible=HIDDEN)
        with gr.Column(elem_classes="qa-charts"):
            self._charts = [
                gr.Plot(figure, show_label=False, elem_id=name, visible=figure is not None)
                for name, figure in drawn.items()
            ]
        self._to_fill = gr.HTML(to_fill(first), elem_id="qa-bench-to-fill")

    def _draw_details(self, first: Shown | None) -> None:
        self._table = gr.HTML(html.table(first.benchmark.rows if first else ()), elem_id="qa-bench-table")
        whole, flat = self._files(first) if first else (None, None)
        with gr.Row():
            self._json = gr.DownloadButton(
                "Download JSON, raw samples included", whole, elem_id="qa-bench-json", size="sm"
            )
            self._csv = gr.DownloadButton("Download CSV", flat, elem_id="qa-bench-csv", size="sm")
            self._open = gr.UploadButton(
                "Open a JSON to compare with", file_types=[".json"], elem_id="qa-bench-open", size="sm"
            )
        self._comparison = gr.HTML("", elem_id="qa-bench-comparison")
        self._command = gr.Code(
            command_of(first.benchmark) if first else "", label="Repeat exactly this",
            elem_id="qa-bench-command", **CODE_BOX,
        )  # fmt: skip
        with gr.Accordion("How to read this", open=False):
            gr.HTML(f'<p class="qa-soft">{HOW_TO_READ}</p>')

    def _wire(self) -> None:
        chosen: list[Any] = [
            self._backends, self.family, self._devices, self._lengths, self._batches, self._runs, self._seconds,
            self._mixed, self._reference,
        ]  # fmt: skip
        outputs = [
            self._own, *self._charts, self._to_fill, self._table, self._view, self._at, self._names, self._caption,
            self._command, self._json, self._csv, self._comparison,
        ]  # fmt: skip
        self._bar.wire(self.start, [self._log, self._at, *chosen], outputs)
        self.family.input(
            lambda family, chosen: offer(family, None, chosen),
            [self.family, self._backends],
            self._backends,
            queue=False,
            **FOLLOWED,
        )
        gr.on([each.change for each in chosen], lambda *values: gr.Accordion(label=said_of(plan_of(*values))), chosen,
              self._options, queue=False, **PRIVATE)  # fmt: skip
        view: list[Any] = [self._at, self._log, self._names]
        for control in view:
            control.input(self.redraw, [self._own, *view], [self._view, *self._charts], **FOLLOWED)
        self._open.upload(self.compare, [self._own, self._open], self._comparison, **PRIVATE)

    def start(
        self, log: bool, at: int | None, backends: list[str], family: str, devices: list[str], lengths: list[str],
        batches: list[str], runs: float, seconds: float, mixed: bool, reference: bool, request: gr.Request,
    ) -> Iterator[Changes]:  # fmt: skip
        """Measures and draws as it goes; what is shown from the first measurement on is the visitor's own."""
        session = request.session_hash or ""
        view = self._views[session] = _View(log, at)
        try:
            if float(seconds or 0) > MOST_SECONDS_HERE:
                raise InputError(
                    f"On this page a measurement takes at most {MOST_SECONDS_HERE} seconds, so that others get their "
                    "turn. The command line takes more."
                )
            plan = plan_of(backends, family, devices, lengths, batches, runs, seconds, mixed, reference)
            with self._bar.stops.during(request) as stop:
                state = yield from self._measure(plan, view, stop)
        except QAError as error:
            yield self._bar.failed(error)
            return
        finally:
            if self._views.get(session) is view:
                del self._views[session]
        yield (self._grown(state, view) if state and state.records else {}) | self._bar.ended()

    def _measure(
        self, plan: BenchmarkPlan, view: _View, stop: threading.Event
    ) -> Generator[Changes, None, Sweep | None]:
        yield self._bar.starting() | {self._comparison: ""}
        state: Sweep | None = None
        drawn = 0
        for state in Worker[Sweep](
            lambda put: sweep(self._runtime, plan, emit=lambda each: put(each.copy()), stopped=stop.is_set),
            timed=lambda each: each.timing,
        ):
            grown = self._grown(state, view) if len(state.records) > drawn else {}
            drawn = len(state.records)
            yield self._bar.going_on(html.progress(state), state.status, stop) | grown
        return state

    def _grown(self, state: Sweep, view: _View) -> Changes:
        """Everything that shows the records, as the visitor has chosen to look at them meanwhile."""
        own = Shown(state.benchmark(), OWN)
        at = view.at if view.at in lengths_of(state.records) else start_at(state.records)
        measured = shown.names_of(state.records)
        names = [each for each in view.names if each in measured] or shown.at_first(state.records, at)
        whole, flat = self._files(own)
        return {
            self._own: own,
            self._json: gr.DownloadButton(value=whole),
            self._csv: gr.DownloadButton(value=flat),
            **dict(zip(self._charts, plots(shown.only(state.records, names), at, log=view.log), strict=True)),
            self._to_fill: to_fill(own),
            self._table: html.table(state.records),
            self._view: gr.Accordion(label=shown.said(state.records, names, at)),
            self._at: gr.Dropdown(length_choices(state.records), value=at),
            self._names: gr.CheckboxGroup(shown.choices(state.records), value=names),
            self._caption: html.caption(own.benchmark, OWN),
            self._command: command_of(own.benchmark),
        }

    def redraw(
        self, own: Shown | None, at: int | None, log: bool, names: list[str], request: gr.Request, changed: gr.EventData
    ) -> list[Any]:
        """The charts as the visitor wants them; a benchmark under way goes on drawing them so."""
        there = own or shipped()
        records = there.benchmark.rows if there else ()
        at = int(at or start_at(records))
        if view := self._views.get(request.session_hash or ""):
            # Drawn so with the next measurement: not now, while something is timed. The other two controls may still be
            # those of what was shown before.
            if changed.target is self._names:
                view.names = names
            elif changed.target is self._at:
                view.at = at
            else:
                view.log = log
            return [gr.skip() for _ in (self._view, *self._charts)]
        label = gr.Accordion(label=shown.said(records, names, at))
        return [label, *plots(shown.only(records, names), at, log=log)]

    def compare(self, own: Shown | None, path: str) -> str:
        """An opened file beside what is shown. Gradio lets ``path`` be none outside its own folder of files, and
        deletes the upload itself: what somebody downloads, of the same name and content, lies at the same place."""
        there = own or shipped()
        if there is None:
            return problem("There is nothing to compare with yet. Start a benchmark first.")
        try:
            then = read_benchmark(Path(path))
            return html.compared(then, changes(then, there.benchmark), Path(path).name)
        except QAError as error:
            return problem(str(error))

    def _files(self, measured: Shown) -> tuple[str, str]:
        """The measurement as JSON and as CSV to download."""
        content = {WHOLE: as_text(measured.benchmark), FLAT: as_csv(measured.benchmark.rows)}
        whole, flat = self._downloads.write(content)
        return whole, flat


def plots(records: Sequence[BenchmarkRecord], at: int, *, log: bool) -> list[Any]:
    """All charts, in their order on the page; those without anything to show are hidden."""
    return [
        gr.Plot(visible=False) if figure is None else gr.Plot(figure, visible=True)
        for figure in charts.drawn(records, at, log=log)
    ]


def to_fill(measured: Shown | None) -> str:
    """Which charts are left out, in a sentence that says what to measure for them."""
    wanted = charts.to_fill(measured.benchmark.plan, measured.benchmark.rows) if measured else []
    return f'<p class="qa-soft">Not drawn here: {"; ".join(wanted)}.</p>' if wanted else ""


def lengths_of(records: Sequence[BenchmarkRecord]) -> list[int]:
    return sorted({each.tokens for each in records if each.tokens is not None})


def length_choices(records: Sequence[BenchmarkRecord]) -> list[tuple[str, int]]:
    return [(f"{tokens} tokens", tokens) for tokens in lengths_of(records)]


def start_at(records: Sequence[BenchmarkRecord]) -> int:
    """The measured length nearest to the one that charts start with."""
    return nearest_length(lengths_of(records))


def shipped() -> Shown | None:
    """The benchmark that ships; ``None`` where nothing of it is of the shapes that ship."""
    found = shipped_benchmark()
    if found is None:
        return None
    other = _of_another_family(found.rows)
    return Shown(found, f"Ships with the app, until you run your own.{other}{of_earlier_weights(found.rows)}")


def _of_another_family(rows: Sequence[BenchmarkRecord]) -> str:
    """Whose weights were measured, where they are not of the family that is chosen to begin with."""
    chosen = catalog.family(catalog.default_family())
    found = dict.fromkeys(each.backend.rpartition("/")[0] for each in rows)
    if chosen.name in found:
        return ""
    return f" It is of {', '.join(catalog.family(name).short for name in found)}, not of {chosen.short}."
