"""Getting ready: in turns of its own, cancelled without a trace, once; loaded within each device's memory budget."""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest
from helpers import BASELINE as WEIGHTS
from helpers import QUESTION, TEXT

from qa_backends import catalog
from qa_backends.artefacts import build
from qa_backends.catalog import Backend, Family
from qa_backends.checkpoints.sources import Source
from qa_backends.contract import Query, SpanLogits, Windows
from qa_backends.engines.openvino import OpenVino
from qa_backends.errors import (
    AnswersError,
    ArtefactError,
    BackendFailed,
    BackendUnavailable,
    InputError,
    UnknownBackend,
)
from qa_backends.progress import UNWATCHED, Cancelled, Progress
from qa_backends.runtime import Runtime
from qa_backends.runtime.turns import on_engine_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    AddFile = Callable[[str, str], None]

MINILM = catalog.family("minilm")
PLAIN, PRUNED = catalog.backend("baseline"), catalog.backend("pruned")
BUILT = catalog.backend("pruned-ort-fp16")


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, in which nothing is built."""
    monkeypatch.setenv("QA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def folders(cache: Path) -> list[str]:
    """What was built, without the keys; half-built folders begin with a dot."""
    return sorted(each.name.rpartition("-")[0] for each in cache.iterdir() if each.is_dir())


def watching(word: str, said: list[str]) -> Progress:
    """Asks to stop as soon as something with the word in it is said."""
    return Progress(said.append, stopped=lambda: any(word in each for each in said))


def test_stopping_while_a_backend_is_made_ready_is_no_failure_and_leaves_nothing_half_built(
    small_family: Family, empty: Path
) -> None:
    runtime, said = Runtime(), list[str]()
    with pytest.raises(Cancelled):
        runtime.make_ready(small_family, BUILT, "cpu", watching("fusing", said))
    assert folders(empty) == ["onnx"]
    assert runtime.ahead() == 0
    runtime.make_ready(small_family, BUILT, "cpu", Progress(said.append))
    assert [each.split()[0] for each in said] == ["exporting", "fusing", "fusing", "storing"]
    assert folders(empty) == ["onnx", "onnx-fused", "onnx-fused-fp16"]


def test_stopping_while_a_backend_is_loaded_is_no_failure_and_the_next_question_loads_it(small_family: Family) -> None:
    runtime, said = Runtime(), list[str]()
    with runtime.turn("cpu", watching("Reading", said)) as turn:
        prepared = turn.prepare(small_family, Query(QUESTION, TEXT))
        turn.progress.say("Reading the text …")
        with pytest.raises(Cancelled):
            turn.answer(small_family, PLAIN, prepared)
    assert runtime.loaded("cpu") == []
    with runtime.turn("cpu") as turn:
        assert turn.answer(small_family, PLAIN, prepared).backend == "small/baseline"


def test_each_build_step_takes_a_turn_of_its_own(small_family: Family, empty: Path) -> None:
    runtime = Runtime()
    order: list[str] = []
    visitors: list[threading.Thread] = []

    def visit() -> None:
        with runtime.turn("cpu"):
            order.append("a visitor")

    def tell(sentence: str) -> None:
        """While a step is being made, somebody comes and waits."""
        if sentence.startswith("Waiting"):
            return
        order.append(sentence.split()[0])
        visitors.append(threading.Thread(target=visit))
        visitors[-1].start()
        until = time.monotonic() + 10
        while runtime.ahead() < 2 and time.monotonic() < until:
            time.sleep(0.001)

    runtime.make_ready(small_family, BUILT, "cpu", Progress(tell))
    for visitor in visitors:
        visitor.join()
    assert order == ["exporting", "a visitor", "fusing", "a visitor", "storing", "a visitor"]


def test_what_was_built_is_loaded_again_and_again_but_hashed_once(
    small_family: Family, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: Counter[str] = Counter()
    digest: Callable[..., Any] = hashlib.file_digest

    def counting(file: IO[bytes], *rest: Any) -> Any:
        hashed[str(Path(file.name).resolve())] += 1
        return digest(file, *rest)

    Runtime().make_ready(small_family, BUILT, "cpu", UNWATCHED)
    monkeypatch.setattr(hashlib, "file_digest", counting)
    for _ in range(2):
        runtime = Runtime()
        artefact = runtime.make_ready(small_family, BUILT, "cpu", UNWATCHED)
        with runtime.turn("cpu") as turn:
            turn.answer(small_family, BUILT, turn.prepare(small_family, Query(QUESTION, TEXT)))
    assert set(hashed.values()) <= {1}
    assert not [path for path in hashed if "onnx" in path and str(artefact) not in path], "its parents are not read"


def test_what_is_built_is_ready_while_the_engines_work_for_somebody_else(small_family: Family, empty: Path) -> None:
    folder = Runtime().make_ready(small_family, BUILT, "cpu", UNWATCHED)
    os.utime(folder, (0, 0))
    over = threading.Event()
    busy = threading.Thread(target=on_engine_thread, args=(over.wait,))
    busy.start()
    found: list[Path] = []
    asking = threading.Thread(
        target=lambda: found.append(Runtime().make_ready(small_family, BUILT, "cpu", UNWATCHED)), daemon=True
    )
    asking.start()
    asking.join(10)
    over.set()
    busy.join()
    assert found == [folder]
    assert folder.stat().st_mtime > time.time() - 600, "it counts as used, and what was not for longest goes first"


ENGINE = """
    import threading

    from qa_backends.engines.fake import Fake


    class Minding(Fake):
        threads = {}
        short = "minding"

        def load(self, artefact, device):
            super().load(artefact, device)
            self.threads["load"] = threading.get_ident()

        def close(self):
            super().close()
            self.threads["close"] = threading.get_ident()
