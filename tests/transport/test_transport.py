"""The transports themselves: both libraries, settings, reports, requests passed through, cancellation, threads."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anthropic
import httpx
import httpx2
import msgspec
import openai
import pytest

from segue.bridge.providers import resolve
from segue.emulator import start
from segue.errors import InputError
from segue.transport import AsyncTransport, Transport, async_client, client
from segue.transport import httpx as twin
from tests.transport.callers import CALLERS, ToolLog, connect, open_http
from tests.transport.upstreams import CALLS, KEYS, LAST, MODELS, check_upstream, make_script, options_for
from tests.vendors.server import serve_canned

CHAT = "https://api.openai.com/v1/chat/completions"
BODY: dict[str, Any] = {"model": "an-alias", "messages": [{"role": "user", "content": "Hi."}]}
LIBRARIES = pytest.mark.parametrize("library", [httpx2, httpx], ids=["httpx2", "httpx"])


def sync_client(library: Any, *models: str, **options: Any) -> Any:
    transport = (Transport if library is httpx2 else twin.Transport)(*models, **options)
    return library.Client(transport=transport, timeout=100)


def loop_client(library: Any, *models: str, **options: Any) -> Any:
    transport = (AsyncTransport if library is httpx2 else twin.AsyncTransport)(*models, **options)
    return library.AsyncClient(transport=transport, timeout=100)


# ------------------------------------------------------------------------------------------------------- both libraries


@LIBRARIES
@pytest.mark.parametrize("api", MODELS)
def test_whole_and_streamed_reply(api: str, library: Any) -> None:
    async def talk(options: dict[str, Any]) -> list[str]:
        async with loop_client(library, f"upstream/{MODELS[api]}", **options) as http:
            whole = await http.post(CHAT, json=BODY)
            async with http.stream("POST", CHAT, json={**BODY, "stream": True}) as response:
                streamed = "".join([text async for text in response.aiter_text()])
        return [whole.text, streamed]

    with start(api, script="\n---\n".join(["say Hello there."] * 4)) as emulator:
        options = options_for({"upstream": emulator})
        with sync_client(library, f"upstream/{MODELS[api]}", **options) as http:
            whole = http.post(CHAT, json=BODY)
            with http.stream("POST", CHAT, json={**BODY, "stream": True}) as response:
                streamed = "".join(response.iter_text())
        assert isinstance(whole, library.Response)
        assert whole.json()["choices"][0]["message"]["content"] == "Hello there."
        texts = [whole.text, streamed, *asyncio.run(talk(options))]
    assert all("an-alias" in text for text in texts)
    assert "data: [DONE]" in streamed
    assert [request.streamed for request in emulator.requests] == [False, True] * 2


@LIBRARIES
@pytest.mark.parametrize("is_async", [False, True])
def test_failed_connection_raises_the_exception_of_the_library(library: Any, is_async: bool, port: int) -> None:
    options: dict[str, Any] = options_for({"upstream": f"http://127.0.0.1:{port}"})

    async def talk() -> None:
        async with loop_client(library, "upstream/m", **options) as http:
            await http.post(CHAT, json=BODY)

    def send() -> None:
        with sync_client(library, "upstream/m", **options) as http:
            http.post(CHAT, json=BODY)

    with pytest.raises(library.ConnectError):
        asyncio.run(talk()) if is_async else send()


@LIBRARIES
def test_google_on_either_library(library: Any) -> None:
    for name, is_async in (("gemini", False), ("automatic calls stream", False), ("gemini stream", True)):
        tools = ToolLog()

        async def talk(options: dict[str, Any], name: str = name, is_async: bool = is_async, tools: Any = tools) -> str:
            async with open_http("upstream/claude-sonnet-5", is_async=is_async, library=library, **options) as http:
                return await CALLERS[name].run(connect("google", http), tools, is_async)

        with start("anthropic", script=make_script("constant")) as emulator:
            assert asyncio.run(talk(options_for({"upstream": emulator}))) == LAST
        assert [(run.tool, run.arguments) for run in tools.runs] == CALLS
        check_upstream(emulator, tools)


def test_clients_by_name() -> None:
    options: dict[str, Any] = {"environ": {"ANTHROPIC_API_KEY": "k"}, "envelope_keys": KEYS}
    for make in (client, twin.client):
        with make("anthropic/claude-sonnet-5", **options) as http:
            assert "claude-sonnet-5" in repr(http._transport)
            assert "k" not in repr(http._transport).replace("Transport anthropic/claude-sonnet-5", "")

    async def close() -> None:
        for make in (async_client, twin.async_client):
            async with make("anthropic/claude-sonnet-5", **options):
                pass

    asyncio.run(close())


# ------------------------------------------------------------------------------------------------------------- settings


def test_settings_are_validated() -> None:
    for models, options in (((), {}), (("nowhere/m",), {}), ((3,), {}), (("anthropic/m",), {"caller": "smoke"})):
        with pytest.raises(InputError):
            Transport(*models, envelope_keys=KEYS, environ={}, **options)


def test_missing_key_is_an_authentication_error_of_the_sdk() -> None:
    with client("anthropic/claude-sonnet-5", environ={}, envelope_keys=KEYS) as http:
        with pytest.raises(openai.AuthenticationError, match="ANTHROPIC_API_KEY"):
            connect("openai", http).chat.completions.create(**BODY)
        with pytest.raises(anthropic.AuthenticationError, match="ANTHROPIC_API_KEY"):
            connect("anthropic", http).messages.create(max_tokens=10, **BODY)


def test_credentials_that_can_not_be_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    class Source:
        def get(self) -> Any:
            raise InputError("AWS credentials could not be fetched: run aws sso login")

    endpoint = resolve("bedrock/m", {"AWS_REGION": "us-east-1", "AWS_BEARER_TOKEN_BEDROCK": "x"})
    signed = msgspec.structs.replace(endpoint, key=None, signer=Source())
    monkeypatch.setattr("segue.transport.settings.resolve", lambda *args: signed)
    with (
        client("bedrock/m", envelope_keys=KEYS) as http,
        pytest.raises(openai.AuthenticationError, match="aws sso login"),
    ):
        connect("openai", http).chat.completions.create(**BODY)

    async def talk() -> None:
        async with async_client("bedrock/m", envelope_keys=KEYS) as http:
            await connect("openai", http).chat.completions.create(**BODY)

    with pytest.raises(openai.AuthenticationError, match="aws sso login"):
        asyncio.run(talk())


def test_report_is_part_of_the_response() -> None:
    with (
        start("anthropic", script="say Hi.\n---\nsay Hi.") as emulator,
        sync_client(httpx2, "upstream/claude-sonnet-5", **options_for({"upstream": emulator})) as http,
    ):
        response = http.post(CHAT, json={**BODY, "logit_bias": {"1": 2}})
        report = response.extensions["segue"]
        assert report.target == "anthropic"
        assert any("logit_bias" in finding.message for finding in report.findings)
        with http.stream("POST", CHAT, json={**BODY, "stream": True, "seed": 3}) as streamed:
            streamed.read()
            assert any("seed" in finding.message for finding in streamed.extensions["segue"].findings)


def test_dialect_by_host_or_setting() -> None:
    """A client of Kimi echoes `reasoning_content`, and gets it back, on the path of OpenAI's API."""
    script = "think A thought.\nsay Hi."
    for url, caller in (("https://api.moonshot.ai/v1/chat/completions", None), (CHAT, "kimi")):
        with start("anthropic", script=script) as emulator:
            options = options_for({"upstream": emulator}, caller=caller)
            with sync_client(httpx2, "upstream/claude-sonnet-5", **options) as http:
                body = {**BODY, "thinking": {"type": "enabled"}}
                message = http.post(url, json=body).json()["choices"][0]["message"]
        assert message["reasoning_content"] == "A thought."


