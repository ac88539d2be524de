"""``train``: fine-tune, prune, pack."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qa_backends import catalog
from qa_backends.checkpoints.manifest import file_hash, read_manifest
from qa_backends.checkpoints.sources import Source, make_ready
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
from qa_backends.training.heldout import ARTICLES, split
from qa_backends.training.settings import BATCH_TOKENS, LEARNING_RATE, Changes, RunSettings

if TYPE_CHECKING:
    from qa_backends.training.heldout import Split
    from qa_backends.training.loop import OnStep, StepReport

app = typer.Typer(help="Make checkpoints: fine-tune, prune, pack.")

DEFAULT_ENCODER = "sentence-transformers/all-MiniLM-L6-v2"
Data = Annotated[Path, typer.Option("--data", help="SQuAD-format training questions, plain or .xz.")]
Out = Annotated[Path, typer.Option("--out", help="Folder of the run; a stopped run in it goes on.")]
Passes = Annotated[float, typer.Option("--passes", help="How often every question is seen.")]
Rate = Annotated[float, typer.Option("--learning-rate")]
Tokens = Annotated[int, typer.Option("--batch-tokens", help="Tokens a step, padding included.")]
Seed = Annotated[int, typer.Option("--seed")]
HoldOut = Annotated[
    int, typer.Option("--hold-out", min=0, help="Articles that nothing is trained on; F1 on them goes to the manifest.")
]
HoldOutSeed = Annotated[
    int, typer.Option("--hold-out-seed", help="Which articles; the same for all runs that are compared.")
]
Dropout = Annotated[
    float, typer.Option("--dropout", min=0.0, max=0.9, help="Left out at random; slow on a CPU, worth 0.1 on a GPU.")
]
Freeze = Annotated[
    bool, typer.Option("--freeze-embeddings/--no-freeze-embeddings", help="Keep word and position tables as they are.")
]
Ema = Annotated[
    float, typer.Option("--ema", min=0.0, max=0.99999, help="Decay of the weights' average, as 0.999; 0 for none.")
]
Swapped = Annotated[
    int, typer.Option("--swaps", min=0, help="Unanswerable questions an epoch, by swapping an entity of the question.")
]
LowerCase = Annotated[
    float, typer.Option("--lower-case", min=0.0, max=1.0, help="Share of questions without capitals and question mark.")
]
Cut = Annotated[float, typer.Option("--cut", min=0.0, max=1.0, help="Share asked of some sentences of their text.")]
Join = Annotated[
    float, typer.Option("--join", min=0.0, max=1.0, help="Share asked of their text and the paragraph beside it.")
]
Misplaced = Annotated[
    float, typer.Option("--misplaced", min=0.0, max=1.0, help="Share asked of another paragraph: unanswerable.")
]


@app.command("finetune")
def finetune(
    data: Data,
    out: Out,
    start_from: Annotated[
        str, typer.Option("--from", help="An encoder or a fine-tuned checkpoint: a folder or a Hub id.")
    ] = DEFAULT_ENCODER,
    passes: Passes = 3.0,
    learning_rate: Rate = LEARNING_RATE,
    batch_tokens: Tokens = BATCH_TOKENS,
    seed: Seed = 1,
    hold_out: HoldOut = ARTICLES,
    hold_out_seed: HoldOutSeed = 0,
    dropout: Dropout = 0.0,
    freeze_embeddings: Freeze = True,
    ema: Ema = 0.0,
    swaps: Swapped = 0,
    lower_case: LowerCase = 0.0,
    cut: Cut = 0.0,
    join: Join = 0.0,
    misplaced: Misplaced = 0.0,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Fine-tune an encoder to find answer spans, or a fine-tuned checkpoint further."""
    from qa_backends.training.finetune import finetune as fine_tuned
    from qa_backends.training.provenance import encoder_folder, finish, history

    parts = split(questions_of(data), hold_out, hold_out_seed)
    changes = Changes(swaps, lower_case, cut, join, misplaced)
    run = RunSettings(
        out, passes, learning_rate, batch_tokens, seed, pick_device(device), ema, dropout, freeze_embeddings, changes
    )
    encoder = encoder_folder(start_from, watched)
    with _steps() as on_step:
        made = fine_tuned(parts.learned, start_from=encoder, run=run, on_step=on_step)
    settings = {"start_from": encoder.name, **run.facts(), "data": data.name, "questions": len(parts.learned)}
    finish(made, step="finetune", parent=encoder, settings=settings | history(encoder))
    _measure_held_out(made, parts, encoder, run.device)
    _made(made, as_json)


