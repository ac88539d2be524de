"""What loading a backend costs, seconds and the memory that it takes from then on; and the most that was ever taken."""

from __future__ import annotations

import ctypes
import gc
import importlib
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qa_backends.contract import Engine

STATUS = Path("/proc/self/status")
"""Its line ``RssAnon`` is the resident memory that no file stands behind, ``VmHWM`` the most that ever was resident, in
KiB (Linux documentation, proc)."""
WHOLE = {"transformers": "transformers.modeling_utils"}
"""transformers imports its parts when they are first named; this one brings what every model of it needs."""


@dataclass(frozen=True, slots=True)
class LoadCost:
    """``load_s`` is from the artefact on disk to an engine that can answer. Its packages are imported before, or the
    first backend of an engine would pay for all; the files are mostly in the system's cache, since they were hashed.

    ``memory_bytes`` is by how much the loaded engine made the process larger, freed memory given back before and after:
    on the CPU what is resident and not a mapped file, on a GPU what is taken of the device. It holds whatever the
    engine keeps (packed or upcast copies of the weights too), but not what it allocates while it answers: for 384
    tokens of the embedded models some 10 MB, more for larger batches. Seen to repeat within 5 %, with two exceptions:
    up to 10 MB more where the engine's own code was imported late, and up to 35 MB less after another engine, closed
    or not, had left holes in the heap. Whoever else allocates meanwhile, in this process or on the GPU, is counted
    too. ``None`` where the system does not tell.
    """

    load_s: float
    memory_bytes: int | None


def load_measured(engine: Engine, artefact: Path, device: str) -> LoadCost:
    """Loads the engine; call it on the engines' thread. Raises what ``Engine.load`` raises."""
    for package in engine.packages:
        importlib.import_module(WHOLE.get(package, package))
    # What is there already is out of the collector's sight meanwhile: none of it is freed in between, and none of it is
    # walked through, which takes some tenths of a second once an app is loaded.
    gc.freeze()
    try:
        before = _taken_bytes(device)
        began = time.perf_counter()
        engine.load(artefact, device)
        load_s = time.perf_counter() - began
        after = _taken_bytes(device)
    finally:
        gc.unfreeze()
    return LoadCost(load_s, None if before is None or after is None else max(0, after - before))


def _taken_bytes(device: str) -> int | None:
    gc.collect()
    if device == "cuda":
        import torch

        torch.cuda.empty_cache()
        free, total = torch.cuda.mem_get_info()
        return int(total - free)
    if STATUS.is_file():
        _give_back_freed()
    return _told("RssAnon")


def peak_memory_bytes() -> int | None:
    """The most memory that was ever resident in this process, libraries and mapped files included; ``None`` where the
    system does not tell."""
    return _told("VmHWM")


def _told(what: str) -> int | None:
    if not STATUS.is_file():
        return None
    lines = dict(line.split(":", 1) for line in STATUS.read_text(encoding="ascii", errors="replace").splitlines())
    found = lines.get(what, "").split()
    return int(found[0]) * 1024 if found else None


def _give_back_freed() -> None:
    """Memory that was freed goes back to the system, where the C library is glibc; others have no call for it."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)
