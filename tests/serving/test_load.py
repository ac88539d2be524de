"""What is measured of serving: its arithmetic, its tables, a real server for a moment, and what batching gains."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from threading import Barrier
from typing import TYPE_CHECKING

import httpx
import pytest
from serving.test_rest import Clients, ask, metric, serving

from qa_backends import catalog
from qa_backends.catalog import Backend
from qa_backends.errors import BackendFailed
from qa_backends.measure.results.files import read_results
from qa_backends.measure.timing.machine import this_machine
from qa_backends.paths import SERVING
from qa_backends.progress import UNWATCHED
from qa_backends.runtime import Runtime
from qa_backends.serving.batching import BatchSize
from qa_backends.serving.load import measure as measuring
from qa_backends.serving.load import report, servers
from qa_backends.serving.load.measure import WAYS, measure
from qa_backends.serving.load.records import (
    ONE_BY_ONE,
    REPLICA,
    REST,
    TWO_REPLICAS,
    BatchPoint,
    Load,
    OwnCost,
    Serving,
    share_reached,
)
from qa_backends.serving.load.servers import Target, free_port

if TYPE_CHECKING:
    from collections.abc import Callable

    from qa_backends.catalog import Family

RISING = (BatchPoint(1, 100.0), BatchPoint(8, 180.0), BatchPoint(32, 200.0))


@pytest.mark.parametrize(("together", "share"), [(200.0, 1.0), (150.0, 0.5), (100.0, 0.0), (80.0, -0.2)])
def test_the_share_is_of_what_the_curve_allows(together: float, share: float) -> None:
    assert share_reached(RISING, 100.0, together) == pytest.approx(share)


def test_a_curve_that_does_not_rise_has_no_share() -> None:
    assert share_reached((BatchPoint(1, 100.0), BatchPoint(8, 90.0)), 100.0, 120.0) is None


def test_a_server_gets_a_port_that_nobody_else_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = free_port(), free_port()
    assert first != second
    with socket.create_server(("127.0.0.1", 0)) as taken:
        given = taken.getsockname()[1]
        assert max(first, second) < given, "below those that are given out by themselves"
        monkeypatch.setattr(servers, "_EACH_PORT", cycle([given, first]))
        assert free_port() == first
        monkeypatch.setattr(servers, "_EACH_PORT", cycle([given]))
        with pytest.raises(BackendFailed, match="end what listens there"):
            free_port()


def test_percentiles_are_of_all_requests() -> None:
    times = [(10.0, 89), (20.0, 10), (500.0, 1)]
    found = [measuring._percentile(times, share) for share in (0.5, 0.9, 0.99, 1.0)]
    assert found == [10.0, 20.0, 20.0, 500.0]


def test_a_server_that_is_gone_or_talks_nonsense_is_a_failure_of_its_own_way() -> None:
    """So that what the others gave is kept."""
    way, *_ = WAYS[0]
    for error in (httpx.ReadTimeout("timed out"), json.JSONDecodeError("no JSON", "", 0)):
        with pytest.raises(BackendFailed, match=f"{way.name} did not answer as it should"), measuring._reached(way):
            raise error


def load(way: str, per_second: float) -> Load:
    return Load(way, 32, 10.0, round(10 * per_second), 0, per_second, 100.0, 200.0, 300.0)


def test_the_documents_are_written_from_the_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = OwnCost(REST, 128, (12.0, 14.0), (9.0, 11.0))
    rows = [(ONE_BY_ONE, 100.0), (REST, 150.0), (REPLICA, 40.0), (TWO_REPLICAS, 60.0)]
    found = Serving(
        this_machine(), "minilm/pruned", "cpu", 128, (own,), RISING, tuple(load(*each) for each in rows), ()
    )
    said = report._own(found)
    assert "13.0 ± 1.4" in said and "10.0 ± 1.4" in said and "| 3.0 |" in said
    assert (
        "1.50 times as fast, where the direct call gains up to 2.00: 0.50 of 1.00, or 50 % of what there is to gain."
        in report._caption(found)
    )
    lone = (replace(load(way, rate), clients=1) for way, rate in ((ONE_BY_ONE, 50.0), (REST, 52.0)))
    assert "the same work, and came out 4 % apart." in report._caption(replace(found, load=(*found.load, *lone)))
    replicas = report._replicas(found)
    assert "| 10, by arithmetic | 400 |" in replicas and "| 100, by arithmetic | 4,000 |" in replicas


def test_what_ships_is_complete_and_said_as_measured() -> None:
    found = read_results(SERVING, Serving)
    assert not found.left_out and {each.way for each in found.load} == {way.name for group in WAYS for way in group}
    assert {each.clients for each in found.load} >= {1, 8, 32, 128}
    assert {each.tokens for each in found.own} >= {32, 64, 128, 256}
    assert all(len(each.samples_ms) == len(each.direct_samples_ms) >= 50 for each in found.own)
    for path, content in report.refreshed().items():
        assert path.read_text(encoding="utf-8") == content, "write it again: python -m qa_backends report"


SLOW_CALLS = """
    import time

    from qa_backends.engines.fake import Fake


    class SlowCalls(Fake):
        short = "slow-calls"
        label = "Slow calls"

        def forward(self, windows):
            time.sleep(0.3)
            return super().forward(windows)
