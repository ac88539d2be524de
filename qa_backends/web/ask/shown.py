"""What the tab shows of a comparison that is over, and before anybody asked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.asking.comparison import Comparison, Fastest
from qa_backends.asking.recorded import recorded_comparisons
from qa_backends.measure.results.shipped import shipped_benchmark
from qa_backends.web.ask import charts, html, share
from qa_backends.web.ask.asked import first_asked
from qa_backends.web.shared.choices import preselected

if TYPE_CHECKING:
    import gradio as gr

    from qa_backends.web.ask.visits import Visit
    from qa_backends.web.shared.widgets import Updates


def updates_of(visit: Visit, view: Comparison, request: gr.Request) -> Updates:
    """A comparison that is over, as the page shows it: the result, the marked text, the chart, link and code."""
    names = [card.backend for card in view.cards]
    asked = (view.question, view.context, view.family, names, view.device)
    page = share.page_address(request)
    return (
        visit,
        html.result(view, visit.races),
        html.marked(view),
        charts.visit(visit.history, shipped_benchmark()),
        page + share.link(*asked),
        share.as_python(*asked, page),
        share.as_shell(*asked),
        deployed(view),
    )


def deployed(view: Comparison | None) -> str:
    """How the fastest is put to use, which may be the baseline; the last that was ticked, where none answered."""
    if view is None:
        _, _, family, names, device = first_asked()
        return share.as_deployed(family, names[-1], device)
    best = view.fastest
    if best and (best.speed_up.tie or best.speed_up.value >= 1):
        name = best.backend
    else:
        name = min(view.answered, key=lambda card: card.latency_ms or 0.0, default=view.cards[-1]).backend
    return share.as_deployed(view.family, name, view.device)


def first_sight() -> Comparison | None:
    """The first recorded comparison that holds what is ticked to begin with, without the rest of its backends; where
    none holds it all, the first. ``None`` where none is of the family in the form, whose verdict it would pass for."""
    family = catalog.default_family()
    found = [each for each in recorded_comparisons() if each.family == family]
    if not found:
        return None
    ticked = preselected(family)
    recorded = max(found, key=lambda each: {card.backend for card in each.cards} >= set(ticked))
    cards = tuple(card for card in recorded.cards if card.backend in ticked)
    sped_up = [Fastest(card.backend, card.speed_up) for card in cards if card.speed_up]
    first = recorded.fastest if recorded.fastest and recorded.fastest.backend in ticked else None
    return replace(recorded, cards=cards, fastest=sped_up[0] if len(sped_up) == 1 else first)
