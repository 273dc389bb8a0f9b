"""Failures of targets: retries and fallback before the first content, errors in the caller's form after it."""

from __future__ import annotations

import json

import pytest

from segue.bridge.actions import ResponseHead
from segue.bridge.aws import Credentials
from segue.bridge.provider_errors import TransportError
from segue.bridge.secret import Secret
from segue.errors import InputError
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
    Response,
    Shell,
    carry_out,
    endpoint,
    make_reply,
    path_of,
    request_body,
    split,
    stream_bytes,
    streamed,
    whole,
)

LOST = TransportError("lost", "connection reset")
EVERY_API = pytest.mark.parametrize("api", MODELS)
EVERY_CALLER = pytest.mark.parametrize("caller", CALLER_APIS)


def error_response(api: str, status: int, message: str = "No.", **headers: str) -> Response:
    body = WIRES[api].render_error(ApiError(status, message))
    return Response(
        [json.dumps(body).encode()], status, {name.replace("_", "-"): value for name, value in headers.items()}
    )


def first_events(api: str, count: int = 1) -> bytes:
    """Return the start of a reply: the first events of a stream, before any content."""
    data = stream_bytes(api)
    if WIRES[api].base_api == "bedrock":
        size = int.from_bytes(data[:4])
        return data[:size]
    return b"\n\n".join(data.split(b"\n\n")[:count]) + b"\n\n"


def error_frame(api: str) -> bytes:
    """Return an error as a provider of this API sends it inside of a stream."""
    wire = WIRES[api]
    context = RenderContext(
        IdMap(wire.id_scheme(parse_model(None)), provider=wire.provider), NameMap(ANY_NAME), Report()
    )
    data = wire.stream_renderer(context, MODELS[api]).render_failure(ApiError(529, "Overloaded", "overloaded_error"))
    return data if wire.base_api != "gemini" else b"data: " + data.strip() + b"\n\n"


# The failures of a target before any content of a stream.
def early_failures(api: str) -> dict[str, Response]:
    # Only these APIs send a start that is not content.
    opening = first_events(api) if WIRES[api].base_api in ("anthropic", "openai-responses", "bedrock") else b""
    return {
        "refused": Response([], 0, failure=TransportError("connect", "refused")),
        "timeout": Response([], 0, failure=TransportError("timeout", "timed out")),
        "status": error_response(api, 500),
        "empty": Response([]),
        "reset": Response([], failure=LOST),
        "opening": Response([opening] if opening else []),
        "opening, reset": Response([opening] if opening else [], failure=LOST),
        "error frame": Response([error_frame(api)]),
        "opening, error frame": Response([opening + error_frame(api)]),
        "web page": Response([b"<html><title>Bad gateway</title></html>"]),
        "compressed": Response([b"\x1f\x8b"], 200, {"content-encoding": "gzip"}),
        "half an event": Response([stream_bytes(api)[:20]]),
    }


@EVERY_API
@pytest.mark.parametrize("kind", early_failures("anthropic"))
def test_next_target_is_used_before_the_first_content(kind: str, api: str) -> None:
    for caller in CALLER_APIS:
        second = "gemini" if api != "gemini" else "anthropic"
        for size in (0, 9):
            failed = early_failures(api)[kind]
            failed = failed._replace(chunks=[part for chunk in failed.chunks for part in split(chunk, size)])
            shell = Shell(endpoint(api), endpoint(second, 1))
            path = path_of(caller, stream=True)
            answer = shell.run(path, request_body(caller, stream=True), [failed, streamed(second)])
            assert answer.status == 200, (caller, answer.data)
            parser = WIRES[caller].open_stream(DEFAULT_TURN_KEY)
            parser.feed(answer.data)
            reply = parser.close()
            assert (reply.text, reply.finish) == ("Hello back.", "stop")
            assert [request.url.split("/")[2] for request in answer.sent] == ["host0.example", "host1.example"]
            assert answer.relay.target == f"p1/{MODELS[second]}"
            assert answer.relay.error is not None


