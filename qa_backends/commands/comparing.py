"""``train compare``: what a technique is worth, by a checkpoint that was trained with it and one that was not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qa_backends import catalog
from qa_backends.checkpoints.manifest import NAME as MANIFEST
from qa_backends.checkpoints.manifest import Manifest, read_manifest
from qa_backends.commands.runs import Also, Data, HoldOut, HoldOutSeed, asked_about
from qa_backends.commands.terminal import (
    Device,
    Json,
    bar,
    check_writable,
    console,
    pick_device,
    show,
    table_of,
    watched,
)
from qa_backends.errors import InputError
from qa_backends.squad import Question, read_squad
from qa_backends.training.heldout import ARTICLES, split
from qa_backends.training.provenance import weights_of

if TYPE_CHECKING:
    from rich.table import Table

    from qa_backends.measure.quality.scoring import Scored
    from qa_backends.measure.results.records import Technique

NOT_CHOSEN = ("before", "calibration", "changes", "held_out", "questions", "start_from")
"""What a manifest's settings hold beside what was chosen. ``changes`` are named one by one, and what a run began as is
the same for all, whatever its folder is called."""
HASH = "_sha256"
"""How the names of settings end that tell files apart."""


def compare(
    checkpoints: Annotated[
        list[Path], typer.Argument(help="Folders of checkpoints, first the one that the others are compared with.")
    ],
    data: Data,
    on: Also = None,
    hold_out: HoldOut = ARTICLES,
    hold_out_seed: HoldOutSeed = 0,
    save: Annotated[Path | None, typer.Option("--save", help="Write the results file here.")] = None,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """What runs that began alike did otherwise than the first, and what that was worth on the held-out articles, and on
    other questions. Each is asked at its own threshold of "no answer".
    """
    from qa_backends.measure.results.files import as_dict, write_results
    from qa_backends.measure.results.records import Techniques
    from qa_backends.measure.timing.machine import this_machine

    check_writable(save)
    parts, computing = split(read_squad(data), hold_out, hold_out_seed), pick_device(device)
    if len(checkpoints) < 2 or not parts.articles:
        raise InputError("There is nothing to compare. Name two checkpoints at least, and articles: --hold-out 20.")
    runs = [(folder, _made(folder)) for folder in checkpoints]
    control = runs[0][1]
    for folder, made in runs:
        _check_comparable(folder, made, control, parts.articles)
    sets = asked_about(parts.held_out, on)
    rows = [row for name, questions in sets.items() for row in _rows(runs, name, questions, computing)]
    seen = any(made.settings["held_out"]["seen_before"] for _, made in runs)
    compared = Techniques(this_machine(), control.parent, parts.articles, seen, tuple(rows))
    if save:
        write_results(save, compared)
    if as_json:
        return show(as_dict(compared))
    return console.print(_table(rows))


def _made(folder: Path) -> Manifest:
    """Raises InputError where the folder is not what a run has made."""
    weights_of(folder)
    if not (folder / MANIFEST).is_file():
        raise InputError(f"{folder} holds no {MANIFEST}. Name the folder that a run wrote, as in runs/with/model.")
    return read_manifest(folder)


def _table(rows: Sequence[Technique]) -> Table:
    table = table_of("otherwise", "data", "F1", "less the first's")
    for each in rows:
        spelt = each.f1_difference.spelt() if each.f1_difference else "the first"
        table.add_row(each.otherwise or "nothing", each.data, f"{each.f1:.2f}", spelt)
    return table


def _rows(
    runs: Sequence[tuple[Path, Manifest]], data: str, questions: Sequence[Question], device: str
) -> Iterator[Technique]:
    """What each was told and how it answers the questions of ``data``, beside the first's answers."""
    from qa_backends.measure.quality.scoring import figures
    from qa_backends.measure.results.records import Technique

    without: list[str] | None = None
    for folder, made in runs:
        scored, _ = answers_of(folder, data, questions, device)
        found = figures(scored, None, without)
        yield Technique(
            _otherwise(made, runs[0][1]), made.step, _chosen(made), made.null_threshold, found.n, found.f1,
            found.f1_interval, found.has_ans_f1, found.no_ans_f1, found.f1_difference, data,
        )  # fmt: skip
        without = without or [each.answer.text for each in scored]


def answers_of(
    checkpoint: Path, data: str, questions: Sequence[Question], device: str
) -> tuple[list[Scored], float | None]:
    """A trained checkpoint's answers to the questions of ``data``, scored, and the seconds that they took."""
    from qa_backends.measure.quality import scoring
    from qa_backends.runtime import Runtime

    of, backend = catalog.family_of(checkpoint, "trained", "Just trained"), catalog.backend(catalog.BASELINE)
    answers = scoring.through(Runtime(progress=watched), of, backend, device, watched)
    with bar(data, len(questions)) as advance:
        return scoring.evaluate(answers, questions, lambda done, _of: advance(done))


def _check_comparable(folder: Path, made: Manifest, control: Manifest, articles: Sequence[str]) -> None:
    """Raises InputError where a difference would say nothing of what was done otherwise."""
    if "held_out" not in made.settings:
        raise InputError(f"{folder} was trained without held-out articles, and cannot be compared on them.")
    if made.parent != control.parent:
        raise InputError(
            f"{folder} did not begin as the first did. Compare runs that were trained from one checkpoint, by the "
            "folders that they wrote."
        )
    if set(made.settings["held_out"]["articles"]) != set(articles):
        raise InputError(
            f"{folder} was trained with other articles held out. Give the data, --hold-out and --hold-out-seed of its "
            "run."
        )


def _chosen(made: Manifest) -> dict[str, Any]:
    """A run's settings, by name."""
    changes: dict[str, Any] = made.settings.get("changes", {})
    return {name: value for name, value in made.settings.items() if name not in NOT_CHOSEN} | changes


def _otherwise(made: Manifest, control: Manifest) -> str:
    """What was done otherwise than in the control, as in "ema 0.999"; of another program its name, and what differs of
    the settings that both have."""
    there, before = _chosen(made), _chosen(control)
    same = made.step == control.step
    names = sorted(there.keys() | before.keys() if same else there.keys() & before.keys())
    pairs = ((name, there.get(name), before.get(name)) for name in names)
    differing = dict.fromkeys(_spelt(name, one) for name, one, other in pairs if _differ(name, one, other))
    return ", ".join(differing if same else [f"train {made.step}", *differing])


def _differ(name: str, one: Any, other: Any) -> bool:
    """Whether two settings do; of a file whose hash one of the manifests, an earlier one, lacks nothing is known."""
    return one != other and not (name.endswith(HASH) and None in (one, other))


def _spelt(name: str, value: Any) -> str:
    """A setting as it is told; of a table of facts, and of a file by its hash, that there is another."""
    if isinstance(value, dict) or name.endswith(HASH):
        return f"another {name.removesuffix(HASH)}"
    return f"{name} {value if isinstance(value, str) else json.dumps(value)}"
