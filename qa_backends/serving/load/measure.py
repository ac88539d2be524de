"""Measures ways of asking: one question after another beside the direct call, and many clients at once."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from qa_backends.engines.triton import NAMED_BY, Triton, inputs_of
from qa_backends.errors import BackendFailed, QAError
from qa_backends.measure.benchmark.inputs import queries_of_length
from qa_backends.measure.quality.datasets import own_questions
from qa_backends.measure.timing.machine import this_machine
from qa_backends.serving.load.records import (
    ONE_BY_ONE,
    REPLICA,
    REST,
    TRITON,
    TWO_REPLICAS,
    BatchPoint,
    Load,
    OwnCost,
    Serving,
)
from qa_backends.serving.load.servers import Way, body_of, started
from qa_backends.serving.rest import ANSWER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from qa_backends.contract import Query
    from qa_backends.progress import Progress
    from qa_backends.runtime import Turn
    from qa_backends.serving.load.servers import Target

WAYS = (
    (Way(REST, "rest"), Way(ONE_BY_ONE, "rest", max_batch=1, measures_own_cost=False)),
    (Way(TRITON, "triton"),),
    (Way("Ray, a replica of two cores", "ray", cpus=2),),
    (Way(REPLICA, "ray", measures_own_cost=False),),
    (Way(TWO_REPLICAS, "ray", replicas=2, measures_own_cost=False),),
)
"""What is compared. Those of a group run at once and take turns under load: a server that waits takes nothing from the
other. Ray's take some even then, so each of them runs alone."""
LOCUSTFILE = Path(__file__).with_name("locustfile.py")
REQUESTS = "QA_LOAD_REQUESTS"
"""The variable that names the file of requests to it."""
TEXTS = 64
"""Different questions that clients ask in turn."""
BATCHES = (1, 2, 4, 8, 16, 32)
MOST_CLIENTS = 10_000
ROUNDS = 5
WARM_UP_RUNS = 5
SETTLING_S = 3
"""Of load that is not counted, before each measurement of it."""


def measure(
    target: Target, *, lengths: Sequence[int], tokens: int, clients: Sequence[int], runs: int, seconds: int,
    progress: Progress,
) -> Serving:  # fmt: skip
    """Every way that can be measured here; ``tokens`` is the length of the questions under load.

    A way that fails is left out, with its reason.

    Raises:
        BackendUnavailable, BackendFailed: the backend itself cannot run here.
    """
    groups, left_out = _possible(target)
    own: list[OwnCost] = []
    load: list[Load] = []
    with target.runtime.turn(target.device) as turn:
        reader = target.runtime.reader(target.family)
        of_length = {each: queries_of_length(reader, own_questions(), each, TEXTS) for each in (*lengths, tokens)}
        progress.say("measuring batches …")
        batches = _batches(turn, target, of_length[tokens])
        for group in groups:
            try:
                with ExitStack() as running:
                    servers = [_start(running, way, target, of_length[tokens], progress) for way in group]
                    for server in servers:
                        own += _own_costs(
                            turn, server, target, {each: of_length[each] for each in lengths}, runs, progress
                        )
                    for many in clients:
                        for server in servers:
                            progress.say(f"{many} clients ask {server.way.name} …")
                            load.append(_load(server, many, seconds))
            except QAError as error:  # what the other ways gave is kept
                left_out.append(f"{', '.join(way.name for way in group)}: {error}")
    return Serving(
        this_machine(), target.name, target.device, tokens, tuple(own), batches, tuple(load), tuple(left_out)
    )


def _possible(target: Target) -> tuple[list[list[Way]], list[str]]:
    """The ways that can be measured here, those together that run at once, and why not the others."""
    lacking = {}
    if importlib.util.find_spec("ray") is None:
        lacking["ray"] = "Ray is not installed: pip install '.[ray]'"
    if target.triton_environment is None and shutil.which("tritonserver") is None:
        lacking["triton"] = "there is no server on the path, and none was named: --triton-environment"
    elif not target.backend.portable:
        lacking["triton"] = "it cannot serve this backend; one on ONNX Runtime or OpenVINO it can"
    elif importlib.util.find_spec("tritonclient") is None:
        lacking["triton"] = f"its client is not installed: {Triton.install}"
    groups = [[way for way in group if way.kind not in lacking] for group in WAYS]
    left_out = [f"{way.name}: {lacking[way.kind]}" for group in WAYS for way in group if way.kind in lacking]
    return [group for group in groups if group], left_out


@dataclass(frozen=True, slots=True)
class Server:
    """One that runs, its address, and the file of the requests that clients send to it."""

    way: Way
    url: str
    requests: Path


def _start(running: ExitStack, way: Way, target: Target, queries: Sequence[Query], progress: Progress) -> Server:
    """Starts what ``running`` ends."""
    progress.say(f"starting the server for {way.name} …")
    folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="load-")))
    url = running.enter_context(started(way, target, folder))
    requests = folder / "requests.json"
    requests.write_text(json.dumps([*_requests(way, target, url, queries)]), encoding="utf-8")
    return Server(way, url, requests)


def _batches(turn: Turn, target: Target, queries: Sequence[Query]) -> tuple[BatchPoint, ...]:
    """Sizes take turns, so that none has the machine at its best for itself."""
    taken = dict.fromkeys(BATCHES, 0.0)
    for number in range(ROUNDS + 1):
        for size in BATCHES:
            began = time.perf_counter()
            for first in range(0, TEXTS, size):
                prepared = [turn.prepare(target.family, each) for each in queries[first : first + size]]
                turn.answer_all(target.family, target.backend, target.runtime.reader(target.family).join(prepared))
            if number:  # the first round warms up
                taken[size] += time.perf_counter() - began
    return tuple(BatchPoint(size, ROUNDS * TEXTS / seconds) for size, seconds in taken.items())


