"""Names resolve to a family and a backend; what cannot run is not offered, and says why when it is asked for."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from helpers import BASELINE, ROOT

from qa_backends import catalog
from qa_backends.catalog import Backend, Family
from qa_backends.checkpoints.files import WEIGHTS
from qa_backends.checkpoints.manifest import file_hash, intact, read_manifest
from qa_backends.errors import UnknownBackend

if TYPE_CHECKING:
    from collections.abc import Callable

    AddFile = Callable[[str, str], None]

MINILM = catalog.family("minilm")


def test_names_resolve_to_family_and_backend() -> None:
    assert [each.name for each in catalog.resolve("pruned")] == [catalog.default_family(), "pruned"]
    assert [each.name for each in catalog.resolve("bert-large/pruned")] == ["bert-large", "pruned"]
    assert [each.name for each in catalog.resolve("pruned", "bert-large")] == ["bert-large", "pruned"]
    for name, family in (("nothing", None), ("nobody/pruned", None), ("minilm/pruned", "bert-large")):
        with pytest.raises(UnknownBackend, match=r"Choose one of|Leave one"):
            catalog.resolve(name, family)


def test_the_family_can_be_set_for_a_whole_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QA_FAMILY", "bert-large")
    assert catalog.default_family() == "bert-large"
    assert catalog.resolve("pruned")[0].name == "bert-large"
    monkeypatch.setenv("QA_FAMILY", "nobody")
    with pytest.raises(UnknownBackend, match=r"no family 'nobody'\. Choose one of: minilm, bert-large"):
        catalog.default_family()


REGISTERED = """
import json
from qa_backends import catalog
from qa_backends.errors import UnknownBackend

minilm = catalog.family("minilm")
catalog.register(catalog.Family("solo", "Alone", (minilm.checkpoints[0], ("tiny", minilm.checkpoints[1][1]))))
said = {}
for name in ("solo/baseline", "solo/tiny-ort", "minilm/tiny", "solo/pruned"):
    try:
        said[name] = [each.title for each in catalog.resolve(name)]
    except UnknownBackend as error:
        said[name] = str(error)
print(json.dumps([[each.name for each in catalog.families()], said]))
"""


def test_a_family_that_came_at_run_time_is_resolved_with_its_own_checkpoints() -> None:
    done = subprocess.run([sys.executable, "-c", REGISTERED], cwd=ROOT, capture_output=True, text=True, check=True)
    families, said = json.loads(done.stdout)
    assert families == [*(each.name for each in catalog.families()), "solo"]
    assert said == {
        "solo/baseline": ["Alone", "Baseline"],
        "solo/tiny-ort": ["Alone", "Tiny, ONNX"],
        "minilm/tiny": "The family 'minilm' has no checkpoint 'tiny', but these: baseline, pruned, pruned-deep, "
        "distilled.",
        "solo/pruned": "The family 'solo' has no checkpoint 'pruned', but these: baseline, tiny.",
    }


def test_what_the_family_has_no_checkpoint_for_is_not_offered() -> None:
    assert catalog.offered(MINILM) == list(catalog.BACKENDS)
    solo = Family("solo", "Alone", MINILM.checkpoints[:1])
    offered = catalog.offered(solo)
    assert {each.checkpoint for each in offered} == {"baseline"}
    done = [(each.artefact, each.engine, each.options) for each in offered]
    rows = {(each.artefact, each.engine, each.options) for each in catalog.BACKENDS}
    assert set(done) == rows, "of its own checkpoint instead"
    assert len(set(done)) == len(done)
    assert catalog.usual(solo) == ("baseline", "baseline-ort-fp16")


def test_a_row_stands_for_the_familys_smaller_checkpoint_where_it_has_not_the_rows() -> None:
    roberta = catalog.family("roberta")
    assert {each.checkpoint for each in catalog.offered(roberta)} == {"baseline", "distilled"}
    assert catalog.usual(roberta) == ("baseline", "distilled-ort-fp16")
    assert catalog.resolve(None, "roberta")[1].name == "distilled-ort-fp16"
    assert catalog.in_family(roberta, "pruned-deep-ov-int8") == "distilled-ov-int8"
    steps = ["baseline", "distilled", "distilled-ort", "distilled-ort-fused", "distilled-ort-fp16"]
    ordered = [each.name for each in catalog.ladder(catalog.offered(roberta, "cpu"))]
    assert [name for name in ordered if name in steps] == steps


def test_a_checkpoint_with_rows_of_its_own_has_those_of_pruned_only_where_nothing_else_is_smaller() -> None:
    def offered(*checkpoints: str) -> set[str]:
        sources = tuple((name, MINILM.source("baseline")) for name in ("baseline", *checkpoints))
        return {each.name for each in catalog.offered(Family("mine", "Mine", sources), "cpu")}

    own = {"distilled", "distilled-ort-fp16", "distilled-ov-int8"}
    assert {name for name in offered("pruned", "distilled") if name.startswith("distilled")} == own
    assert own < offered("distilled") and {"distilled-ts", "distilled-ort-int8"} < offered("distilled")
    assert {"pruned-deep-ts", "distilled-ts"} < offered("pruned-deep", "distilled")


def test_what_does_not_know_a_kind_of_model_is_not_offered_for_it() -> None:
    distilbert, xlm = catalog.family("distilbert"), catalog.family("xlm-roberta")
    assert not [each.name for each in catalog.offered(distilbert) if "fused" in each.artefact]
    assert catalog.usual(distilbert) == ("baseline", "baseline-ort")
    for of, knows in ((catalog.family("roberta"), True), (xlm, False), (distilbert, False)):
        assert any(each.engine == "deepspeed" for each in catalog.offered(of, "cuda")) == knows


def test_families_say_what_they_know_what_they_weigh_and_what_others_measured_of_them() -> None:
    said = {each.name: each.summary for each in catalog.families()}
    assert said["minilm"] == "English"
    assert said["xlm-roberta"] == (
        "100 languages; 1.1 GB from the Hugging Face Hub on first use; published F1 77.2 on SQuAD v2 (baseline)"
    )
    assert "82.0 on SQuAD v2 (distilled)" in said["roberta"]
    assert "87.1 on SQuAD v1.1" in said["distilbert"]
    assert catalog.family("distilbert").settings.always_answers
    assert not catalog.family("roberta").settings.always_answers


GPU_ONLY = """
    from qa_backends.engines.fake import Fake


    class Graphics(Fake):
        title = "Graphics"
        short = "graphics"
        label = "Graphics"
        devices = ("cuda",)
