"""Pieces of HTML that the tabs share. Everything a person typed or a file holds passes ``escape``."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from qa_backends.web.shared.palette import title_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qa_backends.measure.results.records import LeftOut


def problem(sentence: str) -> str:
    """An error where the verdict would stand."""
    return f'<div class="qa-verdict qa-problem" role="alert"><p>{escape(sentence)}</p></div>'


def running(done: float, of: float, sentence: str, without: Sequence[LeftOut] = ()) -> str:
    """The bar of any long work, with what is being done and what was left out of it."""
    return (
        f'<div class="qa-progress"><progress value="{done:.2f}" max="{of}" aria-label="progress"></progress>'
        f'<p class="qa-status" role="status">{escape(sentence)}</p>{left_out(without)}</div>'
    )


def left_out(entries: Sequence[LeftOut]) -> str:
    """What could not be measured, and why."""
    if not entries:
        return ""
    items = "".join(
        f"<li>{escape(' at '.join(filter(None, (each.backend and title_of(each.backend), each.point))))}: "
        f"{escape(each.why)}</li>"
        for each in entries
    )
    return f'<div class="qa-status"><p>Left out:</p><ul>{items}</ul></div>'


def table_of(head: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> str:
    """A table that scrolls sideways where the screen is narrow; cells are HTML already."""
    top = "".join(f'<th scope="col">{escape(each)}</th>' for each in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="qa-table" tabindex="0" role="region" aria-label="{escape(title, quote=True)}">'
        f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )
