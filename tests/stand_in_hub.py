"""A Hugging Face Hub on this machine, as small as its client allows: what the real download process talks to in tests.

It answers as ``huggingface_hub`` 0.36 asks: what a revision is (``/api/models/…/revision/…``), which pull requests
there are (``/api/models/…/discussions``), and files by revision (``/…/resolve/…``), whole or from some byte on.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHUNK = 10 * 2**20
"""The client writes what has come to its file in pieces of this size."""


@dataclass
class StandInHub:
    """``asked`` are the requests so far, as in "GET /…", and ``tokens`` what they were authorised by; of ``private``
    repositories who brings none is told nothing. A file named in ``held`` is sent up to ``CHUNK`` bytes and goes on
    once ``release`` is set; what is asked for from some byte on is sent at once."""

    url: str = ""
    asked: list[str] = field(default_factory=list)
    tokens: set[str | None] = field(default_factory=set)
    private: set[str] = field(default_factory=set)
    held: set[str] = field(default_factory=set)
    release: threading.Event = field(default_factory=threading.Event)
    _commits: dict[tuple[str, str], str] = field(default_factory=dict)
    _files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    _authors: dict[str, list[str]] = field(default_factory=dict)

    def publish(
        self, repository: str, files: dict[str, bytes] | Path, *, commit: str = "", branch: str = "main"
    ) -> str:
        """The commit (40 hex digits) that the branch now stands for."""
        contents = files if isinstance(files, dict) else {each.name: each.read_bytes() for each in files.iterdir()}
        made = commit or hashlib.sha1(f"{repository} {len(self._files)}".encode()).hexdigest()
        self._files[made] = contents
        self._commits[repository, branch] = self._commits[repository, made] = made
        return made

    def offer(self, repository: str, files: dict[str, bytes] | Path, *, author: str) -> str:
        """A pull request's commit."""
        authors = self._authors.setdefault(repository, [])
        authors.append(author)
        return self.publish(repository, files, branch=f"refs/pr/{len(authors)}")

    def commit_of(self, repository: str, revision: str) -> str | None:
        return self._commits.get((repository, revision))

    def files_of(self, commit: str) -> dict[str, bytes]:
        return self._files[commit]

    def pull_requests(self, repository: str) -> list[dict[str, object]]:
        """All of them, whoever is asked for: whose to take is for the client to see to."""
        return [
            {
                "num": number,
                "title": "Adding safetensors",
                "author": {"name": author},
                "createdAt": "2024-01-01T00:00:00.000Z",
                "status": "open",
                "repo": {"name": repository, "type": "model"},
                "isPullRequest": True,
            }
            for number, author in enumerate(self._authors.get(repository, []), 1)
        ]


class Handler(BaseHTTPRequestHandler):
    hub: StandInHub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def log_message(self, *_args: object) -> None:
        """Says nothing; ``asked`` holds what was asked."""

    def _answer(self, *, body: bool) -> None:
        self.hub.asked.append(f"{self.command} {self.path}")
        self.hub.tokens.add(self.headers.get("Authorization"))
        path = unquote(urlsplit(self.path).path)
        if found := re.fullmatch(r"/api/models/(.+?)/revision/(.+)", path):
            self._revision(found[1], found[2])
        elif found := re.fullmatch(r"/api/models/(.+?)/discussions", path):
            requests = self.hub.pull_requests(found[1])
            self._json({"discussions": requests, "count": len(requests), "start": 0})
        elif found := re.fullmatch(r"/(.+?)/resolve/([^/]+)/(.+)", path):
            self._file(found[1], found[2], found[3], body=body)
        else:
            self._missing("EntryNotFound")

    def _revision(self, repository: str, revision: str) -> None:
        commit = self.hub.commit_of(repository, revision)
        if commit is None or (repository in self.hub.private and not self.headers.get("Authorization")):
            self._missing("RepoNotFound")
            return
        siblings = [{"rfilename": name, "size": len(each)} for name, each in self.hub.files_of(commit).items()]
        kind = json.loads(self.hub.files_of(commit).get("config.json", b"{}")).get("model_type")
        self._json({"id": repository, "sha": commit, "siblings": siblings, "config": {"model_type": kind}})

    def _file(self, repository: str, revision: str, name: str, *, body: bool) -> None:
        commit = self.hub.commit_of(repository, revision)
        if commit is None or name not in self.hub.files_of(commit):
            self._missing("EntryNotFound")
            return
        whole = self.hub.files_of(commit)[name]
        wanted = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
        part = whole[int(wanted[1]) :] if wanted else whole
        self.send_response(206 if wanted else 200)
        self.send_header("X-Repo-Commit", commit)
        self.send_header("ETag", f'"{hashlib.sha256(whole).hexdigest()}"')
        self.send_header("Content-Length", str(len(part)))
        if wanted:
            self.send_header("Content-Range", f"bytes {wanted[1]}-{len(whole) - 1}/{len(whole)}")
        self.end_headers()
        if not body:
            return
        if name in self.hub.held and not wanted:
            self.wfile.write(part[:CHUNK])
            self.hub.release.wait(30)
            part = part[CHUNK:]
        self.wfile.write(part)

    def _json(self, answer: object) -> None:
        raw = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def _missing(self, code: str) -> None:
        self.send_response(404)
        self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_args: object) -> None:
        """A client that is stopped hangs up in the middle, which is what some tests are about."""


@contextmanager
def stand_in_hub(folder: Path) -> Iterator[StandInHub]:
    """An empty Hub that download processes of this one find, their cache and the built artefacts in ``folder``."""
    hub = StandInHub()
    server = Server(("127.0.0.1", 0), type("HubHandler", (Handler,), {"hub": hub}))
    hub.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "HF_ENDPOINT": hub.url,
            "HF_HUB_OFFLINE": "0",
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",
            "NO_PROXY": "127.0.0.1",
            "QA_CACHE": str(folder / "cache"),
        }.items():
            patch.setenv(name, value)
        patch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(folder / "downloaded"))
        yield hub
    hub.release.set()
    server.shutdown()
    server.server_close()