@app.command("prune")
def prune(
    data: Data,
    out: Out,
    teacher: Annotated[Path | None, typer.Option("--teacher", help="By default the family's baseline.")] = None,
    start: Annotated[
        Path | None, typer.Option("--start", help="What to prune by importance, where not the teacher: to train on.")
    ] = None,
    teacher_logits: Annotated[
        Path | None,
        typer.Option("--teacher-logits", help="A file to keep the teacher's logits in: it runs once for all passes."),
    ] = None,
    method: Annotated[str, typer.Option("--method", help="importance or movement.")] = "importance",
    density: Annotated[
        float, typer.Option("--density", min=0.05, max=0.95, help="Share of the encoder to keep.")
    ] = 0.4,
    passes: Passes = 1.0,
    learning_rate: Rate = LEARNING_RATE,
    batch_tokens: Tokens = BATCH_TOKENS,
    seed: Seed = 2,
    hold_out: HoldOut = ARTICLES,
    hold_out_seed: HoldOutSeed = 0,
    dropout: Dropout = 0.0,
    freeze_embeddings: Freeze = True,
    ema: Ema = 0.0,
    swaps: Swapped = 0,
    lower_case: LowerCase = 0.0,
    cut: Cut = 0.0,
    join: Join = 0.0,
    misplaced: Misplaced = 0.0,
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
    parts = split(questions_of(data), hold_out, hold_out_seed)
    changes = Changes(swaps, lower_case, cut, join, misplaced)
    run = RunSettings(
        out, passes, learning_rate, batch_tokens, seed, pick_device(device), ema, dropout, freeze_embeddings, changes
    )
    teacher = teacher or make_ready(
        catalog.family(family or catalog.default_family()).source(catalog.BASELINE), watched
    )
    with _steps() as on_step:
        pruning = Pruning(
            parts.learned,
            method=method,
            teacher=teacher,
            density=density,
            run=run,
            on_step=on_step,
            start=start,
            teacher_logits=teacher_logits,
        )
        made = pruning.run()
    settings = {"method": method, "density": density, "teacher_logits": teacher_logits is not None, **run.facts()}
    settings |= {"data": data.name, "questions": len(parts.learned)}
    settings |= {"teacher": file_hash(weights_of(teacher))} | (history(start) if start else {})
    finish(made, step="prune", parent=start or teacher, settings=settings)
    _measure_held_out(made, parts, start or teacher, run.device)
    _made(made, as_json)


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

    def note(step: StepReport) -> str:
        what = "the teacher's logits" if step.loss is None else f"loss {step.loss:.3f}"
        return f"{what}, {step.windows_per_second:.1f} windows a second"

    with bar("steps", None) as advance:
        yield lambda step: advance(step.number, note(step), step.of)


def _measure_held_out(made: Path, parts: Split, start: Path, device: str) -> None:
    """Writes to the manifest which articles were held out, and what the checkpoint answers of them, in percent."""
    from qa_backends.measure.quality import scoring
    from qa_backends.runtime import Runtime
    from qa_backends.training.provenance import add_to_manifest, seen_before

    if not parts.articles:
        return
    of = catalog.Family("trained", "Just trained", ((catalog.BASELINE, Source(folder=made)),))
    answers = scoring.through(Runtime(progress=watched), of, catalog.backend(catalog.BASELINE), device, watched)
    with bar("held-out questions", len(parts.held_out)) as advance:
        scored, seconds = scoring.evaluate(answers, parts.held_out, lambda done, _of: advance(done))
    found = scoring.figures(scored, seconds)
    facts: dict[str, Any] = {
        "articles": parts.articles,
        "seen_before": seen_before(start, parts.articles),
        "questions": found.n,
        "f1_interval": (found.f1_interval.low, found.f1_interval.high),
    }
    facts |= {each: getattr(found, each) for each in ("exact", "f1", "has_ans_f1", "no_ans_f1")}
    add_to_manifest(made, {"held_out": facts})


def _made(folder: Path, as_json: bool) -> None:
    """Shows what was made."""
    manifest = read_manifest(folder)
    if as_json:
        show({"folder": str(folder), **asdict(manifest)})
    else:
        console.print(f"{folder}: {manifest.encoder_parameters:,} encoder parameters, {manifest.bytes / 1e6:.1f} MB")
