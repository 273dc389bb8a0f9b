"""The emulator's HTTP server: ambiguous, oversized and slow requests are refused, and real clients work."""

import json
import shutil
import socket
import subprocess
from itertools import pairwise

import h11
import httpx2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import segue.emulator
from segue.emulator import connection
from segue.emulator.connection import StrictParser, check_head

BODY = json.dumps({"model": "gpt-4.1", "messages": [{"role": "user", "content": "Hi"}]}).encode()
PATH = "/v1/chat/completions"
START = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer k\r\nContent-Type: application/json\r\n".encode()
WHOLE = START + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
CHUNKED = START + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n"


@pytest.fixture(scope="module")
def emulator():
    with pytest.MonkeyPatch.context() as patch:
        # A refused client can still send for so long, also on a machine that stands still for some seconds.
        patch.setattr(connection, "LINGER_SECONDS", 100.0)
        with segue.emulator.start("openai-chat") as running:
            yield running


def connect(emulator):
    # The limit only ends a test that hangs.
    return socket.create_connection(("127.0.0.1", emulator.port), timeout=100)


def exchange(emulator, *parts):
    """Send bytes on a new connection and return what comes back until the server closes it."""
    with connect(emulator) as client:
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
    "odd chunked": (b"Transfer-Encoding: \x0bchunked\r\n\r\n", 501, "only supported"),
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
def test_a_request_that_is_ambiguous_or_too_large_is_refused(emulator, case):
    rest, status, reason = REFUSED[case]
    before = len(emulator.requests)
    answered, text = parse_refusal(exchange(emulator, START + rest))
    assert (answered, reason in text) == (status, True), text
    assert len(emulator.requests) == before


@pytest.mark.parametrize(
    ("request_", "status", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 400, "Host"),
        (b"GET / HTTP/1.1\nHost: x\n\n", 400, "bare CR or LF"),
        (b"GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "not part of HTTP/1.0"),
        (b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", 400, "illegal request line"),
        (b"GET / HTTP/9.9\r\nHost: x\r\n\r\n", 505, "only supported versions"),
        (b"\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", 400, ""),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "illegal request line"),
        (b" GET / HTTP/1.1\r\nHost: x\r\n\r\n", 400, "illegal request line"),
    ],
)
def test_a_request_that_is_not_http_is_refused(emulator, request_, status, reason):
    answered, text = parse_refusal(exchange(emulator, request_))
    assert (answered, reason in text) == (status, True), text


def test_nothing_behind_a_refused_request_is_read(emulator):
    before = len(emulator.requests)
    smuggled = START + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + WHOLE
    answer = exchange(emulator, smuggled, WHOLE)
    assert answer.count(b"HTTP/1.1") == 1
    assert len(emulator.requests) == before


def test_a_second_request_on_a_connection_is_checked_too(emulator):
    answer = exchange(emulator, WHOLE + START + b"Content-Length: +5\r\n\r\nhello")
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"HTTP/1.1 400 " in answer


# --------------------------------------------------------------------------------------------------------- time limits


@pytest.mark.parametrize("sent", [b"P", START, START + b"Content-Length: 0\r\n"])
def test_headers_have_a_time_limit(emulator, monkeypatch, sent):
    with connect(emulator) as client:
        client.sendall(WHOLE)
        read_response(client)
        # The limit begins with the first byte of a request, or with the connection.
        monkeypatch.setattr(connection, "HEAD_SECONDS", 0.01)
        client.sendall(sent)
        answer = b"".join(iter(lambda: client.recv(65_536), b""))
    assert parse_refusal(answer) == (408, "the headers did not arrive in time\n")


@pytest.mark.parametrize("sent", [b"Content-Length: 50\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n5\r\nab"])
def test_a_body_has_a_time_limit(emulator, monkeypatch, sent):
    monkeypatch.setattr(connection, "BODY_SECONDS", 0.01)
    assert parse_refusal(exchange(emulator, START + sent)) == (408, "the body did not arrive in time\n")


def test_a_connection_without_a_request_is_closed(emulator, monkeypatch):
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.01)
    assert exchange(emulator) == b""


def test_a_body_without_end_is_refused(emulator, monkeypatch):
    monkeypatch.setattr(connection, "MAX_BODY_BYTES", 100_000)
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    status, text = parse_refusal(exchange(emulator, START + b"Transfer-Encoding: chunked\r\n\r\n", *([chunk] * 4)))
    assert (status, "the body has more than" in text) == (413, True)