@EVERY_API
def test_request_that_another_target_would_refuse_too_is_sent_once(api: str) -> None:
    for message in ("No.", "Your input was flagged by our moderation.", "Rejected by the content filter."):
        for stream in (False, True):
            shell = Shell(endpoint(api), endpoint("anthropic", 1), attempts=2)
            body = request_body("openai-chat", stream=stream)
            answer = shell.run(path_of("openai-chat", stream=stream), body, [error_response(api, 400, message)])
            assert (answer.status, len(answer.sent)) == (400, 1), message


@EVERY_API
@pytest.mark.parametrize("kind", early_failures("anthropic"))
def test_last_target_that_fails_gives_an_error_response(kind: str, api: str) -> None:
    for caller in CALLER_APIS:
        shell = Shell(endpoint(api))
        answer = shell.run(path_of(caller, stream=True), request_body(caller, stream=True), [early_failures(api)[kind]])
        assert answer.status >= 400, (caller, answer.status)
        assert answer.status == 400 or answer.status >= 500
        assert WIRES[caller].parse_error(answer.status, answer.body).message
        assert "upstream-0" not in answer.data.decode()


@pytest.mark.parametrize("api", MODELS)
def test_whole_reply_that_fails(api: str) -> None:
    error = json.dumps(WIRES[api].render_error(ApiError(529, "Overloaded", "overloaded_error"))).encode()
    failures = [
        Response([error]),
        Response([b""]),
        Response([b"not JSON"]),
        Response([b"[]"]),
        Response([whole(api).chunks[0][:-10]]),
        Response([whole(api).chunks[0][:10]], failure=LOST),
    ]
    for caller in CALLER_APIS:
        for failed in failures:
            shell = Shell(endpoint(api), endpoint("anthropic", 1))
            answer = shell.run(path_of(caller), request_body(caller), [failed, whole("anthropic")])
            assert answer.status == 200
            assert WIRES[caller].parse_reply(answer.body).text == "Hello back."
            alone = Shell(endpoint(api)).run(path_of(caller), request_body(caller), [failed])
            assert alone.status >= 500


# --------------------------------------------------------------------------------------------- after the first content


