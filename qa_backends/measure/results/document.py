"""Parts of documents that are written from results: a table, and the place it goes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qa_backends.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

BEGIN = "<!-- measured: written by `python -m qa_backends report` -->"
END = "<!-- /measured -->"


def listed(parts: Sequence[str]) -> str:
    """As in "one, two and three"; empty of none."""
    *others, last = parts or [""]
    return f"{', '.join(others)} and {last}" if others else last


def unbroken(cell: str) -> str:
    """A table's cell that stays on one line."""
    return cell.replace(" ", "&nbsp;")


def markdown(head: list[str], lines: list[list[str]]) -> str:
    """A table whose first column is text and whose others are numbers."""
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *lines))


def with_table(document: str, content: str) -> str:
    """The document's text with the measured part replaced.

    Raises:
        InputError: the document has no place for it.
    """
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise InputError(f"The document has no part between '{BEGIN}' and '{END}'.")
    return f"{before}{BEGIN}\n{content}\n{END}{after}"


def lacking(what: str) -> InputError:
    return InputError(f"The results lack {what}. Measure with the commands that assets/results/README.md gives.")
