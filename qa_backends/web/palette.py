"""One colour a backend, the same in cards, marks and charts.

Okabe and Ito's palette, which people with colour-blindness can tell apart, on light and on dark.
"""

from __future__ import annotations

from qa_backends import catalog
from qa_backends.measure.plan import PIPELINE

COLOURS = ("#8a8f98", "#3b8fd4", "#d98c00", "#c56f9f", "#0aa37a", "#d35f2b", "#7d6bd6", "#5aa9a9")
REFERENCE_COLOUR = "#a08a5c"
BAND_OPACITY = 0.16

PART_OPACITY = {"tokenise": 0.35, "wait": 0.2, "model": 1.0, "decode": 0.6}
"""Parts of a question's time, told apart by strength within the backend's colour."""


def colour(backend: str) -> str:
    """The backend's colour, by its place in the catalogue; a reference that is no backend has its own."""
    names = [row.name for row in catalog.BACKENDS]
    return COLOURS[names.index(backend) % len(COLOURS)] if backend in names else REFERENCE_COLOUR


def faint(backend: str) -> str:
    """The backend's colour for an area behind its line."""
    red, green, blue = (int(colour(backend)[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{BAND_OPACITY})"


def title_of(backend: str, device: str = "cpu") -> str:
    """What a chart calls the backend; the device is named where it is not the CPU."""
    titles = {row.name: row.title for row in catalog.BACKENDS} | {PIPELINE: "transformers pipeline"}
    return titles[backend] if device == "cpu" else f"{titles[backend]}, GPU"
