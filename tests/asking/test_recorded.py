"""The comparison that ships, and how it is recorded."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from qa_backends import catalog
from qa_backends.asking import recorded
from qa_backends.asking.ask import ask
from qa_backends.asking.recorded import MAIN, Recorded, examples, record, recorded_comparisons
from qa_backends.measure.results import shipped
from qa_backends.measure.results.files import read_results, write_results
from qa_backends.measure.results.shipped import checkpoint_hash, preselection
from qa_backends.web.ask.shown import deployed, first_sight

if TYPE_CHECKING:
    from pathlib import Path

    from qa_backends.catalog import Family
    from qa_backends.runtime import Runtime

MINILM = catalog.family("minilm")


def test_what_ships_is_the_first_example_on_the_weights_that_ship() -> None:
    found = recorded_comparisons()[0]
    assert (found.question, found.context) == (examples()[0]["question"], examples()[0]["context"])
    assert found.recorded and [card.backend for card in found.answered][: len(MAIN)] == list(MAIN)
    assert found.card("pruned").speed_up is not None
    assert found.fastest is not None and found.tokens > 0, "what is shown first says how many times as fast"


@pytest.mark.parametrize(
    ("slow", "flags", "maker"),
    [
        (True, set(), "AuthenticAMD"),
        (False, set(), "GenuineIntel"),
        (False, set(), "AuthenticAMD"),
        (False, {"amx_bf16"}, "GenuineIntel"),
    ],
)
def test_at_first_sight_what_is_ticked_is_shown_on_each_kind_of_processor(
    monkeypatch: pytest.MonkeyPatch, slow: bool, flags: set[str], maker: str
) -> None:
    monkeypatch.setattr(shipped, "seven_bits", lambda: slow)
    monkeypatch.setattr(shipped, "cpu_flags", lambda: frozenset(flags))
    monkeypatch.setattr(shipped, "cpu_facts", lambda: {"vendor_id": maker})
    monkeypatch.setattr("qa_backends.engines.openvino.has_bf16", lambda _device: "amx_bf16" in flags)
    forgotten = (shipped.raced_here, recorded_comparisons)  # what was found on the processor as it is
    for each in forgotten:
        each.cache_clear()
    try:
        found = first_sight()
        ticked = preselection(MINILM, "cpu")
    finally:
        for each in forgotten:
            each.cache_clear()
    amd = recorded.measured_on(recorded.AMD, recorded.RECORDED)
    files = (recorded.of_like_processor(recorded.RECORDED), recorded.RECORDED, amd)
    sentences = [read_results(file, Recorded).view.recorded for file in files]
    assert found is not None and found.recorded in sentences, "of a processor like this one, or else of another"
    shown = {card.backend for card in found.cards}
    assert shown >= set(catalog.usual(MINILM))
    if not slow or found.recorded == sentences[0]:  # without VNNI, what is recorded there may be of other weights
        assert shown == set(ticked)


def test_at_first_sight_no_other_family_than_the_forms_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert first_sight() is not None
    monkeypatch.setenv("QA_FAMILY", "bert-large")
    assert first_sight() is None, "it would be taken for the verdict on the model in the form"
    assert "--family bert-large" in deployed(first_sight())


@pytest.mark.slow
def test_a_recording_reads_back_as_it_was_made(
    runtime: Runtime, small_family: Family, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded, "ask", partial(ask, seconds=1))
    made = record(runtime, small_family, "cpu")
    write_results(tmp_path / "r.json", made)
    assert read_results(tmp_path / "r.json", Recorded) == made
    assert set(made.checkpoints) == set(MAIN)
    assert made.checkpoints["pruned"] == checkpoint_hash(small_family, catalog.backend("pruned"))
    assert made.view.recorded == made.machine.sentence("cpu") and made.view.status == ""


def current() -> Recorded:
    """Of the recordings that ship, of each kind of processor one, one on the weights that ship."""
    sentence = recorded_comparisons()[0].recorded
    ship = (read_results(file, Recorded) for file in sorted(recorded.RECORDED.parent.glob("recorded*.json")))
    return next(each for each in ship if each.view.recorded == sentence)


def shown(monkeypatch: pytest.MonkeyPatch, path: Path, content: Recorded) -> bool:
    """Whether the page would show the recording, if it were the only one that ships."""
    write_results(path, content)
    monkeypatch.setattr(recorded, "RECORDED", path)
    monkeypatch.setattr(recorded, "of_like_processor", lambda *_files: path)
    monkeypatch.setattr(recorded, "measured_on", lambda _kind, file: file)
    recorded_comparisons.cache_clear()
    try:
        return bool(recorded_comparisons())
    finally:
        recorded_comparisons.cache_clear()


def test_a_recording_of_other_or_unknown_weights_is_not_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    content, path = current(), tmp_path / "r.json"
    assert shown(monkeypatch, path, content)
    other = content.checkpoints | {"pruned": content.checkpoints["baseline"]}
    assert not shown(monkeypatch, path, replace(content, checkpoints=other))
    assert not shown(monkeypatch, path, replace(content, checkpoints=content.checkpoints | {"pruned": None}))
    assert not shown(monkeypatch, path, replace(content, checkpoints=content.checkpoints | {"nobody-knows": "abc"}))
    assert not shown(monkeypatch, path, replace(content, view=replace(content.view, family="atlantis")))


def test_where_the_recording_of_a_like_processor_is_of_other_weights_the_usual_one_is_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    content = current()
    usual, old, like = (tmp_path / f"{name}.json" for name in ("usual", "old", "like"))
    write_results(usual, content)
    monkeypatch.setattr(recorded, "RECORDED", usual)
    write_results(old, replace(content, checkpoints=content.checkpoints | {"pruned": "of before"}))
    write_results(like, replace(content, view=replace(content.view, recorded="a machine like this one")))
    sentences = []
    for file in (old, like):
        monkeypatch.setattr(recorded, "of_like_processor", lambda *_files, file=file: file)
        recorded_comparisons.cache_clear()
        try:
            found = recorded_comparisons()[0]
        finally:
            recorded_comparisons.cache_clear()
        sentences.append(found.recorded)
    assert sentences == [content.view.recorded, "a machine like this one"]
