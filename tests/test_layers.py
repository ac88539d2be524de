"""Imports point one way: a house of floors, each of which knows only those below it."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers import ROOT, heavy

PACKAGE = ROOT / "qa_backends"
FLOORS = (
    ("errors",),
    ("contract", "limits", "paths", "progress"),
    ("squad",),
    ("reader",),
    ("checkpoints",),
    ("artefacts", "engines"),
    ("catalog",),
    ("runtime",),
    ("measure", "training"),
    ("asking",),
    ("web",),
    ("serving",),
    ("commands",),
    ("cli",),
    ("__main__",),
)
"""From the ground up. A room imports itself and the floors below, never a neighbour on its own floor."""
ONLY_FOR = {"training": ("commands",), "gradio": ("web", "serving", "app")}
"""Who may import these, besides themselves."""
PACKED = ("qa_backends", "qa_backends.engines")
"""What is imported from these is a file of its own."""
HEAVY_AT_ONCE = ("training", "web", "app")
"""Who may import heavy packages when they are imported themselves; others do so within the functions that need them."""


@dataclass(frozen=True)
class Import:
    """``name`` as in "qa_backends.reader.tokens"; ``at_once`` unless it stands in a function or for type checkers."""

    file: Path
    line: int
    name: str
    at_once: bool

    @property
    def importer(self) -> str:
        """The room that the file is in."""
        inside = self.file.relative_to(PACKAGE) if self.file.is_relative_to(PACKAGE) else Path(self.file.name)
        return inside.parts[0].removesuffix(".py")

    @property
    def imported(self) -> str:
        """The room, or somebody else's package."""
        parts = self.name.split(".")
        return parts[1] if parts[0] == "qa_backends" and len(parts) > 1 else parts[0]

    @property
    def ours(self) -> bool:
        return self.name.startswith("qa_backends.")

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line} imports {self.name}"


def imports_of(file: Path) -> list[Import]:
    """All imports in the file, wherever they stand."""
    found: list[Import] = []

    def visit(node: ast.AST, *, at_once: bool) -> None:
        if isinstance(node, ast.Import):
            found.extend(Import(file, node.lineno, each.name, at_once) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: imports are written in full"
            found.extend(
                # "from qa_backends import catalog" imports a room, "from qa_backends.catalog import Backend" too; and
                # "from qa_backends.engines import pytorch" an engine.
                Import(
                    file,
                    node.lineno,
                    f"{node.module}.{each.name}" if node.module in PACKED else str(node.module),
                    at_once,
                )
                for each in node.names
            )
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for each in node.body:
                visit(each, at_once=False)
            for each in node.orelse:
                visit(each, at_once=at_once)
        else:
            inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            for child in ast.iter_child_nodes(node):
                visit(child, at_once=at_once and not inside)

    visit(ast.parse(file.read_text(encoding="utf-8")), at_once=True)
    return found


FILES = sorted([*PACKAGE.rglob("*.py"), ROOT / "app.py"])
IMPORTS = [each for file in FILES for each in imports_of(file)]
FLOOR_OF = {room: number for number, floor in enumerate(FLOORS) for room in floor}


def test_every_file_has_its_place_in_the_house() -> None:
    rooms = {each.relative_to(PACKAGE).parts[0].removesuffix(".py") for each in FILES if each.is_relative_to(PACKAGE)}
    assert rooms - {"__init__"} == set(FLOOR_OF)


def test_nothing_imports_from_a_floor_above_or_beside() -> None:
    wrong = [
        str(each)
        for each in IMPORTS
        if each.ours and each.importer in FLOOR_OF and each.imported != each.importer
        and FLOOR_OF.get(each.imported, len(FLOORS)) >= FLOOR_OF[each.importer]
    ]  # fmt: skip
    assert wrong == []


def test_engines_never_import_each_other() -> None:
    wrong = [
        str(each)
        for each in IMPORTS
        if each.importer == "engines" and re.match(r"qa_backends\.engines\.[^_]", each.name)
        and each.file.name != "__init__.py"
    ]  # fmt: skip
    assert wrong == []


@pytest.mark.parametrize("package", ONLY_FOR)
def test_only_those_who_may_import_it(package: str) -> None:
    wrong = [
        str(each) for each in IMPORTS if each.imported == package and each.importer not in (package, *ONLY_FOR[package])
    ]
    assert wrong == []


def test_heavy_packages_are_imported_where_they_are_needed_and_not_before() -> None:
    slow = heavy()
    wrong = [
        str(each) for each in IMPORTS if each.at_once and each.imported in slow and each.importer not in HEAVY_AT_ONCE
    ]
    assert wrong == []


def test_an_import_is_seen_wherever_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "many.py"
    file.write_text(
        "import torch.nn\n"
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    import onnx\n"
        "class Engine:\n    from qa_backends import web\n    def load(self):\n        import gradio as gr\n"
        "from qa_backends.engines import pytorch\n"
        "try:\n    import optimum\nexcept ImportError:\n    from qa_backends.web.page import build\n"
    )
    assert [(each.name, each.at_once) for each in imports_of(file) if each.name != "typing"] == [
        ("torch.nn", True),
        ("onnx", False),
        ("qa_backends.web", True),
        ("gradio", False),
        ("qa_backends.engines.pytorch", True),
        ("optimum", True),
        ("qa_backends.web.page", True),
    ]
