"""``python -m qa_backends serve`` as a process, and the package as somebody installs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx
import pytest
from helpers import QUESTION, ROOT, TEXT
from serving.test_rest import metric

from qa_backends.serving.load.servers import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.programs]
PATIENCE_S = 120.0
QUERY = {"question": QUESTION, "context": TEXT}


@contextmanager
def server(*options: str, key: str = "") -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    port = free_port()
    command = [sys.executable, "-m", "qa_backends", "serve", "--port", str(port), *options]
    process = subprocess.Popen(
        command, cwd=ROOT, env=os.environ | {"QA_API_KEY": key}, stderr=subprocess.PIPE, text=True
    )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S) as client:
            yield process, client
    finally:
        process.kill()
        process.communicate()


def ready(client: httpx.Client) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            if client.get("/ready").status_code == 200:
                return
        except httpx.ConnectError:
            pass
        time.sleep(0.1)
    pytest.fail("the server was never ready")


def waiting(client: httpx.Client, answers: list[httpx.Response]) -> threading.Thread:
    """A question that was seen to wait, on its thread; one that was answered before it was is asked again."""

    def ask() -> None:
        with httpx.Client(base_url=client.base_url, timeout=PATIENCE_S) as own:
            answers.append(own.post("/v1/answer", json={"backend": "baseline-fake", "queries": [QUERY]}))

    for _ in range(5):
        asking = threading.Thread(target=ask)
        asking.start()
        while asking.is_alive():
            if metric(client, "qa_waiting") == 1:
                return asking
    pytest.fail("no question was seen to wait")


def test_told_to_stop_it_answers_what_it_had_accepted_and_ends_well() -> None:
    answers: list[httpx.Response] = []
    with server("--no-page", "--backends", "baseline-fake", "--max-wait-ms", "1000") as (process, client):
        ready(client)
        asking = waiting(client, answers)
        process.send_signal(signal.SIGTERM)
        asking.join(PATIENCE_S)
        _, told = process.communicate(timeout=PATIENCE_S)
        assert [each.json()["answers"][0]["answer"] for each in answers] == ["Anna"] * len(answers) != []
        assert process.returncode in (0, -signal.SIGTERM)
    lines = [json.loads(each) for each in told.splitlines()]
    assert [each["status"] for each in lines if each.get("path") == "/v1/answer"] == [200] * len(answers)
    assert TEXT not in told and "Traceback" not in told


def test_the_key_comes_from_the_environment_and_the_page_can_be_left_out() -> None:
    with server("--no-page", "--backends", "baseline-fake", key="s3cret") as (_, client):
        ready(client)
        assert client.get("/v1/backends").status_code == 401
        assert client.get("/v1/backends", headers={"Authorization": "Bearer s3cret"}).status_code == 200
        assert client.get("/").status_code == 404


def test_what_the_page_refuses_leaves_no_text_in_the_logs() -> None:
    with server("--backends", "baseline-fake") as (process, client):
        ready(client)
        wrong = client.post("/gradio_api/call/answer", json={"data": [QUESTION, TEXT, "baseline-fake"]})
        client.get(f"/gradio_api/call/answer/{wrong.json()['event_id']}")
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=PATIENCE_S)
    failed = [each for each in map(json.loads, told.splitlines()) if each["logger"] == "gradio"]
    assert failed and failed[0]["error"] and "Traceback" not in told
    assert TEXT not in told and QUESTION not in told


def test_a_port_that_is_taken_is_said_in_a_sentence() -> None:
    with server("--no-page", "--backends", "baseline-fake") as (first, client):
        ready(client)
        port = str(client.base_url.port)
        command = [sys.executable, "-m", "qa_backends", "serve", "--no-page", "--port", port]
        second = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
        assert first.poll() is None
    assert second.returncode == 1 and f"Port {port} of 127.0.0.1 cannot be had; the line above" in second.stderr


def test_the_installed_package_answers_without_the_project_beside_it(tmp_path: Path) -> None:
    site = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(site), str(ROOT)]
    subprocess.run(install, check=True)
    code = (
        "import json, qa_backends, sys; qa = qa_backends.pipeline('baseline', device='cpu');"
        f"print(json.dumps([qa_backends.__file__, qa(question={QUESTION!r}, context={TEXT!r})]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(site)}, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    where, found = json.loads(done.stdout)
    assert where.startswith(str(site)) and found["answer"] == "Ben"


def test_its_tools_ask_this_process_whatever_a_request_says_of_the_host() -> None:
    """Else the first to call a tool could have everybody's questions sent elsewhere."""
    asked = {"name": "answer", "arguments": {"question": QUESTION, "context": TEXT, "backend": "pruned"}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked}
    headers = {"Accept": "application/json, text/event-stream"}
    elsewhere = {"X-Forwarded-Host": "elsewhere.invalid", "X-Gradio-Server": "http://elsewhere.invalid"}
    with server("--backends", "pruned") as (_, client):
        ready(client)
        for said in (elsewhere, {}):
            found = client.post("/gradio_api/mcp/", json=call, headers=headers | said)
            assert found.status_code == 200 and "'answer': 'Ben'" in found.text
