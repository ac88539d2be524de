"""The command line: ``list``, ``answer``, ``evaluate``, ``build``, ``bench``, ``record``, ``report``, ``train``.

Exit codes: 0; 2 for bad usage or input; 1 for failure. Errors are one line on stderr; ``--debug`` shows the traceback.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from qa_backends import catalog
from qa_backends.contract import Query, Reading
from qa_backends.errors import InputError, QAError

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Ask a text a question on interchangeable backends, and measure what each costs.",
)
train_app = typer.Typer(help="Make checkpoints: fine-tune, prune, pack.")
app.add_typer(train_app, name="train")

ASSETS = Path(__file__).resolve().parent.parent / "assets"
QUESTIONS = ASSETS / "questions.json"
EXAMPLES = ASSETS / "examples.json"
DEFAULT_ENCODER = "sentence-transformers/all-MiniLM-L6-v2"

errors = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)
console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
FamilyName = Annotated[str | None, typer.Option("--family", help="Family of models; QA_FAMILY or minilm by default.")]
Device = Annotated[str | None, typer.Option("--device", help="cpu or cuda; a GPU by default where there is one.")]
BackendName = Annotated[str, typer.Option("--backend", help="A name from `list`, or family/name.")]


def main() -> None:
    """Runs the command line and exits the process."""
    debug = "--debug" in sys.argv
    arguments = [each for each in sys.argv[1:] if each != "--debug"]
    try:
        code = app(arguments or ["--help"], standalone_mode=False)
    except (QAError, OSError, typer.TyperException) as error:
        if debug:
            raise
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        errors.print(f"Error: {' '.join(message.split())}")
        sys.exit(2 if isinstance(error, InputError | typer.TyperException) else 1)
    sys.exit(code if arguments else 2)


def show(value: dict[str, Any] | list[dict[str, Any]]) -> None:
    """JSON on stdout; Unicode as it is."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=1) + "\n")


def say(message: str) -> None:
    """What is being prepared, on stderr, so that stdout stays a result."""
    errors.print(message)


def pick_device(wanted: str | None) -> str:
    """Raises InputError for a device that this machine has not got."""
    there = catalog.devices()
    if wanted is not None and wanted not in there:
        raise InputError(f"There is no device '{wanted}' here. Choose one of: {', '.join(there)}.")
    return wanted or there[0]


@app.command("list")
def list_backends(family: FamilyName = None, device: Device = None, as_json: Json = False) -> None:
    """The backends, and why one cannot run here if it cannot."""
    group = catalog.family(family or catalog.default_family())
    if device is not None:
        pick_device(device)
    rows = []
    for row in catalog.BACKENDS:
        missing = catalog.unavailable(row)
        rows.append(
            {
                "backend": f"{group.name}/{row.name}",
                "engine": catalog.ENGINES[row.engine].title,
                "summary": row.summary,
                "available": missing is None,
                "reason": str(missing) if missing else None,
            }
        )
    if as_json:
        return show(rows)
    table = Table("backend", "engine", "what it is", "here")
    for each in rows:
        table.add_row(each["backend"], each["engine"], each["summary"], each["reason"] or "available")
    console.print(table)
    return None


