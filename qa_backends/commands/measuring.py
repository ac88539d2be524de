"""``evaluate``, ``overhead``, ``long-texts``, ``record`` and ``report``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from qa_backends import catalog
from qa_backends.commands.terminal import (
    BackendName,
    Device,
    FamilyName,
    Json,
    asked_of,
    bar,
    check_writable,
    console,
    pick_device,
    show,
    table_of,
    watched,
)
from qa_backends.errors import InputError, QAError
from qa_backends.measure.benchmark.overhead import RUNS
from qa_backends.paths import write_whole
from qa_backends.squad import SHOWN, Question

app = typer.Typer()


@app.command()
def evaluate(
    data: Annotated[
        str,
        typer.Option("--data", help="A SQuAD-format file, or `own`, `everyday`, `squad-v2-dev` (downloaded)."),
    ],
    backend: BackendName = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="A random part of so many questions.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed that --limit draws its questions by.")] = 0,
    family: FamilyName = None,
    device: Device = None,
    predictions: Annotated[
        Path | None, typer.Option("--predictions", help="Write the answers here, as SQuAD's own script reads them.")
    ] = None,
    against: Annotated[
        Path | None, typer.Option("--against", help="The baseline's predictions, to count equal answers.")
    ] = None,
    parent: Annotated[
        Path | None,
        typer.Option("--parent", help="The predictions of the same weights in FP32, to tell what rounding them costs."),
    ] = None,
    save: Annotated[Path | None, typer.Option("--save", help="Add the result to this results file.")] = None,
    as_json: Json = False,
) -> None:
    """Exact match and F1 of a backend on a data set."""
    from dataclasses import asdict

    from qa_backends.measure.quality import scoring
    from qa_backends.measure.quality.datasets import data_set
    from qa_backends.measure.quality.evaluation import EvaluationTask, quality_record
    from qa_backends.measure.results.files import add_quality, read_to_add
    from qa_backends.runtime import Runtime

    check_writable(save, predictions)
    if save and save.is_file():
        read_to_add(save)  # before hours of answers that could not be added to it
    of, chosen = asked_of(backend, family)
    task = EvaluationTask(of, pick_device(device), data_set(data, watched), limit, seed)
    questions = scoring.sample(task.data.questions, limit, seed)
    if predictions or against or parent:
        _check_told_apart(questions)
    baseline, unrounded = (_predictions(each, questions) if each else None for each in (against, parent))
    runtime = Runtime(progress=watched)
    runtime.make_ready(of, chosen, task.device, watched)
    with runtime.turn(task.device):
        ran = runtime.get(of, chosen, task.device).ran
    with bar("questions", len(questions)) as advance:
        answers = scoring.through(runtime, of, chosen, task.device, watched)
        here = chosen.engine_class.computes_here
        scored, seconds = scoring.evaluate(answers, questions, lambda done, _of: advance(done), here=here)
    record = quality_record(task, chosen, ran, scoring.figures(scored, seconds, baseline, unrounded))
    if predictions:
        write_whole(predictions, json.dumps(scoring.answers_by_id(scored), ensure_ascii=False) + "\n")
    if save:
        add_quality(save, record)
    if as_json:
        return show(asdict(record))
    spread, speed = record.f1_interval, record.questions_per_second
    pace = f", {speed:.0f} questions a second" if speed else "; other work took too much of the machine to tell a speed"
    beside = f"; the same answer on {record.agreement:.2f} %" if record.agreement is not None else ""
    beside += f", F1 {record.f1_difference.spelt()} against theirs" if record.f1_difference else ""
    beside += f"; F1 {record.parent_difference.spelt()} by rounding" if record.parent_difference else ""
    console.print(
        f"{record.backend}: F1 {record.f1:.2f} [{spread.low:.2f}-{spread.high:.2f}], exact {record.exact:.2f} on "
        f"{record.n} question{'s' if record.n != 1 else ''}{pace}{beside}"
    )
    return None


def _check_told_apart(questions: Sequence[Question]) -> None:
    """Raises InputError where answers that are kept by their question's id would take each other's place."""
    from qa_backends.measure.quality.scoring import shared_id

    if (shared := shared_id(questions)) is not None:
        raise InputError(
            f"The id '{shared[:SHOWN]}' is that of several questions, and --predictions, --against and --parent know "
            "answers by it. Give each question an id of its own."
        )


def _predictions(path: Path, questions: Sequence[Question]) -> list[str]:
    """The answer to each question. Raises InputError for a file without one for each of them."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        answers = [found[each.id] or "" for each in questions]
        if strange := next((each for each in answers if not isinstance(each, str)), None):
            raise TypeError(f"{strange} is no text")
        return answers
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path.name} cannot be read as predictions: {error}.") from error
    except (KeyError, TypeError) as error:
        raise InputError(
            f"{path.name} does not hold an answer to each of these questions ({type(error).__name__}: {error}). "
            "Write it with `evaluate --predictions` on the same data, limit and seed."
        ) from error


