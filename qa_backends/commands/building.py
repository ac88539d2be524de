"""``build``: what backends run, made from checkpoints."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.table import Table

from qa_backends import catalog
from qa_backends.commands.terminal import Device, FamilyName, Json, console, say, show

app = typer.Typer()


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
