"""The question as a link, and as the lines that repeat it in Python and on the command line."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from qa_backends import catalog
from qa_backends.errors import QAError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LINK_UP_TO = 4_000
"""Texts of more characters are left out of the link: browsers and proxies cut longer addresses."""


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
    if len(context) <= LINK_UP_TO:
        fields["c"] = context
    return "?" + urlencode(fields)


def read_link(fields: Mapping[str, str]) -> Shared | None:
    """What the address asked for; ``None`` for the plain address. Unknown names are dropped, not believed."""
    if not fields.get("q") and not fields.get("c"):
        return None
    try:
        family = catalog.family(fields.get("family", "")).name
    except QAError:
        family = catalog.default_family()
    known = [row.name for row in catalog.BACKENDS]
    wanted = [name for name in fields.get("backends", "").split(",") if name in known]
    return Shared(fields.get("q", ""), fields.get("c", "")[:LINK_UP_TO], family, wanted or list(catalog.PRESELECTED))


def as_python(question: str, context: str, family: str, backends: Sequence[str]) -> str:
    return (
        "from qa_backends import catalog\n"
        "from qa_backends.contract import Query\n"
        "from qa_backends.runtime import Runtime\n\n"
        f"query = Query(question={question!r}, context={context!r})\n"
        "device = catalog.devices()[0]\n"
        "with Runtime().turn(device) as turn:\n"
        f"    for name in {list(backends)!r}:\n"
        f"        family, backend = catalog.resolve(name, {family!r})\n"
        "        reading = turn.answer(family, backend, turn.prepare(family, query))\n"
        "        print(name, reading.answer.text, reading.times)\n"
    )


def as_shell(question: str, context: str, family: str, backends: Sequence[str]) -> str:
    return "".join(
        f"python -m qa_backends answer --family {family} --backend {name} \\\n"
        f"  --question {shlex.quote(question)} \\\n  --context {shlex.quote(context)} --json\n"
        for name in backends
    )
