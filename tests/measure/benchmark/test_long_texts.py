"""Long texts: what is measured of them, kept of each backend, and shown."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import psutil
import pytest

from qa_backends import catalog
from qa_backends.errors import InputError
from qa_backends.measure.benchmark import long_texts as module
from qa_backends.measure.benchmark.long_texts import CHARACTERS, long_texts
from qa_backends.measure.results.files import add_long_texts, read_results
from qa_backends.measure.results.long_texts import long_texts_table
from qa_backends.measure.results.records import LongTexts
from qa_backends.paths import LONG_TEXTS
from qa_backends.runtime import Runtime

if TYPE_CHECKING:
    from pathlib import Path


def test_a_longer_text_makes_more_windows_and_takes_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHARACTERS", (2_000, 20_000))
    monkeypatch.setattr(module, "RUNS", 2)
    told: list[int] = []
    found = long_texts(
        Runtime(), catalog.family("minilm"), catalog.backend("baseline-fake"), "cpu", progress=told.append
    )
    first, second = found.rows
    assert told == [1, 2] and (first.characters, second.characters) == (2_000, 20_000)
    assert 8 * first.windows < second.windows < 12 * first.windows
    assert 0 < first.p50_ms < second.p50_ms
    if first.peak_bytes is not None and second.peak_bytes is not None:
        assert psutil.Process().memory_info().rss * 0.5 < second.peak_bytes < 64e9
    file = tmp_path / "long.json"
    other = replace(second, backend="minilm/pruned-fake")
    add_long_texts(file, found.rows)
    add_long_texts(file, [other])
    add_long_texts(file, [first])
    assert read_results(file, LongTexts).rows == (other, first), "each backend's own are replaced, all of them"


def test_what_ships_is_shown_with_seconds_and_memory() -> None:
    found = read_results(LONG_TEXTS, LongTexts)
    text = long_texts_table(found)
    assert {each.characters for each in found.rows} == set(CHARACTERS)
    for each in found.rows:
        assert each.peak_bytes is not None
        name, seconds, memory = each.backend.partition("/")[2], each.p50_ms / 1000, each.peak_bytes / 1e6
        assert f"| `{name}` | {each.characters:,} | {each.windows} | {seconds:.2f} | {memory:.0f} |" in text
    with pytest.raises(InputError, match="lack long texts"):
        long_texts_table(LongTexts(()))
