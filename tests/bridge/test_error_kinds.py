"""Each kind of error, from every provider, as clients of every API get it: whole and streamed, early and late."""

from __future__ import annotations

import json
import re
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from segue.bridge.provider_errors import TransportError, response_error
from segue.emulator.errors import standard_errors
from segue.error_kinds import KINDS, ErrorKind, find_kind
from segue.models import parse_model
from segue.render.report import Report
from segue.wire.base import ApiError, RenderContext
from segue.wire.ids import IdMap
from segue.wire.names import ANY_NAME, NameMap
from segue.wire.registry import WIRES
from segue.wire.stream.parse import DEFAULT_TURN_KEY
from tests.bridge.exchanges import (
    CALLER_APIS,
    MODELS,
    NOW,
    Answer,
    Response,
    Shell,
    carry_out,
    endpoint,
    make_reply,
    path_of,
    request_body,
    stream_bytes,
    whole,
)

CALLERS = (*CALLER_APIS, "mistral")
EVERY_PAIR = pytest.mark.parametrize(("api", "caller"), [(api, caller) for api in MODELS for caller in CALLERS])
WAIT = "7"
CODEX = {"user-agent": "codex_exec/0.166.0 (Linux)"}
CODEX_AGENT = {"user_agent": CODEX["user-agent"]}

# What the issue and the clients want: the status, and what stands where their API has a code.
EXPECTED: dict[ErrorKind, dict[str, tuple[int, str]]] = {
    "too-long": {
        "openai-chat": (400, "context_length_exceeded"),
        "mistral": (400, "context_length_exceeded"),
        "openai-responses": (400, "context_length_exceeded"),
        "anthropic": (400, "invalid_request_error"),
        "gemini": (400, "INVALID_ARGUMENT"),
        "bedrock": (400, "ValidationException"),
    },
    "no-credit": {
        "openai-chat": (402, "insufficient_quota"),
        "mistral": (402, "insufficient_quota"),
        "openai-responses": (402, "insufficient_quota"),
        "anthropic": (402, "billing_error"),
        "gemini": (429, "RESOURCE_EXHAUSTED"),
        "bedrock": (400, "ServiceQuotaExceededException"),
    },
    "rate-limited": {
        "openai-chat": (429, "rate_limit_exceeded"),
        "mistral": (429, "rate_limit_exceeded"),
        "openai-responses": (429, "rate_limit_exceeded"),
        "anthropic": (429, "rate_limit_error"),
        "gemini": (429, "RESOURCE_EXHAUSTED"),
        "bedrock": (429, "ThrottlingException"),
    },
    "overloaded": {
        "openai-chat": (503, "server_is_overloaded"),
        "mistral": (503, "server_is_overloaded"),
        "openai-responses": (503, "server_is_overloaded"),
        "anthropic": (529, "overloaded_error"),
        "gemini": (503, "UNAVAILABLE"),
        "bedrock": (503, "ServiceUnavailableException"),
    },
    "provider-key": {
        "openai-chat": (503, "provider_auth_failed"),
        "mistral": (503, "provider_auth_failed"),
        "openai-responses": (503, "provider_auth_failed"),
        "anthropic": (503, "provider_auth_failed"),
        "gemini": (503, "PROVIDER_AUTH_FAILED"),
        "bedrock": (503, "provider_auth_failed"),
    },
    "unknown-model": {
        "openai-chat": (404, "model_not_found"),
        "mistral": (404, "model_not_found"),
        "openai-responses": (404, "model_not_found"),
        "anthropic": (404, "not_found_error"),
        "gemini": (404, "NOT_FOUND"),
        "bedrock": (404, "ResourceNotFoundException"),
    },
}
# The text that clients look for.
TOO_LONG_TEXTS = {
    "openai-chat": r"maximum context length .*reduce the length of the messages",
    "mistral": r"maximum context length .*reduce the length of the messages",
    "openai-responses": r"exceeds the context window",
    "anthropic": r"prompt is too long",
    "gemini": r"input token count.*exceeds the maximum",
    "bedrock": r"input is too long for requested model",
}


