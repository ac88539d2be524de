"""What the tests of builds share: a small pruned checkpoint, and caches with its chain built or not."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from helpers import random_bert

from qa_backends.artefacts.build import build
from qa_backends.checkpoints.architectures import architecture_of
from qa_backends.checkpoints.load import load_model, save_model
from qa_backends.checkpoints.packing import pack
from qa_backends.progress import UNWATCHED
from qa_backends.runtime.making import opened

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint whose layers keep different numbers of heads and columns, as pruned ones do."""
    import torch

    folder = random_bert(tmp_path_factory.mktemp("packed") / "tiny")
    model = load_model(folder)
    first, second = architecture_of(model.config).blocks(model)
    with torch.no_grad():
        first.attention_output.weight[:, :16] = 0
        second.down.weight[:, ::3] = 0
    save_model(pack(model), folder, tokenizer_from=folder, dtype=torch.float32)
    return folder


@pytest.fixture(scope="session")
def chain(packed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that holds the checkpoint's whole chain; tests copy it."""
    folder = tmp_path_factory.mktemp("chain")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QA_CACHE", str(folder))
        build(packed, "onnx-fused-fp16", opened, UNWATCHED)
    return folder


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, in which nothing is built."""
    monkeypatch.setenv("QA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def full(empty: Path, chain: Path) -> Path:
    """A cache of the test's own, in which the whole chain is built."""
    shutil.copytree(chain, empty)
    return empty
