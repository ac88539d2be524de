"""Averaging checkpoints: the mean of their weights, and of nothing that is not alike."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import torch
from helpers import random_bert

from qa_backends.checkpoints.files import WEIGHTS
from qa_backends.checkpoints.load import load_model
from qa_backends.checkpoints.manifest import file_hash, manifest_of, read_manifest
from qa_backends.errors import InputError
from qa_backends.training.soup import soup

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def three(tmp_path: Path) -> list[Path]:
    """Three checkpoints of one shape."""
    return [random_bert(tmp_path / str(seed), seed=seed) for seed in (1, 2, 3)]


def test_the_weights_are_the_mean_of_all_and_the_manifest_says_of_which(three: list[Path], tmp_path: Path) -> None:
    manifest_of(three[0], step="finetune", parent=None, settings={"passes": 2}).write(three[0])
    made = soup(three, tmp_path / "made")
    parts = [load_model(each).state_dict() for each in three]
    for name, each in load_model(made).state_dict().items():
        expected = torch.stack([part[name] for part in parts]).mean(0)
        torch.testing.assert_close(each, expected, atol=1e-3, rtol=1e-3)  # stored as FP16
    written = read_manifest(made)
    assert (written.step, written.parent) == ("soup", file_hash(three[0] / WEIGHTS))
    assert written.settings["of"] == [file_hash(each / WEIGHTS) for each in three]
    assert written.settings["before"] == {"step": "finetune", "parent": None, "passes": 2}
    assert written.precision == "FP16"


def test_a_finished_mean_is_found_again_and_another_refused(three: list[Path], tmp_path: Path) -> None:
    made = soup(three, tmp_path / "made")
    written = (made / WEIGHTS).stat().st_mtime_ns
    assert soup(three, made) == made and (made / WEIGHTS).stat().st_mtime_ns == written
    with pytest.raises(InputError, match="holds a checkpoint already"):
        soup(three[:2], made)
    manifest = read_manifest(made)
    replace(manifest, settings=manifest.settings | {"held_out": {}}).write(made)
    assert soup(three, made) == made and "held_out" in read_manifest(made).settings


def test_a_run_that_was_stopped_with_its_weights_written_goes_on(
    three: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    folder = tmp_path / "made"
    with monkeypatch.context() as stopped, pytest.raises(KeyboardInterrupt):
        stopped.setattr("qa_backends.training.provenance.manifest_of", stop)
        soup(three, folder)
    assert (folder / WEIGHTS).is_file()
    with pytest.raises(InputError, match="holds a run with other settings"):
        soup(three[:2], folder)
    assert soup(three, folder) == folder
    assert file_hash(folder / WEIGHTS) == file_hash(soup(three, tmp_path / "whole") / WEIGHTS)
    assert read_manifest(folder).settings["of"] == [file_hash(each / WEIGHTS) for each in three]


def test_what_is_not_alike_is_refused_and_nothing_is_overwritten(three: list[Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="two checkpoints at least"):
        soup(three[:1], tmp_path / "made")
    with pytest.raises(InputError, match="other shapes"):
        soup([three[0], random_bert(tmp_path / "wider", columns=64)], tmp_path / "made")
    with pytest.raises(InputError, match=f"holds no {WEIGHTS}"):
        soup([three[0], tmp_path / "nothing"], tmp_path / "made")
    before = file_hash(three[1] / WEIGHTS)
    with pytest.raises(InputError, match="holds a checkpoint already"):
        soup(three, three[1])
    assert file_hash(three[1] / WEIGHTS) == before
    other = shutil.copytree(three[1], tmp_path / "other")
    words = other / "tokenizer.json"
    words.write_text(words.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="same tokenizer"):
        soup([three[0], other], tmp_path / "made")
    assert not (tmp_path / "made").exists()
