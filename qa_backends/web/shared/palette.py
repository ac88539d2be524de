"""One colour a backend, the same in cards, marks and charts, whatever else is in the catalogue."""

from __future__ import annotations

import colorsys
import hashlib

from qa_backends import catalog
from qa_backends.errors import UnknownBackend
from qa_backends.measure.benchmark.plan import REFERENCES

PINNED = {
    "baseline": "#8a8f98",
    "pruned": "#3b8fd4",
    "pruned-ort": "#d98c00",
    "pruned-ort-fused": "#c56f9f",
    "pruned-ort-fp16": "#0aa37a",
    "hf-pipeline": "#a08a5c",
}
"""After Okabe and Ito's palette, which people with colour-blindness can tell apart, on light and on dark."""
LIGHTNESS, SATURATION = 0.52, 0.5
"""Of colours that derive from a name: to be told from both a light and a dark ground."""
APART = 14 / 360
"""Share of the colour circle that two backends' hues are apart at least."""
BAND_OPACITY = 0.16

PART_OPACITY = {"tokenise": 0.35, "wait": 0.2, "model": 1.0, "decode": 0.6}
"""Parts of a question's time, told apart by strength within the backend's colour."""


def colour(backend: str) -> str:
    """The backend's or the reference's colour, as ``#rrggbb``: pinned, or made of its name."""
    if backend in PINNED:
        return PINNED[backend]
    taken = [_hue(each) for each in PINNED.values()]
    for name in sorted({each.name for each in catalog.BACKENDS} - set(PINNED)):
        taken.append(_free(name, taken))
        if name == backend:
            return _hex(taken[-1])
    return _hex(_free(backend, taken))


def _free(name: str, taken: list[float]) -> float:
    """The hue that the name's hash gives, moved on until it is apart from those taken, while there is room."""
    hue = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]) / 2**32
    for _ in range(int(1 / APART)):
        if all(min(abs(hue - other), 1 - abs(hue - other)) >= APART for other in taken):
            break
        hue = (hue + APART) % 1
    return hue


def _hex(hue: float) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in colorsys.hls_to_rgb(hue, LIGHTNESS, SATURATION))


def _hue(shown: str) -> float:
    return colorsys.rgb_to_hls(*(part / 255 for part in _rgb(shown)))[0]


def _rgb(shown: str) -> tuple[int, int, int]:
    return int(shown[1:3], 16), int(shown[3:5], 16), int(shown[5:7], 16)


def faint(backend: str) -> str:
    """The backend's colour for an area behind its line."""
    red, green, blue = _rgb(colour(backend))
    return f"rgba({red},{green},{blue},{BAND_OPACITY})"


def title_of(backend: str, device: str = "cpu") -> str:
    """What a chart calls the backend; the device is named where it is not the CPU.

    One that this version does not know, as in somebody's file, is called by its name.
    """
    title = REFERENCES.get(backend)
    if title is None:
        try:
            title = catalog.backend(backend).title
        except UnknownBackend:
            title = backend
    return title if device == "cpu" else f"{title}, GPU"
