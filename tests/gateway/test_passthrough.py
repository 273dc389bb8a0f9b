"""Passthrough: requests are passed on as they are, with the key of the gateway, to the configured provider alone."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

import anthropic
import httpx2
import openai
import pytest

from segue.bridge.providers import Endpoint, resolve
from segue.errors import InputError
from segue.gateway.client_keys import ClientKey, hash_key
from segue.gateway.passthrough_routes import PassthroughSettings, find_path_error
from segue.gateway.passthrough_usage import BodyEnds, find_model, find_usage
from segue.gateway.settings import GatewayRoutes
from tests.gateway.harness import Running, build_server, running_gateway
from tests.gateway.test_hostile_clients import wait_until
from tests.gateway.upstreams import Handler, Upstream, running_upstream

EMBEDDING = {
    "object": "list",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.25, 0.5]}],
    "model": "e",
    "usage": {"prompt_tokens": 8, "total_tokens": 8},
}


def reply_embedding(handler: Handler) -> None:
    handler.reply(json.dumps(EMBEDDING).encode(), connection="x-inner", x_inner="1", x_outer="2", set_cookie="a=b")


@contextmanager
def passthrough_gateway(
    answer: Any = reply_embedding, *, base: str = "/v1", api: str = "openai-chat", **options: Any
) -> Generator[tuple[Running, Upstream]]:
    """Run a gateway whose provider `vendor` is a plain server."""
    import io

    passthrough = options.pop("passthrough", (PassthroughSettings("/v1/embeddings", "vendor"),))
    clients = options.pop("clients", ())
    with running_upstream(answer) as upstream:
        providers = {"vendor": {"api": api, "base_url": upstream.url + base, "key_variable": "KEY"}}

        def find(name: str) -> Endpoint:
            return resolve(name, {"KEY": "upstream-key"}, providers)

        loaded = GatewayRoutes(
            (), ("vendor/model",), prefers_default=True, clients=tuple(clients), passthrough=tuple(passthrough)
        )
        log = io.StringIO()
        server = build_server(find, loaded, log, **options)
        with server.running():
            yield Running(server, {}, log), upstream


def test_embeddings_of_the_openai_sdk(tmp_path: Path) -> None:
    with passthrough_gateway(usage=str(tmp_path / "usage.jsonl")) as (gateway, upstream):
        client = openai.OpenAI(api_key="client-secret", base_url=f"{gateway.url}/v1", max_retries=0)
        reply = client.embeddings.create(model="e", input="text", encoding_format="float")
        assert reply.data[0].embedding == [0.25, 0.5]
        assert reply.usage.prompt_tokens == 8
        (received,) = upstream.requests
        assert (received.method, received.path) == ("POST", "/v1/embeddings")
        assert json.loads(received.body)["input"] == "text"
        assert received.headers["authorization"] == "Bearer upstream-key"
        assert "client-secret" not in str(received.headers)
        gateway.wait_for_log("/v1/embeddings; 200")
        gateway.wait_for_log("vendor; 8 in, 0 out")
        line = json.loads((tmp_path / "usage.jsonl").read_text())
        assert (line["route"], line["target"], line["input"]) == ("/v1/embeddings", "vendor", 8)
        metrics = httpx2.get(f"{gateway.url}/metrics").text
        assert 'segue_tokens_total{kind="input",target="vendor"} 8' in metrics


def test_files_of_the_openai_sdk() -> None:
    file = {"id": "file-1", "object": "file", "bytes": 5, "created_at": 1, "filename": "a.txt", "purpose": "batch"}
    data = json.dumps({**file, "status": "processed"}).encode()

    def answer(handler: Handler) -> None:
        if handler.command == "DELETE":
            handler.reply(b'{"id": "file-1", "object": "file", "deleted": true}')
        elif handler.path.endswith("/content"):
            handler.reply(b"a,b", content_type="text/csv")
        else:
            handler.reply(data)

    with passthrough_gateway(answer, passthrough=(PassthroughSettings("/v1", "vendor", name="rest"),)) as (
        gateway,
        upstream,
    ):
        client = openai.OpenAI(api_key="x", base_url=f"{gateway.url}/v1", max_retries=0)
        assert client.files.create(file=("a.txt", b"x" * 2_000_000), purpose="batch").id == "file-1"
        assert len(upstream.requests[0].body) > 2_000_000
        assert upstream.requests[0].headers["content-type"].startswith("multipart/form-data; boundary=")
        assert client.files.content("file-1").text == "a,b"
        assert client.files.delete("file-1").deleted
        assert httpx2.head(f"{gateway.url}/v1/files/x").headers["content-length"] == str(len(data))


def test_headers_of_the_connection_stay_on_it() -> None:
    headers = {
        "connection": "keep-alive, x-hop",
        "x-hop": "1",
        "te": "trailers",
        "cookie": "caller-cookie",
        "x-api-key": "caller-key",
        "proxy-authorization": "Basic caller-proxy",
        "x-forwarded-for": "caller-address",
        "x-custom": "kept",
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    }
    with passthrough_gateway() as (gateway, upstream):
        response = httpx2.post(f"{gateway.url}/v1/embeddings?a=1&key=caller-query&b=%20", json={}, headers=headers)
        assert response.status_code == 200
        (received,) = upstream.requests
        assert "caller-" not in str(received)
        assert not {"x-hop", "te"} & {*received.headers}
        assert received.headers["x-custom"] == "kept"
        assert received.headers["traceparent"] == headers["traceparent"]
        assert received.path == "/v1/embeddings?a=1&b=+"
        assert response.headers["x-outer"] == "2"
        assert not {"x-inner", "set-cookie"} & {*response.headers}
        assert response.headers["x-request-id"].startswith("req_")


CLIENT = "key-of+client/x="
QUOTED = quote(CLIENT, safe="")
SPELLINGS = (
    *("key", "KEY", "Key", "k%65y", "%6b%65%79", "%4BEY", "k%2565y", "+key", "key+", "%20key", "key%20", "key%00"),
    *("$key", "%24key", "key[]", "key%5B0%5D", "key%5b%5d"),
)


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_key_in_the_query_is_not_passed_on(name: str) -> None:
    clients = (ClientKey("ada", hash_key(CLIENT)),)
    kept = "monkey=1&keys=2&q=%FF%C3%A9"
    with passthrough_gateway(clients=clients, passthrough=(PassthroughSettings("/v1", "vendor"),)) as (
        gateway,
        upstream,
    ):
        queries = [
            *(f"{name}={QUOTED}", f"{name}={QUOTED}&{kept}", f"{kept}&{name}={QUOTED}", f"{kept};{name}={QUOTED}"),
            *(
                f"{name}=other&{kept}&{name}={QUOTED}",
                f"{name}&{kept}",
                f"{name}=&{kept}",
                f"&&{name}={QUOTED};;{kept}",
            ),
        ]
        for query in queries:
            path = f"{gateway.url}/v1/files?{query}"
            assert send_raw(path, f"authorization: Bearer {CLIENT}") == (400 if "[" in name else 200), query
        for request in upstream.requests:
            left = unquote(request.path).partition("?")[2]
            assert set(parse_qs(left)) <= {"monkey", "keys", "q"}
            assert "q=" not in left or "q=%FF%C3%A9" in request.path
            assert CLIENT not in left
            assert "other" not in left


def send_raw(url: str, *headers: str) -> int:
    """Return the status of a request whose target and headers are sent as they are."""
    parts = urlsplit(url)
    target = url.partition(parts.netloc)[2]
    with socket.create_connection((parts.hostname, parts.port), timeout=100) as connection:
        head = [f"GET {target} HTTP/1.1", "host: localhost", "connection: close", *headers, "", ""]
        connection.sendall("\r\n".join(head).encode("latin-1"))
        return int(connection.makefile("rb").readline().split()[1])


@pytest.mark.parametrize("name", ["x-api-key", "X-Api-Key", "x_api_key", "X_API_KEY", "x_goog-api_key", "Api_Key"])
def test_a_key_in_a_header_is_not_passed_on(name: str) -> None:
    with passthrough_gateway(passthrough=(PassthroughSettings("/v1", "vendor"),)) as (gateway, upstream):
        lines = [f"{name}: own-secret", f"{name}: own-secret-too", "x-custom: kept", "Cookie: own-secret"]
        assert send_raw(f"{gateway.url}/v1/files", *lines, "authorization: Basic own-secret") == 200
        (received,) = upstream.requests
        assert "own-secret" not in str(received)
        assert received.headers["x-custom"] == "kept"
        assert received.headers["authorization"] == "Bearer upstream-key"


def test_the_client_key_is_passed_on_nowhere() -> None:
    clients = (ClientKey("ada", hash_key(CLIENT)),)
    with passthrough_gateway(clients=clients, passthrough=(PassthroughSettings("/v1", "vendor"),)) as (
        gateway,
        upstream,
    ):
        odd = [f"x-trace: {CLIENT}", f"x-key-id: a {CLIENT} b", "x-custom: kept"]
        for query in (f"token={QUOTED}", f"a=1&token={CLIENT}", f"x={quote(QUOTED)}", f"a[{QUOTED}]=1"):
            status = send_raw(f"{gateway.url}/v1/files?{query}", f"x-api-key: {CLIENT}", *odd)
            assert status == (400 if "[" in query else 200)
        assert len(upstream.requests) == 3
        assert CLIENT not in unquote(unquote(str(upstream.requests)))
        assert {request.headers["x-custom"] for request in upstream.requests} == {"kept"}


def test_all_headers_that_the_connection_names_stay_on_it() -> None:
    with passthrough_gateway(passthrough=(PassthroughSettings("/v1", "vendor"),)) as (gateway, upstream):
        lines = ["connection: x-one", "connection: X-Two , x-three", "x-one: 1", "x-two: 2", "X-Three: 3", "x-four: 4"]
        assert send_raw(f"{gateway.url}/v1/files", *lines) == 200
        (received,) = upstream.requests
        assert not {"x-one", "x-two", "x-three"} & {*received.headers}
        assert received.headers["x-four"] == "4"


@pytest.mark.parametrize(
    ("settings", "path", "sent"),
    [
        (PassthroughSettings("/v1", "vendor"), "/v1/files/a/content?x=1", "/v1/files/a/content?x=1"),
        (PassthroughSettings("/openai", "vendor", to="/"), "/openai/v1/batches", "/v1/batches"),
        (PassthroughSettings("/openai/", "vendor", to="/deployments/x"), "/openai/images", "/v1/deployments/x/images"),
        (PassthroughSettings("/v1/models", "vendor", always=True), "/v1/models/m", "/v1/models/m"),
    ],
)
def test_paths_below_a_prefix(settings: PassthroughSettings, path: str, sent: str) -> None:
    with passthrough_gateway(passthrough=(settings,)) as (gateway, upstream):
        assert httpx2.get(gateway.url + path).status_code == 200
        assert [(request.method, request.path) for request in upstream.requests] == [("GET", sent)]


def test_paths_that_segue_translates_are_not_raw() -> None:
    with passthrough_gateway(passthrough=(PassthroughSettings("/v1", "vendor"),)) as (gateway, upstream):
        assert httpx2.get(f"{gateway.url}/v1/models").json()["data"][0]["id"] == "vendor/model"
        assert httpx2.get(f"{gateway.url}/elsewhere").status_code == 404
        assert httpx2.get(f"{gateway.url}/v1x/files").status_code == 404
        assert not upstream.requests


@pytest.mark.parametrize(
    ("path", "to", "requested", "is_passed_on"),
    [
        ("/raw", "/", "/raw/v1/messages", True),
        ("/raw", "/", "/raw/v1beta/models/x:generateContent", True),
        ("/raw", "/", "/raw/model/x/converse", True),
        ("/raw/v1", "/v1", "/raw/v1/chat/completions", True),
        ("/raw", None, "/raw/v1/messages", False),
        ("/", "/", "/v1/messages", False),
        ("/v1", "/", "/v1/responses", False),
        ("/v1/messages", "/messages", "/v1/messages", False),
        ("/models", "/models", "/models/x:generateContent", False),
        ("/model", "/model", "/model/x/converse", False),
        ("/raw", "/", "/v1/messages", False),
    ],
)
def test_a_path_that_to_replaces_is_passed_on_whole(path: str, to: str | None, requested: str, is_passed_on: bool):
    """Unless it is a part of the paths that segue translates."""
    assert PassthroughSettings(path, "vendor", to=to).takes("POST", requested, {}) == is_passed_on


TRAVERSALS = (
    *("/v1/files/../admin", "/v1/files/%2e%2e/admin", "/v1/files/%2E./admin", "/v1/files/..%2fadmin", "/v1/./files"),
    *("/v1/files/%252e%252e/admin", "/v1//evil.example/x", "/v1/%2f%2fevil.example", "/v1/files/..;a/x"),
    *("/v1/files\\..\\x", "/v1/files/%5c..", "/v1/a%00b", "/v1/a%0d%0ax", "/v1/files/%zz", "/v1/#x", "/v1/é"),
)


@pytest.mark.parametrize("path", TRAVERSALS)
def test_paths_that_lead_elsewhere_are_rejected(path: str) -> None:
    assert find_path_error(path) is not None


@pytest.mark.parametrize("path", ["/v1/files/file-1.txt", "/v1/a:b@c", "/v1/files/%C3%A9", "/v1/..x/y.."])
def test_other_paths_are_passed_on(path: str) -> None:
    assert find_path_error(path) is None


@pytest.mark.parametrize(
    "target", ["//evil.example/v1/files", "http://evil.example/v1/files", "/v1/files/../../x", "/v1/files/%2e%2e/x"]
)
def test_no_url_of_a_client_is_fetched(target: str) -> None:
    with passthrough_gateway(
        passthrough=(PassthroughSettings("/v1", "vendor"), PassthroughSettings("/", "vendor"))
    ) as (gateway, upstream):
        parts = urlsplit(gateway.url)
        with socket.create_connection((parts.hostname, parts.port), timeout=100) as connection:
            connection.sendall(f"GET {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
            status = int(connection.makefile("rb").readline().split()[1])
        # The server drops the host of an absolute form; its path is passed on to the provider alone.
        assert status in (400, 404) or {request.path for request in upstream.requests} <= {"/v1/files"}
        assert all("evil" not in str(request) for request in upstream.requests)


def test_both_bodies_are_streamed() -> None:
    """Neither side waits for the end of the other's body."""
    first = threading.Event()

    def echo(handler: Handler) -> None:
        handler.begin_chunks("audio/mpeg")
        handler.write_chunk(b"one")
        assert first.wait(100)
        handler.write_chunk(b"two")
        handler.write_chunk(b"")

    def body() -> Generator[bytes]:
        for _ in range(64):
            yield b"x" * 2**16

    with passthrough_gateway(echo, passthrough=(PassthroughSettings("/v1/audio", "vendor"),)) as (gateway, upstream):
        with httpx2.stream("POST", f"{gateway.url}/v1/audio/speech", content=body(), timeout=100) as response:
            chunks = response.iter_raw()
            assert next(chunks) == b"one"
            first.set()
            assert b"".join(chunks) == b"two"
            assert response.headers["content-type"] == "audio/mpeg"
        assert len(upstream.requests[0].body) == 64 * 2**16