def _own_costs(
    turn: Turn, server: Server, target: Target, queries: Mapping[int, Sequence[Query]], runs: int, progress: Progress
) -> list[OwnCost]:
    """At each length, where this way's is measured."""
    if not server.way.measures_own_cost:
        return []
    progress.say(f"asking {server.way.name} one question after another …")
    return [_own_cost(turn, server, target, length, found, runs) for length, found in queries.items()]


def _own_cost(turn: Turn, server: Server, target: Target, tokens: int, queries: Sequence[Query], runs: int) -> OwnCost:
    def direct(query: Query) -> None:
        turn.answer(target.family, target.backend, turn.prepare(target.family, query))

    with httpx.Client(base_url=server.url, timeout=60) as client:
        served = _served(turn, server.way, target, client)
        samples: dict[Callable[[Query], None], list[float]] = {served: [], direct: []}
        for number in range(-WARM_UP_RUNS, runs):
            for ask, taken in samples.items():
                began = time.perf_counter()
                ask(queries[number % TEXTS])
                if number >= 0:
                    taken.append(1000 * (time.perf_counter() - began))
    return OwnCost(server.way.name, tokens, tuple(samples[served]), tuple(samples[direct]))


def _served(turn: Turn, way: Way, target: Target, client: httpx.Client) -> Callable[[Query], None]:
    """Asks one question by that way, and reads the answer."""
    if way.kind == "triton":
        os.environ[NAMED_BY] = str(client.base_url)
        backend = replace(target.backend, engine="triton", options=())
        turn.runtime.drop(target.family, backend.name, target.device)  # of a server that was there before

        def ask(query: Query) -> None:
            turn.answer(target.family, backend, turn.prepare(target.family, query))

    else:

        def ask(query: Query) -> None:
            with _reached(way):
                answer = client.post(ANSWER, json=body_of(target, query.question, query.context))
                if answer.status_code != 200 or "error" in answer.json()["answers"][0]:
                    raise BackendFailed(f"{way.name} answered with {answer.status_code}: {answer.text[:200]}")

    return ask


@contextmanager
def _reached(way: Way) -> Iterator[None]:
    """Raises BackendFailed where the server does not answer, or with something else than JSON."""
    try:
        yield
    except (httpx.HTTPError, ValueError) as error:
        raise BackendFailed(f"{way.name} did not answer as it should: {error}") from error


def _requests(way: Way, target: Target, url: str, queries: Sequence[Query]) -> Iterator[dict[str, Any]]:
    """What the clients send; to Triton the windows, which it takes the place of the model for."""
    model = f"/v2/models/{target.backend.name}"
    names: list[str] = []
    if way.kind == "triton":
        with _reached(way):
            names = [each["name"] for each in httpx.get(url + model).json()["inputs"]]
    for query in queries:
        path, headers = ANSWER, {"Content-Type": "application/json"}
        body = json.dumps(body_of(target, query.question, query.context)).encode()
        if way.kind == "triton":
            path = f"{model}/infer"
            body, length = _infer_body(target, query, names)
            headers = {"Inference-Header-Content-Length": str(length)}
        yield {"path": path, "headers": headers, "body": base64.b64encode(body).decode()}


def _infer_body(target: Target, query: Query, names: Sequence[str]) -> tuple[bytes, int]:
    """Triton's binary form of a request with inputs of these names, and the length of its JSON part (KServe's binary
    tensor data extension)."""
    import tritonclient.http as library

    windows = target.runtime.reader(target.family).prepare(query).windows
    feeds = windows.inputs(names)
    body, length = library.InferenceServerClient.generate_request_body(inputs_of(library, feeds))
    return bytes(body), int(length)


def _load(server: Server, clients: int, seconds: int) -> Load:
    """Locust's figures, once without and once with counting: servers and clients settle first."""
    _locust(server, clients, SETTLING_S)
    found = _locust(server, clients, seconds)
    taken = found["last_request_timestamp"] - found["start_time"]
    good = found["num_requests"] - found["num_failures"]
    times = sorted((float(ms), count) for ms, count in found["response_times"].items())
    p50, p90, p99 = (_percentile(times, share) for share in (0.5, 0.9, 0.99))
    return Load(server.way.name, clients, taken, good, found["num_failures"], good / taken, p50, p90, p99)


def _percentile(times: Sequence[tuple[float, int]], share: float) -> float:
    """Of ``(ms, how often)`` in order, as Locust rounds them: to 1 ms below 100, to 10 below 1,000, to 100 above."""
    left = share * sum(count for _, count in times)
    for ms, count in times:
        left -= count
        if left <= 0:
            return ms
    return times[-1][0]


def _locust(server: Server, clients: int, seconds: int) -> dict[str, Any]:
    many = str(clients)
    command = [
        sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--headless", "-u", many, "-r", many,
        "-t", f"{seconds}s", "--stop-timeout", "10", "--host", server.url, "--json", "--skip-log",
    ]  # fmt: skip
    done = subprocess.run(  # noqa: S603  (our own words)
        command, env=os.environ | {REQUESTS: str(server.requests)}, capture_output=True, text=True, check=False
    )
    try:
        (found,) = json.loads(done.stdout)
    except ValueError as error:
        raise BackendFailed(f"Locust failed with code {done.returncode}: {done.stderr[-500:]}") from error
    return dict(found)
