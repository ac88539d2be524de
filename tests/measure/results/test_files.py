"""Results files: what is refused, how they are laid out, and that none is lost or half written."""

from __future__ import annotations

import csv
import io
import json
import re
import resource
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest
from helpers import ROOT
from measure.invented import benchmark, benchmark_record, quality_record

from qa_backends.errors import InputError
from qa_backends.measure.results.files import (
    SCHEMA,
    add_quality,
    as_csv,
    as_dict,
    as_text,
    read_benchmark,
    read_quality,
    read_results,
    write_results,
)
from qa_backends.measure.results.records import Overhead, Quality, QualityRecord
from qa_backends.measure.timing.statistics import Difference
from qa_backends.paths import ACCURACY, OVERHEAD
from qa_backends.paths import BENCHMARK as SHIPPED_BENCHMARK

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{not json", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ("[]", "not a results file"),
        ('{"schema": 1, "kind": "benchmark"}', "Measure again"),
        ('{"schema": 2, "kind": "accuracy"}', "holds no benchmark"),
        ('{"schema": 2, "kind": "benchmark"}', "does not hold what"),
    ],
)
def test_what_is_no_benchmark_is_refused_by_its_name(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "mine.json").write_text(content)
    with pytest.raises(InputError, match=said) as caught:
        read_benchmark(tmp_path / "mine.json")
    assert str(caught.value).startswith("mine.json")


PARTS = ("tokenise", "forward", "decode")


@pytest.mark.parametrize(
    "then",
    [
        {"rows": [{}]},
        {"rows": ["a record"]},
        {"rows": None},
        {"rows": [{"p50_ms": "fast"}]},
        {"rows": [{"samples_ms": {"forward": ["x"]}}]},
        {"rows": [{"samples_ms": {part: [float("nan")] * 11 for part in PARTS}}]},
        {"rows": [{"samples_ms": {part: [-1.0] * 11 for part in PARTS}}]},
        {"rows": [{"samples_ms": {part: [0.0] * 11 for part in PARTS}}]},
        {"rows": [{"samples_ms": {part: [1e308] * 11 for part in PARTS}}]},
        {"rows": [{"samples_ms": {part: [1.0] * 6_000 for part in PARTS}, "blocks": [3] * 2_000}]},
        {"rows": [{"samples_ms": {part: [1.0] * 10 for part in PARTS}}]},
        {"rows": [{"samples_ms": [1.0]}]},
        {"rows": [{"blocks": [11]}]},
        {"rows": [{"blocks": [0, 11]}]},
        {"rows": [{"p50_ms": 10**400}]},
        {"rows": [{"p50_ms": 0}]},
        {"rows": [{"checkpoint": None, "ran": None}]},
        {"rows": [], "machine": "a fast one"},
        {"rows": [], "machine": {"processor": "a fast one"}},
        {"rows": [], "plan": {"family": 3}},
    ],
    ids=["empty", "text", "none", "no number", "no times", "not numbers", "negative", "no time", "endless", "too many",
         "fewer than the blocks", "no parts", "a block too large", "an empty block", "a number too long", "zero",
         "no weights", "machine a text", "machine half", "no plan"],
)  # fmt: skip
def test_what_no_benchmark_writes_gets_a_sentence(tmp_path: Path, then: dict[str, Any]) -> None:
    """``then`` is what stands in the file in place of what belongs there; of a record, in place of those keys."""
    content = json.loads(as_text(benchmark(benchmark_record(1.0))))
    (whole,) = content["rows"]
    records = [whole | each if each and isinstance(each, dict) else each for each in then["rows"] or []]
    (tmp_path / "theirs.json").write_text(
        json.dumps(content | then | {"rows": records if then["rows"] else then["rows"]})
    )
    with pytest.raises(InputError, match=r"^theirs\.json does not hold what a file of the kind 'benchmark' holds \("):
        read_benchmark(tmp_path / "theirs.json")


def test_a_file_reads_back_as_it_was_and_has_a_line_for_each_record(tmp_path: Path) -> None:
    content = benchmark(benchmark_record(1.0), benchmark_record(2.0, tokens=None))
    write_results(tmp_path / "b.json", content)
    assert read_benchmark(tmp_path / "b.json") == content
    lines = (tmp_path / "b.json").read_text().splitlines()
    assert sum('"p50_ms"' in line for line in lines) == 2
    written = json.loads((tmp_path / "b.json").read_text())
    assert (written["schema"], written["kind"]) == (SCHEMA, "benchmark")


def test_the_csv_has_a_column_for_what_is_nested_and_no_samples() -> None:
    (flat,) = csv.DictReader(io.StringIO(as_csv([benchmark_record(1.5)])))
    assert flat["p50_ms"] == "1.5"
    assert flat["against_baseline.low"] == "1.5"
    assert flat["ran.notes"] == "a; b"
    assert not any("samples_ms" in key or "blocks" in key for key in flat)


