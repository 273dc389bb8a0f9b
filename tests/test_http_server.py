"""The HTTP server of gateway and emulator: ambiguous, oversized and slow requests are refused, and real clients work.

Everything is tested with both parsers and with both users of the server.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import h11
import httptools
import httpx2
import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

import segue.emulator
from segue import http_server
from segue.emulator import Emulator
from segue.emulator import server as emulator_server
from segue.http_framing import RefusalError, RequestReader
from segue.http_server import HttpLimits, JoiningTransport, find_parser
from tests.gateway.harness import running_gateway

BODY = json.dumps({"model": "gpt-4.1", "messages": [{"role": "user", "content": "Hi"}]}).encode()
PATH = "/v1/chat/completions"
HOST = b"Host: 127.0.0.1\r\nAuthorization: Bearer k\r\n"
START = f"POST {PATH} HTTP/1.1\r\n".encode() + HOST + b"Content-Type: application/json\r\n"
WHOLE = START + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
CHUNKED = START + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n"
HIDDEN = b"GET /v1/models HTTP/1.1\r\n" + HOST + b"\r\n"
PARSERS = {"h11": H11Protocol, "httptools": HttpToolsProtocol}
MAX_BODY = 2**28


class Served(NamedTuple):
    """A running server. Requests that reach it are answered by the provider; its limits may be changed."""

    url: str
    port: int
    provider: Emulator
    limits: SimpleNamespace


@contextmanager
def served(user: str, parser: str) -> Generator[Served]:
    # A refused client can still send for so long, also on a machine that stands still for some seconds.
    values = {**msgspec.structs.asdict(HttpLimits(linger_seconds=100.0)), "body_bytes": MAX_BODY, "body_seconds": 300.0}
    limits = SimpleNamespace(**values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http_server, "find_parser", lambda: PARSERS[parser])
        if user == "emulator":
            patch.setattr(emulator_server, "_LIMITS", limits)
            with segue.emulator.start("openai-chat") as running:
                yield Served(running.url, running.port, running, limits)
        else:
            with running_gateway({"openai-chat": ""}, connections=limits) as gateway:
                port = int(gateway.url.rpartition(":")[2])
                yield Served(gateway.url, port, gateway.emulators["openai-chat"], limits)


@pytest.fixture(
    scope="module", params=[(user, parser) for user in ("emulator", "gateway") for parser in PARSERS], ids="-".join
)
def server(request: pytest.FixtureRequest) -> Generator[Served]:
    with served(*request.param) as running:
        yield running


def connect(server):
    # The limit only ends a test that hangs.
    return socket.create_connection(("127.0.0.1", server.port), timeout=100)


def exchange(server, *parts):
    """Send bytes on a new connection and return what comes back until the server closes it."""
    with connect(server) as client:
        for part in parts:
            client.sendall(part)
        return b"".join(iter(lambda: client.recv(65_536), b""))


def read_response(client):
    """Read one response from a connection that stays open, and return its status."""
    parser = h11.Connection(h11.CLIENT)
    parser.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
    parser.send(h11.EndOfMessage())
    status = 0
    while not isinstance(event := parser.next_event(), h11.EndOfMessage):
        if event is h11.NEED_DATA:
            parser.receive_data(client.recv(65_536))
        elif isinstance(event, h11.Response):
            status = event.status_code
    return status


def statuses(answer):
    return [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]]


def parse_refusal(answer):
    head, _, text = answer.partition(b"\r\n\r\n")
    assert b"connection: close" in head.lower()
    return int(head.split()[1]), text.decode()


REFUSED = {
    "length and chunked": (b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "sent together"),
    "chunked and length": (b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400, "sent together"),
    "two lengths": (b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400, "more than once"),
    "the same length twice": (b"Content-Length: 5\r\ncontent-length: 5\r\n\r\nhello", 400, "more than once"),
    "list of lengths": (b"Content-Length: 5, 5\r\n\r\nhello", 400, "not a number of bytes"),
    "length with a plus": (b"Content-Length: +5\r\n\r\nhello", 400, "not a number of bytes"),
    "negative length": (b"Content-Length: -5\r\n\r\n", 400, "not a number of bytes"),
    "length in hex": (b"Content-Length: 0x5\r\n\r\nhello", 400, "not a number of bytes"),
    "length with an underscore": (b"Content-Length: 1_0\r\n\r\n", 400, "not a number of bytes"),
    "length in other digits": ("Content-Length: ٥\r\n\r\n".encode(), 400, "not a number of bytes"),
    "no length": (b"Content-Length:\r\n\r\n", 400, "not a number of bytes"),
    "length of many digits": (b"Content-Length: %s\r\n\r\n" % (b"9" * 40), 400, "not a number of bytes"),
    "huge length": (b"Content-Length: 999999999999\r\n\r\n", 413, "the body has more than 268,435,456 bytes"),
    "gzip": (b"Transfer-Encoding: gzip\r\n\r\n", 501, "only supported Transfer-Encoding is chunked"),
    "gzip and chunked": (b"Transfer-Encoding: gzip, chunked\r\n\r\n", 501, "only supported"),
    "chunked twice": (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 501, "only supported"),
    "identity": (b"Transfer-Encoding: identity\r\n\r\n", 501, "only supported"),
    "odd chunked": (b"Transfer-Encoding: \x0bchunked\r\n\r\n", 400, "illegal header line"),
    "chunked and identity": (b"Transfer-Encoding: chunked, identity\r\n\r\n", 501, "only supported"),
    "bare LF after a header": (b"A: b\nContent-Length: 0\r\n\r\n", 400, "bare CR or LF"),
    "bare LF at the end": (b"A: b\r\n\n", 400, "bare CR or LF"),
    "bare CR in a value": (b"A: b\rContent-Length: 5\r\n\r\n", 400, "bare CR or LF"),
    "folded header": (b"A: b\r\n c\r\n\r\n", 400, "folded over several lines"),
    "folded with a tab": (b"Content-Length:\r\n\t5\r\n\r\nhello", 400, "folded over several lines"),
    "space before the colon": (b"Content-Length : 5\r\n\r\nhello", 400, "a space before it"),
    "tab before the colon": (b"Transfer-Encoding\t: chunked\r\n\r\n", 400, "a space before it"),
    "no colon": (b"A\r\n\r\n", 400, "no colon"),
    "NUL in a value": (b"A: b\x00c\r\n\r\n", 400, "illegal header line"),
    "name with a bracket": (b"A(b: c\r\n\r\n", 400, "illegal header line"),
    "no name": (b": c\r\n\r\n", 400, "illegal header line"),
    "two hosts": (b"Host: y\r\n\r\n", 400, "multiple Host"),
    "chunk size of garbage": (b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n", 400, "the body's chunks are invalid"),
    "negative chunk size": (b"Transfer-Encoding: chunked\r\n\r\n-5\r\n", 400, "the body's chunks are invalid"),
    "chunk size in hex": (b"Transfer-Encoding: chunked\r\n\r\n0x5\r\n", 400, "the body's chunks are invalid"),
    "chunk size of many digits": (b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 30 + b"\r\n", 400, "are invalid"),
    "chunk longer than its size": (b"Transfer-Encoding: chunked\r\n\r\n2\r\nabcd\r\n0\r\n\r\n", 400, "are invalid"),
    "endless chunk extension": (b"Transfer-Encoding: chunked\r\n\r\n5;" + b"a" * 70_000, 400, "chunks are invalid"),
    "headers too large": (b"A: %s\r\n\r\n" % (b"b" * 70_000), 431, "more than 65,536 bytes"),
    "headers without end": (b"A: %s" % (b"b" * 70_000), 431, "more than 65,536 bytes"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_request_that_is_ambiguous_or_too_large_is_refused(server, case):
    rest, status, reason = REFUSED[case]
    before = len(server.provider.requests)
    answered, text = parse_refusal(exchange(server, START + rest))
    assert (answered, reason in text) == (status, True), text
    assert len(server.provider.requests) == before


@pytest.mark.parametrize(
    ("request_", "status", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 400, "Host"),
        (b"GET / HTTP/1.1\nHost: x\n\n", 400, "bare CR or LF"),
        (b"GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "not part of HTTP/1.0"),
        (b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", 400, "illegal request line"),
        (b"GET / HTTP/9.9\r\nHost: x\r\n\r\n", 505, "neither HTTP/1.0 nor"),
        (b"\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", 400, ""),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "illegal request line"),
        (b" GET / HTTP/1.1\r\nHost: x\r\n\r\n", 400, "illegal request line"),
    ],
)
def test_a_request_that_is_not_http_is_refused(server, request_, status, reason):
    answered, text = parse_refusal(exchange(server, request_))
    assert (answered, reason in text) == (status, True), text


def test_nothing_behind_a_refused_request_is_read(server):
    before = len(server.provider.requests)
    smuggled = START + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + WHOLE
    answer = exchange(server, smuggled, WHOLE)
    assert answer.count(b"HTTP/1.1") == 1
    assert len(server.provider.requests) == before


def test_a_second_request_on_a_connection_is_checked_too(server):
    answer = exchange(server, WHOLE + START + b"Content-Length: +5\r\n\r\nhello")
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"HTTP/1.1 400 " in answer


# --------------------------------------------------------------------------------------------------------- time limits


@pytest.mark.parametrize("sent", [b"P", START, START + b"Content-Length: 0\r\n"])
def test_headers_have_a_time_limit(server, monkeypatch, sent):
    with connect(server) as client:
        client.sendall(WHOLE)
        read_response(client)
        # The limit begins with the first byte of a request, or with the connection.
        monkeypatch.setattr(server.limits, "head_seconds", 0.01)
        client.sendall(sent)
        answer = b"".join(iter(lambda: client.recv(65_536), b""))
    assert parse_refusal(answer) == (408, "the headers did not arrive in time\n")


@pytest.mark.parametrize("sent", [b"Content-Length: 50\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n5\r\nab"])
def test_a_body_has_a_time_limit(server, monkeypatch, sent):
    monkeypatch.setattr(server.limits, "body_seconds", 0.01)
    assert parse_refusal(exchange(server, START + sent)) == (408, "the body did not arrive in time\n")


def test_a_connection_without_a_request_is_closed(server, monkeypatch):
    monkeypatch.setattr(server.limits, "head_seconds", 0.01)
    assert exchange(server) == b""


def test_a_body_without_end_is_refused(server, monkeypatch):
    monkeypatch.setattr(server.limits, "body_bytes", 100_000)
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    status, text = parse_refusal(exchange(server, START + b"Transfer-Encoding: chunked\r\n\r\n", *([chunk] * 4)))
    assert (status, "the body has more than" in text) == (413, True)


# ------------------------------------------------------------------------------------------------------------- clients


@pytest.mark.parametrize("request_", [WHOLE, CHUNKED], ids=["length", "chunked"])
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_requests_in_parts_are_read(server, request_, size):
    parts = [request_[start : start + size] for start in range(0, len(request_), size)]
    with connect(server) as client:
        for _ in range(2):
            for part in parts:
                client.sendall(part)
            assert read_response(client) == 200


def test_expect_100_continue(server):
    with connect(server) as client:
        client.sendall(START + b"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n" % len(BODY))
        assert client.recv(65_536).startswith(b"HTTP/1.1 100 ")
        client.sendall(BODY)
        assert read_response(client) == 200


# As Node's undici sends a `fetch` with a text and with a stream.
UNDICI = [
    f"POST {PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: keep-alive\r\nauthorization: Bearer k\r\n"
    "content-type: application/json\r\naccept: */*\r\naccept-language: *\r\nsec-fetch-mode: cors\r\n"
    f"user-agent: node\r\naccept-encoding: gzip, deflate\r\ncontent-length: {len(BODY)}\r\n\r\n".encode()
    + BODY,
    f"POST {PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\nauthorization: Bearer k\r\n"
    "content-type: application/json\r\nuser-agent: node\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    + b"%x\r\n" % len(BODY)
    + BODY
    + b"\r\n0\r\n\r\n",
]


def test_clients_of_other_makers(server):
    with httpx2.Client(base_url=server.url, headers={"Authorization": "Bearer k"}) as client:
        assert client.post(PATH, content=BODY).status_code == 200
        assert client.post(PATH, content=iter([BODY[:10], BODY[10:]])).status_code == 200
    for request in UNDICI:
        with connect(server) as raw:
            raw.sendall(request)
            assert read_response(raw) == 200
    if (curl := shutil.which("curl")) is not None:
        for more in ([], ["-H", "Transfer-Encoding: chunked"], ["-H", "Expect: 100-continue"], ["--http1.0"]):
            command = [curl, "-s", "-o", "/dev/null", "-w", "%{http_code}", "-H", "Authorization: Bearer k", *more]
            command += ["-H", "Content-Type: application/json", "-d", BODY.decode(), server.url + PATH]
            assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "200"


# ---------------------------------------------------------------------------------------------------------- smuggling

SMUGGLED = {
    "both framings": START + b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" % (len(HIDDEN) + 5),
    "both framings in a valid body": CHUNKED.replace(b"Transfer", b"Content-Length: 4\r\nTransfer"),
    "bare LF": START.replace(b"\r\n", b"\n") + b"Content-Length: 0\n\n",
    "bare LF in the head": START + b"X: y\nContent-Length: 0\r\n\r\n",
    "bare CR": START + b"X: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "obs-fold": START + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "space before the colon": START + b"Content-Length : 0\r\n\r\n",
    "NUL": START + b"Content-Length: 0\x00\r\n\r\n",
    "two lengths": START + b"Content-Length: 0\r\nContent-Length: %d\r\n\r\n" % len(HIDDEN),
    "two hosts": START + b"Host: 127.0.0.1\r\nContent-Length: 0\r\n\r\n",
    "identity": START + b"Transfer-Encoding: identity\r\n\r\n",
    "vertical tab": START + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "plus": START + b"Content-Length: +0\r\n\r\n",
    "negative": START + b"Content-Length: -1\r\n\r\n",
    "chunk size overflow": START + b"Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n\r\n0\r\n\r\n",
    "chunk size with a sign": START + b"Transfer-Encoding: chunked\r\n\r\n+0\r\n\r\n",
    "bare LF after a chunk size": START + b"Transfer-Encoding: chunked\r\n\r\n0\n\r\n",
    "bare LF in a chunk extension": START + b"Transfer-Encoding: chunked\r\n\r\n0;a\n\r\n\r\n",
    "chunk longer than its size": START + b"Transfer-Encoding: chunked\r\n\r\n1\r\nab0\r\n\r\n",
    "bare LF in a trailer": START + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\n\r\n\r\n",
    "trailer without a colon": START + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + HIDDEN,
    "lower-case version": HIDDEN.replace(b"HTTP/1.1", b"http/1.1"),
    "unknown version": HIDDEN.replace(b"HTTP/1.1", b"HTTP/1.2"),
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/0.9": b"GET /v1/models\r\n",
    "CONNECT": HIDDEN.replace(b"GET /v1/models", b"CONNECT 127.0.0.1:80"),
    "URL of another host": HIDDEN.replace(b"/v1/models", b"http://evil/v1/models"),
    "no path": HIDDEN.replace(b"/v1/models", b"v1/models"),
    "fragment": HIDDEN.replace(b"/v1/models", b"/v1/models#x"),
}  # fmt: skip


@pytest.mark.parametrize("case", SMUGGLED)
def test_a_refused_request_is_the_last_of_its_connection(server, case):
    """There is one error, and no response for what is hidden behind it, nor for what is sent later."""
    found = statuses(exchange(server, SMUGGLED[case] + HIDDEN, HIDDEN))
    assert len(found) == 1
    assert found[0] in (400, 501, 505)


@pytest.mark.parametrize(
    "request_",
    [
        HIDDEN,
        WHOLE,
        CHUNKED,
        HIDDEN.replace(b"/v1/models", b"http://127.0.0.1/v1/models"),
        CHUNKED.replace(b"\r\n0\r\n", b"\r\n0;last\r\nContent-Length: 9\r\nHost: evil\r\n"),
        CHUNKED.replace(b"%x\r\n" % len(BODY), b"000%X;a=b;c\r\n" % len(BODY)),
        WHOLE.replace(b"\r\n\r\n", b"\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n"),
        WHOLE.replace(b"Content-Length: ", b"Content-Length: 000"),
    ],
    ids=["get", "length", "chunked", "whole URL", "trailers", "extensions", "upgrade", "zeros"],
)  # fmt: skip
def test_each_accepted_request_has_one_response(server, request_):
    closing = HIDDEN.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    assert statuses(exchange(server, request_ * 3 + closing)) == [200] * 4
    assert statuses(exchange(server, *([request_] * 3), closing)) == [200] * 4


def test_a_websocket_is_not_one_more_protocol(server):
    """What follows is neither read as frames nor answered twice."""
    upgrade = b"\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n"
    found = statuses(exchange(server, HIDDEN.replace(b"\r\n\r\n", upgrade) + HIDDEN))
    assert found in ([200], [426])


def test_an_error_in_a_body_that_was_answered_gives_no_second_response(server):
    """The client of this path is answered before its body is read, or the body is refused before the answer."""
    head = b"POST /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n"
    assert len(statuses(exchange(server, head, b"xyz\r\n" + HIDDEN, HIDDEN))) == 1


def test_the_faster_parser_is_used_if_it_is_installed(monkeypatch):
    assert find_parser() is HttpToolsProtocol
    monkeypatch.delitem(sys.modules, "uvicorn.protocols.http.httptools_impl")
    monkeypatch.setitem(sys.modules, "httptools", None)
    assert find_parser() is H11Protocol


# -------------------------------------------------------------------------------------------------------------- parser

pieces = st.lists(
    st.sampled_from(
        [b"POST / HTTP/1.1\r\n", b"GET /a?b HTTP/1.0\r\n", b"Host: x\r\n", b"Content-Length: 2\r\n", b"\r\n", b"\n",
         b"\r", b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip\r\n", b":",
         b"A: b\r\n", b" folded\r\n", b"A : b\r\n", b"2\r\nab\r\n", b"0\r\n\r\n", b"ab", b"\x00", b"Host: y\r\n",
         b"1;x=\xff\r\na\r\n", b"Connection: close, Upgrade\r\n", b"Upgrade: websocket\r\n",
         b"Expect: 100-continue\r\n", b"POST http://x/y HTTP/1.1\r\nHost: x\r\n",
         b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab",
         b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"]
    ) | st.binary(max_size=6),
    max_size=14,
)  # fmt: skip


class Read(NamedTuple):
    """What a strict reader passes on: whole requests in plain form, the rest, and the status of its refusal."""

    requests: list[bytes]
    rest: bytes
    refusal: int | None


def read(data, cuts=()):
    reader, requests, current = RequestReader(2**16, MAX_BODY), [], b""
    bounds = sorted({0, *(cut % (len(data) + 1) for cut in cuts), len(data)})
    for start, end in pairwise(bounds):
        reader.feed(data[start:end])
        try:
            while (piece := reader.read()) is not None:
                current += piece
                if reader.part == "head":
                    requests.append(current)
                    current = b""
        except RefusalError as refusal:
            return Read(requests, current, refusal.status)
    return Read(requests, current, None)


def parse_with_h11(data):
    """Return method, target, headers and body of a request."""
    parser = h11.Connection(h11.SERVER)
    parser.receive_data(data)
    request, body = parser.next_event(), b""
    assert isinstance(request, h11.Request)
    while isinstance(event := parser.next_event(), h11.Data):
        body += event.data
    assert isinstance(event, h11.EndOfMessage)
    assert parser.trailing_data[0] == b""
    headers = [(name.lower(), value) for name, value in request.headers]
    return request.method, request.target, headers, body


class Recorded:
    def __init__(self):
        self.url = self.body = b""
        self.headers = []
        self.ended = 0

    def on_url(self, url):
        self.url += url

    def on_header(self, name, value):
        self.headers.append((name.lower(), value))

    def on_body(self, body):
        self.body += body

    def on_message_complete(self):
        self.ended += 1


def parse_with_httptools(data):
    found = Recorded()
    parser = httptools.HttpRequestParser(found)
    parser.feed_data(data)
    assert found.ended == 1
    return parser.get_method(), found.url, found.headers, found.body


@given(pieces.map(b"".join), st.lists(st.integers(0, 500), max_size=4))
@example(WHOLE, [5, 200])
@example(CHUNKED, [5, 200])
@example(WHOLE + CHUNKED, [5, 200, 400])
@example(b"Host: x\r\nTransfer-Encoding: gzip\r\nPOST / HTTP/1.1\r\n", [34])
@example(b"POST / HTTP/2.0\r\nHost: x\r\nno colon\r\n\r\n", [40])
@example(b"\r\nTransfer-Encoding: gzip\r\n\r\n", [1])
def test_any_bytes_give_the_same_requests_in_any_parts(data, cuts):
    whole, parted = read(data), read(data, cuts)
    assert whole.refusal == parted.refusal
    assert whole.refusal in (None, 400, 413, 431, 501, 505)
    assert list(map(parse_with_h11, whole.requests)) == list(map(parse_with_h11, parted.requests))


@given(pieces.map(lambda found: b"POST /x HTTP/1.1\r\nHost: x\r\n" + b"".join(found)))
@example(SMUGGLED["trailer without a colon"])
@example(WHOLE + CHUNKED + HIDDEN)
def test_no_accepted_request_has_two_readings(data):
    """Both parsers read what is passed on in the same way: one request each, with nothing left."""
    for request in read(data).requests:
        assert parse_with_h11(request) == parse_with_httptools(request)
        names = [line.partition(b":")[0].lower() for line in request.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]]
        assert names.count(b"content-length") + names.count(b"transfer-encoding") <= 1
        assert names.count(b"host") <= 1


# -------------------------------------------------------------------------------------------------------------- writes


class RecordedTransport:
    """A transport that records its calls."""

    def __init__(self) -> None:
        self.calls: list[str | bytes] = []
        self.closing = False

    def write(self, data: bytes) -> None:
        self.calls.append(data)

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.calls.append("close")

    def abort(self) -> None:
        self.calls.append("abort")


def write_steps(*steps: str | bytes | None) -> list[str | bytes]:
    """Write bytes and call methods; None is the end of a step of the event loop. Return the calls of the transport."""
    recorded = RecordedTransport()

    async def work() -> None:
        transport: Any = JoiningTransport(cast("asyncio.Transport", recorded), asyncio.get_running_loop())
        for step in steps:
            if isinstance(step, bytes):
                transport.write(step)
            elif step == "lost":
                recorded.closing = True
            elif step is not None:
                getattr(transport, step)()
            else:
                await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(work())
    return recorded.calls


def test_writes_of_one_step_are_joined() -> None:
    assert write_steps(b"head", b"body", None, b"more", None, b"end") == [b"headbody", b"more", b"end"]


def test_many_bytes_are_not_held_back() -> None:
    large = b"x" * 100_000
    assert write_steps(b"head", large, b"tail") == [b"head" + large, b"tail"]


@pytest.mark.parametrize("method", ["close", "abort"])
def test_all_is_written_before_a_connection_is_closed(method: str) -> None:
    assert write_steps(b"head", b"body", method) == [b"headbody", method]


def test_nothing_is_written_to_a_lost_connection() -> None:
    assert write_steps(b"head", "lost", None) == []
