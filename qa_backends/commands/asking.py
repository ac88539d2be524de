"""``list``, ``families`` and ``answer``."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from qa_backends import catalog
from qa_backends.checkpoints.sources import commit_of
from qa_backends.commands.terminal import (
    BackendName,
    Device,
    FamilyName,
    Json,
    asked_of,
    console,
    pick_device,
    say,
    show,
    table_of,
    watched,
)
from qa_backends.contract import Query, valid_text
from qa_backends.errors import InputError
from qa_backends.reader.reader import MAX_CONTEXT_BYTES, MAX_CONTEXT_CHARS, check

app = typer.Typer()


@app.command("list")
def list_backends(family: FamilyName = None, device: Device = None, as_json: Json = False) -> None:
    """The backends, and why one cannot run here if it cannot; of "untested" ones no F1 ships."""
    from qa_backends.measure.results.shipped import tested

    of = catalog.family(family or catalog.default_family())
    where = pick_device(device) if device is not None else None
    found = []
    for each in catalog.offered(of):
        missing = catalog.unavailable(each, where)
        found.append(
            {
                "backend": f"{of.name}/{each.name}",
                "title": each.title,
                "engine": each.engine_class.title,
                "summary": each.summary,
                "precision": each.precision,
                "devices": list(each.runs_on),
                "available": missing is None,
                "tested": tested(each),
                "reason": str(missing) if missing else None,
            }
        )
    if as_json:
        return show(found)
    table = table_of("backend", "engine", "what it is", "here")
    for line in found:
        here = [] if line["tested"] else ["untested"]
        here += [str(line["reason"])] if line["reason"] else []
        table.add_row(*[str(line[key]) for key in ("backend", "engine", "summary")], "; ".join(here) or "available")
    console.print(table)
    return None


@app.command()
def families(as_json: Json = False) -> None:
    """The families of models: languages, where they come from, and the F1 that their makers report."""
    found: list[dict[str, Any]] = [
        {
            "family": each.name,
            "title": each.title,
            "kind": each.kind,
            "language": each.language,
            "checkpoints": [name for name, _ in each.checkpoints],
            "download_mb": each.download_mb,
            "commits": {name: commit_of(source) for name, source in each.checkpoints if source.remote},
            "published": {name: asdict(figure) for name, figure in each.published},
            "summary": each.summary,
        }
        for each in catalog.families()
    ]
    if as_json:
        return show(found)
    table = table_of("family", "what it is", "checkpoints", "more")
    for line in found:
        table.add_row(line["family"], line["title"], ", ".join(line["checkpoints"]), line["summary"])
    console.print(table)
    return None


@app.command()
def answer(
    question: Annotated[str, typer.Option("--question")],
    backend: BackendName = None,
    context: Annotated[str | None, typer.Option("--context", help="The text itself.")] = None,
    context_file: Annotated[
        Path | None, typer.Option("--context-file", help="A UTF-8 file with the text; - for standard input.")
    ] = None,
    family: FamilyName = None,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Answer one question about one text."""
    from qa_backends.asking.answer import answer_json
    from qa_backends.runtime import Runtime

    query = Query(valid_text(question), valid_text(_text(context, context_file)))
    check(query)  # before anything is downloaded or built
    of, chosen = asked_of(backend, family)
    runtime, where = Runtime(progress=watched), pick_device(device)
    runtime.make_ready(of, chosen, where, watched)
    with runtime.turn(where) as turn:
        prepared = turn.prepare(of, query)
        reading, cold_s = turn.warm_answer(of, chosen, prepared)
    for notice in reading.notices:
        say(notice)
    if as_json:
        return show(answer_json(reading, cold_s))
    text = reading.answer.text if reading.answer.span else "(no answer in this text)"
    cost = f"{reading.times.compute_s * 1000:.1f} ms"
    console.print(
        f"{text}\n{100 * reading.answer.confidence:.0f} % confident, {cost}, {reading.backend} on {reading.ran.device}"
    )
    return None


def _text(context: str | None, file: Path | None) -> str:
    if (context is None) == (file is None):
        raise InputError("Give the text by either --context or --context-file.")
    if file is None:
        return str(context)
    try:
        with nullcontext(sys.stdin.buffer) if str(file) == "-" else file.open("rb") as text:
            raw = text.read(MAX_CONTEXT_BYTES + 1)
        if len(raw) > MAX_CONTEXT_BYTES:
            raise InputError(f"The text has more than {MAX_CONTEXT_CHARS:,} characters, the limit. Shorten it.")
        return raw.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        name = "Standard input" if str(file) == "-" else str(file)
        raise InputError(f"{name} cannot be read as UTF-8 text: {error}.") from error
