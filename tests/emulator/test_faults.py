"""Faults as a client sees them, on every API, whole and streamed, over real sockets."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress

import msgspec
import pytest

import segue
from segue.canonical.request import Reply
from segue.emulator import Emulator, start
from segue.emulator.faults import FAULTS, FaultPlan
from segue.errors import InputError, RemoteProtocolError
from segue.wire.registry import WIRES
from tests.emulator.http_requests import (
    APIS,
    TIMEOUT,
    HttpResult,
    body_of,
    conversation,
    open_response,
    open_socket,
    reply_of,
    send_request,
)

SCRIPT = """
think  Both, at once.
say    Let me look.
call   get_weather {"city": "Lisbon"}
call   get_weather {"city": "Oslo"}
"""
TURNS = "\n---\n".join([SCRIPT.strip("\n")] * 4)
# What arrives as an object arrives whole or not at all.
OBJECTS = {("gemini", True), ("gemini", False), ("anthropic", False), ("bedrock", False)}
OVERLOADED = {"anthropic": 529, "mistral": 429, "kimi": 429}

every_api = pytest.mark.parametrize("api", APIS)
both_ways = pytest.mark.parametrize("stream", [False, True], ids=["at-once", "streamed"])


@contextmanager
def start_with_fault(api: str, *faults: str, patience: float = 0.01) -> Generator[Emulator]:
    with start(api, script=TURNS, faults=faults, patience=patience) as emulator:
        yield emulator


def is_complete(seen: HttpResult) -> HttpResult:
    assert (seen.status, seen.exception) == (200, None)
    return seen


def reply(emulator: Emulator, *, stream: bool) -> Reply:
    return reply_of(emulator, is_complete(send_request(emulator, stream=stream)), stream=stream)


@every_api
def test_no_fault_is_the_reply_that_the_others_spoil(api: str) -> None:
    with start_with_fault(api) as emulator:
        replies = [reply(emulator, stream=stream) for stream in (False, True)]
    for one in replies:
        assert one.text == "Let me look."
        assert [call.arguments for call in one.calls] == [{"city": "Lisbon"}, {"city": "Oslo"}]
        assert one.finish == "tool_calls"


# ------------------------------------------------------------------------------------------------------------- refusals


@both_ways
@every_api
@pytest.mark.parametrize("fault", ["rate-limit", "server-error", "overloaded"])
def test_a_refusal_in_the_providers_own_form(api: str, fault: str, *, stream: bool) -> None:
    wanted = {"rate-limit": 429, "server-error": 500, "overloaded": OVERLOADED.get(api, 503)}[fault]
    with start_with_fault(api, f"{fault}@1") as emulator:
        seen = send_request(emulator, stream=stream)
        after = send_request(emulator, stream=stream)
        record = emulator.requests[0]
    assert (seen.status, seen.exception) == (wanted, None)
    assert seen.headers["content-type"].partition(";")[0] == "application/json"
    assert seen.headers.get("retry-after") == ("1" if fault == "rate-limit" else None)
    error = WIRES[api].parse_error(seen.status, seen.json)
    assert error.message
    assert (record.status, record.refused, record.fault) == (wanted, error.message, fault)
    # A client that takes the body for a stream learns the same.
    with pytest.raises(RemoteProtocolError) as raised:
        segue.assemble(seen.data, api)
    assert raised.value.message == error.message
    assert reply_of(emulator, is_complete(after), stream=stream).calls


@every_api
def test_refusals_of_one_provider_differ(api: str) -> None:
    with start_with_fault(api, "rate-limit@1", "server-error@2", "overloaded@3") as emulator:
        seen = [send_request(emulator) for _ in range(3)]
    assert len({one.data for one in seen}) == 3


# -------------------------------------------------------------------------------------------------------------- waiting


@both_ways
@every_api
@pytest.mark.parametrize("fault", ["slow-start", "stall"])
def test_delays_change_nothing(api: str, fault: str, *, stream: bool) -> None:
    with start_with_fault(api) as emulator:
        expected = is_complete(send_request(emulator, stream=stream)).data
    with start_with_fault(api, fault) as emulator:
        assert is_complete(send_request(emulator, stream=stream)).data == expected


@both_ways
@every_api
def test_a_slow_start_is_silence(api: str, *, stream: bool) -> None:
    came = threading.Event()
    long = 10 * TIMEOUT
    with start(api, faults=["slow-start"], patience=long, on_request=lambda _: came.set()) as emulator:
        connection = open_socket(emulator, stream=stream)
        assert came.wait(TIMEOUT)
        emulator.stop()
        with connection:
            assert received(connection) == b""


@both_ways
@every_api
def test_a_stall_is_silence_in_the_middle(api: str, *, stream: bool) -> None:
    with start_with_fault(api) as emulator:
        expected = is_complete(send_request(emulator, stream=stream)).data
    with start_with_fault(api, "stall", patience=10 * TIMEOUT) as emulator:
        answer = open_response(emulator, stream=stream)
        came = answer.read1()
        emulator.stop()
        with suppress(OSError, http.client.HTTPException):
            while piece := answer.read1():
                came += piece
        answer.close()
    assert 0 < len(came) < len(expected)
    assert expected.startswith(came)


def received(connection: socket.socket) -> bytes:
    """All that comes until the connection is gone, however it goes."""
    came = b""
    with suppress(OSError):
        while piece := connection.recv(1 << 16):
            came += piece
    return came


# --------------------------------------------------------------------------------------------------------------- resets


@both_ways
@every_api
def test_a_reset_comes_before_a_byte(api: str, *, stream: bool) -> None:
    with start_with_fault(api, "reset@1") as emulator:
        with open_socket(emulator, stream=stream) as connection, pytest.raises(ConnectionResetError):
            connection.recv(1)
        assert emulator.requests[0].status == 0
        # The others never hear of it.
        assert reply(emulator, stream=stream).calls


@both_ways
@every_api
def test_a_reset_in_the_stream_is_bytes_and_then_no_clean_end(api: str, *, stream: bool) -> None:
    with start_with_fault(api) as emulator:
        expected = is_complete(send_request(emulator, stream=stream)).data
    with start_with_fault(api, "reset-in-stream@1") as emulator:
        seen = send_request(emulator, stream=stream)
        assert reply(emulator, stream=stream).calls
    assert seen.status == 200
    assert isinstance(seen.exception, ConnectionResetError)
    assert 0 < len(seen.data) < len(expected)
    assert expected.startswith(seen.data)


@every_api
@pytest.mark.parametrize("script", ["call get_weather {}", "say Hi", "say"], ids=["call", "word", "nothing"])
def test_the_shortest_stream_can_be_torn_as_well(api: str, script: str) -> None:
    with start(api, script=script, faults=["reset-in-stream"]) as emulator:
        seen = send_request(emulator, stream=True)
    assert seen.data
    assert isinstance(seen.exception, ConnectionResetError)


def test_a_stream_of_gemini_that_is_a_list_is_torn_as_well() -> None:
    with start("gemini", script=SCRIPT, faults=["reset-in-stream"]) as emulator:
        answer = open_response(emulator, stream=True, without="?alt=sse")
        came = answer.read1()
        with answer, pytest.raises(ConnectionResetError):
            answer.read()
    assert came.startswith(b"[{")


# ------------------------------------------------------------------------------------------------------------ the reply


@both_ways
@every_api
def test_arguments_are_cut(api: str, *, stream: bool) -> None:
    with start_with_fault(api, "cut-arguments") as emulator:
        parsed = reply(emulator, stream=stream)
    assert parsed.finish == "length"
    first, last = parsed.calls
    assert (first.arguments, first.broken) == ({"city": "Lisbon"}, False)
    if (api, stream) in OBJECTS:
        assert last.arguments == {}
        return
    assert last.arguments_text
    assert '{"city":"Oslo"}'.startswith(last.arguments_text)
    assert last.arguments_text != '{"city":"Oslo"}'
    if stream:
        assert last.broken


@both_ways
@every_api
def test_a_reply_without_calls_has_no_arguments_to_cut(api: str, *, stream: bool) -> None:
    with start(api, script="say Hello.", faults=["cut-arguments", "repeated-ids", "missing-ids"]) as emulator:
        parsed = reply(emulator, stream=stream)
    assert (parsed.text, parsed.calls, parsed.finish) == ("Hello.", (), "stop")


@both_ways
@every_api
def test_ids_repeat_within_a_reply_and_in_every_reply(api: str, *, stream: bool) -> None:
    chat = conversation()
    ids: list[str | None] = []
    with start_with_fault(api, "repeated-ids") as emulator:
        for _ in range(2):
            seen = is_complete(send_request(emulator, body_of(api, chat), stream=stream))
            added = chat.add_reply(reply_of(emulator, seen, stream=stream) if stream else seen.json)
            for call in added.calls:
                chat.add_result(call, "sunny")
            ids += [call.raw_id for call in added.calls]
        assert all(record.accepted for record in emulator.requests)
    assert len(ids) == 4
    assert len(set(ids)) == 1
    assert ids[0]


@both_ways
@every_api
def test_ids_are_missing(api: str, *, stream: bool) -> None:
    with start_with_fault(api, "missing-ids") as emulator:
        parsed = reply(emulator, stream=stream)
    assert [call.raw_id for call in parsed.calls] == [None, None]
    # All else is as it was.
    assert [call.arguments for call in parsed.calls] == [{"city": "Lisbon"}, {"city": "Oslo"}]
    assert parsed.text == "Let me look."


@both_ways
@every_api
def test_ids_are_empty(api: str, *, stream: bool) -> None:
    with start_with_fault(api, "empty-ids") as emulator:
        data = is_complete(send_request(emulator, stream=stream)).data
        parsed = reply(emulator, stream=stream)
    assert not any(call.raw_id for call in parsed.calls)
    assert [call.arguments for call in parsed.calls] == [{"city": "Lisbon"}, {"city": "Oslo"}]
    key = {"bedrock": b"toolUseId", "openai-responses": b"call_id", "azure-foundry": b"call_id"}.get(api, b"id")
    assert data.count(b'"' + key + b'":""') >= 2


@both_ways
@every_api
def test_only_ids_of_calls_are_missing(api: str, *, stream: bool) -> None:
    script = 'call get_weather {"id": ["a"], "call_id": {"id": "b"}, "toolUseId": null}'
    with start(api, script=script, faults=["missing-ids"]) as emulator:
        (call,) = reply(emulator, stream=stream).calls
    assert call.arguments == {"id": ["a"], "call_id": {"id": "b"}, "toolUseId": None}


@every_api
def test_ids_are_missing_up_to_an_error_in_the_stream(api: str) -> None:
    with start(api, script="call get_weather {}\nerror 500 Oh dear.", faults=["missing-ids"]) as emulator:
        parsed = segue.assemble(is_complete(send_request(emulator, stream=True)).data, api)
    assert (parsed.finish, parsed.raw_finish) == ("error", "Oh dear.")


@every_api
def test_stream_end_is_sent_twice(api: str) -> None:
    with start_with_fault(api) as emulator:
        expected = is_complete(send_request(emulator, stream=True)).data
    with start_with_fault(api, "double-finish") as emulator:
        seen = is_complete(send_request(emulator, stream=True)).data
        parsed = segue.assemble(seen, api)
    done = b"data: [DONE]\n\n"
    assert seen.count(done) == expected.count(done)
    seen, expected = seen.removesuffix(done), expected.removesuffix(done)
    assert seen.startswith(expected)
    again = seen.removeprefix(expected)
    if api == "gemini":
        # Its end may hold a call, which is not told again.
        assert again.count(b"finishReason") == 1
    else:
        assert again
        assert expected.endswith(again)
    assert [call.arguments for call in parsed.calls] == [{"city": "Lisbon"}, {"city": "Oslo"}]


@both_ways
@every_api
def test_the_type_is_wrong_and_nothing_else(api: str, *, stream: bool) -> None:
    with start_with_fault(api) as emulator:
        expected = is_complete(send_request(emulator, stream=stream))
    with start_with_fault(api, "wrong-type") as emulator:
        seen = is_complete(send_request(emulator, stream=stream))
    assert seen.data == expected.data
    assert seen.headers["content-type"] == ("text/html" if stream else "text/plain")
    assert expected.headers["content-type"] != seen.headers["content-type"]


@every_api
@pytest.mark.parametrize("fault", FAULTS)
def test_every_faulty_stream_is_a_reply_or_a_breach_of_the_protocol(api: str, fault: str) -> None:
    """Also for who feeds it to another API's reader."""
    with start_with_fault(api, fault) as emulator:
        seen = send_request(emulator, stream=True)
    for reader in (api, "openai-chat", "anthropic"):
        with suppress(RemoteProtocolError):
            assert isinstance(segue.assemble(seen.data, reader), Reply)


