"""What backends run, made on disk: the checkpoint, and the artefact that is built from it.

Downloads come on the caller's thread; packing and building on the engines', which is whose turn it is.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import cache, partial
from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.artefacts.build import build, missing, ready
from qa_backends.artefacts.rounded import Runner
from qa_backends.artefacts.steps import chain_of
from qa_backends.checkpoints import sources
from qa_backends.checkpoints.manifest import content_hash, versions_of
from qa_backends.engines import engine_class
from qa_backends.errors import AnswersError
from qa_backends.limits import DEVICE_TITLES, cpu_facts, cpu_flags, device_name
from qa_backends.runtime.turns import on_engine_thread

if TYPE_CHECKING:
    from pathlib import Path

    from qa_backends.catalog import Backend, Family
    from qa_backends.checkpoints.sources import Source
    from qa_backends.contract import SpanLogits, Windows
    from qa_backends.progress import Progress

    Forward = Callable[[Windows], SpanLogits]


class Maker:
    """Makes artefacts, and remembers of this process how long that took and which broke the answers."""

    def __init__(self) -> None:
        self._seconds: defaultdict[tuple[Family, str, str], float] = defaultdict(float)
        self._refused: dict[tuple[str, str, str], str] = {}

    def artefact(self, family: Family, backend: Backend, device: str, progress: Progress) -> Path:
        """The folder that the backend runs; made, with all it needs, where it is not there.

        Raises:
            BackendUnavailable, ArtefactError: it cannot run here, or its making failed.
            Cancelled: ``progress`` says to stop.
        """
        if refusal := catalog.unavailable(backend, device, family):
            raise refusal
        checkpoint = checkpoint_of(family.source(backend.checkpoint), progress)
        runner = runner_of(backend, device)
        there = not missing(checkpoint, backend.artefact, device, runner)
        with nullcontext() if there else self.charged(family, backend, device):
            return self.build(checkpoint, backend.artefact, device, progress, runner)

    def build(
        self, checkpoint: Path, artefact: str, device: str, progress: Progress, runner: Runner | None = None
    ) -> Path:
        """As ``artefacts.build`` on the engines' thread. What broke the answers is not made again: that would take as
        long and end alike."""
        if there := ready(checkpoint, artefact, device, runner):
            return there  # without the engines' thread, which may be at somebody's long text
        key = content_hash(checkpoint), artefact, runner.key if runner else ""
        if known := self._refused.get(key):
            raise AnswersError(known)
        try:
            return on_engine_thread(lambda: build(checkpoint, artefact, opened, progress, device, runner))
        except AnswersError as error:  # its frames hold models
            self._refused[key] = str(error)
            raise

    @contextmanager
    def charged(self, family: Family, backend: Backend, device: str) -> Iterator[None]:
        """Charges the time within to the backend, if it comes to an end."""
        began = time.perf_counter()
        yield
        self._seconds[family, backend.name, device] += time.perf_counter() - began

    def seconds(self, family: Family, backend: Backend, device: str) -> float:
        """All that was charged to the backend."""
        return self._seconds[family, backend.name, device]


def checkpoint_of(source: Source, progress: Progress) -> Path:
    """The checkpoint's folder, downloaded and packed where it is not there."""
    if (folder := sources.download(source, progress)) is not None:
        return folder
    return on_engine_thread(lambda: sources.make_ready(source, progress))


@cache
def runner_of(backend: Backend, device: str) -> Runner | None:
    """What runs the backend's artefact, where its last step is not compared by that when it is built. A server that
    runs it cannot do so before it is built."""
    if not backend.rounds or not backend.engine_class.computes_here:
        return None
    if (backend.engine, backend.options, device) == (chain_of(backend.artefact)[-1].opened_by, (), "cpu"):
        return None
    options = dict(backend.options)
    facts = {
        "engine": backend.engine,
        "options": options,
        "versions": versions_of(backend.engine_class.packages),
        "processor": _processor() if device == "cpu" else device_name(device),
    }
    where = [] if device == "cpu" else [DEVICE_TITLES[device]]
    title = ", ".join([backend.engine_class.title, *(each.label for each in backend.choices), *where])
    opening = partial(opened, engine=backend.engine, device=device, options=options)
    return Runner(title, json.dumps(facts, sort_keys=True), opening)


def _processor() -> str:
    """Its name, and its instructions on vectors, which one name may stand for more or fewer of."""
    vectors = sorted(flag for flag in cpu_flags() if flag.startswith(("amx", "avx")))
    return " ".join([cpu_facts().get("model name", ""), *vectors])


@contextmanager
def opened(folder: Path, engine: str, device: str, options: Mapping[str, str] | None = None) -> Iterator[Forward]:
    """A checkpoint or artefact, opened to compare logits; on the engine thread already, since builds run there."""
    found = engine_class(engine)(options or {})
    found.load(folder, device)
    try:
        yield found.forward
    finally:
        found.close()
