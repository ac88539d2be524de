"""A benchmark as HTML: its progress, its records, how it compares with another. Values from files pass ``escape``."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from qa_backends.asking.comparison import quality_beside
from qa_backends.measure.quality.datasets import TITLES
from qa_backends.measure.timing.statistics import UNSTABLE_ABOVE
from qa_backends.web.shared.html import engine_of, finished, ran_in_full, running
from qa_backends.web.shared.palette import title_of
from qa_backends.web.shared.tables import Cell, Column, f1_cell, number, table_of, text, with_interval
from qa_backends.web.shared.wording import count, device_title, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qa_backends.asking.comparison import KnownQuality
    from qa_backends.measure.benchmark.compare import Change
    from qa_backends.measure.benchmark.sweep import Sweep
    from qa_backends.measure.results.records import AloneRecord, Benchmark, BenchmarkRecord
    from qa_backends.measure.timing.statistics import Ratio

HEAD = (
    Column("backend", number=False), Column("tokens"), Column("batch"), Column("p50,", "ms"), Column("p90,", "ms"),
    Column("first run,", "ms"), Column("speed,", "questions/s"), Column("runs"), Column("against baseline"),
    *(Column(f"F1, {title},", "%") for title in TITLES.values()), Column("what ran", number=False),
)  # fmt: skip
CHANGE_HEAD = (
    Column("backend", number=False), Column("tokens"), Column("batch"), Column("then,", "ms"), Column("now,", "ms"),
    Column("now against then"),
)  # fmt: skip
UNIT = "done"


def progress(state: Sweep) -> str:
    """A bar, what is measured, and the time left; in the end, what came of it: what was only left out is not done."""
    if state.status:
        return running(state.done, state.of, state.status, unit=UNIT, left_s=state.left_s)
    done = state.done if state.records else 0
    return finished(done, state.of or 1, _came_of(state), unit=UNIT, without=state.left_out)


def _came_of(state: Sweep) -> str:
    if not state.records:
        return "Nothing could be measured." if state.complete else "Stopped; nothing was measured."
    return f"{'Done:' if state.complete else 'Stopped; kept'} {count(len(state.records), 'measurement')}."


def caption(benchmark: Benchmark, whose: str) -> str:
    """Whose measurement is shown, of what machine and day, and whether others, or the backends beside, disturbed."""
    machine = benchmark.machine
    found = dict.fromkeys(each.device for each in benchmark.rows)
    where = "; ".join(machine.sentence(device) for device in found) or machine.sentence("cpu")
    alone = "".join(
        f"<li>{escape(title_of(each.name, each.device))}: {each.p50_ms:.2f} ms alone, "
        f"{each.company_p50_ms:.2f} ms beside the others{_by_how_much(each)}, at {each.tokens} tokens</li>"
        for each in benchmark.alone
    )
    differ = sum(each.differs for each in benchmark.alone)
    off = f": {differ} of {len(benchmark.alone)} differ by more than {percent(UNSTABLE_ABOVE)}" if differ else ""
    check = f"<details><summary>Alone, and beside the others{off}</summary><ul>{alone}</ul></details>" if alone else ""
    disturbed = f"<p>{escape(benchmark.disturbed)}</p>" if benchmark.disturbed else ""
    return f'<div class="qa-caption"><p><b>{escape(whose)}</b> {escape(where)}.</p>{disturbed}{check}</div>'


def _by_how_much(record: AloneRecord) -> str:
    """How much longer or less it took in company, where that is not little."""
    if not record.differs:
        return ""
    return f" ({percent(abs(record.ratio - 1))} {'longer' if record.ratio > 1 else 'less'})"


def _measured_on(records: Sequence[BenchmarkRecord], quality: Sequence[Sequence[KnownQuality]]) -> str:
    """On what questions, and on which device where it was another, F1 was measured, as a sentence below the table."""
    sets = dict.fromkeys(
        f"{count(known.n, 'question')} of {known.title}"
        f"{'' if known.device == each.device else f', on the {device_title(known.device)}'}"
        for each, found in zip(records, quality, strict=True)
        for known in found
    )
    said = (
        "with 95 % intervals; below, the difference to the baseline's of the same questions, and how many answers are "
        "the baseline's, word for word"
    )
    return f'<p class="qa-soft">F1 over {escape("; ".join(sets))}; {said}.</p>' if sets else ""


def table(records: Sequence[BenchmarkRecord]) -> str:
    """Every record: what ran, how many runs, the interval against the baseline, and whether it was unstable."""
    if not records:
        return ""
    quality = quality_beside(records)
    rows = list(map(_cells, records, quality))
    shown = table_of("benchmark", "Everything that was measured", "measurement", HEAD, rows)
    return shown + _measured_on(records, quality) + ran_in_full(records)


def _cells(record: BenchmarkRecord, quality: Sequence[KnownQuality]) -> list[Cell]:
    known = {each.title: each for each in quality}
    return [
        text(title_of(record.name, record.device)),
        _tokens(record),
        number(record.batch),
        number(record.p50_ms, 2),
        number(record.p90_ms, 2),
        number(record.cold_ms, 1),
        number(record.questions_per_second, 1),
        Cell(f"{record.runs:,}{' <small><em>unstable</em></small>' if record.unstable else ''}", record.runs),
        _ratio(record.against_baseline.ratio if record.against_baseline else None),
        *(_f1(known.get(title)) for title in TITLES.values()),
        text(engine_of(record.ran)),
    ]


def _tokens(record: BenchmarkRecord) -> Cell:
    if record.tokens is not None:
        return number(record.tokens)
    return Cell(f"mixed <small>{escape(record.order)}</small>", None)


def _f1(known: KnownQuality | None) -> Cell:
    """A dash where it is not known; below it, how many answers are the baseline's."""
    if known is None:
        return number(None)
    agrees = [f"agrees {known.agreement:.0f} %"] if known.agreement is not None and known.f1_difference else []
    return f1_cell(known.f1, known.f1_interval, known.f1_difference, *agrees)


def _ratio(ratio: Ratio | None) -> Cell:
    """The ratio, or that it is a tie, with its interval; a dash where there is none to make."""
    return with_interval(str(ratio), ratio.value) if ratio else number(None)


def compared(then: Benchmark, found: Sequence[Change], name: str) -> str:
    """The points of an opened file, ``then``, beside those shown."""
    if not found:
        return f'<p class="qa-status">{escape(name)} and what is shown here share no measurement.</p>'
    other = ""
    if any(each.same_shapes is False for each in found):
        other = " Some were measured of weights of other shapes."
    elif any(each.same_shapes is None for each in found):
        other = " Of some it is not known whether they were measured of weights of the same shapes."
    rows = [
        [
            text(title_of(each.now.name, each.now.device)),
            _tokens(each.now),
            number(each.now.batch),
            number(each.then.p50_ms, 2),
            number(each.now.p50_ms, 2),
            _ratio(each.speed_up),
        ]
        for each in found
    ]
    drift = " The intervals hold each run's own noise, not what changed on the machine between the two."
    sentence = f"{name}: {then.machine.sentence(found[0].now.device)}.{other}{drift}"
    return f'<p class="qa-status">{escape(sentence)}</p>' + table_of(
        "then-and-now", "Then and now", "measurement", CHANGE_HEAD, rows
    )