@every_api
def test_all_reply_faults_at_once(api: str) -> None:
    together = ["slow-start", "stall", "cut-arguments", "repeated-ids", "missing-ids", "double-finish", "wrong-type"]
    with start_with_fault(api, *together) as emulator:
        parsed = segue.assemble(is_complete(send_request(emulator, stream=True)).data, api)
        assert emulator.requests[0].fault == ", ".join(sorted(together))
    assert parsed.finish == "length"
    assert [call.raw_id for call in parsed.calls] == [None, None]


# --------------------------------------------------------------------------------------------------------------- orders


def hits(*faults: str, seed: int = 0, count: int = 1000) -> list[int]:
    chaos = FaultPlan(faults, seed)
    return [number for number in range(1, count + 1) if chaos.faults_for(number)]


def test_a_seed_decides_which_requests_are_struck() -> None:
    assert hits("reset=0.3") == hits("reset=0.3")
    assert hits("reset=0.3") != hits("reset=0.3", seed=1)
    assert hits("reset=0.3") != hits("stall=0.3")
    for seed in range(5):
        assert 250 < len(hits("reset=0.3", seed=seed)) < 350
    # A higher rate strikes the same ones, and more.
    assert set(hits("reset=0.1")) < set(hits("reset=0.3")) < set(hits("reset"))


