"""Servers that no emulator covers: garbage, HTML pages, stream errors, certificates, proxies, rejections."""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import json
import socket
import ssl
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from segue.bridge import provider_errors
from segue.bridge.providers import Endpoint, Secret
from segue.canonical.blocks import Text
from segue.canonical.request import Reply, Usage
from segue.errors import ProviderError, ProviderErrorCause
from segue.models import parse_model
from segue.render.report import Report
from segue.runtime.events import RetryScheduled
from segue.runtime.provider_client import ProviderClient, RetryPolicy, Timeouts
from segue.wire.base import ApiError, RenderContext
from segue.wire.ids import IdMap
from segue.wire.names import ANY_NAME, NameMap
from segue.wire.registry import WIRES
from segue.wire.stream.events import BlockStart, Failed, Finished, ReplyStart, TextDelta, reply_events
from tests.runtime.raw_server import HANG, RESET, RawServer, chunked_response, http_response, serve_raw
from tests.runtime.test_provider_client import (
    KEY,
    VARIABLES,
    every_api,
    make_endpoint,
    render_request,
    request_reply,
    run,
)

NOW = datetime(2026, 11, 15, 12, 0, 0, tzinfo=UTC)
TEXT_CHUNK = (
    b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'
    b'{"role":"assistant","content":"Hello."},"finish_reason":null}]}\n\n'
)
END = (
    b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},'
    b'"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)
GOOD = chunked_response(TEXT_CHUNK, END)


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("segue.runtime.provider_client.sleep", lambda _: asyncio.sleep(0))


def request_raw(*answers: bytes, retries: list[RetryScheduled] | None = None, **options: Any) -> tuple[Any, RawServer]:
    """What came of one request: the reply or the error, and the server."""

    async def play() -> tuple[Any, RawServer]:
        async with serve_raw(*answers) as server, ProviderClient(retry_policy=RetryPolicy(3), **options) as upstream:
            try:
                return await request_reply(upstream, make_endpoint("openai-chat", server.url), retries), server
            except ProviderError as error:
                return error, server

    ended, server = run(play())
    assert "\n" not in str(ended)
    assert KEY not in str(ended)
    return ended, server


def request_raw_error(*answers: bytes, **options: Any) -> ProviderError:
    error, _ = request_raw(*answers, **options)
    assert isinstance(error, ProviderError)
    return error


# ----------------------------------------------------------------------------------------------------- what is no reply


@pytest.mark.parametrize(
    ("bad", "cause", "requests", "expected"),
    [
        (b"\x16\x03\x01 not HTTP\r\n\r\nconnection: close", "broken", 1, "not a valid HTTP response"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"a" * (1 << 20) + b"\r\n\r\n" + RESET, "broken", 1, "not a valid HTTP response"),
        (
            http_response(b"<html><title>Log in</title></html>", kind="text/html"),
            "broken",
            1,
            "check that http://127.0.0.1",
        ),
        (http_response(b"", kind="text/event-stream"), "network", 3, "the response is empty"),
        (chunked_response(b"data: not JSON\n\n"), "broken", 1, "not JSON"),
        (
            chunked_response(b'data: {"hello": "world"}\n\n', b"data: [DONE]\n\n"),
            "broken",
            1,
            "did not send a valid openai-chat reply",
        ),
        (chunked_response(b": keep-alive\n\n", b": keep-alive\n\n"), "broken", 1, "contains no reply"),
        (RESET, "network", 3, "can't be reached"),
        (chunked_response(b": keep-alive\n\n", end=b"") + RESET, "network", 3, "closed before the end of the response"),
        (
            chunked_response(TEXT_CHUNK, end=b"") + RESET,
            "broken",
            1,
            "broke off: the connection was closed before the end of the response",
        ),
        (chunked_response(TEXT_CHUNK, end=b"zz\r\n") + RESET, "broken", 1, "somebody/gpt-4.1"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n" + TEXT_CHUNK + RESET,
            "broken",
            1,
            "closed before the end of the response",
        ),
        (
            http_response(b"", "location: https://evil.example/v1", status="307 Elsewhere"),
            "refused",
            1,
            "https://evil.example",
        ),
        (
            http_response(b"<html><title>Bad gateway</title>", status="502 Bad"),
            "overloaded",
            3,
            "got a web page: Bad gateway",
        ),
        (
            http_response(b"upstream\x1b[31m  broke\n", status="500 Oops", kind="text/plain"),
            "overloaded",
            3,
            "upstream [31m broke",
        ),
        (http_response(b"[]", status="418 Teapot"), "refused", 1, "(418)"),
        (b"HTTP/1.1 503 Busy\r\ncontent-length: 999\r\n\r\n{" + RESET, "overloaded", 3, "(503)"),
    ],
)
def test_every_response_error_has_a_cause(bad: bytes, cause: ProviderErrorCause, requests: int, expected: str) -> None:
    error, server = request_raw(bad)
    assert isinstance(error, ProviderError)
    assert error.cause == cause
    assert len(server.heads) == requests
    assert expected in str(error)
    assert str(error).isprintable()


