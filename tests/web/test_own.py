"""Who may bring a model to the page, and what comes of a name in the field."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import gradio as gr
import pytest
from kinds import checkpoint_of

from qa_backends import catalog
from qa_backends.errors import InputError
from qa_backends.runtime import Runtime
from qa_backends.web.ask.allowed import Allowed
from qa_backends.web.ask.own import OwnModel
from qa_backends.web.page import build_page

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE_S = 60.0


@pytest.mark.parametrize(
    ("host", "environment", "hub", "folders"),
    [
        ("127.0.0.1", {}, True, True),
        ("localhost", {}, True, True),
        ("0.0.0.0", {}, False, False),
        ("0.0.0.0", {"QA_OWN_MODELS": "1"}, True, False),
        ("127.0.0.1", {"SPACE_ID": "somebody/space"}, False, False),
        ("0.0.0.0", {"SPACE_ID": "somebody/space", "QA_OWN_MODELS": "1"}, True, False),
        ("127.0.0.1", {"GRADIO_SHARE": "1"}, False, False),
        ("0.0.0.0", {"QA_OWN_MODELS": "0"}, False, False),
        ("127.0.0.1", {"QA_OWN_MODELS": "0"}, False, False),
    ],
)
def test_a_public_page_takes_no_models_unless_its_owner_says_so_and_folders_never(
    host: str, environment: dict[str, str], hub: bool, folders: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SPACE_ID", "QA_OWN_MODELS", "GRADIO_SHARE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert Allowed.where(host) == Allowed(hub, folders)


def test_where_models_are_not_taken_the_page_has_nothing_that_loads_one() -> None:
    def functions(host: str) -> list[str]:
        page = build_page(Runtime(), host)
        return [getattr(each.fn, "__qualname__", "") for each in page.fns.values()]

    assert "OwnModel.load" in functions("127.0.0.1")
    assert "OwnModel.load" not in functions("0.0.0.0")


def field(allowed: Allowed) -> OwnModel:
    with gr.Blocks() as page:
        families = [gr.Radio([], label=str(number)) for number in range(3)]
        made = OwnModel(allowed)
        made.wire(page, families, gr.CheckboxGroup([]), gr.Radio(["cpu"], value="cpu"))
    return made


def loaded(made: OwnModel, wanted: str, **headers: str) -> list[tuple[Any, ...]]:
    request: Any = SimpleNamespace(session_hash="someone", headers=headers, client=SimpleNamespace(host="127.0.0.1"))
    return list(made.load(wanted, "cpu", request))


@pytest.mark.usefixtures("own_forgotten")
def test_a_folder_is_chosen_in_every_tab_with_its_usual_backends_ticked(tmp_path: Path) -> None:
    folder = checkpoint_of("roberta", tmp_path / "<b>mine", seed=77)
    *_, (status, stop, first, *others, backends) = loaded(field(Allowed(hub=True, folders=True)), str(folder))
    assert "&lt;b&gt;mine" in status and "<b>" not in status
    assert stop.visible is False
    family = catalog.family(first.value)
    assert family.own
    assert all(family.name in [name for _, name in each.choices] for each in (first, *others))
    assert backends.value == ["baseline", "baseline-ort-fp16"]


@pytest.mark.parametrize(
    ("allowed", "headers", "said"),
    [
        (Allowed(hub=True, folders=False), {}, "is no model of the Hugging Face Hub"),
        (Allowed(hub=True, folders=True), {"x-forwarded-for": "10.0.0.1"}, "by the page&#x27;s owner alone"),
        (Allowed(hub=True, folders=True), {"origin": "https://somewhere.example"}, "by the page&#x27;s owner alone"),
    ],
    ids=["public", "behind a proxy", "behind a silent proxy"],
)
def test_who_does_not_sit_at_the_machine_cannot_name_its_folders(
    allowed: Allowed, headers: dict[str, str], said: str, tmp_path: Path
) -> None:
    folder = checkpoint_of("roberta", tmp_path / "mine")
    *_, last = loaded(field(allowed), str(folder), **headers)
    assert said in last[0] and "qa-problem" in last[0]
    assert not [each for each in catalog.families() if each.own]


def test_a_refused_one_says_why_and_changes_nothing(tmp_path: Path) -> None:
    *_, (status, stop, *unchanged) = loaded(field(Allowed(hub=True, folders=True)), str(tmp_path))
    assert "config.json cannot be read" in status
    assert stop.visible is False
    assert all(each == gr.skip() for each in unchanged)


def test_behind_a_proxy_the_owners_switch_holds_as_on_a_space(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("QA_OWN_MODELS", "1")
    forwarded = {"x-forwarded-for": "10.0.0.1"}
    *_, last = loaded(field(Allowed(hub=True, folders=True)), str(tmp_path), **forwarded)
    assert "is no model of the Hugging Face Hub" in last[0]


def test_who_comes_second_is_told_of_the_one_ahead_and_can_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    fetching, go_on = threading.Event(), threading.Event()

    def adopt(*_: object, **__: object) -> None:
        fetching.set()
        go_on.wait(PATIENCE_S)
        raise InputError("it was no model after all")

    monkeypatch.setattr(catalog, "adopt", adopt)
    made = field(Allowed(hub=True, folders=True))
    ahead = threading.Thread(target=loaded, args=(made, "somebody/model"), daemon=True)
    ahead.start()
    assert fetching.wait(PATIENCE_S)
    second: Any = SimpleNamespace(session_hash="another", headers={}, client=SimpleNamespace(host="127.0.0.1"))
    steps = made.load("another/model", "cpu", second)
    next(steps)
    assert "Waiting: 1 model ahead of yours" in next(steps)[0]
    made.stop(second)
    *_, last = steps
    assert "Stopped" in last[0] and last[1].visible is False
    go_on.set()
    ahead.join(PATIENCE_S)


def test_who_named_no_model_is_told_to_name_one() -> None:
    last = loaded(field(Allowed(hub=True, folders=True)), " ")[-1]
    assert "No model is named." in last[0]