@app.command()
def answer(
    question: Annotated[str, typer.Option("--question")],
    backend: BackendName = catalog.PRESELECTED[-1],
    context: Annotated[str | None, typer.Option("--context", help="The text itself.")] = None,
    context_file: Annotated[Path | None, typer.Option("--context-file", help="A UTF-8 file with the text.")] = None,
    family: FamilyName = None,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Answer one question about one text."""
    from qa_backends.runtime import Runtime

    query = Query(question, _text(context, context_file))
    group, row = catalog.resolve(backend, family)
    runtime = Runtime(say=say)
    with runtime.turn(pick_device(device)) as turn:
        prepared = turn.prepare(group, query)
        reading, cold_s = turn.warm_answer(group, row, prepared)
    for notice in reading.notices:
        say(notice)
    if as_json:
        return show(reading_as_json(reading) | {"cold_ms": cold_s * 1000})
    text = reading.answer.text if reading.answer.span else "(no answer in this text)"
    cost = f"{reading.times.compute_s * 1000:.1f} ms"
    console.print(
        f"{text}\n{reading.answer.confidence:.0%} confident, {cost}, {reading.backend} on {reading.ran.device}"
    )
    return None


def _text(context: str | None, file: Path | None) -> str:
    if (context is None) == (file is None):
        raise InputError("Give the text by either --context or --context-file.")
    if file is None:
        return str(context)
    try:
        with file.open(encoding="utf-8", newline="") as opened:
            return opened.read()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read as UTF-8 text: {error}.") from error


def reading_as_json(reading: Reading) -> dict[str, Any]:
    """The reading as plain values; times in milliseconds."""
    answer, times = reading.answer, reading.times
    return {
        "backend": reading.backend,
        "answer": answer.text if answer.span else None,
        "span": [answer.span.start, answer.span.end] if answer.span else None,
        "confidence": answer.confidence,
        "score": answer.score,
        "null_score": answer.null_score,
        "n_windows": reading.n_windows,
        "times_ms": {
            "tokenise": times.tokenise_s * 1000,
            "wait": times.wait_s * 1000,
            "model": times.forward_s * 1000,
            "decode": times.decode_s * 1000,
            "total": times.total_s * 1000,
        },
        "notices": list(reading.notices),
        "ran": asdict(reading.ran),
    }


@app.command()
def evaluate(
    data: Annotated[Path, typer.Option("--data", help="A SQuAD-format file, plain or .xz.")],
    backend: BackendName = catalog.PRESELECTED[-1],
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="A random part of so many questions.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Which part.")] = 0,
    family: FamilyName = None,
    device: Device = None,
    save: Annotated[Path | None, typer.Option("--save", help="Add the result to this results file.")] = None,
    as_json: Json = False,
) -> None:
    """Exact match and F1 of a backend on a data set."""
    from qa_backends.measure.accuracy import evaluate as measure
    from qa_backends.measure.accuracy import sample
    from qa_backends.measure.results import accuracy_row, add_accuracy
    from qa_backends.runtime import Runtime
    from qa_backends.squad import read_squad

    questions = read_squad(data)
    if not questions:
        raise InputError(f"{data.name} holds no questions.")
    questions = sample(questions, limit, seed)
    group, row = catalog.resolve(backend, family)
    where = pick_device(device)
    runtime = Runtime(say=say)
    with runtime.turn(where) as turn:
        loaded = runtime.get(group, row, where)
        with _bar("questions", len(questions)) as advance:
            found, _ = measure(loaded.reader, turn.forward(group, row), questions, lambda done, _of: advance(done))
    result = accuracy_row(group, row, where, loaded.ran, data, found, limit=limit, seed=seed)
    if save:
        add_accuracy(save, result)
    if as_json:
        return show(result)
    console.print(f"{result['backend']}: F1 {found.f1:.2f}, exact {found.exact:.2f} on {found.n} questions, "
                  f"{found.questions_per_second:.0f} questions a second")  # fmt: skip
    return None


@app.command()
def build(
    backend: Annotated[str | None, typer.Option("--backend", help="One backend; all of the family by default.")] = None,
    family: FamilyName = None,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Build what backends run, each step checked against the one before; finished builds are kept."""
    from qa_backends.artefacts.build import build as build_artefact
    from qa_backends.artefacts.manifest import read_manifest
    from qa_backends.runtime import reference_forward

    del device  # artefacts are the same for every device; accepted so that all commands take the same options
    names = [backend] if backend else [row.name for row in catalog.BACKENDS]
    built: dict[str, dict[str, Any]] = {}
    for group, row in (catalog.resolve(name, family) for name in names):
        checkpoint = catalog.checkpoint_folder(group, row.checkpoint, say)
        manifest = read_manifest(build_artefact(checkpoint, row.artefact, reference_forward, say))
        built[f"{group.name}/{row.name}"] = asdict(manifest)
    if as_json:
        return show([{"backend": name, **manifest} for name, manifest in built.items()])
    table = Table("backend", "step", "precision", "MB", "encoder parameters", "largest logit difference")
    for name, made in built.items():
        difference = made["largest_logit_difference"]
        shown = "-" if difference is None else f"{difference:.1e}"
        size, encoder = f"{made['bytes'] / 1e6:.1f}", f"{made['encoder_parameters']:,}"
        table.add_row(name, made["step"], made["precision"], size, encoder, shown)
    console.print(table)
    return None


@app.command()
def bench(
    save: Annotated[Path | None, typer.Option("--save", help="Write the results file here.")] = None,
    backends: Annotated[str, typer.Option("--backends", help="Names with commas between; all by default.")] = "",
    lengths: Annotated[str, typer.Option("--lengths", help="Tokens a window, with commas between.")] = "32,128,384",
    runs: Annotated[int, typer.Option("--runs", min=5, help="Timed runs of each backend and length.")] = 60,
    family: FamilyName = None,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Latency of whole answers at fixed lengths, backends taking turns."""
    from qa_backends.measure.bench import bench as measure
    from qa_backends.measure.results import SCHEMA, write_results
    from qa_backends.runtime import Runtime
    from qa_backends.squad import read_squad

    group = catalog.family(family or catalog.default_family())
    rows = [catalog.resolve(name, group.name)[1] for name in backends.split(",") if name] or list(catalog.BACKENDS)
    wanted = [_length(each) for each in lengths.split(",")]
    questions = read_squad(QUESTIONS)
    text = "\n\n".join(dict.fromkeys(each.context for each in questions))
    with _bar("lengths", len(wanted)) as advance:
        found = measure(
            Runtime(say=say), group, rows, pick_device(device), text, questions[0].question,
            lengths=wanted, runs=runs, progress=advance,
        )  # fmt: skip
    if save:
        write_results(save, found)
    if as_json:
        return show({"schema": SCHEMA, **found})
    table = Table("backend", "tokens", "p50, ms", "p90, ms", "runs", "against baseline")
    for each in found["rows"]:
        ratio = each["speed_up"]
        pace = f"{ratio['value']:.2f}x [{ratio['low']:.2f}-{ratio['high']:.2f}]" if ratio else "-"
        p90 = f"{each['p90_ms']:.2f}" if each["p90_ms"] else "-"
        table.add_row(each["backend"], str(each["tokens"]), f"{each['p50_ms']:.2f}", p90, str(each["runs"]), pace)
    console.print(table)
    return None


def _length(text: str) -> int:
    if not text.strip().isdigit():
        raise InputError(f"'{text}' is no number of tokens. Write lengths as in --lengths 32,128,384.")
    return int(text)


@app.command()
def record(
    save: Annotated[Path, typer.Option("--save", help="The file the page shows before anybody asks.")],
    family: FamilyName = None,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Record the comparison that the page shows on first sight: the first example, the three main backends."""
    from dataclasses import replace

    from qa_backends.measure.ask import ask
    from qa_backends.measure.machine import this_machine
    from qa_backends.measure.results import checkpoint_hash, write_results
    from qa_backends.measure.view import as_dict, view_of
    from qa_backends.runtime import Runtime

    group = catalog.family(family or catalog.default_family())
    example = json.loads(EXAMPLES.read_text(encoding="utf-8"))[0]
    rows = [catalog.backend(name) for name in ("baseline", "pruned", "pruned-ort-fp16")]
    query = Query(example["question"], example["context"])
    last = ask(Runtime(say=say), group, rows, query, pick_device(device))
    view = as_dict(replace(view_of(last), recorded=this_machine().sentence(view_of(last).device)))
    checkpoints = {row.name: checkpoint_hash(group, row) for row in rows}
    content = {"kind": "comparison", "machine": this_machine().as_dict(), "checkpoints": checkpoints, "view": view}
    write_results(save, content)
    if as_json:
        return show(view)
    console.print(f"recorded {len(view['cards'])} backends in {save}")
    return None


@app.command()
def report(
    check: Annotated[bool, typer.Option("--check", help="Change nothing; exit with 1 where one is stale.")] = False,
) -> None:
    """Write the tables of the README and the model card from the results that ship."""
    from qa_backends.measure.report import refreshed

    for path, content in refreshed(ASSETS.parent).items():
        if not check:
            path.write_text(content, encoding="utf-8")
        elif content != path.read_text(encoding="utf-8"):
            raise QAError(f"The table in {path.name} is stale. Write it again: python -m qa_backends report")


Data = Annotated[Path, typer.Option("--data", help="SQuAD-format training questions, plain or .xz.")]
Out = Annotated[Path, typer.Option("--out", help="Folder of the run; a stopped run in it goes on.")]
Passes = Annotated[float, typer.Option("--passes", help="How often every question is seen.")]
Rate = Annotated[float, typer.Option("--learning-rate")]
Tokens = Annotated[int, typer.Option("--batch-tokens", help="Tokens a step, padding included.")]
Seed = Annotated[int, typer.Option("--seed")]


@train_app.command("finetune")
def train_finetune(
    data: Data,
    out: Out,
    start_from: Annotated[str, typer.Option("--from", help="An encoder: a folder or a Hub id.")] = DEFAULT_ENCODER,
    passes: Passes = 3.0,
    learning_rate: Rate = 1.2e-4,
    batch_tokens: Tokens = 4096,
    seed: Seed = 1,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Fine-tune an encoder to find answer spans."""
    from qa_backends.training.finetune import finetune
    from qa_backends.training.recipes import encoder_folder, finish

    questions = _questions(data)
    with _steps() as advance:
        made = finetune(
            questions,
            start_from=encoder_folder(start_from, say),
            folder=out,
            passes=passes,
            learning_rate=learning_rate,
            max_tokens=batch_tokens,
            seed=seed,
            device=pick_device(device),
            progress=advance,
        )
    settings = {"start_from": Path(start_from).name, "passes": passes, "learning_rate": learning_rate,
                "batch_tokens": batch_tokens, "seed": seed, "data": data.name, "questions": len(questions)}  # fmt: skip
    _made(finish(made, step="finetune", parent=None, settings=settings), as_json)


@train_app.command("prune")
def train_prune(
    data: Data,
    out: Out,
    teacher: Annotated[Path | None, typer.Option("--teacher", help="By default the family's baseline.")] = None,
    method: Annotated[str, typer.Option("--method", help="importance or movement.")] = "importance",
    density: Annotated[
        float, typer.Option("--density", min=0.05, max=0.95, help="Share of the encoder to keep.")
    ] = 0.4,
    passes: Passes = 1.0,
    learning_rate: Rate = 1.2e-4,
    batch_tokens: Tokens = 4096,
    seed: Seed = 2,
    family: FamilyName = None,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Prune whole heads and FFN columns with the fine-tuned model as teacher, and pack the result."""
    from qa_backends.training.prune import METHODS, Pruning
    from qa_backends.training.recipes import finish

    if method not in METHODS:
        raise InputError(f"There is no method '{method}'. Choose one of: {', '.join(METHODS)}.")
    questions = _questions(data)
    teacher = teacher or catalog.checkpoint_folder(catalog.family(family or catalog.default_family()), "baseline", say)
    with _steps() as advance:
        made = Pruning(
            questions,
            method=method,
            teacher=teacher,
            folder=out,
            density=density,
            passes=passes,
            learning_rate=learning_rate,
            max_tokens=batch_tokens,
            seed=seed,
            device=pick_device(device),
            progress=advance,
        ).run()
    settings = {"method": method, "density": density, "passes": passes, "learning_rate": learning_rate,
                "batch_tokens": batch_tokens, "seed": seed, "data": data.name, "questions": len(questions)}  # fmt: skip
    _made(finish(made, step="prune", parent=teacher, settings=settings), as_json)


@train_app.command("pack")
def train_pack(
    checkpoint: Annotated[Path, typer.Option("--checkpoint", help="A checkpoint with zeroed heads or columns.")],
    out: Annotated[Path, typer.Option("--out", help="Where the packed checkpoint goes.")],
    as_json: Json = False,
) -> None:
    """Really remove what was zeroed; packed and masked logits are compared."""
    from qa_backends.artefacts.hub import pack_checkpoint

    if not (checkpoint / "model.safetensors").is_file():
        raise InputError(f"{checkpoint} holds no model.safetensors. Name a folder that holds a checkpoint.")
    pack_checkpoint(checkpoint, out, checkpoint.name)
    _made(out, as_json)


def _questions(data: Path) -> list[Any]:
    from qa_backends.squad import read_squad

    questions = read_squad(data)
    if not questions:
        raise InputError(f"{data.name} holds no questions.")
    return questions


@contextmanager
def _steps() -> Iterator[Any]:
    """Progress of a training run, its length known once the first step is done."""
    with _bar("steps", None) as advance:
        yield lambda step: advance(
            step.number, f"loss {step.loss:.3f}, {step.windows_per_second:.0f} windows a second", step.of
        )


def _made(folder: Path, as_json: bool) -> None:
    from qa_backends.artefacts.manifest import read_manifest

    manifest = asdict(read_manifest(folder))
    if as_json:
        return show({"folder": str(folder), **manifest})
    console.print(f"{folder}: {manifest['encoder_parameters']:,} encoder parameters, {manifest['bytes'] / 1e6:.1f} MB")
    return None


@contextmanager
def _bar(what: str, total: int | None) -> Iterator[Any]:
    """A progress bar on stderr; gives the function that sets how much is done, with a note, and of how much."""
    note = TextColumn("{task.fields[note]}")
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), note)
    with Progress(*columns, console=errors) as progress:
        task = progress.add_task(what, total=total, note="")

        def advance(done: int, note: str = "", of: int | None = total) -> None:
            progress.update(task, completed=done, note=note, total=of)

        yield advance
