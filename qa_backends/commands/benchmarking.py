"""``bench``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from qa_backends import catalog
from qa_backends.commands.terminal import (
    FamilyName,
    Json,
    bar,
    check_writable,
    console,
    interruptible,
    names,
    numbers,
    pick_device,
    say,
    show,
    table_of,
    watched,
)
from qa_backends.errors import InputError, QAError
from qa_backends.measure.benchmark.plan import BenchmarkPlan
from qa_backends.measure.results.records import Benchmark, BenchmarkRecord

if TYPE_CHECKING:
    from qa_backends.measure.benchmark.sweep import Sweep

DEFAULTS = BenchmarkPlan(family="")
app = typer.Typer()


@app.command()
def bench(
    save: Annotated[Path | None, typer.Option("--save", help="Write the results file here.")] = None,
    backends: Annotated[str, typer.Option("--backends", help="Names with commas between; all by default.")] = "",
    lengths: Annotated[str, typer.Option("--lengths", help="Tokens, 32 to 512, with commas between.")] = ",".join(
        map(str, DEFAULTS.lengths)
    ),
    batches: Annotated[str, typer.Option("--batches", help="Questions at once, 1 to 64, commas between.")] = ",".join(
        map(str, DEFAULTS.batches)
    ),
    runs: Annotated[int, typer.Option("--runs", help="Timed runs of each backend in a measurement, about.")] = (
        DEFAULTS.runs
    ),
    seconds: Annotated[float, typer.Option("--seconds", help="Seconds of a measurement, at most.")] = DEFAULTS.seconds,
    mixed: Annotated[bool, typer.Option("--mixed", help="Also batches of mixed lengths.")] = False,
    reference: Annotated[
        str | None, typer.Option("--reference", help="hf-pipeline, ort, openvino: each as its documentation shows.")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option("--preset", help="latency, throughput, batches or ladder: what published comparisons report."),
    ] = None,
    random_weights: Annotated[
        bool, typer.Option("--random-weights", help="BERT-large's shapes, not downloaded: times, and no answers.")
    ] = False,
    family: FamilyName = None,
    device: Annotated[str | None, typer.Option("--device", help="cpu, cuda, or both with a comma between.")] = None,
    as_json: Json = False,
) -> None:
    """Measure latency and throughput of whole answers, backends taking turns; Ctrl-C keeps what was measured."""
    from qa_backends.measure.benchmark.presets import plan_of
    from qa_backends.measure.benchmark.sweep import sweep
    from qa_backends.measure.results.files import as_dict
    from qa_backends.runtime import Runtime

    check_writable(save)
    wanted = family or catalog.default_family()
    of = catalog.with_random_weights(wanted) if random_weights else catalog.family(wanted)
    on = names(device) if device else (pick_device(None),)
    plan = BenchmarkPlan(
        family=of.name,
        backends=names(backends) if backends else tuple(each.name for each in catalog.offered_on(of, on)),
        devices=on,
        lengths=numbers("--lengths", lengths),
        batches=numbers("--batches", batches),
        runs=runs,
        seconds=seconds,
        mixed=mixed,
        reference=reference,
    )
    if preset:
        if backends or mixed or reference or (plan.lengths, plan.batches) != (DEFAULTS.lengths, DEFAULTS.batches):
            raise InputError("A preset says itself which backends, lengths, batches and references it measures.")
        plan = plan_of(preset, plan)
    if of.random:
        say("Random weights: what they cost is measured. Their answers mean nothing, so no F1 is shown.")
    elif catalog.could_be_random(of):
        size = f"{of.download_mb / 1000:.2g} GB"
        say(f"Its weights, {size}, are downloaded first. --random-weights measures the same shapes without them.")
    kept = _Kept(save)
    with bar("measurements", None) as advance, interruptible() as stopped:

        def emit(state: Sweep) -> None:
            advance(state.done, state.status, state.of or None)
            kept.so_far(state)

        found = sweep(Runtime(progress=watched), plan, emit=emit, stopped=stopped)
    for each in found.left_out:
        say(f"left out: {' at '.join(filter(None, (each.backend, each.point)))}: {each.why}")
    if not found.records:
        raise QAError("Nothing was measured; nothing is saved.")
    benchmark = found.benchmark()
    kept.at_last(benchmark)
    if as_json:
        return show(as_dict(benchmark))
    console.print(_table(benchmark.rows))
    for sentence in _beside_pipeline(benchmark.rows):
        console.print(sentence)
    if benchmark.disturbed:
        say(benchmark.disturbed)
    if preset:
        _show_published(preset, benchmark)
    return None


class _Kept:
    """The results file: beside it, with ``.partial`` behind its name, what there is so far, for a run of hours that
    ends by force. One that is stopped leaves a file that is there as it was, since that may be whole."""

    def __init__(self, save: Path | None) -> None:
        self._save = save
        special = save is not None and save.exists() and not save.is_file()  # as /dev/stdout
        self._partial = save.with_name(f"{save.name}.partial") if save and not special else None
        self._rows = 0

    def so_far(self, state: Sweep) -> None:
        """Written between two points: nothing is timed then."""
        if self._partial and not state.timing and len(state.records) > self._rows:
            self._rows = len(state.records)
            self._write(self._partial, state.benchmark())

    def at_last(self, benchmark: Benchmark) -> None:
        if self._save is None:
            return
        if self._partial and self._save.exists() and not benchmark.complete:
            self._write(self._partial, benchmark)
            say(f"{self._save} is left as it was; what was measured is in {self._partial}")
            return
        self._write(self._save, benchmark)
        if self._partial:
            self._partial.unlink(missing_ok=True)

    def _write(self, file: Path, benchmark: Benchmark) -> None:
        from qa_backends.measure.results.files import write_results

        write_results(file, benchmark)


def _show_published(preset: str, benchmark: Benchmark) -> None:
    """What others published, beside what was measured here, with the hardware of both."""
    from qa_backends.measure.benchmark.presets import beside

    found = beside(preset, benchmark.rows)
    if not found:
        return
    table = table_of(
        "published", "tokens × batch", "on", "ms a question", "times as fast", "ours", "ran", "ours, ms a question",
        "times as fast",
    )  # fmt: skip
    for each in found:
        theirs, ours = each.published, each.ours
        against = ours.against_baseline if ours else None
        table.add_row(
            f"{theirs.family}: {theirs.what}" if theirs.family else theirs.what,
            f"{theirs.tokens or 'not said'} × {theirs.batch}", theirs.hardware, f"{theirs.ms:.4g}",
            f"{each.step:.2f}" if each.step else "-",
            theirs.backend, f"{ours.ran.device}, {ours.ran.precision}" if ours else "-",
            f"{ours.p50_ms / ours.batch:.2f}" if ours else "not measured", str(against.ratio) if against else "-",
        )  # fmt: skip
    console.print(table)
    console.print(f"Published at {', '.join(dict.fromkeys(each.published.source for each in found))}.")
    if not all(each.published.family for each in found):
        console.print("Those are of another model: compare the steps, how many times as fast as PyTorch each is.")
    where = "; ".join(benchmark.machine.sentence(each) for each in dict.fromkeys(row.device for row in benchmark.rows))
    console.print(f"Ours are whole answers, tokenising and decoding included, on other hardware: {where}.")


def _beside_pipeline(records: Sequence[BenchmarkRecord]) -> Iterator[str]:
    """At each point of equal lengths, how many times as fast as transformers' pipeline the fastest backend is."""
    from qa_backends.measure.benchmark.compare import in_turns
    from qa_backends.measure.benchmark.contestants import EQUAL
    from qa_backends.measure.benchmark.plan import PIPELINE, REFERENCES

    for theirs in (each for each in records if each.name == PIPELINE and each.order == EQUAL):
        ours = [each for each in records if each.name not in REFERENCES and each.place[1:] == theirs.place[1:]]
        if ours:
            best = min(ours, key=lambda each: each.p50_ms)
            ratio = in_turns(theirs, best, among=len(ours)) or f"{theirs.p50_ms / best.p50_ms:.1f}×"
            at = f"{theirs.tokens} tokens, batches of {theirs.batch}"
            yield f"{at}: {best.name} against the transformers pipeline, {ratio}"


def _table(records: Sequence[BenchmarkRecord]) -> Table:
    table = table_of("backend", "device", "tokens", "batch", "p50, ms", "p90, ms", "questions/s", "runs", "vs baseline")
    for each in records:
        table.add_row(
            each.name,
            each.device,
            f"mixed, {each.order}" if each.tokens is None else str(each.tokens),
            str(each.batch),
            f"{each.p50_ms:.2f}",
            f"{each.p90_ms:.2f}" if each.p90_ms else "-",
            f"{each.questions_per_second:.1f}",
            f"{each.runs}{', unstable' if each.unstable else ''}",
            str(each.against_baseline.ratio) if each.against_baseline else "-",
        )
    return table