def test_upload_is_passed_on_before_it_is_complete() -> None:
    """The head of the request reaches the provider while the client still sends the body."""
    with passthrough_gateway() as (gateway, upstream):
        reached = threading.Event()

        def body() -> Generator[bytes]:
            yield b"[" + b" " * 2**17
            wait_until(lambda: bool(upstream.requests))
            reached.set()
            yield b"]"

        assert httpx2.post(f"{gateway.url}/v1/embeddings", content=body(), timeout=100).status_code == 200
        assert reached.is_set()


def test_client_that_leaves_cancels_the_request() -> None:
    def answer(handler: Handler) -> None:
        handler.begin_chunks()
        while True:
            handler.write_chunk(b": wait\n\n" * 1000)

    with passthrough_gateway(answer) as (gateway, upstream):
        with httpx2.stream("POST", f"{gateway.url}/v1/embeddings", json={}, timeout=100) as response:
            assert next(response.iter_raw())
        assert upstream.closed.wait(100)
        gateway.wait_for_log("; 499;")


def test_large_uploads_are_refused() -> None:
    routes = (PassthroughSettings("/v1/files", "vendor", max_mb=1),)
    with passthrough_gateway(passthrough=routes) as (gateway, _):
        response = httpx2.post(f"{gateway.url}/v1/files", content=(b"x" * 2**18 for _ in range(8)), timeout=100)
        assert response.status_code == 413
        assert "1,048,576" in response.json()["error"]["message"]


