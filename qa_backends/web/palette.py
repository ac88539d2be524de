"""One colour a backend, the same in cards, marks and charts.

Okabe and Ito's palette, which people with colour-blindness can tell apart, on light and on dark.
"""

from __future__ import annotations

from qa_backends import catalog

COLOURS = ("#8a8f98", "#3b8fd4", "#d98c00", "#c56f9f", "#0aa37a", "#d35f2b", "#7d6bd6", "#5aa9a9")

PART_OPACITY = {"tokenise": 0.35, "model": 1.0, "decode": 0.6}
"""Parts of a question's time, told apart by strength within the backend's colour."""


def colour(backend: str) -> str:
    """The backend's colour, by its place in the catalogue."""
    names = [row.name for row in catalog.BACKENDS]
    return COLOURS[names.index(backend) % len(COLOURS)]
