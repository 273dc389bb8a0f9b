"""The ids of replies and items that callers get: unique for each request, and the same however a reply arrives."""

from __future__ import annotations

import json
import re
from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import segue
from segue._stream import render_reply_body
from segue.canonical.blocks import Origin, Text, ToolCall
from segue.canonical.request import Reply, Usage
from segue.wire.openai_responses.foundry import is_item_id
from segue.wire.registry import WIRES
from segue.wire.stream.framing import FrameDecoder
from tests.budget import examples, sample_pairs
from tests.streams.rendering import stream_reply
from tests.streams.responses_events import EVERYTHING, stream_events
from tests.streams.test_api_pairs import replies, request_body

PAIRS = sample_pairs(WIRES)
# Bedrock's replies have no id.
WITH_IDS = tuple(pair for pair in product(WIRES, repeat=2) if pair[0] != "bedrock")
PREFIXES = {"anthropic": "msg_", "openai-responses": "resp_", "azure-foundry": "caresp_", "gemini": ""}


def a_reply(server: str, reply_id: str | None) -> Reply:
    call = ToolCall("search", {"query": "a"}, id="hist_tool_a", origin=Origin(WIRES[server].provider, raw_id="call_9"))
    return Reply((Text("I look."), call), "tool_calls", Usage(1, 1), reply_id, "m")


def request_of_round(client: str, number: int) -> dict[str, Any]:
    """The request of one round: the same conversation, longer by a message each time."""
    chat = {"model": "m", "messages": [{"role": "user", "content": f"step {step}"} for step in range(number + 1)]}
    return segue.convert(chat, source="openai-chat", target=client).body


def converted_ids(client: str, server: str, reply_id: str | None, number: int, **fields: Any) -> tuple[str, str]:
    """The ids of a whole and of a streamed reply in this round."""
    reply = a_reply(server, reply_id)
    converted = segue.convert({**request_of_round(client, number), **fields}, source=client, target=server)
    stream = converted.stream()
    stream_data = stream_reply(server, reply)
    made_id = segue.assemble(stream_data, server).id
    if reply_id is not None and made_id is not None:
        stream_data = stream_data.replace(made_id.encode(), reply_id.encode())
    streamed = segue.assemble(stream.feed(stream_data) + stream.close(), client)
    body, _ = render_reply_body(reply, server)
    body |= {key: reply_id for key in ("id", "responseId") if key in body and reply_id is not None}
    whole = WIRES[client].parse_reply(converted.reply(body))
    assert whole.id is not None
    assert streamed.id is not None
    return whole.id, streamed.id


@pytest.mark.parametrize(("client", "server"), WITH_IDS)
@pytest.mark.parametrize("reply_id", [None, "same"])
def test_reply_ids_are_unique_whatever_the_provider_sends(client: str, server: str, reply_id: str | None) -> None:
    ids = [converted_ids(client, server, reply_id, number) for number in range(3)]
    if client != server or reply_id is not None:
        assert all(whole == streamed for whole, streamed in ids)
        assert len(set(ids)) == 3
    assert all(each.startswith(PREFIXES.get(client, "chatcmpl-")) for pair in ids for each in pair)


@pytest.mark.parametrize(
    ("api", "reply_id", "fields", "kept"),
    [
        ("openai-chat", "chatcmpl-CkqU5a1xTbVwcE8dRmN2zFyQp0ls3", {}, True),
        ("openai-chat", "gen-1763298000-aB3dE5fG7hI9jK1lM3nO", {}, True),
        ("openai-chat", "chatcmpl-123", {}, False),
        ("openai-responses", "resp_68f1c0ffee68f1c0ffee68f1c0ffee68f1c0ffee68f1c0ff", {}, True),
        ("openai-responses", "resp_1", {}, False),
        ("gemini", "mAitaLmkHPPlz7IPvtfUqQ4", {}, True),
        ("gemini", "same", {}, False),
        # Claude Code merges messages with equal ids; only a thread refers to them.
        ("anthropic", "msg_01XFDUDYJgAACzvnptvVoYEL", {}, False),
        ("anthropic", "msg_01XFDUDYJgAACzvnptvVoYEL", {"thread": {"type": "create"}}, True),
        ("anthropic", "msg_1", {"thread": {"type": "create"}}, False),
    ],
)
def test_same_api_replies_keep_ids_that_look_random(
    api: str, reply_id: str, fields: dict[str, Any], kept: bool
) -> None:
    whole, streamed = converted_ids(api, api, reply_id, 0, **fields)
    assert (whole == reply_id, streamed == reply_id) == (kept, kept)


