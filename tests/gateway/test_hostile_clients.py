"""Clients that mean harm, or are broken: names in logs, headers, paths, slow and idle connections, keys."""

from __future__ import annotations

import io
import json
import socket
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import httpx2
import msgspec
import pytest

from segue.bridge.bridge import Bridge
from segue.bridge.relay import Relay
from segue.errors import InputError
from segue.gateway.client_keys import ClientKey, hash_key
from segue.gateway.metrics import Metrics
from segue.gateway.request_log import RequestLog, RequestRecord
from segue.http_server import HttpLimits
from tests.cli.test_route import make_certificate
from tests.gateway.harness import Running, running_gateway

HELLO = "\n---\n".join(["say Hi there."] * 20)
CHAT: dict[str, Any] = {"model": "any", "messages": [{"role": "user", "content": "Hello"}]}
PATH = "/v1/chat/completions"
PATIENCE = 100.0


def post(gateway: Running, body: Any, path: str = PATH, **headers: str) -> httpx2.Response:
    return httpx2.post(gateway.url + path, json=body, headers=headers, timeout=PATIENCE)


def get(gateway: Running, path: str, **headers: str) -> httpx2.Response:
    return httpx2.get(gateway.url + path, headers=headers, timeout=PATIENCE)


@contextmanager
def connecting(gateway: Running) -> Generator[socket.socket]:
    parts = urlsplit(gateway.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE) as connection:
        yield connection


def is_closed(connection: socket.socket) -> bool:
    """Wait for the server to close a connection, or to send something."""
    with suppress(ConnectionError):
        return connection.recv(1) == b""
    return True


