"""The bodies of requests: encodings, and bounds on their size, their number and their messages."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import gzip
import json
import sys
import threading
import time
import zlib
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx2
import pytest
from backports import zstd

import segue
from segue.bridge.bridge import Bridge
from segue.bridge.reply_relay import ReplyRelay
from segue.bridge.routes import Route, RouteQuery
from segue.conversion import sessions
from segue.gateway import app
from segue.gateway.bodies import BodyError, BodyMemory, find_trim, read_body
from segue.gateway.conversions import ConversionThreads
from segue.gateway.routes import RouteTable
from tests.gateway.harness import Running, running_gateway
from tests.gateway.test_hostile_clients import PATIENCE, connecting, wait_until
from tests.gateway.test_passthrough import passthrough_gateway

PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/any:generateContent",
    "bedrock": "/model/any/converse",
}
every_api = pytest.mark.parametrize("api", PATHS)


def conversation(turns: int, text: str = "x") -> dict[str, Any]:
    """Return a Chat body with this many calls, each with its result, and `2 * turns + 1` messages."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": text}]
    for number in range(turns):
        function = {"name": "look", "arguments": json.dumps({"n": number})}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": f"{text} {number}"})
    parameters = {"type": "object", "properties": {"n": {"type": "integer"}}}
    tool = {"type": "function", "function": {"name": "look", "description": "Look", "parameters": parameters}}
    return {"model": "any", "messages": messages, "tools": [tool], "max_tokens": 100}


def body_of(api: str, turns: int = 1, text: str = "x") -> bytes:
    return segue.convert(conversation(turns, text), source="openai-chat", target=api, model="any").data


def serving(replies: int = 20, **settings: Any) -> contextlib.AbstractContextManager[Running]:
    return running_gateway({"openai-chat": "\n---\n".join(["say Hi."] * replies)}, **settings)


def send(gateway: Running, api: str, body: bytes, headers: Any = ()) -> httpx2.Response:
    items = [("content-type", "application/json"), *headers]
    return httpx2.post(gateway.url + PATHS[api], content=body, headers=items, timeout=PATIENCE)


def error_of(api: str, response: httpx2.Response) -> str:
    """Return the message of an error, which has the form of this API."""
    body = response.json()
    match api:
        case "anthropic":
            assert body["type"] == "error"
            return body["error"]["message"]
        case "gemini":
            assert body["error"]["code"] == response.status_code
            return body["error"]["message"]
        case "bedrock":
            assert response.headers["x-amzn-errortype"]
            return body["message"]
        case _:
            assert set(body["error"]) >= {"message", "type", "code"}
            return body["error"]["message"]


# ------------------------------------------------------------------------------------------------------------ encodings


def gzip_in_members(data: bytes) -> bytes:
    return b"".join(gzip.compress(data[start : start + 50]) for start in range(0, len(data), 50))


def zstd_in_frames(data: bytes) -> bytes:
    return b"".join(zstd.compress(data[start : start + 50]) for start in range(0, len(data), 50))


def zstd_with_window(log: int) -> bytes:
    """Return a body of no known size: a receiver needs the whole window to decode it."""
    compressor = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: log})
    return compressor.compress(b" " * 1000) + compressor.flush()


DECODED: dict[str, tuple[list[str], Callable[[bytes], bytes]]] = {
    "gzip": (["gzip"], gzip.compress),
    "upper case": (["GZip"], gzip.compress),
    "old name": (["x-gzip"], gzip.compress),
    "with identity": (["identity, gzip ,"], gzip.compress),
    "in two headers": (["identity", "gzip"], gzip.compress),
    "before identity": (["gzip", "identity"], gzip.compress),
    "members": (["gzip"], gzip_in_members),
    "empty member": (["gzip"], lambda data: gzip.compress(data) + gzip.compress(b"")),
    "zstd": (["zstd"], zstd.compress),
    "frames": (["zstd"], zstd_in_frames),
    "window of 8 MiB": (["zstd"], lambda data: zstd_with_window(23) + zstd.compress(data)),
    "identity": (["identity"], bytes),
    "empty": ([""], bytes),
    "empty list": ([",,"], bytes),
}


@pytest.mark.parametrize("case", DECODED)
def test_an_encoded_body_is_that_body(case: str) -> None:
    names, encode = DECODED[case]
    with serving() as gateway:
        body = body_of("openai-chat", text=f"My {case} text")
        reply = send(gateway, "openai-chat", encode(body), [("content-encoding", name) for name in names])
        assert reply.status_code == 200
        assert f"My {case} text" in str(gateway.emulators["openai-chat"].requests[0].body)


