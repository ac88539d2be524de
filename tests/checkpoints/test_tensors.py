"""Tensors are written whole, or not at all, and a disk without room is the system's own error."""

from __future__ import annotations

import errno
import resource
from typing import TYPE_CHECKING

import pytest
import torch
from safetensors.torch import load_file

from qa_backends.checkpoints.tensors import save_tensors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def small_files() -> Iterator[None]:
    """This process writes no file of more than 100 kB."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))  # Python ignores the signal that goes with it
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_other_users_can_read_them(tmp_path: Path) -> None:
    file = tmp_path / "weights.safetensors"
    save_tensors({"a": torch.ones(3)}, file, {})
    assert file.stat().st_mode & 0o777 == 0o644


@pytest.mark.usefixtures("small_files")
def test_where_there_is_no_room_the_systems_error_is_raised_and_what_was_there_stays(tmp_path: Path) -> None:
    file = tmp_path / "weights.safetensors"
    save_tensors({"a": torch.ones(3)}, file, {})
    with pytest.raises(OSError, match="File too large") as caught:
        save_tensors({"a": torch.zeros(100_000)}, file, {})
    assert caught.value.errno == errno.EFBIG
    assert [each.name for each in tmp_path.iterdir()] == [file.name]
    assert load_file(file)["a"].tolist() == [1, 1, 1]