"""


def test_what_the_device_cannot_run_says_so(add_engine: AddFile) -> None:
    add_engine("graphics", GPU_ONLY)
    graphics, fake = Backend("baseline", "checkpoint", "graphics"), catalog.backend("baseline-fake")
    refusals = [catalog.unavailable(graphics, "cpu"), catalog.unavailable(fake, "cuda")]
    assert [str(each) for each in refusals] == [
        "Baseline, Graphics cannot run on the CPU. Choose another device: it runs on GPU.",
        "Baseline, Fake cannot run on the GPU. Choose another device: it runs on CPU.",
    ]
    assert catalog.unavailable(graphics, "cuda") is None and catalog.unavailable(fake, "cpu") is None
    assert "cannot run on the abacus" in str(catalog.unavailable(fake, "abacus"))
    nowhere = Backend("baseline", "checkpoint", "fake", devices=("cuda",))
    assert "it runs on no device" in str(catalog.unavailable(nowhere, "cpu"))


def test_a_device_is_offered_what_it_can_run() -> None:
    for device in ("cpu", "cuda"):
        assert catalog.offered(MINILM, device) == [each for each in catalog.BACKENDS if device in each.runs_on]
    assert catalog.offered(MINILM, "cpu")[0].name == catalog.BASELINE
    assert catalog.offered(MINILM, "abacus") == []


LACKING_ENGINE = """
    from qa_backends.engines.fake import Fake


    class Lacking(Fake):
        title = "Lacking"
        short = "lacking"
        packages = ("json", "a_package_nobody_has")
        install = "pip install it"
"""
LACKING_STEP = """
    from dataclasses import replace

    from qa_backends.artefacts.steps.onnx import STEP as ONNX

    STEP = replace(ONNX, name="onnx-lacking", short="lacking", packages=("nobody_has_this",), install="install that")
"""


def test_a_missing_package_is_named_with_the_command_that_installs_it(add_engine: AddFile, add_step: AddFile) -> None:
    add_engine("lacking", LACKING_ENGINE)
    add_step("onnx-lacking", LACKING_STEP)
    assert [
        str(catalog.unavailable(each))
        for each in (Backend("baseline", "checkpoint", "lacking"), Backend("pruned", "onnx-lacking", "onnxruntime"))
    ] == [
        "Lacking needs the package 'a_package_nobody_has'. Install it: pip install it",
        "The step 'onnx-lacking' needs the package 'nobody_has_this'. Install it: install that",
    ]
    assert catalog.unavailable(catalog.backend("pruned-ort")) is None


def test_the_pruned_checkpoint_is_smaller_and_says_so() -> None:
    pruned = BASELINE.parent / "pruned"
    assert intact(BASELINE) and intact(pruned)
    before, after = read_manifest(BASELINE), read_manifest(pruned)
    assert after.encoder_parameters <= 0.5 * before.encoder_parameters
    assert after.bytes < before.bytes
    taught_by = next(run["teacher"] for run in after.runs() if "teacher" in run)  # what ships is a mean, of a mean
    assert taught_by == file_hash(BASELINE / WEIGHTS), "the baseline that ships taught it"


def test_what_needs_a_gpu_is_said_to_be_unavailable_where_there_is_none(
    add_engine: AddFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_engine("graphics", GPU_ONLY)
    monkeypatch.setattr("qa_backends.catalog.lookup.devices", lambda: ("cpu",))
    missing = catalog.unavailable(catalog.backend("baseline-graphics"))
    assert missing is not None and "needs a GPU" in missing.reason


def test_what_does_not_fit_together_is_refused_with_the_reason() -> None:
    missing = catalog.unavailable(Backend("pruned", "onnx", "pytorch"))
    assert missing is not None and "PyTorch cannot read what 'onnx' makes" in missing.reason
    with pytest.raises(UnknownBackend, match="PyTorch takes no 'precision=bf16'"):
        _ = Backend("pruned", "checkpoint", "pytorch", (("precision", "bf16"),)).title


def test_what_the_processor_or_the_system_lacks_is_named_without_importing_anything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("qa_backends.limits.cpu_flags", lambda: frozenset({"avx2"}))
    lacking = catalog.unavailable(catalog.backend("pruned-ov-bf16"), "cpu")
    assert lacking is not None and "no BF16 arithmetic" in lacking.reason and "without BF16" in lacking.remedy
    assert catalog.unavailable(catalog.backend("pruned-ov"), "cpu") is None
    monkeypatch.setattr("qa_backends.engines.torch_compile.shutil.which", lambda _name: None)
    lacking = catalog.unavailable(catalog.backend("pruned-compiled"), "cpu")
    assert lacking is not None and "C++ compiler" in lacking.reason and "apt-get install" in lacking.remedy
