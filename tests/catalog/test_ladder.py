"""The ladder of optimisation: what each backend is compared with, whatever is chosen and in whatever order."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from qa_backends import catalog
from qa_backends.catalog import Backend
from qa_backends.catalog.ladder import before

if TYPE_CHECKING:
    from collections.abc import Callable

    AddFile = Callable[[str, str], None]

NAMES = [each.name for each in catalog.BACKENDS]


def name_before(name: str) -> str | None:
    found = before(catalog.backend(name))
    return found.name if found else None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("baseline", None),
        ("pruned", "baseline"),
        ("pruned-ort", "pruned"),
        ("pruned-ort-fused", "pruned-ort"),
        ("pruned-ort-fp16", "pruned-ort-fused"),
        ("baseline-ort", "baseline"),
        ("baseline-ort-fp16", "baseline-ort-fused"),
        ("pruned-fake-last", "pruned"),
    ],
)
def test_the_step_before_lacks_the_last_thing_that_was_done(name: str, expected: str | None) -> None:
    assert name_before(name) == expected


def test_a_row_for_fewer_devices_is_not_the_step_before_itself() -> None:
    assert before(Backend("pruned", "checkpoint", "pytorch", devices=("cpu",))) == catalog.backend("baseline")


def test_steps_that_were_not_chosen_are_climbed_over() -> None:
    last = catalog.backend("pruned-ort-fp16")
    assert catalog.nearest(last, NAMES) == "pruned-ort-fused"
    assert catalog.nearest(last, ["baseline", "pruned"]) == "pruned"
    assert catalog.nearest(catalog.backend("baseline-ort-fp16"), ["baseline", "pruned"]) == "baseline"
    assert catalog.nearest(last, ["pruned-ort-fp16"]) is None
    assert catalog.nearest(catalog.backend("baseline"), NAMES) is None


def test_the_order_is_the_ladders_whatever_order_backends_come_in() -> None:
    expected = [
        "baseline", "pruned", "pruned-ort", "pruned-ort-fused", "pruned-ort-fp16", "pruned-fake", "baseline-ort",
        "baseline-ort-fp16",
    ]  # fmt: skip
    every = [catalog.backend(name) for name in expected]
    for seed in range(5):
        shuffled = random.Random(seed).sample(every, len(every))
        assert [each.name for each in catalog.ladder(shuffled)] == expected


BOTH = """
    from qa_backends.contract import Choice
    from qa_backends.engines.fake import Fake


    class Both(Fake):
        short = "both"
        reads = ("checkpoint", "onnx")
        options = {"precision": {"bf16": Choice("BF16")}, "cache": {"bf16": Choice("cache in BF16")}}
"""


def test_an_engine_that_reads_parent_and_child_keeps_them_apart_and_on_the_ladder(add_engine: AddFile) -> None:
    add_engine("both", BOTH)
    names = [each.name for each in catalog.every_backend() if each.engine == "both" and each.checkpoint == "pruned"]
    assert len(set(names)) == len(names) >= 8
    child = Backend("pruned", "onnx", "both")
    assert [each.name for each in catalog.ladder([child, catalog.backend("baseline")])] == ["baseline", child.name]
    assert catalog.nearest(child, ["pruned-both", "baseline"]) == "pruned-both"