def test_the_same_requests_are_struck_over_http() -> None:
    def statuses(seed: int) -> list[int]:
        with start("openai-chat", faults=["server-error=0.3"], seed=seed) as emulator:
            return [send_request(emulator).status for _ in range(20)]

    expected = [500 if number in hits("server-error=0.3", count=20) else 200 for number in range(1, 21)]
    assert statuses(0) == statuses(0) == expected
    assert 0 < expected.count(500) < 20
    assert statuses(1) != expected


@pytest.mark.parametrize(
    ("faults", "start_with_fault"),
    [
        (["reset"], [1, 2, 3, 4, 5, 6]),
        (["reset=1"], [1, 2, 3, 4, 5, 6]),
        (["reset=1.0"], [1, 2, 3, 4, 5, 6]),
        (["reset=0"], []),
        (["reset=1e-9"], []),
        (["reset@2,5"], [2, 5]),
        (["reset@5,2,2"], [2, 5]),
        (["reset@2", "reset@3"], [2, 3]),
        (["reset@2", "stall@3"], [2, 3]),
        ([], []),
    ],
)
def test_orders(faults: list[str], start_with_fault: list[int]) -> None:
    assert hits(*faults, count=6) == start_with_fault


def test_orders_by_rate_and_in_a_single_string() -> None:
    assert FaultPlan({"reset": 1, "stall": 0.0}).faults_for(1) == {"reset"}
    assert FaultPlan({"reset": 1e-7}).faults_for(1) == frozenset()
    assert FaultPlan("reset@1").faults_for(1) == {"reset"}


