"""``python app.py``: what the README tells to run, and what a Space runs."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time

import httpx
import pytest
from helpers import ROOT

from qa_backends.serving.load.servers import free_port

pytestmark = [pytest.mark.slow, pytest.mark.programs]

PATIENCE_S = 120


def started(**environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "app.py"], cwd=ROOT, env=os.environ | environment, stderr=subprocess.PIPE, text=True
    )


def listens(port: int) -> bool:
    with socket.socket() as there:
        return there.connect_ex(("127.0.0.1", port)) == 0


def test_it_brings_the_page_up_and_ends_when_it_is_told_to() -> None:
    port = free_port()
    app = started(GRADIO_SERVER_PORT=str(port))
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not listens(port):
            assert app.poll() is None and time.monotonic() < deadline, "it never listened"
            time.sleep(0.2)
        found = httpx.get(f"http://127.0.0.1:{port}/", timeout=PATIENCE_S)
        assert found.status_code == 200 and "every engine" in found.text
        app.terminate()
        _, said = app.communicate(timeout=PATIENCE_S)
        assert app.returncode in (0, -signal.SIGTERM) and "Traceback" not in said
    finally:
        app.kill()
        app.communicate()


def test_a_model_that_is_not_there_is_one_line() -> None:
    app = started(QA_MODEL="/nowhere")
    _, said = app.communicate(timeout=PATIENCE_S)
    assert app.returncode == 1 and [each for each in said.splitlines() if each.startswith("Error: ")]
    assert "Traceback" not in said
