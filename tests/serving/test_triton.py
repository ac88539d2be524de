"""A model repository, served by the real Triton, and asked over HTTP and gRPC as a backend among others."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import numpy as np
import pytest
import tritonclient.grpc
from contracts import check_backend
from google.protobuf import text_format
from helpers import QUESTION, ROOT, TEXT
from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelInstanceGroup

from qa_backends import catalog
from qa_backends.catalog import Backend
from qa_backends.contract import Query
from qa_backends.engines.triton import ARTEFACT, NAMED_BY, WAYS, Triton, inputs_of
from qa_backends.errors import BackendFailed, BackendUnavailable, InputError
from qa_backends.progress import UNWATCHED
from qa_backends.runtime import Runtime
from qa_backends.serving.load.servers import free_port
from qa_backends.serving.triton.repository import export_repository
from qa_backends.serving.triton.server import REQUIREMENTS, Addresses, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qa_backends.catalog import Family

MINILM = catalog.family("minilm")
ASKED = catalog.backend("pruned-triton-fp16")
PATIENCE_S = 120.0


@dataclass(frozen=True)
class Running:
    """A server: its process, and where it listens."""

    process: subprocess.Popen[bytes]
    addresses: Addresses

    def url(self, scheme: str) -> str:
        return f"{scheme}://127.0.0.1:{getattr(self.addresses, scheme)}"

    def count(self, name: str) -> int:
        """What the server itself counted, as ``inference_count`` and ``execution_count``."""
        found = httpx.get(f"{self.url('http')}/v2/models/pruned-ort-fp16/stats").json()
        return int(found["model_stats"][0][name])


def config_of(folder: Path) -> ModelConfig:
    return text_format.Parse((folder / "config.pbtxt").read_text(encoding="utf-8"), ModelConfig())


def test_the_repository_is_what_triton_reads(runtime: Runtime, small_family: Family, tmp_path: Path) -> None:
    export_repository(runtime, small_family, catalog.backend("pruned-ort-fp16"), "cpu", tmp_path / "away", UNWATCHED)
    assert {each.name for each in (tmp_path / "away").iterdir()} == {"README.md", "onnxruntime", "python"}
    asking = (tmp_path / "away" / "README.md").read_text(encoding="utf-8")
    family = shlex.join(catalog.chosen_by(small_family.name))
    assert f"answer {family} --device cpu --backend pruned-triton-fp16" in asking
    native, python = (tmp_path / "away" / form / "pruned-ort-fp16" for form in ("onnxruntime", "python"))
    assert [each.name for each in (native / "1").iterdir()] == ["model.onnx"]
    assert {each.name for each in (python / "1").iterdir()} == {"model.onnx", "model.py", "answer.py", "settings.json"}
    ours, theirs = config_of(native), config_of(python)
    assert (ours.backend, theirs.backend) == ("onnxruntime", "python")
    for config in (ours, theirs):
        assert config.name == "pruned-ort-fp16"
        assert config.max_batch_size > 1 and config.HasField("dynamic_batching")
        assert config.instance_group[0].kind == ModelInstanceGroup.KIND_CPU
    assert [(each.name, each.data_type, [*each.dims]) for each in ours.input] == [
        (each.name, each.data_type, [*each.dims]) for each in theirs.input
    ]
    assert ours.output == theirs.output


def test_where_company_changes_logits_the_server_computes_each_request_by_itself(
    runtime: Runtime, small_family: Family, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Backend, "scaled_by_batch", property(lambda _self: True))
    export_repository(runtime, small_family, catalog.backend("pruned-ort"), "cpu", tmp_path / "away", UNWATCHED)
    for form in ("onnxruntime", "python"):
        config = config_of(tmp_path / "away" / form / "pruned-ort")
        assert not config.HasField("dynamic_batching")
        assert config.max_batch_size > 1, "the windows of one text may come together"


def test_what_openvino_runs_has_the_python_form_alone(runtime: Runtime, small_family: Family, tmp_path: Path) -> None:
    export_repository(runtime, small_family, catalog.backend("pruned-ov"), "cpu", tmp_path / "away", UNWATCHED)
    assert {each.name for each in (tmp_path / "away").iterdir()} == {"README.md", "python"}
    assert "docker" not in (tmp_path / "away" / "README.md").read_text(encoding="utf-8")


def test_what_cannot_be_served_is_refused_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BackendUnavailable, match="--environment"):
        serve(tmp_path, None, Addresses())
    with pytest.raises(BackendUnavailable, match=r"pip install -r .*requirements\.txt"):
        serve(tmp_path, tmp_path, Addresses())
    server = tmp_path / "server" / "bin" / "tritonserver"
    (server.parent.parent / "backends" / "python").mkdir(parents=True)
    server.parent.mkdir()
    server.touch(0o755)
    monkeypatch.setenv("PATH", str(server.parent), prepend=os.pathsep)
    with pytest.raises(InputError, match="--as triton"):
        serve(tmp_path, None, Addresses())
    (tmp_path / "away" / "onnxruntime").mkdir(parents=True)
    with pytest.raises(InputError, match="no backend for onnxruntime"):
        serve(tmp_path / "away", None, Addresses())


def test_a_server_that_is_not_named_is_what_the_backend_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(NAMED_BY, raising=False)
    assert ASKED in catalog.offered(MINILM)
    refusal = catalog.unavailable(ASKED)
    assert refusal and NAMED_BY in refusal.remedy
    monkeypatch.setenv(NAMED_BY, "grpc://127.0.0.1:8001")
    assert catalog.unavailable(ASKED) is None
    monkeypatch.setenv(NAMED_BY, "ftp://127.0.0.1")
    assert "no address" in str(catalog.unavailable(ASKED))


@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_a_server_that_is_not_there_is_named(scheme: str, monkeypatch: pytest.MonkeyPatch, runtime: Runtime) -> None:
    monkeypatch.setenv(NAMED_BY, f"{scheme}://127.0.0.1:{free_port()}")
    with pytest.raises(BackendUnavailable, match="triton serve"), runtime.turn("cpu") as turn:
        turn.answer(MINILM, ASKED, turn.prepare(MINILM, Query(QUESTION, TEXT)))


class Kinds:
    """A client of a server that has the model on these devices."""

    def __init__(self, *kinds: str) -> None:
        self._kinds = kinds

    def get_model_repository_index(self) -> list[dict[str, str]]:
        return [{"name": kind, "state": "READY"} for kind in self._kinds]

    def get_model_config(self, name: str) -> dict[str, object]:
        return {"instance_group": [{"kind": name}], "parameters": {ARTEFACT: {"string_value": "hash"}}}


@pytest.mark.parametrize(
    ("device", "kinds", "chosen"),
    [
        ("cuda", ("KIND_CPU", "KIND_GPU"), "KIND_GPU"),
        ("cpu", ("KIND_GPU", "KIND_CPU"), "KIND_CPU"),
        ("cpu", ("KIND_GPU",), "KIND_GPU"),
        ("cuda", ("KIND_CPU",), None),
    ],
)
def test_the_model_is_asked_on_the_device_that_is_wanted(
    device: str, kinds: tuple[str, ...], chosen: str | None
) -> None:
    engine = Triton({})
    engine._client, engine._way, engine._url, engine._hash = Kinds(*kinds), WAYS["http"], "http://there", "hash"
    if chosen:
        assert engine._served(device)["instance_group"][0]["kind"] == chosen
    else:
        with pytest.raises(BackendUnavailable, match="on a CPU"):
            engine._served(device)


def test_another_model_of_the_server_may_have_an_empty_parameter() -> None:
    class Beside(Kinds):
        def get_model_config(self, name: str) -> dict[str, object]:
            if name == "KIND_AUTO":  # as of gRPC's message: a dictionary has nothing of what is empty there
                return {"instance_group": [{"kind": name}], "parameters": {"EXECUTION_ENV_PATH": {}}}
            return super().get_model_config(name)

    engine = Triton({})
    engine._client, engine._way, engine._hash = Beside("KIND_AUTO", "KIND_CPU"), WAYS["http"], "hash"
    assert engine._served("cpu")["instance_group"][0]["kind"] == "KIND_CPU"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server is, as its documentation says."""
    folder = tmp_path_factory.mktemp("triton") / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    install = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "-q", "--no-compile"]
    subprocess.run([*install, "-r", REQUIREMENTS], check=True)
    return folder


