"""The endpoints as tools for language models, by the protocol's own client."""

from __future__ import annotations

import asyncio
from ast import literal_eval
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from helpers import QUESTION, TEXT
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

if TYPE_CHECKING:
    from mcp.types import CallToolResult, TextContent, Tool

PATH = "gradio_api/mcp/"


def call(url: str, name: str, **arguments: Any) -> CallToolResult:
    async def called() -> CallToolResult:
        async with streamablehttp_client(url + PATH) as (read, write, _), ClientSession(read, write) as session:
            await session.initialize()
            return await session.call_tool(name, arguments)

    return asyncio.run(called())


def text_of(result: CallToolResult) -> str:
    (part,) = result.content
    text: TextContent = part  # type: ignore[assignment]
    return text.text


def tools(url: str) -> list[Tool]:
    async def listed() -> list[Tool]:
        async with streamablehttp_client(url + PATH) as (read, write, _), ClientSession(read, write) as session:
            await session.initialize()
            return (await session.list_tools()).tools

    return asyncio.run(listed())


def test_the_tools_say_what_they_take(url: str) -> None:
    found = {each.name: each for each in tools(url)}
    assert set(found) == {"answer", "ask"}, "nothing that only the page needs"
    for tool in found.values():
        assert tool.description
        assert all(each.get("description") for each in tool.inputSchema["properties"].values())


def test_a_tool_answers(url: str) -> None:
    result = call(url, "answer", question=QUESTION, context=TEXT, backend="pruned")
    assert not result.isError
    found = literal_eval(text_of(result))
    assert found["answer"] == TEXT[slice(*found["span"])] == "Ben"


@pytest.mark.parametrize(("backend", "said"), [("nothing", "There is no backend 'nothing'"), ("pruned", "no question")])
def test_what_cannot_be_asked_gets_a_sentence(url: str, backend: str, said: str) -> None:
    question = QUESTION if backend == "nothing" else " "
    result = call(url, "answer", question=question, context=TEXT, backend=backend)
    assert result.isError and said in text_of(result)


def test_one_call_is_enough_without_a_session(url: str) -> None:
    """As the documentation's curl does it."""
    asked = {"name": "answer", "arguments": {"question": QUESTION, "context": TEXT, "backend": "pruned"}}
    found = httpx.post(
        url + PATH,
        json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked},
        headers={"Accept": "application/json, text/event-stream"},
        timeout=60,
    )
    assert found.status_code == 200 and "'answer': 'Ben'" in found.text
