"""`segue.convert_tools`: declarations of any shape, for any target."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import segue
from tests.budget import examples

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
CHAT = {"type": "function", "function": {"name": "read", "description": "Reads.", "parameters": SCHEMA}}
FLAT = {"type": "function", "name": "read", "description": "Reads.", "parameters": SCHEMA}
BARE = {"name": "read", "description": "Reads.", "parameters": SCHEMA}
ANTHROPIC = {"name": "read", "description": "Reads.", "input_schema": SCHEMA}
MCP = {
    "name": "read",
    "title": "Read",
    "description": "Reads.",
    "inputSchema": SCHEMA,
    "annotations": {"readOnlyHint": True},
}
SHAPES = {"chat": CHAT, "flat": FLAT, "bare": BARE, "anthropic": ANTHROPIC, "mcp": MCP}
TARGETS = [row.name for row in segue.formats() if row.kind != "text"]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_detected(shape: str) -> None:
    assert segue.convert_tools([SHAPES[shape]], target="anthropic").tools == [ANTHROPIC]
    assert segue.convert_tools([SHAPES[shape]], target="openai-chat").tools == [CHAT]
    assert segue.convert_tools([SHAPES[shape]], target="openai").tools == [CHAT]


@pytest.mark.parametrize("target", TARGETS)
def test_same_api_tools_are_unchanged(target: str) -> None:
    odd = {"type": "object", "anyOf": [{"required": ["a"]}], "x-mine": 1}
    conversion = segue.convert_tools([{**CHAT, "function": {**CHAT["function"], "parameters": odd}}], target=target)
    home = segue.convert_tools(conversion.tools, source=target, target=target)
    assert home.tools == conversion.tools
    assert home.report.findings == []


def test_names_and_schemas_are_reported():
    tools = [
        {
            **ANTHROPIC,
            "name": "files.read",
            "input_schema": {"type": "object", "properties": {"u": {"type": "string", "format": "uri"}}},
        }
    ]
    conversion = segue.convert_tools(tools, target="kimi")
    assert conversion[0]["function"]["name"].startswith("files_read_")
    assert conversion[0]["function"]["parameters"]["properties"] == {
        "u": {"type": "string", "description": "format uri"}
    }
    assert [finding.kind for finding in conversion.report.findings] == ["tools", "name"]
    assert conversion.report.target == "kimi"


def test_name_is_projected_like_in_convert():
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "Go."}],
        "tools": [{**ANTHROPIC, "name": "a b"}],
    }
    converted = segue.convert(body, target="openai-chat")
    assert segue.convert_tools(body["tools"], target="openai-chat").tools == converted.body["tools"]


def test_provider_defined_tools_stay_in_their_api():
    advisor = {"type": "advisor_20260301", "name": "advisor", "model": "claude-opus-5"}
    assert segue.convert_tools([advisor, CHAT], target="anthropic").tools == [advisor, ANTHROPIC]
    conversion = segue.convert_tools([advisor, CHAT], target="openai-chat")
    assert conversion.tools == [CHAT]
    assert [finding.subject for finding in conversion.report.findings] == ["advisor"]


def test_fields_beside_the_tools_are_named():
    server = {"type": "mcp", "server_label": "wiki", "server_url": "https://wiki.example", "require_approval": "never"}
    conversion = segue.convert_tools([server], target="anthropic")
    assert conversion.tools == [{"type": "mcp_toolset", "mcp_server_name": "wiki"}]
    assert "mcp_servers" in [finding.subject for finding in conversion.report.findings]


def test_it_is_a_sequence_and_takes_json():
    conversion = segue.convert_tools(json.dumps([CHAT, {**BARE, "name": "glob"}]).encode(), target="anthropic")
    assert len(conversion) == 2
    assert [tool["name"] for tool in conversion] == ["read", "glob"]
    assert conversion[1]["name"] == "glob"
    assert conversion[:1] == [ANTHROPIC]
    assert json.loads(conversion.data) == conversion.tools
    assert "2 tools" in repr(conversion)
    # As an MCP server answers `tools/list`.
    assert segue.convert_tools({"tools": [MCP]}, target="anthropic").tools == [ANTHROPIC]
    assert segue.convert_tools([], target="anthropic").tools == []


@pytest.mark.parametrize(
    ("tools", "path"),
    [
        ({"a": 1}, "tools"),
        ("3", "tools"),
        ([CHAT, 3], "tools[1]"),
        ([CHAT, {}], "tools[1]"),
        ([{"type": "function", "function": {"parameters": {}}}], "tools[0].function.name"),
        ([CHAT, {"input_schema": {}}], "tools[1].name"),
        ([{"toolSpec": {}}], "tools[0].toolSpec.name"),
    ],
)
def test_bad_declarations_name_their_place(tools: Any, path: str) -> None:
    with pytest.raises(segue.InputError) as caught:
        segue.convert_tools(tools, target="anthropic")
    assert caught.value.path == path


@pytest.mark.parametrize(("argument", "value"), [("target", "nope"), ("source", "nope")])
def test_unknown_names(argument: str, value: str) -> None:
    with pytest.raises(segue.InputError) as caught:
        segue.convert_tools([], **{"target": "anthropic", argument: value})
    assert caught.value.path == argument


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["type", "name", "function", "custom", "parameters", "input_schema", "inputSchema", "strict"]
            )
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@examples(1)
@given(tools=st.lists(JSON, max_size=3), target=st.sampled_from(TARGETS), source=st.sampled_from([None, *TARGETS]))
def test_any_json_gives_tools_or_an_input_error(tools: list[Any], target: str, source: str | None) -> None:
    try:
        conversion = segue.convert_tools(tools, target=target, source=source)
    except segue.InputError:
        return
    assert json.loads(conversion.data) == conversion.tools
