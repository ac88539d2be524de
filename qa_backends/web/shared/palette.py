"""One colour a backend, the same in rows, marks and charts, whatever else is in the catalogue."""

from __future__ import annotations

import colorsys
import hashlib
from functools import cache

from qa_backends import catalog
from qa_backends.errors import UnknownBackend
from qa_backends.measure.benchmark.plan import REFERENCES

PINNED = {
    "baseline": "#8a8f98",
    "pruned": "#3b8fd4",
    "pruned-ort": "#c97f00",
    "pruned-ort-fused": "#c56f9f",
    "pruned-ort-fp16": "#0aa37a",
    "hf-pipeline": "#a08a5c",
}
"""After Okabe and Ito's palette, which people with colour-blindness can tell apart, on light and on dark."""
OFFERED = {
    "pruned-ov": "#ba2ad6",
    "pruned-ov-int8": "#d7303e",
    "pruned-ort-int8": "#6a9f1e",
    "pruned-amp": "#5a65e0",
    "pruned-ts": "#cf2897",
    "pruned-compiled": "#ae5b4b",
    "pruned-ov-int8-bf16": "#209faa",
    "pruned-ov-bf16": "#9e54b6",
    "pruned-ort-int8-dynamic": "#9d921e",
    "pruned-ts-amp": "#5e7c35",
    "pruned-deep": "#3f7a83",
    "pruned-deep-ort-fp16": "#a17af0",
    "pruned-deep-ov-bf16": "#8050f0",
    "pruned-deep-ov-int8": "#ec6551",
    "pruned-deep-ov-int8-bf16": "#ea43d4",
    "distilled": "#9680c5",
    "distilled-ort-fp16": "#14a74d",
    "distilled-ov-int8": "#cf3b6e",
}
"""Of the table's other backends: chosen to differ as much as they can from each other and from those above, with a
contrast of 3 to both grounds. Derived hues may come near them."""
LUMINANCES, SATURATION = (0.17, 0.22, 0.28), 0.5
"""Of colours that derive from a name: a contrast of 3 with the page's light and with its dark ground, as the Web
Content Accessibility Guidelines ask of graphics, and told from each other."""
HALVINGS = 12
"""Of the lightness that has a luminance: closer than a byte can say."""
APART = 14 / 360
"""Share of the colour circle that a derived hue is apart from the pinned ones at least."""
STEPS = 720
"""Places on the colour circle that hues are chosen from."""
BAND_OPACITY = 0.16

PART_OPACITY = {"tokenise": 0.35, "model": 1.0, "decode": 0.6}
"""Parts of a question's time, told apart by strength within the backend's colour."""


def colour(backend: str) -> str:
    """The backend's or the reference's colour, as ``#rrggbb``: pinned, or made of its name and of nothing else."""
    if chosen := PINNED.get(backend) or OFFERED.get(backend):
        return chosen
    digest, free = hashlib.sha256(backend.encode()).digest(), _free_hues()
    hue, wanted = free[int(int.from_bytes(digest[:4]) / 2**32 * len(free))], LUMINANCES[digest[4] % len(LUMINANCES)]
    lightness = 0.5
    for halving in range(HALVINGS):
        dark = luminance(_shown(hue, lightness)) < wanted
        lightness += (0.25 if dark else -0.25) / 2**halving
    return _shown(hue, lightness)


def luminance(shown: str) -> float:
    """Relative luminance of ``#rrggbb``, from 0 to 1, as the Web Content Accessibility Guidelines define it."""
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in _shares(shown)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _shown(hue: float, lightness: float) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in colorsys.hls_to_rgb(hue, lightness, SATURATION))


@cache
def _free_hues() -> list[float]:
    """What the pinned ones leave free of the colour circle."""
    pinned = [_hue(each) for each in PINNED.values()]
    return [
        step / STEPS
        for step in range(STEPS)
        if all(abs((step / STEPS - hue + 0.5) % 1 - 0.5) >= APART for hue in pinned)
    ]


def _hue(shown: str) -> float:
    return colorsys.rgb_to_hls(*_shares(shown))[0]


def _shares(shown: str) -> tuple[float, float, float]:
    return int(shown[1:3], 16) / 255, int(shown[3:5], 16) / 255, int(shown[5:7], 16) / 255


def faint(backend: str) -> str:
    """The backend's colour for an area behind its line."""
    red, green, blue = (round(255 * part) for part in _shares(colour(backend)))
    return f"rgba({red},{green},{blue},{BAND_OPACITY})"


def title_of(backend: str, device: str = "cpu") -> str:
    """What a chart calls the backend; the device is named where it is not the CPU.

    One that this version does not know, as in somebody's file, is called by its name.
    """
    try:
        title = REFERENCES[backend].title if backend in REFERENCES else catalog.backend(backend).title
    except UnknownBackend:
        title = backend
    return title if device == "cpu" else f"{title}, GPU"