def provider_error(api: str, kind: str) -> ApiError:
    """Return an error with the status, the code and the text of this provider."""
    standard = standard_errors(api)
    return {
        "too-long": standard.context_length,
        "no-credit": standard.no_credit,
        "rate-limited": standard.rate_limited,
        "overloaded": standard.overloaded,
        "failed": standard.server_error,
        "provider-key": standard.bad_key,
        "unknown-model": standard.no_model(MODELS[api]),
    }[kind]


def error_response(api: str, error: ApiError, **headers: str) -> Response:
    body = WIRES[api].render_error(error)
    if api == "bedrock":
        headers["x-amzn-errortype"] = error.kind
    return Response([json.dumps(body).encode()], error.status, headers)


def answer_error(
    api: str, caller: str, error: ApiError, *, stream: bool = False, user_agent: str = "test", **headers: str
) -> Answer:
    """Return what a caller gets; a request that is sent again fails the test."""
    shell = Shell(endpoint(api), attempts=3, caller="mistral" if caller == "mistral" else None)
    kind = find_kind(error.status, (error.kind, error.code), error.message)
    times = 1 if KINDS[kind].is_final else 3
    return shell.run(
        path_of(caller, stream=stream),
        request_body(caller, stream=stream),
        [error_response(api, error, **headers)] * times,
        headers={"user-agent": user_agent},
    )


def code_of(caller: str, body: dict[str, Any]) -> str:
    """Return the code in an error body, where clients of this API look for it."""
    inner = body.get("error", body)
    if caller == "anthropic":
        return inner.get("details", {}).get("error_code") or inner["type"]
    if caller == "gemini":
        reasons = [detail["reason"] for detail in inner.get("details", ()) if "reason" in detail]
        return reasons[0] if reasons else inner["status"]
    if caller == "bedrock":
        return "provider_auth_failed" if "provider_auth_failed" in body["message"] else body["__type"]
    if caller == "mistral" and "detail" in body:
        return "model_not_found"  # The vendor's form for this status has no code.
    return inner["code"]


