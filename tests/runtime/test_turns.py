"""Turns: one at a time, in order of arrival, on one thread; who waits is told, can give up, and is not charged.

A long reading says how far it is and can be stopped between two batches; it is not read twice to be timed warm.
"""

from __future__ import annotations

import itertools
import re
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
from helpers import QUESTION, TEXT
from paced import PACED, paced

from qa_backends import catalog
from qa_backends.catalog import Family
from qa_backends.contract import Query, SpanLogits, Windows
from qa_backends.errors import BackendFailed, InputError
from qa_backends.progress import Cancelled, Progress
from qa_backends.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable

    from qa_backends.contract import Reading

    AddFile = Callable[[str, str], None]

BASELINE = catalog.backend("baseline")


def test_turns_never_overlap_and_come_in_order_of_arrival() -> None:
    runtime = Runtime()
    inside: list[int] = []
    order: list[int] = []
    waited: list[float] = []
    most = 0

    def visit(number: int) -> None:
        nonlocal most
        with runtime.turn("cpu") as turn:
            inside.append(number)
            most = max(most, len(inside))
            order.append(number)
            waited.append(turn.wait_s)
            time.sleep(0.02)
            inside.remove(number)

    with runtime.turn("cpu"):
        threads = []
        for number in range(5):
            threads.append(threading.Thread(target=visit, args=(number,)))
            threads[-1].start()
            while runtime.ahead() < number + 2:
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    assert most == 1
    assert order == [0, 1, 2, 3, 4]
    assert min(waited) > 0 and max(waited) > 4 * 0.02, "who comes last waits for all the others"


def test_who_comes_second_is_told_and_the_wait_is_not_counted_as_work(
    small_family: Family, add_engine: AddFile
) -> None:
    paced(add_engine)
    runtime = Runtime()
    said: list[str] = []
    with runtime.turn("cpu"):
        runtime.get(small_family, PACED[0], "cpu")
    holding, release = threading.Event(), threading.Event()

    def hold() -> None:
        with runtime.turn("cpu"):
            holding.set()
            release.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    assert holding.wait(10)
    threading.Timer(0.7, release.set).start()
    with runtime.turn("cpu", Progress(said.append)) as turn:
        reading = turn.answer(small_family, PACED[0], turn.prepare(small_family, Query(QUESTION, TEXT)))
    holder.join()
    assert said[0] == "Waiting: 1 question ahead of yours …"
    assert len(said) >= 2, "who waits long is told again"
    assert reading.times.wait_s > 0.6 > reading.times.compute_s


def test_who_is_told_slowly_holds_up_nobody_else() -> None:
    runtime = Runtime()
    told, go_on = threading.Event(), threading.Event()

    def tell(_status: str) -> None:
        told.set()
        go_on.wait(10)

    def wait_for_it() -> None:
        with runtime.turn("cpu", Progress(tell)):
            pass

    slow = threading.Thread(target=wait_for_it)
    with runtime.turn("cpu"):
        slow.start()
        assert told.wait(10)
    assert runtime.ahead() == 1, "the turn ended while its successor was being told"
    go_on.set()
    slow.join(10)
    assert runtime.ahead() == 0


def test_who_gives_up_waiting_does_not_hold_up_the_next() -> None:
    runtime = Runtime()
    with runtime.turn("cpu"):
        with pytest.raises(Cancelled), runtime.turn("cpu", Progress(stopped=lambda: True)):
            pass
        assert runtime.ahead() == 1
    with runtime.turn("cpu") as turn:
        assert turn.wait_s < 1


@pytest.mark.parametrize("own", [True, False], ids=["a progress of its own", "the runtime's"])
def test_only_who_follows_the_own_question_is_told_of_waiting_and_either_can_be_stopped(own: bool) -> None:
    """A server's log stays one line a request."""
    said, asked = list[str](), itertools.count()
    progress = Progress(said.append, stopped=lambda: next(asked) > 1)
    runtime = Runtime() if own else Runtime(progress=progress)
    with runtime.turn("cpu"), pytest.raises(Cancelled), runtime.turn("cpu", progress if own else None):
        pass
    assert set(said) == ({"Waiting: 1 question ahead of yours …"} if own else set())
    assert runtime.ahead() == 0


def test_a_device_nobody_has_is_bad_input(small_family: Family) -> None:
    with pytest.raises(InputError, match=r"no device 'abacus' here\. Choose one of"), Runtime().turn("abacus"):
        pass
    with pytest.raises(InputError, match=r"no device 'abacus' here\. Choose one of"):
        Runtime().make_ready(small_family, BASELINE, "abacus", Progress())


