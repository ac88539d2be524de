"""Results files: JSON with a schema and a kind, written whole, and read by checking every field."""

from __future__ import annotations

import csv
import io
import json
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from filelock import FileLock
from pydantic import JsonValue, TypeAdapter, ValidationError

from qa_backends.errors import InputError
from qa_backends.measure.results.records import (
    Benchmark,
    BenchmarkRecord,
    LongText,
    LongTexts,
    Overhead,
    QualityRecord,
    QualityTable,
    Techniques,
)
from qa_backends.paths import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from _typeshed import DataclassInstance

SCHEMA = 2
"""Documented in ``assets/results/README.md``; a file of another schema is refused with a sentence."""
BENCHMARK, QUALITY, OVERHEAD, TECHNIQUES, LONG = "benchmark", "accuracy", "overhead", "techniques", "long texts"
"""Kinds of files, by the keyword they carry."""
MAX_RESULTS_BYTES = 64 * 1024 * 1024
T = TypeVar("T")


def read_benchmark(path: Path) -> Benchmark:
    """Raises InputError, see ``read_results``."""
    return read_results(path, BENCHMARK, Benchmark)


def read_quality(path: Path) -> tuple[QualityRecord, ...]:
    """Raises InputError, see ``read_results``."""
    return read_results(path, QUALITY, QualityTable).rows


@dataclass(frozen=True, slots=True)
class _WithAnswers:
    """As the Accuracy tab's download has them, see ``quality.export``."""

    rows: tuple[QualityRecord, ...]
    questions: tuple[JsonValue, ...] = ()


def read_to_add(path: Path) -> tuple[QualityRecord, ...]:
    """What is known of quality, from a file that more is added to.

    Raises:
        InputError: see ``read_results``; or it also holds every answer, which would be lost.
    """
    found = read_results(path, QUALITY, _WithAnswers)
    if found.questions:
        raise InputError(f"{path.name} also holds every answer, which adding to it would lose. Save to another file.")
    return found.rows


def read_overhead(path: Path) -> Overhead:
    """Raises InputError, see ``read_results``."""
    return read_results(path, OVERHEAD, Overhead)


def read_long_texts(path: Path) -> LongTexts:
    """Raises InputError, see ``read_results``."""
    return read_results(path, LONG, LongTexts)


def read_techniques(path: Path) -> Techniques:
    """Raises InputError, see ``read_results``."""
    return read_results(path, TECHNIQUES, Techniques)


def read_results(path: Path, kind: str, record: type[T]) -> T:
    """A results file of the kind, as its record.

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
    if content.get("kind") != kind:
        raise InputError(f"{path.name} holds no {kind}. Choose a file that holds one.")
    try:
        return TypeAdapter(record).validate_python(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(
            f"{path.name} does not hold what a file of the kind '{kind}' holds ({place}: {first['msg']}). "
            "Choose one that this version wrote."
        ) from error


def write_results(path: Path, kind: str, record: DataclassInstance) -> None:
    """Replaces the file, whole."""
    write_whole(path, as_text(kind, record))


def as_dict(kind: str, record: DataclassInstance) -> dict[str, Any]:
    """As a results file holds it."""
    return {"schema": SCHEMA, "kind": kind, **asdict(record)}


def as_text(kind: str, record: DataclassInstance) -> str:
    """JSON with a line for each key and for each record of a list: samples stay short, a change shows as one line."""
    lines = [f' "{key}": {_value(value)}' for key, value in as_dict(kind, record).items()]
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
        write_results(path, QUALITY, QualityTable(tuple(ordered)))


def add_long_texts(path: Path, records: Sequence[LongText]) -> None:
    """Adds one backend's records to the file, in place of its earlier ones on the same device."""
    with _alone_with(path):
        before = read_long_texts(path).rows if path.is_file() else ()
        places = {(each.backend, each.device) for each in records}
        kept = [each for each in before if (each.backend, each.device) not in places]
        write_results(path, LONG, LongTexts((*kept, *records)))


@contextmanager
def _alone_with(path: Path) -> Iterator[None]:
    """Whoever else adds to the file waits; what is no file, as /dev/stdout, is nobody's to wait for."""
    if path.exists() and not path.is_file():
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.parent / f".{path.name}.lock"):
        yield
