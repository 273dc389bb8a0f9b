"""The stored form: everything round-trips, unknown fields included."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from segue._conversation import Conversation
from segue.canonical import codec
from segue.canonical.blocks import Code, Media, Message, Native, Opaque, Origin, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.codec import decode_message, dumps, encode_value, loads
from segue.canonical.json import encode_json, parse_json
from segue.canonical.request import Options, Reasoning, Request, ResponseFormat, Tool, ToolChoice
from segue.errors import InputError
from tests.conversations.table import CASES

NATIVE = Native("anthropic", {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}})
WHOLE = Request(
    messages=(
        Message("system", (Text("be kind"),), pinned=True),
        Message("human", (Text("hi", native=NATIVE), Media("image", "image/png", data="aGk="), Code("1+1", "python"))),
        Message(
            "ai",
            (
                Thinking("hm", signature="c2ln", origin=Origin("anthropic", "claude-sonnet-4-5"), prefix="ab"),
                ToolCall("look", {"q": [1, 1.0, None]}, "hist_tool_a", origin=Origin("openai", raw_id="call_1")),
                ToolCall("run", "print(1)", "hist_tool_b", kind="custom"),
                ToolCall("broken", None, "hist_tool_c", arguments_text='{"a":'),
            ),
            turn_key="turn-1",
        ),
        Message("tool", (ToolResponse("hist_tool_a", "look", (Text("r"), Opaque("odd", NATIVE)), error=True),)),
        Message("tool", (ToolResponse("hist_tool_b", "run", (), structured={"k": [1]}, is_complete=True),)),
    ),
    system=(Text("top"),),
    tools=(Tool("look", "looks", {"type": "object"}, strict=True),),
    options=Options(
        max_tokens=5,
        stop=("END",),
        tool_choice=ToolChoice("tool", "look"),
        reasoning=Reasoning(effort="high"),
        response_format=ResponseFormat("schema", {"type": "object"}),
    ),
    model="m",
    native=Native("openai-chat", {"seed": 1}),
)


def test_everything_comes_back():
    assert loads(dumps(WHOLE))[0] == WHOLE


def test_unknown_blocks_and_fields_survive():
    stored, _ = parse_json(dumps(WHOLE))
    stored["value"]["messages"][1]["blocks"].append({"type": "hologram", "depth": 3})
    stored["value"]["messages"][1]["mood"] = "bright"
    stored["value"]["messages"][1]["blocks"][0]["colour"] = "red"
    stored["value"]["later"] = {"a": 1}
    request, envelope = loads(encode_json(stored))
    again, _ = parse_json(dumps(request))
    assert again["value"] == stored["value"]
    assert envelope["segue"] == 1


@pytest.mark.parametrize(
    ("stored", "says"),
    [
        (b"{}", "not a stored conversation"),
        (b'{"segue": 99, "value": {}}', "version 99"),
        (b'{"segue": 1, "value": []}', "value: an object was expected"),
        (b'{"segue": 1, "value": {"messages": [{"speaker": "ghost", "blocks": []}]}}', "value.messages[0]"),
        (b'{"segue": 1, "value": {"messages": [{"speaker": "ai", "blocks": [{"type": "text"}]}]}}', "blocks[0]"),
    ],
)
def test_invalid_file_error_names_the_place(stored: bytes, says: str):
    with pytest.raises(InputError) as caught:
        loads(stored)
    assert says in str(caught.value)


def test_known_messages_are_decoded_as_field_by_field(monkeypatch: pytest.MonkeyPatch):
    """The fast decoding of messages without unknown fields has the result of the general one."""
    messages = [
        *WHOLE.messages,
        *(message for case in CASES for message in Conversation.from_body(case.body, source=case.source).messages),
    ]
    stored = [encode_value(message) for message in messages]
    decoded = [decode_message(copy.deepcopy(value), "") for value in stored]
    monkeypatch.setattr(codec, "_has_extra", lambda _: True)
    assert decoded == messages
    assert [decode_message(value, "") for value in stored] == messages


TEXT = {"type": "text", "text": "x"}
ODD_MESSAGES: dict[str, Any] = {
    "unknown field": {"speaker": "human", "blocks": [TEXT], "new": 1},
    "unknown field of a block": {"speaker": "human", "blocks": [{**TEXT, "new": 1}]},
    "unknown field of a native": {
        "speaker": "human",
        "blocks": [{**TEXT, "native": {"api": "gemini", "fragment": {}, "new": 1}}],
    },
    "unknown block": {"speaker": "human", "blocks": [{"type": "new"}]},
    "unknown block in a result": {
        "speaker": "tool",
        "blocks": [{"type": "tool_response", "content": [{"type": "new"}]}],
    },
    "field named extra": {"speaker": "human", "blocks": [{**TEXT, "extra": {"a": 1}}], "extra": 2},
    "no blocks": {"speaker": "human"},
    "wrong type beside a struct": {
        "speaker": "human",
        "blocks": [{"type": "text", "text": 5, "native": {"api": "gemini", "fragment": {}}}],
    },
    "null": {"speaker": "human", "blocks": [{**TEXT, "native": None}], "name": None},
}


@pytest.mark.parametrize("stored", ODD_MESSAGES.values(), ids=ODD_MESSAGES)
def test_odd_messages_are_decoded_as_field_by_field(stored: Any, monkeypatch: pytest.MonkeyPatch):
    decoded = decode_message(copy.deepcopy(stored), "")
    monkeypatch.setattr(codec, "_has_extra", lambda _: True)
    assert decoded == decode_message(copy.deepcopy(stored), "")