def test_what_ships_is_read_and_written_again_as_it_was() -> None:
    """No field is lost: what the files hold is in what they are written from."""
    shipped = json.loads(SHIPPED_BENCHMARK.read_text(encoding="utf-8"))
    again = json.loads(as_text(read_benchmark(SHIPPED_BENCHMARK)))
    for before, after in zip(shipped.pop("rows"), again.pop("rows"), strict=True):
        assert before | {"quality": None} == {key: after[key] for key in before} | {"quality": None}
        assert (before["quality"] or {}).items() <= (after["quality"] or {}).items()
    assert shipped == again
    assert len(read_quality(ACCURACY)) >= 5
    assert [each.tokens for each in read_results(OVERHEAD, Overhead).rows] == [32, 64, 128, 256, 384, 512] * 2


def test_a_file_without_differences_of_f1_is_read_all_the_same(tmp_path: Path) -> None:
    add_quality(tmp_path / "a.json", quality_record())
    content = json.loads((tmp_path / "a.json").read_text())
    del content["rows"][0]["f1_difference"]
    (tmp_path / "a.json").write_text(json.dumps(content))
    (found,) = read_quality(tmp_path / "a.json")
    assert found == quality_record(f1_difference=None)


def test_a_newer_measurement_replaces_that_of_the_same_backend_device_and_data(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.json"
    for each in (
        quality_record("minilm/pruned"),
        quality_record(f1=60.0),
        quality_record(f1=61.0),
        quality_record(limit=50),
        quality_record(device="cuda"),
    ):
        add_quality(path, each)
    found = [(each.name, each.device, each.limit, each.f1) for each in read_quality(path)]
    assert found == [
        ("baseline", "cpu", None, 61.0),
        ("baseline", "cpu", 50, 70.0),
        ("baseline", "cuda", None, 70.0),
        ("pruned", "cpu", None, 70.0),
    ]


@contextmanager
def full_disk_at(most_bytes: int) -> Iterator[None]:
    """No file of this process can grow beyond so many bytes: writing more fails in its middle."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_write_that_ends_in_its_middle_leaves_the_earlier_file(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    write_results(path, benchmark(benchmark_record(1.0)))
    before = path.read_text()
    with full_disk_at(len(before)), pytest.raises(OSError, match="large"):
        write_results(path, benchmark(*[benchmark_record(2.0)] * 50))
    assert path.read_text() == before
    assert [each.name for each in tmp_path.iterdir()] == ["b.json"]


ADD_MANY = """
import sys, time
from dataclasses import replace
from pathlib import Path
from qa_backends.measure.results.files import add_quality, read_quality
path, template, name = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
(record,) = read_quality(template)
(template.parent / f"{name} is ready").touch()
while not (template.parent / "go").exists():
    time.sleep(0.001)
for number in range(15):
    add_quality(path, replace(record, backend=f"minilm/{name}-{number}"))
"""


def test_what_two_processes_add_at_once_is_all_there(tmp_path: Path) -> None:
    path, template = tmp_path / "a.json", tmp_path / "template.json"
    add_quality(template, quality_record())
    names = ("one", "other")
    command = [sys.executable, "-c", ADD_MANY, str(path), str(template)]
    adding = [subprocess.Popen([*command, name], cwd=ROOT) for name in names]
    while not all((tmp_path / f"{name} is ready").exists() for name in names):
        assert all(each.poll() is None for each in adding)
        time.sleep(0.01)
    (tmp_path / "go").touch()
    assert [each.wait(60) for each in adding] == [0, 0]
    assert {each.name for each in read_quality(path)} == {f"{name}-{number}" for name in names for number in range(15)}


def section(title: str) -> str:
    """That part of the schema's document."""
    text = (ROOT / "assets" / "results" / "README.md").read_text(encoding="utf-8")
    return text.split(f"## {title}\n")[1].split("\n## ")[0]


def test_every_field_of_a_benchmark_is_documented() -> None:
    """The schema's document names exactly the keys of the benchmark that ships."""
    documented = set(re.findall(r"^\| `(\w+)`", section("A benchmark's rows"), re.MULTILINE))
    content = json.loads(SHIPPED_BENCHMARK.read_text(encoding="utf-8"))
    assert {key for each in content["rows"] for key in each} <= documented
    assert set(as_dict(benchmark(benchmark_record(1.0)))["rows"][0]) == documented


def test_every_field_of_a_quality_record_is_documented() -> None:
    documented = set(re.findall(r"`(\w+)`", section("Accuracy")))
    assert {each.name for each in fields(QualityRecord)} <= documented
    assert {each.name for each in fields(Difference)} <= documented
    short = {each.name for each in fields(Quality)}
    (line,) = [each for each in section("A benchmark's rows").splitlines() if each.startswith("| `quality`")]
    assert short == set(re.findall(r"`(\w+)`", line)) - {"quality"}
