"""What all charts share. Text is coloured by the style sheet, so that one figure serves light and dark."""

from __future__ import annotations

from typing import Any

GRID = "rgba(128,128,128,0.25)"
CLEAR = "rgba(0,0,0,0)"


def layout(title: str, subtitle: str = "") -> dict[str, Any]:
    """No ground of its own, a title at the left, nothing to drag."""
    return {
        "title": {
            "text": title,
            "font": {"size": 13},
            "x": 0,
            "xref": "container",
            "pad": {"l": 12},
            "subtitle": {"text": subtitle, "font": {"size": 11}},
        },
        "xaxis": {"gridcolor": GRID, "zeroline": False, "fixedrange": True},
        "yaxis": {"gridcolor": GRID, "zeroline": False, "fixedrange": True},
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "height": 280,
        "margin": {"l": 8, "r": 12, "t": 40, "b": 40},
        "dragmode": False,
        "modebar": {"remove": ["select", "lasso2d", "zoom", "pan", "autoscale", "zoomin", "zoomout", "resetscale"]},
    }


def plain(text: str, most: int = 60) -> str:
    """Plotly reads a little HTML in labels; text is shown as it was typed, shortened."""
    short = text if len(text) <= most else text[: most - 1] + "…"
    return short.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
