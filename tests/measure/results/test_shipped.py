"""Whether a measurement is about the weights that are here now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from measure.invented import benchmark, benchmark_record, quality_record

from qa_backends import catalog
from qa_backends.catalog import Family
from qa_backends.checkpoints.sources import Source
from qa_backends.measure.benchmark.plan import REFERENCES
from qa_backends.measure.quality.datasets import SQUAD_DEV_SHA256
from qa_backends.measure.results import shipped
from qa_backends.measure.results.files import BENCHMARK as KIND
from qa_backends.measure.results.files import add_quality, write_results
from qa_backends.measure.results.records import Against
from qa_backends.measure.results.shipped import (
    checkpoint_hash,
    measured_on_current_weights,
    preselection,
    shipped_quality,
)
from qa_backends.measure.timing.statistics import Difference

if TYPE_CHECKING:
    from pathlib import Path

MINILM = catalog.family("minilm")
CURRENT = {name: checkpoint_hash(MINILM, catalog.backend(name)) for name in ("baseline", "pruned")}
NOT_HERE = Family("not-here", "Never downloaded", (("baseline", Source(repository="nobody/nothing")),))


@pytest.mark.parametrize(
    ("backend", "checkpoint", "expected"),
    [
        ("minilm/baseline", CURRENT["baseline"], True),
        ("minilm/pruned-ort-fp16", CURRENT["pruned"], True),
        ("minilm/pruned-ort-fp16", CURRENT["baseline"], False),
        ("minilm/baseline", "of other weights", False),
        ("minilm/baseline", None, False),
        ("minilm/hf-pipeline", CURRENT["baseline"], True),
        ("minilm/hf-pipeline", CURRENT["pruned"], False),
        ("minilm/nobody-knows", CURRENT["baseline"], False),
        ("atlantis/baseline", CURRENT["baseline"], False),
        ("not-here/baseline", None, False),
        ("not-here/pruned", None, False),
        ("baseline", CURRENT["baseline"], False),
        ("", None, False),
    ],
)
def test_only_known_weights_that_are_here_count_as_current(
    backend: str, checkpoint: str | None, expected: bool
) -> None:
    catalog.register(NOT_HERE)
    record = benchmark_record(1.0, backend=backend, checkpoint=checkpoint)
    assert measured_on_current_weights(record) is expected


def test_the_shipped_quality_is_that_of_these_very_weights(tmp_path: Path) -> None:
    found = shipped_quality(MINILM, catalog.backend("pruned-ort"), "cuda")
    assert found is not None and found.n == 11_873 and found.limit is None
    assert found.device == "cpu", "measured on another device, where there is none of this one"
    assert found.f1_difference is not None and found.f1_difference.low < found.f1_difference.high
    impostor = Family("minilm", "Other weights", (("baseline", MINILM.source("pruned")), ("pruned", Source(tmp_path))))
    assert shipped_quality(impostor, catalog.backend("baseline")) is None
    assert shipped_quality(impostor, catalog.backend("pruned")) is None, "weights that are not there"
    assert shipped_quality(NOT_HERE, catalog.backend("baseline")) is None, "weights that are not known"


def test_the_shipped_benchmark_is_that_of_the_processor_more_like_this_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fresh = shipped.shipped_benchmark.__wrapped__
    monkeypatch.setattr(shipped, "_can_be_advised", lambda _family, name, _device: name not in REFERENCES)
    for slow, maker in ((True, "GenuineIntel"), (True, "AuthenticAMD"), (False, "GenuineIntel"), (False, "")):
        monkeypatch.setattr(shipped, "seven_bits", lambda slow=slow: slow)
        monkeypatch.setattr(shipped, "cpu_facts", lambda maker=maker: {"vendor_id": maker})
        found = fresh()
        assert found is not None and ("VNNI" in found.machine.processor) is not slow
        assert slow or ("Intel" in found.machine.processor) is (maker == "GenuineIntel")
        monkeypatch.setattr(shipped, "shipped_benchmark", lambda found=found: found)
        assert preselection(MINILM, "cpu")[-1] == ("pruned-deep-ort-fp16" if slow else "pruned-deep-ov-int8")
    monkeypatch.setattr(shipped, "BENCHMARK", tmp_path / "none.json")
    assert fresh() is None


def test_what_was_measured_of_weights_that_were_replaced_is_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kept = benchmark_record(9.0, backend="minilm/baseline", checkpoint=CURRENT["baseline"])
    old = benchmark_record(1.0, backend="minilm/pruned", checkpoint="of before")
    file = tmp_path / "benchmark.json"
    monkeypatch.setattr(shipped, "BENCHMARK", file)
    write_results(file, KIND, benchmark(kept, old))
    found = shipped.shipped_benchmark.__wrapped__()
    assert found is not None and [each.backend for each in found.rows] == ["minilm/baseline"]
    write_results(file, KIND, benchmark(old))
    assert shipped.shipped_benchmark.__wrapped__() is None, "nothing of it is about what ships"


def test_int8_has_the_quality_that_it_has_on_a_processor_like_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    int8, exact = catalog.backend("pruned-deep-ov-int8"), catalog.backend("pruned-deep-ort-fp16")
    found = {}
    for slow in (True, False):
        monkeypatch.setattr(shipped, "seven_bits", lambda slow=slow: slow)
        for each in (int8, exact):
            quality = found[each, slow] = shipped_quality(MINILM, each)
            assert quality is not None and quality.n == 11_873 and quality.f1_difference is not None
        assert ("VNNI" in found[int8, slow].machine.processor) is not slow
        for name in ("distilled-ov-int8", "pruned-ov-int8"):
            rounded_to_8_bits = shipped_quality(MINILM, catalog.backend(name))
            assert (rounded_to_8_bits is None) is slow, "these weights were not measured with 7 bits"
    assert found[exact, True] == found[exact, False], "FP32 computes the same on both"


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
    monkeypatch.setattr(shipped, "shipped_benchmark", lambda: benchmark(*rows, *other))

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
    monkeypatch.setattr(shipped, "shipped_benchmark", lambda: benchmark(*rows, near))
    assert preselection(MINILM, "cpu") == (*usual, "pruned-ov-int8"), "a tie, and the one with fewer steps"
    monkeypatch.setattr(shipped, "shipped_benchmark", lambda: None)
    assert preselection(MINILM, "cpu") == usual
