"""The benchmark tab: choose what to measure, watch it grow, stop, keep, compare."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import threading
from collections import deque
from collections.abc import Iterator, Sequence  # at run time too: Gradio reads the signatures of what it calls
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gradio as gr

from qa_backends import catalog
from qa_backends.errors import InputError, QAError
from qa_backends.limits import devices
from qa_backends.measure.benchmark.compare import changes
from qa_backends.measure.benchmark.plan import BATCHES, LENGTHS, PIPELINE, BenchmarkPlan, nearest_length
from qa_backends.measure.benchmark.sweep import Sweep, sweep
from qa_backends.measure.results.files import BENCHMARK, as_csv, as_text, read_benchmark
from qa_backends.measure.results.records import Benchmark, BenchmarkRecord
from qa_backends.web.ask.share import CODE_BOX
from qa_backends.web.ask.tab import PRIVATE, offer
from qa_backends.web.benchmark import charts, html
from qa_backends.web.shared.choices import backend_choices, device_choices, family_choices, preselected
from qa_backends.web.shared.html import problem, running
from qa_backends.web.shared.shipped import shipped_benchmark
from qa_backends.web.shared.worker import Worker

if TYPE_CHECKING:
    from qa_backends.runtime import Runtime

Updates = dict[Any, Any]
OWN = "Your measurement."
DEFAULTS = BenchmarkPlan(family="")
HOW_TO_READ = (
    "Every backend answers the same questions whole (tokenise, model, decode), in turns of three runs. Lengths are "
    "measured at the smallest batch size chosen; batch sizes at the length nearest to 128. The first runs, at least "
    "ten where time allows, warm up and are not counted. A point ends at its runs or its seconds, whichever "
    "comes first. Unstable means that the medians of the last three blocks differ by more than 10 %: something else "
    "ran, or the processor changed its pace. The compute floor is the model's multiplications and additions over the "
    "best matrix-product rate measured on this device at that precision."
)
DOWNLOADS_KEPT = 32
"""Measurements whose files wait to be fetched; Gradio has a copy of its own of what a page offers."""
MOST_SECONDS_HERE = 60
BENCHMARKS_AT_ONCE = 16
"""They take turns, point by point."""
CHARTS_IN_ROWS = (2, 2, 2, 1)


@dataclass(frozen=True, slots=True)
class Shown:
    """What the tab shows: a measurement, and whose it is."""

    benchmark: Benchmark
    whose: str


@dataclass(slots=True)
class _Run:
    """A visitor's benchmark under way: whether to stop it, and how they look at its charts."""

    log: bool
    at: int | None = None
    stop: threading.Event = field(default_factory=threading.Event)


