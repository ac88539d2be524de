"""``evaluate``, ``bench``, ``overhead``, ``record`` and ``report``."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

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
    say,
    show,
)
from qa_backends.contract import Query
from qa_backends.errors import InputError, QAError
from qa_backends.squad import Question

app = typer.Typer()


@app.command()
def evaluate(
    data: Annotated[
        str, typer.Option("--data", help="A SQuAD-format file, plain or .xz; or `own`, or `squad-v2-dev` (downloaded).")
    ],
    backend: BackendName = catalog.PRESELECTED[-1],
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="A random part of so many questions.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Which part.")] = 0,
    family: FamilyName = None,
    device: Device = None,
    predictions: Annotated[
        Path | None, typer.Option("--predictions", help="Write the answers here, as SQuAD's own script reads them.")
    ] = None,
    against: Annotated[
        Path | None, typer.Option("--against", help="The baseline's predictions, to count equal answers.")
    ] = None,
    save: Annotated[Path | None, typer.Option("--save", help="Add the result to this results file.")] = None,
    as_json: Json = False,
) -> None:
    """Exact match and F1 of a backend on a data set."""
    from qa_backends.measure import accuracy
    from qa_backends.measure.datasets import data_set
    from qa_backends.measure.results import accuracy_row, add_accuracy
    from qa_backends.runtime import Runtime

    chosen = data_set(data, say)
    questions = accuracy.sample(chosen.questions, limit, seed)
    baseline = _predictions(against, questions) if against else None
    group, row = catalog.resolve(backend, family)
    where = pick_device(device)
    runtime = Runtime(say=say)
    with runtime.turn(where):
        ran = runtime.get(group, row, where).ran
    with bar("questions", len(questions)) as advance:
        answers = accuracy.through(runtime, group, row, where, say)
        scored, seconds = accuracy.evaluate(answers, questions, lambda done, _of: advance(done))
    found = accuracy.summarise(scored, seconds, baseline)
    result = accuracy_row(group, row, where, ran, chosen, found, limit=limit, seed=seed)
    if predictions:
        texts = accuracy.answers_by_id(scored)
        predictions.write_text(json.dumps(texts, ensure_ascii=False) + "\n", encoding="utf-8")
    if save:
        add_accuracy(save, result)
    if as_json:
        return show(result)
    spread = found.f1_interval
    console.print(
        f"{result['backend']}: F1 {found.f1:.2f} [{spread.low:.2f}-{spread.high:.2f}], exact {found.exact:.2f} on "
        f"{found.n} questions, {found.questions_per_second:.0f} questions a second"
    )
    return None


def _predictions(path: Path, questions: Sequence[Question]) -> list[str]:
    """The answer to each question. Raises InputError for a file without one for each of them."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return [str(found[each.id]) for each in questions]
    except (OSError, ValueError) as error:
        raise InputError(f"{path.name} cannot be read as predictions: {error}.") from error
    except (KeyError, TypeError) as error:
        raise InputError(
            f"{path.name} does not hold an answer to each of these questions ({type(error).__name__}: {error}). "
            "Write it with `evaluate --predictions` on the same data, limit and seed."
        ) from error


