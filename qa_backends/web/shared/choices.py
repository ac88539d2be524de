"""What the tabs offer to choose from."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import gradio as gr

from qa_backends import catalog
from qa_backends.asking.comparison import known_quality
from qa_backends.limits import DEVICE_TITLES, devices
from qa_backends.measure.results.shipped import preselection, shipped_benchmark, tested
from qa_backends.web.shared.wording import size, unbroken

if TYPE_CHECKING:
    from qa_backends.catalog import Backend, Family


def backend_choices(family: str, device: str | None = None) -> list[tuple[str, str]]:
    """Label and name of each backend that the family has and the device, where given, can run.

    A label has three lines: title, what was done and what runs it, and the name on the command line with what it costs.
    One that cannot run here says so below its title, and so does one that has not run anywhere yet.
    """
    of = catalog.family(family)
    return [("\n".join(_explained(of, each)), each.name) for each in catalog.offered(of, device)]


def _explained(of: Family, each: Backend) -> tuple[str, str, str]:
    missing = catalog.unavailable(each)
    remarks = [] if tested(each) else ["untested"]
    remarks += [f"unavailable: {missing.reason.removeprefix(each.title).strip().removesuffix('.')}"] if missing else []
    said = [f"{part[0].upper()}{part[1:]}." for part in ("; ".join(remarks), each.summary) if part]
    return each.title, " ".join(said), " · ".join([each.name, *_costs(of, each)])


def _costs(of: Family, each: Backend) -> list[str]:
    """What ships of the backend's size and of its F1 on each data set, with the interval."""
    benchmark = shipped_benchmark()
    rows = benchmark.rows if benchmark else ()
    file = next((row for row in rows if row.backend == f"{of.name}/{each.name}" and row.bytes), None)
    f1 = ", ".join(f"{unbroken(known.said)} on {known.title}" for known in known_quality(of, each, "cpu"))
    return ([f"{size(file)} on disk"] if file else []) + ([f"F1 {f1}"] if f1 else [])


def preselected(family: str, device: str | None = None, among: list[str] | None = None) -> list[str]:
    """Of the names wanted, by default those that are ticked to begin with, the ones that are offered."""
    of = catalog.family(family)
    offered = [each.name for each in catalog.offered(of, device)]
    wanted = preselection(of, device or devices()[0]) if among is None else among
    return [name for name in wanted if name in offered]


def device_choices() -> list[tuple[str, str]]:
    return [(DEVICE_TITLES[each], each) for each in devices()]


def family_choices() -> list[tuple[str, str]]:
    """Those whose answers mean something: title, and on a second line languages, size and published F1."""
    return [(f"{each.title}\n{each.summary}".strip(), each.name) for each in catalog.families() if not each.random]


def said(backends: list[str], family: str, device: str) -> str:
    """What is chosen, in a line: "Baseline, Pruned · MiniLM · CPU"."""
    titles = [each.title for each in catalog.offered(catalog.family(family)) if each.name in backends]
    shown = " + ".join(titles) if len(titles) <= 2 else f"{len(titles)} backends"
    return f"{shown or 'No backend'} · {place_of(family, device)}"


def new_ticket() -> int:
    """One that is higher than all before: who asks twice before the page has heard of the first asks twice."""
    return time.time_ns() // 1000


def filled_in(family: str, device: str, chosen: list[str]) -> str:
    """A new ticket, and what the form shows once these are offered in it, for ``scripts.ONCE_SHOWN``."""
    ticked = still_ticked(family, device, chosen)
    return json.dumps({"ticket": new_ticket(), "backends": ticked, "said": said(ticked, family, device)})


def place_of(family: str, device: str) -> str:
    """As in "MiniLM · CPU"."""
    return f"{catalog.family(family).short} · {DEVICE_TITLES[device]}"


def offer(family: str, device: str | None, chosen: list[str]) -> Any:
    """The backends that the family has and the device, where given, can run; a tick stays where it is still offered."""
    return gr.CheckboxGroup(backend_choices(family, device), value=still_ticked(family, device, chosen))


def still_ticked(family: str, device: str | None, chosen: list[str]) -> list[str]:
    """Those chosen that are offered; where none is, what is ticked to begin with."""
    return preselected(family, device, chosen) or preselected(family, device)
