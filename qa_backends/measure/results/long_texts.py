"""What long texts take, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qa_backends.measure.results.document import lacking, markdown
from qa_backends.measure.results.report import named, of_earlier_weights

if TYPE_CHECKING:
    from qa_backends.measure.results.records import LongText, LongTexts

HEAD = ("characters", "windows", "seconds", "most memory, MB")


def cells(record: LongText) -> list[str]:
    """What stands under the ``HEAD``."""
    memory = f"{record.peak_bytes / 1e6:.0f}" if record.peak_bytes else "not known"
    return [f"{record.characters:,}", str(record.windows), f"{record.p50_ms / 1000:.2f}", memory]


def long_texts_table(found: LongTexts) -> str:
    """What whole texts take, each backend in a process of its own, as a part of a document.

    Raises:
        InputError: nothing was measured.
    """
    if not found.rows:
        raise lacking("long texts")
    table = markdown(["backend", *HEAD], [[named(each), *cells(each)] for each in found.rows])
    machines = " and ".join(dict.fromkeys(each.machine.sentence(each.device) for each in found.rows))
    runs = min(each.runs for each in found.rows)
    return (
        f"## Long texts\n\n{table}\n\nMedians of {runs} whole answers or more, and the most memory that the process "
        f"held until then, libraries and weights included; each backend in a process of its own, on {machines}."
        f"{of_earlier_weights(found.rows)}"
    )
