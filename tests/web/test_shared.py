"""Choices and colours that the tabs share."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from qa_backends import catalog
from qa_backends.asking.comparison import known_quality
from qa_backends.catalog import Backend, Family, backends
from qa_backends.checkpoints.sources import Source
from qa_backends.measure.results.records import LeftOut
from qa_backends.web.shared.choices import backend_choices, preselected
from qa_backends.web.shared.downloads import KEPT, Downloads
from qa_backends.web.shared.html import finished, running
from qa_backends.web.shared.palette import colour, title_of
from qa_backends.web.shared.tables import Column, number, table_of, text

MORE = tuple(
    Backend("baseline", artefact, engine, options)
    for artefact, engine, options in (
        ("onnx", "onnxruntime", ()), ("onnx-fused", "onnxruntime", ()), ("onnx-fused-fp16", "onnxruntime", ()),
        ("checkpoint", "fake", ()), ("checkpoint", "fake", (("place", "last"),)),
    )
)  # fmt: skip


def test_every_backend_has_a_colour_of_its_own_that_does_not_depend_on_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = {each.name: colour(each.name) for each in catalog.BACKENDS}
    more = (*MORE, *catalog.BACKENDS)
    for module in (catalog, backends):
        monkeypatch.setattr(module, "BACKENDS", more)
    colours = {each.name: colour(each.name) for each in more} | {"hf-pipeline": colour("hf-pipeline")}
    assert len(set(colours.values())) == len(colours)
    assert before.items() <= colours.items()
    assert all(len(each) == 7 and each.startswith("#") for each in colours.values())


def test_a_family_offers_only_what_it_has() -> None:
    small = Family("small", "Small", (("baseline", Source(repository="nobody/small")),))
    catalog.register(small)
    assert all(name.startswith("baseline") for _, name in backend_choices("small", "cpu"))
    labels = {name: label for label, name in backend_choices("small")}
    assert labels["baseline-deepspeed-fp16"].startswith("Baseline, DeepSpeed, FP16\nUntested; unavailable: needs ")
    assert preselected("small") == ["baseline", "baseline-ort-fp16"]
    assert preselected("minilm", among=["pruned", "rm -rf"]) == ["pruned"]


def test_a_label_says_f1_on_every_set_with_its_interval() -> None:
    label = next(label for label, name in backend_choices("minilm") if name == "pruned-deep")
    said = label.replace("\N{NO-BREAK SPACE}", " ").replace("\N{WORD JOINER}", "")  # which keep it on one line
    known = known_quality(*catalog.resolve("minilm/pruned-deep"), "cpu")
    assert said.endswith("F1 " + ", ".join(f"{each.f1_interval.around(each.f1)} on {each.title}" for each in known))
    assert len(known) == 3


def test_a_name_from_somebodys_file_is_its_own_title() -> None:
    assert title_of("nobody-knows") == "nobody-knows"
    assert title_of("pruned", "cuda") == "Pruned, GPU"


def test_what_was_left_out_is_well_formed_markup() -> None:
    shown = finished(1, 2, "32 tokens", unit="done", without=[LeftOut("pruned", "32 tokens", "<b>why</b>")])
    text = "".join(ElementTree.fromstring(shown).itertext())
    assert "Pruned at 32 tokens: <b>why</b>" in text


def bar(shown: str) -> dict[str, str]:
    """What a progress bar tells those who cannot see it."""
    found = ElementTree.fromstring(shown).find(".//*[@role='progressbar']")
    assert found is not None
    return found.attrib


def test_a_bar_says_what_is_done_how_much_of_it_and_how_long_it_takes() -> None:
    shown = running(1_500, 6_000, "<b>Pruned", unit="answers", left_s=12.4)
    said = bar(shown)
    assert (said["aria-valuenow"], said["aria-valuemin"], said["aria-valuemax"]) == ("1500.00", "0", "6000")
    assert said["aria-label"] and said["aria-valuetext"] == "1,500 of 6,000 answers, about 12 s left"
    text = "".join(ElementTree.fromstring(shown).itertext())
    assert "<b>Pruned" in text and said["aria-valuetext"] in text
    assert 'style="width:25.00%"' in shown


def test_only_how_work_ended_is_announced() -> None:
    """A screen reader that spoke at each drawing would speak all the time."""
    under_way, over = (ElementTree.fromstring(each) for each in (
        running(1, 2, "128 of 294 questions"), finished(2, 2, "Done.", unit="answers"),
    ))  # fmt: skip
    assert under_way.find(".//*[@role='status']") is None and under_way.find(".//*[@aria-live='polite']") is None
    said = over.find(".//*[@role='status']")
    assert said is not None and said.text == "Done."


def test_a_bar_promises_nothing_while_it_is_not_known_how_much_there_is() -> None:
    shown = running(0, 0, "Reading the questions …")
    assert "aria-valuenow" not in bar(shown)
    assert " of " not in "".join(ElementTree.fromstring(shown).itertext())


HEAD = (Column("<i>name", number=False), Column("<i>p50,", "ms"))


def test_a_table_holds_what_it_sorts_by_and_no_markup_of_others() -> None:
    rows = [[text("<i>one"), number(1234.5, 1)], [text("two"), number(None)]]
    shown = table_of("test", '"><i>', "measurement", HEAD, rows)
    assert "<i>" not in shown
    assert '<td class="qa-number" data-value="1234.5">1,234.5</td>' in shown
    assert '<td class="qa-number" data-value="">–</td>' in shown
    assert "2 measurements" in shown
    assert "1 measurement<" in table_of("test", "Test", "measurement", HEAD, rows[:1])


def test_downloads_of_long_ago_make_place_for_new_ones() -> None:
    downloads = Downloads()
    written = [Path(downloads.write({"a.json": str(turn), "b.zip": bytes([turn])})[0]) for turn in range(KEPT + 1)]
    assert not written[0].exists()
    assert [each.read_text() for each in written[1:]] == [str(turn) for turn in range(1, KEPT + 1)]
    assert written[-1].with_name("b.zip").read_bytes() == bytes([KEPT])
