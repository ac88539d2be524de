"""The OpenAPI description against the server: whatever it allows or forbids is answered as it says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from serving.moody import MOODY, moody
from serving.test_rest import SMALL, serving

from qa_backends.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable

    from qa_backends.catalog import Family

pytestmark = pytest.mark.slow
EXAMPLES = 100


def test_schemathesis_finds_nothing(
    add_engine: Callable[[str, str], None], small_family: Family, tmp_path: Path
) -> None:
    moody(add_engine)
    tool = Path(sys.executable).parent / "schemathesis"
    with serving(Runtime(), small_family, [MOODY]) as client:
        described = client.get("/openapi.json").json()
        # Of names made up at random none is served; with these two, bodies reach the models as well.
        described["components"]["schemas"]["AnswerRequest"]["properties"]["backend"]["enum"] = [SMALL, "nobody"]
        narrowed = tmp_path / "openapi.json"
        narrowed.write_text(json.dumps(described))
        done = subprocess.run(
            [tool, "run", narrowed, "--url", str(client.base_url), "--max-examples", str(EXAMPLES), "--seed", "1"],
            capture_output=True,
            text=True,
            cwd=tmp_path,  # where it keeps what crashed
        )
    assert done.returncode == 0 and "No issues found" in done.stdout, done.stdout + done.stderr
