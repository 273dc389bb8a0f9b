"""Events as JSON: they round-trip, unknown fields included."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from segue import Conversation
from segue.canonical.blocks import Media, Message, Native, Origin, Shortening, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.request import Request, Usage
from segue.errors import InputError
from segue.store.events import (
    CompressionApplied,
    Event,
    MessageAdded,
    Renamed,
    SettingsChanged,
    UnknownEvent,
    decode_by_field,
    decode_event,
    dump_event,
    event_kind,
)
from segue.store.redaction import find_secret_fields
from tests.store.sample_events import EACH_KIND, any_event


@pytest.mark.parametrize("event", EACH_KIND, ids=event_kind)
def test_every_kind_comes_back(event: Event) -> None:
    assert decode_event(dump_event(event)) == event


@given(any_event)
def test_any_event_comes_back(event: Event) -> None:
    assert decode_event(dump_event(event)) == event


@pytest.mark.parametrize("event", EACH_KIND, ids=event_kind)
def test_unknown_fields_stay(event: Event) -> None:
    stored = {**json.loads(dump_event(event)), "later": {"x": [1]}}
    assert json.loads(dump_event(decode_event(json.dumps(stored)))) == stored


def test_an_unknown_block_in_a_message_stays() -> None:
    stored = {"type": "added", "message": {"speaker": "ai", "blocks": [{"type": "hologram", "beam": 3}]}}
    assert json.loads(dump_event(decode_event(json.dumps(stored)))) == stored


def _full_event() -> Event:
    """Return an event with all that a message may hold."""
    native = Native("anthropic", {"type": "text", "id": "x"}, intact=False)
    origin = Origin("anthropic", "m", "toolu_1", "item_1")
    image = Media("image", "image/png", "AAAA")
    return MessageAdded(
        Message(
            "ai",
            (
                Text("a", native=native),
                Thinking("b", "signature", origin=origin, prefix="p"),
                ToolCall("read_file", {"path": [1, None]}, "hist_tool_1", origin=origin, awaited=False),
                ToolResponse("hist_tool_1", "read_file", (Text("c"), image), shortened=Shortening("cut")),
                ToolResponse("hist_tool_1", structured={"d": 1.5}, outcome="cancelled", is_complete=True),
            ),
            turn_key="turn-1",
            native=native,
        ),
        Usage(1, 2),
        "m",
    )


def _altered(value: Any) -> Iterator[Any]:
    """Yield the value with one part replaced, removed, or added, for each part and some values."""
    if isinstance(value, list):
        for place, item in enumerate(value):
            for other in _altered(item):
                yield [*value[:place], other, *value[place + 1 :]]
    if isinstance(value, dict):
        for key, item in value.items():
            for other in _altered(item):
                yield {**value, key: other}
            yield {other: item for other, item in value.items() if other != key}
        yield from ({**value, key: deepcopy(new)} for key in ("later", "extra") for new in (1, {"x": [2]}))
    yield from (None, 3, "new", [], {}, [1], {"x": 1})


def _describe(decode: Any, data: bytes) -> str:
    try:
        return repr(decode(data))
    except InputError as error:
        return str(error)


@pytest.mark.parametrize("with_repeats", [True, False])
def test_decoding_at_once_equals_decoding_by_field(with_repeats: bool) -> None:
    stored = json.loads(dump_event(_full_event(), with_repeats=with_repeats))
    assert ("repeats" in stored) is not with_repeats
    assert decode_event(json.dumps(stored)) == _full_event()
    for altered in _altered(stored):
        data = json.dumps(altered).encode()
        assert _describe(decode_event, data) == _describe(decode_by_field, data), altered


def test_no_field_of_ours_can_be_taken_for_the_kind() -> None:
    assert json.loads(dump_event(Renamed("x", extra={"type": "added"})))["type"] == "renamed"
    assert json.loads(dump_event(UnknownEvent("new", {"type": "added"})))["type"] == "new"


def test_a_request_is_opened_and_comes_back_whole() -> None:
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 9,
        "system": "s",
        "metadata": {"user_id": "u"},
        "type": "a key that no API has",
        "messages": [{"role": "user", "content": "hi"}],
    }
    request = Conversation.from_body(body, source="anthropic").state.request
    assert decode_event(dump_event(SettingsChanged.from_request(request))) == SettingsChanged.from_request(request)
    # Each message is stored with a fragment of its own.
    assert SettingsChanged.from_request(request).request == _without_messages(request)


def _without_messages(request: Request) -> Request:
    assert request.native is not None
    return replace(request, native=replace(request.native, fragment={**request.native.fragment, "messages": []}))


@pytest.mark.parametrize(
    "stored",
    [
        *("", "{", "[]", "3", '{"type": 3}', '{"message": {}}', '{"type": "added"}', '{"type": "renamed"}'),
        *('{"type": "added", "message": {"speaker": "ai", "blocks": 4}}', '{"type": "undone", "seq": "one"}'),
        '{"type": "compressed", "strategy": "x", "kept": [[1]]}',
        '{"type": "compressed", "strategy": "x", "replaced": [4]}',
    ],
)
def test_invalid_event_is_rejected(stored: str) -> None:
    with pytest.raises(InputError):
        decode_event(stored)


@pytest.mark.parametrize(
    "event", [Renamed("\ud800"), MessageAdded(Message("human", (Text("cut \udfff"),)))], ids=event_kind
)
def test_half_a_character_is_refused(event: Event) -> None:
    with pytest.raises(InputError):
        dump_event(event)


@given(st.data())
def test_compression_maps_old_messages_to_new(data: st.DataObject) -> None:
    before = [Message("human", (Text(str(number)),)) for number in range(data.draw(st.integers(0, 8)))]
    new = st.builds(lambda text: Message("human", (Text(text),)), st.text(max_size=3))
    after = data.draw(st.lists(st.sampled_from(before) | new if before else new, max_size=10))
    event = CompressionApplied.between(before, after, strategy="any")
    again = decode_event(dump_event(event))
    assert isinstance(again, CompressionApplied)
    assert again.apply(before) == tuple(after)


@pytest.mark.parametrize(
    "event",
    [
        CompressionApplied("x", kept=((0, 3),)),
        CompressionApplied("x", kept=((1, 0),)),
        CompressionApplied("x", replaced=((2, Message("ai", ())),)),
    ],
)
def test_a_compression_of_other_messages_is_refused(event: CompressionApplied) -> None:
    with pytest.raises(InputError):
        event.apply([Message("human", ())])


# ----------------------------------------------------------------------------------------------------------- secrets

SECRET = "v3ry-s3cret"
MCP = {"type": "mcp", "server_label": "l", "server_url": "https://x", "authorization": SECRET}


@pytest.mark.parametrize(
    "body",
    [
        {
            "model": "claude-sonnet-4-5",
            "mcp_servers": [{"type": "url", "url": "https://x", "name": "n", "authorization_token": SECRET}],
            "messages": [{"role": "user", "content": "hi"}],
            "tools": [{"type": "mcp_toolset", "mcp_server_name": "n"}],
        },
        {"model": "gpt-5", "input": "hi", "tools": [{**MCP, "headers": {"X-Anything": SECRET}}]},
        {"model": "gpt-5", "input": [{"type": "additional_tools", "role": "developer", "tools": [MCP]}]},
        {"model": "gpt-5", "input": "hi", "tools": [{**MCP, "server_url": f"https://u:{SECRET}@x/y?a=1"}]},
        {"model": "gpt-5", "input": "hi", "tools": [{**MCP, "server_url": f"https://x/?a=1&exaApiKey={SECRET}#z"}]},
        {"model": "gpt-5", "input": "hi", "tools": [{**MCP, "server_url": f"https://{SECRET}@[x/?token={SECRET}"}]},
        {
            "model": "claude-sonnet-4-5",
            "mcp_servers": [{"type": "url", "url": f"https://x/sse?token={SECRET}", "name": "n"}],
            "messages": [{"role": "user", "content": "hi"}],
        },
        {"messages": [{"role": "user", "content": "hi"}], "metadata": {"sessionToken": SECRET}},
        {"messages": [{"role": "user", "content": "hi"}], "env": [{"name": "MY_API_KEY", "value": SECRET}]},
        {"messages": [{"role": "user", "content": "hi"}], "extra_headers": {"Authorization": SECRET}},
        {"messages": [{"role": "user", "content": "hi"}], "api_key": SECRET, "stop": "x"},
        {
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
            "tools": [
                {"mcpServers": [{"streamableHttpTransport": {"url": "u", "headers": {"Authorization": SECRET}}}]}
            ],
        },
    ],
)
def test_keys_and_authorisation_are_never_written(body: dict[str, Any]) -> None:
    chat = Conversation.from_body(body)
    assert SECRET in str([chat.state.request, chat.messages])
    written = [
        dump_event(event)
        for event in (SettingsChanged.from_request(chat.state.request), *map(MessageAdded, chat.messages))
    ]
    assert SECRET.encode() not in b"".join(written)
    assert find_secret_fields(chat.state.request, chat.messages)


def test_url_keeps_non_secret_parts() -> None:
    for address, shut in {
        "https://u:p@x:8/a/b?a=1&token=t&b=2#c": "https://x:8/a/b?a=1&b=2#c",
        "https://u@x?apiKey=t": "https://x",
        "wss://x/#access_token=t": "wss://x/",
        "https://u@[x/y?token&a": "https://[x/y?token&a",
        "https://x/?a=1&monkeys=2": "https://x/?a=1&monkeys=2",
        "see https://u:p@x": "see https://u:p@x",
    }.items():
        chat = Conversation.from_body({"model": "gpt-5", "input": "hi", "tools": [{**MCP, "server_url": address}]})
        written = json.loads(dump_event(SettingsChanged.from_request(chat.state.request)))
        assert written["native"]["fragment"]["tools"][0]["server_url"] == shut
        assert ("part of server_url" in find_secret_fields(chat.state.request, ())) == (shut != address)


def test_empty_value_is_kept_and_not_reported_dropped() -> None:
    more = {"api_key": None, "headers": {}, "token": False, "prompt_cache_key": "k", "max_tokens": 5}
    chat = Conversation.from_body({"messages": [{"role": "user", "content": "hi"}], **more})
    assert not find_secret_fields(chat.state.request, chat.messages)
    written = decode_event(dump_event(SettingsChanged.from_request(chat.state.request)))
    assert isinstance(written, SettingsChanged)
    assert written.request == _without_messages(chat.state.request)


def test_the_names_in_a_schema_and_in_arguments_are_the_tools_own() -> None:
    schema = {"type": "object", "properties": {"headers": {"type": "object"}, "api_key": {"type": "string"}}}
    call = {"type": "tool_use", "id": "toolu_1", "name": "post", "input": {"headers": {"Authorization": "a"}}}
    body = {
        "model": "claude-sonnet-4-5",
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [call]}],
        "tools": [{"name": "post", "input_schema": schema}],
    }
    chat = Conversation.from_body(body)
    for event in (SettingsChanged.from_request(chat.state.request), *map(MessageAdded, chat.messages)):
        assert decode_event(dump_event(event)) == event