def wait_until(state: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not state():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# ---------------------------------------------------------------------------------------------------------------- logs


@pytest.mark.parametrize("given", ["a; POST /v1/x; 200", "x" * 129, "a\tb", "\x85", "<script>", ""])
def test_a_request_id_that_is_none_is_replaced(given: str) -> None:
    with running_gateway({"anthropic": HELLO}) as gateway:
        with httpx2.Client(timeout=PATIENCE) as client:
            headers = [(b"x-request-id", given.encode("latin-1"))]
            reply = client.post(gateway.url + PATH, json=CHAT, headers=headers)
        assert reply.headers["x-request-id"].startswith("req_")
        gateway.wait_for_log("POST")
        assert gateway.log.startswith("req_")
        assert given == "" or given not in gateway.log


@pytest.mark.parametrize(
    ("model", "logged"),
    [
        ("plain-name-1.5:x", "plain-name-1.5:x → "),
        ("a → b; 200; 1 in", '"a → b; 200; 1 in" → '),
        ("two\nlines\r\x1b[2J\u202e\u2028", '"two\\nlines\\r\\u001b[2J'),
        ("x" * 100_000, f"{'x' * 200} → "),
        ("\ud800", "? → "),
    ],
    ids=["plain", "parts", "control", "long", "surrogate"],
)
def test_model_names_can_not_forge_a_line(model: str, logged: str, tmp_path: Path) -> None:
    usage = tmp_path / "usage.jsonl"
    with running_gateway({"anthropic": HELLO}, usage=str(usage)) as gateway:
        body = json.dumps({**CHAT, "model": model}).encode()
        reply = httpx2.post(gateway.url + PATH, content=body, timeout=PATIENCE)
        if reply.status_code == 400:
            assert model == "\ud800"
            return
        gateway.wait_for_log(logged)
        assert gateway.log.count("\n") == 1
        assert gateway.log[:-1].isprintable()
        assert len(gateway.log) < 1000
        assert get(gateway, "/metrics").status_code == 200
    assert len(usage.read_bytes()) < 2000


def test_paths_can_not_forge_a_line() -> None:
    with running_gateway({"anthropic": HELLO}) as gateway:
        assert get(gateway, "/a%0Areq_1;%20200;%20x").status_code == 404
        assert get(gateway, "/" + "a" * 1500).status_code == 404
        wait_until(lambda: gateway.log.count("\n") == 2)
        first, second = gateway.log.splitlines()
        assert '"/a\\nreq_1; 200; x"' in first
        assert len(second) < 800


def test_long_paths_are_refused() -> None:
    with running_gateway({"anthropic": HELLO}) as gateway:
        assert post(gateway, CHAT, "/models/" * 7000).status_code == 414


@pytest.mark.parametrize("as_json", [False, True])
def test_bodies_and_keys_are_not_logged(as_json: bool, tmp_path: Path) -> None:
    usage = tmp_path / "usage.jsonl"
    clients = (ClientKey("ada", hash_key("client-secret")),)
    scripts = {"anthropic": "say Reply-text.\n---\nerror 400 The key upstream-key is bad."}
    with running_gateway(scripts, clients=clients, usage=str(usage), log_json=as_json) as gateway:
        key = {"x-api-key": "client-secret"}
        secret = {**CHAT, "messages": [{"role": "user", "content": "prompt-text"}]}
        replies = [
            post(gateway, secret, **key),
            post(gateway, secret, **key),
            post(gateway, secret, PATH + "?key=wrong-secret"),
            post(gateway, {**secret, "messages": "prompt-text"}, **key),
            post(gateway, {**secret, "temperature": "prompt-text"}, PATH + "?key=client-secret"),
            httpx2.post(gateway.url + PATH, content=b'{"prompt-text', headers=key, timeout=PATIENCE),
        ]
        assert [reply.status_code for reply in replies[:4]] == [200, 400, 401, 400]
        assert replies[5].status_code == 400
        shown = "".join(reply.text + str(reply.headers) for reply in replies)
        metrics = get(gateway, "/metrics", authorization=f"Bearer {gateway.token}").text
        written = gateway.log + usage.read_text() + metrics
    assert written.count("\n") > 6
    for text in ("prompt-text", "Reply-text", "client-secret", "wrong-secret", "upstream-key"):
        assert text not in written
    assert "upstream-key" not in shown


@pytest.mark.parametrize("stream", [False, True])
def test_bodies_are_logged_only_if_asked_and_without_secrets(tmp_path: Path, stream: bool) -> None:
    secret = "sk-ant-" + "a1" * 20
    file = tmp_path / "logs" / "bodies.jsonl"
    with running_gateway({"anthropic": HELLO}, body_file=file) as gateway:
        message = {"role": "user", "content": f"my words, api_key={secret}"}
        reply = post(gateway, {**CHAT, "messages": [message], "stream": stream}, authorization=f"Bearer {secret}")
        assert reply.status_code == 200
        gateway.wait_for_log("; 200;")
        line = json.loads(file.read_text())
        assert "my words" in line["request"]
        assert "there" in line["response"]
        assert ("[DONE]" in line["response"]) is stream
        assert line["request_id"] == reply.headers["x-request-id"]
        assert secret not in file.read_text() + gateway.log
        assert file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(InputError, match="log-bodies"), running_gateway({"anthropic": HELLO}, body_file=tmp_path):
        pass


def test_an_unexpected_error_is_an_answer_without_its_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("prompt-text")

    with running_gateway({"anthropic": HELLO}) as gateway:
        monkeypatch.setattr(Bridge, "open", fail)
        reply = post(gateway, CHAT)
        assert reply.status_code == 500
        assert "RuntimeError" in reply.json()["error"]["message"]
        wait_until(lambda: "; 500; " in gateway.log)
        assert "prompt-text" not in reply.text + gateway.log


def test_a_log_or_usage_file_that_can_not_be_written_fails_no_request(tmp_path: Path) -> None:
    class Full(io.StringIO):
        def write(self, text: str, /) -> int:
            raise OSError(28, "No space left on device")

    record = RequestRecord("id", "POST", "/", operation="reply")
    log = io.StringIO()
    RequestLog(output=Full()).write(record)
    RequestLog(output=log, usage_file=tmp_path).write(record)
    assert "the usage can't be written: is a directory" in log.getvalue()
    with pytest.raises(InputError, match="usage"), running_gateway({"anthropic": HELLO}, usage=str(tmp_path)):
        pass


def test_the_number_of_counters_is_bounded() -> None:
    metrics = Metrics()
    for number in range(9000):
        record = RequestRecord(
            "id", "POST", "/", api="openai-chat", route=f"r{number}", target=f"t{number}", status=200
        )
        metrics.add_request(record)
    text = metrics.render()
    assert text.count("\n") < 5000 + 201 * 16 + 100
    assert 'segue_requests_total{api="openai-chat",route="other",status="200",target="other"} 4000' in text


# ---------------------------------------------------------------------------------------------------------------- keys


def test_a_client_key_stays_in_the_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    """A route with `auth = "client"` passes the headers of the bridge on: they have the provider's key only."""
    seen: list[str] = []
    open_relay = Bridge.open

    def record(self: Bridge, method: str, path: str, headers: Mapping[str, str], *rest: Any, **options: Any) -> Relay:
        seen.append(str(dict(headers)))
        return open_relay(self, method, path, headers, *rest, **options)

    monkeypatch.setattr(Bridge, "open", record)
    with running_gateway({"anthropic": HELLO}, clients=(ClientKey("ada", hash_key("client-secret")),)) as gateway:
        post(gateway, CHAT, **{"x-api-key": "client-secret", "authorization": "Bearer own-token"})
        post(gateway, CHAT, authorization="Bearer client-secret")
        assert len(seen) == 2
        assert "own-token" in seen[0]
        assert not any("client-secret" in headers for headers in seen)


def test_a_client_does_not_see_what_is_of_others() -> None:
    clients = (
        ClientKey("ada", hash_key("secret")),
        ClientKey("prometheus", hash_key("scrape"), models=("none",), metrics=True),
        ClientKey("old", hash_key("expired"), expires=1.0, metrics=True),
    )
    with running_gateway({"anthropic": HELLO}, clients=clients) as gateway:
        assert get(gateway, "/healthz").status_code == 200
        assert get(gateway, "/v1/models").status_code == 401
        for key in ("", "secret", "expired", "wrong"):
            assert get(gateway, "/readyz", **{"x-api-key": key}).json() == {"status": "ready"}
            assert get(gateway, "/metrics", **{"x-api-key": key}).status_code == 401
        assert post(gateway, CHAT, **{"x-api-key": "scrape"}).status_code == 404
        for headers in ({"authorization": "Bearer scrape"}, {"authorization": f"Bearer {gateway.token}"}):
            assert get(gateway, "/readyz", **headers).json()["models"]
            assert get(gateway, "/metrics", **headers).status_code == 200
        assert get(gateway, "/segue/status", **{"x-api-key": "secret"}).status_code == 401
        assert post(gateway, CHAT, authorization=f"Bearer {gateway.token}").status_code == 401


def test_control_calls_without_the_token_are_not_read() -> None:
    with running_gateway({"anthropic": HELLO}) as gateway:
        token = {"authorization": f"Bearer {gateway.token}"}
        large = b'{"models": ["' + b"x" * 2**20 + b'"]}'
        with connecting(gateway) as connection:
            connection.sendall(b"POST /segue/route HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999\r\n\r\n")
            assert b" 401 " in connection.recv(100), "the answer does not wait for the body"
        url = f"{gateway.url}/segue/route"
        assert httpx2.post(url, content=large, headers=token, timeout=PATIENCE).status_code == 413
        for path in ("//segue/route", "/segue/route/", "/segue%2Froute", "/SEGUE/ROUTE"):
            assert post(gateway, {"models": []}, path, **token).status_code == 404


@pytest.mark.parametrize(
    "host", ["", "[", "[]", "[::1", "[v1.x]", "a@b", "é", "127.0.0.1:x", "1" * 5000, "0x7f.1.evil", "localhost.evil"]
)
def test_any_host_gets_an_answer(host: str) -> None:
    with running_gateway({"anthropic": HELLO}) as gateway, connecting(gateway) as connection:
        line = f"GET /v1/models HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        connection.sendall(line.encode("latin-1"))
        status = connection.makefile("rb").readline().split()[1]
        assert status in ((b"200",) if host == "127.0.0.1:x" else (b"421", b"400"))


# --------------------------------------------------------------------------------------------------------- connections


def limited(**limits: Any) -> Any:
    return running_gateway({"anthropic": HELLO}, connections=HttpLimits(**limits))


def changing_limits() -> Any:
    """Limits that a test may change while the gateway runs: short ones would count while it still connects."""
    return SimpleNamespace(**msgspec.structs.asdict(HttpLimits()))


def test_idle_connections_are_bounded() -> None:
    with limited(connections=5) as gateway, ExitStack() as stack:
        opened = [stack.enter_context(connecting(gateway)) for _ in range(5)]
        more = [stack.enter_context(connecting(gateway)) for _ in range(20)]
        assert all(is_closed(connection) for connection in more)
        opened.pop().close()

        def answers() -> bool:
            with suppress(httpx2.HTTPError):
                return get(gateway, "/healthz").status_code == 200
            return False

        wait_until(answers)


def read_to_end(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(2**16), b""))


