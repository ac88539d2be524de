"""The machine a measurement was taken on, described so that another can be compared with it."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from datetime import UTC, datetime

from qa_backends.checkpoints.manifest import versions_of
from qa_backends.engines import engine_class, engine_names
from qa_backends.limits import cpu_facts, cpu_flags, memory_bytes, thread_count


@dataclass(frozen=True, slots=True)
class Machine:
    """``threads`` and ``memory_gib`` are what the process may use."""

    processor: str
    threads: int
    memory_gib: int
    gpu: str | None
    system: str
    python: str
    versions: dict[str, str]
    date: str

    def sentence(self, device: str) -> str:
        """For a caption: what was measured on, and when."""
        cores = f"{self.threads} core{'s' if self.threads != 1 else ''}"
        processor = self.gpu if device == "cuda" else self.processor
        return f"{processor}, {cores}, {self.memory_gib} GiB, {self.date}"


def this_machine() -> Machine:
    import torch

    return Machine(
        processor=_processor(),
        threads=thread_count(),
        memory_gib=round(memory_bytes("cpu") / 2**30),
        gpu=torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        system=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        versions=versions_of(dict.fromkeys(each for name in engine_names() for each in engine_class(name).packages)),
        date=datetime.now(UTC).date().isoformat(),
    )


def _processor() -> str:
    """The processor's name as Linux gives it, with the instruction sets that decide how fast it multiplies."""
    wanted = (("amx_bf16", "AMX"), ("avx512_vnni", "AVX-512 VNNI"), ("avx512f", "AVX-512"), ("avx2", "AVX2"))
    best = next((name for flag, name in wanted if flag in cpu_flags()), None)
    name = cpu_facts().get("model name", platform.processor() or platform.machine())
    return name + (f" ({best})" if best else "")
