"""Take it away: the folder answers as the backend does, with three packages and nothing of this project."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
from helpers import BASELINE, QUESTION, ROOT, TEXT
from kinds import tokenizer_of

from qa_backends import catalog
from qa_backends.artefacts.quantise import EIGHT_BIT_SUMS
from qa_backends.checkpoints.manifest import read_manifest
from qa_backends.contract import Query, ReaderSettings
from qa_backends.engines._buckets import POSITIONS, padded
from qa_backends.engines._cpu_graph import AS_IT_STANDS
from qa_backends.engines.openvino import SHORTEST
from qa_backends.errors import ArtefactError, InputError
from qa_backends.progress import UNWATCHED
from qa_backends.reader.reader import Reader
from qa_backends.reader.tokens import SubwordTokenizer
from qa_backends.serving import runner
from qa_backends.serving.export import export, fitted_to, write_model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from qa_backends.catalog import Family
    from qa_backends.runtime import Runtime

    Run = Callable[[dict[str, Any]], list[Any]]

MINILM = catalog.family("minilm")


def carried(runtime: Runtime, family: Family, name: str, folder: Path) -> Path:
    export(runtime, family, catalog.backend(name), "cpu", folder, UNWATCHED)
    return folder


@pytest.mark.slow
@pytest.mark.programs
@pytest.mark.parametrize("name", ["pruned-ort-fp16", "pruned-ov"])
def test_the_folder_holds_what_it_needs_and_answers_as_the_backend(runtime: Runtime, tmp_path: Path, name: str) -> None:
    folder = carried(runtime, MINILM, name, tmp_path / "away")
    assert {each.name for each in folder.iterdir()} == {
        "README.md", "answer.py", "model.onnx", "requirements.txt", "settings.json", "tokenizer.json",
    }  # fmt: skip
    assert [each.name for each in tmp_path.iterdir()] == ["away"]
    needs = [each.partition("==")[0] for each in (folder / "requirements.txt").read_text().split()]
    assert needs == ["openvino" if name == "pruned-ov" else "onnxruntime", "numpy", "tokenizers"]
    away = runner.Answering(folder)
    backend = catalog.backend(name)
    for query in (
        Query(QUESTION, TEXT), Query("What does the bakery cost?", TEXT), Query("Who? " * 100, TEXT),
        Query(QUESTION, "It rained. " * 400 + TEXT + " It rained. " * 400),
        Query("Wo?", "Zoe\u0301 wohnt in Pre\u0301vert."),
    ):  # fmt: skip
        with runtime.turn("cpu") as turn:
            expected = turn.answer(MINILM, backend, turn.prepare(MINILM, query)).answer
        found = away.answer(query.question, query.context)
        assert (found["answer"] or "") == expected.text
        assert found["span"] == ([expected.span.start, expected.span.end] if expected.span else None)
        for part in ("confidence", "score", "null_score"):
            assert found[part] == pytest.approx(getattr(expected, part), abs=2e-3), part


@contextmanager
def running(folder: Path, tokenizer: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> Iterator[runner.Answering]:
    """The runner with a model that is a function, and windows of 64 tokens."""
    monkeypatch.setitem(runner.SESSIONS, "function", lambda _model, _settings: run)
    settings = {"engine": "function", "max_seq_len": 64, "stride": 8, "max_question_tokens": 12,
                "max_answer_tokens": 30, "null_threshold": 0.0, "temperature": 1.0}  # fmt: skip
    (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    (folder / "tokenizer.json").write_text(tokenizer, encoding="utf-8")
    yield runner.Answering(folder)


@pytest.mark.parametrize("kind", ["bert", "roberta", "xlm-roberta"])
def test_the_runner_cuts_questions_and_texts_as_the_reader_does(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []

    def run(feeds: dict[str, Any]) -> list[Any]:
        asked.append(feeds)
        return [np.zeros(feeds["input_ids"].shape, np.float32)] * 2

    with running(tmp_path, tokenizer_of(kind), run, monkeypatch) as away:
        reader = Reader(SubwordTokenizer(tmp_path), ReaderSettings(max_seq_len=64, stride=8, max_question_tokens=12))
        for question in (QUESTION, "a \N{GRINNING FACE} \N{GRINNING FACE} \N{GRINNING FACE} who?", "unbelievably " * 9):
            for text in (TEXT, f"Zoe\u0301 {TEXT} " * 9):
                asked.clear()
                away.answer(question, text)
                windows = reader.prepare(Query(question, text)).windows
                assert len(asked) == windows.n_windows
                for row, feeds in enumerate(asked):
                    length = int(windows.lengths[row])
                    assert feeds["input_ids"].tolist() == [windows.input_ids[row, :length].tolist()]
                    segments = windows.inputs(["token_type_ids"])["token_type_ids"][row, :length]
                    assert feeds["token_type_ids"].tolist() == [segments.tolist()]


def test_the_runner_takes_no_logits_that_are_no_numbers_for_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(feeds: dict[str, Any]) -> list[Any]:
        return [np.full(feeds["input_ids"].shape, np.nan, np.float32)] * 2

    with running(tmp_path, tokenizer_of("bert"), run, monkeypatch) as away, pytest.raises(RuntimeError, match="finite"):
        away.answer(QUESTION, TEXT)


def test_the_runner_leaves_a_graph_for_a_cpu_as_it_stands() -> None:
    written = Path(runner.__file__).read_text(encoding="utf-8")
    assert all(f'"{key}", "{value}"' in written for key, value in AS_IT_STANDS.items())


@pytest.mark.parametrize(
    ("tokens", "computed"), [(20, 64), (32, 64), (64, 64), (65, 96), (384, 384), (500, 512), (700, 700)]
)
def test_the_runner_gives_openvino_windows_of_few_lengths_as_the_engine_does(
    tokens: int, computed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    shapes: list[tuple[int, int]] = []

    class Compiled:
        inputs: ClassVar = [SimpleNamespace(get_any_name=lambda name=name: name) for name in ("input_ids", "mask")]

        def __call__(self, feeds: dict[str, Any]) -> dict[str, Any]:
            shapes.extend(each.shape for each in feeds.values())
            return dict.fromkeys(runner.OUTPUTS, feeds["input_ids"])

    core = SimpleNamespace(compile_model=lambda *_: Compiled())
    monkeypatch.setitem(sys.modules, "openvino", SimpleNamespace(Core=lambda: core))
    ids = np.ones((2, tokens), np.int64)
    start, _ = runner.openvino_session(Path("model.onnx"), {"precision_hint": "f32"})({"input_ids": ids, "mask": ids})
    assert set(shapes) == {(2, computed)} and np.array_equal(start, ids)
    assert padded({"input_ids": ids}, POSITIONS, SHORTEST)["input_ids"].shape == (2, computed), "as the engine"


def bits_of(seven: bool | None, folder: Path) -> dict[str, Any]:
    """The settings of an exported graph, rounded to seven bits, to eight, or not at all."""
    artefact = folder / "artefact"
    artefact.mkdir(parents=True)
    (artefact / "model.onnx").write_bytes(b"graph")
    rounded = {} if seven is None else {"seven_bits": seven}
    manifest = replace(read_manifest(BASELINE), settings=rounded)
    manifest.write(artefact)
    return write_model(artefact, folder, MINILM, catalog.backend("pruned-ov-int8"), "cpu")


def test_int8_says_how_many_bits_it_has_and_what_those_need(tmp_path: Path) -> None:
    eight, seven, plain = (bits_of(each, tmp_path / str(each)) for each in (False, True, None))
    assert json.loads((tmp_path / "False" / "settings.json").read_text()) == eight
    assert (eight["weight_bits"], seven["weight_bits"]) == (8, 7) and "weight_bits" not in plain
    assert "AVX-VNNI" in fitted_to(eight) and "overflow" in fitted_to(eight) and "7 bits" in fitted_to(seven)
    assert fitted_to(plain) == ""


@pytest.mark.parametrize(
    ("flags", "bits", "warned"),
    [
        ("sse2 avx2", 8, True),
        ("sse2 avx2", 7, False),
        ("sse2 avx2", None, False),
        ("sse2 avx_vnni", 8, False),
        ("", 8, False),
    ],
)
def test_the_runner_warns_where_sums_of_eight_bits_overflow(
    flags: str, bits: int | None, warned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\n")
    monkeypatch.setattr(runner, "CPUINFO", tmp_path / "cpuinfo")
    runner.warn_of_overflow({} if bits is None else {"weight_bits": bits})
    assert ("answers may be wrong" in capsys.readouterr().err) == warned
    assert runner.EIGHT_BIT_SUMS == EIGHT_BIT_SUMS, "as steps that round go by"


def test_what_needs_this_project_is_not_taken_away(runtime: Runtime, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="pruned-ort-fp16"):
        carried(runtime, MINILM, "pruned", tmp_path / "away")
    (tmp_path / "there").mkdir()
    with pytest.raises(InputError, match="is there already"):
        carried(runtime, MINILM, "pruned-ort", tmp_path / "there")


def test_a_folder_that_answers_otherwise_is_not_kept(
    runtime: Runtime, small_family: Family, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "runner.py"
    written = Path(runner.__file__).read_text(encoding="utf-8")
    source.write_text(written.replace("null - score <=", "1 <"), encoding="utf-8")
    assert source.read_text(encoding="utf-8") != written
    monkeypatch.setattr(runner, "__file__", str(source))
    with pytest.raises(ArtefactError, match="nothing was kept"):
        carried(runtime, MINILM, "pruned-ort", tmp_path / "away")
    assert [each.name for each in tmp_path.iterdir()] == ["runner.py"]


@pytest.mark.slow
@pytest.mark.programs
def test_the_folder_answers_in_an_environment_of_its_three_packages(tmp_path: Path) -> None:
    folder, made = tmp_path / "away", tmp_path / "environment"
    command = [sys.executable, "-m", "qa_backends", "export", "--backend", "pruned-ort-fp16", "--to", folder]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert told.splitlines()[0] == "pip install -r requirements.txt"
    assert told.splitlines()[1].startswith("python answer.py --question")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", made], check=True)
    python = made / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-compile"]
    subprocess.run([*install, "-r", folder / "requirements.txt"], check=True)
    asked = [python, folder / "answer.py", "--question", QUESTION, "--context", TEXT]
    done = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["answer"] == "Ben" and TEXT[slice(*found["span"])] == "Ben"
    absent = (
        "import importlib.util as u; print([n for n in ('torch', 'transformers', 'qa_backends') if u.find_spec(n)])"
    )
    left = subprocess.run([python, "-c", absent], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert left.stdout.strip() == "[]"
