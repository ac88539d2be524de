"""The tables of ``docs/serving.md``, made of what was measured and nothing else."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from qa_backends.errors import InputError
from qa_backends.measure.results.document import markdown, with_table
from qa_backends.measure.results.files import read_results
from qa_backends.paths import ASSETS, SERVING
from qa_backends.serving.load.records import (
    ONE_BY_ONE,
    REPLICA,
    REST,
    TWO_REPLICAS,
    Serving,
    share_reached,
    times_allowed,
)

if TYPE_CHECKING:
    from pathlib import Path

DOCS = ASSETS.parent / "docs"
REPLICAS = (10, 100)
CLIENTS = 32
"""At which replicas are counted."""


def refreshed() -> dict[Path, str]:
    """What the documents should say. Raises InputError where the results cannot be read or have no place there."""
    found = read_results(SERVING, Serving)
    contents = {"serving.md": f"{_own(found)}\n\n{_load(found)}\n\n{_caption(found)}", "ray.md": _replicas(found)}
    return {DOCS / name: with_table((DOCS / name).read_text(encoding="utf-8"), each) for name, each in contents.items()}


def _own(found: Serving) -> str:
    """A line for each way and length: mean and standard deviation, by that way and directly."""
    lines = [
        [each.way, str(each.tokens), _spread(each.samples_ms), _spread(each.direct_samples_ms), f"{each.own_ms:.1f}"]
        for each in found.own
    ]
    return markdown(["one question after another", "tokens", "ms", "directly, ms", "its own cost, ms"], lines)


def _spread(samples: tuple[float, ...]) -> str:
    return f"{statistics.mean(samples):.1f} ± {statistics.stdev(samples):.1f}"


def _load(found: Serving) -> str:
    head = ["many clients at once", "clients", "questions/s", "p50, ms", "p90, ms", "p99, ms", "failed"]
    lines = [
        [
            each.way, str(each.clients), f"{each.per_second:.0f}", f"{each.p50_ms:.0f}", f"{each.p90_ms:.0f}",
            f"{each.p99_ms:.0f}", str(each.failures),
        ]
        for each in found.load
    ]  # fmt: skip
    return markdown(head, lines)


def _caption(found: Serving) -> str:
    runs = min(len(each.samples_ms) for each in found.own)
    curve = ", ".join(f"{each.per_second:.0f} in batches of {each.batch}" for each in found.batches)
    return (
        f"`{found.backend}`; {runs} questions each, the two ways in turn, mean ± standard deviation; under load "
        f"questions of {found.tokens} tokens from clients that ask again as soon as they are answered. Triton is asked "
        "for the model alone under load: its clients cut no texts. Directly, without any server, the backend answers "
        f"{curve} a second. {_gain(found)}Clients and servers share {found.machine.sentence(found.device)}."
    )


def _gain(found: Serving) -> str:
    """How much of what batches can gain the server's batching gains, and how far that can be trusted."""
    alone, together = found.at(ONE_BY_ONE, CLIENTS), found.at(REST, CLIENTS)
    if not alone or not together:
        return ""
    share = share_reached(found.batches, alone.per_second, together.per_second)
    if share is None:
        return ""
    gain = together.per_second / alone.per_second
    allowed = times_allowed(found.batches)
    said = f"At {CLIENTS} clients batching makes the server {gain:.2f} times as fast, where the direct call gains"
    if share > 1:
        return f"{said} no more than {allowed:.2f}: the machine's pace had changed between the two. {_drift(found)}"
    part = f"{gain - 1:.2f} of {allowed - 1:.2f}, or {100 * share:.0f} % of what there is to gain"
    return f"{said} up to {allowed:.2f}: {part}. {_drift(found)}"


def _drift(found: Serving) -> str:
    """What the same work was measured to differ by, minutes apart."""
    rates = [each.per_second for each in (found.at(ONE_BY_ONE, 1), found.at(REST, 1)) if each]
    if len(rates) < 2:
        return ""
    apart = 100 * (max(rates) / min(rates) - 1)
    return f"With one client both REST servers do the same work, and came out {apart:.0f} % apart. "


def _replicas(found: Serving) -> str:
    """What replicas on one machine were measured to carry, and what more machines would by arithmetic."""
    one, two = found.at(REPLICA, CLIENTS), found.at(TWO_REPLICAS, CLIENTS)
    if not one or not two:
        raise InputError(f"The results lack Ray's replicas at {CLIENTS} clients. Measure again where Ray is installed.")
    lines = [["1, measured", f"{one.per_second:.0f}"], ["2 on the same machine, measured", f"{two.per_second:.0f}"]]
    lines += [[f"{count}, by arithmetic", f"{count * round(one.per_second):,}"] for count in REPLICAS]
    return (
        f"{markdown(['replicas of one core', 'questions/s'], lines)}\n\n"
        f"`{found.backend}`, questions of {found.tokens} tokens, {CLIENTS} clients; replicas, Ray itself and the "
        f"clients share {found.machine.sentence(found.device)}. By arithmetic: as many machines like it as replicas, "
        f"{one.per_second:.0f} questions a second each."
    )