def test_errors_pass_without_the_key() -> None:
    def answer(handler: Handler) -> None:
        handler.reply(b'{"error": {"message": "Incorrect API key: upstream-key", "type": "x"}}', 401)

    with passthrough_gateway(answer) as (gateway, _):
        client = openai.OpenAI(api_key="x", base_url=f"{gateway.url}/v1", max_retries=0)
        with pytest.raises(openai.AuthenticationError, match=r"\[key removed\]"):
            client.embeddings.create(model="e", input="text")
        gateway.wait_for_log("vendor answered with 401")
        assert "upstream-key" not in gateway.log


def test_failures_have_the_form_of_the_callers_api() -> None:
    def reset(_handler: Handler) -> None:
        raise ConnectionAbortedError

    with passthrough_gateway(reset) as (gateway, _):
        client = openai.OpenAI(api_key="x", base_url=f"{gateway.url}/v1", max_retries=0)
        with pytest.raises(openai.InternalServerError) as raised:
            client.embeddings.create(model="e", input="text")
        assert raised.value.status_code == 502
    routes = (PassthroughSettings("/v1/messages/batches", "vendor"),)
    with passthrough_gateway(reset, base="", api="anthropic", passthrough=routes) as (gateway, _):
        other = anthropic.Anthropic(api_key="x", base_url=gateway.url, max_retries=0)
        with pytest.raises(anthropic.InternalServerError) as failed:
            other.messages.batches.list()
        assert "can't be reached" in str(failed.value)


