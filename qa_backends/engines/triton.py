"""NVIDIA's Triton Inference Server, asked over HTTP or gRPC: windows go there, logits come back.

``python -m qa_backends export --as triton`` writes what such a server serves; ``QA_TRITON_URL`` names it.
"""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

import numpy as np

from qa_backends.checkpoints.manifest import file_hash, read_manifest, versions_of
from qa_backends.contract import Engine, Ran, SpanLogits, Windows
from qa_backends.engines._onnx import FILE, OUTPUTS
from qa_backends.engines._parts import in_parts
from qa_backends.errors import BackendFailed, BackendUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from qa_backends.engines._parts import Feeds

NAMED_BY = "QA_TRITON_URL"
"""The environment variable with the server's address."""
ARTEFACT, ENGINE, PRECISION = "artefact_sha256", "engine", "precision"
"""Parameters of a served model's configuration: what it was made from, what runs it, and what that computes in."""
KINDS = {"cpu": "KIND_CPU", "cuda": "KIND_GPU"}
PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Way:
    """How a server is asked: Triton's client for that, and how client and request are told of our patience."""

    library: str
    client: dict[str, float]
    request: dict[str, float]


WAYS = {
    "http": Way("tritonclient.http", {"connection_timeout": PATIENCE_S, "network_timeout": PATIENCE_S}, {}),
    "grpc": Way("tritonclient.grpc", {}, {"client_timeout": PATIENCE_S}),
}
"""By the scheme of the server's address."""


def _scheme(url: str) -> str:
    """Empty where it is no address."""
    try:
        return urlsplit(url).scheme
    except ValueError:  # of a bracket that is not closed
        return ""


class Triton(Engine):
    """One model of a running server. What is timed is what asking it takes: the way there and back included."""

    title: ClassVar = "Triton"
    short: ClassVar = "triton"
    label: ClassVar = "Triton"
    packages: ClassVar = ("tritonclient", "geventhttpclient", "grpc")
    install: ClassVar = "pip install '.[triton]'"
    reads: ClassVar = ("onnx", "onnx-microsoft", "onnx-dynamic", "onnx-qdq")
    computes_here: ClassVar = False

    @classmethod
    def refusal(cls, options: Mapping[str, str], device: str | None) -> tuple[str, str] | None:
        url = os.environ.get(NAMED_BY, "")
        if _scheme(url) not in WAYS:
            said = f"{NAMED_BY} is “{url}”, which is no address." if url else "No Triton server is named."
            return said, f"Set {NAMED_BY} to one, as http://127.0.0.1:8000 or grpc://127.0.0.1:8001."
        return None

    def load(self, artefact: Path, device: str) -> None:
        self._url = os.environ[NAMED_BY]
        parts = urlsplit(self._url)
        self._hash, self._stored = file_hash(artefact / FILE), read_manifest(artefact).precision
        self._way = WAYS[parts.scheme]
        self._library: Any = importlib.import_module(self._way.library)
        self._failures = (OSError, HTTPException, self._library.InferenceServerException)
        self._client: Any = self._library.InferenceServerClient(parts.netloc, **self._way.client)
        try:
            config = self._served(device)
        except self._failures as error:
            raise BackendUnavailable(
                f"The Triton server at {self._url} does not answer: {error}.",
                "Start it, python -m qa_backends triton serve REPOSITORY, or mend the address: HTTP and gRPC have a "
                "port each.",
            ) from error
        self._kind, self._name = config["instance_group"][0]["kind"], config["name"]
        self._most = int(config["max_batch_size"])
        self._inputs = [each["name"] for each in config["input"]]
        self._facts = _facts(config)

    def _served(self, device: str) -> dict[str, Any]:
        """The configuration of the model that was made from the artefact, on the device if the server has it there.

        A machine without a GPU can ask a server that has one; where the GPU is asked for, nothing else will do.

        Raises:
            BackendUnavailable: the server has none, or has it on a CPU alone.
        """
        elsewhere: dict[str, Any] = {}
        for each in self._plain(self._client.get_model_repository_index(**self._way.request), "models"):
            if each.get("state") == "READY":
                told = self._client.get_model_config(each["name"], **self._way.request)
                found: dict[str, Any] = self._plain(told, "config")
                if _facts(found).get(ARTEFACT) == self._hash:
                    if found["instance_group"][0]["kind"] == KINDS[device]:
                        return found
                    elsewhere = found
        if elsewhere and device == "cpu":
            return elsewhere
        if elsewhere:
            raise BackendUnavailable(
                f"The Triton server at {self._url} serves this model on a CPU.",
                "Export it again with --device cuda, or choose the CPU.",
            )
        raise BackendUnavailable(
            f"The Triton server at {self._url} does not serve this model as it is built here.",
            "Write a repository for it, python -m qa_backends export --as triton, and serve that.",
        )

    def _plain(self, answer: Any, field: str) -> Any:
        """An answer as HTTP gives it: gRPC's is a message, with one field around it."""
        if isinstance(answer, dict | list):
            return answer
        from google.protobuf.json_format import MessageToDict

        return MessageToDict(answer, preserving_proto_field_name=True).get(field, [])

    def forward(self, windows: Windows) -> SpanLogits:
        return in_parts(self._ask, windows.inputs(self._inputs), self._most)

    def _ask(self, feeds: Feeds) -> SpanLogits:
        """Logits of as many windows as the server takes at once."""
        try:
            found = self._client.infer(self._name, inputs_of(self._library, feeds), **self._way.request)
        except self._failures as error:
            raise BackendFailed(f"The Triton server at {self._url} failed: {error}. See its own log.") from error
        return SpanLogits(found.as_numpy(OUTPUTS[0]), found.as_numpy(OUTPUTS[1]))

    def describe(self) -> Ran:
        precision = self._facts[PRECISION]
        notes = (
            (f"weights stored as {self._stored}, computed in {precision} there",) if precision != self._stored else ()
        )
        return Ran(
            device="CPU" if self._kind == KINDS["cpu"] else "GPU",
            provider=f"Triton at {urlsplit(self._url).netloc}, {self._facts[ENGINE]}",
            precision=precision,
            threads=0,  # the server's own affair
            fused_ops={},
            file_hash=self._hash,
            versions=versions_of(self.packages),
            notes=notes,
        )

    def close(self) -> None:
        self._client.close()


def inputs_of(library: Any, feeds: Mapping[str, np.ndarray[Any, Any]]) -> list[Any]:
    """The arrays as one of Triton's clients sends them; ``library`` is that client's module."""
    from tritonclient.utils import np_to_triton_dtype

    found = []
    for name, array in feeds.items():
        found.append(library.InferInput(name, array.shape, np_to_triton_dtype(array.dtype)))
        found[-1].set_data_from_numpy(array)
    return found


def _facts(config: Mapping[str, Any]) -> dict[str, str]:
    """The parameters; of any model of the server, where empty ones come without their value."""
    return {key: each.get("string_value", "") for key, each in config.get("parameters", {}).items()}
