"""Results files: JSON with a schema and a kind, written whole, and read by checking every field."""

from __future__ import annotations

import csv
import io
import json
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

from filelock import FileLock
from pydantic import TypeAdapter, ValidationError

from qa_backends.errors import InputError
from qa_backends.measure.results.records import (
    Benchmark,
    BenchmarkRecord,
    LongText,
    LongTexts,
    QualityRecord,
    QualityTable,
    ResultsFile,
    WholeEvaluation,
)
from qa_backends.paths import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

SCHEMA = 2
"""Documented in ``assets/results/README.md``; a file of another schema is refused with a sentence."""
MAX_RESULTS_BYTES = 64 * 1024 * 1024
T = TypeVar("T", bound=ResultsFile)


def read_benchmark(path: Path) -> Benchmark:
    """Raises InputError, see ``read_results``."""
    return read_results(path, Benchmark)


def read_quality(path: Path) -> tuple[QualityRecord, ...]:
    """Raises InputError, see ``read_results``."""
    return read_results(path, QualityTable).rows


def read_to_add(path: Path) -> tuple[QualityRecord, ...]:
    """What is known of quality, from a file that more is added to.

    Raises:
        InputError: see ``read_results``; or it also holds every answer, which would be lost.
    """
    found = read_results(path, WholeEvaluation)
    if found.questions:
        raise InputError(f"{path.name} also holds every answer, which adding to it would lose. Save to another file.")
    return found.rows


def read_results(path: Path, record: type[T]) -> T:
    """A results file of the record's kind.

    Raises:
        InputError: it is not one, is of a schema this version does not know, or does not hold what such files hold.
    """
    try:
        if path.stat().st_size > MAX_RESULTS_BYTES:
            raise InputError(f"{path.name} is larger than {MAX_RESULTS_BYTES // 2**20} MiB; no results file is.")
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path.name} cannot be read as a results file: {error}.") from error
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise InputError(f"{path.name} is not a results file of schema {SCHEMA}. Measure again with this version.")
    if content.get("kind") != record.kind:
        raise InputError(f"{path.name} holds no {record.kind}. Choose a file that holds one.")
    try:
        return TypeAdapter(record).validate_python(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(
            f"{path.name} does not hold what a file of the kind '{record.kind}' holds ({place}: {first['msg']}). "
            "Choose one that this version wrote."
        ) from error


def write_results(path: Path, record: ResultsFile) -> None:
    """Replaces the file, whole."""
    write_whole(path, as_text(record))


def as_dict(record: ResultsFile) -> dict[str, Any]:
    """As a results file holds it."""
    content: Any = record  # a dataclass, which no type says of all of them
    return {"schema": SCHEMA, "kind": record.kind, **asdict(content)}


def as_text(record: ResultsFile) -> str:
    """JSON with a line for each key and for each record of a list: samples stay short, a change shows as one line."""
    lines = [f' "{key}": {_value(value)}' for key, value in as_dict(record).items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _value(value: Any) -> str:
    if not isinstance(value, list | tuple) or not value:
        return json.dumps(value, ensure_ascii=False)
    return "[\n  " + ",\n  ".join(json.dumps(each, ensure_ascii=False) for each in value) + "\n ]"


def as_csv(records: Sequence[BenchmarkRecord] | Sequence[QualityRecord]) -> str:
    """The records without their samples; what is nested becomes columns such as ``against_baseline.low``."""
    flat = [_flat(asdict(each)) for each in records]
    found = dict.fromkeys(key for each in flat for key in each)
    columns = [key for key in found if not any(each.startswith(f"{key}.") for each in found)]  # of some it is nested
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue()


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        if key in ("samples_ms", "blocks"):
            continue
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = "; ".join(map(str, value)) if isinstance(value, list | tuple) else value
    return found


def add_quality(path: Path, record: QualityRecord) -> None:
    """Adds the record to the file, in place of an earlier one of the same backend, device and data.

    Two processes that add at once wait for each other, so that neither's record is lost.
    """
    with _alone_with(path):
        before = read_to_add(path) if path.is_file() else ()
        kept = [each for each in before if each.place != record.place]
        ordered = sorted([*kept, record], key=lambda each: (each.data, each.backend, each.device))
        write_results(path, QualityTable(tuple(ordered)))


def add_long_texts(path: Path, records: Sequence[LongText]) -> None:
    """Adds one backend's records to the file, in place of its earlier ones on the same device."""
    with _alone_with(path):
        before = read_results(path, LongTexts).rows if path.is_file() else ()
        places = {(each.backend, each.device) for each in records}
        kept = [each for each in before if (each.backend, each.device) not in places]
        write_results(path, LongTexts((*kept, *records)))


@contextmanager
def _alone_with(path: Path) -> Iterator[None]:
    """Whoever else adds to the file waits; what is no file, as /dev/stdout, is nobody's to wait for."""
    if path.exists() and not path.is_file():
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.parent / f".{path.name}.lock"):
        yield