def test_a_long_head_is_no_fault() -> None:
    long = GOOD.replace(b"\r\n", b"\r\nx-policy: " + b"a" * 60_000 + b"\r\n", 1)
    assert request_raw(long)[0].text == "Hello."


def test_redirects_are_not_followed_with_the_key() -> None:
    async def play() -> None:
        async with serve_raw(GOOD) as other, ProviderClient() as upstream:
            moved = http_response(b"", f"location: {other.url}/chat/completions", status="308 Moved")
            async with serve_raw(moved) as server:
                with pytest.raises(ProviderError):
                    await request_reply(upstream, make_endpoint("openai-chat", server.url))
            assert other.heads == []

    run(play())


# --------------------------------------------------------------------------------------------------- errors in a stream


def encode_stream(api: str, *events: Any) -> bytes:
    wire = WIRES[api]
    names = RenderContext(
        IdMap(wire.id_scheme(parse_model(wire.default_model)), provider=wire.provider), NameMap(ANY_NAME), Report()
    )
    renderer = wire.stream_renderer(names, wire.default_model)
    return b"".join(renderer.render((event,)) for event in events)


@every_api
@pytest.mark.parametrize("whole", [True, False], ids=["at-once", "in-pieces"])
def test_error_before_the_first_delta_is_retried(api: str, *, whole: bool) -> None:
    retries: list[RetryScheduled] = []
    busy = ApiError(529, "Overloaded", kind="overloaded_error", code="rate_limit_exceeded")
    first = encode_stream(api, ReplyStart("r", "m", 1), Failed(busy))

    async def play() -> tuple[Any, RawServer]:
        good = encode_stream(api, *reply_events(_hello()))
        pieces = [first] if whole else [first[at : at + 7] for at in range(0, len(first), 7)]
        async with serve_raw(chunked_response(*pieces), chunked_response(good)) as server, ProviderClient() as upstream:
            return await request_reply(upstream, make_endpoint(api, server.url), retries), server

    got, server = run(play())
    assert got.text == "Hello."
    assert len(server.heads) == 2
    assert len(retries) == 1


def _hello() -> Reply:
    return Reply((Text("Hello."),), "stop", Usage(input=3, output=2), id="r", model="m", created=1)


@every_api
def test_error_after_the_first_delta_is_passed_on(api: str) -> None:
    busy = ApiError(529, "Overloaded", kind="overloaded_error")
    retries = encode_stream(api, ReplyStart("r", "m", 1), BlockStart(0, Text("")), TextDelta(0, "Hel"), Failed(busy))

    async def play() -> tuple[Any, RawServer]:
        async with serve_raw(chunked_response(retries)) as server, ProviderClient() as upstream:
            return await request_reply(upstream, make_endpoint(api, server.url)), server

    got, server = run(play())
    assert got.finish == "error"
    assert len(server.heads) == 1


@pytest.mark.parametrize(
    ("body", "cause", "requests"),
    [
        (b'{"error":{"message":"Provider returned error","code":502}}', "overloaded", 3),
        (b'{"error":{"message":"No credit","code":402}}', "rate-limited", 1),
        (b'{"error":{"message":"Slow down","type":"rate_limit_error"}}', "rate-limited", 3),
    ],
)
def test_an_error_that_comes_with_a_good_status(body: bytes, cause: ProviderErrorCause, requests: int) -> None:
    for retries in (http_response(body), chunked_response(b"data: " + body + b"\n\n")):
        error, server = request_raw(retries)
        assert isinstance(error, ProviderError)
        assert (error.cause, len(server.heads)) == (cause, requests)


def test_empty_reply_is_a_reply() -> None:
    empty = encode_stream("openai-chat", ReplyStart("r", "m", 1), Finished("stop"))
    reply, server = request_raw(chunked_response(empty))
    assert (reply.text, reply.finish, len(server.heads)) == ("", "stop", 1)


