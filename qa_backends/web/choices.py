"""What the tabs offer to choose from."""

from __future__ import annotations

from qa_backends import catalog

DEVICE_NAMES = {"cuda": "GPU", "cpu": "CPU"}


def backend_choices() -> list[tuple[str, str]]:
    """Label and name of each backend; one that cannot run here says so in its label."""
    return [
        (
            f"{row.title} (unavailable: {missing.reason})" if (missing := catalog.unavailable(row)) else row.title,
            row.name,
        )
        for row in catalog.BACKENDS
    ]


def device_choices() -> list[tuple[str, str]]:
    return [(DEVICE_NAMES[each], each) for each in catalog.devices()]


def family_choices() -> list[tuple[str, str]]:
    return [(each.title, each.name) for each in catalog.FAMILIES]
