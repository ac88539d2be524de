"""Who may bring a model to the page: who sits at the machine any, visitors those of the Hub if the owner says so."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import gradio as gr

SWITCH = "QA_OWN_MODELS"
"""Set to 1, visitors of a public page may load models of the Hub; set to 0, nobody loads any."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "cf-connecting-ip")
"""Headers by which a proxy says that somebody else is asking."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """Whether visitors may bring models, and whether a folder's name will do: only to who sits at the machine."""

    hub: bool
    folders: bool

    def at(self, request: gr.Request) -> Allowed:
        """What is left of it for this visitor: behind a proxy, the page is as public as on a Space."""
        if not self.folders or _at_the_machine(request):
            return self
        return Allowed(hub=os.environ.get(SWITCH) == "1", folders=False)

    @classmethod
    def where(cls, host: str) -> Allowed:
        """By the address that is listened on, by whether this is a Space, and by ``QA_OWN_MODELS``."""
        if os.environ.get(SWITCH) == "0":
            return cls(hub=False, folders=False)
        private = host in LOOPBACK and not os.environ.get("SPACE_ID") and not os.environ.get("GRADIO_SHARE")
        return cls(hub=private or os.environ.get(SWITCH) == "1", folders=private)


def _at_the_machine(request: gr.Request) -> bool:
    """Whether a browser on this machine asks, as far as a request tells: nobody forwarded it, and the page that it
    stands in has an address of this machine."""
    headers = request.headers
    pages = [urlsplit(headers[name]).hostname for name in ("origin", "referer") if headers.get(name)]
    client = request.client.host if request.client else LOOPBACK[0]
    return not any(name in headers for name in FORWARDED) and all(each in LOOPBACK for each in (*pages, client))
