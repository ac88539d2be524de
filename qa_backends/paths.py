"""Where the project's own files are, where built ones go, and how a file is replaced whole."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

_HERE = Path(__file__).resolve().parent
ASSETS = next((each for each in (_HERE / "assets", _HERE.parent / "assets") if each.is_dir()), _HERE.parent / "assets")
"""Beside the package in the project, inside it where the project was installed."""
MODELS = ASSETS / "models"
EXAMPLES = ASSETS / "examples.json"
OWN_QUESTIONS = ASSETS / "questions.json"
EVERYDAY_QUESTIONS = ASSETS / "questions-2.json"
CALIBRATION = ASSETS / "calibration.json"
WRITTEN = ASSETS / "training" / "written.json"
"""Texts of many kinds and questions about them, to train on; written for the project, as those above, and apart."""
WRITTEN_HELD_OUT = WRITTEN.with_stem("written-held-out")
"""Of the same writing, kept apart to choose by: nothing is trained on them."""
SHAPES = ASSETS / "shapes.json"
STYLE = ASSETS / "style.css"
FRAME = ASSETS / "frame.css"
FAVICON = ASSETS / "favicon.svg"
PREVIEW = ASSETS / "preview.png"

AMD, INTEL, AVX2 = "-amd", "-intel", "-avx2"
"""Behind the name of a file of results that is of another kind of processor than the README's, which has AMX."""


def measured_on(kind: str, file: Path) -> Path:
    """What was measured as in the file, on processors of that kind."""
    return file.with_stem(file.stem + kind)


RESULTS = ASSETS / "results"
ACCURACY = RESULTS / "accuracy.json"
ACCURACY_AVX2 = measured_on(AVX2, ACCURACY)
BENCHMARK = RESULTS / "benchmark-cpu.json"
LADDER = RESULTS / "ladder-bert-large-cpu.json"
THROUGHPUT = RESULTS / "throughput-cpu.json"
OVERHEAD = RESULTS / "overhead-cpu.json"
LONG_TEXTS = RESULTS / "long-texts-cpu.json"
RECORDED = RESULTS / "recorded.json"
SERVING = RESULTS / "serving-cpu.json"
TECHNIQUES = RESULTS / "techniques.json"
DISTILLATION = RESULTS / "distillation.json"
WRITTEN_TEXTS = RESULTS / "written-texts.json"
SWAPPED = RESULTS / "swapped-questions.json"


def cache_root() -> Path:
    """``QA_CACHE`` where it is set, else the user's cache folder."""
    if told := os.environ.get("QA_CACHE"):
        return Path(told)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "qa_backends"


def write_whole(path: Path, text: str) -> None:
    """Replaces the file's contents at once: who reads it, or finds it after a crash, sees the old text or the new. A
    link stays one, and what is no file, as /dev/stdout, is written to."""
    if path.exists() and not path.is_file():  # as it is named: what a pipe's link leads to is no path
        path.write_text(text, encoding="utf-8")
        return
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode if path.exists() else 0o644  # mkstemp's files are their owner's alone
    handle, partial = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(partial).chmod(mode)
        Path(partial).replace(path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise
