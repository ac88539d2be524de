"""``train``: fine-tune, time shapes, prune, distil, quantise, average, calibrate, compare, pack."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qa_backends import catalog
from qa_backends.checkpoints import smaller
from qa_backends.checkpoints.files import WEIGHTS
from qa_backends.checkpoints.load import read_config
from qa_backends.checkpoints.sources import make_ready, with_tokenizer
from qa_backends.commands.calibrating import calibrate
from qa_backends.commands.comparing import compare
from qa_backends.commands.finishing import finish, show_made
from qa_backends.commands.runs import MOST_PASSES, Chosen, of_a_run
from qa_backends.commands.soups import soup
from qa_backends.commands.terminal import (
    FamilyName,
    Json,
    bar,
    check_writable,
    console,
    interruptible,
    numbers,
    show,
    table_of,
    watched,
)
from qa_backends.errors import InputError

if TYPE_CHECKING:
    from qa_backends.training.loop import OnStep, StepReport
    from qa_backends.training.teaching import Teaching

app = typer.Typer(help="Make checkpoints: fine-tune, prune, distil, quantise, average, calibrate, compare, pack.")

TRAINING = (
    "Stopping after this step, which is kept: the same command goes on from it. Ctrl-C again ends at once, and the "
    "command goes on from what was saved before."
)
DEFAULT_ENCODER = "sentence-transformers/all-MiniLM-L6-v2"


Teachers = Annotated[
    list[Path] | None,
    typer.Option("--teacher", help="By default the family's baseline; of several, the logits' mean is taught."),
]
TeacherLogits = Annotated[
    Path | None,
    typer.Option("--teacher-logits", help="A file to keep the teacher's logits in: it runs once for all passes."),
]
TeacherBackend = Annotated[
    str | None,
    typer.Option(
        "--teacher-backend", help="Whose engine computes the teacher's logits, as pruned-ov-int8; PyTorch by default."
    ),
]


@app.command("finetune")
@of_a_run(passes=3.0, seed=1)
def finetune(
    chosen: Chosen,
    start_from: Annotated[
        str, typer.Option("--from", help="An encoder or a fine-tuned checkpoint: a folder or a Hub id.")
    ] = DEFAULT_ENCODER,
    teachers: Annotated[
        list[Path] | None,
        typer.Option("--teacher", help="Whose logits are learned, or of several, their mean; by default the labels."),
    ] = None,
    teacher_logits: TeacherLogits = None,
    teacher_backend: TeacherBackend = None,
    as_json: Json = False,
) -> None:
    """Fine-tune an encoder to find answer spans, or a fine-tuned checkpoint further."""
    from qa_backends.training.finetune import finetune as fine_tuned
    from qa_backends.training.provenance import encoder_folder, history

    encoder = encoder_folder(start_from, watched)
    if (teacher_logits or teacher_backend) and not teachers:
        raise InputError("--teacher-logits and --teacher-backend say how a teacher runs. Name one: --teacher FOLDER.")
    teaching = _teaching(teachers, teacher_backend, teacher_logits, None) if teachers else None
    with _steps() as on_step:
        made = fine_tuned(chosen.parts.learned, start_from=encoder, run=chosen.run, on_step=on_step, teaching=teaching)
    taught, taught_by = (teaching.facts(), teaching.checkpoints) if teaching else ({}, ())
    settings = {"start_from": encoder.name, **taught, **chosen.facts()}
    finish(made, "finetune", [encoder, *taught_by], settings | history(encoder), chosen, as_json=as_json)


@app.command("prune")
@of_a_run(passes=1.0, seed=2)
def prune(
    chosen: Chosen,
    teachers: Teachers = None,
    start: Annotated[
        Path | None, typer.Option("--start", help="A checkpoint to prune in place of the teacher.")
    ] = None,
    teacher_logits: TeacherLogits = None,
    teacher_backend: TeacherBackend = None,
    density: Annotated[
        float, typer.Option("--density", min=0.05, max=0.95, help="Share of the encoder to keep.")
    ] = 0.4,
    latency_table: Annotated[
        Path | None,
        typer.Option("--latency-table", help="Makes --density a share of time, by this file of train latency."),
    ] = None,
    hidden_passes: Annotated[
        float,
        typer.Option(
            "--hidden-passes",
            min=0.0,
            max=MOST_PASSES,
            help="The first passes after the last cut that teach hidden states too.",
        ),
    ] = 0.0,
    family: FamilyName = None,
    as_json: Json = False,
) -> None:
    """Prune whole heads and FFN columns with the fine-tuned model as teacher, and pack the result."""
    from qa_backends.training.latency import LatencyTable
    from qa_backends.training.provenance import history
    from qa_backends.training.prune import Pruning

    table = LatencyTable.read(latency_table) if latency_table else None
    teaching = _teaching(teachers, teacher_backend, teacher_logits, family)
    start = with_tokenizer(start, watched) if start else None
    with _steps() as on_step:
        pruning = Pruning(
            chosen.parts.learned,
            teaching=teaching,
            density=density,
            run=chosen.run,
            on_step=on_step,
            start=start,
            latency=table,
            hidden_passes=hidden_passes,
        )
        made = pruning.run()
    settings: dict[str, Any] = {"density": density, "hidden_passes": hidden_passes}
    settings |= {"latency": table.facts, "latency_sha256": table.hash} if table else {"latency": None}
    settings |= teaching.facts() | chosen.facts() | (history(start) if start else {})
    finish(made, "prune", [start or teaching.checkpoint, *teaching.checkpoints], settings, chosen, as_json=as_json)
    smaller.note(teaching.checkpoint, "pruned", made)


@app.command("distil")
@of_a_run(passes=4.0, seed=3)
def distil(
    chosen: Chosen,
    teachers: Teachers = None,
    layers: Annotated[
        str | None,
        typer.Option(
            "--layers", help="The teacher's that the student begins as, as in 1,3,5; every second by default."
        ),
    ] = None,
    hidden_passes: Annotated[
        float, typer.Option("--hidden-passes", help="Passes that teach hidden states, before those that teach logits.")
    ] = 1.0,
    teacher_logits: TeacherLogits = None,
    teacher_backend: TeacherBackend = None,
    by_labels: Annotated[
        bool, typer.Option("--by-labels", help="Train the same student as long without the teacher, to compare.")
    ] = False,
    family: FamilyName = None,
    as_json: Json = False,
) -> None:
    """Distil a student of fewer layers: the fine-tuned teacher's hidden states first, then its logits."""
    from qa_backends.training.student import Distilling

    teaching = _teaching(teachers, teacher_backend, teacher_logits, family)
    there = read_config(teaching.checkpoint)["num_hidden_layers"]
    chosen_layers = list(numbers("--layers", layers, "1,3,5")) if layers else list(range(1, there, 2))
    with _steps() as on_step:
        made = Distilling(
            chosen.parts.learned, teaching=teaching, layers=chosen_layers, hidden_passes=hidden_passes, run=chosen.run,
            on_step=on_step, by_labels=by_labels,
        ).run()  # fmt: skip
    settings = {"layers": chosen_layers, "hidden_passes": hidden_passes, "by_labels": by_labels}
    settings |= teaching.facts() | chosen.facts()
    finish(made, "distil", teaching.checkpoints, settings, chosen, as_json=as_json)
    if not by_labels:  # which is there to be compared with
        smaller.note(teaching.checkpoint, "distilled", made)


