"""Tensors in a file, as safetensors: nothing in it can run code when it is read."""

from __future__ import annotations

import errno
import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import torch

NUMBER = re.compile(r"os error (\d+)")
"""How safetensors, which is written in Rust, tells the system's error."""


def save_tensors(tensors: dict[str, torch.Tensor], file: Path, metadata: Mapping[str, str]) -> None:
    """Replaces the file whole: who stops meanwhile finds what was there before.

    Raises:
        OSError: it cannot be written, on a full disk say; safetensors has an error of its own for that.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f"{file.name}.partial")
    try:
        save_file(tensors, partial, metadata=dict(metadata))
    except SafetensorError as error:
        partial.unlink(missing_ok=True)
        told = NUMBER.search(str(error))
        number = int(told[1]) if told else errno.EIO
        raise OSError(number, os.strerror(number), str(file)) from error
    partial.chmod(0o644)  # safetensors' files are their owner's alone
    partial.replace(file)
