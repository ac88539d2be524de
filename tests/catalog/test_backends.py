"""What people see of a backend derives from its row; every combination that fits has a name of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from helpers import ROOT, heavy

from qa_backends import catalog, engines
from qa_backends.artefacts import steps
from qa_backends.artefacts.steps import step_of
from qa_backends.catalog import Backend
from qa_backends.engines import engine_class, engine_names
from qa_backends.errors import ArtefactError, UnknownBackend

if TYPE_CHECKING:
    from collections.abc import Callable

    AddFile = Callable[[str, str], None]


def test_names_and_titles_are_what_people_know_them_by() -> None:
    assert {each.name: each.title for each in catalog.BACKENDS}.items() >= {
        "baseline": "Baseline",
        "pruned": "Pruned",
        "pruned-ort": "Pruned, ONNX",
        "pruned-ort-fused": "Pruned, fused",
        "pruned-ort-fp16": "Pruned, fused, FP16",
    }.items()
    assert catalog.backend("pruned-ort-fp16").summary == (
        "heads and FFN columns removed, exported, operators fused, stored as FP16, in ONNX Runtime"
    )


def test_precision_and_tolerance_come_from_the_steps_the_engine_and_its_options() -> None:
    half = catalog.backend("pruned-ort-fp16")
    assert half.precision == "FP16"
    steps = [step_of(name).tolerance for name in ("onnx", "onnx-fused", "onnx-fused-fp16")]
    assert half.tolerance == pytest.approx(sum(steps) + engine_class("onnxruntime").tolerance)
    assert catalog.backend("baseline").tolerance == engine_class("pytorch").tolerance


def test_every_combination_that_fits_can_be_named_and_no_two_share_a_name() -> None:
    every = list(catalog.every_backend())
    assert [name for name, times in Counter(each.name for each in every).items() if times > 1] == []
    assert all(catalog.backend(each.name) == each for each in every)
    assert {"baseline-ort-fp16", "baseline-fake", "pruned-fake-last"} <= {each.name for each in every}
    assert all(each.fits for each in every)
    assert every[: len(catalog.BACKENDS)] == list(catalog.BACKENDS)


def test_the_table_names_what_there_is() -> None:
    assert all(each.fits and each.runs_on for each in catalog.BACKENDS)
    assert set(catalog.PRESELECTED) <= {each.name for each in catalog.BACKENDS}


OPTIONAL = """
    from qa_backends.contract import Choice
    from qa_backends.engines.fake import Fake


    class Optional(Fake):
        short = "optional"
        label = "Optional"
        tolerance = 0.25
        options = {"colour": {"red": Choice("in red", 0.5)}, "size": {"large": Choice("large")}}
"""


def test_an_engines_options_make_backends_of_their_own(add_engine: AddFile) -> None:
    add_engine("optional", OPTIONAL)
    names = [each.name for each in catalog.every_backend() if each.engine == "optional" and each.checkpoint == "pruned"]
    assert names == ["pruned-optional", "pruned-optional-large", "pruned-optional-red", "pruned-optional-red-large"]
    red = catalog.backend("pruned-optional-red-large")
    assert red.options == (("colour", "red"), ("size", "large"))
    assert red.title == "Pruned, Optional, in red, large"
    assert red.tolerance == 0.75


def test_an_unknown_engine_is_refused_with_a_list_of_those_there_are() -> None:
    assert set(engine_names()) >= {"fake", "onnxruntime", "pytorch"}
    with pytest.raises(UnknownBackend, match=f"no engine 'abacus'. Choose one of: {', '.join(engine_names())}"):
        engine_class("abacus")
    with pytest.raises(UnknownBackend, match="no engine 'abacus'"):
        _ = Backend("baseline", "checkpoint", "abacus").title


def test_an_unknown_build_step_is_refused_and_never_taken_for_another() -> None:
    with pytest.raises(ArtefactError, match=r"no build step 'onnx-nothing'\. Choose one of: .*onnx-fused"):
        _ = Backend("pruned", "onnx-nothing", "onnxruntime").precision


@pytest.mark.parametrize("source", ["", "from qa_backends.engines.fake import Fake as Mine"])
def test_a_file_that_holds_no_engine_is_said(add_engine: AddFile, source: str) -> None:
    add_engine("hollow", source)
    with pytest.raises(UnknownBackend, match="'hollow' holds 0 engines"):
        engine_class("hollow")


SLOW_ENGINE = """
    import time

    from qa_backends.engines.fake import Fake

    time.sleep(1)


    class Slow(Fake):
        short = "slow"
        label = "Slow"
"""
SLOW_STEP = """
    import dataclasses
    import time

    from qa_backends.artefacts.steps import onnx

    time.sleep(1)
    STEP = dataclasses.replace(onnx.STEP, name="slow")
"""


@pytest.mark.parametrize("kind", ["engine", "step"])
def test_who_asks_while_another_thread_imports_the_file_waits_for_all_of_it(
    add_engine: AddFile, add_step: AddFile, kind: str
) -> None:
    add, look_up, package = {
        "engine": (lambda: add_engine("slow", SLOW_ENGINE), engine_class, engines),
        "step": (lambda: add_step("slow", SLOW_STEP), step_of, steps),
    }[kind]
    add()
    with ThreadPoolExecutor() as pool:
        first = pool.submit(look_up, "slow")
        while f"{package.__name__}.slow" not in sys.modules:
            assert not first.done()
        assert not first.done()
        assert look_up("slow") is first.result()


def test_listing_backends_imports_nothing_heavy() -> None:
    script = (
        "import sys, json; from qa_backends import catalog;"
        "[(catalog.unavailable(each), each.title, each.tolerance) for each in catalog.every_backend()];"
        f"heavy = {heavy()};"
        "print(json.dumps([m for m in heavy if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
