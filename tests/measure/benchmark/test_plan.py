"""What a benchmark can be asked to measure, and the command that repeats it."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from measure.invented import MACHINE
from typer.testing import CliRunner

from qa_backends import catalog
from qa_backends.catalog import Family
from qa_backends.errors import InputError, UnknownBackend
from qa_backends.measure.benchmark import sweep as module
from qa_backends.measure.benchmark.contestants import contestants_of
from qa_backends.measure.benchmark.plan import BenchmarkPlan, Point
from qa_backends.measure.benchmark.sweep import Sweep

if TYPE_CHECKING:
    from qa_backends.runtime import Runtime

ALL = tuple(each.name for each in catalog.offered(catalog.family("minilm"), "cpu"))
SMALL = BenchmarkPlan("minilm", ("pruned", "baseline"), ("cpu",), lengths=(32,), batches=(1,), runs=6, seconds=10)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"backends": ()}, "No backend"),
        ({"devices": ()}, "No device"),
        ({"lengths": ()}, "No length"),
        ({"batches": ()}, "No batch size"),
        ({"backends": ("nobody",)}, "Choose one of"),
        ({"backends": ("bert-large/pruned",)}, "another family"),
        ({"family": "atlantis"}, "Choose one of"),
        ({"devices": ("abacus",)}, "Choose one of"),
        ({"lengths": (513,)}, "from 32 to 512"),
        ({"batches": (0,)}, "from 1 to 64"),
        ({"runs": 4}, "from 5"),
        ({"seconds": 0.0}, "from 1 to 600"),
        ({"reference": "memory"}, "hf-pipeline"),
        ({"backends": ALL, "seconds": 1.0}, "waits between them alone take"),
    ],
)
def test_a_plan_that_cannot_be_measured_is_refused_before_anything_runs(other: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        replace(SMALL, **other).check()


def test_a_family_without_a_backends_checkpoint_is_refused_with_a_sentence(runtime: Runtime) -> None:
    source = catalog.family("minilm").source("baseline")
    catalog.register(Family("unpruned", "Without a pruned checkpoint", (("baseline", source),)))
    plan = replace(SMALL, family="unpruned")
    with pytest.raises(InputError, match="'unpruned' has no checkpoint 'pruned', but these: baseline"):
        module.sweep(runtime, plan)
    replace(plan, backends=("baseline", "baseline-fake")).check()


def test_lengths_are_measured_at_the_smallest_batch_and_batches_at_one_length() -> None:
    plan = replace(SMALL, lengths=(384, 32, 128), batches=(8, 1, 4), mixed=True)
    assert plan.points() == [
        Point("cpu", 32, 1), Point("cpu", 128, 1), Point("cpu", 384, 1), Point("cpu", 128, 4), Point("cpu", 128, 8),
        Point("cpu", None, 4),
    ]  # fmt: skip


def test_a_backend_named_twice_is_measured_once() -> None:
    named = ("pruned", "baseline", "minilm/pruned", "pruned")
    plan = replace(SMALL, backends=named)
    plan.check()
    assert [each.name for each in plan.chosen] == ["baseline", "pruned"]


def test_the_command_repeats_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    from qa_backends import cli

    plan = replace(SMALL, lengths=(32, 128), batches=(1, 8), mixed=True, reference="hf-pipeline", seconds=2.5)
    seen: list[BenchmarkPlan] = []

    def spy(_runtime: Runtime, plan: BenchmarkPlan, **_: object) -> Sweep:
        seen.append(plan)
        return Sweep(plan, MACHINE)

    monkeypatch.setattr(module, "sweep", spy)
    words = shlex.split(plan.command())
    assert words[:4] == ["python", "-m", "qa_backends", "bench"]
    CliRunner().invoke(cli.app, words[3:])
    assert seen == [plan]


def test_a_family_that_is_forgotten_while_it_is_measured_is_measured_to_the_end(small: Family) -> None:
    plan = BenchmarkPlan(small.name, ("baseline", "pruned"))
    plan.check()
    catalog.forget(small.name)
    assert plan.of is small
    assert [each.name for each in contestants_of(plan)] == ["baseline", "pruned"]
    with pytest.raises(UnknownBackend, match="no family 'small'"):
        replace(plan).check()
