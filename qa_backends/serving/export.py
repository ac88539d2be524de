"""Take a backend away: a folder that answers without this project."""

from __future__ import annotations

import importlib.util
import json
import shutil
import tempfile
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qa_backends.artefacts.texts import queries_of
from qa_backends.catalog import BASELINE
from qa_backends.checkpoints import sources
from qa_backends.checkpoints.manifest import file_hash, read_manifest, versions_of
from qa_backends.contract import Query
from qa_backends.engines._cpu_graph import for_cpu, suits
from qa_backends.engines._onnx import FILE
from qa_backends.engines.onnxruntime import CPU, CUDA
from qa_backends.engines.openvino import HINTS
from qa_backends.errors import ArtefactError, InputError
from qa_backends.paths import OWN_QUESTIONS
from qa_backends.serving import runner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qa_backends.catalog import Backend, Family
    from qa_backends.progress import Progress
    from qa_backends.runtime import Runtime

RUNNER = "answer.py"
OTHERS = ("numpy", "tokenizers")
"""What it needs besides."""
FITTED = {
    8: """
The weights have 8 bits. To add such numbers up, an x86 processor needs the instructions AVX-512 VNNI, AVX-VNNI or
AMX-INT8 (`avx512_vnni`, `avx_vnni` or `amx_int8` in Linux's `/proc/cpuinfo`). Without them sums may overflow, and
answers be wrong. For a processor without them, export on one without them: the weights then have 7 bits.
""",
    7: """
The weights keep to 7 bits, since the processor that this was exported on cannot add up more. Every processor can run
it; on one with the instructions AVX-512 VNNI, AVX-VNNI or AMX-INT8 an export of its own is closer to the model in FP32.
""",
}
"""By the bits of INT8 weights."""
CHECKED_EVERY = 6
"""One of so many of the shipped questions is asked of the backend before, and of the runner after."""
LONG = Query(
    "Who keeps the mill?", "The river is wide and the road is long. " * 120 + "Old Marta keeps the mill alone."
)
"""A text of several windows."""


def export(
    runtime: Runtime, family: Family, backend: Backend, device: str, folder: Path, progress: Progress
) -> dict[str, Any]:
    """Writes the model, the tokenizer, the settings, the runner and what it needs; returns the settings.

    The folder appears whole, after its runner gave the backend's answers to the shipped questions.

    Raises:
        InputError, BackendUnavailable, BackendFailed: see ``taken``.
        ArtefactError: the runner answers otherwise, or see ``taken``.
    """
    with taken(runtime, family, backend, device, folder, progress) as (artefact, making):
        settings = write_model(artefact, making, family, backend, device)
        checkpoint = sources.make_ready(family.source(BASELINE), progress)
        shutil.copyfile(checkpoint / "tokenizer.json", making / "tokenizer.json")
        (making / "requirements.txt").write_text("\n".join(settings["needs"]) + "\n", encoding="utf-8")
        (making / "README.md").write_text(_readme(settings), encoding="utf-8")
        _check(runtime, family, backend, device, making, progress)
        shutil.rmtree(making / "__pycache__", ignore_errors=True)  # of the runner that was tried
    return settings


@contextmanager
def taken(
    runtime: Runtime, family: Family, backend: Backend, device: str, folder: Path, progress: Progress
) -> Iterator[tuple[Path, Path]]:
    """The backend's artefact, and an empty folder that is ``folder`` in the end, or nothing where writing it fails.

    Raises:
        InputError: the folder is there already, the backend's engine needs more than one package, or the family's
            weights are random.
        ArtefactError, BackendUnavailable, BackendFailed: see ``Runtime.make_ready``.
    """
    family.check_answers()
    if not backend.portable:
        raise InputError(
            f"{backend.title} cannot be taken away: a folder answers on ONNX Runtime or OpenVINO, as a CPU has them. "
            "Choose a backend that does, such as pruned-ort-fp16."
        )
    if folder.exists():
        raise InputError(f"{folder} is there already. Name a folder that is not.")
    artefact = runtime.make_ready(family, backend, device, progress)
    folder.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        progress.say("writing the model …")
        yield artefact, making
        making.chmod(0o755)
        making.replace(folder)
    except BaseException:
        shutil.rmtree(making, ignore_errors=True)
        raise


