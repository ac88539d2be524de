"""The command line: ``list``, ``answer``, ``evaluate``, ``build``, ``bench``, ``record``, ``report``, ``train``.

Exit codes: 0; 2 for bad usage or input; 1 for failure. Errors are one line on stderr; ``--debug`` shows the traceback.
"""

from __future__ import annotations

import json
import sys
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
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Ask a text a question on interchangeable backends, and measure what each costs.",
)
train_app = typer.Typer(no_args_is_help=True, help="Make checkpoints: fine-tune, prune, pack.")
app.add_typer(train_app, name="train")

errors = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
console = Console(highlight=False, markup=False)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
FamilyName = Annotated[str | None, typer.Option("--family", help="Family of models; QA_FAMILY or minilm by default.")]
Device = Annotated[str | None, typer.Option("--device", help="cpu or cuda; a GPU by default where there is one.")]
BackendName = Annotated[str, typer.Option("--backend", help="A name from `list`, or family/name.")]


def main() -> None:
    """Runs the command line and exits the process."""
    debug = "--debug" in sys.argv
    arguments = [each for each in sys.argv[1:] if each != "--debug"]
    try:
        app(arguments)
    except QAError as error:
        if debug:
            raise
        errors.print(f"Error: {' '.join(str(error).split())}")
        sys.exit(2 if isinstance(error, InputError) else 1)


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
    del device  # every backend runs on every device; accepted so that all commands take the same options
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
    console.print(f"{text}\n{reading.answer.confidence:.0%} confident, {cost}, {reading.backend} on {reading.ran.device}")
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
    with runtime.turn(where):
        loaded = runtime.get(group, row, where)
        with _bar("questions", len(questions)) as advance:
            found, _ = measure(loaded.reader, loaded.engine.forward, questions, lambda done, _of: advance(done))
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


class _bar:
    """A progress bar on stderr; entering gives the function that sets how much is done."""

    def __init__(self, what: str, total: int) -> None:
        columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.fields[note]}"))
        self._progress = Progress(*columns, console=errors)
        self._task = self._progress.add_task(what, total=total, note="")

    def __enter__(self) -> Any:
        self._progress.start()
        return lambda done, note="": self._progress.update(self._task, completed=done, note=note)

    def __exit__(self, *_: object) -> None:
        self._progress.stop()