# --------------------------------------------------------------------------------------------------------- pass-through


@LIBRARIES
def test_other_requests_are_rejected_or_passed_through(library: Any) -> None:
    with start("anthropic") as emulator, serve_canned([{"data": [1, 2]}] * 2) as vendor:
        options = options_for({"upstream": emulator})
        url = f"{vendor.url}/v1/embeddings"
        with sync_client(library, "upstream/claude-sonnet-5", **options) as http:
            assert http.post(url, json={"input": "x"}).status_code == 404
        assert vendor.requests == []
        with sync_client(library, "upstream/claude-sonnet-5", pass_through=True, **options) as http:
            assert http.post(url, json={"input": "x"}, headers={"x-own": "1"}).json() == {"data": [1, 2]}

        async def talk() -> Any:
            async with loop_client(library, "upstream/claude-sonnet-5", pass_through=True, **options) as http:
                return (await http.post(url, json={"input": "x"})).json()

        assert asyncio.run(talk()) == {"data": [1, 2]}
    assert [path for path, _ in vendor.requests] == ["/v1/embeddings"] * 2
    assert emulator.requests == []


# --------------------------------------------------------------------------------------------------------- cancellation


class Watched:
    """A server that streams without end, and waits for the client to leave."""

    def __init__(self) -> None:
        self.reached, self.left = threading.Event(), threading.Event()
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.reached.set()
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
        chunk = (
            b'data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"word "}}]}\n\n'
        )
        writer.write(head + chunk)
        try:
            while True:
                writer.write(chunk)
                await writer.drain()
                await asyncio.sleep(0.005)
        except OSError:
            self.left.set()
        finally:
            writer.close()


