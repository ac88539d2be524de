"""The servers that are asked: each a process of its own, started for the measurement and ended after it."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from qa_backends import catalog
from qa_backends.errors import BackendFailed
from qa_backends.serving.rest import ANSWER
from qa_backends.serving.triton.repository import export_repository

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qa_backends.catalog import Backend, Family
    from qa_backends.runtime import Runtime

PATIENCE_S = 300.0
"""For a server to answer for the first time: its backend may have to be built."""
ENDING_S = 60.0
"""For it to end when it is told to."""
ACCEPTED = 1_024
"""Questions that may wait, more than there are clients: what is measured is answering, not refusing."""
PORTS = range(20_000, 32_768)
"""For servers. Any port above may be taken at any moment for the near end of a connection (Linux:
``ip_local_port_range``), and Ray, which opens many, begins to listen seconds after it was told where; those from 10002
to 19999 it gives its workers."""
_EACH_PORT = cycle(random.sample(PORTS, len(PORTS)))


@dataclass(frozen=True, slots=True)
class Way:
    """A way to be asked: ``kind`` of server, and what distinguishes it from others of its kind."""

    name: str
    kind: str
    max_batch: int = 32
    replicas: int = 1
    cpus: int = 1
    measures_own_cost: bool = True


@dataclass(frozen=True, slots=True)
class Target:
    """What is served: by every way the same."""

    runtime: Runtime
    family: Family
    backend: Backend
    device: str
    triton_environment: Path | None

    @property
    def name(self) -> str:
        return f"{self.family.name}/{self.backend.name}"


@contextmanager
def started(way: Way, target: Target, folder: Path) -> Iterator[str]:
    """Its address, once it answers; ``folder`` takes what it needs and says.

    Raises:
        BackendFailed: it ended, or did not answer in time.
    """
    port = free_port()
    command = {"rest": _rest, "triton": _triton, "ray": _ray}[way.kind](way, target, port, folder)
    log = folder / "log.txt"
    with log.open("wb") as told:
        # Whoever asks it here has no key, whatever the host asks of its own clients.
        keyless = {**os.environ, "QA_API_KEY": ""}
        process = subprocess.Popen(command, stdout=told, stderr=told, env=keyless)  # noqa: S603  (our own words)
    try:
        url = f"http://127.0.0.1:{port}"
        _until_it_answers(way, target, process, url, log)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _rest(way: Way, target: Target, port: int, _folder: Path) -> list[str]:
    # Every question's text is tokenised, as if it were new: these ask the same few again and again.
    bounds = ["--max-batch", str(way.max_batch), "--max-queue", str(ACCEPTED), "--keep-texts", "0"]
    what = ["--backends", target.backend.name, *catalog.chosen_by(target.family.name), "--device", target.device]
    return [sys.executable, "-m", "qa_backends", "serve", "--no-page", "--port", str(port), *what, *bounds]


def _triton(_way: Way, target: Target, port: int, folder: Path) -> list[str]:
    models = folder / "models"
    export_repository(target.runtime, target.family, target.backend, target.device, models, target.runtime.progress)
    ports = ["--http-port", str(port), "--grpc-port", str(free_port()), "--metrics-port", str(free_port())]
    where = ["--environment", str(target.triton_environment)] if target.triton_environment else []
    return [sys.executable, "-m", "qa_backends", "triton", "serve", str(models), *ports, *where]


def _ray(way: Way, target: Target, port: int, folder: Path) -> list[str]:
    gpus = 1 / way.replicas if target.device == "cuda" else 0
    arguments = {
        "backends": target.backend.name, "family": target.family.name, "device": target.device, "cpus": way.cpus,
        "gpus": gpus, "replicas": way.replicas, "max_batch": way.max_batch, "max_queue": ACCEPTED,
    }  # fmt: skip
    application = {"name": "answers", "import_path": "qa_backends.serving.cluster:app", "args": arguments}
    config = {"http_options": {"host": "127.0.0.1", "port": port}, "applications": [application]}
    file = folder / "ray-serve.yaml"
    file.write_text(json.dumps(config), encoding="utf-8")  # which is YAML too
    program = Path(sys.executable).with_name("serve")
    return [str(program), "run", "--address", "local", "--app-dir", str(Path.cwd()), str(file)]


def _until_it_answers(way: Way, target: Target, process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if _answers(way, target, url):
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    said = " ".join(log.read_text(encoding="utf-8", errors="replace").split()[-60:])
    raise BackendFailed(f"The server for {way.name} did not answer. It said: {said}")


def _answers(way: Way, target: Target, url: str) -> bool:
    if way.kind == "triton":
        return httpx.get(f"{url}/v2/health/ready").status_code == 200
    return (
        httpx.post(url + ANSWER, json=body_of(target, "Who sang?", "Ada sang."), timeout=PATIENCE_S).status_code == 200
    )


def body_of(target: Target, question: str, context: str) -> dict[str, Any]:
    """A request to the HTTP interface."""
    return {"backend": target.name, "queries": [{"question": question, "context": context}]}


def free_port() -> int:
    """A port of this machine that nothing listens on, and another one each time.

    Raises:
        BackendFailed: all of ``PORTS`` are taken.
    """
    for port in islice(_EACH_PORT, len(PORTS)):
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port
    raise BackendFailed(f"Every port from {PORTS[0]} to {PORTS[-1]} is taken: end what listens there, and try again.")
