"""How numbers are said, the same wherever they are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qa_backends.measure.statistics import Ratio

if TYPE_CHECKING:
    from collections.abc import Mapping


def milliseconds(value: float) -> str:
    """Three significant digits: 0.42, 4.21, 42.1, 421."""
    for limit, digits in ((1, 2), (10, 2), (100, 1)):
        if value < limit:
            return f"{value:.{digits}f} ms"
    return f"{value:,.0f} ms"


def seconds_left(value: float) -> str:
    """About how long something still takes: seconds, or minutes from two on."""
    return f"about {value:.0f} s left" if value < 120 else f"about {value / 60:.0f} min left"


def ratio_sentence(ratio: Ratio) -> str:
    """As in "3.4x faster [3.2-3.6], 24 runs"; an interval that holds 1 is a tie."""
    interval = f"[{ratio.low:.2g}–{ratio.high:.2g}], {ratio.runs} runs"
    if ratio.tie:
        return f"a tie with the baseline {interval}"
    if ratio.value > 1:
        return f"{ratio.value:.1f}× faster {interval}"
    return f"{1 / ratio.value:.1f}× slower [{1 / ratio.high:.2g}–{1 / ratio.low:.2g}], {ratio.runs} runs"


def ratio_cell(found: Mapping[str, Any] | Ratio | None) -> str:
    """A ratio in a table: "2.05× [2.01–2.09]", "tie [0.98–1.03]", or a dash where there is none to make."""
    if found is None:
        return "–"
    ratio = (
        found if isinstance(found, Ratio) else Ratio(**{key: found[key] for key in ("value", "low", "high", "runs")})
    )
    interval = f"[{ratio.low:.2f}–{ratio.high:.2f}]"
    return f"tie {interval}" if ratio.tie else f"{ratio.value:.2f}× {interval}"


def size(row: Mapping[str, Any]) -> str:
    """What the backend's file takes on disk."""
    return f"{row['bytes'] / 1e6:.1f} MB"


def step_facts(row: Mapping[str, Any]) -> str:
    """A step of the ladder by itself: latency, size, F1."""
    quality = f" · F1 {row['quality']['f1']:.1f}" if row["quality"] else ""
    return f"{milliseconds(row['p50_ms'])} · {size(row)}{quality}"


def step_ratios(row: Mapping[str, Any]) -> str:
    """A step of the ladder against the baseline and, a line below, against the step before, where that is another."""
    whole, last = row["against_baseline"], row["against_previous"]
    if whole is None:
        return "what the others are measured against" if last is None else f"{ratio_cell(last)} to the step before"
    same = last is None or last["backend"] == whole["backend"]
    return f"{ratio_cell(whole)} to the baseline" + ("" if same else f"<br>{ratio_cell(last)} to the step before")
