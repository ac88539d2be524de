"""docs/adding.md, carried out word for word in a copy of the project: an engine, then a build step."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from helpers import ROOT

from qa_backends.catalog import BACKENDS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.programs]

DOCUMENT = (ROOT / "docs" / "adding.md").read_text(encoding="utf-8")
FILE = re.compile(r"^`(qa_backends/[\w/]+\.py)`[^\n]*:\n\n```python\n(.*?)```", re.M | re.S)
ROW = re.compile(r"```text\n(    Backend\([^\n]*\n)```")
COPIED = ("qa_backends", "tests", "docs", "app.py", "pyproject.toml", "README.md")
LAST_ROW = '    Backend(PRUNED, "onnx-fused-fp16", "onnxruntime"),\n'


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project with both examples of the document in it, and nothing else changed."""
    place = tmp_path_factory.mktemp("project")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, place / name)
    (place / "assets").symlink_to(ROOT / "assets")
    if (ROOT / ".mypy_cache").is_dir():  # what is not changed is not looked at again
        shutil.copytree(ROOT / ".mypy_cache", place / ".mypy_cache")
    files, rows = FILE.findall(DOCUMENT), ROW.findall(DOCUMENT)
    assert len(files) == len(rows) == 2
    for path, content in files:
        (place / path).write_text(content, encoding="utf-8")
    table = place / "qa_backends" / "catalog" / "backends.py"
    before = table.read_text(encoding="utf-8")
    assert LAST_ROW in before
    table.write_text(before.replace(LAST_ROW, LAST_ROW + "".join(rows)), encoding="utf-8")
    return place


def run(project: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=project, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-3_000:]
    return done.stdout


def test_both_are_listed_with_titles_that_derive_from_their_rows(project: Path) -> None:
    listed = {each["backend"]: each for each in json.loads(run(project, "-m", "qa_backends", "list", "--json"))}
    assert listed["minilm/pruned-numpy"]["title"] == "Pruned, ONNX, NumPy"
    assert listed["minilm/pruned-numpy"]["devices"] == ["cpu"] and listed["minilm/pruned-numpy"]["available"]
    assert listed["minilm/pruned-ort-basic"]["title"] == "Pruned, simplified"
    assert "exported, graph simplified, in ONNX Runtime" in listed["minilm/pruned-ort-basic"]["summary"]


def test_both_are_benchmarked_as_steps_after_the_one_they_build_on(project: Path) -> None:
    names = "baseline,pruned,pruned-ort,pruned-numpy,pruned-ort-basic"
    options = ("--backends", names, "--lengths", "32", "--batches", "1", "--runs", "5", "--json")
    found = json.loads(run(project, "-m", "qa_backends", "bench", *options))
    before = {each["backend"]: (each["against_previous"] or {}).get("backend") for each in found["rows"]}
    assert found["left_out"] == []
    assert before["minilm/pruned-numpy"] == "minilm/pruned"
    assert before["minilm/pruned-ort-basic"] == "minilm/pruned-ort"


def test_both_are_offered_in_the_page_with_colours_of_their_own(project: Path) -> None:
    script = (
        "import json; from qa_backends.web.shared.choices import backend_choices;"
        "from qa_backends.web.shared.palette import colour;"
        "print(json.dumps({name: [label, colour(name)] for label, name in backend_choices('minilm')}))"
    )
    offered = json.loads(run(project, "-c", script))
    title, explained, _ = offered["pruned-numpy"][0].splitlines()
    assert title == "Pruned, ONNX, NumPy" and explained.startswith("Untested. ")
    assert offered["pruned-ort-basic"][0].splitlines()[0] == "Pruned, simplified"
    assert all(name in label.splitlines()[-1] for name, (label, _) in offered.items())
    colours = [shown for _, shown in offered.values()]
    assert len(set(colours)) == len(colours) == len(BACKENDS) + 2


def test_the_projects_own_checks_pass_with_both(project: Path) -> None:
    run(project, "-m", "ruff", "check", "qa_backends/engines", "qa_backends/artefacts/steps")
    run(project, "-m", "mypy", "qa_backends/engines", "qa_backends/artefacts/steps")
    of_the_table = ("backends", "ladder", "lookup")
    run(
        project, "-m", "pytest", *(f"tests/catalog/test_{each}.py" for each in of_the_table), "tests/test_layers.py",
        "tests/web/test_shared.py", "-x",
    )  # fmt: skip


def test_both_pass_the_contract_test(project: Path) -> None:
    run(project, "-m", "pytest", "tests/test_contract.py", "-k", "numpy or basic", "-p", "no:cacheprovider")
