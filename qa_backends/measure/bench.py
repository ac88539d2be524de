"""The benchmark: whole answers, tokenising and decoding included, on real text cut to fixed lengths."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from qa_backends import catalog
from qa_backends.contract import Query
from qa_backends.errors import InputError
from qa_backends.measure.machine import this_machine
from qa_backends.measure.results import checkpoint_hash
from qa_backends.measure.rounds import RUNS_PER_BLOCK, Samples, take_turns
from qa_backends.measure.statistics import summarise

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from qa_backends.catalog import Backend, Family
    from qa_backends.contract import StageTimes
    from qa_backends.reader.reader import Reader
    from qa_backends.runtime import Runtime, Turn

    Progress = Callable[[int, str], None]

LENGTHS = (32, 128, 384)
RUNS = 60
SECONDS_PER_LENGTH = 60.0
SHORTEST = 16


def bench(
    runtime: Runtime,
    group: Family,
    rows: Sequence[Backend],
    device: str,
    text: str,
    question: str,
    *,
    lengths: Sequence[int] = LENGTHS,
    runs: int = RUNS,
    progress: Progress = lambda _done, _note: None,
) -> dict[str, Any]:
    """A results file's content: a row for each backend and length, raw samples included.

    Raises:
        InputError: a length no window can have, or longer than the text.
        QAError: a backend could not be loaded; a benchmark with a gap is not worth its time.
    """
    measured = []
    with runtime.turn(device) as turn:
        for row in rows:
            runtime.get(group, row, device)
        for number, length in enumerate(lengths):
            query = query_of_length(runtime.reader(group), question, text, length)
            samples = _measure(turn, group, rows, query, runs, lambda note, n=number: progress(n, note))
            measured += [_row(turn, group, row, device, length, samples) for row in rows]
            progress(number + 1, "")
    return {"kind": "latency", "machine": this_machine().as_dict(), "question": question, "rows": measured}


def query_of_length(reader: Reader, question: str, text: str, length: int) -> Query:
    """The question with as much of the text as makes one window of exactly ``length`` tokens."""
    if not SHORTEST <= length <= reader.settings.max_seq_len:
        raise InputError(f"A length is from {SHORTEST} to {reader.settings.max_seq_len} tokens, not {length}.")
    low, high = 1, len(text)
    while low < high:
        middle = (low + high) // 2
        windows = reader.prepare(Query(question, text[:middle])).windows
        if windows.n_windows == 1 and windows.seq_len < length:
            low = middle + 1
        else:
            high = middle
    query = Query(question, text[:low])
    if reader.prepare(query).windows.seq_len != length:
        raise InputError(f"The text is too short to make {length} tokens. Give a longer one.")
    return query


def _measure(
    turn: Turn, group: Family, rows: Sequence[Backend], query: Query, runs: int, progress: Callable[[str], None]
) -> Samples:
    def run_of(row: Backend) -> Callable[[], StageTimes]:
        return lambda: turn.answer(group, row, turn.prepare(group, query)).times

    rounds = -(-runs // RUNS_PER_BLOCK) + 1  # the first round takes one run of each
    samples = Samples()
    for samples in take_turns({row.name: run_of(row) for row in rows}, seconds=SECONDS_PER_LENGTH, rounds=rounds):
        progress(f"{min(len(times) for times in samples.times.values())} runs")
    return samples


def _row(turn: Turn, group: Family, row: Backend, device: str, length: int, samples: Samples) -> dict[str, Any]:
    loaded = turn.runtime.get(group, row, device)
    compute = samples.compute_s(row.name)
    if not compute:
        raise InputError(f"{row.name} is too slow for {length} tokens: no five rounds fit. Leave it or the length out.")
    ratio = samples.speed_up(row.name, catalog.BASELINE) if row.name != catalog.BASELINE else None
    times = samples.times[row.name]
    parts = {part: [1000 * getattr(each, f"{part}_s") for each in times] for part in ("tokenise", "forward", "decode")}
    summary = summarise(compute)
    return {
        "backend": f"{group.name}/{row.name}",
        "checkpoint": checkpoint_hash(group, row),
        "device": device,
        "tokens": length,
        "batch": 1,
        "warm_up_runs": samples.warm_up_runs,
        "runs": summary.runs,
        "p50_ms": summary.p50_s * 1000,
        "p90_ms": None if summary.p90_s is None else summary.p90_s * 1000,
        "speed_up": asdict(ratio) if ratio else None,
        "bytes": loaded.manifest.bytes,
        "stored": loaded.manifest.precision,
        "encoder_parameters": loaded.manifest.encoder_parameters,
        "ran": asdict(loaded.ran),
        "samples_ms": {part: [round(value, 4) for value in values] for part, values in parts.items()},
    }