@pytest.mark.parametrize("client", ["openai-chat", "openai-responses", "anthropic", "gemini"])
def test_reply_id_does_not_depend_on_streaming(client: str) -> None:
    plain = converted_ids(client, "bedrock", None, 0)
    asked = {"stream": True, "stream_options": {"include_usage": True}} if client == "openai-chat" else {"stream": True}
    assert plain == converted_ids(client, "bedrock", None, 0, **({} if client == "gemini" else asked))


@pytest.mark.parametrize("client", ["openai-responses", "azure-foundry"])
def test_items_have_the_same_ids_whole_and_streamed(client: str) -> None:
    reply = a_reply("anthropic", "msg_1")
    converted = segue.convert(request_body(client), source=client, target="anthropic")
    stream = converted.stream()
    sent = stream.feed(stream_reply("anthropic", reply)) + stream.close()
    events = [json.loads(data) for _, data in FrameDecoder().feed(sent)]
    done = [event["item"]["id"] for event in events if event["type"] == "response.output_item.done"]
    whole = converted.reply(render_reply_body(reply, "anthropic")[0])
    assert done == [item["id"] for item in whole["output"]]
    assert len(set(done)) == 2


def test_foundry_callers_get_ids_in_the_form_of_the_service() -> None:
    """AZF-07."""
    converted = segue.convert(request_body("azure-foundry"), source="azure-foundry", target="anthropic")
    whole = converted.reply(render_reply_body(a_reply("anthropic", "msg_1"), "anthropic")[0])
    assert is_item_id(whole["id"], "caresp")
    assert [is_item_id(item["id"], prefix) for item, prefix in zip(whole["output"], ("msg", "fc"), strict=True)]


def feed_in_pieces(client: str, server: str, data: bytes, cuts: list[int]) -> bytes:
    stream = segue.convert(request_body(client), source=client, target=server).stream()
    places = [0, *cuts, len(data)]
    sent = [stream.feed(data[start:stop]) for start, stop in pairwise(places)]
    return b"".join([*sent, stream.close()])


def content_and_ids(data: bytes, api: str) -> tuple[Reply, list[bytes]]:
    """The reply, and all ids in the order of the stream; texts may be in more or fewer deltas."""
    ids = re.findall(rb'"(?:id|item_id|call_id|toolUseId|responseId)":"[^"]*"', data)
    return segue.assemble(data, api), list(dict.fromkeys(ids))


@pytest.mark.parametrize(("client", "server"), PAIRS)
@examples(6, items=len(PAIRS))
@given(data=st.data())
def test_any_split_of_a_stream_gives_the_same_ids_and_content(client: str, server: str, data: st.DataObject) -> None:
    reply = data.draw(replies(server))
    stream_data = stream_reply(server, reply, data.draw(st.sampled_from([1, 5, 1000])))
    note(repr(stream_data))
    whole = content_and_ids(feed_in_pieces(client, server, stream_data, []), client)
    cuts = data.draw(st.lists(st.integers(0, len(stream_data)), max_size=6).map(sorted))
    for pieces in (cuts, list(range(1, len(stream_data)))):
        assert content_and_ids(feed_in_pieces(client, server, stream_data, pieces), client) == whole


@pytest.mark.parametrize("client", WIRES)
@pytest.mark.parametrize("has_item_ids", [True, False])
def test_any_split_of_a_response_gives_the_same_ids(client: str, has_item_ids: bool) -> None:
    """A response as OpenAI streams it; its own ids go to Responses callers."""
    events = [
        {key: value for key, value in event.items() if has_item_ids or key != "item_id"}
        for event in stream_events(EVERYTHING, 2)
    ]
    stream_data = b"".join(b"data: %b\n\n" % json.dumps(event, ensure_ascii=False).encode() for event in events)
    whole = content_and_ids(feed_in_pieces(client, "openai-responses", stream_data, []), client)
    for size in (1, 7, 300):
        cuts = list(range(size, len(stream_data), size))
        assert content_and_ids(feed_in_pieces(client, "openai-responses", stream_data, cuts), client) == whole
    if client == "openai-responses":
        assert {b'"id":"msg_1"', b'"id":"msg_2"', b'"id":"fc_1"', b'"id":"rs_1"'} <= set(whole[1])
