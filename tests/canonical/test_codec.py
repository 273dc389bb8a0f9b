"""The stored form: everything round-trips, unknown fields included."""

from __future__ import annotations

import pytest

from segue.canonical.blocks import Code, Media, Message, Native, Opaque, Origin, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.codec import dumps, loads
from segue.canonical.json import encode_json, parse_json
from segue.canonical.request import Options, Reasoning, Request, ResponseFormat, Tool, ToolChoice
from segue.errors import InputError

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