def test_response_that_breaks_is_cut_off() -> None:
    def answer(handler: Handler) -> None:
        handler.begin_chunks()
        handler.write_chunk(b"data: 1\n\n")
        raise ConnectionAbortedError

    with passthrough_gateway(answer) as (gateway, _):
        with pytest.raises(httpx2.RemoteProtocolError):
            httpx2.post(f"{gateway.url}/v1/embeddings", json={}, timeout=100)
        gateway.wait_for_log("vendor can't be reached")


def test_keys_and_limits_hold() -> None:
    clients = (
        ClientKey("ada", hash_key("key-ada"), requests_per_minute=1),
        ClientKey("bob", hash_key("key-bob"), models=("small-*",)),
        ClientKey("eve", hash_key("key-eve"), models=("small-*",), routes=("/v1/emb*",)),
    )
    with passthrough_gateway(clients=clients) as (gateway, upstream):

        def post(key: str) -> int:
            headers = {"authorization": f"Bearer {key}"}
            return httpx2.post(f"{gateway.url}/v1/embeddings", json={}, headers=headers).status_code

        assert [post(key) for key in ("wrong", "key-ada", "key-ada")] == [401, 200, 429]
        # The models of a request that is not read are not known.
        assert [post("key-bob"), post("key-eve")] == [403, 200]
        assert all("key-" not in str(request.headers).replace("upstream-key", "") for request in upstream.requests)