@pytest.mark.parametrize(
    ("order", "message_part"),
    [
        ("rate-limt", "did you mean rate-limit?"),
        ("rate_limit", "did you mean rate-limit?"),
        ("Reset", "did you mean reset?"),
        ("reset-in-streem=0.5", "did you mean reset-in-stream?"),
        ("xyz", "unknown fault 'xyz'; known faults: rate-limit, server-error,"),
        ("", "unknown fault ''; known faults:"),
        (" reset", "did you mean reset?"),
        ("reset=", "the rate must be between 0 and 1"),
        ("reset=a lot", "the rate must be between 0 and 1"),
        ("reset=1.5", "the rate must be between 0 and 1"),
        ("reset=-0.1", "the rate must be between 0 and 1"),
        ("reset=nan", "the rate must be between 0 and 1"),
        ("reset=0.2@1", "the rate must be between 0 and 1"),
        ("reset@", "as in reset@1,3"),
        ("reset@0", "counted from 1"),
        ("reset@-1", "counted from 1"),
        ("reset@1,", "as in reset@1,3"),
        ("reset@1, 3", "as in reset@1,3"),
        ("reset@one", "as in reset@1,3"),
    ],
)
def test_bad_spellings(order: str, message_part: str) -> None:
    with pytest.raises(InputError) as raised:
        start("anthropic", faults=[order])
    assert raised.value.path == "fault"
    assert message_part in str(raised.value)


