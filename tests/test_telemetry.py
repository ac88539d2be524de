"""Nobody else is told that somebody uses this: OpenVINO's converter would tell its makers of every import."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from qa_backends import catalog
from qa_backends.catalog import BASELINE
from qa_backends.progress import UNWATCHED

if TYPE_CHECKING:
    from pathlib import Path

    from qa_backends.catalog import Family
    from qa_backends.runtime import Runtime

IMPORTED_BY = {
    "the runtime": "from qa_backends.engines import engine_class\n"
    "    from qa_backends.runtime.cost import load_measured\n"
    "    load_measured(engine_class('openvino')({}), nowhere, 'cpu')",
    "the engine": "from qa_backends.engines.openvino import OpenVino; OpenVino({}).load(nowhere, 'cpu')",
    "the exported program": "from qa_backends.serving.runner import openvino_session as to\n"
    "    to(nowhere, {'precision_hint': 'f32'})",
    "the reference": "from qa_backends.measure.benchmark.plain import PlainOpenVino\n"
    "    PlainOpenVino._open(None, nowhere, 'cpu')",
}
PROGRAM = """
import sys
from pathlib import Path

nowhere = Path("nowhere")
try:
    {importing}
except (OSError, RuntimeError):  # there is no such graph
    pass
print("openvino" in sys.modules, sys.modules.get("openvino_telemetry"))
"""
EXPORTING = """
import sys
from pathlib import Path

from qa_backends import catalog
from qa_backends.catalog import Family
from qa_backends.checkpoints.sources import Source
from qa_backends.progress import UNWATCHED
from qa_backends.runtime import Runtime
from qa_backends.serving.export import export

*checkpoints, to = map(Path, sys.argv[1:])
family = Family("small", "Small", tuple((each.name, Source(folder=each)) for each in checkpoints))
export(Runtime(), family, catalog.backend("pruned-ov"), "cpu", to, UNWATCHED)
print("openvino" in sys.modules)
"""


def at_home(home: Path, program: str, *arguments: Path) -> list[str]:
    """What the program prints, run in a home directory of its own and outside of what is known for automatic runs."""
    run = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        env={key: value for key, value in os.environ.items() if key != "CI"} | {"HOME": str(home)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return run.stdout.split()


@pytest.mark.parametrize("by", IMPORTED_BY)
def test_openvino_tells_nobody_that_it_was_imported(tmp_path: Path, by: str) -> None:
    assert at_home(tmp_path, PROGRAM.format(importing=IMPORTED_BY[by])) == ["True", "None"]
    assert not list(tmp_path.iterdir()), "it numbers its users in their home directories"


@pytest.mark.slow
@pytest.mark.programs
def test_a_backend_taken_away_tells_nobody_either(runtime: Runtime, small_family: Family, tmp_path: Path) -> None:
    backend = catalog.backend("pruned-ov")
    runtime.make_ready(small_family, backend, "cpu", UNWATCHED)
    home = tmp_path / "home"
    home.mkdir()
    checkpoints = [small_family.source(each).folder for each in (BASELINE, backend.checkpoint)]
    assert at_home(home, EXPORTING, *checkpoints, tmp_path / "away") == ["True"]
    assert not list(home.rglob("openvino*")), "it numbers its users in their home directories"
