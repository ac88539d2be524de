"""What ships with the project as measured, and whether it is still about the weights that ship."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.checkpoints.sources import weights_hash
from qa_backends.errors import UnknownBackend
from qa_backends.measure.benchmark.plan import REFERENCES
from qa_backends.measure.quality.datasets import SQUAD_V2_DEV, sha256_of
from qa_backends.measure.results.files import read_quality
from qa_backends.paths import ACCURACY

if TYPE_CHECKING:
    from pathlib import Path

    from qa_backends.catalog import Backend, Family
    from qa_backends.measure.results.records import BenchmarkRecord, QualityRecord


def checkpoint_hash(family: Family, backend: Backend) -> str | None:
    """What identifies the backend's weights in results; ``None`` where they would have to be downloaded to know."""
    return weights_hash(family.source(backend.checkpoint))


def measured_on_current_weights(record: BenchmarkRecord) -> bool:
    """Whether the weights that were measured are known, and still those of the family.

    A family or backend that is not known here has no weights here. A reference runs on the baseline's.
    """
    family, _, name = record.backend.rpartition("/")
    try:
        backend = catalog.backend(catalog.BASELINE if name in REFERENCES else name)
        current = checkpoint_hash(catalog.family(family), backend)
    except UnknownBackend:
        return False
    return current is not None and record.checkpoint == current


def shipped_quality(
    family: Family, backend: Backend, device: str = "cpu", data: str = SQUAD_V2_DEV
) -> QualityRecord | None:
    """The backend's measured quality on a whole data set, on the device if possible, else on another.

    ``data`` is one of ``datasets.TITLES``. ``None`` where these very weights were not measured, or are not known.
    """
    wanted = checkpoint_hash(family, backend)
    name = f"{family.name}/{backend.name}"
    if wanted is None:
        return None
    records = _of_the_whole_set(ACCURACY, sha256_of(data))
    found = [each for each in records if each.backend == name and each.checkpoint == wanted]
    return min(found, key=lambda each: each.device != device, default=None)


def tested(backend: Backend) -> bool:
    """Whether the engine, with these options, has run anywhere yet, by the results that ship."""
    return (backend.engine, backend.options) in _have_run(ACCURACY)


@cache
def _have_run(file: Path) -> frozenset[tuple[str, tuple[tuple[str, str], ...]]]:
    """Engines and their options, of every record in the file."""
    names = {each.name for each in read_quality(file)} if file.is_file() else set()
    return frozenset((each.engine, each.options) for each in catalog.every_backend() if each.name in names)


@cache
def _of_the_whole_set(file: Path, sha256: str) -> list[QualityRecord]:
    """The file's records that cover all of the data set; none where there is no such file."""
    records = read_quality(file) if file.is_file() else ()
    return [each for each in records if each.limit is None and each.data_sha256 == sha256]
