"""What loading a backend cost: its own time and memory, and neither its packages' nor its building's."""

from __future__ import annotations

import gc
import sys
import time
import weakref
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from helpers import QUESTION, TEXT, random_bert
from transformers import PreTrainedModel

from qa_backends import catalog
from qa_backends.catalog import Backend
from qa_backends.contract import Query
from qa_backends.engines import engine_class
from qa_backends.progress import UNWATCHED
from qa_backends.runtime import Runtime
from qa_backends.runtime import cost as costs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from qa_backends.catalog import Family

    AddFile = Callable[[str, str], None]

HEAVY = Backend("baseline", "checkpoint", "heavy")
MIB = 2**20
ENGINE = """
    import time

    import numpy as np

    from qa_backends.engines.fake import Fake


    class Heavy(Fake):
        short = "heavy"
        packages = ("a_slow_package",)

        def load(self, artefact, device):
            import a_slow_package

            super().load(artefact, device)
            passing = [np.ones(2**16, dtype=np.uint8) for _ in range(2**12)]
            self.small = np.ones(2**16, dtype=np.uint8)
            self.weights = np.ones((512, 2**20), dtype=np.uint8)
            time.sleep(0.3)

        def close(self):
            super().close()
            del self.weights
"""
LOOKING = """
    import gc

    import numpy as np

    from qa_backends.engines.fake import Fake


    class Looking(Fake):
        short = "looking"

        def load(self, artefact, device):
            super().load(artefact, device)
            self.weights = np.ones((512, 2**20), dtype=np.uint8)
            gc.collect()
            self.seen = len(gc.get_objects())
"""
PACKAGE = """
    import time

    import numpy as np

    ITS_OWN = np.ones((128, 2**20), dtype=np.uint8)
    time.sleep(0.6)
"""


@pytest.fixture
def heavy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, add_engine: AddFile) -> None:
    """An engine that keeps 512 MiB, of 768 that it takes for a moment, is loaded in 0.3 s, and needs a package that
    takes 0.6 s and 128 MiB: much more than the holes that other engines may have left in the heap."""
    (tmp_path / "a_slow_package.py").write_text(dedent(PACKAGE))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "a_slow_package", raising=False)
    add_engine("heavy", ENGINE)


@pytest.mark.usefixtures("heavy")
def test_loading_costs_the_time_and_memory_of_the_backend_and_not_of_its_packages(small_family: Family) -> None:
    runtime = Runtime()
    with runtime.turn("cpu"):
        began = time.perf_counter()
        cost = runtime.get(small_family, HEAVY, "cpu").cost
        whole_s = time.perf_counter() - began
    assert 0.3 <= cost.load_s < whole_s - 0.6
    assert cost.memory_bytes == pytest.approx(512 * MIB, rel=0.1)


def test_what_is_there_already_is_neither_freed_nor_looked_at_while_a_backend_is_loaded(
    small_family: Family, add_engine: AddFile
) -> None:
    add_engine("looking", LOOKING)
    garbage: list[object] = [np.ones((256, 2**20), dtype=np.uint8)]
    garbage.append(garbage)
    kept: list[list[int]] = [[each] for each in range(100_000)]
    del garbage
    runtime = Runtime()
    with runtime.turn("cpu"):
        found: Any = runtime.get(small_family, Backend("baseline", "checkpoint", "looking"), "cpu")
    assert found.cost.memory_bytes == pytest.approx(512 * MIB, rel=0.1)
    assert found.engine.seen < len(kept)
    assert len(gc.get_objects()) > len(kept), "all of it is looked at again"


@pytest.mark.usefixtures("heavy")
def test_a_backend_that_is_loaded_keeps_the_figures_of_its_loading(small_family: Family) -> None:
    runtime = Runtime()
    with runtime.turn("cpu") as turn:
        first = runtime.get(small_family, HEAVY, "cpu").cost
        turn.answer(small_family, HEAVY, turn.prepare(small_family, Query(QUESTION, TEXT)))
        assert runtime.get(small_family, HEAVY, "cpu").cost is first


@pytest.mark.usefixtures("heavy")
def test_memory_is_unknown_where_the_system_does_not_tell(
    small_family: Family, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(costs, "STATUS", tmp_path / "nowhere")
    runtime = Runtime()
    with runtime.turn("cpu"):
        cost = runtime.get(small_family, HEAVY, "cpu").cost
    assert cost.memory_bytes is None and cost.load_s >= 0.3


def test_building_is_told_apart_from_loading_and_only_where_something_was_built(
    small_family: Family, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("QA_CACHE", str(tmp_path / "cache"))
    backend, plain = catalog.backend("pruned-ort"), catalog.backend("pruned")
    builder = Runtime()
    began = time.perf_counter()
    builder.make_ready(small_family, backend, "cpu", UNWATCHED)
    took_s = time.perf_counter() - began
    assert 0.5 * took_s < builder.build_s(small_family, backend, "cpu") <= took_s
    assert builder.build_s(small_family, plain, "cpu") == 0
    with builder.turn("cpu"):
        assert builder.get(small_family, backend, "cpu").cost.load_s < took_s
    assert builder.build_s(small_family, backend, "cpu") <= took_s, "loading is no building"
    later = Runtime()
    later.make_ready(small_family, backend, "cpu", UNWATCHED)
    with later.turn("cpu"):
        later.get(small_family, backend, "cpu")
    assert later.build_s(small_family, backend, "cpu") == 0


def test_what_is_built_within_a_turn_counts_as_building_too(
    small_family: Family, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("QA_CACHE", str(tmp_path / "cache"))
    backend, runtime = catalog.backend("pruned-ort"), Runtime()
    with runtime.turn("cpu"):
        cost = runtime.get(small_family, backend, "cpu").cost
    assert runtime.build_s(small_family, backend, "cpu") > cost.load_s


@pytest.mark.gpu
def test_on_a_gpu_it_is_the_memory_of_the_device() -> None:
    runtime, family = Runtime(), catalog.family("minilm")
    backend = catalog.backend("baseline")
    with runtime.turn("cuda"):
        cost = runtime.get(family, backend, "cuda").cost
    size = runtime.size_of(family, backend, "cuda")
    assert cost.memory_bytes is not None and size <= cost.memory_bytes < 2 * size


def test_a_model_in_pytorch_goes_when_its_backend_is_closed_and_waits_for_no_collector(tmp_path: Path) -> None:
    def models() -> dict[int, PreTrainedModel]:  # other tests' may be alive too
        # Asked of its type: a proxy of something gone cannot be asked itself.
        return {id(each): each for each in gc.get_objects() if issubclass(type(each), PreTrainedModel)}

    engine, others = engine_class("pytorch")({}), models()
    engine.load(random_bert(tmp_path), "cpu")
    gc.collect()
    gc.disable()
    try:
        loaded = [weakref.ref(model) for key, model in models().items() if key not in others]
        assert any(model() is not None for model in loaded)
        engine.close()
        assert all(model() is None for model in loaded)
    finally:
        gc.enable()
