"""A streamed reply of every API converted for the client of every other: text, calls, usage, ids."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import segue
from segue._stream import render_reply_body
from segue.canonical.blocks import Block, Origin, Text, Thinking, ToolCall
from segue.canonical.request import Reply, Usage
from segue.errors import RemoteProtocolError
from segue.wire.registry import WIRES
from segue.wire.stream.framing import FrameDecoder, encode_sse
from tests.bodies import chat
from tests.budget import examples, sample_pairs
from tests.streams.parsing import check_event_rules
from tests.streams.rendering import render_stream, stream_reply

PAIRS = [sample_pairs(WIRES, start=start) for start in range(2)]
ASK_FOR_USAGE = ("openai-chat", "qwen")
NO_REASONING_TOKENS = {"bedrock"}
TOOLS = ("read_file", "search")


def request_body(api: str) -> dict[str, Any]:
    """A request with a call in its history, and two tools."""
    given = chat.body(
        chat.user("go"),
        chat.assistant_calls(chat.call(name="search")),
        chat.result(content="found"),
        model="m",
        tools=[chat.tool(name, parameters={"type": "object"}) for name in TOOLS],
    )
    body = segue.convert(given, source="openai-chat", target=api).body
    return {**body, "stream": True, "stream_options": {"include_usage": True}} if api in ASK_FOR_USAGE else body


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=30).filter(
    lambda text: not text.isspace() and not text.lstrip().startswith("<")
)
VALUES = st.dictionaries(
    st.text(max_size=5), st.text(max_size=10) | st.integers(-9, 9) | st.booleans() | st.none(), max_size=3
)


@st.composite
def replies(draw: Any, api: str) -> Reply:
    provider = WIRES[api].provider
    blocks: list[Block] = []
    if draw(st.booleans()):
        signature = draw(st.sampled_from(["c2lnbmVk", None]))
        blocks.append(Thinking(draw(TEXTS), signature=signature, origin=Origin(provider, identity="absent")))
    if draw(st.booleans()):
        blocks.append(Text(draw(TEXTS)))
    for place in range(draw(st.integers(0 if blocks else 1, 3))):
        # Ids that are in the history, or that repeat one another, among them.
        raw_id = draw(st.sampled_from(["call_1", "call_2", f"call_x{place}"]))
        call = ToolCall(
            draw(st.sampled_from(TOOLS)), draw(VALUES), id=f"hist_tool_{place}", origin=Origin(provider, raw_id=raw_id)
        )
        blocks.append(call)
    if all(isinstance(block, Thinking) for block in blocks):
        blocks.append(Text(draw(TEXTS)))
    called = any(isinstance(block, ToolCall) for block in blocks)
    usage = Usage(draw(st.integers(1, 999)), draw(st.integers(99, 999)), reasoning=draw(st.integers(0, 99)))
    return Reply(tuple(blocks), "tool_calls" if called else draw(st.sampled_from(["stop", "length"])), usage, "r1", "m")


@pytest.mark.parametrize(("client", "server"), PAIRS[0])
@examples(8, items=len(PAIRS[0]))
@given(data=st.data())
def test_a_streamed_answer_is_the_same_on_both_sides(client: str, server: str, data: st.DataObject) -> None:
    reply = data.draw(replies(server))
    data_sent = stream_reply(server, reply, data.draw(st.sampled_from([1, 5, 1000])))
    note(repr(data_sent))
    converted = segue.convert(request_body(client), source=client, target=server)
    stream = converted.stream()
    cut = data.draw(st.lists(st.integers(0, len(data_sent)), max_size=4).map(sorted))
    sent = b"".join(
        stream.feed(data_sent[start:stop]) for start, stop in zip([0, *cut], [*cut, len(data_sent)], strict=True)
    )
    sent += stream.close()
    note(repr(sent))
    client_reply = segue.assemble(sent, client)
    assert client_reply.text == reply.text
    assert [(call.name, call.arguments) for call in client_reply.calls] == [
        (call.name, call.arguments) for call in reply.calls
    ]
    assert client_reply.finish == reply.finish
    assert client_reply.usage is not None
    assert reply.usage is not None
    assert (client_reply.usage.input, client_reply.usage.output) == (reply.usage.input, reply.usage.output)
    if not NO_REASONING_TOKENS & {WIRES[client].base_api, WIRES[server].base_api}:
        assert client_reply.usage.reasoning == reply.usage.reasoning
    # Claude Code loops for ever where an id comes a second time.
    ids = [call.raw_id for call in client_reply.calls]
    assert len(set(ids)) == len(ids)
    history = json.dumps(request_body(client))
    assert not any(f'"{raw_id}"' in history for raw_id in ids if raw_id is not None)
    at_once = converted.reply(render_reply_body(segue.assemble(data_sent, server), server)[0])
    whole = WIRES[client].parse_reply(at_once)
    assert (whole.text, whole.thinking) == (client_reply.text, client_reply.thinking)
    assert whole.usage == client_reply.usage
    assert [call.arguments for call in whole.calls] == [call.arguments for call in client_reply.calls]


@pytest.mark.parametrize(("client", "server"), PAIRS[1])
def test_a_stream_that_breaks_is_never_a_whole_call(client: str, server: str) -> None:
    arguments = {"path": "a" * 40}
    call = ToolCall("read_file", arguments, id="hist_tool_a", origin=Origin(WIRES[server].provider, raw_id="call_9"))
    data_sent = stream_reply(server, Reply((Text("I look."), call), "tool_calls", Usage(1, 1), "r1", "m"))
    whole = len(data_sent)
    converted = segue.convert(request_body(client), source=client, target=server)
    for stop in range(0, whole, max(1, whole // 60)):
        stream = converted.stream()
        try:
            sent = stream.feed(data_sent[:stop]) + stream.close()
        except RemoteProtocolError:
            continue
        try:
            client_reply = segue.assemble(sent, client)
        except RemoteProtocolError:
            continue
        for found in client_reply.calls:
            assert found.broken or found.arguments == arguments
        if client_reply.finish != "error":
            assert [found.arguments for found in client_reply.calls] == [arguments]


# A chunk of Gemini's looks the same as a body at once.
@pytest.mark.parametrize("api", [api for api in WIRES if api != "gemini"])
def test_no_events_after_a_whole_reply(api: str) -> None:
    """A stream was requested and a whole body came; whatever follows is no second reply."""
    call = ToolCall("search", {"query": "a"}, id="hist_tool_a", origin=Origin(WIRES[api].provider, raw_id="call_9"))
    reply = Reply((Text("I look."), call), "tool_calls", Usage(1, 1), "r1", "m")
    body, _ = render_reply_body(reply, api)
    data_sent = [
        (name, json.loads(data)) for name, data in FrameDecoder().feed(stream_reply(api, reply)) if data != b"[DONE]"
    ]
    parser = WIRES[api].open_stream("turn-1")
    for name, payload in ((None, body), (None, body), *data_sent):
        parser.feed_payload(payload, name)
    client_reply = parser.close()
    check_event_rules(parser.events(), client_reply)
    assert (client_reply.text, [one.arguments for one in client_reply.calls]) == ("I look.", [{"query": "a"}])


@pytest.mark.parametrize("api", WIRES)
def test_lone_half_of_a_character_at_the_end_is_replaced(api: str) -> None:
    """It replaces the word HALF, so that each API has it in its own fields."""
    call = ToolCall("search", {"query": "HALF"}, id="hist_tool_a", origin=Origin(WIRES[api].provider, raw_id="call_9"))
    reply = Reply((Text("I look HALF"), call), "tool_calls", Usage(1, 1), "r1", "m")
    parser = WIRES[api].open_stream("turn-1")
    for name, data in FrameDecoder().feed(stream_reply(api, reply, 1000)):
        if data != b"[DONE]":
            parser.feed(encode_sse(data.replace(b"HALF", rb"\ud83d"), name))
    client_reply = parser.close()
    events = parser.events()
    check_event_rules(events, client_reply)
    assert client_reply.text == "I look \ufffd"
    assert [one.arguments for one in client_reply.calls] == [{"query": "\ufffd"}]
    for target in WIRES:
        assert render_stream(target, events)
