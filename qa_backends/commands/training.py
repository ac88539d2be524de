"""``train``: fine-tune, prune, pack."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qa_backends import catalog
from qa_backends.checkpoints.manifest import file_hash, read_manifest
from qa_backends.checkpoints.sources import make_ready
from qa_backends.commands.terminal import (
    Device,
    FamilyName,
    Json,
    bar,
    console,
    pick_device,
    questions_of,
    show,
    watched,
)
from qa_backends.errors import InputError
from qa_backends.training.settings import BATCH_TOKENS, LEARNING_RATE, RunSettings

if TYPE_CHECKING:
    from qa_backends.training.loop import OnStep

app = typer.Typer(help="Make checkpoints: fine-tune, prune, pack.")

DEFAULT_ENCODER = "sentence-transformers/all-MiniLM-L6-v2"
Data = Annotated[Path, typer.Option("--data", help="SQuAD-format training questions, plain or .xz.")]
Out = Annotated[Path, typer.Option("--out", help="Folder of the run; a stopped run in it goes on.")]
Passes = Annotated[float, typer.Option("--passes", help="How often every question is seen.")]
Rate = Annotated[float, typer.Option("--learning-rate")]
Tokens = Annotated[int, typer.Option("--batch-tokens", help="Tokens a step, padding included.")]
Seed = Annotated[int, typer.Option("--seed")]


@app.command("finetune")
def finetune(
    data: Data,
    out: Out,
    start_from: Annotated[str, typer.Option("--from", help="An encoder: a folder or a Hub id.")] = DEFAULT_ENCODER,
    passes: Passes = 3.0,
    learning_rate: Rate = LEARNING_RATE,
    batch_tokens: Tokens = BATCH_TOKENS,
    seed: Seed = 1,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Fine-tune an encoder to find answer spans."""
    from qa_backends.training.finetune import finetune as fine_tuned
    from qa_backends.training.provenance import encoder_folder, finish, history

    questions = questions_of(data)
    run = RunSettings(out, passes, learning_rate, batch_tokens, seed, pick_device(device))
    encoder = encoder_folder(start_from, watched)
    with _steps() as on_step:
        made = fine_tuned(questions, start_from=encoder, run=run, on_step=on_step)
    settings = {"start_from": encoder.name, **run.facts(), "data": data.name, "questions": len(questions)}
    settings |= history(encoder)
    _made(finish(made, step="finetune", parent=encoder, settings=settings), as_json)


@app.command("prune")
def prune(
    data: Data,
    out: Out,
    teacher: Annotated[Path | None, typer.Option("--teacher", help="By default the family's baseline.")] = None,
    start: Annotated[
        Path | None, typer.Option("--start", help="What to prune by importance, where not the teacher: to train on.")
    ] = None,
    method: Annotated[str, typer.Option("--method", help="importance or movement.")] = "importance",
    density: Annotated[
        float, typer.Option("--density", min=0.05, max=0.95, help="Share of the encoder to keep.")
    ] = 0.4,
    passes: Passes = 1.0,
    learning_rate: Rate = LEARNING_RATE,
    batch_tokens: Tokens = BATCH_TOKENS,
    seed: Seed = 2,
    family: FamilyName = None,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Prune whole heads and FFN columns with the fine-tuned model as teacher, and pack the result."""
    from qa_backends.training.provenance import finish, history, weights_of
    from qa_backends.training.prune import METHODS, Pruning

    if method not in METHODS:
        raise InputError(f"There is no method '{method}'. Choose one of: {', '.join(METHODS)}.")
    if start and method != "importance":
        raise InputError("--start goes with --method importance: movement decides while it trains.")
    questions = questions_of(data)
    run = RunSettings(out, passes, learning_rate, batch_tokens, seed, pick_device(device))
    teacher = teacher or make_ready(
        catalog.family(family or catalog.default_family()).source(catalog.BASELINE), watched
    )
    with _steps() as on_step:
        pruning = Pruning(
            questions, method=method, teacher=teacher, density=density, run=run, on_step=on_step, start=start
        )
        made = pruning.run()
    settings = {"method": method, "density": density, **run.facts()}
    settings |= {"data": data.name, "questions": len(questions)}
    settings |= {"teacher": file_hash(weights_of(teacher))} | (history(start) if start else {})
    _made(finish(made, step="prune", parent=start or teacher, settings=settings), as_json)


@app.command("pack")
def pack(
    checkpoint: Annotated[Path, typer.Option("--checkpoint", help="A checkpoint with zeroed heads or columns.")],
    out: Annotated[Path, typer.Option("--out", help="Where the packed checkpoint goes.")],
    as_json: Json = False,
) -> None:
    """Really remove what was zeroed; packed and masked logits are compared."""
    from qa_backends.checkpoints.packing import pack_checkpoint
    from qa_backends.limits import limit_threads
    from qa_backends.training.provenance import weights_of

    weights_of(checkpoint)
    limit_threads()
    pack_checkpoint(checkpoint, out, {"source": checkpoint.name})
    _made(out, as_json)


@contextmanager
def _steps() -> Iterator[OnStep]:
    """Tells how far a training run is; its length is known once the first step is done."""
    with bar("steps", None) as advance:
        yield lambda step: advance(
            step.number, f"loss {step.loss:.3f}, {step.windows_per_second:.0f} windows a second", step.of
        )


def _made(folder: Path, as_json: bool) -> None:
    """Shows what was made."""
    manifest = read_manifest(folder)
    if as_json:
        show({"folder": str(folder), **asdict(manifest)})
    else:
        console.print(f"{folder}: {manifest.encoder_parameters:,} encoder parameters, {manifest.bytes / 1e6:.1f} MB")
