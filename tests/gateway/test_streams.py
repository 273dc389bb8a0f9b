"""Streams of the gateway: their ends, cancellation, and clients that read slowly."""

from __future__ import annotations

import io
import json
import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from segue.bridge.providers import Endpoint, resolve
from segue.gateway.settings import GatewayRoutes
from tests.gateway.harness import Running, build_server, running_gateway
from tests.gateway.test_hostile_clients import wait_until
from tests.gateway.upstreams import Handler, Upstream, running_upstream

CHAT: dict[str, Any] = {"model": "any", "messages": [{"role": "user", "content": "Hello"}]}


def event(payload: object) -> bytes:
    kind = payload.get("type") if isinstance(payload, dict) else None
    data = payload if isinstance(payload, str) else json.dumps(payload)
    return (f"event: {kind}\n" if kind else "").encode() + f"data: {data}\n\n".encode()


CHAT_EVENTS = [
    {
        "id": "c1",
        "object": "chat.completion.chunk",
        "model": "m",
        "choices": [{"index": 0, "delta": {"content": "Hi"}}],
    },
    {
        "id": "c1",
        "object": "chat.completion.chunk",
        "model": "m",
        "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1},
    },
    "[DONE]",
]
MESSAGE_EVENTS = [
    {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [],
            "stop_reason": None,
            "usage": {"input_tokens": 3, "output_tokens": 1},
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
]
RESPONSE = {"id": "resp_1", "object": "response", "created_at": 5, "status": "in_progress", "model": "m", "output": []}
MESSAGE_ITEM = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Hi", "annotations": []}],
}
RESPONSE_EVENTS = [
    {"type": "response.created", "response": RESPONSE},
    {"type": "response.output_item.added", "output_index": 0, "item": {**MESSAGE_ITEM, "content": []}},
    {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Hi"},
    {"type": "response.output_item.done", "output_index": 0, "item": MESSAGE_ITEM},
    {"type": "response.completed", "response": {**RESPONSE, "status": "completed", "output": [MESSAGE_ITEM]}},
]
STREAMS = {"openai-chat": CHAT_EVENTS, "anthropic": MESSAGE_EVENTS, "openai-responses": RESPONSE_EVENTS}


@contextmanager
def plain_gateway(api: str, answer: Callable[[Handler], None]) -> Generator[tuple[Running, Upstream]]:
    """Run a gateway whose provider is a plain server."""
    with running_upstream(answer) as upstream:
        providers = {"vendor": {"api": api, "base_url": upstream.url, "key_variable": "KEY"}}

        def find(name: str) -> Endpoint:
            return resolve(name, {"KEY": "upstream-key"}, providers)

        loaded = GatewayRoutes((), ("vendor/model",), prefers_default=True)
        log = io.StringIO()
        server = build_server(find, loaded, log)
        with server.running():
            yield Running(server, {}, log), upstream


@pytest.mark.parametrize("caller", ["/v1/chat/completions", "/v1/messages", "/v1/responses"])
@pytest.mark.parametrize("api", STREAMS)
def test_stream_ends_at_the_last_event_of_the_provider(api: str, caller: str) -> None:
    """A provider that keeps its connection open does not keep the caller waiting."""
    released = threading.Event()

    def answer(handler: Handler) -> None:
        handler.begin_chunks()
        for payload in STREAMS[api]:
            handler.write_chunk(event(payload))
        assert released.wait(100)
        handler.write_chunk(b"")

    body = {"/v1/responses": {"model": "any", "input": "Hello"}}.get(caller, {**CHAT, "max_tokens": 100})
    with plain_gateway(api, answer) as (gateway, _):
        try:
            # Without the end at the last event, the test ends with the timeout of the client.
            response = httpx2.post(gateway.url + caller, json={**body, "stream": True}, timeout=100)
        finally:
            released.set()
        assert response.status_code == 200
        assert b"Hi" in response.content
        endings = {"/v1/chat/completions": b"[DONE]", "/v1/messages": b"message_stop"}
        assert endings.get(caller, b"response.completed") in response.content


def test_connection_is_used_again_after_the_last_event() -> None:
    ports: set[int] = set()

    def answer(handler: Handler) -> None:
        ports.add(handler.client_address[1])
        handler.begin_chunks()
        for payload in CHAT_EVENTS:
            handler.write_chunk(event(payload))
        handler.write_chunk(b"")

    with plain_gateway("openai-chat", answer) as (gateway, upstream):
        for _ in range(5):
            body = {**CHAT, "max_tokens": 100, "stream": True}
            assert httpx2.post(f"{gateway.url}/v1/messages", json=body, timeout=100).status_code == 200
            wait_until(lambda: gateway.log.count("; 200;") == len(upstream.requests))
        assert len(ports) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_converted_replies_have_the_time(stream: bool) -> None:
    before = int(time.time())
    with running_gateway({"anthropic": "\n---\n".join(["say Hi."] * 4)}) as gateway:
        chat = httpx2.post(f"{gateway.url}/v1/chat/completions", json={**CHAT, "stream": stream}, timeout=100)
        responses = httpx2.post(
            f"{gateway.url}/v1/responses", json={"model": "any", "input": "Hello", "stream": stream}, timeout=100
        )
    after = int(time.time())
    if not stream:
        assert before <= chat.json()["created"] <= after
        assert before <= responses.json()["created_at"] <= after
        return
    lines = [line.removeprefix("data: ") for line in chat.text.splitlines() if line.startswith("data: {")]
    assert {before <= json.loads(line)["created"] <= after for line in lines} == {True}
    events = [json.loads(line[6:]) for line in responses.text.splitlines() if line.startswith("data: {")]
    times = {one["response"]["created_at"] for one in events if "response" in one}
    assert len(times) == 1
    assert before <= times.pop() <= after


def test_client_that_leaves_closes_the_connection_to_the_provider() -> None:
    def answer(handler: Handler) -> None:
        handler.begin_chunks()
        handler.write_chunk(event(CHAT_EVENTS[0]))
        handler.connection.settimeout(100)
        # Reading returns nothing as soon as the gateway has closed the connection.
        if handler.rfile.read(1) == b"":
            handler.upstream.closed.set()
        raise ConnectionAbortedError

    with plain_gateway("openai-chat", answer) as (gateway, upstream):
        with httpx2.stream(
            "POST", f"{gateway.url}/v1/chat/completions", json={**CHAT, "stream": True}, timeout=100
        ) as response:
            next(response.iter_bytes())
        assert upstream.closed.wait(100)


def test_slow_client_slows_the_provider_down() -> None:
    """What the client does not read stays at the provider: the gateway buffers only a bounded part of it."""
    sent = [0]
    size = 64 * 2**20
    chunk = event({**CHAT_EVENTS[0], "choices": [{"index": 0, "delta": {"content": "x" * 60_000}}]})

    def answer(handler: Handler) -> None:
        handler.begin_chunks()
        while sent[0] < size:
            handler.write_chunk(chunk)
            sent[0] += len(chunk)
        handler.write_chunk(event("[DONE]"))
        handler.write_chunk(b"")

    with plain_gateway("openai-chat", answer) as (gateway, upstream):
        parts = urlsplit(gateway.url)
        data = json.dumps({**CHAT, "max_tokens": 9, "stream": True}).encode()
        with socket.create_connection((parts.hostname, parts.port), timeout=100) as connection:
            head = f"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(data)}\r\n\r\n"
            connection.sendall(head.encode() + data)
            assert connection.recv(100)
            last = -1
            while last != sent[0]:
                last = sent[0]
                time.sleep(0.5)
            assert last < size / 2
        assert upstream.closed.wait(100)