def test_own_key_of_the_client() -> None:
    routes = (PassthroughSettings("/v1/embeddings", "vendor", auth="client"),)
    clients = (ClientKey("ada", hash_key("key-ada")),)
    with passthrough_gateway(passthrough=routes, clients=clients) as (gateway, upstream):
        url = f"{gateway.url}/v1/embeddings"
        refused = httpx2.post(url, json={}, headers={"authorization": "Bearer key-ada"})
        assert refused.status_code == 401
        assert "Authorization" in refused.json()["error"]["message"]
        assert not upstream.requests
        both = {"x-api-key": "key-ada", "authorization": "Bearer own-key"}
        assert httpx2.post(url, json={}, headers=both).status_code == 200
        assert upstream.requests[0].headers["authorization"] == "Bearer own-key"
        assert "key-ada" not in str(upstream.requests[0])


@pytest.mark.parametrize(
    ("tail", "tokens"),
    [
        (b'{"usage": {"prompt_tokens": 3, "completion_tokens": 4}}', (3, 4, 0)),
        (
            b'data: {"usage":{"input_tokens":5,"output_tokens":1,"input_tokens_details":{"cached_tokens":2}}}\n',
            (5, 1, 2),
        ),
        (b'{"usageMetadata": {"promptTokenCount": 7}}', (7, 0, 0)),
        (b'{"usageMetadata": {"promptTokenCount":7,"thoughtsTokenCount":4,"cachedContentTokenCount":2}}', (7, 4, 2)),
        (b'{"usage": {"inputTokens": 3, "outputTokens": 4, "cacheReadInputTokens": 5}}', (8, 4, 5)),
        (
            (
                b'{"usage": {"input_tokens": 1, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 3, '
                b'"cache_creation": {"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 2}}}'
            ),
            (6, 0, 2, 2),
        ),
        (b'{"text": "\\"usage\\": {\\"prompt_tokens\\": 3}"}', None),
        (b'{"usage": {"prompt_tokens": 3', None),
        (b'{"usage": {"prompt_tokens": "3"}}', None),
        (b"\xff\xfe", None),
    ],
)
def test_usage_in_the_end_of_a_response(tail: bytes, tokens: tuple[int, ...] | None) -> None:
    usage = find_usage(BodyEnds(tail))
    hour = () if usage is None or not usage.cache_write_1h else (usage.cache_write_1h,)
    assert (None if usage is None else (usage.input, usage.output, usage.cache_read, *hour)) == tokens


