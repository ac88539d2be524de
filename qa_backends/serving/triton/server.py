"""A Triton server as a process of its own: the one on the path, or the one that ``nvidia-pytriton`` brings.

The package's server is the real one, with the Python backend alone, and is started here without the package's own
code: that would put a model of this process behind the server, which is another thing than a model repository.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qa_backends.errors import BackendFailed, BackendUnavailable, InputError
from qa_backends.serving.triton.repository import NATIVE, PYTHON

if TYPE_CHECKING:
    from collections.abc import Mapping

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
STUB = "triton_python_backend_stub"
ENDS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the server listens."""

    host: str = "127.0.0.1"
    http: int = 8000
    grpc: int = 8001
    metrics: int = 8002

    def options(self) -> list[str]:
        options = []
        for name, port in (("http", self.http), ("grpc", self.grpc), ("metrics", self.metrics)):
            options += [f"--{name}-address={self.host}", f"--{name}-port={port}"]
        return options


def serve(repository: Path, environment: Path | None, addresses: Addresses) -> None:
    """Runs a server until it is told to stop.

    Raises:
        InputError: the folder is no repository, or has no form that this server has the backend for.
        BackendUnavailable: there is no server.
        BackendFailed: the server ended by itself.
    """
    with tempfile.TemporaryDirectory(prefix="triton-") as folder:
        if environment:
            program, backends, variables = _from_package(environment, Path(folder))
        else:
            program, backends, variables = _from_path()
        models = _form(repository, backends)
        command = [program, f"--model-repository={models}", f"--backend-directory={backends}", *addresses.options()]
        _run([*map(str, command)], variables)


def _form(repository: Path, backends: Path) -> Path:
    """The form of the repository that the server can serve, the native one first."""
    forms = [form for form in (NATIVE, PYTHON) if (repository / form).is_dir()]
    if not forms:
        raise InputError(
            f"{repository} holds no model repository. Write one: python -m qa_backends export --as triton --to FOLDER"
        )
    for form in forms:
        if (backends / form).is_dir():
            return repository / form
    raise InputError(f"The server has no backend for {' or '.join(forms)}: there is none in {backends}.")


def _from_path() -> tuple[Path, Path, dict[str, str]]:
    program = shutil.which("tritonserver")
    if program is None:
        raise BackendUnavailable(
            "There is no `tritonserver` on the path.",
            f"Install one into an environment of its own, python -m venv ENVIRONMENT && ENVIRONMENT/bin/pip install -r "
            f"{REQUIREMENTS}, and name it: --environment ENVIRONMENT",
        )
    return Path(program), Path(program).resolve().parent.parent / "backends", dict(os.environ)


def _from_package(environment: Path, folder: Path) -> tuple[Path, Path, dict[str, str]]:
    """The package's server, its backends with the stub of the environment's Python, and the variables it needs.

    The stub loads ``libpython``, which no loader finds by itself where Python is not the system's.
    """
    python = environment / "bin" / "python"
    found = next(iter(environment.glob("lib/python3.*/site-packages/pytriton/tritonserver")), None)
    if found is None or not python.exists():
        raise BackendUnavailable(
            f"There is no Triton server in {environment}.",
            f"Install it: python -m venv {environment} && {environment}/bin/pip install -r {REQUIREMENTS}",
        )
    asked = "import sys, sysconfig; print(sysconfig.get_config_var('LIBDIR'), '%d.%d' % sys.version_info[:2])"
    told = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True).stdout  # noqa: S603
    libraries, version = told.split()
    backends = folder / "backends"
    shutil.copytree(found / "backends", backends)
    shutil.copy(found / "python_backend_stubs" / version / STUB, backends / PYTHON / STUB)
    packages = found.parent.parent
    variables = dict(os.environ) | {
        "PATH": f"{python.parent.resolve()}:{os.environ.get('PATH', '')}",
        "PYTHONPATH": str(packages.resolve()),
        "LD_LIBRARY_PATH": f"{libraries}:{packages.resolve() / 'nvidia_pytriton.libs'}",
    }
    return found / "bin" / "tritonserver", backends, variables


def _run(command: list[str], variables: Mapping[str, str]) -> None:
    """The server in the foreground; what ends this process is passed on to it, and waited for."""
    told: list[int] = []
    running: list[subprocess.Popen[bytes]] = []

    def pass_on(number: int, _frame: Any) -> None:
        told.append(number)
        for process in running:
            process.terminate()

    before = {number: signal.signal(number, pass_on) for number in ENDS}  # first, so that nothing is left running
    try:
        running.append(subprocess.Popen(command, env=variables))  # noqa: S603  (no shell, and what the person asked for)
        if told:
            running[0].terminate()
        code = running[0].wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if code and not told:
        raise BackendFailed(f"The Triton server ended by itself, with code {code}. Its lines above say why.")
