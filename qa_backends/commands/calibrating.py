"""``train calibrate``: what the confidence of a checkpoint's answers is worth, the temperature that mends it, and how
far "no answer" must be ahead to be the answer."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qa_backends import catalog
from qa_backends.checkpoints.fits import keep_fit
from qa_backends.checkpoints.manifest import NAME as MANIFEST
from qa_backends.checkpoints.manifest import Fitted, fitted_of, read_manifest
from qa_backends.checkpoints.sources import make_ready
from qa_backends.commands.runs import Also, Data, HoldOut, HoldOutSeed, asked_about
from qa_backends.commands.terminal import (
    Device,
    FamilyName,
    Json,
    asked_of,
    bar,
    console,
    pick_device,
    show,
    watched,
)
from qa_backends.errors import InputError
from qa_backends.measure.results.records import HELD_OUT
from qa_backends.squad import Question, read_squad
from qa_backends.training.heldout import ARTICLES, Split, split

if TYPE_CHECKING:
    from qa_backends.measure.quality.scoring import Figures


def calibrate(
    data: Data,
    backend: Annotated[
        str, typer.Option("--backend", help="Whose checkpoint, and what computes the logits.")
    ] = catalog.BASELINE,
    on: Also = None,
    hold_out: HoldOut = ARTICLES,
    hold_out_seed: HoldOutSeed = 0,
    family: FamilyName = None,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Fit a checkpoint's temperature and its threshold of "no answer" on held-out articles; its manifest stores both,
    for a model from a folder or the Hub the one of its packed copy, and the cache for every later copy.

    The temperature changes no answer, only what the confidence of each is worth. The threshold is used where the
    checkpoint was not trained on those articles. What both do is told of them, and of other questions.
    """
    of, chosen = asked_of(backend, family)
    parts = split(read_squad(data), hold_out, hold_out_seed)
    if not parts.articles:
        raise InputError("There is nothing to fit on. Hold out some articles: --hold-out 20.")
    sets = asked_about(parts.held_out, on)
    checkpoint = make_ready(of.source(chosen.checkpoint), watched)
    if not os.access(checkpoint, os.W_OK):
        raise InputError(
            f"{checkpoint / MANIFEST} cannot be written. Calibrate a copy of your own: --model FOLDER, where "
            "`train pack --checkpoint … --out FOLDER` wrote it."
        )
    fit(checkpoint, of, chosen, pick_device(device), parts, sets, [checkpoint])
    keep_fit(checkpoint)
    made = read_manifest(checkpoint)
    if as_json:
        show(asdict(fitted_of(checkpoint)) | made.settings["calibration"])
        return
    facts = made.settings["calibration"]
    console.print(
        f'{checkpoint}: temperature {made.temperature:.2f}, threshold of "no answer" {made.null_threshold:g} (the '
        f"articles give {facts['threshold']:g}). In percent, calibration error before and after, F1 before and at that:"
    )
    for each in facts["errors"]:
        figures = "{before:.1f}, {after:.1f}; {f1:.1f}, {f1_at_threshold:.1f}".format(**each)
        console.print(f"  {each['data']}, {each['questions']:,} questions: {figures}")


def fit(
    made: Path,
    of: catalog.Family,
    backend: catalog.Backend,
    device: str,
    parts: Split,
    sets: Mapping[str, Sequence[Question]],
    origins: Sequence[Path],
) -> Figures:
    """Writes to the manifest of ``made`` the temperature and the threshold of "no answer" that the held-out questions
    give, and what they change on each of the ``sets``, they among them. ``origins`` are what it was trained from, and
    who taught it. Returns the figures of the held-out questions without either.

    Of articles that it may have been trained on, a checkpoint knows which questions they leave open: the threshold that
    they give is noted, and not used.
    """
    from qa_backends.measure.quality.calibration import (
        Rivals,
        calibration_error,
        fitted_temperature,
        fitted_threshold,
        rivals,
    )
    from qa_backends.runtime import Runtime
    from qa_backends.training.provenance import add_to_manifest, seen_before

    runtime = Runtime(progress=watched)
    found: dict[str, Rivals] = {}
    for name, questions in sets.items():
        with bar(name, len(questions)) as advance:
            found[name] = rivals(runtime, of, backend, device, questions, watched, lambda done, _of: advance(done))
    seen, plain = seen_before(origins, parts.articles), of.settings.null_threshold
    best = plain if of.settings.always_answers else fitted_threshold(found[HELD_OUT])
    threshold = plain if seen else best
    temperature = fitted_temperature(found[HELD_OUT], threshold)
    errors: list[dict[str, Any]] = []
    for name, each in found.items():
        right = each.right(threshold)
        before, after = (calibration_error(each.confidence(at, threshold), right) for at in (1.0, temperature))
        errors.append({"data": name, "questions": len(right), "before": before, "after": after})
        errors[-1] |= {"f1": each.f1(plain), "f1_at_threshold": each.f1(best)}
    facts = {"articles": parts.articles, "seen_before": seen, "threshold": best, "errors": errors}
    add_to_manifest(made, {"calibration": facts}, Fitted(temperature, threshold))
    return found[HELD_OUT].figures(plain)