def events_of(data: bytes) -> list[Any]:
    lines = [line for line in data.decode().splitlines() if line.startswith("data: {")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def is_event(caller: str, kind: str, *, codex: bool = False) -> bool:
    return caller == "openai-responses" and (kind == "too-long" or (codex and kind not in ("overloaded", "failed")))


# -------------------------------------------------------------------------------------------- before the first content


@EVERY_PAIR
@pytest.mark.parametrize("stream", [False, True])
def test_error_before_the_first_content(api: str, caller: str, stream: bool) -> None:
    for kind, expected in EXPECTED.items():
        status, code = expected[caller]
        is_final = KINDS[kind].is_final
        headers = {} if is_final else {"retry-after": WAIT}
        answer = answer_error(api, caller, provider_error(api, kind), stream=stream, **headers)
        what = (kind, answer.status, answer.data)
        assert answer.relay.error is not None
        assert answer.relay.error.kind == kind, what
        if stream and is_event(caller, kind):
            assert answer.status == 200, what
            created, *_, failed = events_of(answer.data)
            assert (created["type"], failed["type"]) == ("response.created", "response.failed"), what
            assert failed["response"]["error"]["code"] == code, what
            continue
        assert answer.status == status, what
        assert code_of(caller, answer.body) == code, what
        assert answer.headers.get("retry-after") == (None if is_final else WAIT)
        assert answer.headers.get("x-should-retry") == ("false" if is_final else None), what


@EVERY_PAIR
def test_final_error_is_sent_once(api: str, caller: str) -> None:
    for kind in EXPECTED:
        for stream in (False, True):
            answer = answer_error(api, caller, provider_error(api, kind), stream=stream)
            assert len(answer.sent) == (1 if KINDS[kind].is_final else 3), (kind, answer.data)


@EVERY_PAIR
def test_text_that_is_too_long_has_the_words_that_clients_look_for(api: str, caller: str) -> None:
    for stream in (False, True):
        answer = answer_error(api, caller, provider_error(api, "too-long"), stream=stream)
        assert re.search(TOO_LONG_TEXTS[caller], answer.data.decode(), re.IGNORECASE | re.DOTALL), answer.data


@pytest.mark.parametrize("api", MODELS)
def test_codex_gets_events_that_it_acts_on(api: str) -> None:
    """It ends the turn after these codes, and shows the text of `invalid_prompt`; it waits for a rate limit."""
    codes = {
        "too-long": "context_length_exceeded",
        "no-credit": "invalid_prompt",
        "rate-limited": "rate_limit_exceeded",
        "provider-key": "invalid_prompt",
        "unknown-model": "invalid_prompt",
    }
    for kind, code in codes.items():
        answer = answer_error(
            api,
            "openai-responses",
            provider_error(api, kind),
            stream=True,
            user_agent=CODEX["user-agent"],
            **({"retry-after": WAIT} if kind == "rate-limited" else {}),
        )
        error = events_of(answer.data)[-1]["response"]["error"]
        assert (answer.status, error["code"]) == (200, code), (kind, answer.data)
        if kind == "rate-limited":
            assert re.search(r"try again in\s*7\s*s", error["message"]), error


def test_gemini_gets_the_wait_and_whether_it_is_final() -> None:
    limited = answer_error("anthropic", "gemini", provider_error("anthropic", "rate-limited"), **{"retry-after": WAIT})
    (info,) = limited.body["error"]["details"]
    assert info == {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}
    for kind in ("no-credit", "provider-key"):
        final = answer_error("anthropic", "gemini", provider_error("anthropic", kind))
        assert re.search(r"limit:\s*0(?!\d|\.\d)", final.body["error"]["message"])


# -------------------------------------------------------------------------------------------------- after a keep-alive


@EVERY_PAIR
def test_error_after_keep_alives_is_the_terminal_event(api: str, caller: str) -> None:
    if caller == "bedrock":
        return  # There are no bytes that its clients ignore, so nothing is sent before the reply.
    for kind in EXPECTED:
        shell = Shell(endpoint(api), caller="mistral" if caller == "mistral" else None)
        relay = shell.open(path_of(caller, stream=True), request_body(caller, stream=True))
        early = relay.keep_alive()
        answer = carry_out_late(relay, early, [error_response(api, provider_error(api, kind))], shell)
        assert answer.status == 200
        check_terminal_event(caller, kind, answer.data)


def carry_out_late(relay: Any, early: list[Any], responses: list[Response], shell: Shell) -> Answer:
    """Carry out a relay after its keep-alive."""
    relay.actions = [*early, *relay.actions]
    return carry_out(relay, responses, shell.memory)


def check_terminal_event(caller: str, kind: ErrorKind, data: bytes) -> None:
    _, code = EXPECTED[kind][caller]
    if caller == "openai-responses":
        events = events_of(data)
        assert events[0]["type"] == "response.created", data
        assert events[-1]["type"] == "response.failed", data
        final = {**dict.fromkeys(("no-credit", "provider-key", "unknown-model"), "invalid_prompt")}
        final["overloaded"] = "server_error"
        assert events[-1]["response"]["error"]["code"] == final.get(kind, code), data
        assert b"event: error" not in data
    elif caller == "gemini":
        assert code_of(caller, json.loads(data.rpartition(b"\n\n")[2])) == code, data
    elif caller == "bedrock":
        parser = WIRES[caller].open_stream(DEFAULT_TURN_KEY)
        parser.feed(data)
        parser.close()
        assert parser.error is not None
    else:
        assert code_of(caller, events_of(data)[-1]) == code, data


# --------------------------------------------------------------------------------------------- after the first content


def error_frame(api: str, error: ApiError) -> bytes:
    """Return an error as a provider of this API sends it inside of a stream."""
    wire = WIRES[api]
    context = RenderContext(
        IdMap(wire.id_scheme(parse_model(None)), provider=wire.provider), NameMap(ANY_NAME), Report()
    )
    data = wire.stream_renderer(context, MODELS[api]).render_failure(error)
    if wire.base_api == "openai-responses" and error.code is not None:
        # Its clients get another code of segue.
        data = data.replace(b'"invalid_prompt"', json.dumps(error.code).encode())
    return data if wire.base_api != "gemini" else b"data: " + data.strip() + b"\n\n"


@EVERY_PAIR
def test_error_after_the_first_content(api: str, caller: str) -> None:
    data = stream_bytes(api, make_reply(api, text="A longer text. " * 30))
    if api == "bedrock":
        frames, size = b"", 0
        while len(frames) < len(data) // 2:
            size = int.from_bytes(data[len(frames) : len(frames) + 4])
            frames = data[: len(frames) + size]
        begin = frames
    else:
        events = data.split(b"\n\n")
        begin = b"\n\n".join(events[: len(events) // 2]) + b"\n\n"
    kinds: tuple[ErrorKind, ...] = ("too-long", "no-credit", "rate-limited", "overloaded")
    for kind in kinds:
        error = provider_error(api, kind)
        if api == "bedrock" and kind == "no-credit":
            continue  # It is no exception of a stream.
        shell = Shell(endpoint(api), attempts=3, caller="mistral" if caller == "mistral" else None)
        answer = shell.run(
            path_of(caller, stream=True),
            request_body(caller, stream=True),
            [Response([begin, error_frame(api, error)])],
        )
        assert (answer.status, len(answer.sent)) == (200, 1)
        assert answer.relay.error is not None
        # In a stream there is no status, and some providers have no code of their own for an overload.
        accepted = (kind, "failed") if kind == "overloaded" else (kind,)
        assert answer.relay.error.kind in accepted, (kind, answer.relay.error)
        if answer.relay.error.kind == "failed":
            continue
        check_terminal_event(caller, kind, answer.data)


# --------------------------------------------------------------------------------------------------------- the details


TOO_LONG = {
    "anthropic": "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length "
    "or `max_tokens` and try again",
    "xai": "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "zai": "Prompt exceeds max length",
    "groq": "Please reduce the length of the messages or completion.",
    "cerebras": "Please reduce the length of the messages or completion. Current length is 42328 while limit is 40000",
    "vllm": "The decoder prompt (length 8357) is longer than the maximum model length of 8192. Make sure that "
    "`max_model_len` is no smaller than the number of text tokens.",
    "tgi": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 1512. Given: 1000 `inputs` tokens "
    "and 1024 `max_new_tokens`",
}


@pytest.mark.parametrize("server", TOO_LONG)
def test_texts_that_mean_too_long(server: str) -> None:
    for status in (0, 400, 422):
        assert find_kind(status, ("invalid_request_error",), TOO_LONG[server]) == "too-long"
    # A rate limit of tokens is none.
    assert find_kind(429, (), TOO_LONG[server]) == "rate-limited"
    error = ApiError(400, TOO_LONG[server])
    for caller in CALLERS:
        assert code_of(caller, answer_error("openai-chat", caller, error).body) == EXPECTED["too-long"][caller][1]


@pytest.mark.parametrize("code", ["usage_not_included", "cyber_policy", "misalignment_policy_violation", "bio_policy"])
@pytest.mark.parametrize("stream", [False, True])
def test_codes_that_codex_knows_are_kept(code: str, stream: bool) -> None:
    status = 429 if code == "usage_not_included" else 400
    for api in ("openai-responses", "openai-chat"):
        failed = ApiError(status, "No.", code, code)
        answer = answer_error(api, "openai-responses", failed, stream=stream, **CODEX_AGENT)
        assert len(answer.sent) == 1
        event = stream and code == "usage_not_included"
        error = events_of(answer.data)[-1]["response"]["error"] if event else answer.body["error"]
        assert (answer.status, error["code"]) == (200 if event else 402 if code == "usage_not_included" else 400, code)
    data = stream_bytes("openai-responses", make_reply("openai-responses", text="A longer text. " * 30))
    events = data.split(b"\n\n")
    chunks = [b"\n\n".join(events[: len(events) // 2]) + b"\n\n"]
    failed = {"type": "response.failed", "response": {"status": "failed", "error": {"code": code, "message": "No."}}}
    chunks.append(f"event: response.failed\ndata: {json.dumps(failed)}\n\n".encode())
    answer = Shell(endpoint("openai-responses")).run(
        "/v1/responses", request_body("openai-responses", stream=True), [Response(chunks)]
    )
    assert events_of(answer.data)[-1]["response"]["error"]["code"] == code


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("context_length_exceeded", 200),
        ("insufficient_quota", 402),
        ("usage_not_included", 402),
        ("cyber_policy", 400),
        ("previous_response_not_found", 404),
        ("server_is_overloaded", 503),
    ],
)
def test_event_of_a_failed_response_before_content_keeps_its_code(code: str, status: int) -> None:
    """The provider answers with the status 200, so only the code of the event shows what it is."""
    failed = {"type": "response.failed", "response": {"status": "failed", "error": {"code": code, "message": "No."}}}
    created = {"type": "response.created", "response": {"id": "resp_1", "object": "response", "status": "in_progress"}}
    chunks = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in (created, failed)]
    is_final = code != "server_is_overloaded"
    shell = Shell(endpoint("openai-responses"), attempts=3)
    answer = shell.run(
        "/v1/responses", request_body("openai-responses", stream=True), [Response(chunks)] * (1 if is_final else 3)
    )
    error = events_of(answer.data)[-1]["response"]["error"] if status == 200 else answer.body["error"]
    assert (answer.status, error["code"]) == (status, code), answer.data
    assert status == 200 or answer.headers.get("x-should-retry") == ("false" if is_final else None)


@pytest.mark.parametrize(
    ("api", "code", "status"),
    [
        ("anthropic", "thread_not_found", 404),
        ("anthropic", "thread_unsupported_request", 400),
        ("openai-responses", "previous_response_not_found", 400),
        ("openai-responses", "conversation_not_found", 404),
    ],
)
def test_unknown_references_pass_with_their_code(api: str, code: str, status: int) -> None:
    for stream in (False, True):
        error = ApiError(status, "Not found.", "not_found_error" if status == 404 else "invalid_request_error", code)
        shell = Shell(endpoint(api), endpoint(api, 1), attempts=3)
        answer = shell.run(path_of(api), request_body(api, stream=stream), [error_response(api, error)])
        assert (answer.status, code_of(api, answer.body), len(answer.sent)) == (status, code, 1), answer.data
        assert answer.headers["x-should-retry"] == "false"


@pytest.mark.parametrize("api", ["openai-chat", "openai-responses", "anthropic", "gemini"])
@pytest.mark.parametrize("stream", [False, True])
def test_key_of_the_client_is_rejected_as_the_vendor_does(api: str, stream: bool) -> None:
    target = replace(endpoint(api), provider={"gemini": "gemini", "anthropic": "anthropic"}.get(api, "openai"))
    error = standard_errors(api).bad_key
    shell = Shell(target, pass_credentials=True)
    answer = shell.run(
        path_of(api, stream=stream),
        request_body(api, stream=stream),
        [error_response(api, error)],
        headers={"authorization": "Bearer own", "user-agent": CODEX["user-agent"]},
    )
    assert answer.status == error.status, answer.data
    assert WIRES[api].parse_error(answer.status, answer.body).code == error.code
    assert answer.headers["x-should-retry"] == "false"
    assert b"provider_auth_failed" not in answer.data


def test_every_wire_has_a_form_for_every_kind() -> None:
    for name, wire in WIRES.items():
        assert set(wire.error_forms) == set(KINDS) == set(get_args(ErrorKind)), name


def test_connection_that_fails_is_no_final_error() -> None:
    for caller in CALLER_APIS:
        for failure, status in ((TransportError("connect", "no"), 502), (TransportError("timeout", "no"), 504)):
            shell = Shell(endpoint("anthropic"))
            failed = Response([], 0, failure=failure)
            answer = shell.run(path_of(caller), request_body(caller), [failed])
            assert answer.status == status
            assert "x-should-retry" not in answer.headers


def test_providers_own_word_decides_where_the_error_does_not() -> None:
    for status, body, retryable in ((400, b"{}", True), (429, b'{"error":{"code":"insufficient_quota"}}', False)):
        error = response_error(endpoint("openai-chat"), status, {"x-should-retry": "true"}, body, now=NOW)
        assert error.retryable is retryable


def test_whole_reply_after_an_error_of_another_target() -> None:
    for kind in ("no-credit", "rate-limited", "overloaded", "provider-key", "unknown-model"):
        shell = Shell(endpoint("openai-chat"), endpoint("anthropic", 1))
        failed = error_response("openai-chat", provider_error("openai-chat", kind))
        assert shell.run("/v1/messages", request_body("anthropic"), [failed, whole("anthropic")]).status == 200
