"""What ships with the project as measured, and whether it is still about what ships.

How well a backend answers hangs on its weights, so quality is that of these very weights. How long it takes hangs on
their shapes, which stay when weights are trained on: what was measured of these shapes stands.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.artefacts.quantise import seven_bits
from qa_backends.artefacts.steps import chain_of
from qa_backends.checkpoints.sources import shapes_of_weights, weights_hash
from qa_backends.errors import UnknownBackend
from qa_backends.limits import cpu_facts, cpu_flags
from qa_backends.measure.benchmark.plan import REFERENCES, SHOWN_AT
from qa_backends.measure.quality.datasets import SQUAD_V2_DEV, sha256_of
from qa_backends.measure.results.files import read_benchmark, read_quality
from qa_backends.paths import ACCURACY, ACCURACY_AVX2, AMD, AVX2, BENCHMARK, INTEL, measured_on

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from qa_backends.catalog import Backend, Family
    from qa_backends.measure.results.records import Benchmark, BenchmarkRecord, LongText, Quality, QualityRecord

MAKERS = {"AuthenticAMD": AMD, "GenuineIntel": INTEL}
"""What Linux calls those whose processors were measured."""
MOST_F1_LOST = 1.0
"""Of the backend that is ticked for its speed."""


def checkpoint_hash(family: Family, backend: Backend) -> str | None:
    """What identifies the backend's weights in results; ``None`` where they would have to be downloaded to know."""
    return weights_hash(family.source(backend.checkpoint))


def current_shapes(family: Family, backend: Backend) -> str | None:
    """What identifies the shapes of the backend's weights in results; ``None`` where they are not at hand."""
    return shapes_of_weights(family.source(backend.checkpoint))


def of_current_shapes(record: BenchmarkRecord | LongText) -> bool:
    """Whether the shapes of the weights that were measured are known, and still those of the family."""
    return record.shapes is not None and record.shapes == _now(record, current_shapes)


def of_current_weights(record: BenchmarkRecord | LongText) -> bool:
    """Whether the weights that were measured are known, and still those of the family."""
    return record.checkpoint is not None and record.checkpoint == _now(record, checkpoint_hash)


def _now(record: BenchmarkRecord | LongText, what: Callable[[Family, Backend], str | None]) -> str | None:
    """What identifies the weights that the record's backend has now; a family or backend that is not known here has
    none. A reference runs on some backend's."""
    prefix, _, name = record.backend.rpartition("/")
    try:
        family = catalog.family(prefix)
        runs = catalog.in_family(family, REFERENCES[name].runs) if name in REFERENCES else name
        return what(family, catalog.backend(runs))
    except UnknownBackend:
        return None


def of_like_processor(usual: Path) -> Path:
    """Of the files of results named after the usual one, that of the kind of processor that this machine has.

    In INT8 OpenVINO is the fastest on x86 processors that add the products up in one instruction, and slower than in
    FP32 on those that do not; BF16 is about as fast as INT8 on those with AMX, and may be slower than FP32 on
    Intel's without. Measured on one kind, backends stand in the wrong order for another. Which kind this one is, only
    Linux tells; elsewhere the usual file is taken.
    """
    if seven_bits():
        return measured_on(AVX2, usual)
    if "amx_bf16" in cpu_flags():
        return usual
    return measured_on(MAKERS.get(cpu_facts().get("vendor_id", ""), ""), usual)


@cache
def shipped_benchmark() -> Benchmark | None:
    """Of a processor like this one, what was measured of the shapes that ship; where that is the baseline alone, of
    the usual one, unless nothing else is known there either. ``None`` where nothing was measured."""
    measured = [(in_current_shapes(read_benchmark(each)), each) for each in _at_hand()]
    found, file = max(((each, file) for each, file in measured if each.rows), key=_compares, default=(None, None))
    return _with_current_quality(found, file) if found and file else None


def _at_hand() -> list[Path]:
    """The benchmark of a processor like this one and, behind it, the usual one, as far as they are there."""
    return [each for each in dict.fromkeys((of_like_processor(BENCHMARK), BENCHMARK)) if each.is_file()]


def benchmark_in(file: Path) -> Benchmark:
    """A benchmark that ships, with the quality of the weights that ship now beside what was measured of their shapes;
    INT8's as it is on that kind of processor. Raises InputError, see ``read_results``."""
    return _with_current_quality(read_benchmark(file), file)


def _with_current_quality(benchmark: Benchmark, file: Path) -> Benchmark:
    """The benchmark of the file with what is known of the current weights in records of their shapes."""
    rounded = ACCURACY_AVX2 if file == measured_on(AVX2, BENCHMARK) else ACCURACY

    @cache
    def known(name: str, device: str) -> Quality | None:
        family, backend = catalog.resolve(name)
        found = quality_in(rounded if backend.rounds else ACCURACY, family, backend, device)
        return found.short() if found else None

    rows = [
        replace(each, quality=known(each.backend, each.device))
        if each.name not in REFERENCES and of_current_shapes(each)
        else each
        for each in benchmark.rows
    ]
    return replace(benchmark, rows=tuple(rows))


