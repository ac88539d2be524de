"""Results files: what is refused, how they are laid out, and two of them side by side."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from helpers import ROOT

from qa_backends.errors import InputError
from qa_backends.measure.compare import compare
from qa_backends.measure.results import BENCHMARK, SCHEMA, as_csv, as_text, read_results, write_results

if TYPE_CHECKING:
    from pathlib import Path


MACHINE = {"processor": "Abacus", "threads": 2, "memory_gib": 24, "gpu": None, "system": "Linux", "python": "3.11",
           "versions": {}, "date": "2026-01-02"}  # fmt: skip


def row(p50: float, **other: Any) -> dict[str, Any]:
    samples = [p50 * (1 + step / 100) for step in range(-5, 6)]
    return {
        "backend": "minilm/baseline", "device": "cpu", "tokens": 128, "batch": 1, "order": "equal", "checkpoint": "abc",
        "p50_ms": p50, "against_baseline": {"value": 2.0, "low": 1.5}, "blocks": [11],
        "ran": {"notes": ["a", "b"], "file_hash": "abc"},
        "samples_ms": {"tokenise": [0.0] * 11, "forward": samples, "decode": [0.0] * 11},
    } | other  # fmt: skip


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{not json", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ("[]", "not a results file"),
        ('{"schema": 1, "kind": "benchmark"}', "Measure again"),
        ('{"schema": 2, "kind": "accuracy"}', "holds no benchmark"),
    ],
)
def test_what_is_no_benchmark_is_refused_by_its_name(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "mine.json").write_text(content)
    with pytest.raises(InputError, match=said) as caught:
        read_results(tmp_path / "mine.json", "benchmark")
    assert str(caught.value).startswith("mine.json")


def test_a_file_reads_back_as_it_was_and_has_a_line_for_each_row(tmp_path: Path) -> None:
    content = {"kind": "benchmark", "rows": [row(1.0), row(2.0, tokens=32)], "alone": []}
    write_results(tmp_path / "b.json", content)
    assert read_results(tmp_path / "b.json") == {"schema": SCHEMA, **content}
    lines = as_text(content).splitlines()
    assert sum('"p50_ms"' in line for line in lines) == 2


def test_the_csv_has_a_column_for_what_is_nested_and_no_samples() -> None:
    (flat,) = csv.DictReader(io.StringIO(as_csv([row(1.5)])))
    assert flat["p50_ms"] == "1.5"
    assert flat["against_baseline.low"] == "1.5"
    assert flat["ran.notes"] == "a; b"
    assert "samples_ms" not in flat and "blocks" not in flat


def test_two_files_are_compared_where_they_share_a_point() -> None:
    then = {"machine": MACHINE, "rows": [row(10.0), row(7.0, tokens=32)]}
    now = {"rows": [row(5.0, checkpoint="def"), row(3.0, batch=8)]}
    found = compare(then, now)
    (change,) = found.changes
    assert found.machine.date == "2026-01-02"
    assert (change.then_ms, change.now_ms, change.same_weights) == (10.0, 5.0, False)
    assert change.speed_up is not None and change.speed_up.value == pytest.approx(2.0)
    assert 1.8 < change.speed_up.low <= 2.0 <= change.speed_up.high < 2.2


@pytest.mark.parametrize(
    "then",
    [
        {"rows": [{}]},
        {"rows": ["a row"]},
        {"rows": None},
        {"rows": [row(1.0, p50_ms="fast")]},
        {"rows": [row(1.0, samples_ms={"forward": ["x"]})]},
        {"rows": [row(1.0, samples_ms={"forward": [float("nan")] * 9})]},
        {"rows": [row(1.0, samples_ms={"forward": [-1.0] * 9})]},
        {"rows": [row(1.0, samples_ms={"forward": [1.0] * 6_000})]},
        {"rows": [row(1.0, samples_ms=[1.0])]},
        {"rows": [row(1.0, p50_ms=10**400)]},
        {"rows": [row(1.0, checkpoint=None, ran=None)]},
        {"rows": [], "machine": "a fast one"},
        {"rows": [], "machine": {"processor": "a fast one"}},
    ],
    ids=["empty", "text", "none", "no number", "no times", "not numbers", "negative", "too many", "no parts",
         "a number too long", "no weights",
         "machine a text", "machine half"],
)  # fmt: skip
def test_what_no_benchmark_writes_gets_a_sentence(then: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="does not hold what a benchmark writes"):
        compare({"machine": MACHINE} | then, {"rows": [row(1.0)]})


def test_every_field_of_a_benchmark_is_documented() -> None:
    """The schema's document names exactly the keys of the benchmark that ships."""
    text = (ROOT / "assets" / "results" / "README.md").read_text(encoding="utf-8")
    part = text.split("## A benchmark's rows")[1].split("\n## ")[0]
    documented = set(re.findall(r"^\| `(\w+)`", part, re.M))
    content = json.loads(BENCHMARK.read_text(encoding="utf-8"))
    assert {key for each in content["rows"] for key in each} == documented
