"""What the tab's choices ask for: as a plan, in a line that says it, and as the command that repeats it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from qa_backends.errors import QAError
from qa_backends.limits import DEVICE_TITLES
from qa_backends.measure.benchmark.plan import PIPELINE, BenchmarkPlan
from qa_backends.web.shared.choices import said

if TYPE_CHECKING:
    from qa_backends.measure.results.records import Benchmark


def plan_of(
    backends: list[str], family: str, devices: list[str], lengths: list[str], batches: list[str], runs: float,
    seconds: float, mixed: bool, reference: bool,
) -> BenchmarkPlan:  # fmt: skip
    """What the tab's choices ask for. What cannot be measured is found by the plan's own check."""
    return BenchmarkPlan(
        family=family, backends=tuple(backends), devices=tuple(devices), lengths=tuple(map(int, lengths)),
        batches=tuple(map(int, batches)), runs=int(runs or 0), seconds=float(seconds or 0), mixed=mixed,
        reference=PIPELINE if reference else None,
    )  # fmt: skip


def said_of(plan: BenchmarkPlan) -> str:
    """What is chosen, in a line with the time it takes at most; or why it cannot be measured. Numbers ascend, in
    whatever order they were ticked."""
    try:
        plan.check()
    except QAError as error:
        return str(error)
    minutes = math.ceil(plan.most_seconds / 60)
    where = "".join(f" + {DEVICE_TITLES[each]}" for each in plan.devices[1:])
    lengths, batches = (", ".join(map(str, sorted(each))) for each in (plan.lengths, plan.batches))
    return " · ".join([
        said(list(plan.backends), plan.family, plan.devices[0]) + where, f"{lengths} tokens", f"batches of {batches}",
        f"{minutes} min at most",
    ])  # fmt: skip


def command_of(benchmark: Benchmark) -> str:
    """The line that repeats what was measured: of a benchmark that was stopped, that part."""
    return benchmark.plan.repeating(each.place for each in benchmark.rows).command()
