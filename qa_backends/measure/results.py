"""Files under ``assets/results``: what was measured, on what, and of which weights."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qa_backends import catalog
from qa_backends.artefacts.manifest import file_hash, read_manifest
from qa_backends.errors import InputError
from qa_backends.measure.machine import this_machine

if TYPE_CHECKING:
    from qa_backends.catalog import Backend, Family
    from qa_backends.contract import Ran
    from qa_backends.measure.accuracy import Accuracy

SCHEMA = 1
RESULTS = Path(__file__).resolve().parent.parent.parent / "assets" / "results"
ACCURACY = RESULTS / "accuracy.json"
SQUAD_DEV = "dev-v2.0.json"
"""The data set whose F1 stands beside every latency."""


def checkpoint_hash(group: Family, row: Backend) -> str | None:
    """What identifies an embedded checkpoint in results; ``None`` for one that would have to be downloaded to know."""
    folder = group.checkpoints[row.checkpoint].folder
    if folder is None or not (catalog.MODELS / folder / "model.safetensors").is_file():
        return None
    return read_manifest(catalog.MODELS / folder).files["model.safetensors"]


def accuracy_row(
    group: Family,
    row: Backend,
    device: str,
    ran: Ran,
    data: Path,
    found: Accuracy,
    *,
    limit: int | None,
    seed: int,
) -> dict[str, Any]:
    """One backend's quality as it stands in a results file and in ``evaluate --json``."""
    return {
        "backend": f"{group.name}/{row.name}",
        "checkpoint": checkpoint_hash(group, row),
        "device": device,
        "data": data.name.removesuffix(".xz"),
        "data_sha256": file_hash(data),
        "limit": limit,
        "seed": seed,
        **asdict(found),
        "ran": asdict(ran),
        "machine": this_machine().as_dict(),
    }


def read_results(path: Path) -> dict[str, Any]:
    """A results file.

    Raises:
        InputError: it is not one, or of a schema this version does not know.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path.name} cannot be read as a results file: {error}.") from error
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise InputError(f"{path.name} is not a results file of schema {SCHEMA}.")
    return content


def write_results(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"schema": SCHEMA, **content}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def add_accuracy(path: Path, row: dict[str, Any]) -> None:
    """Adds the row to the file, in place of an earlier one of the same backend, device and data."""
    rows = read_results(path)["rows"] if path.is_file() else []
    same = ("backend", "device", "data", "limit", "seed")
    rows = [each for each in rows if any(each[key] != row[key] for key in same)]
    write_results(
        path, {"rows": sorted([*rows, row], key=lambda each: (each["data"], each["backend"], each["device"]))}
    )


def shipped_accuracy(group: Family, row: Backend, device: str = "cpu") -> dict[str, Any] | None:
    """The backend's measured quality on all of SQuAD v2 dev, on the device if possible, else on another.

    ``None`` where these very weights were not measured.
    """
    wanted = checkpoint_hash(group, row)
    found = [
        each for each in _shipped() if each["backend"] == f"{group.name}/{row.name}" and each["checkpoint"] == wanted
    ]
    return min(found, key=lambda each: bool(each["device"] != device), default=None)


@cache
def _shipped() -> list[dict[str, Any]]:
    """The rows that ship with the project and cover the whole data set."""
    if not ACCURACY.is_file():
        return []
    rows = read_results(ACCURACY)["rows"]
    return [each for each in rows if each["limit"] is None and each["data"] == SQUAD_DEV]
