"""How streams of the Responses API end: well, early, with an error, or as garbage."""

from __future__ import annotations

import pytest

from segue.errors import RemoteProtocolError
from segue.wire.gemini import WIRE as GEMINI
from segue.wire.stream.events import Failed, Finished
from tests.conversations.replies import responses_reply
from tests.streams.corruption import read_garbled, reject_random_bytes
from tests.streams.parsing import Body, read, sse
from tests.streams.responses_events import EVERYTHING, WIRE, check_same_reply, function, message, stream_events, texts


def test_done_marker_without_terminal_event() -> None:
    """Gateways that also serve the Chat API end with it and omit the terminal event."""
    body = responses_reply(message("Hi"), function('{"path": "a"}'))
    payloads = stream_events(body)[:-1]
    _, reply = read(WIRE, sse(*payloads) + b"data: [DONE]\n\n")
    assert (reply.finish, reply.text, reply.calls[0].broken) == ("tool_calls", "Hi", False)


def test_incomplete_by_the_length_limit() -> None:
    """OAI-RESP-23; the call that was cut off is broken, and never a valid one."""
    half = function('{"path": "a', status="incomplete")
    body = responses_reply(message("Hi"), half, status="incomplete")
    body["incomplete_details"] = {"reason": "max_output_tokens"}
    events, reply = read(WIRE, sse(*stream_events(body)))
    assert reply.finish == "length"
    (call,) = reply.calls
    assert (call.broken, call.arguments, call.arguments_text) == (True, None, '{"path": "a')
    assert isinstance(events[-1], Finished)


def test_incomplete_by_a_filter() -> None:
    body = {**responses_reply(message("Hi"), status="incomplete"), "incomplete_details": {"reason": "content_filter"}}
    check_same_reply(body, sse(*stream_events(body)), finish="filter")


def test_a_whole_call_before_the_room_ended_stays_valid() -> None:
    body = responses_reply(function('{"path": "a"}'), message("Hi"), status="incomplete")
    _, reply = read(WIRE, sse(*stream_events(body)))
    assert [call.broken for call in reply.calls] == [False]


def test_failed() -> None:
    body = {
        **responses_reply(message("Hi"), status="failed"),
        "error": {"code": "rate_limit_exceeded", "message": "No."},
    }
    events, reply = read(WIRE, sse(*stream_events(body)))
    assert isinstance(events[-1], Failed)
    assert (events[-1].error.code, events[-1].error.message) == ("rate_limit_exceeded", "No.")
    assert (reply.finish, reply.text) == ("error", "Hi")


def test_cancelled() -> None:
    body = responses_reply(message("Hi"), status="cancelled")
    events, reply = read(WIRE, sse(*stream_events(body)))
    assert isinstance(events[-1], Failed)
    assert "cancelled" in events[-1].error.message
    assert reply.finish == "error"


@pytest.mark.parametrize(
    "error",
    [
        {"type": "error", "code": "server_error", "message": "Oh no.", "param": None, "sequence_number": 7},
        {"type": "error", "error": {"type": "server_error", "code": "server_error", "message": "Oh no."}},
        {"error": {"code": "server_error", "message": "Oh no."}},
    ],
)
def test_an_error_in_the_stream(error: Body) -> None:
    payloads = stream_events(responses_reply(function('{"path": "a"}')))
    events, reply = read(WIRE, sse(*payloads[:5], error))
    assert isinstance(events[-1], Failed)
    assert (events[-1].error.code, events[-1].error.message) == ("server_error", "Oh no.")
    assert [call.broken for call in reply.calls] == [True]


def test_an_error_instead_of_a_stream() -> None:
    parser = WIRE.open_stream("turn-1")
    parser.feed(b'{"error": {"message": "Bad key.", "type": "invalid_request_error", "code": "invalid_api_key"}}')
    with pytest.raises(RemoteProtocolError, match=r"Bad key\.") as caught:
        parser.close()
    assert caught.value.code == "invalid_api_key"


@pytest.mark.parametrize("stop", range(1, 40))
def test_a_stream_that_is_cut_off_anywhere(stop: int) -> None:
    payloads = stream_events(EVERYTHING)
    stop = stop * (len(payloads) - 1) // 40 + 1
    events, reply = read(WIRE, sse(*payloads[:stop]))
    assert reply.finish == "error"
    assert isinstance(events[-1], Failed)
    done = {one["item"]["id"] for one in payloads[:stop] if one["type"] == "response.output_item.done"}
    argued = {
        one["item_id"] for one in payloads[:stop] if "arguments.done" in one["type"] or "input.done" in one["type"]
    }
    for call in reply.calls:
        if call.kind != "hosted":
            whole = call.origin.item_id in done | argued or isinstance(call.arguments, dict)
            assert call.broken is not whole
            assert whole or call.arguments is None


def test_ids_are_those_of_the_turn() -> None:
    data = sse(*stream_events(EVERYTHING))
    one, other = (read(WIRE, data, key)[1] for key in ("turn-1", "turn-2"))
    assert not {call.id for call in one.calls} & {call.id for call in other.calls}
    assert [call.origin.raw_id for call in one.calls if call.kind != "hosted"] == ["call_1", "call_2", "call_c"]


def test_characters_cut_in_two() -> None:
    body = responses_reply(message("a 😀 b"))
    payloads = stream_events(body)
    deltas = [one for one in payloads if one["type"].endswith("text.delta")]
    halves = [{**deltas[0], "delta": "a \ud83d"}, {**deltas[0], "delta": "\ude00 b"}]
    at = payloads.index(deltas[0])
    assert texts(check_same_reply(body, sse(*payloads[:at], *halves, *payloads[at + len(deltas) :]))) == ["a ", "😀 b"]


def test_garbage_is_a_value_or_a_remote_protocol_error() -> None:
    assert read_garbled(WIRE, stream_events(EVERYTHING), 1500, GEMINI) > 300


@pytest.mark.parametrize("depth", [600, 5000])
def test_nesting_without_end_is_refused(depth: int) -> None:
    payloads = '{"type":"response.completed","response":{"a":' + "[" * depth + "]" * depth + "}}"
    with pytest.raises(RemoteProtocolError, match="nested too deep"):
        WIRE.open_stream("turn-1").feed(f"data: {payloads}\n\n".encode())


def test_random_bytes() -> None:
    reject_random_bytes(WIRE)
