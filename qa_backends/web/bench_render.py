"""A benchmark as HTML: its progress, its rows, how it compares with another. Values from files pass ``escape``."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from qa_backends.contract import Ran
from qa_backends.measure.machine import Machine
from qa_backends.measure.view import ran_sentence
from qa_backends.web.palette import title_of
from qa_backends.web.wording import ratio_cell, seconds_left

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qa_backends.measure.compare import Comparison
    from qa_backends.measure.sweep import Sweep

HEAD = ("backend", "device", "tokens", "batch", "p50, ms", "p90, ms", "first run, ms", "questions/s", "runs",
        "against baseline", "F1", "same as baseline", "what ran")  # fmt: skip
CHANGE_HEAD = ("backend", "device", "tokens", "batch", "then, ms", "now, ms", "now against then")


def progress(state: Sweep) -> str:
    """A bar, what is being measured, and the time left."""
    if not state.status:
        points = len({(row["device"], row["tokens"], row["batch"]) for row in state.rows})
        ended = "Measured" if state.complete else "Stopped; kept"
        sentence = f"{ended} {_count(points, 'point')} ({_count(len(state.rows), 'row')})."
        return _bar(state.done, state.of, sentence + left_out(state.left_out))
    left = f", {seconds_left(state.left_s)}" if state.of else ""
    return _bar(state.done, state.of or 1, escape(state.status) + left)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}"


def running(done: float, of: float, sentence: str) -> str:
    """The bar of any long work; the sentence is escaped."""
    return _bar(done, of, escape(sentence))


def _bar(done: float, of: float, sentence: str) -> str:
    return (
        f'<div class="qa-progress"><progress value="{done:.2f}" max="{of}" aria-label="progress"></progress>'
        f'<p class="qa-status" role="status">{sentence}</p></div>'
    )


def left_out(entries: Sequence[dict[str, str]]) -> str:
    """What could not be measured, and why."""
    if not entries:
        return ""
    items = "".join(f"<li>{escape(each['backend'] or each['point'])}: {escape(each['why'])}</li>" for each in entries)
    return f"</p><p>Left out:</p><ul>{items}</ul><p>"


def caption(content: dict[str, Any], whose: str) -> str:
    """Whose measurement is shown, of what machine and day, and whether company disturbed it."""
    machine = Machine(**content["machine"])
    devices = dict.fromkeys(row["device"] for row in content["rows"])
    where = "; ".join(machine.sentence(device) for device in devices) or machine.sentence("cpu")
    alone = "".join(
        f"<li>{escape(title_of(_name(row), row['device']))}: {row['p50_ms']:.2f} ms alone, "
        f"{row['company_p50_ms']:.2f} ms in company, at {row['tokens']} tokens</li>"
        for row in content["alone"]
    )
    check = f"<details><summary>Alone and in company</summary><ul>{alone}</ul></details>" if alone else ""
    return f'<div class="qa-caption"><p><b>{escape(whose)}</b> {escape(where)}.</p>{check}</div>'


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Every row: what ran, how many runs, the interval against the baseline, and whether it was unstable."""
    if not rows:
        return ""
    return table_of(HEAD, [_cells(row) for row in rows], "Every point that was measured")


def _cells(row: dict[str, Any]) -> list[str]:
    name = _name(row)
    runs = f"{row['runs']} <em>unstable</em>" if row["unstable"] else str(row["runs"])
    quality = row["quality"] or {}
    agreement = quality.get("agreement")
    tokens = f"mixed, {row['order']}" if row["tokens"] is None else str(row["tokens"])
    return [
        escape(title_of(name)),
        "GPU" if row["device"] == "cuda" else "CPU",
        escape(tokens),
        str(row["batch"]),
        f"{row['p50_ms']:.2f}",
        f"{row['p90_ms']:.2f}" if row["p90_ms"] else "–",
        f"{row['cold_ms']:.1f}",
        f"{row['questions_per_second']:.1f}",
        runs,
        escape(ratio_cell(row["against_baseline"])),
        _quality(row),
        f"{agreement:.1f} %" if agreement is not None else "–",
        escape(ran_sentence(Ran(**row["ran"]))),
    ]


def _quality(row: dict[str, Any]) -> str:
    """F1 on how many questions, and on which device where it was another."""
    if (found := row["quality"]) is None:
        return "–"
    elsewhere = "" if found["device"] == row["device"] else f", on {'GPU' if found['device'] == 'cuda' else 'CPU'}"
    return f"{found['f1']:.1f} on {found['n']:,} questions{elsewhere}"


def compared(comparison: Comparison, name: str) -> str:
    """The points of an opened file beside those shown."""
    found = comparison.changes
    if not found:
        return f'<p class="qa-status">{escape(name)} and what is shown here share no point.</p>'
    other = "" if all(each.same_weights for each in found) else " Some rows were measured on other weights."
    rows = [
        [
            escape(title_of(_name(each.row))),
            "GPU" if each.row["device"] == "cuda" else "CPU",
            "mixed, " + escape(each.row["order"]) if each.row["tokens"] is None else str(each.row["tokens"]),
            str(each.row["batch"]),
            f"{each.then_ms:.2f}",
            f"{each.now_ms:.2f}",
            escape(ratio_cell(each.speed_up)),
        ]
        for each in found
    ]
    drift = " The intervals hold each run's own noise, not what changed on the machine between the two."
    sentence = f"{name}: {comparison.machine.sentence(found[0].row['device'])}.{other}{drift}"
    return f'<p class="qa-status">{escape(sentence)}</p>' + table_of(CHANGE_HEAD, rows, "Then and now")


def table_of(head: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> str:
    """A table that scrolls sideways where the screen is narrow; cells are HTML already."""
    top = "".join(f'<th scope="col">{escape(each)}</th>' for each in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="qa-table" tabindex="0" role="region" aria-label="{escape(title, quote=True)}">'
        f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _name(row: dict[str, Any]) -> str:
    return str(row["backend"]).rpartition("/")[2]
