"""``build``: what backends run, made from checkpoints."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from qa_backends import catalog
from qa_backends.checkpoints.manifest import Manifest, read_manifest
from qa_backends.commands.terminal import Device, FamilyName, Json, console, pick_device, say, show, table_of, watched
from qa_backends.errors import QAError

app = typer.Typer()


@app.command()
def build(
    backend: Annotated[str | None, typer.Option("--backend", help="One backend; all of the family by default.")] = None,
    family: FamilyName = None,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Build what backends run on the device, each step checked against the one before; finished builds are kept."""
    from qa_backends.runtime import Runtime

    where = pick_device(device)
    if backend:
        of, chosen = catalog.resolve(backend, family)
        backends = [chosen]
    else:
        of = catalog.family(family or catalog.default_family())
        backends = []
        for each in catalog.offered(of, where):
            if refusal := catalog.unavailable(each, where):
                say(f"left out: {each.name}. {refusal}")
            else:
                backends.append(each)
    runtime, built, failed = Runtime(progress=watched), dict[str, Manifest](), list[str]()
    for each in backends:
        try:
            built[f"{of.name}/{each.name}"] = read_manifest(runtime.make_ready(of, each, where, watched))
        except QAError as error:
            if backend:
                raise
            say(f"failed: {each.name}. {error}")
            failed.append(each.name)
    _show(built, as_json)
    if failed:
        raise QAError(f"Not built, for the reasons above: {', '.join(failed)}. The others are.")


def _show(built: dict[str, Manifest], as_json: bool) -> None:
    """What was built, by backend."""
    if as_json:
        return show([{"backend": name, **asdict(manifest)} for name, manifest in built.items()])
    table = table_of("backend", "step", "precision", "MB", "encoder parameters", "largest logit difference")
    for name, made in built.items():
        difference = made.largest_logit_difference
        shown = "-" if difference is None else f"{difference:.1e}"
        table.add_row(name, made.step, made.precision, f"{made.bytes / 1e6:.1f}", f"{made.encoder_parameters:,}", shown)
    console.print(table)
    return None
