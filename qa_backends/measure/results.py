"""Files under ``assets/results``: what was measured, on what, and of which weights."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qa_backends import catalog
from qa_backends.artefacts.manifest import read_manifest
from qa_backends.errors import InputError
from qa_backends.measure.datasets import SQUAD_DEV_SHA256
from qa_backends.measure.machine import this_machine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qa_backends.catalog import Backend, Family
    from qa_backends.contract import Ran
    from qa_backends.measure.accuracy import Accuracy
    from qa_backends.measure.datasets import DataSet

SCHEMA = 2
"""Documented in ``assets/results/README.md``; a file of another schema is refused with a sentence."""
RESULTS = Path(__file__).resolve().parent.parent.parent / "assets" / "results"
ACCURACY = RESULTS / "accuracy.json"
BENCHMARK = RESULTS / "benchmark-cpu.json"
OVERHEAD = RESULTS / "overhead-cpu.json"
QUALITY = ("device", "data", "n", "exact", "exact_interval", "f1", "f1_interval", "agreement")
"""What a latency row carries of its backend's accuracy row."""
MAX_RESULTS_BYTES = 64 * 1024 * 1024


def checkpoint_hash(group: Family, row: Backend) -> str | None:
    """What identifies an embedded checkpoint in results; ``None`` for one that would have to be downloaded to know."""
    folder = group.checkpoints[row.checkpoint].folder
    if folder is None or not (catalog.MODELS / folder / "model.safetensors").is_file():
        return None
    return read_manifest(catalog.MODELS / folder).files["model.safetensors"]


def measured_on_current_weights(row: dict[str, Any]) -> bool:
    """Whether a row's embedded checkpoint is still the one that ships; a reference runs on the baseline's."""
    family, _, name = row["backend"].partition("/")
    known = name in (each.name for each in catalog.BACKENDS)
    backend = catalog.backend(name if known else catalog.BASELINE)
    return bool(row["checkpoint"] == checkpoint_hash(catalog.family(family), backend))


def accuracy_row(
    group: Family,
    row: Backend,
    device: str,
    ran: Ran,
    data: DataSet,
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
        "data": data.name,
        "data_sha256": data.sha256,
        "limit": limit,
        "seed": seed,
        **asdict(found),
        "ran": asdict(ran),
        "machine": this_machine().as_dict(),
    }


def read_results(path: Path, kind: str | None = None) -> dict[str, Any]:
    """A results file, of the ``kind`` that is wanted.

    Raises:
        InputError: it is not one, or of a schema this version does not know.
    """
    try:
        if path.stat().st_size > MAX_RESULTS_BYTES:
            raise InputError(f"{path.name} is larger than {MAX_RESULTS_BYTES // 2**20} MiB; no results file is.")
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path.name} cannot be read as a results file: {error}.") from error
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise InputError(f"{path.name} is not a results file of schema {SCHEMA}. Measure again with this version.")
    if kind is not None and content.get("kind") != kind:
        raise InputError(f"{path.name} holds no {kind}. Choose a file that `{kind}` saved or this tab downloaded.")
    return content


def write_results(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(as_text(content), encoding="utf-8")


def as_text(content: dict[str, Any]) -> str:
    """JSON with a line for each key and for each row of a list: raw samples stay short and a change shows as one."""
    lines = [f' "{key}": {_value(value)}' for key, value in {"schema": SCHEMA, **content}.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _value(value: Any) -> str:
    if not isinstance(value, list) or not value:
        return json.dumps(value, ensure_ascii=False)
    return "[\n  " + ",\n  ".join(json.dumps(each, ensure_ascii=False) for each in value) + "\n ]"


def as_csv(rows: Sequence[dict[str, Any]]) -> str:
    """The rows without their raw samples; what is nested becomes columns such as ``against_baseline.low``."""
    flat = [_flat(row) for row in rows]
    columns = list(dict.fromkeys(key for row in flat for key in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue()


def _flat(row: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in row.items():
        if key in ("samples_ms", "blocks"):
            continue
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = "; ".join(map(str, value)) if isinstance(value, list | tuple) else value
    return found


def add_accuracy(path: Path, row: dict[str, Any]) -> None:
    """Adds the row to the file, in place of an earlier one of the same backend, device and data."""
    rows = read_results(path)["rows"] if path.is_file() else []
    same = ("backend", "device", "data_sha256", "limit", "seed")
    rows = [each for each in rows if any(each[key] != row[key] for key in same)]
    rows = sorted([*rows, row], key=lambda each: (each["data"], each["backend"], each["device"]))
    write_results(path, {"kind": "accuracy", "rows": rows})


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
    return [each for each in rows if each["limit"] is None and each["data_sha256"] == SQUAD_DEV_SHA256]
