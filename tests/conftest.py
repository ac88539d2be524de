"""What tests share: a build cache of their own, a runtime, the app, small random models, engines and steps to add."""

from __future__ import annotations

import importlib
import os
import sys
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
from helpers import random_bert
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import ModuleType

    from qa_backends.catalog import Family
    from qa_backends.reader.tokens import Tokens
    from qa_backends.runtime import Runtime

    AddFile = Callable[[str, str], None]

# Before anything is imported: nothing in a test may reach the Hub, and Gradio reports to nobody.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
# What somebody set for their own work is no part of a test.
for name in [*os.environ]:
    if name == "OMP_NUM_THREADS" or (name.startswith("QA_") and not name.startswith("QA_FAULT")):
        del os.environ[name]
# A busy machine takes its time for any example.
settings.register_profile("busy", deadline=None)
settings.load_profile("busy")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that need a GPU run wherever there is one, and are deselected elsewhere."""
    from qa_backends.limits import devices

    if "cuda" in devices():
        return
    left_out = [each for each in items if each.get_closest_marker("gpu")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [each for each in items if each not in left_out]


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A build cache that starts empty and is shared by the whole run, also with processes that tests start."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QA_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session", autouse=True)
def one_benchmark() -> Iterator[None]:
    """What ships of the usual processor, whichever the tests run on, so that all see the same figures; whether BF16 can
    be had stays the processor's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("qa_backends.measure.results.shipped.seven_bits", lambda: False)
        patch.setattr("qa_backends.measure.results.shipped.cpu_flags", frozenset)
        patch.setattr("qa_backends.measure.results.shipped.cpu_facts", dict)
        yield


@pytest.fixture(scope="session")
def runtime(cache: Path) -> Runtime:
    """One runtime for all tests that only ask it."""
    from qa_backends.runtime import Runtime

    return Runtime()


@pytest.fixture(scope="session")
def url(runtime: Runtime) -> Iterator[str]:
    """The app on a port of its own, started once."""
    from qa_backends.web.page import build_page, launch_options

    page = build_page(runtime)
    _, address, _ = page.launch(**launch_options(), prevent_thread_lock=True, quiet=True, server_name="127.0.0.1")
    yield address
    page.close()


@pytest.fixture
def own_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test begins with no models of one's own."""
    from qa_backends.catalog import own

    monkeypatch.setattr(own, "_adopted", {})


@pytest.fixture(autouse=True)
def families_forgotten() -> Iterator[None]:
    """Families that the test brings are gone after it, so that tests may come in any order."""
    from qa_backends import catalog

    before = {each.name for each in catalog.families()}
    yield
    for each in catalog.families():
        if each.name not in before:
            catalog.forget(each.name)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return random_bert(tmp_path / "tiny")


@pytest.fixture(scope="session")
def small_family(tmp_path_factory: pytest.TempPathFactory) -> Family:
    """Two small random checkpoints, ready for every backend: what does not hang on the model is quick with them."""
    from qa_backends.catalog import Family
    from qa_backends.checkpoints.manifest import manifest_of
    from qa_backends.checkpoints.sources import Source

    checkpoints = []
    for seed, name in enumerate(("baseline", "pruned")):
        folder = random_bert(tmp_path_factory.mktemp("small") / name, seed=seed)
        manifest_of(folder, step="test", parent=None, settings={}).write(folder)
        checkpoints.append((name, Source(folder=folder)))
    return Family("small", "Small and random", tuple(checkpoints))


@pytest.fixture
def add_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AddFile:
    """``add_engine(name, source)`` adds an engine, as if a file with that source stood among the others."""
    from qa_backends import engines

    return _adds_to(engines, tmp_path / "engines", monkeypatch)


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that a tokenizer is given by itself, in order."""
    from qa_backends.reader.tokens import SubwordTokenizer

    found: list[str] = []
    encode = SubwordTokenizer.encode

    def noting(self: SubwordTokenizer, text: str) -> Tokens:
        found.append(text)
        return encode(self, text)

    monkeypatch.setattr(SubwordTokenizer, "encode", noting)
    return found


@pytest.fixture
def add_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AddFile:
    """``add_step(name, source)`` adds a build step, as if a file with that source stood among the others."""
    from qa_backends.artefacts import steps

    return _adds_to(steps, tmp_path / "steps", monkeypatch)


def _adds_to(package: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch) -> AddFile:
    folder.mkdir()
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])

    def add(name: str, source: str) -> None:
        file = folder / f"{name.replace('-', '_')}.py"
        file.write_text(dedent(source), encoding="utf-8")
        importlib.invalidate_caches()
        monkeypatch.delitem(sys.modules, f"{package.__name__}.{file.stem}", raising=False)

    return add
