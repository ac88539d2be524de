"""Measures ways of asking: one question after another beside the direct call, and many clients at once."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from qa_backends.engines._onnx import feeds_of
from qa_backends.engines.triton import Triton
from qa_backends.errors import BackendFailed
from qa_backends.measure.benchmark.inputs import queries_of_length
from qa_backends.measure.quality.datasets import own_questions
from qa_backends.measure.timing.machine import this_machine
from qa_backends.serving.load.records import BatchPoint, Load, OwnCost, Serving
from qa_backends.serving.load.servers import Way, body_of, started
from qa_backends.serving.rest import ANSWER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from qa_backends.contract import Query
    from qa_backends.progress import Progress
    from qa_backends.runtime import Turn
    from qa_backends.serving.load.servers import Asked

REST, ONE_BY_ONE, TRITON = "REST", "REST, one by one", "Triton"
REPLICA, TWO_REPLICAS = "Ray, a replica of one core", "Ray, two replicas of one core"
WAYS = (
    Way(REST, "rest"),
    Way(ONE_BY_ONE, "rest", max_batch=1, measures_own_cost=False),
    Way(TRITON, "triton"),
    Way("Ray, a replica of two cores", "ray", cpus=2),
    Way(REPLICA, "ray", measures_own_cost=False),
    Way(TWO_REPLICAS, "ray", replicas=2, measures_own_cost=False),
)
LOCUSTFILE = Path(__file__).with_name("locustfile.py")
REQUESTS = "QA_LOAD_REQUESTS"
"""The variable that names the file of requests to it."""
TEXTS = 64
"""Different questions that clients ask in turn."""
BATCHES = (1, 2, 4, 8, 16, 32)
ROUNDS = 5
WARM_UP_RUNS = 5
SETTLING_S = 3
"""Of load that is not counted, before each measurement of it."""


def measure(
    asked: Asked, *, lengths: Sequence[int], tokens: int, clients: Sequence[int], runs: int, seconds: float,
    progress: Progress,
) -> Serving:  # fmt: skip
    """Every way that can be measured here, one after the other; ``tokens`` is the length of the questions under load.

    Raises:
        BackendFailed: a server did not answer, or Locust failed.
        BackendUnavailable: the backend cannot run here.
    """
    ways, left_out = _possible(asked)
    own: list[OwnCost] = []
    load: list[Load] = []
    with asked.runtime.turn(asked.device) as turn:
        reader = asked.runtime.reader(asked.family)
        of_length = {each: queries_of_length(reader, own_questions(), each, TEXTS) for each in (*lengths, tokens)}
        progress.say("measuring batches …")
        batches = _batches(turn, asked, of_length[tokens])
        for way in ways:
            with tempfile.TemporaryDirectory(prefix="load-") as folder:
                progress.say(f"starting the server for {way.name} …")
                with started(way, asked, Path(folder)) as url:
                    if way.measures_own_cost:
                        progress.say(f"asking {way.name} one question after another …")
                        own += [_own_cost(turn, way, asked, url, each, of_length[each], runs) for each in lengths]
                    requests = Path(folder) / "requests.json"
                    requests.write_text(json.dumps([*_requests(way, asked, of_length[tokens])]), encoding="utf-8")
                    for many in clients:
                        progress.say(f"{many} clients ask {way.name} …")
                        load.append(_load(way, url, requests, many, seconds))
    return Serving(this_machine(), asked.name, asked.device, tokens, tuple(own), batches, tuple(load), tuple(left_out))


def _possible(asked: Asked) -> tuple[list[Way], list[str]]:
    """The ways that can be measured here, and why not the others."""
    lacking = {}
    if importlib.util.find_spec("ray") is None:
        lacking["ray"] = "Ray is not installed: pip install '.[ray]'"
    if asked.triton_environment is None:
        lacking["triton"] = "no server was named: --triton-environment"
    elif importlib.util.find_spec("tritonclient") is None:
        lacking["triton"] = f"its client is not installed: {Triton.install}"
    ways = [each for each in WAYS if each.kind not in lacking]
    return ways, [f"{each.name}: {lacking[each.kind]}" for each in WAYS if each.kind in lacking]


def _batches(turn: Turn, asked: Asked, queries: Sequence[Query]) -> tuple[BatchPoint, ...]:
    """Sizes take turns, so that none has the machine at its best for itself."""
    taken = dict.fromkeys(BATCHES, 0.0)
    for number in range(ROUNDS + 1):
        for size in BATCHES:
            began = time.perf_counter()
            for first in range(0, TEXTS, size):
                prepared = [turn.prepare(asked.family, each) for each in queries[first : first + size]]
                turn.answer_all(asked.family, asked.backend, asked.runtime.reader(asked.family).join(prepared))
            if number:  # the first round warms up
                taken[size] += time.perf_counter() - began
    return tuple(BatchPoint(size, ROUNDS * TEXTS / seconds) for size, seconds in taken.items())


def _own_cost(
    turn: Turn, way: Way, asked: Asked, url: str, tokens: int, queries: Sequence[Query], runs: int
) -> OwnCost:
    def direct(query: Query) -> None:
        turn.answer(asked.family, asked.backend, turn.prepare(asked.family, query))

    with httpx.Client(base_url=url, timeout=60) as client:
        served = _served(turn, way, asked, client)
        samples: dict[Callable[[Query], None], list[float]] = {served: [], direct: []}
        for number in range(-WARM_UP_RUNS, runs):
            for ask, taken in samples.items():
                began = time.perf_counter()
                ask(queries[number % TEXTS])
                if number >= 0:
                    taken.append(1000 * (time.perf_counter() - began))
    return OwnCost(way.name, tokens, tuple(samples[served]), tuple(samples[direct]))


def _served(turn: Turn, way: Way, asked: Asked, client: httpx.Client) -> Callable[[Query], None]:
    """Asks one question by that way, and reads the answer."""
    if way.kind == "triton":
        os.environ[Triton.named_by] = str(client.base_url)
        backend = replace(asked.backend, engine="triton", options=())
        turn.runtime.drop(asked.family, backend.name, asked.device)  # of a server that was there before

        def ask(query: Query) -> None:
            turn.answer(asked.family, backend, turn.prepare(asked.family, query))

    else:

        def ask(query: Query) -> None:
            answer = client.post(ANSWER, json=body_of(asked, query.question, query.context))
            if answer.status_code != 200 or "error" in answer.json()["answers"][0]:
                raise BackendFailed(f"{way.name} answered with {answer.status_code}: {answer.text[:200]}")

    return ask


def _requests(way: Way, asked: Asked, queries: Sequence[Query]) -> Iterator[dict[str, Any]]:
    """What the clients send; to Triton the windows, which it takes the place of the model for."""
    for query in queries:
        path, headers = ANSWER, {"Content-Type": "application/json"}
        body = json.dumps(body_of(asked, query.question, query.context)).encode()
        if way.kind == "triton":
            path = f"/v2/models/{asked.backend.name}/infer"
            body, length = _infer_body(asked, query)
            headers = {"Inference-Header-Content-Length": str(length)}
        yield {"path": path, "headers": headers, "body": base64.b64encode(body).decode()}


def _infer_body(asked: Asked, query: Query) -> tuple[bytes, int]:
    """Triton's binary form of a request, and the length of its JSON part (KServe's binary tensor data extension)."""
    from tritonclient.http import InferenceServerClient, InferInput

    windows = asked.runtime.reader(asked.family).prepare(query).windows
    inputs = []
    for name, array in feeds_of(windows, ("input_ids", "attention_mask", "token_type_ids")).items():
        inputs.append(InferInput(name, array.shape, "INT64"))
        inputs[-1].set_data_from_numpy(array)
    body, length = InferenceServerClient.generate_request_body(inputs)
    return bytes(body), int(length)


def _load(way: Way, url: str, requests: Path, clients: int, seconds: float) -> Load:
    """Locust's figures, once without and once with counting: servers and clients settle first."""
    _locust(url, requests, clients, SETTLING_S)
    found = _locust(url, requests, clients, seconds)
    taken = found["last_request_timestamp"] - found["start_time"]
    good = found["num_requests"] - found["num_failures"]
    times = sorted((float(ms), count) for ms, count in found["response_times"].items())
    p50, p90, p99 = (_percentile(times, share) for share in (0.5, 0.9, 0.99))
    return Load(way.name, clients, taken, good, found["num_failures"], good / taken, p50, p90, p99)


def _percentile(times: Sequence[tuple[float, int]], share: float) -> float:
    """Of ``(ms, how often)`` in order, as Locust rounds them: to 1 ms below 100, to 10 below 1,000, to 100 above."""
    left = share * sum(count for _, count in times)
    for ms, count in times:
        left -= count
        if left <= 0:
            return ms
    return times[-1][0]


def _locust(url: str, requests: Path, clients: int, seconds: float) -> dict[str, Any]:
    many = str(clients)
    command = [
        sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--headless", "-u", many, "-r", many,
        "-t", f"{seconds:g}s", "--stop-timeout", "10", "--host", url, "--json", "--skip-log",
    ]  # fmt: skip
    done = subprocess.run(  # noqa: S603  (our own words)
        command, env=os.environ | {REQUESTS: str(requests)}, capture_output=True, text=True, check=False
    )
    try:
        (found,) = json.loads(done.stdout)
    except ValueError as error:
        raise BackendFailed(f"Locust failed with code {done.returncode}: {done.stderr[-500:]}") from error
    return dict(found)
