"""The question as a link, and as the lines that repeat it in Python and on the command line."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from qa_backends import catalog
from qa_backends.errors import UnknownBackend
from qa_backends.web.shared.choices import preselected

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LINK_UP_TO = 6_000
"""A longer address, in bytes, is made without the text: browsers and proxies cut or refuse it."""
ARGUMENT_UP_TO = 100_000
"""Bytes of text that are given on a command line; Linux refuses single arguments above 128 KiB."""

CODE_BOX: dict[str, Any] = {"language": None, "interactive": False, "wrap_lines": True, "lines": 1}
"""How code to copy is shown: in one colour, since those of Gradio's editor have too little contrast on white."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What a link says; empty where it says nothing."""

    question: str
    context: str
    family: str
    backends: list[str]


def link(question: str, context: str, family: str, backends: Sequence[str]) -> str:
    """The query string, from "?" on."""
    fields = {"q": question, "family": family, "backends": ",".join(backends)}
    whole = "?" + urlencode(fields | {"c": context})
    return whole if len(whole) <= LINK_UP_TO else "?" + urlencode(fields)


def read_link(fields: Mapping[str, str]) -> Shared | None:
    """What the address asked for; ``None`` for the plain address. Unknown names are dropped, not believed."""
    if not fields.get("q") and not fields.get("c"):
        return None
    try:
        family = catalog.family(fields.get("family", "")).name
    except UnknownBackend:
        family = catalog.default_family()
    wanted = preselected(family, among=fields.get("backends", "").split(","))
    return Shared(fields.get("q", ""), fields.get("c", ""), family, wanted or preselected(family))


def as_python(question: str, context: str, family: str, backends: Sequence[str], device: str) -> str:
    return (
        "from qa_backends import catalog\n"
        "from qa_backends.contract import Query\n"
        "from qa_backends.runtime import Runtime\n\n"
        f"query = Query(question={question!r}, context={context!r})\n"
        f"with Runtime().turn({device!r}) as turn:\n"
        f"    for name in {list(backends)!r}:\n"
        f"        family, backend = catalog.resolve(name, {family!r})\n"
        "        reading, _ = turn.warm_answer(family, backend, turn.prepare(family, query))\n"
        "        print(name, reading.answer.text, reading.times)\n"
    )


def as_shell(question: str, context: str, family: str, backends: Sequence[str], device: str) -> str:
    """A loop over the backends; a text too long for an argument is read from a file."""
    short = len(context.encode("utf-8", "replace")) <= ARGUMENT_UP_TO
    text = f"--context {shlex.quote(context)}" if short else "--context-file text.txt"
    where = f"--family {shlex.quote(family)} --device {shlex.quote(device)}"
    return (
        f"{'' if short else '# Save the text as text.txt first: it is too long for a command.' + chr(10)}"
        f"for backend in {' '.join(backends)}; do\n"
        f'  python -m qa_backends answer {where} --backend "$backend" --json \\\n'
        f"    --question {shlex.quote(question)} \\\n    {text}\n"
        "done\n"
    )
