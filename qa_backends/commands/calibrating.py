"""``train calibrate``: what the confidence of a checkpoint's answers is worth, and the temperature that mends it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from qa_backends import catalog
from qa_backends.checkpoints.manifest import read_manifest
from qa_backends.checkpoints.sources import make_ready
from qa_backends.commands.runs import Data, HoldOut, HoldOutSeed
from qa_backends.commands.terminal import (
    Device,
    FamilyName,
    Json,
    bar,
    console,
    pick_device,
    questions_of,
    show,
    watched,
)
from qa_backends.errors import InputError
from qa_backends.squad import Question
from qa_backends.training.heldout import ARTICLES, Split, split

HELD_OUT = "held-out articles"
"""What their questions are called beside other data sets."""


def calibrate(
    data: Data,
    backend: Annotated[
        str, typer.Option("--backend", help="Whose checkpoint, and what computes the logits.")
    ] = catalog.BASELINE,
    on: Annotated[
        list[str] | None,
        typer.Option("--on", help="Also tell the error on: `own`, `everyday`, `squad-v2-dev`, a SQuAD-format file."),
    ] = None,
    hold_out: HoldOut = ARTICLES,
    hold_out_seed: HoldOutSeed = 0,
    family: FamilyName = None,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Fit the temperature of a checkpoint's confidence on held-out articles, and store it in the checkpoint's manifest.

    It changes no answer, only what the confidence of each is worth.
    """
    from qa_backends.measure.quality.datasets import data_set

    of, chosen = catalog.resolve(backend, family)
    parts = split(questions_of(data), hold_out, hold_out_seed)
    if not parts.articles:
        raise InputError("There is nothing to fit on. Hold out some articles: --hold-out 20.")
    sets = {each.name: each.questions for each in (data_set(name, watched) for name in on or ())}
    checkpoint = make_ready(of.source(chosen.checkpoint), watched)
    fit_temperature(checkpoint, of, chosen, pick_device(device), parts, sets, checkpoint)
    made = read_manifest(checkpoint)
    if as_json:
        show({"temperature": made.temperature, **made.settings["calibration"]})
        return
    console.print(f"{checkpoint}: temperature {made.temperature:.2f}; calibration error before and at it, in percent:")
    for each in made.settings["calibration"]["errors"]:
        console.print(f"  {each['data']}, {each['questions']:,} questions: {each['before']:.1f}, {each['after']:.1f}")


def fit_temperature(
    made: Path,
    of: catalog.Family,
    backend: catalog.Backend,
    device: str,
    parts: Split,
    sets: Mapping[str, Sequence[Question]],
    start: Path,
) -> None:
    """Writes to the manifest of ``made`` the temperature that the held-out questions give, and the calibration error
    before and at it: on them, and on the other ``sets``. ``start`` is what it was trained from."""
    from qa_backends.measure.quality.calibration import Rivals, calibration_error, fitted, rivals
    from qa_backends.runtime import Runtime
    from qa_backends.training.provenance import add_to_manifest, seen_before

    threshold, runtime = of.settings.null_threshold, Runtime(progress=watched)
    found: dict[str, Rivals] = {}
    for name, questions in {HELD_OUT: parts.held_out, **sets}.items():
        with bar(f"confidence, {name}", len(questions)) as advance:
            found[name] = rivals(runtime, of, backend, device, questions, watched, lambda done, _of: advance(done))
    temperature = fitted(found[HELD_OUT], threshold)
    errors: list[dict[str, Any]] = []
    for name, each in found.items():
        right = each.right(threshold)
        before, after = (calibration_error(each.confidence(at, threshold), right) for at in (1.0, temperature))
        errors.append({"data": name, "questions": len(right), "before": before, "after": after})
    facts = {"articles": parts.articles, "seen_before": seen_before(start, parts.articles), "errors": errors}
    add_to_manifest(made, {"calibration": facts}, temperature=temperature)
