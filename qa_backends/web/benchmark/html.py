"""A benchmark as HTML: its progress, its records, how it compares with another. Values from files pass ``escape``."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from qa_backends.asking.comparison import ran_sentence
from qa_backends.web.shared.html import running, table_of
from qa_backends.web.shared.palette import title_of
from qa_backends.web.shared.wording import count, device_title, ratio_cell, seconds_left

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qa_backends.measure.benchmark.compare import Change
    from qa_backends.measure.benchmark.sweep import Sweep
    from qa_backends.measure.results.records import Benchmark, BenchmarkRecord

HEAD = ("backend", "device", "tokens", "batch", "p50, ms", "p90, ms", "first run, ms", "questions/s", "runs",
        "against baseline", "F1", "same as baseline", "what ran")  # fmt: skip
CHANGE_HEAD = ("backend", "device", "tokens", "batch", "then, ms", "now, ms", "now against then")


def progress(state: Sweep) -> str:
    """A bar, what is being measured, and the time left."""
    if not state.status:
        points = len({(each.device, each.tokens, each.batch) for each in state.records})
        ended = "Measured" if state.complete else "Stopped; kept"
        sentence = f"{ended} {count(points, 'point')} ({count(len(state.records), 'row')})."
        return running(state.done, state.of or 1, sentence, state.left_out)
    left = f", {seconds_left(state.left_s)}" if state.of else ""
    return running(state.done, state.of or 1, state.status + left)


def caption(benchmark: Benchmark, whose: str) -> str:
    """Whose measurement is shown, of what machine and day, and whether company disturbed it."""
    machine = benchmark.machine
    found = dict.fromkeys(each.device for each in benchmark.rows)
    where = "; ".join(machine.sentence(device) for device in found) or machine.sentence("cpu")
    alone = "".join(
        f"<li>{escape(title_of(each.name, each.device))}: {each.p50_ms:.2f} ms alone, "
        f"{each.company_p50_ms:.2f} ms in company, at {each.tokens} tokens</li>"
        for each in benchmark.alone
    )
    check = f"<details><summary>Alone and in company</summary><ul>{alone}</ul></details>" if alone else ""
    return f'<div class="qa-caption"><p><b>{escape(whose)}</b> {escape(where)}.</p>{check}</div>'


def table(records: Sequence[BenchmarkRecord]) -> str:
    """Every record: what ran, how many runs, the interval against the baseline, and whether it was unstable."""
    if not records:
        return ""
    return table_of(HEAD, [_cells(each) for each in records], "Every point that was measured")


def _cells(record: BenchmarkRecord) -> list[str]:
    runs = f"{record.runs} <em>unstable</em>" if record.unstable else str(record.runs)
    agreement = record.quality.agreement if record.quality else None
    against = record.against_baseline
    return [
        escape(title_of(record.name)),
        escape(device_title(record.device)),
        escape(_tokens(record)),
        str(record.batch),
        f"{record.p50_ms:.2f}",
        f"{record.p90_ms:.2f}" if record.p90_ms else "–",
        f"{record.cold_ms:.1f}",
        f"{record.questions_per_second:.1f}",
        runs,
        escape(ratio_cell(against.ratio if against else None)),
        escape(_quality(record)),
        f"{agreement:.1f} %" if agreement is not None else "–",
        escape(ran_sentence(record.ran)),
    ]


def _tokens(record: BenchmarkRecord) -> str:
    return f"mixed, {record.order}" if record.tokens is None else str(record.tokens)


def _quality(record: BenchmarkRecord) -> str:
    """F1 on how many questions, and on which device where it was another."""
    if (found := record.quality) is None:
        return "–"
    elsewhere = "" if found.device == record.device else f", on the {device_title(found.device)}"
    return f"{found.f1:.1f} on {found.n:,} questions{elsewhere}"


def compared(then: Benchmark, found: Sequence[Change], name: str) -> str:
    """The points of an opened file, ``then``, beside those shown."""
    if not found:
        return f'<p class="qa-status">{escape(name)} and what is shown here share no point.</p>'
    other = ""
    if any(each.same_weights is False for each in found):
        other = " Some rows were measured on other weights."
    elif any(each.same_weights is None for each in found):
        other = " Of some rows it is not known whether they were measured on the same weights."
    rows = [
        [
            escape(title_of(each.now.name)),
            escape(device_title(each.now.device)),
            escape(_tokens(each.now)),
            str(each.now.batch),
            f"{each.then.p50_ms:.2f}",
            f"{each.now.p50_ms:.2f}",
            escape(ratio_cell(each.speed_up)),
        ]
        for each in found
    ]
    drift = " The intervals hold each run's own noise, not what changed on the machine between the two."
    sentence = f"{name}: {then.machine.sentence(found[0].now.device)}.{other}{drift}"
    return f'<p class="qa-status">{escape(sentence)}</p>' + table_of(CHANGE_HEAD, rows, "Then and now")