@app.command()
def overhead(
    save: Annotated[Path | None, typer.Option("--save", help="Write the results file here.")] = None,
    runs: Annotated[int, typer.Option("--runs", min=5, help="Timed answers at each length.")] = RUNS,
    family: FamilyName = None,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """The app's own cost beside the model: tokenise, decode, bookkeeping."""
    from qa_backends.measure.benchmark import overhead as measure
    from qa_backends.measure.benchmark.plan import LENGTHS
    from qa_backends.measure.results.files import as_dict, write_results
    from qa_backends.runtime import Runtime

    check_writable(save)
    of = catalog.family(family or catalog.default_family())
    where = pick_device(device)
    backends = measure.companions(of, where)
    with bar("measurements", len(LENGTHS) * len(backends)) as advance:
        found = measure.overhead(Runtime(progress=watched), of, backends, where, runs=runs, progress=advance)
    if save:
        write_results(save, found)
    if as_json:
        return show(as_dict(found))
    head = ("own cost, ms", "tokenise", "decode", "bookkeeping", "tokenizer's call", "text kept", "model", "share")
    table = table_of("backend", "tokens", *head)
    for each in found.rows:
        parts = (
            each.own_ms, each.tokenise_ms, each.decode_ms, each.bookkeeping_ms, each.tokenizer_call_ms,
            each.tokenise_kept_ms, each.model_ms,
        )  # fmt: skip
        table.add_row(
            each.name,
            str(each.tokens),
            *[f"{part:.2f}" for part in parts],
            f"{100 * each.share_of_model:.1f} %",
        )
    console.print(table)
    return None


@app.command()
def long_texts(
    backend: BackendName = None,
    save: Annotated[Path | None, typer.Option("--save", help="Add the backend's result to this results file.")] = None,
    family: FamilyName = None,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """What texts up to the longest take, and how much memory."""
    from qa_backends.measure.benchmark import long_texts as measure
    from qa_backends.measure.results.files import add_long_texts, as_dict, read_results
    from qa_backends.measure.results.long_texts import HEAD, cells
    from qa_backends.measure.results.records import LongTexts
    from qa_backends.runtime import Runtime

    check_writable(save)
    if save and save.is_file():
        read_results(save, LongTexts)
    of, chosen = catalog.resolve(backend, family)
    with bar("lengths", len(measure.CHARACTERS)) as advance:
        found = measure.long_texts(Runtime(progress=watched), of, chosen, pick_device(device), progress=advance)
    if save:
        add_long_texts(save, found.rows)
    if as_json:
        return show(as_dict(found))
    table = table_of("backend", *HEAD)
    for each in found.rows:
        table.add_row(each.name, *cells(each))
    console.print(table)
    return None


@app.command()
def record(
    save: Annotated[Path, typer.Option("--save", help="The file the page shows before anybody asks.")],
    family: FamilyName = None,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Record the comparison that the page shows on first sight: the first example, by the three main backends and the
    fastest."""
    from qa_backends.asking import recorded
    from qa_backends.measure.results.files import as_dict, write_results
    from qa_backends.runtime import Runtime

    check_writable(save)
    of = catalog.family(family or catalog.default_family())
    found = recorded.record(Runtime(progress=watched), of, pick_device(device))
    write_results(save, found)
    if as_json:
        return show(as_dict(found))
    console.print(f"recorded {len(found.view.cards)} backends in {save}")
    return None


@app.command()
def report(
    check: Annotated[bool, typer.Option("--check", help="Change nothing; exit with 1 where one is stale.")] = False,
) -> None:
    """Write the tables of the README, the model card and the documents from the results that ship."""
    from qa_backends.measure.results.documents import refreshed
    from qa_backends.serving.load import report as serving

    for path, content in (refreshed() | serving.refreshed()).items():
        if not check:
            write_whole(path, content)
        elif content != path.read_text(encoding="utf-8"):
            raise QAError(f"The table in {path.name} is stale. Write it again: python -m qa_backends report")
