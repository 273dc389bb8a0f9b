"""A streamed answer of every API, told to the client of every other: words, calls, results of counting, ids."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import segue
from segue.canonical.blocks import Block, Origin, Text, Thinking, ToolCall
from segue.canonical.request import Reply, Usage
from segue.errors import RemoteProtocolError
from segue.streaming import reply_body
from segue.wire.framing import Frames, server_sent
from segue.wire.registry import WIRES
from tests.budget import examples

from .reading import obey_the_rules
from .writing import streamed, written

PAIRS = tuple(product(WIRES, repeat=2))
EVERY_PAIR = pytest.mark.parametrize(("client", "server"), PAIRS)
ASK_FOR_USAGE = ("openai-chat", "qwen")
TOOLS = ("read_file", "search")


def asked(api: str) -> dict[str, Any]:
    """A request with a call in its history, and two tools."""
    call = {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    chat = {
        "model": "m",
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "found"},
        ],
        "tools": [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in TOOLS],
    }
    body = segue.convert(chat, source="openai-chat", target=api).body
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
    usage = Usage(draw(st.integers(1, 999)), draw(st.integers(1, 999)))
    return Reply(tuple(blocks), "tool_calls" if called else draw(st.sampled_from(["stop", "length"])), usage, "r1", "m")


@EVERY_PAIR
@examples(8, items=len(PAIRS))
@given(data=st.data())
def test_a_streamed_answer_is_the_same_on_both_sides(client: str, server: str, data: st.DataObject) -> None:
    reply = data.draw(replies(server))
    told = streamed(server, reply, data.draw(st.sampled_from([1, 5, 1000])))
    note(repr(told))
    converted = segue.convert(asked(client), source=client, target=server)
    stream = converted.stream()
    cut = data.draw(st.lists(st.integers(0, len(told)), max_size=4).map(sorted))
    sent = b"".join(stream.feed(told[start:stop]) for start, stop in zip([0, *cut], [*cut, len(told)], strict=True))
    sent += stream.close()
    note(repr(sent))
    heard = segue.assemble(sent, client)
    assert heard.text == reply.text
    assert [(call.name, call.arguments) for call in heard.calls] == [
        (call.name, call.arguments) for call in reply.calls
    ]
    assert heard.finish == reply.finish
    assert heard.usage is not None
    assert reply.usage is not None
    assert (heard.usage.input, heard.usage.output) == (reply.usage.input, reply.usage.output)
    # Claude Code loops for ever where an id comes a second time.
    ids = [call.raw_id for call in heard.calls]
    assert len(set(ids)) == len(ids)
    history = json.dumps(asked(client))
    assert not any(f'"{raw_id}"' in history for raw_id in ids if raw_id is not None)
    at_once = converted.reply(reply_body(segue.assemble(told, server), server)[0])
    whole = WIRES[client].parse_reply(at_once)
    assert (whole.text, whole.thinking) == (heard.text, heard.thinking)
    assert [call.arguments for call in whole.calls] == [call.arguments for call in heard.calls]


@EVERY_PAIR
def test_a_stream_that_breaks_is_never_a_whole_call(client: str, server: str) -> None:
    arguments = {"path": "a" * 40}
    call = ToolCall("read_file", arguments, id="hist_tool_a", origin=Origin(WIRES[server].provider, raw_id="call_9"))
    told = streamed(server, Reply((Text("I look."), call), "tool_calls", Usage(1, 1), "r1", "m"))
    whole = len(told)
    for stop in range(0, whole, max(1, whole // 60)):
        stream = segue.convert(asked(client), source=client, target=server).stream()
        try:
            sent = stream.feed(told[:stop]) + stream.close()
        except RemoteProtocolError:
            continue
        try:
            heard = segue.assemble(sent, client)
        except RemoteProtocolError:
            continue
        for found in heard.calls:
            assert found.broken or found.arguments == arguments
        if heard.finish != "error":
            assert [found.arguments for found in heard.calls] == [arguments]


# A chunk of Gemini's looks the same as a body at once.
@pytest.mark.parametrize("api", [api for api in WIRES if api != "gemini"])
def test_no_events_after_a_whole_reply(api: str) -> None:
    """A stream was asked for, and a body came; whatever follows it is no second reply."""
    call = ToolCall("search", {"query": "a"}, id="hist_tool_a", origin=Origin(WIRES[api].provider, raw_id="call_9"))
    reply = Reply((Text("I look."), call), "tool_calls", Usage(1, 1), "r1", "m")
    body, _ = reply_body(reply, api)
    told = [(name, json.loads(data)) for name, data in Frames().feed(streamed(api, reply)) if data != b"[DONE]"]
    parser = WIRES[api].open_stream("turn-1")
    for name, payload in ((None, body), (None, body), *told):
        parser.take(payload, name)
    heard = parser.close()
    obey_the_rules(parser.events(), heard)
    assert (heard.text, [one.arguments for one in heard.calls]) == ("I look.", [{"query": "a"}])


@pytest.mark.parametrize("api", WIRES)
def test_lone_half_of_a_character_at_the_end_is_replaced(api: str) -> None:
    """It is put where the word HALF stands, so that each API has it in its own places."""
    call = ToolCall("search", {"query": "HALF"}, id="hist_tool_a", origin=Origin(WIRES[api].provider, raw_id="call_9"))
    reply = Reply((Text("I look HALF"), call), "tool_calls", Usage(1, 1), "r1", "m")
    parser = WIRES[api].open_stream("turn-1")
    for name, data in Frames().feed(streamed(api, reply, 1000)):
        if data != b"[DONE]":
            parser.feed(server_sent(data.replace(b"HALF", rb"\ud83d"), name))
    heard = parser.close()
    events = parser.events()
    obey_the_rules(events, heard)
    assert heard.text == "I look \ufffd"
    assert [one.arguments for one in heard.calls] == [{"query": "\ufffd"}]
    for target in WIRES:
        assert written(target, events)
