"""Replies that never end: the session stops at the limits, and its memory is bounded by them."""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain, repeat
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import segue
from segue.canonical.json import encode_json
from segue.canonical.request import Reply
from segue.runtime.conversation_log import InMemoryLog
from segue.runtime.provider_client import ProviderClient
from segue.runtime.routing import Fixed
from segue.runtime.session import Session, SessionServices
from segue.runtime.toolbox import Toolbox
from tests.runtime.test_provider_client import make_endpoint, run

LIMITS = segue.ReplyLimits(bytes=1_000_000, calls=100, arguments=300_000)
OFFERED = 40_000_000
MAX_PEAK = 10_000_000
MAX_EVIDENCE = 300_000
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
BLOCK = 50_000


def chat_delta(**delta: Any) -> bytes:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    return b"data: " + json.dumps({**chunk, "choices": [choice]}).encode() + b"\n\n"


def call_delta(index: int, arguments: str, *, is_first: bool = True) -> bytes:
    start = {"id": f"call_{index}", "type": "function"} if is_first else {}
    function = {"name": "f", "arguments": arguments} if is_first else {"arguments": arguments}
    return chat_delta(tool_calls=[{"index": index, **start, "function": function}])


def endless(first: bytes, then: bytes) -> Iterator[bytes]:
    return chain([first], repeat(then * (BLOCK // len(then) + 1)))


REPLIES: dict[str, tuple[Callable[[], Iterator[bytes]], str]] = {
    "small texts": (lambda: endless(chat_delta(content="head "), chat_delta(content="x" * 20)), "bytes"),
    "long texts": (lambda: endless(chat_delta(content="head "), chat_delta(content="x" * BLOCK)), "bytes"),
    "reasoning": (
        lambda: endless(chat_delta(reasoning_content="head "), chat_delta(reasoning_content="x" * 1000)),
        "bytes",
    ),
    "arguments": (
        lambda: endless(call_delta(0, '{"a": "head '), call_delta(0, "x" * 1000, is_first=False)),
        "arguments",
    ),
    "calls": (lambda: endless(b"".join(call_delta(index, '{"head ": 1}') for index in range(150)), b": \n\n"), "calls"),
    "no line end": (lambda: endless(chat_delta(content="head "), b"x"), "bytes"),
}


class EvidenceLog(InMemoryLog):
    """Keeps the size of the evidence."""

    evidence: bytes = b""

    def record_broken(self, reply: Reply) -> None:
        self.evidence = encode_json(reply)
        super().record_broken(reply)


@pytest.fixture(scope="module", autouse=True)
def _imported() -> None:
    """Memory is measured without that of the libraries."""
    for name in ("aiohttp", "segue.wire.registry"):
        importlib.import_module(name)


class Endless(NamedTuple):
    """What came of a reply without an end."""

    error: str
    evidence: bytes
    requests: int
    sent: int
    peak: int


async def request_endless(make_payloads: Callable[[], Iterator[bytes]], folder: Path) -> Endless:
    sent = requests = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent, requests
        requests += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(HEAD)
            for payload in make_payloads():
                writer.write(payload)
                sent += len(payload)
                await writer.drain()
                if sent > OFFERED:
                    break
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    log = EvidenceLog()
    async with ProviderClient(limits=LIMITS) as client:
        services = SessionServices(client=client, toolbox=Toolbox([], folder))
        session = Session(log, Fixed(make_endpoint("openai-chat", url)), services)
        gc.collect()
        tracemalloc.start()
        try:
            await session.ask("hello")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
            await session.close()
    server.close()
    await server.wait_closed()
    return Endless(str(session.error), log.evidence, requests, sent, peak)


@pytest.mark.parametrize("name", REPLIES)
def test_memory_is_bounded_by_the_limits(name: str, tmp_path: Path) -> None:
    make_payloads, limit = REPLIES[name]
    ended = run(request_endless(make_payloads, tmp_path))
    assert f"(limit `{limit}`)" in ended.error
    assert ended.requests == 1
    assert ended.sent < OFFERED
    assert ended.peak < MAX_PEAK
    assert len(ended.evidence) < MAX_EVIDENCE
    if name == "calls":
        # The limit may be reached before the first token was returned; then there is no evidence.
        return
    assert b"head " in ended.evidence
    assert b"omitted]" in ended.evidence or name in ("small texts", "no line end")
