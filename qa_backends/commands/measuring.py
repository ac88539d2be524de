"""``evaluate``, ``bench``, ``record`` and ``report``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from qa_backends import catalog
from qa_backends.commands.terminal import (
    ASSETS,
    BackendName,
    Device,
    FamilyName,
    Json,
    bar,
    console,
    pick_device,
    questions_of,
    say,
    show,
)
from qa_backends.contract import Query
from qa_backends.errors import InputError, QAError

app = typer.Typer()


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

    questions = sample(questions_of(data), limit, seed)
    group, row = catalog.resolve(backend, family)
    where = pick_device(device)
    runtime = Runtime(say=say)
    with runtime.turn(where) as turn:
        loaded = runtime.get(group, row, where)
        with bar("questions", len(questions)) as advance:
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

    group = catalog.family(family or catalog.default_family())
    rows = [catalog.resolve(name, group.name)[1] for name in backends.split(",") if name] or list(catalog.BACKENDS)
    wanted = [_length(each) for each in lengths.split(",")]
    questions = questions_of(ASSETS / "questions.json")
    text = "\n\n".join(dict.fromkeys(each.context for each in questions))
    with bar("lengths", len(wanted)) as advance:
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
    example = json.loads((ASSETS / "examples.json").read_text(encoding="utf-8"))[0]
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