def test_an_engine_that_dies_is_reported_with_its_cause_and_started_afresh(
    small_family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = Runtime()
    with runtime.turn("cpu") as turn:
        prepared = turn.prepare(small_family, Query(QUESTION, TEXT))
        engine = runtime.get(small_family, BASELINE, "cpu").engine

        def die(_windows: Windows) -> SpanLogits:
            raise MemoryError("no memory left on the device")

        monkeypatch.setattr(engine, "forward", die)
        with pytest.raises(
            BackendFailed, match=r"small/baseline failed while answering.*no memory left.*ask again"
        ) as it:
            turn.answer(small_family, BASELINE, prepared)
        assert isinstance(it.value.__cause__, MemoryError)
        assert runtime.loaded("cpu") == []
        assert turn.answer(small_family, BASELINE, prepared).backend == "small/baseline"


def test_logits_that_are_no_numbers_are_a_failure_and_no_answer(
    small_family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = Runtime()
    with runtime.turn("cpu") as turn:
        prepared = turn.prepare(small_family, Query(QUESTION, TEXT))
        nothing = np.full(prepared.windows.input_ids.shape, np.nan, dtype=np.float32)
        engine = runtime.get(small_family, BASELINE, "cpu").engine
        monkeypatch.setattr(engine, "forward", lambda _windows: SpanLogits(nothing, nothing))
        with pytest.raises(BackendFailed, match="not finite"):
            turn.answer(small_family, BASELINE, prepared)


def test_engines_run_on_one_thread_whoever_asks(small_family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Runtime()
    with runtime.turn("cpu"):
        engine = runtime.get(small_family, BASELINE, "cpu").engine
    real, seen = engine.forward, set()

    def forward(windows: Windows) -> SpanLogits:
        seen.add(threading.get_ident())
        return real(windows)

    monkeypatch.setattr(engine, "forward", forward)

    def visit() -> None:
        with runtime.turn("cpu") as turn:
            turn.answer(small_family, BASELINE, turn.prepare(small_family, Query(QUESTION, TEXT)))

    visitors = [threading.Thread(target=visit) for _ in range(3)]
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join()
    visit()
    assert len(seen) == 1
    assert threading.get_ident() not in seen


def test_an_engine_that_minds_no_change_of_threads_is_spared_it(
    small_family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime, backend = Runtime(), catalog.backend("baseline-ort")
    with runtime.turn("cpu") as turn:
        engine = runtime.get(small_family, backend, "cpu").engine
        real, seen = engine.forward, []

        def forward(windows: Windows) -> SpanLogits:
            seen.append(threading.get_ident())
            return real(windows)

        monkeypatch.setattr(engine, "forward", forward)
        turn.answer(small_family, backend, turn.prepare(small_family, Query(QUESTION, TEXT)))
    assert seen == [threading.get_ident()]


LONG = Query(QUESTION, TEXT * 1200)
"""Of several batches, most of which have the same shape."""
LEFT = r"(?:less than|about) (?P<left>\d+) (?P<unit>s|min)"


def seconds(said: re.Match[str]) -> int:
    """What is told of the time left."""
    return int(said["left"]) * (60 if said["unit"] == "min" else 1)


def test_a_long_reading_says_how_far_it_is_and_how_long_it_will_take(small_family: Family, add_engine: AddFile) -> None:
    paced(add_engine, window_s=0.03)
    said: list[str] = []
    with Runtime().turn("cpu", Progress(said.append)) as turn:
        prepared = turn.prepare(small_family, LONG)
        reading = turn.answer(small_family, PACED[1], prepared, "Pruned is reading")
    found = [re.fullmatch(rf"Pruned is reading window (\d+) of (\d+), {LEFT} left", each) for each in said[1:]]
    done, of = ([int(each.group(place)) for each in found if each] for place in (1, 2))
    assert len(done) >= 3 and done == sorted(set(done))
    assert set(of) == {prepared.windows.n_windows}
    assert found[0] and seconds(found[0]) >= 0.03 * (of[0] - done[0]) - 1, "a machine that is busy takes longer"
    assert reading.n_windows == of[0]


def test_how_long_a_long_text_will_take_is_said_as_soon_as_its_first_batches_are_run(
    small_family: Family, add_engine: AddFile
) -> None:
    paced(add_engine, window_s=0.01)
    said: list[str] = []
    with Runtime().turn("cpu", Progress(said.append)) as turn:
        prepared = turn.prepare(small_family, LONG)
        turn.warm_answer(small_family, PACED[1], prepared)
    count = prepared.windows.n_windows
    warming = [re.fullmatch(rf"Pruned is warming up on (\d+) of {count} windows …", each) for each in said]
    before = [re.fullmatch(rf"Pruned is reading {count} windows, {LEFT} left", each) for each in said]
    (warmed,), (left,) = ([each for each in found if each] for found in (warming, before))
    assert int(warmed.group(1)) < count / 2
    assert seconds(left) >= 0.01 * count - 1
    assert any("reading window" in each for each in said[said.index(left.group()) :])


def test_what_the_telling_costs_is_in_no_time(small_family: Family, add_engine: AddFile) -> None:
    paced(add_engine, window_s=0.01)
    said: list[str] = []

    def tell(sentence: str) -> None:
        said.append(sentence)
        time.sleep(0.3 if len(said) == 2 else 0.0)  # the first is that it is loaded

    with Runtime().turn("cpu", Progress(tell)) as turn:
        prepared = turn.prepare(small_family, LONG)
        began = time.perf_counter()
        reading = turn.answer(small_family, PACED[1], prepared, "Pruned is reading")
        whole_s = time.perf_counter() - began
    assert len(said) >= 2 and said[1].startswith("Pruned is reading window 4 of")
    assert 0.01 * reading.n_windows <= reading.times.forward_s < whole_s - 0.3


@pytest.mark.parametrize("text", [TEXT, LONG.context], ids=["one window", "measured"])
def test_a_text_of_one_window_and_a_measured_run_tell_nothing(
    small_family: Family, add_engine: AddFile, text: str
) -> None:
    measured = text != TEXT
    paced(add_engine, window_s=0.02 if measured else 1.2)
    said: list[str] = []
    runtime = Runtime()
    with runtime.turn("cpu", Progress(said.append)) as turn:
        prepared = turn.prepare(small_family, Query(QUESTION, text))
        runtime.get(small_family, PACED[1], "cpu")
        reading = turn.answer(small_family, PACED[1], prepared, "" if measured else "Pruned is reading")
    assert reading.times.forward_s > 1
    assert said == []


@pytest.mark.parametrize("run", ["told", "measured", "warm-up"])
def test_stopping_takes_effect_before_the_next_batch(small_family: Family, add_engine: AddFile, run: str) -> None:
    pace = paced(add_engine)
    runtime = Runtime()
    with runtime.turn("cpu", Progress(stopped=lambda: len(pace.forwards) >= 2)) as turn:
        prepared = turn.prepare(small_family, LONG)
        with pytest.raises(Cancelled):
            if run == "warm-up":
                turn.warm_answer(small_family, PACED[1], prepared)
            else:
                turn.answer(small_family, PACED[1], prepared, "Pruned is reading" if run == "told" else "")
    assert len(pace.forwards) == 2
    assert runtime.loaded("cpu") == ["small/pruned"], "stopping is no failure"


def test_a_long_text_is_not_read_twice_to_be_timed_warm(small_family: Family, add_engine: AddFile) -> None:
    """Run cold is one batch of each shape, and the cold time is as if all of it had been."""
    pace = paced(add_engine, cold_s=0.3)
    known: list[Reading] = []
    with Runtime().turn("cpu") as turn:
        prepared = turn.prepare(small_family, LONG)
        reading, cold_s = turn.warm_answer(small_family, PACED[1], prepared, known.append)
    sizes = Counter(pace.forwards)
    shapes = [size for size, count in sizes.items() if count >= 2]
    assert sum(pace.forwards) == prepared.windows.n_windows + sum(shapes) < 1.5 * prepared.windows.n_windows
    assert reading.n_windows == prepared.windows.n_windows and reading.answer.text == "Anna"
    times = reading.times
    assert times.forward_s < 0.3 * len(shapes) <= cold_s - times.tokenise_s - times.decode_s
    assert known == [], "nothing was known before the whole was read"


@pytest.mark.parametrize("text", [TEXT, TEXT * 40], ids=["one batch", "batches that differ"])
def test_the_answer_of_a_short_text_is_known_while_it_is_read_again_to_be_timed(
    small_family: Family, add_engine: AddFile, text: str
) -> None:
    pace = paced(add_engine, cold_s=0.3)
    known: list[tuple[Reading, int]] = []
    with Runtime().turn("cpu") as turn:
        prepared = turn.prepare(small_family, Query(QUESTION, text))
        reading, cold_s = turn.warm_answer(
            small_family, PACED[1], prepared, lambda cold: known.append((cold, len(pace.forwards)))
        )
    (cold, forwards) = known[0]
    assert len(pace.forwards) == 2 * forwards and sum(pace.forwards) == 2 * prepared.windows.n_windows
    assert cold.answer == reading.answer
    assert reading.times.compute_s < 0.3 <= cold.times.compute_s == cold_s


def test_work_beside_turns_waits_for_timed_ones_and_neither_side_starves() -> None:
    """Measurements without a pause, and tokenising without a pause: both go on, and never at the same time."""
    runtime = Runtime()
    inside: list[str] = []
    mixed: list[str] = []
    counts: Counter[str] = Counter()
    over = threading.Event()

    def measure() -> None:
        while not over.is_set():
            with runtime.turn("cpu"):
                mixed.extend(inside)
                inside.append("timed")
                time.sleep(0.002)
                inside.remove("timed")
                counts["timed"] += 1

    def tokenise() -> None:
        while not over.is_set():
            with runtime.beside():
                mixed.extend(each for each in inside if each == "timed")
                inside.append("beside")
                time.sleep(0.001)
                inside.remove("beside")
                counts["beside"] += 1

    threads = [threading.Thread(target=measure)] + [threading.Thread(target=tokenise) for _ in range(3)]
    for each in threads:
        each.start()
    deadline = time.monotonic() + 30
    while min(counts["timed"], counts["beside"]) < 20 and time.monotonic() < deadline:
        time.sleep(0.01)
    over.set()
    for each in threads:
        each.join()
    assert mixed == [] and min(counts["timed"], counts["beside"]) >= 20, counts


def test_a_turn_that_is_not_timed_leaves_others_to_prepare() -> None:
    runtime = Runtime()
    with runtime.turn("cpu", timed=False), runtime.beside():
        pass