# ------------------------------------------------------------------------------------------------------------- clients


@pytest.mark.parametrize("request_", [WHOLE, CHUNKED], ids=["length", "chunked"])
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_requests_in_parts_are_read(emulator, request_, size):
    parts = [request_[start : start + size] for start in range(0, len(request_), size)]
    with connect(emulator) as client:
        for _ in range(2):
            for part in parts:
                client.sendall(part)
            assert read_response(client) == 200


def test_expect_100_continue(emulator):
    with connect(emulator) as client:
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


def test_clients_of_other_makers(emulator):
    with httpx2.Client(base_url=emulator.url, headers={"Authorization": "Bearer k"}) as client:
        assert client.post(PATH, content=BODY).status_code == 200
        assert client.post(PATH, content=iter([BODY[:10], BODY[10:]])).status_code == 200
    for request in UNDICI:
        with connect(emulator) as raw:
            raw.sendall(request)
            assert read_response(raw) == 200
    if (curl := shutil.which("curl")) is not None:
        for more in ([], ["-H", "Transfer-Encoding: chunked"], ["-H", "Expect: 100-continue"], ["--http1.0"]):
            command = [curl, "-s", "-o", "/dev/null", "-w", "%{http_code}", "-H", "Authorization: Bearer k", *more]
            command += ["-H", "Content-Type: application/json", "-d", BODY.decode(), emulator.url + PATH]
            assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "200"


# -------------------------------------------------------------------------------------------------------------- parser

pieces = st.lists(
    st.sampled_from(
        [b"POST / HTTP/1.1\r\n", b"Host: x\r\n", b"Content-Length: 2\r\n", b"Content-Length: 3\r\n", b"\r\n", b"\n",
         b"\r", b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip\r\n", b" folded\r\n", b"A : b\r\n",
         b"A: b\r\n", b"2\r\nab\r\n", b"0\r\n\r\n", b"ab", b":", b"\x00", b"5, 5"]
    ) | st.binary(max_size=6),
    max_size=14,
)  # fmt: skip


def parse(data, cuts):
    """Return the events of the strict parser, with its refusal, whatever the cuts."""
    parser, events = StrictParser(), []
    bounds = sorted({0, *(cut % (len(data) + 1) for cut in cuts), len(data)})
    for start, end in pairwise(bounds):
        parser.receive_data(data[start:end])
        while True:
            try:
                event = parser.next_event()
            except h11.RemoteProtocolError:
                return events, parser.refusal[0]
            if event in (h11.NEED_DATA, h11.PAUSED):
                break
            events.append(event)
    return events, None


@given(pieces.map(b"".join), st.lists(st.integers(0, 500), max_size=4))
@example(WHOLE, [5, 200])
@example(CHUNKED, [5, 200])
@example(b"Host: x\r\nTransfer-Encoding: gzip\r\nPOST / HTTP/1.1\r\n", [34])
@example(b"POST / HTTP/2.0\r\nHost: x\r\nno colon\r\n\r\n", [40])
@example(b"\r\nTransfer-Encoding: gzip\r\n\r\n", [1])
def test_any_bytes_give_the_same_events_in_any_parts(data, cuts):
    whole, refusal = parse(data, [])
    parted, refused = parse(data, cuts)
    assert refusal == refused
    assert refusal in (None, 400, 413, 431, 501, 505)

    def summary(events):
        body = b"".join(bytes(event.data) for event in events if isinstance(event, h11.Data))
        return [type(event).__name__ for event in events if not isinstance(event, h11.Data)], body

    # Data in front of an error arrives or not, by the parts.
    assert refusal is not None or summary(whole) == summary(parted)


@given(pieces.map(b"".join))
def test_no_accepted_head_has_two_readings(data):
    head = (b"POST / HTTP/1.1\r\nHost: x\r\n" + data).partition(b"\r\n\r\n")[0]
    try:
        check_head(head + b"\r\n\r\n")
    except h11.RemoteProtocolError:
        return
    names = [line.partition(b":")[0].lower() for line in head.split(b"\r\n")[1:]]
    assert names.count(b"content-length") + names.count(b"transfer-encoding") <= 1
    assert b"\n" not in head.replace(b"\r\n", b"")
    assert b"\r" not in head.replace(b"\r\n", b"").removesuffix(b"\r")
