"""Choices and colours that the tabs share."""

from __future__ import annotations

import pytest

from qa_backends import catalog
from qa_backends.catalog import Backend, Family, backends
from qa_backends.checkpoints.sources import Source
from qa_backends.measure.results.records import LeftOut
from qa_backends.web.shared.choices import backend_choices, preselected
from qa_backends.web.shared.html import running
from qa_backends.web.shared.palette import colour, title_of

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
    small = Family("small", "Small", (("baseline", Source(folder=None)),))
    catalog.register(small)
    assert [name for _, name in backend_choices("small")] == ["baseline"]
    assert preselected("small") == ["baseline"]
    assert preselected("minilm", among=["pruned", "rm -rf"]) == ["pruned"]


def test_a_name_from_somebodys_file_is_its_own_title() -> None:
    assert title_of("nobody-knows") == "nobody-knows"
    assert title_of("pruned", "cuda") == "Pruned, GPU"


def test_what_was_left_out_is_well_formed_markup() -> None:
    import xml.etree.ElementTree as ElementTree

    shown = running(1, 2, "32 tokens", [LeftOut("pruned", "32 tokens", "<b>why</b>")])
    text = "".join(ElementTree.fromstring(shown).itertext())
    assert "Pruned at 32 tokens: <b>why</b>" in text