"""


def test_an_engine_that_fails_at_closing_too_is_gone_all_the_same(
    small_family: Family, add_engine: AddFile, caplog: pytest.LogCaptureFixture
) -> None:
    """Of a GPU that failed every call fails, and the error that is told is the first."""
    add_engine("minding", ENGINE.replace("super().close()", 'raise RuntimeError("CUDA error")'))
    runtime, backend = Runtime(), Backend("baseline", "checkpoint", "minding")
    with runtime.turn("cpu"):
        runtime.get(small_family, backend, "cpu")
    runtime.drop(small_family, backend.name, "cpu")
    assert runtime.loaded("cpu") == [] and "CUDA error" in caplog.text


def test_an_engine_is_closed_on_the_thread_that_loaded_it(small_family: Family, add_engine: AddFile) -> None:
    add_engine("minding", ENGINE)
    backend = Backend("baseline", "checkpoint", "minding")
    threads = backend.engine_class.threads  # type: ignore[attr-defined]  # the class stands in the text above
    dropped = Runtime()
    with dropped.turn("cpu"):
        dropped.get(small_family, backend, "cpu")
    dropped.drop(small_family, backend.name, "cpu")
    assert threads["load"] == threads["close"] != threading.get_ident()
    threads.clear()
    evicted = Runtime(budget_bytes=1)
    with evicted.turn("cpu"):
        evicted.get(small_family, backend, "cpu")
        evicted.get(small_family, PLAIN, "cpu")
    assert evicted.loaded("cpu") == ["small/baseline"]
    assert threads["load"] == threads["close"] != threading.get_ident()


def test_the_least_recently_used_backend_is_unloaded_when_the_budget_is_passed() -> None:
    said: list[str] = []
    small = Runtime(budget_bytes=120_000_000, progress=Progress(said.append))
    with small.turn("cpu"):
        small.get(MINILM, PLAIN, "cpu")
        small.get(MINILM, PRUNED, "cpu")
    assert small.loaded("cpu") == ["minilm/pruned"]
    assert "unloading minilm/baseline to stay within the memory budget …" in said
    large = Runtime(budget_bytes=1_000_000_000)
    with large.turn("cpu"):
        for backend in (PLAIN, PRUNED, PLAIN):
            large.get(MINILM, backend, "cpu")
    assert large.loaded("cpu") == ["minilm/pruned", "minilm/baseline"]


def test_of_the_tokenizers_the_one_that_was_not_used_longest_is_let_go(
    small_family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qa_backends.runtime.loading.READERS", 2)
    runtime = Runtime()
    one, two, three = (replace(small_family, name=name) for name in ("one", "two", "three"))
    first, second = runtime.reader(one), runtime.reader(two)
    assert runtime.reader(one) is first
    runtime.reader(three)
    assert runtime.reader(one) is first, "it came first, and is in use"
    assert runtime.reader(two) is not second


def test_what_fits_at_once_is_known_before_it_is_loaded() -> None:
    runtime = Runtime(budget_bytes=160_000_000)
    sizes = [runtime.size_of(MINILM, each, "cpu") for each in (PLAIN, PRUNED)]
    assert sizes[0] == pytest.approx((WEIGHTS / "model.safetensors").stat().st_size * 2, rel=0.01), "stored as FP16"
    assert sizes[1] < sizes[0]
    assert runtime.fitting(sizes, "cpu") == [True, True]
    assert runtime.fitting([*sizes, sizes[0], 1_000], "cpu") == [True, True, False, True]
    assert Runtime(budget_bytes=1).fitting(sizes, "cpu") == [True, False], "one is loaded alone, however large"
    with runtime.turn("cpu"):
        for backend in (PLAIN, PRUNED):
            runtime.get(MINILM, backend, "cpu")
    assert runtime.loaded("cpu") == ["minilm/baseline", "minilm/pruned"]


def test_a_family_without_the_checkpoint_gets_a_sentence(small_family: Family) -> None:
    solo = Family("solo", "Alone", small_family.checkpoints[:1])
    runtime = Runtime()
    said = "family 'solo' has no checkpoint 'pruned', but these: baseline"
    with runtime.turn("cpu"), pytest.raises(UnknownBackend, match=said):
        runtime.get(solo, PRUNED, "cpu")
    with pytest.raises(UnknownBackend, match=said):
        runtime.make_ready(solo, BUILT, "cpu", UNWATCHED)


def test_a_missing_package_is_said_before_anything_is_made_ready(
    small_family: Family, add_engine: AddFile, empty: Path
) -> None:
    add_engine("lacking", ENGINE.replace("threads = {}", 'packages = ("a_package_nobody_has",)'))
    backend = Backend("baseline", "checkpoint", "lacking")
    runtime = Runtime()
    with pytest.raises(BackendUnavailable, match="a_package_nobody_has"):
        runtime.make_ready(small_family, backend, "cpu", UNWATCHED)
    with runtime.turn("cpu"), pytest.raises(BackendUnavailable, match="a_package_nobody_has"):
        runtime.get(small_family, backend, "cpu")


def test_a_cache_that_cannot_be_written_is_a_sentence(small_family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QA_CACHE", "/proc/nowhere")
    with pytest.raises(BackendFailed, match="small/pruned-ort failed while getting ready") as caught:
        Runtime().make_ready(small_family, catalog.backend("pruned-ort"), "cpu", UNWATCHED)
    assert isinstance(caught.value.__cause__, OSError)


def test_a_step_that_broke_the_answers_is_refused_at_once_when_asked_again(
    small_family: Family, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime, backend, said = Runtime(), catalog.backend("pruned-ort-int8-dynamic"), list[str]()
    for _ in range(2):  # few answers of random weights stay what they were when those are rounded
        with pytest.raises(AnswersError, match=r"changed .* of 294 answers"):
            runtime.make_ready(small_family, backend, "cpu", Progress(said.append))
    doing = [each.split()[0] for each in said]
    assert list(dict.fromkeys(doing)) == ["exporting", "rounding", "calibrating", "comparing"]
    assert doing.count("exporting") == doing.count("rounding") == doing.count("comparing") == 1, "nothing is made twice"
    monkeypatch.setattr(build, "compare_answers", lambda *_: 1.0)
    assert Runtime().make_ready(small_family, backend, "cpu", UNWATCHED), "another process tries it again"


ROUNDED = """
    import shutil
    from dataclasses import replace

    from qa_backends.artefacts.steps.onnx_int8 import STEP as INT8


    def make(making):
        shutil.copyfile(making.parent / "model.onnx", making.folder / "model.onnx")


    STEP = replace(
        INT8, name="onnx-rounded", short="rounded", precision="FP32", format="onnx", make=make,
        settings={{"of": "{name}"}},
    )
