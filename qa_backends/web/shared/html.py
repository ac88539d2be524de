"""Pieces of HTML that the tabs share. Everything a person typed or a file holds passes ``escape``."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from qa_backends.asking.comparison import ran_sentence
from qa_backends.runtime.telling import roughly
from qa_backends.web.shared.palette import title_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from qa_backends.contract import Ran
    from qa_backends.measure.results.records import BenchmarkRecord, LeftOut, QualityRecord


def problem(sentence: str) -> str:
    """An error where the verdict would stand."""
    return f'<div class="qa-verdict qa-problem" role="alert"><p>{escape(sentence)}</p></div>'


def note(sentence: str) -> str:
    """How some work goes, in a line."""
    return f'<p class="qa-status" role="status">{escape(sentence)}</p>'


def idle(sentence: str) -> str:
    """What stands in the place of a bar before anything runs: as high as one, so that nothing jumps."""
    meter = '<div class="qa-meter qa-idle"></div>'
    return f'<div class="qa-progress">{meter}<p class="qa-status">{escape(sentence)}</p></div>'


def running(done: float, of: float, sentence: str, *, unit: str = "", left_s: float = 0.0) -> str:
    """The bar of any long work: what is being done, how much of it is done, and the time left.

    ``unit`` says what ``done`` of ``of`` counts, as in "answers". An ``of`` of 0 is not known yet: the bar moves, and
    promises nothing. Screen readers find how far it is, and are told of the end alone.
    """
    left = [f"{roughly(left_s)} left"] if left_s else []
    return _bar(done, of, [*_counted(done, of, unit), *left], f'<span aria-live="off">{escape(sentence)}</span>')


def finished(done: float, of: float, sentence: str, *, unit: str, without: Sequence[LeftOut] = ()) -> str:
    """The bar of work that is over: what came of it, which is announced, and what was left out."""
    said = f'<span role="status">{escape(sentence)}</span>'
    return _bar(done, of, _counted(done, of, unit), said, left_out(without))


def _counted(done: float, of: float, unit: str) -> list[str]:
    return [f"{int(done):,} of {int(of):,} {unit}".rstrip()] if of else []


def _bar(done: float, of: float, parts: Sequence[str], said: str, below: str = "") -> str:
    how_far = ", ".join(parts)
    share = min(1.0, done / of) if of else 0.0
    value = f'aria-valuenow="{done:.2f}" aria-valuetext="{escape(how_far, quote=True)}"' if of else ""
    return (
        f'<div class="qa-progress"><div class="qa-meter{"" if of else " qa-unknown"}" role="progressbar" '
        f'aria-label="How far the measurement is" aria-valuemin="0" aria-valuemax="{of or 1:g}" {value}>'
        f'<i style="width:{share:.2%}"></i></div>'
        f'<p class="qa-status">{said} <span>{escape(how_far)}</span></p>{below}</div>'
    )


def room_for(heights: Mapping[str, float]) -> str:
    """A style that gives each chart, by its element's id, its height before it is drawn: Gradio has another until then,
    and what is below would jump, chart by chart."""
    rules = (f"#{name}:not(:has(.main-svg)) {{ min-height: {height:g}px; }}" for name, height in heights.items())
    return f"<style>{' '.join(rules)}</style>"


def engine_of(ran: Ran) -> str:
    """What ran, as short as a table can say it."""
    return f"{ran.provider}, {ran.precision}"


def ran_in_full(records: Sequence[BenchmarkRecord] | Sequence[QualityRecord]) -> str:
    """What ran in all its words, once for the backends that it is true of."""
    found: dict[str, dict[str, None]] = {}
    for each in records:
        found.setdefault(ran_sentence(each.ran), {})[title_of(each.name, each.device)] = None
    items = "".join(f"<li><b>{escape('; '.join(titles))}</b>: {escape(ran)}</li>" for ran, titles in found.items())
    return f'<details class="qa-ran" open><summary>What ran, in full</summary><ul>{items}</ul></details>'


def left_out(entries: Sequence[LeftOut]) -> str:
    """What could not be measured, and why."""
    if not entries:
        return ""
    items = "".join(
        f"<li>{escape(' at '.join(filter(None, (each.backend and title_of(each.backend), each.point))))}: "
        f"{escape(each.why)}</li>"
        for each in entries
    )
    return f'<div class="qa-status qa-left-out"><p>Left out:</p><ul>{items}</ul></div>'
