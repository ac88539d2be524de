"""What the tabs offer to choose from."""

from __future__ import annotations

from qa_backends import catalog
from qa_backends.limits import DEVICE_TITLES, devices


def backend_choices(family: str, device: str | None = None) -> list[tuple[str, str]]:
    """Label and name of each backend that the family has and the device, where given, can run.

    One whose packages are not installed says so in its label.
    """
    return [
        (
            f"{each.title} (unavailable: {missing.reason})" if (missing := catalog.unavailable(each)) else each.title,
            each.name,
        )
        for each in catalog.offered(catalog.family(family), device)
    ]


def preselected(family: str, device: str | None = None, among: list[str] | None = None) -> list[str]:
    """Of the names wanted, by default those that are ticked to begin with, the ones that are offered."""
    offered = [name for _, name in backend_choices(family, device)]
    wanted = catalog.PRESELECTED if among is None else among
    return [name for name in wanted if name in offered]


def device_choices() -> list[tuple[str, str]]:
    return [(DEVICE_TITLES[each], each) for each in devices()]


def family_choices() -> list[tuple[str, str]]:
    return [(each.title, each.name) for each in catalog.families()]


def said(backends: list[str], family: str, device: str) -> str:
    """What is chosen, in a line: "Baseline, Pruned · MiniLM · CPU"."""
    titles = [label.partition(" (")[0] for label, name in backend_choices(family) if name in backends]
    shown = " + ".join(titles) if len(titles) <= 2 else f"{len(titles)} backends"
    return " · ".join([shown or "No backend", catalog.family(family).title.partition(",")[0], DEVICE_TITLES[device]])