class BenchmarkTab:
    """Widgets of the tab, and the functions behind them."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._under_way: dict[str, _Run] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="qa-benchmarks-")
        self._written: deque[Path] = deque()
        self._draw()
        self._wire()

    def _draw(self) -> None:
        first = shipped()
        records = first.benchmark.rows if first else ()
        self._own = gr.State(None)
        with gr.Row(elem_classes="qa-columns"):
            with gr.Column(scale=6, min_width=320):
                family = catalog.default_family()
                self._backends = gr.CheckboxGroup(
                    backend_choices(family), value=preselected(family), label="Backends", elem_id="qa-bench-backends"
                )
                with gr.Row():
                    self._lengths = gr.CheckboxGroup(
                        list(map(str, LENGTHS)),
                        value=list(map(str, DEFAULTS.lengths)),
                        label="Lengths, tokens",
                        elem_id="qa-bench-lengths",
                    )
                    self._batches = gr.CheckboxGroup(
                        list(map(str, BATCHES)),
                        value=list(map(str, DEFAULTS.batches)),
                        label="Batch sizes, questions at once",
                        elem_id="qa-bench-batches",
                    )
            with gr.Column(scale=5, min_width=320):
                with gr.Row():
                    self._family = gr.Radio(family_choices(), value=family, label="Family")
                    there = devices()
                    self._devices = gr.CheckboxGroup(
                        device_choices(), value=list(there[:1]), label="Devices", visible=len(there) > 1
                    )
                with gr.Row():
                    self._runs = gr.Number(
                        DEFAULTS.runs,
                        label="Runs at a point, at most",
                        precision=0,
                        min_width=120,
                        elem_id="qa-bench-runs",
                    )
                    self._seconds = gr.Number(DEFAULTS.seconds, label="Seconds at a point, at most", min_width=120)
                with gr.Row():
                    self._mixed = gr.Checkbox(False, label="Also batches of mixed lengths, as they come and sorted")
                    self._reference = gr.Checkbox(False, label="Also transformers' own pipeline")
        with gr.Row():
            self._start = gr.Button("Start", variant="primary", elem_id="qa-bench-start")
            self._stop = gr.Button("Stop and keep what was measured", interactive=False, elem_id="qa-bench-stop")
        self._progress = gr.HTML("", elem_id="qa-bench-progress")
        self._caption = gr.HTML(html.caption(first.benchmark, first.whose) if first else "", elem_id="qa-bench-caption")
        with gr.Row():
            self._at = gr.Dropdown(
                lengths_of(records),
                value=start_at(records),
                label="Length of the ladder, of F1 and of the parts, tokens",
            )
            self._log = gr.Checkbox(False, label="Logarithmic latency axis", min_width=160)
        self._charts: list[gr.Plot] = []
        figures = iter(drawn(records, start_at(records), log=False))
        for count in CHARTS_IN_ROWS:
            with gr.Row(elem_classes="qa-columns"):
                for figure in itertools.islice(figures, count):
                    name = f"qa-bench-chart-{len(self._charts)}"
                    self._charts.append(gr.Plot(figure, show_label=False, elem_id=name))
        self._table = gr.HTML(html.table(records), elem_id="qa-bench-table")
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
            first.benchmark.plan.command() if first else "", label="Repeat exactly this",
            elem_id="qa-bench-command", **CODE_BOX, max_lines=4,
        )  # fmt: skip
        with gr.Accordion("How to read this", open=False):
            gr.HTML(f'<p class="qa-parts">{HOW_TO_READ}</p>')

    def _wire(self) -> None:
        chosen = [self._backends, self._family, self._devices, self._lengths, self._batches, self._runs, self._seconds,
                  self._mixed, self._reference, self._log]  # fmt: skip
        outputs = [self._own, self._progress, self._stop, *self._charts, self._table, self._at, self._caption,
                   self._command, self._json, self._csv, self._comparison]  # fmt: skip
        self._start.click(self.start, chosen, outputs, trigger_mode="once", concurrency_id="bench",
                          concurrency_limit=BENCHMARKS_AT_ONCE, **PRIVATE)  # fmt: skip
        self._stop.click(self.stop, None, self._stop, queue=False, **PRIVATE)
        self._family.input(
            lambda family, chosen: offer(family, None, chosen),
            [self._family, self._backends],
            self._backends,
            queue=False,
            **PRIVATE,
        )
        for control in (self._at, self._log):
            control.input(self.redraw, [self._own, self._at, self._log], self._charts, **PRIVATE)
        self._open.upload(self.compare, [self._own, self._open], self._comparison, **PRIVATE)

    def start(
        self, backends: list[str], family: str, devices: list[str], lengths: list[str], batches: list[str],
        runs: float, seconds: float, mixed: bool, reference: bool, log: bool, request: gr.Request,
    ) -> Iterator[Updates]:  # fmt: skip
        """Measures and draws each point as it comes; what is shown from the first on is the visitor's own."""
        session = request.session_hash or ""
        run = self._under_way[session] = _Run(log=log)
        state: Sweep | None = None
        shown = 0
        yield {self._comparison: "", self._progress: running(0, 1, "Starting …")}
        try:
            if float(seconds or 0) > MOST_SECONDS_HERE:
                raise InputError(
                    f"On this page a point takes at most {MOST_SECONDS_HERE} seconds, so that others get their turn. "
                    "The command line takes more."
                )
            plan = BenchmarkPlan(
                family=family, backends=tuple(backends), devices=tuple(devices), lengths=tuple(map(int, lengths)),
                batches=tuple(map(int, batches)), runs=int(runs or 0), seconds=float(seconds or 0), mixed=mixed,
                reference=PIPELINE if reference else None,
            )  # fmt: skip
            for state in Worker[Sweep](
                lambda put: sweep(self._runtime, plan, emit=lambda each: put(each.copy()), stopped=run.stop.is_set)
            ):
                stop = gr.Button(interactive=bool(state.status) and not run.stop.is_set())
                grown = self._grown(state, run) if len(state.records) > shown else {}
                shown = len(state.records)
                yield {self._progress: html.progress(state), self._stop: stop, **grown}
        except QAError as error:
            yield {self._progress: problem(str(error)), self._stop: gr.Button(interactive=False)}
            return
        finally:
            self._under_way.pop(session, None)
        if state is not None and state.records:
            own = Shown(state.benchmark(), OWN)
            whole, flat = self._files(own)
            yield {
                self._own: own, self._caption: html.caption(own.benchmark, OWN),
                self._command: plan.command(), self._json: whole, self._csv: flat,
            }  # fmt: skip

    def _grown(self, state: Sweep, run: _Run) -> Updates:
        """Everything that shows the rows, as the visitor has chosen to look at them meanwhile."""
        own = Shown(state.benchmark(), OWN)
        at = run.at if run.at in lengths_of(state.records) else start_at(state.records)
        return {
            self._own: own,
            **dict(zip(self._charts, drawn(state.records, at, log=run.log), strict=True)),
            self._table: html.table(state.records),
            self._at: gr.Dropdown(lengths_of(state.records), value=at),
            self._caption: html.caption(own.benchmark, OWN),
        }

    def stop(self, request: gr.Request) -> Any:
        """Ends the visitor's own benchmark at its next run."""
        if run := self._under_way.get(request.session_hash or ""):
            run.stop.set()
        return gr.Button(interactive=False)

    def redraw(self, own: Shown | None, at: int | None, log: bool, request: gr.Request) -> list[Any]:
        """The charts as the visitor wants them; a benchmark under way goes on drawing them so."""
        if run := self._under_way.get(request.session_hash or ""):
            run.at, run.log = at, log  # drawn so with the next point: not now, while something is timed
            return [gr.skip()] * len(self._charts)
        shown = own or shipped()
        records = shown.benchmark.rows if shown else ()
        return drawn(records, int(at or start_at(records)), log=log)

    def compare(self, own: Shown | None, path: str) -> str:
        """An opened file beside what is shown. ``path`` is where Gradio put the upload, not one from the request."""
        shown = own or shipped()
        if shown is None:
            return problem("There is nothing to compare with yet. Start a benchmark first.")
        try:
            then = read_benchmark(Path(path))
            return html.compared(then, changes(then, shown.benchmark), Path(path).name)
        except QAError as error:
            return problem(str(error))

    def _files(self, shown: Shown) -> tuple[str, str]:
        """The measurement as JSON and as CSV to download, in a folder of their own."""
        folder = Path(tempfile.mkdtemp(dir=self._folder.name))
        self._written.append(folder)
        if len(self._written) > DOWNLOADS_KEPT:
            shutil.rmtree(self._written.popleft(), ignore_errors=True)
        whole, flat = folder / "benchmark.json", folder / "benchmark.csv"
        whole.write_text(as_text(BENCHMARK, shown.benchmark), encoding="utf-8")
        flat.write_text(as_csv(shown.benchmark.rows), encoding="utf-8")
        return str(whole), str(flat)


def drawn(records: Sequence[BenchmarkRecord], at: int, *, log: bool) -> list[Any]:
    """All charts, in their order on the page."""
    return [
        charts.latency(records, log=log),
        charts.quality(records, at),
        charts.ladder(records, at),
        charts.parts(records, at),
        charts.per_question(records),
        charts.throughput(records),
        charts.mixed(records),
    ]


def lengths_of(records: Sequence[BenchmarkRecord]) -> list[int]:
    return sorted({each.tokens for each in records if each.tokens is not None})


def start_at(records: Sequence[BenchmarkRecord]) -> int:
    """The measured length nearest to the one that charts start with."""
    return nearest_length(lengths_of(records))


def shipped() -> Shown | None:
    """The benchmark that ships; ``None`` where the project holds none of the weights it ships."""
    found = shipped_benchmark()
    return Shown(found, "Ships with the app, until you run your own.") if found else None