"""


@pytest.mark.slow
def test_batching_gains_a_share_of_what_batches_can(
    add_engine: Callable[[str, str], None], small_family: Family
) -> None:
    """Of an engine whose calls cost the same however much is in them: calls that are saved are time that is."""
    add_engine("slow_calls", SLOW_CALLS)
    backend = Backend("baseline", "checkpoint", "slow_calls")
    at_once, alone = 32, 8
    query = {"question": "Who?", "context": "Ada."}

    all_there = Barrier(at_once)

    def send(clients: Clients) -> int:
        return ask(clients.own, query, backend="small/baseline-slow-calls").status_code

    def come(clients: Clients) -> None:
        """A thread makes its client, which takes a busy machine as long as all the answers, before any asks."""
        assert clients.own
        all_there.wait()

    for size, asked in ((BatchSize(items=1), alone), (BatchSize(items=at_once), 2 * at_once)):
        with serving(Runtime(), small_family, [backend], size=size) as client, ThreadPoolExecutor(at_once) as pool:
            clients = Clients(client)
            list(pool.map(come, [clients] * at_once))
            assert set(pool.map(send, [clients] * asked)) == {200}
            assert metric(client, "qa_batch_questions_sum") == asked
            calls = metric(client, "qa_batch_questions_count")
        assert calls == asked if size.items == 1 else calls <= asked / 4, "a quarter of what batches allow, at least"


RUNS = 20
"""So many that on a busy machine one of the direct call's, too, is undisturbed."""


@pytest.mark.slow
def test_a_server_is_measured_beside_the_direct_call(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "WAYS", WAYS[:1])
    for name, enough in (("SETTLING_S", 1), ("ROUNDS", 1), ("TEXTS", 32)):
        monkeypatch.setattr(measuring, name, enough)
    backend = catalog.backend("pruned-ort-fp16")
    target = Target(runtime, catalog.family("minilm"), backend, "cpu", None)
    found = measure(target, lengths=(32,), tokens=64, clients=(4,), runs=RUNS, seconds=2, progress=UNWATCHED)
    (own,) = found.own
    assert own.way == REST and len(own.samples_ms) == len(own.direct_samples_ms) == RUNS
    assert min(own.samples_ms) > min(own.direct_samples_ms), "the server's answers hold the direct call's work"
    assert [(each.way, each.clients) for each in found.load] == [(REST, 4), (ONE_BY_ONE, 4)]
    for each in found.load:
        assert each.requests > 5 and each.failures == 0 and each.p50_ms <= each.p90_ms <= each.p99_ms
    assert {each.batch for each in found.batches} >= {1, 32}


@pytest.mark.slow
def test_a_server_that_fails_is_counted_as_failing(runtime: Runtime, tmp_path: Path) -> None:
    """As one that is not asked what it serves."""
    target = Target(runtime, catalog.family("minilm"), catalog.backend("pruned-ort-fp16"), "cpu", None)
    texts = measuring.queries_of_length(runtime.reader(target.family), measuring.own_questions(), 32, 4)
    (way, _), *_ = WAYS
    with measuring.started(way, target, tmp_path) as url:
        requests = tmp_path / "requests.json"
        wrong = measuring._requests(way, replace(target, backend=catalog.backend("pruned")), url, texts)
        requests.write_text(json.dumps([*wrong]), encoding="utf-8")
        found = measuring._load(measuring.Server(way, url, requests), 2, 1)
    assert found.requests == 0 and found.failures > 0
