"""Whether a measurement is about the weights that are here now, or about their shapes."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from measure.invented import MACHINE, benchmark, benchmark_record, quality_record
from safetensors.numpy import load_file, save_file

from qa_backends import catalog
from qa_backends.catalog import Family
from qa_backends.checkpoints.files import WEIGHTS
from qa_backends.checkpoints.manifest import file_hash, shapes_hash
from qa_backends.checkpoints.sources import Source
from qa_backends.measure.quality.datasets import SQUAD_DEV_SHA256
from qa_backends.measure.results import shipped
from qa_backends.measure.results.files import add_quality, write_results
from qa_backends.measure.results.records import Against
from qa_backends.measure.results.shipped import (
    benchmark_in,
    checkpoint_hash,
    current_shapes,
    of_current_shapes,
    of_current_weights,
    preselection,
    shipped_quality,
)
from qa_backends.measure.timing.statistics import Difference
from qa_backends.paths import AMD, AVX2, BENCHMARK, INTEL, measured_on

MINILM = catalog.family("minilm")
CURRENT = {name: checkpoint_hash(MINILM, catalog.backend(name)) for name in ("baseline", "pruned")}
SHAPES = {name: current_shapes(MINILM, catalog.backend(name)) for name in CURRENT}
NOT_HERE = Family("not-here", "Never downloaded", (("baseline", Source(repository="nobody/nothing")),))


@pytest.mark.parametrize(
    ("backend", "of", "expected"),
    [
        ("minilm/baseline", "baseline", True),
        ("minilm/pruned-ort-fp16", "pruned", True),
        ("minilm/pruned-ort-fp16", "baseline", False),
        ("minilm/baseline", "of other weights", False),
        ("minilm/baseline", None, False),
        ("minilm/hf-pipeline", "baseline", True),
        ("minilm/hf-pipeline", "pruned", False),
        ("minilm/nobody-knows", "baseline", False),
        ("atlantis/baseline", "baseline", False),
        ("not-here/baseline", None, False),
        ("not-here/pruned", None, False),
        ("baseline", "baseline", False),
        ("", None, False),
    ],
)
def test_only_known_weights_and_shapes_that_are_here_count_as_current(
    backend: str, of: str | None, expected: bool
) -> None:
    catalog.register(NOT_HERE)
    weights, shapes = (known.get(of or "", of) for known in (CURRENT, SHAPES))
    assert of_current_shapes(benchmark_record(1.0, backend=backend, shapes=shapes)) is expected
    assert of_current_weights(benchmark_record(1.0, backend=backend, checkpoint=weights)) is expected


def test_weights_that_are_trained_on_keep_their_times_and_not_their_quality(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "trained-on"
    shutil.copytree(MINILM.source("pruned").folder or Path(), folder)
    weights = load_file(folder / WEIGHTS)
    bias = weights["qa_outputs.bias"]
    save_file(weights | {"qa_outputs.bias": bias + 1}, folder / WEIGHTS)
    assert shapes_hash(folder) == SHAPES["pruned"] and file_hash(folder / WEIGHTS) != CURRENT["pruned"]
    save_file(weights | {"qa_outputs.bias": bias.astype("float32")}, folder / WEIGHTS)
    assert shapes_hash(folder) != SHAPES["pruned"], "of another type"
    del weights["qa_outputs.bias"]
    save_file(weights, folder / WEIGHTS)
    assert shapes_hash(folder) != SHAPES["pruned"], "of other shapes"
    cut = Family("cut", "Cut off", (("baseline", Source(folder=folder)),))
    assert current_shapes(cut, catalog.backend("baseline")) == shapes_hash(folder)
    (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:100])
    assert current_shapes(cut, catalog.backend("baseline")) is None, "which must not keep the page from starting"
    file, known = tmp_path / "benchmark.json", quality_record("minilm/pruned", f1=7.0).short()
    rows = [
        benchmark_record(9.0, backend="minilm/pruned", quality=known, checkpoint="of before", shapes=shapes)
        for shapes in (SHAPES["pruned"], "of before")
    ]
    write_results(file, benchmark(*rows))
    monkeypatch.setattr(shipped, "ACCURACY", tmp_path / "accuracy.json")
    dev = {"checkpoint": CURRENT["pruned"], "data_sha256": SQUAD_DEV_SHA256}
    assert [each.quality for each in benchmark_in(file).rows] == [None, known], "not known, and of what was measured"
    add_quality(tmp_path / "accuracy.json", quality_record("minilm/pruned", f1=8.0, **dev))
    shipped._of_the_whole_set.cache_clear()
    assert [each.quality and each.quality.f1 for each in benchmark_in(file).rows] == [8.0, 7.0]


def test_int8_has_beside_its_times_the_quality_of_the_processor_they_were_taken_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    usual = tmp_path / "benchmark.json"
    monkeypatch.setattr(shipped, "BENCHMARK", usual)
    dev = {"checkpoint": CURRENT["pruned"], "data_sha256": SQUAD_DEV_SHA256}
    for name, f1 in (("ACCURACY", 8.0), ("ACCURACY_AVX2", 7.0)):
        monkeypatch.setattr(shipped, name, tmp_path / name)
        for backend in ("pruned-ov-int8", "pruned-ov"):
            add_quality(tmp_path / name, quality_record(f"minilm/{backend}", f1=f1, **dev))
    rows = [benchmark_record(9.0, backend=f"minilm/{name}", shapes=SHAPES["pruned"])
            for name in ("pruned-ov-int8", "pruned-ov", "ort")]  # fmt: skip
    for file, f1 in ((usual, 8.0), (measured_on(AVX2, usual), 7.0)):
        write_results(file, benchmark(*rows))
        assert [each.quality and each.quality.f1 for each in benchmark_in(file).rows] == [f1, 8.0, None]


def test_the_shipped_quality_is_that_of_these_very_weights(tmp_path: Path) -> None:
    found = shipped_quality(MINILM, catalog.backend("pruned-ort"), "cuda")
    assert found is not None and found.n == 11_873 and found.limit is None
    assert found.device == "cpu", "measured on another device, where there is none of this one"
    assert found.f1_difference is not None and found.f1_difference.low < found.f1_difference.high
    impostor = Family("minilm", "Other weights", (("baseline", MINILM.source("pruned")), ("pruned", Source(tmp_path))))
    assert shipped_quality(impostor, catalog.backend("baseline")) is None
    assert shipped_quality(impostor, catalog.backend("pruned")) is None, "weights that are not there"
    assert shipped_quality(NOT_HERE, catalog.backend("baseline")) is None, "weights that are not known"


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Path]:
    """A benchmark of each kind of processor, named after it, in which ``pruned`` is of the shapes that ship."""
    rows = [benchmark_record(9.0, backend=f"minilm/{name}", shapes=SHAPES[name]) for name in SHAPES]
    usual = tmp_path / "benchmark.json"
    monkeypatch.setattr(shipped, "BENCHMARK", usual)
    files = {"AMX": usual} | {kind: measured_on(kind, usual) for kind in (AMD, INTEL, AVX2)}
    for name, file in files.items():
        write_results(file, benchmark(*rows, machine=replace(MACHINE, processor=name)))
    return files


@pytest.mark.parametrize(
    ("slow", "flags", "maker", "name"),
    [
        (True, set(), "GenuineIntel", AVX2),
        (True, set(), "AuthenticAMD", AVX2),
        (False, {"amx_bf16"}, "GenuineIntel", "AMX"),
        (False, set(), "GenuineIntel", INTEL),
        (False, set(), "AuthenticAMD", AMD),
        (False, set(), "", "AMX"),
    ],
)
def test_the_shipped_benchmark_is_that_of_the_processor_more_like_this_one(
    slow: bool,
    flags: set[str],
    maker: str,
    name: str,
    measured: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fresh = shipped.shipped_benchmark.__wrapped__
    monkeypatch.setattr(shipped, "seven_bits", lambda: slow)
    monkeypatch.setattr(shipped, "cpu_flags", lambda: frozenset(flags))
    monkeypatch.setattr(shipped, "cpu_facts", lambda: {"vendor_id": maker})
    assert fresh().machine.processor == name
    alone = benchmark_record(9.0, backend="minilm/baseline", shapes=SHAPES["baseline"])
    old = benchmark_record(1.0, backend="minilm/pruned", shapes="of before")
    write_results(measured[name], benchmark(alone, old, machine=replace(MACHINE, processor=name)))
    assert fresh().machine.processor == "AMX", "of the shapes that ship, the baseline alone is left there"
    for file in measured.values():
        file.unlink()
    assert fresh() is None


def test_int8_whose_quality_is_not_known_here_is_not_ticked_however_fast_it_is_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = benchmark_in(measured_on(AMD, BENCHMARK))
    monkeypatch.setattr(shipped, "raced_here", lambda: found)
    assert catalog.backend(preselection(MINILM, "cpu")[-1]).rounds, "where INT8 is the fastest"
    monkeypatch.setattr(shipped, "seven_bits", lambda: True)
    monkeypatch.setattr(shipped, "ACCURACY_AVX2", tmp_path / "none.json")
    assert not catalog.backend(preselection(MINILM, "cpu")[-1]).rounds


def test_what_was_measured_of_shapes_that_were_replaced_is_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kept = benchmark_record(9.0, backend="minilm/baseline", shapes=SHAPES["baseline"])
    old = benchmark_record(1.0, backend="minilm/pruned", shapes="of before")
    file = tmp_path / "benchmark.json"
    monkeypatch.setattr(shipped, "BENCHMARK", file)
    write_results(file, benchmark(kept, old))
    found = shipped.shipped_benchmark.__wrapped__()
    assert found is not None and [each.backend for each in found.rows] == ["minilm/baseline"]
    write_results(file, benchmark(old))
    assert shipped.shipped_benchmark.__wrapped__() is None, "nothing of it is about what ships"


def test_int8_has_the_quality_that_it_has_on_a_processor_like_this_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    int8, exact = catalog.backend("pruned-ov-int8"), catalog.backend("pruned-ort-fp16")
    whole = {"checkpoint": CURRENT["pruned"], "data_sha256": SQUAD_DEV_SHA256}
    for name, f1 in (("ACCURACY", 8.0), ("ACCURACY_AVX2", 7.0)):
        monkeypatch.setattr(shipped, name, tmp_path / name)
        add_quality(tmp_path / name, quality_record("minilm/pruned-ov-int8", f1=f1, **whole))
    add_quality(tmp_path / "ACCURACY", quality_record("minilm/pruned-ort-fp16", f1=32.0, **whole))
    add_quality(tmp_path / "ACCURACY", quality_record("minilm/pruned-ort-int8", f1=8.0, **whole))
    for slow, bits in ((True, 7.0), (False, 8.0)):
        monkeypatch.setattr(shipped, "seven_bits", lambda slow=slow: slow)
        rounded, unrounded = shipped_quality(MINILM, int8), shipped_quality(MINILM, exact)
        assert rounded is not None and rounded.f1 == bits
        assert unrounded is not None and unrounded.f1 == 32.0, "FP32 computes the same on both"
        other = shipped_quality(MINILM, catalog.backend("pruned-ort-int8"))
        assert (other is None) is slow, "these weights were not measured with 7 bits"


def test_quality_of_unknown_weights_is_not_that_of_other_unknown_ones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    dev = {"data_sha256": SQUAD_DEV_SHA256, "limit": None}
    baseline, path = catalog.backend("baseline"), tmp_path / "accuracy.json"
    add_quality(path, quality_record("not-here/baseline", checkpoint=None, **dev))
    add_quality(path, quality_record("minilm/baseline", checkpoint=CURRENT["baseline"], **dev))
    add_quality(path, quality_record("minilm/pruned", checkpoint=CURRENT["pruned"], data_sha256="of another set"))
    monkeypatch.setattr(shipped, "ACCURACY", path)
    assert shipped_quality(NOT_HERE, baseline) is None
    assert shipped_quality(MINILM, baseline) is not None
    assert shipped_quality(MINILM, catalog.backend("pruned")) is None, "measured on another data set"
    monkeypatch.setattr(shipped, "ACCURACY", tmp_path / "none.json")
    assert shipped_quality(MINILM, baseline) is None


def ratio(times: float) -> Against | None:
    """That many times as fast as the baseline, give or take a twentieth; none of the baseline itself."""
    return None if times == 1 else Against(times, 0.95 * times, 1.05 * times, 31, "minilm/baseline")


def test_the_fastest_that_ships_is_ticked_besides_the_usual_where_it_can_run_and_loses_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    losses = {"pruned-ov": 1.5, "pruned-ov-int8": 0.4, "pruned-ort-int8": 0.2}
    times = {"baseline": 20.0, "pruned-ov": 4.0, "pruned-ov-int8": 5.0, "pruned-ort-int8": 6.0, "hf-pipeline": 1.0}
    rows = [
        benchmark_record(ms, backend=f"minilm/{name}", against_baseline=ratio(20 / ms)) for name, ms in times.items()
    ]
    other = [benchmark_record(1.0, backend="minilm/pruned-ort", **place) for place in ({"tokens": 32}, {"batch": 8})]
    monkeypatch.setattr(shipped, "raced_here", lambda: benchmark(*rows, *other))

    def quality(_family: Family, backend: catalog.Backend, _device: str) -> object:
        loss = losses.get(backend.name, 0.0)
        return quality_record(f1_difference=Difference(-loss, -loss - 0.1, -loss + 0.1))

    monkeypatch.setattr(shipped, "shipped_quality", quality)
    usual = ("baseline", "pruned-ort-fp16")
    assert preselection(MINILM, "cpu") == (*usual, "pruned-ov-int8")
    assert preselection(MINILM, "cuda") == usual, "nothing ships of a GPU"
    assert preselection(NOT_HERE, "cpu") == ("baseline", "baseline-ort-fp16"), "nothing ships of that family"
    real = catalog.unavailable
    monkeypatch.setattr(
        catalog, "unavailable", lambda each, device: ValueError() if "ov" in each.name else real(each, device)
    )
    assert preselection(MINILM, "cpu") == (*usual, "pruned-ort-int8")
    monkeypatch.setattr(catalog, "unavailable", real)
    near = benchmark_record(4.9, backend="minilm/pruned-ov-int8-bf16", against_baseline=ratio(4.08))
    for together in ((*rows, near), (near, *rows)):
        monkeypatch.setattr(shipped, "raced_here", lambda together=together: benchmark(*together))
        assert preselection(MINILM, "cpu") == (*usual, "pruned-ov-int8"), "a tie, and the one with fewer steps"
    near = benchmark_record(4.9, backend="minilm/pruned-ort-fp16", against_baseline=ratio(4.08))
    monkeypatch.setattr(shipped, "raced_here", lambda: benchmark(*rows, near))
    assert preselection(MINILM, "cpu") == usual, "a tie with one that is ticked anyway"
    monkeypatch.setattr(shipped, "raced_here", lambda: None)
    assert preselection(MINILM, "cpu") == usual


def test_where_only_earlier_shapes_were_raced_they_tell_what_to_tick(
    measured: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Intel's processors without AMX the fastest is not that of those with it."""
    monkeypatch.setattr(shipped, "seven_bits", lambda: False)
    monkeypatch.setattr(shipped, "cpu_flags", frozenset)
    monkeypatch.setattr(shipped, "cpu_facts", lambda: {"vendor_id": "GenuineIntel"})
    monkeypatch.setattr(shipped, "raced_here", shipped.raced_here.__wrapped__)
    rows = [
        benchmark_record(ms, backend=f"minilm/{name}", against_baseline=ratio(20 / ms), shapes="of before")
        for name, ms in (("baseline", 20.0), ("pruned-ort-fp16", 8.0), ("pruned-ov-int8", 4.0))
    ]
    write_results(measured[INTEL], benchmark(*rows))
    assert preselection(MINILM, "cpu") == ("baseline", "pruned-ort-fp16", "pruned-ov-int8")
