"""What torch.compile compiles: every model that is loaded, however many were before it."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from helpers import random_bert

from qa_backends.engines._buckets import padded
from qa_backends.engines.torch_compile import COMPILED, TorchCompile

if TYPE_CHECKING:
    from pathlib import Path

LOADS = 5
"""More than half of the eight programs that PyTorch keeps of one function."""


def test_padding_ends_where_the_models_positions_do() -> None:
    feeds = {"input_ids": np.ones((2, 70), dtype=np.int64)}
    lengths = [next(iter(padded(feeds, most).values())).shape for most in (512, 80, 70)]
    assert lengths == [(2, 96), (2, 80), (2, 70)]


@pytest.mark.slow
@pytest.mark.programs
def test_a_model_that_is_loaded_late_is_compiled_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graphs: list[Any] = []

    def counting(graph: torch.fx.GraphModule, _inputs: object) -> Any:
        graphs.append(graph)
        return graph.forward

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=counting))
    for number in range(1, LOADS + 1):
        engine = TorchCompile({})
        engine.load(random_bert(tmp_path / str(number), layers=1, seed=number), "cpu")
        engine.close()
        assert len(graphs) == number * len(COMPILED)


LOADING = """
import sys
from pathlib import Path
from qa_backends.engines import torch_compile
from qa_backends.errors import ArtefactError
torch_compile.COMPILED = torch_compile.COMPILED[-1:]  # each takes seconds, and one is enough to be half written
try:
    torch_compile.TorchCompile({}).load(Path(sys.argv[1]), "cpu")
except ArtefactError as error:
    print(error)
"""


@pytest.mark.slow
@pytest.mark.programs
def test_half_a_library_of_a_process_that_was_stopped_is_an_error_that_says_what_to_delete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, kept = random_bert(tmp_path / "model", layers=1), tmp_path / "kept"
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(kept))

    def load() -> str:
        done = subprocess.run([sys.executable, "-c", LOADING, model], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert load() == ""
    libraries = list(kept.rglob("*.so"))
    assert libraries
    for each in libraries:
        each.write_bytes(b"")
    assert f"delete {kept}, and try again." in load()