"""
"""As gentle as a step can be, but one whose answers are compared."""


def test_what_is_rounded_is_asked_once_by_each_engine_before_that_runs_it(
    small_family: Family, add_step: AddFile, tmp_path: Path
) -> None:
    add_step("onnx-rounded", ROUNDED.format(name=tmp_path))
    runtime, said = Runtime(), list[str]()
    for engine in ("onnxruntime", "openvino", "openvino"):
        runtime.make_ready(small_family, Backend("pruned", "onnx-rounded", engine), "cpu", Progress(said.append))
    Runtime().load(small_family, Backend("pruned", "onnx-rounded", "openvino"), "cpu", Progress(said.append))
    assert [each for each in said if "the answers" in each] == [
        "comparing the answers of 'onnx-rounded' with those before …",
        "comparing the answers of 'onnx-rounded' in OpenVINO with those before …",
    ]


def test_an_engine_that_breaks_what_was_rounded_is_refused_it_by_name_and_others_run_it(
    small_family: Family, add_step: AddFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_step("onnx-rounded", ROUNDED.format(name=tmp_path))
    forward = OpenVino.forward

    def turned(engine: OpenVino, windows: Windows) -> SpanLogits:
        found = forward(engine, windows)
        return SpanLogits(-found.start, -found.end)

    monkeypatch.setattr(OpenVino, "forward", turned)
    runtime, said = Runtime(), list[str]()
    for _ in range(2):
        with pytest.raises(AnswersError, match=r"'onnx-rounded' in OpenVINO changed .* of 294 answers.*not used there"):
            broken = Backend("pruned", "onnx-rounded", "openvino")
            runtime.make_ready(small_family, broken, "cpu", Progress(said.append))
    assert len([each for each in said if "in OpenVINO" in each]) == 1, "refused at once when asked again"
    runtime.make_ready(small_family, Backend("pruned", "onnx-rounded", "onnxruntime"), "cpu", UNWATCHED)


def test_a_broken_checkpoint_is_a_sentence(tmp_path: Path, small_family: Family) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"half a fi")
    broken = Family("broken", "Broken", (*small_family.checkpoints[:1], ("pruned", Source(folder=tmp_path))))
    runtime = Runtime()
    with runtime.turn("cpu"), pytest.raises(ArtefactError, match=r"holds no manifest\.json.*train pack"):
        runtime.get(broken, PRUNED, "cpu")
    shutil.copy(WEIGHTS / "manifest.json", tmp_path)
    with runtime.turn("cpu"), pytest.raises(ArtefactError, match=r"cannot be read.*\."):
        runtime.get(broken, PRUNED, "cpu")


def test_the_memory_budget_of_each_device_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    from qa_backends.limits import memory_budget

    monkeypatch.setenv("QA_MEMORY_GB", "1.5")
    monkeypatch.setenv("QA_GPU_MEMORY_GB", "20")
    assert Runtime().budget_bytes("cpu") == memory_budget("cpu") == 1_500_000_000
    assert memory_budget("cuda") == 20_000_000_000
    for wrong in ("much", "-1", "0", "inf", "nan"):
        monkeypatch.setenv("QA_MEMORY_GB", wrong)
        with pytest.raises(InputError, match=f"QA_MEMORY_GB is '{wrong}'"):
            Runtime()


@pytest.mark.gpu
def test_a_gpus_budget_is_its_own_and_no_other_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    assert Runtime().budget_bytes("cuda") == torch.cuda.mem_get_info()[1] // 2
    runtime = Runtime(budget_bytes=120_000_000)
    for device in ("cpu", "cuda"):
        with runtime.turn(device):
            runtime.get(MINILM, PLAIN, device)
    assert runtime.loaded("cpu") == runtime.loaded("cuda") == ["minilm/baseline"]