# ------------------------------------------------------------------------------------------------------------- timeouts


def test_signs_of_life_are_no_first_token() -> None:
    hangs = chunked_response(b": keep-alive\n\n", end=b"") + HANG
    error, server = request_raw(hangs, timeouts=Timeouts(first_token=0.2))
    assert (error.cause, len(server.heads)) == ("timeout", 2)
    assert "no first token within 0.2 s" in str(error)


def test_silence_in_the_middle() -> None:
    error, server = request_raw(chunked_response(TEXT_CHUNK, end=b"") + HANG, timeouts=Timeouts(idle=0.2))
    assert (error.cause, len(server.heads)) == ("timeout", 1)
    assert "no more data within 0.2 s" in str(error)


def test_a_connection_that_is_never_made() -> None:
    async def play() -> ProviderError:
        # A queue of one that is full: nobody takes connections from it.
        with socket.create_server(("127.0.0.1", 0), backlog=0) as deaf:
            place = deaf.getsockname()
            waiting = [socket.socket() for _ in range(4)]
            try:
                for one in waiting:
                    one.setblocking(False)
                    one.connect_ex(place)
                async with ProviderClient(retry_policy=RetryPolicy(2), timeouts=Timeouts(connect=0.2)) as upstream:
                    with pytest.raises(ProviderError) as raised:
                        await request_reply(upstream, make_endpoint("openai-chat", f"http://127.0.0.1:{place[1]}"))
            finally:
                for one in waiting:
                    one.close()
        return raised.value

    assert run(play()).cause == "timeout"


# ---------------------------------------------------------------------------------------------------------- connections


def test_a_connection_is_used_again() -> None:
    async def play() -> int:
        async with serve_raw(GOOD) as server, ProviderClient() as upstream:
            for _ in range(5):
                await request_reply(upstream, make_endpoint("openai-chat", server.url))
            return server.connections

    assert run(play()) == 1


@pytest.mark.parametrize("hangs", [HANG, chunked_response(TEXT_CHUNK, end=b"") + HANG], ids=["before", "within"])
def test_cancelled_request_disconnects(hangs: bytes) -> None:
    """The provider sees it, and can stop to think."""

    async def play() -> None:
        async with serve_raw(hangs) as server, ProviderClient() as upstream:
            task = asyncio.create_task(request_reply(upstream, make_endpoint("openai-chat", server.url)))
            await server.request_received.wait()
            await asyncio.sleep(0.02)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await server.disconnected.wait()

    run(play())


def test_a_stream_that_is_closed_early_gives_its_connection_up() -> None:
    async def play() -> None:
        async with serve_raw(chunked_response(TEXT_CHUNK, end=b"") + HANG) as server, ProviderClient() as upstream:
            request = render_request("openai-chat")
            target = make_endpoint("openai-chat", server.url)
            stream = await upstream.open(target, request.fragments, request.open_reader)
            assert await anext(stream)
            await stream.aclose()
            await stream.aclose()
            with pytest.raises(StopAsyncIteration):
                await anext(stream)
            await server.disconnected.wait()

    run(play())


@pytest.mark.parametrize(
    "pieces", [[b"{}"], [b'{"a":"', b"x" * 70_000, b'"}'], [b"[", *[b"1234567,"] * 200_000, b"0]"]]
)
def test_a_body_arrives_whole_and_with_its_length(pieces: list[bytes]) -> None:
    async def play() -> RawServer:
        async with serve_raw(RESET, GOOD) as server, ProviderClient() as upstream:
            open_reader = render_request("openai-chat").open_reader
            stream = await upstream.open(make_endpoint("openai-chat", server.url), pieces, open_reader)
            await stream.aclose()
            return server

    server = run(play())
    # Also the second time.
    assert server.bodies == [b"".join(pieces)] * 2
    assert server.header("content-length") == str(len(b"".join(pieces)))
    assert server.header("transfer-encoding") is None


def test_request_headers() -> None:
    _, server = request_raw(GOOD)
    assert server.header("authorization") == f"Bearer {KEY}"
    assert (server.header("user-agent") or "").startswith("segue/")
    assert server.header("accept-encoding") == "identity"
    assert server.header("cookie") is None


# -------------------------------------------------------------------------------------------------------------- proxies