def write_model(artefact: Path, folder: Path, family: Family, backend: Backend, device: str) -> dict[str, Any]:
    """What runs in any case: the model, the runner and its settings, which are returned."""
    _write_graph(artefact, folder / FILE, refitting=device == "cpu" and backend.engine == "onnxruntime")
    shutil.copyfile(runner.__file__, folder / RUNNER)
    settings = _settings(family, backend, device, folder) | _bits(artefact, device)
    (folder / "settings.json").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
    return settings


def _write_graph(artefact: Path, file: Path, *, refitting: bool) -> None:
    """A fused graph for a CPU as the app runs it there."""
    if not refitting or suits(read_manifest(artefact)):
        shutil.copyfile(artefact / FILE, file)
        return
    import onnx

    onnx.save(for_cpu(onnx.load(artefact / FILE)), file)


def _settings(family: Family, backend: Backend, device: str, folder: Path) -> dict[str, Any]:
    reads = family.reads(backend.checkpoint)
    assert backend.engine_class.portable
    package = backend.engine_class.portable[device == "cuda"]
    return {
        "backend": f"{family.name}/{backend.name}",
        "title": backend.title,
        "engine": backend.engine,
        "device": device,
        "providers": [CUDA, CPU] if device == "cuda" else [CPU],
        "precision_hint": HINTS[dict(backend.options).get("precision", "")],
        "max_seq_len": reads.max_seq_len,
        "stride": reads.stride,
        "max_question_tokens": reads.max_question_tokens,
        "max_answer_tokens": reads.max_answer_tokens,
        "null_threshold": reads.null_threshold,
        "temperature": reads.temperature,
        "model_sha256": file_hash(folder / FILE),
        "needs": [f"{package}=={_version(backend.engine, package)}", *(f"{each}=={version(each)}" for each in OTHERS)],
    }


def _bits(artefact: Path, device: str) -> dict[str, int]:
    """Of INT8 weights for a CPU, which are fitted to the processor that they were rounded on."""
    seven: bool | None = read_manifest(artefact).settings.get("seven_bits")
    return {} if seven is None or device != "cpu" else {"weight_bits": 7 if seven else 8}


def fitted_to(settings: dict[str, Any]) -> str:
    """What such weights need of a processor, in words and with a line before them; nothing of others."""
    return FITTED.get(settings.get("weight_bits", 0), "")


def _version(engine: str, package: str) -> str:
    """Of the engine as it is installed here, as ``package`` or under whatever name."""
    found = versions_of((engine,))
    return found.get(package, next(iter(found.values())))


def _readme(settings: dict[str, Any]) -> str:
    return f"""# {settings["title"]}

Answers questions about a text, without the project that it came from (`{settings["backend"]}` there):

    pip install -r requirements.txt
    python {RUNNER} --question "Who watered the tree?" --context "Anna planted an apple tree. Ben watered it."

From a program, with this folder on its path:

    from pathlib import Path
    from answer import Answering

    print(Answering(Path("FOLDER")).answer("Who watered the tree?", "Anna planted an apple tree. Ben watered it."))

`settings.json` says how texts are cut and what runs the model. Offsets are characters, half-open; `null` in place of an
answer means that the text holds none.
{fitted_to(settings)}"""


def _check(runtime: Runtime, family: Family, backend: Backend, device: str, folder: Path, progress: Progress) -> None:
    """Raises ArtefactError where the folder's runner does not give the backend's answers."""
    carried = _load(folder)
    queries = [*queries_of(OWN_QUESTIONS)[::CHECKED_EVERY], LONG]
    progress.say(f"comparing {len(queries)} answers with those of {backend.title} …")
    with runtime.turn(device, progress) as turn:
        for query in queries:
            expected = turn.answer(family, backend, turn.prepare(family, query)).answer
            found = carried.answer(query.question, query.context)
            span = [expected.span.start, expected.span.end] if expected.span else None
            if found["span"] != span:
                raise ArtefactError(
                    f"The runner answers “{found['answer']}” where {backend.title} answers “{expected.text}”; nothing "
                    "was kept. Report the backend's name and the versions in requirements.txt."
                )


def _load(folder: Path) -> runner.Answering:
    """What stands in the folder, not what stands here."""
    spec = importlib.util.spec_from_file_location("carried_answer", folder / RUNNER)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: runner.Answering = module.Answering(folder)
    return found