@contextmanager
def running(runtime: Runtime, environment: Path, folder: Path, name: str) -> Iterator[Running]:
    export_repository(runtime, MINILM, catalog.backend(name), "cpu", folder, UNWATCHED)
    addresses = Addresses("127.0.0.1", free_port(), free_port(), free_port())
    ports = [f"--{each}-port={getattr(addresses, each)}" for each in ("http", "grpc", "metrics")]
    command = [sys.executable, "-m", "qa_backends", "triton", "serve", folder, "--environment", environment, *ports]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        _until_ready(process, addresses)
        yield Running(process, addresses)
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def _until_ready(process: subprocess.Popen[bytes], addresses: Addresses) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        assert process.poll() is None, "the server ended"
        try:
            if httpx.get(f"http://127.0.0.1:{addresses.http}/v2/health/ready").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    pytest.fail("the server was never ready")


@pytest.fixture(scope="module")
def server(runtime: Runtime, environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(runtime, environment, tmp_path_factory.mktemp("served") / "away", "pruned-ort-fp16") as found:
        yield found


@pytest.mark.slow
@pytest.mark.programs
@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_a_running_server_keeps_the_contract(scheme: str, server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAMED_BY, server.url(scheme))
    before = server.count("inference_count")
    runtime = Runtime()
    check_backend(runtime, MINILM, ASKED, "cpu")
    with runtime.turn("cpu") as turn:
        long = Query("Who keeps the mill?", "The river is wide. " * 2_000 + "Old Marta keeps the mill.")
        plain = catalog.backend("pruned-ort-fp16")
        theirs, ours = (turn.answer(MINILM, each, turn.prepare(MINILM, long)).answer for each in (ASKED, plain))
        assert turn.prepare(MINILM, long).windows.n_windows > 32, "more than the server takes at once"
    assert theirs.span == ours.span and theirs.score == pytest.approx(ours.score, abs=2e-3)
    assert server.count("inference_count") > before, "it was the server that answered"


@pytest.mark.slow
@pytest.mark.programs
def test_questions_of_many_clients_share_the_servers_batches(server: Running, runtime: Runtime) -> None:
    """Of unlike lengths too; each gets its own logits."""
    with runtime.turn("cpu") as turn:
        texts = [TEXT + " It rained." * number for number in range(8)]
        asked = [turn.prepare(MINILM, Query(QUESTION, text)).windows for text in texts]
        expected = [turn.logits(MINILM, catalog.backend("pruned-ort-fp16"), each) for each in asked]
    counted, ran = server.count("inference_count"), server.count("execution_count")

    def ask(number: int) -> float:
        client = tritonclient.grpc.InferenceServerClient(server.url("grpc").removeprefix("grpc://"))
        feeds = asked[number % 8].inputs(["input_ids", "attention_mask", "token_type_ids"])
        inputs = inputs_of(tritonclient.grpc, feeds)
        found = [client.infer("pruned-ort-fp16", inputs).as_numpy("start_logits") for _ in range(8)]
        return max(float(np.abs(each - expected[number % 8].start).max()) for each in found)

    with ThreadPoolExecutor(16) as clients:
        assert max(clients.map(ask, range(16))) < 1e-3
    counted, ran = server.count("inference_count") - counted, server.count("execution_count") - ran
    assert counted == 16 * 8 and ran < counted, "some came together"


@pytest.mark.slow
@pytest.mark.programs
def test_a_model_that_the_server_does_not_have_is_named(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAMED_BY, server.url("http"))
    with pytest.raises(BackendUnavailable, match="does not serve this model"), Runtime().turn("cpu") as turn:
        turn.answer(MINILM, catalog.backend("pruned-triton"), turn.prepare(MINILM, Query(QUESTION, TEXT)))


@pytest.mark.slow
@pytest.mark.programs
def test_a_server_that_stops_ends_well_and_its_backend_says_so(
    runtime: Runtime, environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(runtime, environment, tmp_path / "away", "pruned-ov") as server:
        monkeypatch.setenv(NAMED_BY, server.url("grpc"))
        backend, asking = catalog.backend("pruned-triton"), Runtime()
        with asking.turn("cpu") as turn:
            prepared = turn.prepare(MINILM, Query(QUESTION, TEXT))
            assert turn.answer(MINILM, backend, prepared).answer.text == "Ben"
            assert asking.get(MINILM, backend, "cpu").ran.provider.endswith("OpenVINO")
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(PATIENCE_S) == 0
            with pytest.raises(BackendFailed, match="See its own log"):
                turn.answer(MINILM, backend, prepared)
