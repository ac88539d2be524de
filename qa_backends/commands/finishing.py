"""What becomes of a checkpoint that was made: it gets its manifest, is asked of the held-out articles, and is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from qa_backends import catalog
from qa_backends.checkpoints.manifest import read_manifest
from qa_backends.commands.calibrating import fit
from qa_backends.commands.runs import Chosen
from qa_backends.commands.terminal import console, show
from qa_backends.training.heldout import Split


def finish(
    made: Path, step: str, origins: Sequence[Path], settings: dict[str, Any], chosen: Chosen, *, as_json: bool
) -> None:
    """Stores what was trained from the first of the ``origins``, by the others, measures it and shows it."""
    from qa_backends.training.provenance import finish as stored

    stored(made, step=step, parent=origins[0], settings=settings)
    measure_held_out(made, chosen.parts, chosen.run.device, origins)
    show_made(made, as_json)


def measure_held_out(made: Path, parts: Split, device: str, origins: Sequence[Path]) -> None:
    """Writes to the manifest what is fitted on the held-out articles, which they are, and what the checkpoint answers
    of them, in percent, as recipes are compared: without the threshold of "no answer" that is fitted. One that was
    asked of these articles before is left as it is: it may have been calibrated on more since."""
    from qa_backends.measure.results.records import HELD_OUT
    from qa_backends.training.provenance import add_to_manifest, seen_before

    before = read_manifest(made).settings.get("held_out", {}).get("articles", ())
    if not parts.articles or tuple(before) == parts.articles:
        return
    of = catalog.family_of(made, "trained", "Just trained")
    found = fit(made, of, catalog.backend(catalog.BASELINE), device, parts, {HELD_OUT: parts.held_out}, origins)
    facts: dict[str, Any] = {
        "articles": parts.articles,
        "seen_before": seen_before(origins, parts.articles),
        "questions": found.n,
        "f1_interval": (found.f1_interval.low, found.f1_interval.high),
    }
    facts |= {each: getattr(found, each) for each in ("exact", "f1", "has_ans_f1", "no_ans_f1")}
    add_to_manifest(made, {"held_out": facts})


def show_made(folder: Path, as_json: bool) -> None:
    """Shows what was made."""
    manifest = read_manifest(folder)
    if as_json:
        show({"folder": str(folder), **asdict(manifest)})
    else:
        console.print(f"{folder}: {manifest.encoder_parameters:,} encoder parameters, {manifest.bytes / 1e6:.1f} MB")
