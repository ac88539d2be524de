"""What all charts share: the page's font, no ground of their own, sizes in pixels that suit a phone and a desk alike.

Text is coloured by the style sheet, so that one figure serves light and dark. Heights and margins are fixed here, so
that whoever draws knows in Python where everything will stand.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from qa_backends.web.shared.palette import colour

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

GRID = "rgba(128,128,128,0.25)"
CLEAR = "rgba(0,0,0,0)"
FONT = "system-ui, sans-serif"
"""The page's own: were it only in the style sheet, Plotly would measure another."""
TITLE_PX, TEXT_PX, LINE_PX = 14, 12, 16
TITLE_LINE_PX = 18
"""What each line of the title takes, also one of smaller text: so Plotly sets them."""
SOFT = f"font-size:{TEXT_PX}px;font-weight:400;--soft:1"
"""Of a title's further lines: the style sheet knows them by the last."""
CAPITAL_EM = 0.7
"""Of a title of one line Plotly counts this from the top to its baseline; of more lines it does not."""
SUBTITLE_CHARS = 48
"""What a phone has room for in a line."""
EDGE_PX = 10
PLOT_PX = 250
TICK_PX = 6
"""Between what is plotted and the numbers beside it, so that a marker on the edge touches none."""
BOTTOM_PX = 48
"""Below what is plotted: tick labels, and the axis' title."""
HOVER = {"bgcolor": "#27272a", "bordercolor": "#27272a", "font": {"color": "#ffffff", "size": TEXT_PX}}
CHAR_EM = {"ijl|.,:;'!()[] ": 0.36, "frt-": 0.45, "mwMW×%": 0.98, "ABCDEFGHIJKLNOPQRSTUVXYZ": 0.74}
"""Widths of characters by the widest of the system's common fonts, in shares of the font's size; others take 0.64."""


def layout(title: str, subtitle: str = "", *, plot_px: float = PLOT_PX, left: float = EDGE_PX,
           right: float = EDGE_PX) -> dict[str, Any]:  # fmt: skip
    """A title at the left with its lines below, then ``plot_px`` for what is plotted; nothing to drag."""
    said = "".join(f'<br><span style="{SOFT}">{line}</span>' for line in textwrap.wrap(subtitle, SUBTITLE_CHARS))
    top = 2 * EDGE_PX + TITLE_LINE_PX * (1 + said.count("<br>"))
    first_line = EDGE_PX + (CAPITAL_EM * TITLE_PX if said else 0)
    axis = {"gridcolor": GRID, "zeroline": False, "fixedrange": True, "tickfont": {"size": TEXT_PX}, "tickangle": 0,
            "ticks": "outside", "ticklen": TICK_PX, "tickcolor": CLEAR}  # fmt: skip
    return {
        "font": {"family": FONT, "size": TEXT_PX},
        "title": {
            "text": title + said, "font": {"size": TITLE_PX, "weight": 600}, "x": 0, "xref": "container", "y": 1,
            "yref": "container", "yanchor": "top", "pad": {"l": EDGE_PX, "t": first_line},
        },
        "xaxis": axis,
        "yaxis": axis,
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "height": top + plot_px + BOTTOM_PX,
        "margin": {"l": left, "r": right, "t": top, "b": BOTTOM_PX, "pad": 0},
        "dragmode": False,
        "hoverlabel": HOVER,
        "modebar": {"bgcolor": CLEAR, "color": "#808080", "activecolor": "#808080", "remove": ["select", "lasso"]},
    }  # fmt: skip


def plotted_px(figure: go.Figure) -> float:
    """The height of what is plotted."""
    return float(figure.layout.height - figure.layout.margin.t - figure.layout.margin.b)


def axis_title(text: str) -> dict[str, Any]:
    """What stands below an axis."""
    return {"text": text, "font": {"size": TEXT_PX}, "standoff": 4}


def sentence(title: str, said: str) -> go.Figure:
    """Where there is nothing to plot: the title and a sentence, without an empty frame."""
    import plotly.graph_objects as go

    figure = go.Figure(layout=layout(title, said, plot_px=0))
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    figure.update_layout(height=figure.layout.margin.t + 1, margin={"b": 0})
    return figure


def inked(text: str, backend: str) -> str:
    """Text in the backend's colour: the style sheet darkens it on a light ground and lightens it on a dark one."""
    return f'<span style="--ink:{colour(backend)}">{text}</span>'


def plain(text: str, most: int = 60) -> str:
    """Plotly reads a little HTML in labels; text is shown as it was typed, shortened."""
    short = text if len(text) <= most else text[: most - 1] + "…"
    return short.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def width(text: str) -> float:
    """About how many pixels the text takes, rather more than less: what draws it is the reader's font."""
    known = {each: em for characters, em in CHAR_EM.items() for each in characters}
    return TEXT_PX * sum(known.get(each, 0.64) for each in text)


LEAST_APART = 0.11
"""Share of an axis that two labels have between them at least."""


def ticks(values: Sequence[float], shares: Sequence[float]) -> list[float]:
    """Of ascending values at these shares of an axis, those whose labels do not touch on a phone: the ends, and what
    has room between."""
    kept: list[int] = []
    for number, share in enumerate(shares):
        if not kept or share - shares[kept[-1]] >= LEAST_APART:
            kept.append(number)
    if kept and kept[-1] != len(values) - 1:
        kept[-1 if len(kept) > 1 else len(kept) :] = [len(values) - 1]
    return [values[number] for number in kept]