def _compares(measured: tuple[Benchmark, Path]) -> bool:
    """Whether there is a backend besides the baseline."""
    return bool({each.name for each in measured[0].rows} - {catalog.BASELINE, *REFERENCES})


def in_current_shapes(benchmark: Benchmark) -> Benchmark:
    """Without what is told of shapes that have been replaced since."""
    rows = tuple(filter(of_current_shapes, benchmark.rows))
    names = {each.backend for each in rows}
    return replace(benchmark, rows=rows, alone=tuple(each for each in benchmark.alone if each.backend in names))


def ticked_anywhere(family: Family, device: str) -> tuple[str, ...]:
    """What is ticked to begin with on any kind of processor that was measured, as far as it can run here."""
    files = [measured_on(kind, BENCHMARK) for kind in ("", AMD, INTEL, AVX2)]
    measured = [read_benchmark(each) for each in files if each.is_file()]
    return tuple(dict.fromkeys(name for each in measured for name in preselection(family, device, each)))


@cache
def raced_here() -> Benchmark | None:
    """What was measured on a processor like this one, or else on the usual one, of whatever shapes: which engine is the
    fastest there, other shapes tell too. ``None`` where nothing was measured."""
    return next(map(read_benchmark, _at_hand()), None)


def preselection(family: Family, device: str, benchmark: Benchmark | None = None) -> tuple[str, ...]:
    """What is ticked to begin with: the usual backends, and the fastest besides, by the benchmark or, without one, by
    that of a processor like this one, that can run here and loses no more than ``MOST_F1_LOST``; of those that cannot
    be told from it, the one of fewest steps and options, or none where a usual one is among them."""
    benchmark, usual = benchmark or raced_here(), catalog.usual(family)
    raced = [each for each in benchmark.rows if each.backend == f"{family.name}/{each.name}"] if benchmark else []
    at = [each for each in raced if (each.device, each.tokens, each.batch) == (device, SHOWN_AT, 1)]
    able = [each for each in at if _can_be_advised(family, each.name, device)]
    fastest = min(able, key=lambda each: each.p50_ms, default=None)
    alike = [catalog.backend(each.name) for each in able if fastest and _ties(each, fastest)]
    plainest = min(alike, key=lambda each: (each.name not in usual, _steps(each)), default=None)
    return tuple(dict.fromkeys([*usual, plainest.name])) if plainest else usual


def _steps(backend: Backend) -> int:
    """How many steps of building it takes, and how many options."""
    return len(chain_of(backend.artefact)) + len(backend.options)


def _ties(record: BenchmarkRecord, fastest: BenchmarkRecord) -> bool:
    """Whether the intervals of their ratios to the baseline overlap; what has none ties with itself alone."""
    one, other = record.against_baseline, fastest.against_baseline
    return record is fastest or (one is not None and other is not None and one.high >= other.low)


def _can_be_advised(family: Family, name: str, device: str) -> bool:
    if name in REFERENCES or catalog.unavailable(catalog.backend(name), device):
        return False
    quality = shipped_quality(family, catalog.backend(name), device)
    if quality is None or quality.f1_difference is None:
        return name == catalog.BASELINE
    return -quality.f1_difference.value <= MOST_F1_LOST


def shipped_quality(
    family: Family, backend: Backend, device: str = "cpu", data: str = SQUAD_V2_DEV
) -> QualityRecord | None:
    """The backend's measured quality on a whole data set, as it computes on a processor like this one: INT8 whose
    weights have 7 bits is measured apart, or not known; the rest computes the same on all, up to how BF16 rounds."""
    file = ACCURACY_AVX2 if backend.rounds and seven_bits() else ACCURACY
    return quality_in(file, family, backend, device, data)


def quality_in(
    file: Path, family: Family, backend: Backend, device: str = "cpu", data: str = SQUAD_V2_DEV
) -> QualityRecord | None:
    """The quality that the file holds, of a whole data set, on the device if possible, else on another.

    ``data`` is one of ``datasets.TITLES``. ``None`` where these very weights were not measured, or are not known.
    """
    wanted = checkpoint_hash(family, backend)
    name = f"{family.name}/{backend.name}"
    if wanted is None:
        return None
    records = _of_the_whole_set(file, sha256_of(data))
    found = [each for each in records if each.backend == name and each.checkpoint == wanted]
    return min(found, key=lambda each: each.device != device, default=None)


def tested(backend: Backend) -> bool:
    """Whether the engine, with these options, has run anywhere yet: by the F1 figures that ship."""
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
