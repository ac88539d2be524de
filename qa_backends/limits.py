"""What this process may really use, by the container it runs in and not by the host: cores, memory, devices."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import sys
from functools import cache
from pathlib import Path

import psutil

from qa_backends.errors import InputError

CGROUP = Path("/sys/fs/cgroup")
"""``cpu.max`` holds "<microseconds|max> <period>", ``memory.max`` bytes or "max" (Linux documentation, cgroup v2)."""
CPUINFO = Path("/proc/cpuinfo")

BF16_FLAGS = frozenset({"avx512_bf16", "amx_bf16"})
"""What Linux calls the instructions without which BF16 is only rounded to, and takes longer than FP32."""

GPU_DRIVERS = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")
"""Where Linux puts NVIDIA's driver, that of Windows beneath it, and AMD's, which PyTorch calls "cuda" as well."""

DEFAULT_SHARE = 0.5
"""Share of a device's memory that loaded weights may take, unless its variable says otherwise."""
BUDGETS = {"cpu": "QA_MEMORY_GB", "cuda": "QA_GPU_MEMORY_GB"}

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
"""What ``malloc.h`` of glibc calls how much may be free at the heap's end, and how many blocks may lie beside it."""
MOST_KEPT = 2**31 - 1
"""Bytes that may be free at the heap's end: the most that ``mallopt`` takes."""

DEVICE_TITLES = {"cuda": "GPU", "cpu": "CPU"}


@cache
def devices() -> tuple[str, ...]:
    """``("cpu",)``, with ``"cuda"`` in front where PyTorch sees a GPU; it is asked only where a GPU's driver is."""
    driven = any(map(os.path.exists, GPU_DRIVERS)) or shutil.which("nvidia-smi")
    if not driven or importlib.util.find_spec("torch") is None:
        return ("cpu",)
    import torch

    return ("cuda", "cpu") if torch.cuda.is_available() else ("cpu",)


def device_name(device: str) -> str:
    """What the GPU calls itself, as in "NVIDIA L4"; the device's own name for the CPU, and where there is no GPU."""
    if device != "cuda" or device not in devices():
        return device
    import torch

    return torch.cuda.get_device_name()


def limit_threads() -> None:
    """Makes PyTorch use as many threads as ``thread_count`` says: by itself it counts the host's cores."""
    if importlib.util.find_spec("torch") is not None:
        import torch

        torch.set_num_threads(thread_count())


def keep_freed_memory() -> None:
    """Makes glibc keep what is freed for what is allocated next; elsewhere nothing.

    By itself it gives blocks of 32 MB and more back at once, as large as one layer's attention in training, and the
    system empties every page of them again when they are next asked for.
    """
    if not sys.platform.startswith("linux"):
        return
    allocator = ctypes.CDLL(None)
    if hasattr(allocator, "gnu_get_libc_version"):
        allocator.mallopt(M_MMAP_MAX, 0)
        allocator.mallopt(M_TRIM_THRESHOLD, MOST_KEPT)


def thread_count() -> int:
    """Cores this process may run on, by CPU affinity, the container's quota and OMP_NUM_THREADS; the same for every
    engine. Of a quota only whole cores count: who fills more than it allows is held back, and times tell of that."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else (os.cpu_count() or 1)
    allowed, _, period = _read("cpu.max").partition(" ")
    quota = int(allowed) // int(period) if allowed.isdigit() else cores
    told = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    return max(1, min(cores, quota, int(told) if told.isdigit() else cores))


@cache
def cpu_flags() -> frozenset[str]:
    """Instruction sets of the processor by Linux's names, as in "avx512_vnni"; none where there is no Linux."""
    return frozenset(cpu_facts().get("flags", cpu_facts().get("Features", "")).split())


def has_bf16(device: str) -> bool:
    """Whether the GPU, or the processor, multiplies in BF16 by itself."""
    if device == "cuda":
        import torch

        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return bool(cpu_flags() & BF16_FLAGS)


@cache
def cpu_facts() -> dict[str, str]:
    """What Linux says of the first core (Linux documentation, proc: cpuinfo); nothing where there is no Linux."""
    try:
        first = CPUINFO.read_text(encoding="ascii", errors="replace").partition("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, _, value in pairs}


def memory_bytes(device: str) -> int:
    """The GPU's memory, or the machine's, or the container's share of that."""
    if device == "cuda":
        import torch

        return int(torch.cuda.get_device_properties(0).total_memory)  # asked so, a GPU that is full says it too
    total = int(psutil.virtual_memory().total)
    allowed = _read("memory.max")
    return min(total, int(allowed)) if allowed.isdigit() else total


def memory_budget(device: str) -> int:
    """Bytes of loaded weights: the device's variable where it is set, else ``DEFAULT_SHARE`` of the memory it has.

    Raises:
        InputError: the variable is no number above 0.
    """
    return gigabytes(BUDGETS[device]) or int(memory_bytes(device) * DEFAULT_SHARE)


def gigabytes(variable: str) -> int:
    """What the environment variable allows, in bytes; 0 where it is not set.

    Raises:
        InputError: it is no number above 0.
    """
    wanted = os.environ.get(variable, "")
    if not wanted:
        return 0
    try:
        allowed = int(float(wanted) * 1e9)
    except (ValueError, OverflowError):
        allowed = 0
    if allowed <= 0:
        raise InputError(f"{variable} is '{wanted}'; set it to a number of gigabytes above 0, or leave it out.")
    return allowed


def _read(name: str) -> str:
    """The control group's setting; empty where there is none."""
    try:
        return (CGROUP / name).read_text(encoding="ascii").strip()
    except OSError:
        return ""
