"""The endpoints of each provider: keys, paths, methods, bodies and their errors."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

import segue
from segue import emulator
from segue.canonical.json import parse_json
from segue.emulator import Emulator
from segue.emulator.client import Response, post
from segue.emulator.providers import PROVIDERS
from tests.emulator.envelopes import ENVELOPES
from tests.emulator.http_requests import TIMEOUT

KEY = "sk-right-0123456789"
WRONG = "sk-wrong-9876543210"
AWS_ID, AWS_SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
USER = {"role": "user", "content": "q"}
CHAT = {"model": "m", "messages": [USER]}
# The least that each takes.
LEAST: dict[str, dict[str, Any]] = {
    "openai-chat": CHAT,
    "mistral": CHAT,
    "kimi": CHAT,
    "deepseek": CHAT,
    "qwen": CHAT,
    "anthropic": {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": [USER]},
    "openai-responses": {"model": "gpt-5", "input": "q"},
    "azure-foundry": {"input": "q"},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "q"}]}]},
    "bedrock": {"messages": [{"role": "user", "content": [{"text": "q"}]}]},
}
PATHS = {
    "openai-chat": "/v1/chat/completions",
    "mistral": "/v1/chat/completions",
    "kimi": "/v1/chat/completions",
    "deepseek": "/chat/completions",
    "qwen": "/compatible-mode/v1/chat/completions",
    "anthropic": "/v1/messages",
    "openai-responses": "/v1/responses",
    "azure-foundry": "/openai/v1/responses",
    "gemini": "/v1beta/models/gemini-3.1-pro-preview:generateContent",
    "bedrock": "/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse",
}
APIS = list(PATHS)
# The ways in which a key may be shown.
SHOWN: dict[str, list[str]] = {
    **{api: ["authorization"] for api in APIS},
    "anthropic": ["x-api-key", "authorization"],
    "gemini": ["x-goog-api-key", "?key=", "authorization"],
    "azure-foundry": ["api-key", "authorization"],
}
WAYS = [(api, way) for api, ways in SHOWN.items() for way in ways]


@pytest.fixture(scope="module")
def guarded() -> Iterator[dict[str, Emulator]]:
    """Each provider with its one valid key."""
    keys = {api: [KEY] for api in APIS} | {"bedrock": [KEY, f"{AWS_ID}:{AWS_SECRET}"]}
    running = {api: emulator.start(api, keys=keys[api]) for api in APIS}
    yield running
    for provider in running.values():
        provider.stop()


def ask(
    provider: Emulator,
    method: str,
    path: str,
    body: bytes | Mapping[str, Any] = b"",
    headers: Mapping[str, str] | None = None,
) -> Response:
    place = urlsplit(provider.url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=TIMEOUT)
    try:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, data, {"anthropic-version": "2023-06-01", **(headers or {})})
        answer = connection.getresponse()
        return Response(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
    finally:
        connection.close()


def request_with_key(provider: Emulator, way: str, key: str) -> Response:
    path, headers = PATHS[provider.api], {}
    if way.startswith("?"):
        path += f"{way}{key}"
    else:
        headers = {way: f"Bearer {key}" if way == "authorization" else key}
    return ask(provider, "POST", path, LEAST[provider.api], headers)


def request_with_valid_key(
    provider: Emulator, method: str, path: str, body: bytes | Mapping[str, Any] = b"", **headers: str
) -> Response:
    own = dict.fromkeys(("x-api-key", "x-goog-api-key", "api-key"), KEY)
    return ask(provider, method, path, body, {"authorization": f"Bearer {KEY}", **own, **headers})


# ---------------------------------------------------------------------------------------------------------------- keys

NO_KEY = {
    "openai-chat": (401, "invalid_request_error", "You didn't provide an API key."),
    "openai-responses": (401, "invalid_request_error", "You didn't provide an API key."),
    "anthropic": (401, "authentication_error", "x-api-key header is required"),
    "gemini": (403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers"),
    "bedrock": (403, "MissingAuthenticationTokenException", "Missing Authentication Token"),
    "azure-foundry": (401, "invalid_request_error", "Unauthorized. Access token is missing, invalid"),
    "mistral": (401, None, "Unauthorized"),
    "kimi": (401, "invalid_authentication_error", "Invalid Authentication"),
    "deepseek": (401, "authentication_error", "Authentication Fails (auth header format should be Bearer sk-...)"),
    "qwen": (401, "invalid_request_error", "You didn't provide an API key."),
}
BAD_KEY = {
    "openai-chat": (401, "invalid_request_error", "Incorrect API key provided: "),
    "openai-responses": (401, "invalid_request_error", "Incorrect API key provided: "),
    "anthropic": (401, "authentication_error", "invalid x-api-key"),
    "gemini": (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
    "bedrock": (403, "UnrecognizedClientException", "The security token included in the request is invalid."),
    "azure-foundry": (
        401,
        "invalid_request_error",
        "Access denied due to invalid subscription key or wrong API endpoint.",
    ),
    "mistral": (401, None, "Unauthorized"),
    "kimi": (401, "invalid_authentication_error", "Invalid Authentication"),
    "deepseek": (401, "authentication_error", "Authentication Fails, Your api key: ****"),
    "qwen": (401, "invalid_request_error", "Incorrect API key provided."),
}


def assert_error(api: str, sent: Response, status: int, kind: str | None, begins: str) -> None:
    parsed = ENVELOPES[api](sent)
    assert (sent.status, parsed.kind, parsed.message[: len(begins)]) == (status, kind, begins)


@pytest.mark.parametrize("api", APIS)
def test_no_key(guarded: dict[str, Emulator], api: str) -> None:
    for headers in ({}, {"authorization": ""}, {"authorization": "Bearer "}, {"authorization": f"Basic {KEY}"}):
        assert_error(api, ask(guarded[api], "POST", PATHS[api], LEAST[api], headers), *NO_KEY[api])


@pytest.mark.parametrize(("api", "way"), WAYS)
def test_wrong_key(guarded: dict[str, Emulator], api: str, way: str) -> None:
    sent = request_with_key(guarded[api], way, WRONG)
    assert_error(api, sent, *BAD_KEY[api])
    assert WRONG.encode() not in sent.data


@pytest.mark.parametrize(("api", "way"), WAYS)
def test_right_key(guarded: dict[str, Emulator], api: str, way: str) -> None:
    sent = request_with_key(guarded[api], way, KEY)
    assert sent.status == 200, sent.data
    assert KEY.encode() not in sent.data


def test_a_wrong_key_of_gemini_has_its_reason(guarded: dict[str, Emulator]) -> None:
    error = request_with_key(guarded["gemini"], "x-goog-api-key", WRONG).body["error"]
    info = error["details"][0]
    assert info["@type"] == "type.googleapis.com/google.rpc.ErrorInfo"
    assert (info["reason"], info["domain"]) == ("API_KEY_INVALID", "googleapis.com")
    assert info["metadata"] == {"service": "generativelanguage.googleapis.com"}


@pytest.mark.parametrize("api", APIS)
def test_keys_are_kept_nowhere(guarded: dict[str, Emulator], api: str) -> None:
    provider = guarded[api]
    for way in SHOWN[api]:
        for key in (KEY, WRONG):
            request_with_key(provider, way, key)
    kept = repr(provider.requests)
    assert not any(key in kept for key in (KEY, WRONG, AWS_SECRET))


@pytest.mark.parametrize("api", APIS)
def test_any_key_will_do_where_none_is_set(api: str) -> None:
    with emulator.start(api) as provider:
        assert request_with_key(provider, SHOWN[api][0], "anything").status == 200
        assert ask(provider, "POST", PATHS[api], LEAST[api]).status in (401, 403)


# --------------------------------------------------------------------------------------------------------------- SigV4


def sign(provider: Emulator, path: str, body: bytes, secret: str = AWS_SECRET, key_id: str = AWS_ID) -> AWSRequest:
    request = AWSRequest("POST", provider.url + path, {"content-type": "application/json"}, body)
    SigV4Auth(Credentials(key_id, secret), "bedrock", "us-east-1").add_auth(request)
    return request


def send_signed(provider: Emulator, request: AWSRequest, path: str, body: bytes, **changed: str) -> Response:
    return ask(provider, "POST", path, body, {**dict(request.headers.items()), **changed})


@pytest.mark.parametrize("path", [PATHS["bedrock"], PATHS["bedrock"] + "-stream", PATHS["bedrock"] + "?b=2&a=1"])
def test_signed_by_botocore(guarded: dict[str, Emulator], path: str) -> None:
    bedrock, body = guarded["bedrock"], json.dumps(LEAST["bedrock"]).encode()
    request = sign(bedrock, path, body)
    assert request.headers["Authorization"].startswith(f"AWS4-HMAC-SHA256 Credential={AWS_ID}/")
    assert send_signed(bedrock, request, path, body).status == 200
    assert AWS_SECRET not in repr(bedrock.requests)
    assert AWS_ID not in repr(bedrock.requests)


def test_signed_and_tampered_with(guarded: dict[str, Emulator]) -> None:
    bedrock, path, body = guarded["bedrock"], PATHS["bedrock"], json.dumps(LEAST["bedrock"]).encode()
    request = sign(bedrock, path, body)
    signature = request.headers["Authorization"]
    turned = signature[:-1] + ("0" if signature[-1] != "0" else "1")
    other = signature.replace(AWS_ID, "AKIDANOTHER")
    refusals = [
        send_signed(bedrock, request, path, body.replace(b"q", b"r")),
        send_signed(bedrock, request, path.replace("sonnet", "opus"), body),
        send_signed(bedrock, request, f"{path}?a=1", body),
        send_signed(bedrock, request, path, body, Authorization=turned),
        send_signed(bedrock, request, path, body, Authorization=other),
        send_signed(bedrock, request, path, body, **{"X-Amz-Date": "20200101T000000Z"}),
        send_signed(bedrock, sign(bedrock, path, body, "another secret"), path, body),
        send_signed(bedrock, sign(bedrock, path, body, key_id="AKIDANOTHER"), path, body),
    ]
    for sent in refusals:
        assert_error("bedrock", sent, *BAD_KEY["bedrock"])
    assert send_signed(bedrock, request, path, body).status == 200


# --------------------------------------------------------------------------------------------------- paths and methods

LOST = {
    "openai-chat": (404, "invalid_request_error", "Invalid URL (POST /v1/nothing)"),
    "openai-responses": (404, "invalid_request_error", "Invalid URL (POST /v1/nothing)"),
    "anthropic": (404, "not_found_error", "Not Found"),
    "gemini": (404, "NOT_FOUND", "The requested URL /v1/nothing was not found on this server."),
    "bedrock": (404, "UnknownOperationException", ""),
    "azure-foundry": (404, "invalid_request_error", "Resource not found"),
    "mistral": (404, None, "Not Found"),
    "kimi": (404, "url.not_found", ""),
    "deepseek": (404, "invalid_request_error", ""),
    "qwen": (404, "invalid_request_error", ""),
}


@pytest.mark.parametrize("api", APIS)
def test_a_path_that_leads_nowhere(guarded: dict[str, Emulator], api: str) -> None:
    assert_error(api, request_with_valid_key(guarded[api], "POST", "/v1/nothing", LEAST[api]), *LOST[api])
    for path in ("/", "//v1", "/v1/messages/x", PATHS[api] + "/", "/..", "/%00", "/" + "a" * 5000):
        assert ENVELOPES[api](request_with_valid_key(guarded[api], "POST", path, LEAST[api])).message


HINT = "(HINT: Perhaps you meant to use a different HTTP method?)"
WRONG_METHOD = {
    "openai-chat": (405, f"Not allowed to GET on /v1/chat/completions. {HINT}"),
    "openai-responses": (405, f"Not allowed to GET on /v1/responses. {HINT}"),
    "anthropic": (405, "Method Not Allowed"),
}


@pytest.mark.parametrize("api", APIS)
def test_the_wrong_method(guarded: dict[str, Emulator], api: str) -> None:
    sent = request_with_valid_key(guarded[api], "GET", PATHS[api])
    parsed = ENVELOPES[api](sent)
    status, message = WRONG_METHOD.get(api, (404, parsed.message))
    assert (sent.status, parsed.message) == (status, message)
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        assert request_with_valid_key(guarded[api], method, PATHS[api]).status == status


MODELS = {
    "openai-chat": "/v1/models",
    "openai-responses": "/v1/models",
    "anthropic": "/v1/models",
    "gemini": "/v1beta/models",
    "mistral": "/v1/models",
    "kimi": "/v1/models",
    "deepseek": "/models",
}


@pytest.mark.parametrize("api", MODELS)
def test_models_are_listed(guarded: dict[str, Emulator], api: str) -> None:
    listed = request_with_valid_key(guarded[api], "GET", MODELS[api])
    assert listed.status == 200
    if api == "gemini":
        (model,) = listed.body["models"]
        assert re.fullmatch(r"models/gemini-[\w.-]+", model["name"])
        assert "generateContent" in model["supportedGenerationMethods"]
    else:
        (model,) = listed.body["data"]
        assert model["id"]
        assert model.get("object", model.get("type")) == "model"
    assert ask(guarded[api], "GET", MODELS[api]).status in (401, 403)


COUNTS: list[tuple[str, str, str, dict[str, Any]]] = [
    ("anthropic", "/v1/messages/count_tokens", "input_tokens", {"model": "claude-sonnet-4-5", "messages": [USER]}),
    ("gemini", "/v1beta/models/gemini-3.1-pro-preview:countTokens", "totalTokens", LEAST["gemini"]),
    (
        "gemini",
        "/v1beta/models/gemini-3.1-pro-preview:countTokens",
        "totalTokens",
        {"generateContentRequest": {"model": "models/gemini-3.1-pro-preview", **LEAST["gemini"]}},
    ),
    (
        "bedrock",
        "/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/count-tokens",
        "inputTokens",
        {"input": {"converse": LEAST["bedrock"]}},
    ),
]


@pytest.mark.parametrize(("api", "path", "key", "body"), COUNTS)
def test_tokens_are_counted(guarded: dict[str, Emulator], api: str, path: str, key: str, body: dict[str, Any]) -> None:
    counted = request_with_valid_key(guarded[api], "POST", path, body)
    assert counted.status == 200, counted.data
    longer = json.loads(json.dumps(body).replace('"q"', json.dumps("word " * 100)))
    assert request_with_valid_key(guarded[api], "POST", path, longer).body[key] > counted.body[key] > 0
    broken = json.loads(json.dumps(body).replace('"user"', '"nobody"'))
    assert request_with_valid_key(guarded[api], "POST", path, broken).status == 400
    assert ask(guarded[api], "POST", path, body).status in (401, 403)


# -------------------------------------------------------------------------------------------------------------- bodies

UNREADABLE = [
    b"",
    b"{",
    b'{"a": ',
    b"null",
    b"7",
    b'"text"',
    b"[]",
    b'[{"role": "user"}]',
    b"\xff\xfe",
    b'{"a": NaN}',
    b"not json",
]
BAD_JSON = {
    **dict.fromkeys(
        ("openai-chat", "openai-responses"), (400, "invalid_request_error", "We could not parse the JSON body")
    ),
    "anthropic": (400, "invalid_request_error", "The request body is not valid JSON"),
    "gemini": (400, "INVALID_ARGUMENT", "Invalid JSON payload received."),
    "bedrock": (400, "ValidationException", ""),
    "azure-foundry": (400, "invalid_request_error", ""),
    "mistral": (422, "invalid_request_error", ""),
    "kimi": (400, "invalid_request_error", "Invalid request: "),
    "deepseek": (400, "invalid_request_error", ""),
    "qwen": (400, "invalid_request_error", ""),
}
# JSON, but no object: who looks at the value says so.
NO_OBJECT = {
    "anthropic": (400, "invalid_request_error", "Input should be a valid dictionary"),
    "deepseek": (400, "invalid_request_error", "Failed to deserialize the JSON body into the target type: "),
}
DEEP = b'{"messages": ' + b"[" * 5000 + b"]" * 5000 + b"}"


def error_of_body(api: str, body: bytes) -> tuple[int, str | None, str]:
    try:
        parse_json(body)
    except segue.InputError:
        return BAD_JSON[api]
    return NO_OBJECT[api] if api in NO_OBJECT else BAD_JSON[api]


@pytest.mark.parametrize("api", APIS)
def test_non_object_body(guarded: dict[str, Emulator], api: str) -> None:
    for body in (*UNREADABLE, DEEP):
        assert_error(api, request_with_valid_key(guarded[api], "POST", PATHS[api], body), *error_of_body(api, body))
    assert request_with_valid_key(guarded[api], "POST", PATHS[api], LEAST[api]).status == 200


# What is told of a body without its most needed member.
LACKING = {
    "openai-chat": {
        "model": (400, "you must provide a model parameter"),
        "messages": (400, "Missing required parameter: 'messages'."),
    },
    "openai-responses": {
        "model": (400, "Missing required parameter: 'model'."),
        "input": (400, "Missing required parameter: 'input'."),
    },
    "anthropic": {name: (400, f"{name}: Field required") for name in ("model", "max_tokens", "messages")},
    "gemini": {"contents": (400, "* GenerateContentRequest.contents: contents is not specified\n")},
    "bedrock": {"messages": (400, "A conversation must start with a user message.")},
    "azure-foundry": {"input": (400, "Missing required parameter: 'input'.")},
    "mistral": dict.fromkeys(("model", "messages"), (422, "Field required")),
    "kimi": dict.fromkeys(("model", "messages"), (400, "Invalid request: ")),
    "deepseek": {
        "model": (
            400,
            "Failed to deserialize the JSON body into the target type: missing field `model` at line 1 column 48",
        ),
        "messages": (
            400,
            "Failed to deserialize the JSON body into the target type: missing field `messages` at line 1 column 14",
        ),
    },
    "qwen": dict.fromkeys(("model", "messages"), (400, "")),
}


@pytest.mark.parametrize(("api", "name"), [(api, name) for api, names in LACKING.items() for name in names])
def test_missing_required_fields(guarded: dict[str, Emulator], api: str, name: str) -> None:
    body = {key: value for key, value in LEAST[api].items() if key != name}
    sent = request_with_valid_key(guarded[api], "POST", PATHS[api], body)
    parsed = ENVELOPES[api](sent)
    status, begins = LACKING[api][name]
    assert (sent.status, parsed.message[: len(begins)]) == (status, begins)
    if api == "mistral":
        assert [one["loc"] for one in parsed.details] == [["body", name]]
    if api.startswith("openai") and begins.startswith("Missing"):
        assert (parsed.code, sent.body["error"]["param"]) == ("missing_required_parameter", name)


def test_anthropic_requires_its_version_header(guarded: dict[str, Emulator]) -> None:
    sent = request_with_valid_key(
        guarded["anthropic"], "POST", PATHS["anthropic"], LEAST["anthropic"], **{"anthropic-version": ""}
    )
    assert_error("anthropic", sent, 400, "invalid_request_error", "anthropic-version: header is required")


# ------------------------------------------------------------------------------------------------------------- streams


@pytest.mark.parametrize("version", ["v1", "v1beta"])
def test_streams_of_gemini(guarded: dict[str, Emulator], version: str) -> None:
    gemini, body = guarded["gemini"], LEAST["gemini"]
    path = f"/{version}/models/gemini-3.1-pro-preview:"
    assert request_with_valid_key(gemini, "POST", f"{path}generateContent", body).status == 200
    events = request_with_valid_key(gemini, "POST", f"{path}streamGenerateContent?alt=sse", body)
    assert events.headers["content-type"].startswith("text/event-stream")
    assert events.data.startswith(b"data: {")
    listed = request_with_valid_key(gemini, "POST", f"{path}streamGenerateContent", body)
    assert listed.headers["content-type"] == "application/json; charset=UTF-8"
    assert isinstance(listed.body, list)
    texts = [
        "".join(part.get("text", "") for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"])
        for chunks in (listed.body, [json.loads(line[6:]) for line in events.data.decode().splitlines() if line])
    ]
    assert all(texts)
    assert listed.body[-1]["candidates"][0]["finishReason"] == "STOP"


def test_errors_of_gemini_where_a_list_is_awaited(guarded: dict[str, Emulator]) -> None:
    """A stream without `alt=sse` is a list, and so is its error; with it, and at once, the error is an object."""
    gemini, path = guarded["gemini"], "/v1beta/models/gemini-3.1-pro-preview:"
    bad = {"contents": [{"role": "model", "parts": []}]}
    alone = request_with_valid_key(gemini, "POST", f"{path}generateContent", bad)
    (entry,) = request_with_valid_key(gemini, "POST", f"{path}streamGenerateContent", bad).body
    assert (
        entry == alone.body == request_with_valid_key(gemini, "POST", f"{path}streamGenerateContent?alt=sse", bad).body
    )
    shut = ask(gemini, "POST", f"{path}streamGenerateContent", bad)
    assert (shut.status, shut.body[0]["error"]["status"]) == (403, "PERMISSION_DENIED")


def test_a_stream_of_bedrock(guarded: dict[str, Emulator]) -> None:
    sent = request_with_valid_key(guarded["bedrock"], "POST", PATHS["bedrock"] + "-stream", LEAST["bedrock"])
    assert (sent.status, sent.headers["content-type"]) == (200, "application/vnd.amazon.eventstream")
    assert sent.headers["x-amzn-requestid"]
    reply = segue.assemble(sent.data, "bedrock")
    assert reply.finish == "stop"
    assert reply.text


@pytest.mark.parametrize("api", [api for api in APIS if api not in ("gemini", "bedrock")])
def test_streams_are_events(guarded: dict[str, Emulator], api: str) -> None:
    sent = request_with_valid_key(guarded[api], "POST", PATHS[api], {**LEAST[api], "stream": True})
    assert (sent.status, sent.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    reply = segue.assemble(sent.data, api)
    assert reply.finish == "stop"
    assert reply.text
    # What is refused is refused before a stream begins.
    broken = {**LEAST[api], "stream": True, "messages": [{"role": "nobody"}], "input": [{"role": "nobody"}]}
    assert ENVELOPES[api](request_with_valid_key(guarded[api], "POST", PATHS[api], broken)).message


# ------------------------------------------------------------------------------------------------------------- lenient

ORPHAN = {"messages": [USER, {"role": "tool", "tool_call_id": "x", "content": "r"}]}
BROKEN: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("openai-chat", "mistral", "kimi", "deepseek", "qwen"), ORPHAN),
    "anthropic": {
        "messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": "r"}]}]
    },
    "openai-responses": {"input": [{"type": "function_call_output", "call_id": "x", "output": "r"}]},
    "azure-foundry": {"input": [{"type": "function_call_output", "call_id": "x", "output": "r"}]},
    "gemini": {"contents": [{"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]}]},
    "bedrock": {"messages": [{"role": "user", "content": [{"toolResult": {"toolUseId": "x", "content": []}}]}]},
}


@pytest.mark.parametrize("api", APIS)
def test_lenient_provider_replies_and_records(api: str) -> None:
    with emulator.start(api, strict=False) as provider:
        for stream in (False, True):
            sent = post(provider, BROKEN[api], stream=stream, key=None, headers={"anthropic-version": ""})
            assert sent.status == 200, sent.data
            record = provider.requests[-1]
            assert any(violation.severity == "reject" for violation in record.violations)
            assert record.refused is None
        for body in (b"", b"[]", DEEP):
            assert_error(api, post(provider, body, key=None), *error_of_body(api, body))
        assert post(provider, LEAST[api], key=None).status == 200
        assert not provider.requests[-1].violations


# -------------------------------------------------------------------------------------------------------------- the end


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_while_the_server_stops(port: int, stream: bool) -> None:
    """A waiting client is disconnected at once, and nothing hangs."""
    provider = emulator.start("openai-chat", script="say a\nwait 1000\nsay b", port=port)
    outcome: list[object] = []

    def wait() -> None:
        try:
            outcome.append(post(provider, CHAT, stream=stream, timeout=TIMEOUT))
        except (http.client.HTTPException, OSError) as error:
            outcome.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    while not provider.requests:
        waiting.join(0.01)
    provider.stop()
    waiting.join(TIMEOUT)
    assert not waiting.is_alive()
    (what,) = outcome
    assert isinstance(what, http.client.HTTPException | OSError)
    with pytest.raises(OSError, match=r"refused|reset"):
        post(provider, CHAT)
    with socket.create_server(("127.0.0.1", provider.port)):
        pass  # the port is free again
    provider.stop()


def test_every_provider_has_its_doors_tested() -> None:
    assert set(APIS) == set(PROVIDERS) == set(LACKING) == set(BAD_JSON) == set(LOST)
