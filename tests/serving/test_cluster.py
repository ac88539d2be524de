"""The application on a real Ray: replicas that share questions, and one that is killed while it is asked."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import psutil
import pytest
import yaml
from helpers import QUESTION, ROOT, TEXT
from pydantic import ValidationError
from serving.moody import MOODY, moody

from qa_backends import catalog
from qa_backends.contract import Query
from qa_backends.errors import UnknownBackend
from qa_backends.serving.batching import BatchSize
from qa_backends.serving.cluster import Model, Options, app, deployment_of
from qa_backends.serving.load.servers import free_port
from qa_backends.serving.schemas import Failed, GivenAnswer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from qa_backends.catalog import Family

MINILM = catalog.family("minilm")
CONFIG = ROOT / "docs" / "ray-serve.yaml"
BACKEND = "minilm/pruned-ort-fp16"
REPLICA = "ServeReplica:answers:minilm-pruned-ort-fp16"
PATIENCE_S = 180.0
ASKED = {"backend": BACKEND, "queries": [{"question": QUESTION, "context": TEXT}]}
ANSWERS = {name: TEXT.replace("Ben", name) for name in ("Ben", "Carla", "Dora", "Emil", "Fred", "Gina", "Hugo", "Iris")}


def test_options_make_replicas() -> None:
    backend = catalog.backend("pruned-ort-fp16")
    fixed = deployment_of(MINILM, backend, Options(replicas=3, cpus=2, gpus=0.25, max_queue=7))
    assert fixed.num_replicas == 3 and fixed.max_queued_requests == 7
    assert fixed.ray_actor_options["num_gpus"] == 0.25 and fixed.ray_actor_options["num_cpus"] == 2
    assert fixed.ray_actor_options["runtime_env"]["env_vars"]["OMP_NUM_THREADS"] == "2"
    scaled = deployment_of(MINILM, backend, Options(replicas=1, max_replicas=4, max_batch=8))
    bounds = scaled._deployment_config.autoscaling_config
    assert (bounds.min_replicas, bounds.max_replicas, bounds.target_ongoing_requests) == (1, 4, 8)
    assert fixed._deployment_config.autoscaling_config is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"replicas": 4, "max_replicas": 2},
        {"replicas": 0},
        {"replica": 2},
        {"cpus": 0},
        {"device": "cuda"},
        {"device": "x"},
        {"max_wait_ms": float("inf")},
        {"timeout": float("inf")},
    ],
)
def test_options_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Options(**wrong)


def test_a_backend_that_is_not_there_is_named() -> None:
    with pytest.raises(UnknownBackend, match="'nothing'"):
        app(Options(backends="nothing"))


def test_a_replica_reads_together_what_comes_together(
    add_engine: Callable[[str, str], None], small_family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    mood = moody(add_engine)
    monkeypatch.setattr(catalog, "resolve", lambda _name: (small_family, MOODY))
    model = Model("small/baseline-moody", "cpu", BatchSize(items=8))
    mood.forwards.clear()
    mood.let.clear()

    async def asked() -> list[GivenAnswer | Failed]:
        first, *others = [*ANSWERS.values(), " "]
        coming = [asyncio.create_task(model.answer(Query(QUESTION, first)))]
        while not mood.forwards:
            await asyncio.sleep(0.01)
        coming += [asyncio.create_task(model.answer(Query(QUESTION, text))) for text in others]
        while model._batcher.waiting() < len(others) - 1:
            await asyncio.sleep(0.01)
        mood.let.set()
        return await asyncio.gather(*coming)

    *answers, empty = asyncio.run(asyncio.wait_for(asked(), PATIENCE_S))
    assert all(isinstance(each, GivenAnswer) for each in answers) and isinstance(empty, Failed)
    assert sum(mood.forwards) == len(ANSWERS) and len(mood.forwards) == 2, "one that came first, and all the others"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """The documented configuration, on a port of its own, started as documented."""
    config = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
    config["http_options"]["port"] = port = free_port()
    file = tmp_path_factory.mktemp("ray") / "ray-serve.yaml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    program = Path(sys.executable).with_name("serve")
    variables = os.environ | {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([program, "run", "--address", "local", file], cwd=ROOT, env=variables)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S) as found:
            _until_ready(process, found)
            yield found
    finally:
        started = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        process.terminate()
        process.wait(PATIENCE_S)
        _, left = psutil.wait_procs(started, timeout=PATIENCE_S)
    assert not left, "everything that was started has ended"


def _until_ready(process: subprocess.Popen[bytes], client: httpx.Client) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        assert process.poll() is None, "Ray ended"
        try:
            if client.post("/v1/answer", json=ASKED).status_code == 200:  # 404, and then 504, until a replica is there
                return
        except httpx.TransportError:
            pass
        time.sleep(0.3)
    pytest.fail("the application was never ready")


def ask(client: httpx.Client, *texts: str) -> list[str]:
    queries = [{"question": QUESTION, "context": text} for text in texts]
    found = client.post("/v1/answer", json={"backend": BACKEND, "queries": queries})
    assert found.status_code == 200, found.text
    return [each["answer"] for each in found.json()["answers"]]


def replicas() -> set[int]:
    return {each.pid for each in psutil.process_iter(["cmdline"]) if REPLICA in " ".join(each.info["cmdline"] or ())}


def until(met: object, what: str) -> None:
    assert callable(met)
    deadline = time.monotonic() + PATIENCE_S
    while not met():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


@pytest.mark.slow
@pytest.mark.programs
def test_it_answers_as_the_interface_of_one_process_does(client: httpx.Client) -> None:
    assert ask(client, *ANSWERS.values()) == [*ANSWERS]
    (served,) = client.get("/v1/backends").json()["backends"]
    assert served["name"] == BACKEND and served["ready"]
    assert set(served["f1"]) == {"SQuAD", "other texts", "everyday texts"}
    mixed = [{"question": " ", "context": TEXT}, {"question": QUESTION, "context": TEXT}]
    failed, answered = client.post("/v1/answer", json={"backend": BACKEND, "queries": mixed}).json()["answers"]
    assert failed["error"]["code"] == "input" and answered["answer"] == "Ben"
    for body, status in (
        ({"backend": "nothing", "queries": mixed}, 404),
        ({"backend": BACKEND}, 422),
        ({"backend": "x" * 9_000_000}, 413),
    ):
        refused = client.post("/v1/answer", json=body)
        assert refused.status_code == status and refused.json()["error"]["message"]


@pytest.mark.slow
@pytest.mark.programs
def test_a_replica_that_is_killed_while_it_is_asked_loses_nothing(client: httpx.Client) -> None:
    until(lambda: len(replicas()) == 2, "two replicas")
    before = replicas()
    asked = [*ANSWERS.items()] * 20
    with ThreadPoolExecutor(16) as pool:
        coming = [pool.submit(ask, client, text) for _, text in asked]
        until(lambda: sum(each.done() for each in coming) > len(coming) // 4, "the questions are being answered")
        killed = min(before)
        os.kill(killed, signal.SIGKILL)
        answers = [each.result(PATIENCE_S) for each in coming]
    assert answers == [[name] for name, _ in asked], "each has its own answer, whoever died"
    until(lambda: len(replicas()) == 2, "another replica stands in")
    assert killed not in replicas() and before & replicas(), "and the other one lived on"
    assert ask(client, TEXT) == ["Ben"]
