"""Nobody else is told that somebody uses this: OpenVINO's converter would tell its makers of every import."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

IMPORTED_BY = {
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


@pytest.mark.parametrize("by", IMPORTED_BY)
def test_openvino_tells_nobody_that_it_was_imported(tmp_path: Path, by: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(importing=IMPORTED_BY[by])],
        env={key: value for key, value in os.environ.items() if key != "CI"} | {"HOME": str(tmp_path)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert run.stdout.split() == ["True", "None"]
    assert not list(tmp_path.iterdir()), "it numbers its users in their home directories"
