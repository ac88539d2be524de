"""``list`` and ``answer``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from qa_backends import catalog
from qa_backends.commands.terminal import BackendName, Device, FamilyName, Json, console, pick_device, say, show
from qa_backends.contract import Query, Reading
from qa_backends.errors import InputError

app = typer.Typer()


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