@pytest.fixture
def watched() -> Any:
    server, ready, stop = Watched(), threading.Event(), threading.Event()

    async def listen() -> None:
        async with await asyncio.start_server(server.serve, "127.0.0.1", 0) as listener:
            server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
            ready.set()
            while not stop.is_set():
                await asyncio.sleep(0.01)

    thread = threading.Thread(target=lambda: asyncio.run(listen()))
    thread.start()
    ready.wait(100)
    yield server
    stop.set()
    thread.join(100)


@LIBRARIES
def test_closed_response_closes_the_request_to_the_provider(watched: Watched, library: Any) -> None:
    with sync_client(library, "upstream/m", **options_for({"upstream": watched.url})) as http:
        with http.stream(
            "POST", "https://x.example/v1/messages", json={**BODY, "max_tokens": 9, "stream": True}
        ) as one:
            assert "message_start" in next(one.iter_text())
        assert watched.left.wait(100)


@LIBRARIES
@pytest.mark.parametrize("stream", [False, True])
def test_cancelled_task_closes_the_request_to_the_provider(watched: Watched, library: Any, stream: bool) -> None:
    """Streamed, the task is cancelled between two chunks; whole, while it waits for the reply."""

    async def talk() -> None:
        async with loop_client(library, "upstream/m", **options_for({"upstream": watched.url})) as http:
            begun = asyncio.Event()

            async def read() -> None:
                body = {**BODY, "max_tokens": 9, "stream": stream}
                async with http.stream("POST", "https://x.example/v1/messages", json=body) as response:
                    async for _ in response.aiter_text():
                        begun.set()

            task = asyncio.create_task(read())
            assert await asyncio.to_thread(watched.reached.wait, 30)
            if stream:
                await asyncio.wait_for(begun.wait(), 100)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(watched.left.wait, 30)

    asyncio.run(talk())


# -------------------------------------------------------------------------------------------------------------- threads


def test_transport_is_shared_by_threads() -> None:
    with start("anthropic") as emulator:
        options = options_for({"upstream": emulator})
        with sync_client(httpx2, "upstream/claude-sonnet-5", **options) as http, ThreadPoolExecutor(8) as pool:
            replies = list(pool.map(lambda _: http.post(CHAT, json=BODY), range(24)))
    assert {reply.status_code for reply in replies} == {200}
    assert len({reply.json()["id"] for reply in replies}) <= 24