REFUSED: dict[str, tuple[list[str], bytes, int, str]] = {
    "brotli": (["br"], b"x", 415, "br is not supported"),
    "deflate": (["deflate"], zlib.compress(b"{}"), 415, "deflate is not supported"),
    "twice": (["gzip, gzip"], gzip.compress(gzip.compress(b"{}")), 415, "gzip, gzip is not supported"),
    "several": (["gzip, br"], gzip.compress(b"{}"), 415, "gzip, br is not supported"),
    "in two headers": (["br", "gzip"], gzip.compress(b"{}"), 415, "br, gzip is not supported"),
    "unknown": (["\x80" * 999], b"{}", 415, "is not supported"),
    "cut off": (["gzip"], gzip.compress(b"{}" * 99)[:-1], 400, "not valid gzip: its end is missing"),
    "cut off in its head": (["gzip"], b"\x1f\x8b", 400, "its end is missing"),
    "cut off in the last member": (["gzip"], gzip.compress(b"{}") * 2 + b"\x1f", 400, "its end is missing"),
    "damaged": (["gzip"], b"\x1f\x8b\x08" + b"\x00" * 7 + b"\xff" * 99, 400, "not valid gzip"),
    "wrong checksum": (["gzip"], gzip.compress(b"{}")[:-8] + b"\x00" * 8, 400, "not valid gzip"),
    "not gzip": (["gzip"], b'{"model": "any"}', 400, "not valid gzip"),
    "more behind": (["gzip"], gzip.compress(b"{}") + b"more", 400, "not valid gzip"),
    "cut off zstd": (["zstd"], zstd.compress(b"{}" * 99)[:-1], 400, "not valid zstd: its end is missing"),
    "not zstd": (["zstd"], gzip.compress(b"{}"), 400, "not valid zstd"),
    "large window": (["zstd"], zstd_with_window(27), 400, "not valid zstd"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_body_that_can_not_be_decoded_is_an_error_of_the_api(case: str) -> None:
    names, body, status, message = REFUSED[case]
    with serving() as gateway:
        for api in PATHS:
            headers = [(b"content-encoding", name.encode("latin-1")) for name in names]
            response = send(gateway, api, body, headers)
            assert response.status_code == status
            assert message in error_of(api, response)
        assert gateway.emulators["openai-chat"].requests == []


def test_without_the_package_zstd_is_not_supported(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("compression", "compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, module, None)
    with serving() as gateway:
        response = send(gateway, "openai-chat", zstd.compress(b"{}"), [("content-encoding", "zstd")])
        assert response.status_code == 415
        assert "as gzip or zstd (zstd needs Python 3.14 or pip install 'segue[zstd]' in the gateway)" in response.text


def read(chunks: list[bytes], limit: int, memory: BodyMemory, **headers: str) -> bytes:
    """Read a body that arrives in these chunks."""
    events = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    events.append({"type": "http.request", "body": b"", "more_body": False})
    arriving = iter(events)

    async def receive() -> Any:
        return next(arriving)

    async def work() -> bytes:
        with memory.open() as share:
            return await read_body(receive, {name.replace("_", "-"): headers[name] for name in headers}, share, limit)

    return asyncio.run(work())


class Watched(BodyMemory):
    """Memory that notes the most that was used."""

    most = 0

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "used":
            self.most = max(self.most, value)


@pytest.mark.parametrize(("name", "encode"), [("gzip", gzip.compress), ("zstd", zstd.compress)])
@pytest.mark.parametrize("copies", [1, 50])
def test_a_bomb_is_never_larger_than_the_limit(name: str, encode: Callable[[bytes], bytes], copies: int) -> None:
    memory, limit = Watched(10**9), 3_000_000
    bomb = encode(bytes(50_000_000 // copies)) * copies
    assert len(bomb) < limit
    with pytest.raises(BodyError) as raised:
        read([bomb], limit, memory, content_encoding=name)
    assert raised.value.status == 413
    assert memory.most <= limit
    assert memory.used == 0
    assert read([encode(bytes(limit))], limit, memory, content_encoding=name) == bytes(limit)


@pytest.mark.parametrize("encode", [gzip.compress, gzip_in_members, zstd.compress, zstd_in_frames])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_body_is_decoded_in_any_parts(encode: Callable[[bytes], bytes], size: int) -> None:
    body = body_of("openai-chat", 20)
    data = encode(body)
    name = "gzip" if data[:2] == b"\x1f\x8b" else "zstd"
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    assert read(chunks, 50_000, BodyMemory(50_000), content_encoding=name) == body


def test_an_encoded_body_of_a_passthrough_route_is_passed_on_as_it_is() -> None:
    for name, data in (("gzip", gzip.compress(b"{}")), ("br", b"anything"), ("gzip", b"damaged")):
        with passthrough_gateway() as (gateway, upstream):
            url = gateway.url + "/v1/embeddings"
            assert httpx2.post(url, content=data, headers={"content-encoding": name}).status_code == 200
            (received,) = upstream.requests
            assert (received.body, received.headers["content-encoding"]) == (data, name)


# --------------------------------------------------------------------------------------------------------------- bounds


@contextmanager
def sending(gateway: Running, api: str, size: int) -> Generator[None]:
    """Send all but the last byte of a body, and wait until the gateway has read it."""
    memory = gateway.server.app._memory
    before = memory.used
    with connecting(gateway) as connection:
        head = f"POST {PATHS[api]} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n"
        connection.sendall(head.encode() + b" " * (size - 1))
        wait_until(lambda: memory.used >= before + size - 1)
        yield


@every_api
def test_all_unread_bodies_together_are_bounded(api: str) -> None:
    with serving(pending_mb=1_000_000 / 2**20) as gateway:
        with sending(gateway, "openai-chat", 400_000), sending(gateway, "anthropic", 400_000):
            body = body_of(api, text="x" * 300_000)
            for content in (body, iter([body])):
                response = httpx2.post(gateway.url + PATHS[api], content=content, timeout=PATIENCE)
                # Anthropic's own status for it is 529.
                assert response.status_code == (529 if api == "anthropic" else 503)
                assert response.headers["retry-after"] == "1"
                assert "no memory left" in error_of(api, response)
            assert send(gateway, api, body_of(api)).status_code == 200
        wait_until(lambda: gateway.server.app._memory.used == 0)
        assert send(gateway, api, body).status_code == 200


def test_many_connections_hold_no_more_than_the_bound() -> None:
    with serving(pending_mb=1_000_000 / 2**20) as gateway, ExitStack() as stack:
        for _ in range(30):
            connection = stack.enter_context(connecting(gateway))
            connection.sendall(f"POST {PATHS['anthropic']} HTTP/1.1\r\nHost: localhost\r\n".encode())
            connection.sendall(b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % 200_000 + b" " * 199_999)
        memory = gateway.server.app._memory
        wait_until(lambda: gateway.log.count("; 529; ") >= 25)
        assert memory.used <= 1_000_000


def test_free_memory_is_returned_after_many_bodies() -> None:
    memory = BodyMemory(2**30)
    trims: list[int] = []
    for size, expected in ((7, 0), (1, 1), (0, 1), (26, 2), *((0, number) for number in range(3, 7)), (0, 6)):
        with memory.open() as share:
            share.add(size * 2**20)
        memory.trim(trims.append)
        assert trims == [0] * expected
    trim = find_trim()
    assert trim is None or isinstance(trim(0), int)


def test_a_body_that_declares_too_much_is_refused_before_it_is_sent() -> None:
    with serving() as gateway, connecting(gateway) as connection:
        head = f"POST {PATHS['openai-chat']} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {2**40}\r\n\r\n"
        connection.sendall(head.encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 413 ")


@every_api
def test_messages_and_calls_are_bounded(api: str) -> None:
    found: dict[str, str] = {}
    for name, limits in {"messages": {"max_messages": 10}, "tool calls": {"max_calls": 4}}.items():
        with serving(**limits) as gateway:
            # A Gemini or Bedrock body has as many messages as turns of the roles; Responses has an item for each.
            assert send(gateway, api, body_of(api, 4)).status_code == 200
            response = send(gateway, api, body_of(api, 5))
            assert response.status_code == 413
            found[name] = error_of(api, response)
    assert found == {
        "messages": "the body has 11 messages; the limit is 10",
        "tool calls": "the body has 5 tool calls; the limit is 4",
    }


def test_a_session_of_10_000_messages_passes() -> None:
    with serving() as gateway:
        assert send(gateway, "openai-chat", body_of("openai-chat", 5_000)).status_code == 200


@pytest.mark.parametrize(
    "messages", [[1] * 50, [{"content": 1, "tool_calls": "x"}] * 50, "x" * 999, [[{"content": []}]] * 50]
)
def test_a_body_without_messages_is_an_ordinary_error(messages: Any) -> None:
    with serving(max_messages=2, max_calls=2) as gateway:
        response = send(gateway, "openai-chat", json.dumps({"model": "any", "messages": messages}).encode())
        assert response.status_code in (400, 413)


# -------------------------------------------------------------------------------------------------------------- threads


def test_others_are_served_while_a_large_body_is_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_end, collects = threading.Event(), threading.Event(), []
    open_relay = Bridge.open

    def wait(self: Bridge, method: str, path: str, headers: Any, body: bytes, **options: Any) -> Any:
        if len(body) > 100_000:
            begun.set()
            assert may_end.wait(PATIENCE)
            collects.append(gc.isenabled())
        return open_relay(self, method, path, headers, body, **options)

    monkeypatch.setattr(Bridge, "open", wait)
    with serving(large_mb=100_000 / 2**20) as gateway, ThreadPoolExecutor(1) as pool:
        large = pool.submit(send, gateway, "anthropic", body_of("anthropic", text="x" * 200_000))
        assert begun.wait(PATIENCE)
        for api in PATHS:
            assert send(gateway, api, body_of(api)).status_code == 200
        assert not large.done()
        may_end.set()
        assert large.result().status_code == 200
    assert collects == [False]
    assert gc.isenabled()


def run_sessions(gateway: Running, clients: int) -> dict[str, list[Any]]:
    """Let clients send growing conversations at once; return what each sent to the provider, in its order."""

    def run(number: int) -> None:
        api = list(PATHS)[number % len(PATHS)]
        for turns in range(1, 5):
            body = body_of(api, turns, f"client {number};")
            response = send(gateway, api, body)
            assert response.status_code == 200, response.text

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(run, range(clients)))
    sent: dict[str, list[Any]] = {}
    for request in gateway.emulators["openai-chat"].requests:
        assert request.body is not None
        text = str(request.body["messages"])
        number = next(number for number in range(clients) if f"client {number};" in text)
        sent.setdefault(f"client {number}", []).append(request.body)
    return sent


def test_conversations_are_not_mixed_up_in_threads() -> None:
    """All steps of all exchanges run in threads, which share the memory of conversations."""
    interval = sys.getswitchinterval()
    with serving(60) as gateway:
        expected = run_sessions(gateway, 10)
    sessions.clear()
    sys.setswitchinterval(1e-5)
    try:
        with serving(60, large_mb=0) as gateway:
            assert run_sessions(gateway, 10) == expected
    finally:
        sys.setswitchinterval(interval)


def test_one_route_is_searched_for_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a route is found by belongs to the program that runs the gateway: it need not be made for threads."""
    inside: list[int] = []
    most: list[int] = []
    find = RouteTable.find

    def note(self: RouteTable, query: RouteQuery) -> Route:
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.005)
        inside.pop()
        return find(self, query)

    monkeypatch.setattr(RouteTable, "find", note)
    with serving(60, large_mb=0) as gateway, ThreadPoolExecutor(8) as pool:
        sent = list(pool.map(lambda _: send(gateway, "openai-chat", body_of("openai-chat")).status_code, range(16)))
    assert sent == [200] * 16
    assert most == [1] * 16


def test_a_stream_is_not_kept_open_by_a_relay_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only one thread uses a relay at a time: the event loop does so for the bytes that keep a stream open."""
    running: list[int] = []
    seen: list[int] = []
    run, keep_alive = ConversionThreads.run, ReplyRelay.keep_alive

    async def run_slowly(self: ConversionThreads, step: Callable[[], Any]) -> Any:
        def slow_step() -> Any:
            running.append(1)
            time.sleep(0.05)
            result = step()
            running.pop()
            return result

        return await run(self, slow_step)

    def note(self: ReplyRelay) -> Any:
        seen.append(len(running))
        return keep_alive(self)

    monkeypatch.setattr(app, "_KEEP_ALIVE_SECONDS", 0.001)
    monkeypatch.setattr(ConversionThreads, "run", run_slowly)
    monkeypatch.setattr(ReplyRelay, "keep_alive", note)
    with running_gateway({"openai-chat": "say One.\nwait 0.3\nsay Two."}, large_mb=0) as gateway:
        body = {**json.loads(body_of("openai-chat")), "stream": True}
        response = httpx2.post(gateway.url + PATHS["openai-chat"], json=body, timeout=PATIENCE)
    assert segue.assemble(response.content, "openai-chat").text == "One.Two."
    assert seen
    assert set(seen) == {0}


@pytest.mark.parametrize("stream", [False, True])
@every_api
def test_replies_are_the_same_from_threads(api: str, stream: bool) -> None:
    """Calls, text and the retry of a failed request; the ids differ in each exchange."""
    script = "\n---\n".join(["error 500", 'say One.\ncall look {"n": 1}', "say Two."])
    replies: list[Any] = []
    for settings in ({}, {"large_mb": 0}):
        with running_gateway({"openai-chat": script}, **settings) as gateway:
            for _ in range(2):
                path = PATHS[api]
                body = json.loads(body_of(api))
                if not stream:
                    pass
                elif api == "gemini":
                    path = path.replace(":generateContent", ":streamGenerateContent") + "?alt=sse"
                elif api == "bedrock":
                    path += "-stream"
                else:
                    body["stream"] = True
                response = httpx2.post(gateway.url + path, json=body, timeout=PATIENCE)
                assert response.status_code == 200
                reply = segue.assemble(response.content, api)
                replies.append((reply.text, [(call.name, call.arguments) for call in reply.calls], reply.finish))
    assert replies[:2] == replies[2:]
    assert replies[0][1] == [("look", {"n": 1})]
