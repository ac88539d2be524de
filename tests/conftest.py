"""Fixtures that tests share: a build cache of their own, a runtime, the app, a small random checkpoint."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from helpers import random_bert

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from qa_backends.runtime import Runtime

# Before anything is imported: nothing in a test may reach the Hub, and Gradio reports to nobody.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"


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
def tiny(tmp_path: Path) -> Path:
    return random_bert(tmp_path / "tiny")