@app.command("quantise")
@of_a_run(passes=0.5, seed=4, learning_rate=2e-5)
def quantise(
    chosen: Chosen,
    start: Annotated[Path, typer.Option("--start", help="The checkpoint that shall lose less in INT8.")],
    teachers: Teachers = None,
    teacher_logits: TeacherLogits = None,
    teacher_backend: TeacherBackend = None,
    family: FamilyName = None,
    as_json: Json = False,
) -> None:
    """Train a checkpoint on while it computes as INT8 does, so that it loses less there."""
    from qa_backends.training.provenance import history
    from qa_backends.training.quantise import quantise as trained_rounded

    teaching, start = _teaching(teachers, teacher_backend, teacher_logits, family), with_tokenizer(start, watched)
    with _steps() as on_step:
        made = trained_rounded(chosen.parts.learned, start=start, teaching=teaching, run=chosen.run, on_step=on_step)
    settings = teaching.facts() | chosen.facts() | history(start)
    finish(made, "quantise", [start, *teaching.checkpoints], settings, chosen, as_json=as_json)


def _teaching(teachers: list[Path] | None, backend: str | None, kept: Path | None, family: str | None) -> Teaching:
    """Who teaches, as it was asked for: the ``teachers``, or the family's baseline. Raises InputError where the logits
    to be ``kept`` cannot be written."""
    from qa_backends.training.teaching import Teaching

    check_writable(kept)
    of = catalog.family(family or catalog.default_family())
    named = [with_tokenizer(each, watched) for each in teachers or ()]
    if not named:
        of.check_answers()
    first, *others = named or [make_ready(of.source(catalog.BASELINE), watched)]
    return Teaching(first, catalog.backend(backend) if backend else None, kept, watched, tuple(others))