@app.command()
def bench(
    save: Annotated[Path | None, typer.Option("--save", help="Write the results file here.")] = None,
    backends: Annotated[str, typer.Option("--backends", help="Names with commas between; all by default.")] = "",
    lengths: Annotated[str, typer.Option("--lengths", help="Tokens, 32 to 512, with commas between.")] = "32,128,384",
    batches: Annotated[str, typer.Option("--batches", help="Questions at once, 1 to 64, commas between.")] = "1",
    runs: Annotated[int, typer.Option("--runs", help="Timed runs of each backend at a point, at most.")] = 60,
    seconds: Annotated[float, typer.Option("--seconds", help="Seconds at a point, at most.")] = 60.0,
    mixed: Annotated[bool, typer.Option("--mixed", help="Also batches of mixed lengths, sorted and unsorted.")] = False,
    reference: Annotated[
        str | None, typer.Option("--reference", help="hf-pipeline: transformers' pipeline on the baseline's weights.")
    ] = None,
    family: FamilyName = None,
    device: Annotated[
        str | None,
        typer.Option("--device", help="cpu, cuda, or both with a comma; a GPU by default where there is one."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Latency and throughput of whole answers, backends taking turns."""
    from qa_backends.measure.plan import Plan
    from qa_backends.measure.results import SCHEMA, write_results
    from qa_backends.measure.sweep import sweep
    from qa_backends.runtime import Runtime

    group = catalog.family(family or catalog.default_family())
    named = [catalog.resolve(name, group.name)[1].name for name in backends.split(",") if name]
    plan = Plan(
        family=group.name,
        backends=tuple(named or [row.name for row in catalog.BACKENDS]),
        devices=tuple(device.split(",")) if device else (pick_device(None),),
        lengths=_numbers("--lengths", lengths),
        batches=_numbers("--batches", batches),
        runs=runs,
        seconds=seconds,
        mixed=mixed,
        reference=reference,
    )
    with bar("points", len(plan.points())) as advance, _interruptible() as stopped:
        found = sweep(
            Runtime(say=say), plan, emit=lambda state: advance(state.done, state.status, state.of or None),
            stopped=stopped,
        )  # fmt: skip
    for each in found.left_out:
        say(f"left out: {' at '.join(filter(None, (each['backend'], each['point'])))}: {each['why']}")
    if not found.rows:
        raise QAError("Nothing was measured; nothing is saved.")
    if save:
        write_results(save, found.content())
    if as_json:
        return show({"schema": SCHEMA, **found.content()})
    console.print(_table(found.rows))
    return None


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Ctrl-C once ends the measurement and keeps what there is; twice ends the program."""
    stop = threading.Event()

    def interrupt(_number: int, _frame: object) -> None:
        stop.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield stop.is_set
    finally:
        signal.signal(signal.SIGINT, before)


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table("backend", "device", "tokens", "batch", "p50, ms", "p90, ms", "questions/s", "runs", "vs baseline")
    for each in rows:
        ratio = each["against_baseline"]
        pace = f"{ratio['value']:.2f}x [{ratio['low']:.2f}-{ratio['high']:.2f}]" if ratio else "-"
        if ratio and ratio["low"] <= 1 <= ratio["high"]:
            pace = f"tie [{ratio['low']:.2f}-{ratio['high']:.2f}]"
        table.add_row(
            each["backend"].rpartition("/")[2],
            each["device"],
            "mixed, " + each["order"] if each["tokens"] is None else str(each["tokens"]),
            str(each["batch"]),
            f"{each['p50_ms']:.2f}",
            f"{each['p90_ms']:.2f}" if each["p90_ms"] else "-",
            f"{each['questions_per_second']:.1f}",
            f"{each['runs']}{', unstable' if each['unstable'] else ''}",
            pace,
        )
    return table


def _numbers(option: str, text: str) -> tuple[int, ...]:
    if not all(each.strip().isdecimal() for each in text.split(",")):
        raise InputError(f"'{text}' is no list of numbers. Write them as in {option} 1,8,32.")
    return tuple(int(each) for each in text.split(","))


@app.command()
def overhead(
    save: Annotated[Path | None, typer.Option("--save", help="Write the results file here.")] = None,
    runs: Annotated[int, typer.Option("--runs", min=5, help="Timed answers at each length.")] = 200,
    family: FamilyName = None,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """The app's own cost beside the model: tokenise, decode, bookkeeping."""
    from qa_backends.measure import overhead as measure
    from qa_backends.measure.results import SCHEMA, write_results
    from qa_backends.runtime import Runtime

    group = catalog.family(family or catalog.default_family())
    with bar("lengths", len(measure.LENGTHS)) as advance:
        found = measure.overhead(Runtime(say=say), group, pick_device(device), runs=runs, progress=advance)
    if save:
        write_results(save, found)
    if as_json:
        return show({"schema": SCHEMA, **found})
    table = Table("tokens", "own cost, ms", "tokenise", "decode", "bookkeeping", "tokenizer's call", "model", "share")
    for row in found["rows"]:
        parts = ("own_ms", "tokenise_ms", "decode_ms", "bookkeeping_ms", "tokenizer_call_ms", "model_ms")
        table.add_row(str(row["tokens"]), *[f"{row[part]:.2f}" for part in parts], f"{row['share_of_model']:.1%}")
    console.print(table)
    return None


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