def request_through(monkeypatch: pytest.MonkeyPatch, proxy: str, url: str = "http://provider.example/v1") -> Any:
    async def play() -> Any:
        async with ProviderClient(retry_policy=RetryPolicy(1)) as upstream:
            try:
                return await request_reply(upstream, make_endpoint("openai-chat", url))
            except ProviderError as error:
                return error

    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("http_proxy", proxy)
    monkeypatch.setenv("https_proxy", proxy)
    return play()


def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine provider.example login me password hunter22\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))

    async def play() -> RawServer:
        async with serve_raw(GOOD) as server:
            reply = await request_through(monkeypatch, server.url)
            assert reply.text == "Hello."
            return server

    server = run(play())
    assert server.heads[0].startswith("POST http://provider.example/v1/chat/completions ")
    # The key goes out, and not what somebody keeps for that host.
    assert server.header("authorization") == f"Bearer {KEY}"


def test_this_machine_needs_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> None:
        async with serve_raw(GOOD) as server:
            reply = await request_through(monkeypatch, "http://127.0.0.1:9", server.url)
            assert reply.text == "Hello."

    run(play())


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_proxies_that_do_not_work_are_named(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> list[ProviderError]:
        url = f"{scheme}://provider.example/v1"
        return [
            await request_through(monkeypatch, proxy, url) for proxy in ("http://127.0.0.1:9", "socks5://127.0.0.1:9")
        ]

    gone, unknown = run(play())
    assert (gone.cause, gone.retryable) == ("network", False)
    assert "can't connect to the proxy: connection refused" in str(gone)
    assert (unknown.cause, unknown.retryable) == ("network", False)
    assert "socks5://" in str(unknown)


def test_a_proxy_that_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> ProviderError:
        async with serve_raw(http_response(b"", status="407 Proxy Authentication Required")) as server:
            return await request_through(monkeypatch, server.url, "https://provider.example/v1")

    error = run(play())
    assert (error.cause, error.retryable) == ("network", False)
    assert "the proxy returned 407" in str(error)


# ------------------------------------------------------------------------------------------------------------------ TLS


def certificate(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """A server context with an untrusted certificate, and its file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    day = dt.timedelta(days=1)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime.now(UTC) - day)
        .not_valid_after(datetime.now(UTC) + day)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = folder / "certificate.pem"
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file.write_bytes(made.public_bytes(pem) + private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context, file


def test_unknown_certificate(tmp_path: Path) -> None:
    async def play() -> ProviderError:
        context, _ = certificate(tmp_path)
        async with serve_raw(GOOD, tls=context) as server, ProviderClient() as upstream:
            with pytest.raises(ProviderError) as raised:
                await request_reply(upstream, make_endpoint("openai-chat", server.url))
            assert server.heads == []
        return raised.value

    error = run(play())
    assert (error.cause, error.retryable) == ("network", False)
    assert "certificate verification failed: self" in str(error)
    assert "SSL_CERT_FILE" in str(error)


def test_server_without_tls() -> None:
    async def play() -> ProviderError:
        async with (
            serve_raw(GOOD) as server,
            ProviderClient(retry_policy=RetryPolicy(1), timeouts=Timeouts(connect=0.3)) as upstream,
        ):
            with pytest.raises(ProviderError) as raised:
                await request_reply(upstream, make_endpoint("openai-chat", server.url.replace("http:", "https:")))
        return raised.value

    assert run(play()).cause in ("network", "timeout")


# ------------------------------------------------------------------------------------------------------------- refusals


def make_endpoint_for(api: str = "openai-chat", **more: Any) -> Endpoint:
    return Endpoint("openai", "gpt-5.6-tera", api, "https://x.example", key=Secret(KEY), variables=VARIABLES, **more)


@pytest.mark.parametrize(
    ("api", "status", "body", "cause", "retryable", "expected"),
    [
        (
            "openai-chat",
            401,
            {"error": {"message": f"Incorrect API key provided: {KEY}"}},
            "auth",
            False,
            "[key removed]",
        ),
        (
            "openai-chat",
            401,
            {"error": {"message": "bad sk-proj-abcdefghijklmnop1234"}},
            "auth",
            False,
            "[API key removed]",
        ),
        ("openai-chat", 403, {"error": {"message": "Country not supported"}}, "auth", False, "Country not supported"),
        (
            "openai-responses",
            404,
            {"error": {"message": "The model `x` does not exist", "code": "model_not_found"}},
            "missing",
            False,
            "did you mean gpt-5.6-terra",
        ),
        ("openai-chat", 404, {"detail": "Not Found"}, "missing", False, "check the base URL https://x.example"),
        ("mistral", 400, {"message": "Invalid model: m", "type": "invalid_model"}, "missing", False, "Invalid model"),
        ("deepseek", 400, {"error": {"message": "Model Not Exist"}}, "missing", False, "Model Not Exist"),
        ("bedrock", 400, {"message": "The provided model identifier is invalid."}, "missing", False, "identifier"),
        (
            "openai-chat",
            429,
            {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}},
            "rate-limited",
            False,
            "has no credit left",
        ),
        ("deepseek", 402, {"error": {"message": "Insufficient Balance"}}, "rate-limited", False, "has no credit left"),
        (
            "anthropic",
            400,
            {"type": "error", "error": {"type": "invalid_request_error", "message": "Your credit balance is too low"}},
            "rate-limited",
            False,
            "has no credit left",
        ),
        (
            "kimi",
            429,
            {"error": {"type": "exceeded_current_quota_error", "message": "q"}},
            "rate-limited",
            False,
            "credit",
        ),
        ("qwen", 400, {"error": {"code": "Arrearage", "message": "Access denied"}}, "rate-limited", False, "credit"),
        (
            "gemini",
            429,
            {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "You exceeded your current quota"}},
            "rate-limited",
            True,
            "is rate limited",
        ),
        ("openai-chat", 408, {"error": {"message": "slow"}}, "timeout", True, "(408)"),
        ("openai-chat", 409, {"error": {"message": "lock"}}, "overloaded", True, "(409)"),
        ("openai-chat", 500, {"error": {"message": "x"}}, "overloaded", True, "has an internal error"),
        ("openai-chat", 504, {"error": {"message": "x"}}, "timeout", True, "(504)"),
        (
            "anthropic",
            529,
            {"type": "error", "error": {"type": "overloaded_error", "message": "O"}},
            "overloaded",
            True,
            "O",
        ),
        ("openai-chat", 413, {"error": {"message": "Large"}}, "refused", False, "too long"),
        (
            "openai-chat",
            400,
            {"error": {"message": "maximum context length is 8192 tokens", "code": "context_length_exceeded"}},
            "refused",
            False,
            "compress the conversation",
        ),
        ("anthropic", 400, {"error": {"message": "prompt is too long: 210000 tokens"}}, "refused", False, "compress"),
        ("openai-chat", 400, {"error": {"message": "Unknown parameter: 'x'"}}, "refused", False, "segue diag shows"),
        (
            "gemini",
            400,
            {"error": {"message": "A call of the model turn was not found"}},
            "refused",
            False,
            "segue diag",
        ),
        (
            "openai-chat",
            422,
            {"detail": [{"loc": ["body", "x"], "msg": "Field required"}]},
            "refused",
            False,
            "x: Field",
        ),
    ],
)
def test_error_status_mapping(
    api: str, status: int, body: Any, cause: ProviderErrorCause, *, retryable: bool, expected: str
) -> None:
    error = provider_errors.response_error(make_endpoint_for(api), status, {}, msgspec.json.encode(body), now=NOW)
    assert (error.cause, error.retryable, error.status) == (cause, retryable, status)
    assert expected in str(error)
    assert KEY not in str(error)
    assert str(error).startswith(f"openai/gpt-5.6-tera {error.brief} ({status}): ")


@pytest.mark.parametrize(
    ("kind", "status", "cause"),
    [
        ("ThrottlingException", 429, "rate-limited"),
        ("ModelNotReadyException:http://internal.amazon.com/", 429, "overloaded"),
        ("ModelErrorException", 424, "overloaded"),
        ("ModelTimeoutException", 408, "timeout"),
        ("AccessDeniedException", 403, "auth"),
        ("ExpiredTokenException", 403, "auth"),
        ("ResourceNotFoundException", 404, "missing"),
        ("ValidationException", 400, "refused"),
    ],
)
def test_amazon_names_its_errors_in_a_header(kind: str, status: int, cause: str) -> None:
    error = provider_errors.response_error(
        make_endpoint_for("bedrock"), status, {"x-amzn-errortype": kind}, b'{"message":"No."}', now=NOW
    )
    assert error.cause == cause


def test_retry_header_overrides_the_status() -> None:
    for asked, wanted in (("true", True), ("false", False)):
        for status in (400, 500):
            assert (
                provider_errors.response_error(
                    make_endpoint_for(), status, {"x-should-retry": asked}, b"{}", now=NOW
                ).retryable
                == wanted
            )


@pytest.mark.parametrize(
    ("headers", "wanted"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Sun, 15 Nov 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Sun, 15 Nov 2026 11:00:00 GMT"}, 0.0),
        # The provider's clock is the one that counts.
        ({"retry-after": "Sun, 15 Nov 2026 12:00:30 GMT", "date": "Sun, 15 Nov 2026 12:00:20 GMT"}, 10.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after-ms": "x", "retry-after": "2"}, 2.0),
    ],
)
def test_how_long_to_wait(headers: dict[str, str], wanted: float | None) -> None:
    assert provider_errors.parse_retry_after(headers, now=NOW) == wanted
    assert provider_errors.response_error(make_endpoint_for(), 429, headers, b"{}", now=NOW).retry_after == wanted


def test_google_retry_delay_is_read_from_the_body() -> None:
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}
    body = {"error": {"code": 429, "message": "Quota", "status": "RESOURCE_EXHAUSTED", "details": [info]}}
    assert (
        provider_errors.response_error(
            make_endpoint_for("gemini"), 429, {}, msgspec.json.encode([body]), now=NOW
        ).retry_after
        == 34.5
    )


def test_late_payment_error_is_temporary() -> None:
    error = provider_errors.response_error(
        make_endpoint_for(), 402, {"retry-after": "5"}, b'{"error":{"message":"in flight"}}', now=NOW
    )
    assert error.retryable


def make_failure(cause: ProviderErrorCause = "overloaded", **more: Any) -> ProviderError:
    return ProviderError("x", cause=cause, **more)


def test_retry_policy() -> None:
    patience = RetryPolicy(attempts=6, first_delay=1.0, max_delay=5.0, max_retry_after=60.0)
    assert [patience.delay_after(count, make_failure(), 1.0) for count in range(1, 7)] == [
        1.0,
        2.0,
        4.0,
        5.0,
        5.0,
        None,
    ]
    assert [patience.delay_after(1, make_failure(), drawn) for drawn in (0.0, 0.5, 1.0)] == [0.5, 0.75, 1.0]
    assert patience.delay_after(1, make_failure(retry_after=60.0), 0.0) == 60.0
    assert patience.delay_after(1, make_failure(retry_after=60.1), 0.0) is None
    assert patience.delay_after(1, make_failure("refused"), 1.0) is None
    assert patience.delay_after(1, make_failure("broken"), 1.0) is None
    assert [patience.delay_after(count, make_failure("timeout"), 1.0) for count in (1, 2)] == [1.0, None]
    assert patience.delay_after(2, make_failure("timeout", status=504), 1.0) == 2.0


def test_error_reports_whether_it_is_temporary() -> None:
    passing = {"rate-limited", "overloaded", "network", "timeout", "broken"}
    for cause in ("auth", "key", "missing", "refused", *passing):
        assert make_failure(cause).retryable == (cause in passing)
        assert make_failure(cause).brief
    broken = ProviderError.broken("openai", "m", "it\nwent")
    assert (broken.cause, broken.provider, broken.model, str(broken)) == (
        "broken",
        "openai",
        "m",
        "the reply of openai/m broke off: it went",
    )


def test_the_client_is_loaded_when_it_is_needed() -> None:
    late = {"aiohttp", "botocore", "genai_prices"}
    code = f"import sys, segue.runtime.provider_client; print(*({late} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == ""


def test_denied_access_is_not_a_rejected_key() -> None:
    body = {"error": {"message": "Your organization must be verified to use the model `o9`.", "code": None}}
    for status in ("403 Forbidden", "400 Bad Request"):
        error = request_raw_error(http_response(json.dumps(body).encode(), status=status))
        assert error.cause == "auth"
        assert "denied access" in str(error)
        assert "rejected the key" not in str(error)
    assert "rejected the key" in str(request_raw_error(http_response(json.dumps(body).encode(), status="401 No")))


def test_short_key_is_not_masked_in_messages() -> None:
    assert Secret("the").mask_in("the model") == "the model"
    assert Secret("the-secret").mask_in("the-secret is wrong") == "[key removed] is wrong"


def test_broken_reply_names_its_reason_once() -> None:
    broken = ProviderError.broken("openai", "m", "the connection was lost")
    assert broken.break_reason == "the connection was lost"
    assert str(broken).count("broke off") == 1