app.command("soup")(soup)
app.command("calibrate")(calibrate)
app.command("compare")(compare)


@app.command("latency")
def latency(
    out: Annotated[Path, typer.Option("--out", help="The file to write, for prune --latency-table.")],
    backend: Annotated[
        str | None,
        typer.Option("--backend", help="What builds and runs the shapes you prune for; INT8 on OpenVINO by default."),
    ] = None,
    seconds: Annotated[float, typer.Option("--seconds", min=1, help="Time to measure in, once all is built.")] = 120.0,
    family: FamilyName = None,
    as_json: Json = False,
) -> None:
    """Time what heads and FFN columns of a layer cost on this machine's CPU, to prune for milliseconds."""
    from qa_backends.checkpoints.load import read_config
    from qa_backends.measure.benchmark.shapes import time_shapes
    from qa_backends.measure.timing.machine import this_machine
    from qa_backends.runtime import Runtime
    from qa_backends.training.latency import LENGTHS, LatencyTable, shapes_to_time

    check_writable(out)
    of, chosen = catalog.resolve(backend, family, otherwise=catalog.FASTEST)
    config = read_config(make_ready(of.source(catalog.BASELINE), watched))
    shapes = shapes_to_time(config)
    times = time_shapes(Runtime(progress=watched), chosen, config, shapes, LENGTHS, seconds, watched)
    runs = {"engine": chosen.engine, "artefact": chosen.artefact, "options": dict(chosen.options)}
    table = LatencyTable.of(config, times, runs | {"machine": asdict(this_machine())})
    table.write(out)
    if as_json:
        return show(asdict(table))
    for what, by_number in (("heads", table.heads), ("columns", table.columns)):
        shown = table_of(f"{what} of a layer", *(f"ms at {tokens} tokens" for tokens in table.lengths))
        for number, each in by_number.items():
            shown.add_row(str(number), *(f"{1000 * one:.3f}" for one in each))
        console.print(shown)
    return None


@app.command("pack")
def pack(
    checkpoint: Annotated[
        Path, typer.Option("--checkpoint", help="A checkpoint; zeroed heads and columns are taken out.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Where the packed checkpoint goes.")],
    as_json: Json = False,
) -> None:
    """Really remove what was zeroed; packed and masked logits are compared."""
    from qa_backends.checkpoints.packing import pack_checkpoint
    from qa_backends.limits import limit_threads
    from qa_backends.training.provenance import weights_of

    weights_of(checkpoint)
    if (out / WEIGHTS).exists():
        raise InputError(f"{out} holds a checkpoint already. Name another folder: --out FOLDER.")
    limit_threads()
    pack_checkpoint(checkpoint, out, {"source": checkpoint.name})
    show_made(out, as_json)


@contextmanager
def _steps() -> Iterator[OnStep]:
    """Tells how far a training run is; its length is known once the first step is done. From then on Ctrl-C ends it
    behind a step, which is saved; before, at once."""

    def note(step: StepReport) -> str:
        what = step.doing if step.loss is None else f"loss {step.loss:.3f}"
        return f"{what}, {step.windows_per_second:.1f} windows a second"

    def stop_if_asked() -> None:
        if stopped and stopped():
            raise KeyboardInterrupt

    stopped: Callable[[], bool] | None = None
    with bar("steps", None) as advance, ExitStack() as catching:

        def on_step(step: StepReport) -> None:
            nonlocal stopped
            if stopped is None:
                stopped = catching.enter_context(interruptible(TRAINING))
            advance(step.number, note(step), step.of)
            stop_if_asked()

        yield on_step
        stop_if_asked()
