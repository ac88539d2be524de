"""The question as a link, and as the lines that repeat it in Python and on the command line."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit, urlunsplit

from qa_backends import catalog
from qa_backends.limits import devices
from qa_backends.web.shared.choices import preselected

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import gradio as gr

LINK_UP_TO = 6_000
"""A longer address, in bytes, is made without the text, and without the question where that alone is too long: browsers
and proxies cut or refuse it."""
ARGUMENT_UP_TO = 100_000
"""Bytes of text that are given on a command line; Linux refuses single arguments above 128 KiB."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What a link says; empty where it says nothing."""

    question: str
    context: str
    family: str
    backends: list[str]
    device: str


def page_address(request: gr.Request | None) -> str:
    """Where the visitor's browser found the page, without what was asked; by default where ``app.py`` serves it."""
    referer = urlsplit(request.headers.get("referer", "") if request else "")
    if referer.scheme not in ("http", "https") or not referer.netloc:
        return "http://127.0.0.1:7860/"
    return urlunsplit((referer.scheme, referer.netloc, referer.path or "/", "", ""))


def link(question: str, context: str, family: str, backends: Sequence[str], device: str) -> str:
    """The query string, from "?" on."""
    chosen = {"family": family, "backends": ",".join(backends), "device": device}
    forms = ({"q": question, **chosen, "c": context}, {"q": question, **chosen}, chosen)
    queries = ["?" + urlencode(each) for each in forms]
    return next((each for each in queries if len(each) <= LINK_UP_TO), queries[-1])


def read_link(fields: Mapping[str, str]) -> Shared | None:
    """What the address asked for; ``None`` for the plain address. Unknown names are dropped, not believed."""
    if not any(fields.get(name) for name in ("q", "c", "family", "backends")):
        return None
    known = {each.name for each in catalog.families() if not each.random}
    family = wanted if (wanted := fields.get("family", "")) in known else catalog.default_family()
    there, device = devices(), fields.get("device", "")
    device = device if device in there else there[0]
    named = list(dict.fromkeys(fields.get("backends", "").split(",")))
    ticked = preselected(family, device, among=named) or preselected(family, device)
    return Shared(fields.get("q", ""), fields.get("c", ""), family, ticked, device)


def as_python(question: str, context: str, family: str, backends: Sequence[str], device: str, url: str) -> str:
    """Lines that ask the running app at ``url``, wherever they are run."""
    return (
        "# pip install gradio_client; asks the app you are looking at, as long as it runs.\n"
        "from gradio_client import Client\n\n"
        f"found = Client({url!r}).predict(\n"
        f"    question={question!r},\n"
        f"    context={context!r},\n"
        f"    backends={list(backends)!r},\n"
        f"    family={family!r},\n"
        f"    device={device!r},\n"
        '    api_name="/ask",\n'
        ")\n"
        'for card in found["cards"]:\n'
        '    print(card["backend"], card["answer"], card["latency_ms"], "ms", card["error"] or "")\n'
    )


def as_shell(question: str, context: str, family: str, backends: Sequence[str], device: str) -> str:
    """A loop over the backends; a text too long for an argument is read from a file."""
    here = "# In the project's folder, with its requirements installed.\n"
    short = len(context.encode("utf-8", "replace")) <= ARGUMENT_UP_TO
    text = f"--context {shlex.quote(context)}" if short else "--context-file text.txt"
    where = shlex.join([*catalog.chosen_by(family), "--device", device])
    return (
        f"{here}{'' if short else '# Save the text as text.txt first: it is too long for a command.' + chr(10)}"
        f"for backend in {' '.join(backends)}; do\n"
        f'  python -m qa_backends answer {where} --backend "$backend" --json \\\n'
        f"    --question {shlex.quote(question)} \\\n    {text}\n"
        "done\n"
    )


def as_deployed(family: str, backend: str, device: str) -> str:
    """Lines that put one backend to use: a folder of its own, an HTTP interface, a line in a program."""
    chosen = catalog.backend(backend)
    option, place = catalog.chosen_by(family)
    here = shlex.join([option, place, "--device", device])
    in_python = f"model={place!r}" if option == "--model" else f"family={place!r}"
    away = (
        "# A folder that answers without this project:\n"
        f"python -m qa_backends export --backend {backend} {here} --to {backend}\n"
        if chosen.portable
        else "# There is no folder to take away: those answer on ONNX Runtime or OpenVINO, as a CPU has them.\n"
    )
    return (
        f"# {chosen.title}. In the project's folder, after: pip install '.[serve]'\n"
        f"{away}"
        "# An HTTP interface, described at /docs, where questions that come together are read together:\n"
        f"python -m qa_backends serve --no-page --backends {backend} {here}\n"
        "# In Python, in place of transformers' pipeline:\n"
        "from qa_backends import pipeline\n"
        f'answer = pipeline("{backend}", {in_python}, device="{device}")(question="Who sang?", context="Ada sang.")\n'
    )