def test_settings_that_are_not_valid() -> None:
    for path, provider in (("v1", "vendor"), ("/a/../b", "vendor"), ("/v1", "a/b"), ("/v1", "")):
        with pytest.raises(ValueError, match="is not"):
            PassthroughSettings(path, provider)
    with (
        pytest.raises(InputError, match=r"gateway.passthrough\[0\].provider"),
        running_gateway({"anthropic": ""}, passthrough=(PassthroughSettings("/v1/files", "nowhere"),)),
    ):
        pass


FILLER = b"x" * 100_000
TEXTS = {
    "anthropic": (
        b'data: {"type":"message_start","message":{"model":"named","usage":{"input_tokens":3}}}\n\n',
        b'data: {"type":"message_delta","usage":{"output_tokens":9}}\n\n',
    ),
    "openai-responses": (
        b'data: {"response":{"model":"named","usage":null}}\n\n',
        b'"usage":{"input_tokens":3,"output_tokens":9}}}',
    ),
    "openai-chat": (b'{"model":"named","choices":[', b'],"usage":{"prompt_tokens":3,"completion_tokens":9}}'),
    "gemini": (
        b'{"candidates":[{"functionCall":{"args":{"model":"other"}}',
        b'],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":9},"modelVersion":"named"}',
    ),
    "bedrock": (b'{"output":{', b'},"usage":{"inputTokens":3,"outputTokens":9}}'),
}


@pytest.mark.parametrize("filler", [b"", FILLER])
@pytest.mark.parametrize("api", TEXTS)
def test_long_responses_have_their_model_and_usage(api: str, filler: bytes) -> None:
    start, end = TEXTS[api]

    def answer(handler: Handler) -> None:
        handler.begin_chunks()
        for data in (start, filler + end, b""):
            handler.write_chunk(data)

    settings = PassthroughSettings("/raw", "vendor", to="/")
    with passthrough_gateway(answer, passthrough=(settings,)) as (gateway, _):
        in_path = "named" if api == "bedrock" else "other"
        httpx2.post(f"{gateway.url}/raw/model/{in_path}/invoke", json={"model": "asked"})
        gateway.wait_for_log("named → vendor; 3 in, 9 out")


@pytest.mark.parametrize(
    ("path", "body", "model"),
    [
        ("/v1/images/generations", b'{"input": {"model": "nested"}, "model": "asked"}', "asked"),
        ("/v1/images/generations", b'["model"]', ""),
        ("/v1/audio", b'--x\r\nContent-Disposition: form-data; name="model"\r\n\r\nasked\r\n--x--', "asked"),
        ("/model/anthropic.claude%3A0/converse", b'{"model": "other"}', "anthropic.claude:0"),
        ("/v1beta/models/embed-1:embedContent", b"", "embed-1"),
        ("/v1/files", b'{"model": "' + FILLER + b'"}', ""),
    ],
)
def test_model_of_the_request_where_the_response_names_none(path: str, body: bytes, model: str) -> None:
    assert find_model(BodyEnds(b'{"usage": {}}'), path, BodyEnds(body)) == model
    assert find_model(BodyEnds(b'{"model": "named"}'), path, BodyEnds(body)) == "named"
