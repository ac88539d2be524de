"""The document that the server sends, before any script runs.

Gradio's own names Gradio, and shows Gradio's picture where a link to it is shown. Search engines and the programs that
draw a link run no scripts, so what they read is put in here: title, description, picture. So is the style that decides
how the page looks while it is built, which would come too late from Gradio.
"""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Any

from gradio.route_utils import get_root_url
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse
from starlette.routing import Route

from qa_backends.paths import PREVIEW

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

PREVIEW_AT = "/preview.png"
PREVIEW_SIZE = (1200, 630)
CHARSET = '<meta charset="utf-8" />'
"""What our part follows: it must stand among the first 1,024 bytes."""
GRADIOS_OWN = re.compile(r'<meta\s+(?:property="og|name="twitter):[^>]*>\s*')


def app_options(title: str, description: str, head: str) -> dict[str, Any]:
    """What Gradio hands to the web application it makes: the document's head, and the one picture that is served."""
    own = Middleware(OwnHead, title=title, description=description, head=head)
    return {"middleware": [own], "routes": [Route(PREVIEW_AT, preview)]}


async def preview(request: Request) -> FileResponse:
    """The picture that stands for the page. Nothing of the request decides which file is sent."""
    return FileResponse(PREVIEW)


class OwnHead:
    """Puts our head into the page; everything else passes as it comes."""

    def __init__(self, app: ASGIApp, title: str, description: str, head: str) -> None:
        self._app = app
        self._title, self._description, self._head = title, description, head

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_asked = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        if not is_asked or scope["path"].removeprefix(scope.get("root_path", "")) not in ("", "/"):
            await self._app(scope, receive, send)
            return
        start: Message = {}
        parts: list[bytes] = []

        async def hold(message: Message) -> None:
            """Keeps the answer back until it is whole."""
            if message["type"] == "http.response.start":
                start.update(message)
                return
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                root = get_root_url(Request(scope), "/", scope.get("root_path"))
                whole = self.completed(b"".join(parts).decode(), root).encode()
                MutableHeaders(scope=start)["content-length"] = str(len(whole))
                await send(start)
                await send({"type": "http.response.body", "body": whole})

        await self._app(scope, receive, hold)

    def completed(self, document: str, root: str) -> str:
        """The document with our head. ``root`` is the address people see, which pictures of links need whole."""
        before, charset, after = document.partition(CHARSET)
        return before + charset + self._own(root) + GRADIOS_OWN.sub("", after) if charset else document

    def _own(self, root: str) -> str:
        title, description = escape(self._title), escape(self._description)
        wide, high = PREVIEW_SIZE
        picture = escape(root + PREVIEW_AT)
        return f"""
<title>{title}</title>
<meta name="description" content="{description}">
<meta property="og:type" content="website">
<meta property="og:url" content="{escape(root)}/">
<meta property="og:title" content="{title}">
<meta property="og:description" content="{description}">
<meta property="og:image" content="{picture}">
<meta property="og:image:width" content="{wide}">
<meta property="og:image:height" content="{high}">
<meta name="twitter:card" content="summary_large_image">
<link rel="icon" type="image/svg+xml" href="favicon.ico">
{self._head}"""