@pytest.mark.parametrize(
    ("sent", "answer"), [(b"", b""), (b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nX-A: ", b"HTTP/1.1 408 ")]
)
def test_a_request_that_does_not_come_closes_the_connection(sent: bytes, answer: bytes) -> None:
    with limited(head_seconds=0.2) as gateway, connecting(gateway) as connection:
        connection.sendall(sent)
        assert read_to_end(connection)[:13] == answer


def test_a_handshake_that_does_not_come_closes_the_connection(tmp_path: Path) -> None:
    make_certificate(tmp_path)
    files = {"certificate": tmp_path / "cert.pem", "private_key": tmp_path / "key.pem"}
    limits = HttpLimits(head_seconds=0.2)
    with (
        running_gateway({"anthropic": HELLO}, connections=limits, **files) as gateway,
        connecting(gateway) as connection,
    ):
        assert read_to_end(connection) == b""


def test_the_next_request_of_a_connection_has_a_limit_too() -> None:
    limits = changing_limits()
    with running_gateway({"anthropic": HELLO}, connections=limits) as gateway, connecting(gateway) as connection:
        request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for _ in range(2):
            connection.sendall(request)
            received = b""
            while not received.endswith(b"ok\n"):
                received += (data := connection.recv(1000))
                assert data, "the connection was closed"
        limits.head_seconds = 0.01
        connection.sendall(request[:20])
        assert read_to_end(connection).startswith(b"HTTP/1.1 408 ")


def test_a_long_reply_is_not_cut_off_by_the_limit_for_headers() -> None:
    limits = changing_limits()
    with (
        running_gateway({"anthropic": "say One.\nwait 0.2\nsay Two."}, connections=limits) as gateway,
        httpx2.Client(timeout=PATIENCE) as client,
    ):
        assert client.get(f"{gateway.url}/healthz").status_code == 200
        # From here on the connection is open, and the headers of a request arrive at once.
        limits.head_seconds = 0.01
        assert "Two." in client.post(gateway.url + PATH, json=CHAT).text


def test_headers_without_end_close_the_connection() -> None:
    with limited(head_bytes=10_000, linger_seconds=0.1) as gateway:
        with connecting(gateway) as connection, suppress(ConnectionError):
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
            while True:
                connection.sendall(b"X-A: %s\r\n" % (b"a" * 1000))
        assert get(gateway, "/healthz").status_code == 200


def test_a_client_that_does_not_read_is_dropped() -> None:
    large = "say " + "word " * 1_200_000
    with running_gateway({"anthropic": large}, connections=HttpLimits(stall_seconds=0.3)) as gateway:
        body = json.dumps(CHAT).encode()
        parts = urlsplit(gateway.url)
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(PATIENCE)
            connection.connect((parts.hostname, parts.port))
            connection.sendall(
                b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s"
                % (len(body), body)
            )
            gateway.wait_for_log("POST")
            received = b""
            with suppress(ConnectionError):
                while data := connection.recv(2**16):
                    received += data
        assert len(received) < len(large)


def test_an_address_that_does_not_exist_is_an_input_error() -> None:
    settings: dict[str, Any] = {"host": "no such host", "behind_proxy": True, "clients": (ClientKey("a", "b"),)}
    with pytest.raises(InputError, match="can't listen on no such host"), running_gateway({"kimi": ""}, **settings):
        pass