@pytest.mark.parametrize("faults", [[None], [3], {"reset": "often"}, {None: 1}, {"reset": 2}])
def test_invalid_fault_orders(faults: object) -> None:
    with pytest.raises(InputError):
        start("anthropic", faults=faults)


@pytest.mark.parametrize("patience", [-1, float("nan")])
def test_invalid_timeouts(patience: float) -> None:
    with pytest.raises(InputError, match="number of seconds"):
        start("anthropic", patience=patience)


def _find_reply_id(api: str, data: bytes, *, stream: bool) -> str | None:
    return (segue.assemble(data, api) if stream else WIRES[api].parse_reply(msgspec.json.decode(data))).id


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", sorted(WIRES))
def test_reply_ids_are_missing_or_the_same(api: str, *, stream: bool) -> None:
    def send(*faults: str) -> list[str | None]:
        with start(api, script="say One.\n---\nsay Two.", faults=list(faults)) as emulator:
            sent = [send_request(emulator, stream=stream) for _ in range(2)]
        assert [answer.status for answer in sent] == [200, 200]
        return [_find_reply_id(api, answer.data, stream=stream) for answer in sent]

    own, same, none = send(), send("same-reply-id"), send("no-reply-id")
    if api == "bedrock":
        assert own == same == none == [None, None]
        return
    assert len(set(own)) == 2
    assert same[0] == same[1] is not None
    assert none == [None, None]


CONTEXT_LENGTH = {
    "anthropic": (400, "prompt is too long: "),
    "azure-foundry": (400, "Your input exceeds the context window of this model."),
    "bedrock": (400, "Input is too long for requested model."),
    "deepseek": (400, "This model's maximum context length is "),
    "gemini": (400, "The input token count (1196265) exceeds the maximum number of tokens allowed (1048576)."),
    "kimi": (400, "Your request exceeded model token limit: "),
    "mistral": (400, "too large for model with 131072 maximum context length"),
    "openai-chat": (400, "This model's maximum context length is "),
    "openai-responses": (400, "Your input exceeds the context window of this model."),
    "qwen": (400, "Range of input length should be [1, "),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", sorted(WIRES))
def test_prompt_that_is_too_long(api: str, *, stream: bool) -> None:
    with start(api, faults=["context-length@1"]) as emulator:
        refused, accepted = (send_request(emulator, stream=stream) for _ in range(2))
    status, text = CONTEXT_LENGTH[api]
    body = msgspec.json.decode(refused.data)
    error = WIRES[api].parse_error(refused.status, body[0] if isinstance(body, list) else body)
    assert (refused.status, accepted.status) == (status, 200)
    assert text in error.message