@EVERY_CALLER
@EVERY_API
def test_failure_after_the_first_content_ends_the_stream(api: str, caller: str) -> None:
    data = stream_bytes(api, make_reply(api, text="A longer text. " * 30))
    half = data[: len(data) // 2]
    for failed in (Response([half]), Response([half], failure=LOST), Response([half, b"\n\n" + error_frame(api)])):
        if api == "bedrock" and len(failed.chunks) == 2:
            continue
        shell = Shell(endpoint(api), endpoint("anthropic", 1))
        answer = shell.run(path_of(caller, stream=True), request_body(caller, stream=True), [failed])
        assert answer.status == 200
        parser = WIRES[caller].open_stream(DEFAULT_TURN_KEY)
        parser.feed(answer.data)
        reply = parser.close()
        assert reply.finish == "error"
        assert reply.text
        assert len(answer.sent) == 1
        assert answer.relay.error is not None
        assert answer.relay.finish == "error"


def test_error_in_a_stream_ends_it_at_once() -> None:
    """The provider's response has no end here: reading more would fail the test."""
    for api in MODELS:
        if api == "bedrock":
            continue
        shell = Shell(endpoint(api))
        relay = shell.open("/v1/chat/completions", request_body("openai-chat", stream=True))
        relay.feed(ResponseHead(200, {}))
        events = stream_bytes(api, make_reply(api, text="A longer text. " * 30)).split(b"\n\n")
        relay.feed(b"\n\n".join(events[: len(events) // 2]) + b"\n\n")
        relay.feed(error_frame(api))
        assert relay.is_done, api


# -------------------------------------------------------------------------------------------------------------- retries


def test_retries_wait_and_stop() -> None:
    shell = Shell(endpoint("anthropic"), attempts=3)
    responses = [
        error_response("anthropic", 529),
        error_response("anthropic", 429, retry_after="7"),
        whole("anthropic"),
    ]
    answer = shell.run(path_of("openai-chat"), request_body("openai-chat"), responses)
    assert answer.status == 200
    assert answer.waits == [0.5, 7.0]
    answer = shell.run(path_of("openai-chat"), request_body("openai-chat"), [error_response("anthropic", 529)] * 3)
    assert answer.status == 503
    assert len(answer.sent) == 3


def test_request_that_would_fail_again_is_not_repeated() -> None:
    shell = Shell(endpoint("anthropic"), attempts=3)
    answer = shell.run(path_of("openai-chat"), request_body("openai-chat"), [error_response("anthropic", 400)])
    assert (answer.status, answer.waits) == (400, [])


@EVERY_CALLER
def test_retry_after_is_passed_on(caller: str) -> None:
    for value, expected in (("7", "7"), ("1.2", "2"), ("Wed, 18 Nov 2026 12:00:30 GMT", "30")):
        answer = Shell(endpoint("anthropic")).run(
            path_of(caller), request_body(caller), [error_response("anthropic", 429, retry_after=value)]
        )
        assert answer.status == 429
        assert answer.headers["retry-after"] == expected


@EVERY_CALLER
@EVERY_API
def test_status_of_errors(api: str, caller: str) -> None:
    for status, expected in ((400, 400), (401, 503), (404, 404), (413, 400), (429, 429), (500, 500)):
        answer = Shell(endpoint(api)).run(path_of(caller), request_body(caller), [error_response(api, status)])
        assert answer.status == expected, (status, answer.data)
    answer = Shell(endpoint(api)).run(path_of(caller), request_body(caller), [error_response(api, 503)])
    assert answer.status == (529 if caller == "anthropic" else 503)


# ---------------------------------------------------------------------------------------------------------- credentials


def test_missing_key_uses_the_next_target() -> None:
    without = endpoint("openai-chat", key=None, variables=("SOME_KEY",))
    shell = Shell(without, endpoint("anthropic", 1))
    answer = shell.run(path_of("gemini"), request_body("gemini"), [whole("anthropic")])
    assert answer.status == 200
    alone = Shell(without).run(path_of("gemini"), request_body("gemini"))
    assert alone.status == 503
    assert "SOME_KEY" in alone.data.decode()


class _Source:
    """A source of AWS credentials that may block, or fail."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails

    def get(self) -> Credentials:
        if self.fails:
            raise InputError("AWS credentials could not be fetched: run aws sso login")
        return Credentials(Secret("AKID"), Secret("secret"), Secret("session"))


@pytest.mark.parametrize("stream", [False, True])
def test_credentials_are_fetched_for_each_request(stream: bool) -> None:
    target = endpoint("bedrock", key=None, signer=_Source(), region="us-east-1")
    response = streamed("bedrock") if stream else whole("bedrock")
    answer = Shell(target).run(path_of("openai-chat"), request_body("openai-chat", stream=stream), [response])
    assert answer.status == 200
    headers = answer.sent[0].headers
    assert headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKID/20261118/us-east-1/bedrock/")
    assert headers["x-amz-security-token"] == "session"


def test_stored_entries_do_not_reach_another_client() -> None:
    shell = Shell(endpoint("anthropic"))
    answer = shell.run("/v1/responses", request_body("openai-responses"), [whole("anthropic")], client="one")
    path = f"/v1/responses/{answer.body['id']}"
    assert shell.run(path, method="GET", client="one").status == 200
    assert shell.run(path, method="GET", client="two").status == 404
    assert carry_out(shell.open(path, method="DELETE", client="two"), [], shell.memory).status == 404
