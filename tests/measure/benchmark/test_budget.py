"""A benchmark within the memory there is: what fits takes part, what does not is said, nobody is loaded twice."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from qa_backends import catalog
from qa_backends.measure.benchmark.plan import BenchmarkPlan
from qa_backends.measure.benchmark.sweep import Sweep, sweep
from qa_backends.runtime import Runtime

if TYPE_CHECKING:
    from qa_backends.catalog import Family

pytestmark = pytest.mark.usefixtures("no_pause")

MINILM = catalog.family("minilm")
PLAN = BenchmarkPlan("minilm", ("baseline-fake", "pruned-fake"), lengths=(32, 64), batches=(1, 2), runs=6, seconds=10)


def bytes_of(*names: str, family: Family = MINILM) -> int:
    runtime = Runtime()
    return sum(runtime.size_of(family, catalog.backend(name), "cpu") for name in names)


def watched(runtime: Runtime, plan: BenchmarkPlan) -> tuple[Sweep, list[str], list[str]]:
    """The sweep, what it loaded and what it unloaded, in order."""
    said: list[str] = []

    def watch(state: Sweep) -> None:
        if not said or said[-1] != state.status:
            said.append(state.status)

    found = sweep(runtime, plan, emit=watch)
    loads, unloads = ([each.split()[1] for each in said if each.startswith(what)] for what in ("loading", "unloading"))
    return found, loads, unloads


def test_what_fits_together_is_loaded_once_and_stays() -> None:
    runtime = Runtime(budget_bytes=bytes_of("baseline", "pruned"))
    found, loads, unloads = watched(runtime, PLAN)
    assert loads == ["minilm/baseline-fake", "minilm/pruned-fake"] and unloads == []
    assert found.left_out == [] and len(found.records) == 6 and len(found.alone) == 2


def test_what_does_not_fit_beside_the_others_is_left_out_and_nobody_is_loaded_twice() -> None:
    runtime = Runtime(budget_bytes=bytes_of("baseline", "pruned") - 1)
    found, loads, unloads = watched(runtime, PLAN)
    assert loads == ["minilm/baseline-fake"] and unloads == []
    assert {each.name for each in found.records} == {"baseline-fake"} and len(found.records) == 3
    (entry,) = found.left_out
    assert (entry.backend, entry.point) == ("pruned-fake", "")
    assert "does not fit beside the others" in entry.why and "QA_MEMORY_GB" in entry.why
    assert "0.2 GB" in entry.why and "CPU" in entry.why


def test_a_later_backend_that_is_small_enough_takes_the_place_of_one_that_is_not() -> None:
    plan = replace(PLAN, backends=("baseline-fake", "baseline-fake-last", "pruned-fake"))
    found, loads, _ = watched(Runtime(budget_bytes=bytes_of("baseline", "pruned")), plan)
    assert loads == ["minilm/baseline-fake", "minilm/pruned-fake"]
    assert [each.backend for each in found.left_out] == ["baseline-fake-last"]


@pytest.mark.parametrize(("spare", "takes_part"), [(0, True), (-1, False)])
def test_a_reference_is_counted_like_any_backend(small: Family, spare: int, takes_part: bool) -> None:
    plan = replace(PLAN, family=small.name, lengths=(32,), batches=(1,), reference="hf-pipeline", seconds=60)
    runtime = Runtime(budget_bytes=bytes_of("baseline", "pruned", "baseline", family=small) + spare)
    found, _, unloads = watched(runtime, plan)
    assert unloads == []
    assert [each.name for each in found.records] == [*PLAN.backends, *(["hf-pipeline"] if takes_part else [])]
    assert [each.backend for each in found.left_out] == ([] if takes_part else ["hf-pipeline"])
    assert ("small/hf-pipeline" in runtime.loaded("cpu")) is takes_part


def test_what_was_loaded_for_others_makes_room_for_a_benchmark() -> None:
    runtime = Runtime(budget_bytes=bytes_of("baseline", "pruned"))
    with runtime.turn("cpu") as turn:
        runtime.get(MINILM, catalog.backend("baseline-fake-last"), "cpu", turn.progress)
    found, loads, unloads = watched(runtime, PLAN)
    assert loads == ["minilm/baseline-fake", "minilm/pruned-fake"]
    assert unloads == ["minilm/baseline-fake-last"] and found.left_out == []
