"""MCP servers that send odd messages: an invalid tool costs that tool, an invalid content block that block.

The SDK's own validation, for each form of the protocol, is the oracle for what the SDK gets.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import mcp_types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import methods
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS

from segue.canonical.blocks import Media, Text
from segue.errors import InputError
from segue.runtime import mcp_messages
from segue.runtime.mcp import McpServers, parse_servers
from segue.runtime.mcp_messages import _cut_nesting
from segue.runtime.mcp_results import parse_result
from segue.runtime.mcp_tools import make_tools, parse_tools
from segue.runtime.mcp_transport import _reduce_result, parsed_result
from segue.runtime.tool_types import Context, Tool, ToolError
from segue.runtime.toolbox import MAX_DECLARED, Toolbox

SCRIPT = Path(__file__).with_name("mcp_odd_server.py")
OBJECT = {"type": "object"}
GOOD = {"name": "good", "description": "Works.", "inputSchema": OBJECT}


def nested(depth):
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


BAD_TOOLS = {
    "not an object": (5, "an object was expected, not a number"),
    "null": (None, "an object was expected, not null"),
    "no name": ({"inputSchema": OBJECT}, "name: a string was expected, not null"),
    "name of another type": ({"name": 5, "inputSchema": OBJECT}, "name: a string was expected, not a number"),
    "empty name": ({"name": "", "inputSchema": OBJECT}, "name: 1 to 256 characters were expected, not 0"),
    "endless name": ({"name": "n" * 5_000, "inputSchema": OBJECT}, "name: 1 to 256 characters were expected"),
    "no schema": ({"name": "bad"}, "inputSchema: an object was expected, not null"),
    "schema is a list": ({"name": "bad", "inputSchema": []}, "inputSchema: an object was expected, not a list"),
    "schema is true": ({"name": "bad", "inputSchema": True}, "inputSchema: an object was expected, not a boolean"),
    "type is a number": ({"name": "bad", "inputSchema": {"type": 5}}, 'inputSchema.type: the type must be "object"'),
    "type is array": ({"name": "bad", "inputSchema": {"type": "array"}}, 'inputSchema.type: the type must be "object"'),
    "property of an unknown type": (
        {"name": "bad", "inputSchema": {"type": "object", "properties": {"a": {"type": 5}}}},
        "inputSchema: 5 is not valid",
    ),
    "properties is a list": (
        {"name": "bad", "inputSchema": {"type": "object", "properties": []}},
        'inputSchema: [] is not of type "object"',
    ),
    "required is text": (
        {"name": "bad", "inputSchema": {"type": "object", "required": "a"}},
        'inputSchema: "a" is not of type "array"',
    ),
    "reference to nothing": (
        {"name": "bad", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}},
        "does not exist",
    ),
    "reference to the network": (
        {"name": "bad", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "http://192.0.2.1/a"}}}},
        "Retrieval is disabled",
    ),
    "pattern": (
        {"name": "bad", "inputSchema": {"type": "object", "properties": {"a": {"pattern": "("}}}},
        'inputSchema: "(" is not a "regex"',
    ),
    "unknown dialect": ({"name": "bad", "inputSchema": {"$schema": "http://x/y", "type": "object"}}, "meta-schema"),
    "dialect of another type": ({"name": "bad", "inputSchema": {"$schema": 5, "type": "object"}}, "inputSchema: "),
    "too deep": ({"name": "bad", "inputSchema": nested(180)}, "Recursion limit reached"),
    "deeper than the SDK reads": ({"name": "bad", "inputSchema": nested(240)}, "Recursion limit reached"),
    "deeper than JSON may be": ({"name": "bad", "inputSchema": nested(300)}, "nested more than 500 levels deep"),
    "too large": (
        {"name": "bad", "inputSchema": {"type": "object", "description": "x" * 300_000}},
        "the limit is 256,000",
    ),
    "not a number": (
        {"name": "bad", "inputSchema": {"type": "object", "properties": {"a": {"const": float("nan")}}}},
        "nan is not a JSON number",
    ),
}
ODD_TOOLS = {
    "huge description": {"name": "odd", "description": "x" * 1_000_000, "inputSchema": OBJECT},
    "description of another type": {"name": "odd", "description": 5, "title": "Odd", "inputSchema": OBJECT},
    "annotations of another type": {"name": "odd", "annotations": ["x"], "inputSchema": OBJECT},
    "hints of another type": {"name": "odd", "annotations": {"readOnlyHint": "yes"}, "inputSchema": OBJECT},
    "output schema of another type": {"name": "odd", "outputSchema": 5, "icons": 5, "_meta": 5, "inputSchema": OBJECT},
    "a schema that refers to itself": {
        "name": "odd",
        "inputSchema": {"type": "object", "properties": {"a": {"$ref": "#"}}},
    },
    "references in a circle": {
        "name": "odd",
        "inputSchema": {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/x"}},
            "$defs": {"x": {"$ref": "#/$defs/y"}, "y": {"$ref": "#/$defs/x"}},
        },
    },
    "boolean properties": {"name": "odd", "inputSchema": {"type": "object", "properties": {"a": True, "b": False}}},
    "lone surrogates": {"name": "odd", "description": "\ud83d cut", "inputSchema": OBJECT},
}


def validate_for_sdk(method, result):
    """Validate what the SDK gets for a result, as it does itself, in both forms of the protocol."""
    reduced = _reduce_result(method, result)
    for version in KNOWN_PROTOCOL_VERSIONS[-2:]:
        methods.validate_server_result(method, version, reduced)
    kind = mcp_types.ListToolsResult if method == "tools/list" else mcp_types.CallToolResult
    return parsed_result(kind.model_validate(reduced, by_name=False))


async def call_nothing(tool, arguments, context) -> Any:
    raise AssertionError


def build_tools(page):
    return make_tools("trial", page.tools, call_nothing, timeout=1, has_own_timeout=False)


@pytest.mark.parametrize("case", BAD_TOOLS)
def test_a_bad_tool_is_left_out_with_a_reason(case):
    tool, reason = BAD_TOOLS[case]
    page = validate_for_sdk("tools/list", {"tools": [tool, GOOD]})
    assert [declared.name for declared in page.tools] == ["good"]
    (left_out,) = page.left_out
    assert reason in left_out.reason
    assert len(str(left_out)) < 1_000


@pytest.mark.parametrize("case", ODD_TOOLS)
def test_an_odd_tool_is_kept_if_it_can_be_called(case, tmp_path):
    page = validate_for_sdk("tools/list", {"tools": [ODD_TOOLS[case], GOOD]})
    tools, left_out = build_tools(page)
    assert ([tool.name for tool in tools], page.left_out, left_out) == (["trial__good", "trial__odd"], (), ())
    assert len(tools[1].description) <= 4_000
    box = Toolbox(tools, tmp_path)
    assert box.validate_arguments(tools[1], {}) is None
    json.dumps(tools[1].description).encode()


def test_names_that_are_equal_or_become_equal():
    entries = [{**GOOD, "name": name} for name in ("a.b", "a b", "a.b", "\u202e", "x" * 200)]
    page = validate_for_sdk("tools/list", {"tools": entries})
    tools, left_out = build_tools(page)
    assert [tool.name for tool in tools] == ["trial__a_b", "trial__a_b_2", f"trial__{'x' * 57}", "trial___"]
    assert [str(entry) for entry in left_out] == ["'a.b' (declared twice)"]


@pytest.mark.parametrize("tools", [None, 5, "x", {"good": GOOD}])
def test_a_list_of_another_type_is_empty(tools):
    page = validate_for_sdk("tools/list", {"tools": tools})
    assert page.tools == ()
    assert "a list was expected" in str(page.left_out[0])


@pytest.mark.parametrize("cursor", [None, "", 5, [], {}])
def test_a_cursor_that_is_no_text_ends_the_list(cursor):
    assert parse_tools({"tools": [], "nextCursor": cursor}).next_cursor is None


BAD_BLOCKS = {
    "not an object": (5, "an object was expected, not a number"),
    "null": (None, "an object was expected, not null"),
    "no type": ({"text": "x"}, "type: a string was expected, not null"),
    "unknown type": ({"type": "video", "data": "x"}, "type: unknown type 'video'"),
    "type of another type": ({"type": 5}, "type: a string was expected, not a number"),
    "no text": ({"type": "text"}, "text: a string was expected, not null"),
    "text of another type": ({"type": "text", "text": {"a": 1}}, "text: a string was expected, not an object"),
    "no data": ({"type": "image", "mimeType": "image/png"}, "data: a string was expected, not null"),
    "no media type": ({"type": "image", "data": "AAAA"}, "mimeType: a string was expected, not null"),
    "media type": ({"type": "image", "data": "AAAA", "mimeType": "png"}, "a media type was expected, not 'png'"),
    "not base64": ({"type": "image", "data": "a*b=", "mimeType": "image/png"}, "data: it is not base64"),
    "base64 without end": ({"type": "audio", "data": "AAAAA", "mimeType": "audio/wav"}, "data: it is not base64"),
    "data of another type": ({"type": "audio", "data": 5, "mimeType": "audio/wav"}, "data: a string was expected"),
    "empty data": ({"type": "image", "data": "", "mimeType": "image/png"}, "data: it is empty"),
    "no resource": ({"type": "resource"}, "resource: an object was expected, not null"),
    "resource without uri": ({"type": "resource", "resource": {"text": "x"}}, "resource.uri: a string was expected"),
    "resource of nothing": ({"type": "resource", "resource": {"uri": "a:b"}}, "resource.blob: a string was expected"),
    "resource with odd text": ({"type": "resource", "resource": {"uri": "a:b", "text": None}}, "resource.text: a str"),
    "resource with a bad image": (
        {"type": "resource", "resource": {"uri": "a:b", "mimeType": "image/png", "blob": "*"}},
        "resource.blob: it is not base64",
    ),
    "link without uri": ({"type": "resource_link", "name": "x"}, "uri: a string was expected, not null"),
    "link with odd name": ({"type": "resource_link", "uri": "a:b", "name": 5}, "name: a string was expected"),
    "not a number": ({"type": "text", "text": "x", "a": float("inf")}, "a: inf is not a JSON number"),
    "too deep": ({"type": "text", "text": "x", "a": nested(300)}, "nested more than 500 levels deep"),
}


@pytest.mark.parametrize("case", BAD_BLOCKS)
def test_a_bad_block_is_left_out_with_a_reason(case):
    block, reason = BAD_BLOCKS[case]
    first, last = {"type": "text", "text": "first"}, {"type": "text", "text": "last"}
    result = validate_for_sdk("tools/call", {"content": [first, block, last]})
    lines = result.content.split("\n")
    assert (lines[0], lines[-1], result.error) == ("first", "last", False)
    assert lines[1].startswith("[content block 2 left out: ")
    assert reason in lines[1]


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({}, "[nothing]"),
        ({"content": None}, "[nothing]"),
        ({"content": []}, "[nothing]"),
        ({"content": "x"}, "[content left out: a list was expected, not a string]"),
        ({"content": None, "structuredContent": {"a": 1}}, '{"a":1}'),
        ({"structuredContent": 5}, "5"),
        ({"structuredContent": [1]}, "[1]"),
        ({"structuredContent": {"a": float("nan")}}, "[structuredContent left out: a: nan is not a JSON number]"),
        ({"content": [{"type": "text", "text": "x"}], "structuredContent": 5}, "x"),
        (
            {"content": [{"type": "text", "text": "x"}], "isError": "no"},
            "x\n[isError left out: a boolean was expected, not a string]",
        ),
        ({"content": [{"type": "text", "text": "\ud83d"}]}, "\N{REPLACEMENT CHARACTER}"),
        ({"content": [{"type": "text", "text": "x", "annotations": 5, "_meta": 5}], "_meta": 5, "resultType": 5}, "x"),
        (
            {"content": [{"type": "text", "text": "x"}] * 1_002},
            "\n".join(["x"] * 1_000 + ["[2 more content blocks left out]"]),
        ),
    ],
)
def test_odd_results(result, text):
    assert validate_for_sdk("tools/call", result).content == text


def test_an_image_beside_a_bad_block_is_kept():
    image = {"type": "image", "mimeType": "image/png", "data": "AA\nAA"}
    result = parse_result({"content": [image, {"type": "image"}], "isError": True})
    assert result.content == (
        Media("image", "image/png", "AAAA"),
        Text("[content block 2 left out: data: a string was expected, not null]"),
    )
    assert result.error


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8)


def objects(inner):
    keys = "name inputSchema type properties required $ref description content text data mimeType resource uri blob"
    known = st.sampled_from(keys.split())
    return st.dictionaries(
        known | st.text(max_size=4), inner | st.sampled_from(["object", "text", "image"]), max_size=5
    )


json_values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | objects(inner), max_leaves=8)


@given(st.lists(json_values, max_size=4), json_values)
def test_any_list_of_tools_keeps_the_good_one(entries, cursor):
    page = validate_for_sdk("tools/list", {"tools": [*entries, GOOD], "nextCursor": cursor})
    assert "good" in [tool.name for tool in page.tools]
    assert len(page.tools) + len(page.left_out) == len(entries) + 1


@given(st.lists(json_values, max_size=4), json_values, json_values)
def test_any_result_keeps_the_good_block(blocks, structured, flag):
    good = {"type": "text", "text": "good"}
    result = {"content": [*blocks, good], "structuredContent": structured, "isError": flag}
    content = validate_for_sdk("tools/call", result).content
    texts = content.split("\n") if isinstance(content, str) else [getattr(block, "text", "") for block in content]
    assert "good" in texts


# ------------------------------------------------------------------------------------------------------- over the wire


def run_with_server(tmp_path, pages, play, **more):
    file = tmp_path / "pages"
    file.write_text("\n".join(pages))

    async def run():
        table = {"odd": {"command": sys.executable, "args": [str(SCRIPT), str(file)], "start": 240, **more}}
        servers = McpServers(parse_servers(table), folder=tmp_path)
        try:
            await servers.start()
            await play(servers)
        finally:
            await servers.close()

    asyncio.run(run())


ANSWERS = [
    ('"result": {"content": [{"type": "text", "text": "a"}, {"type": "text"}]}', "a\n[content block 2 left out"),
    (
        '"result": {"content": [{"type": "text", "text": "cut \\ud83d"}, {"type": "text", "text": "b"}]}',
        "cut \ufffd\nb",
    ),
    ('"result": {"content": [{"type": "text", "text": "a", "x": NaN}, {"type": "text", "text": "b"}]}', "\nb"),
    (f'"result": {{"content": [{{"type": "text", "text": "a"}}], "x": {json.dumps(nested(240))}}}', "a"),
    ('"result": {"structuredContent": 5}', "5"),
]
ERRORS = [
    ('"result": null', "the server's response is invalid: it has neither a result nor an error that is an object"),
    ('"result": []', "the server's response is invalid"),
    ('"error": "broken"', "the server's response is invalid: broken"),
    ('"error": {"message": "no code"}', "the server's response is invalid: no code"),
    ('"error": {"code": 1, "message": "plain"}', "odd: plain"),
    ('"x": 5', "the server's response is invalid"),
    (f'"result": {"[" * 5_000 + "]" * 5_000}', "the server's response is invalid: it is nested too deeply"),
]


def test_odd_answers_cost_no_more_than_the_call(tmp_path):
    bad = [entry for entry, _ in BAD_TOOLS.values()]
    page = json.dumps(
        {"tools": [*bad, GOOD, *({**tool, "name": f"odd{n}"} for n, tool in enumerate(ODD_TOOLS.values()))]}
    )

    async def play(servers):
        assert servers.problems == {}
        names = [tool.name for tool in servers.tools()]
        assert names == ["odd__good", *(f"odd__odd{n}" for n in range(len(ODD_TOOLS)))]
        assert servers.left_out["odd"].startswith(f"{len(bad)} left out: tool 1 (an object was expected, not a number)")
        assert servers.states["odd"].startswith(f"{len(names)} tools; {len(bad)} left out: ")
        good = servers.tools()[0]
        for answer, text in ANSWERS:
            assert text in (await good.run({"answer": answer}, Context(tmp_path))).content
        for answer, text in ERRORS:
            with pytest.raises(ToolError) as error:
                await good.run({"answer": answer}, Context(tmp_path))
            assert text in str(error.value)
        assert (await good.run({}, Context(tmp_path))).content == "[nothing]"

    run_with_server(tmp_path, [f'"result": {page}'], play)


def deep_text(depth):
    """Return a schema as text, which `json.dumps` can't write."""
    return '{"type": "object", "properties": {"a\\"]": ' * depth + '{"enum": ["}"]}' + "}}" * depth


@pytest.mark.parametrize("depth", [260, 900, 5_000])
def test_a_tool_that_is_nested_too_deeply_costs_that_tool(depth, tmp_path):
    deep = f'{{"name": "deep", "inputSchema": {deep_text(depth)}}}'
    page = f'"result": {{"tools": [{json.dumps(GOOD)}, {deep}, {json.dumps({**GOOD, "name": "last", "id": 7})}]}}'

    async def play(servers):
        assert servers.problems == {}
        assert [tool.name for tool in servers.tools()] == ["odd__good", "odd__last"]
        assert servers.left_out["odd"].startswith("1 left out: 'deep' (")
        assert "nested more than 500 levels deep" in servers.left_out["odd"]
        block = f'{{"type": "text", "text": "a", "x": {deep_text(depth)}}}'
        answer = f'"result": {{"content": [{block}, {{"type": "text", "text": "b"}}]}}'
        result = await servers.tools()[0].run({"answer": answer}, Context(tmp_path))
        assert result.content.startswith("[content block 1 left out: ")
        assert result.content.endswith("\nb")

    run_with_server(tmp_path, [page], play)


def test_a_long_list_that_is_nested_too_deeply_is_an_error_of_the_server(tmp_path, monkeypatch):
    monkeypatch.setattr(mcp_messages, "_MAX_CUT", 10_000)
    entries = f'{json.dumps({**GOOD, "id": 999})}, {{"name": "deep", "inputSchema": {deep_text(900)}}}'

    async def play(servers):
        assert servers.problems == {"odd": "the server's response is invalid: it is nested too deeply"}

    run_with_server(tmp_path, [f'"result": {{"tools": [{entries}]}}'], play)


@given(json_values, st.integers(0, 6))
def test_a_cut_message_is_valid_and_equal_above_the_depth(value, depth):
    with patch.object(mcp_messages, "_CUT_DEPTH", depth):
        assert json.dumps(json.loads(_cut_nesting(json.dumps(value)))) == json.dumps(cut_value(value, depth))


def cut_value(value, depth):
    if not isinstance(value, dict | list):
        return value
    if depth == 0:
        return None
    if isinstance(value, list):
        return [cut_value(item, depth - 1) for item in value]
    return {key: cut_value(item, depth - 1) for key, item in value.items()}


def test_a_list_of_endless_pages_is_read_to_a_limit(tmp_path):
    pages = [
        f'"result": {json.dumps({"tools": [{**GOOD, "name": f"t{n}"}], "nextCursor": f"c{n}"})}' for n in range(60)
    ]

    async def play(servers):
        assert len(servers.tools()) == 50
        assert servers.left_out["odd"] == "1 left out: all further tools (the list does not end after 50 pages)"

    run_with_server(tmp_path, pages, play)


def test_a_cursor_that_returns_ends_the_list(tmp_path):
    async def play(servers):
        assert [tool.name for tool in servers.tools()] == ["odd__good"]
        assert "all further tools (the list does not end after 1 pages)" in servers.left_out["odd"]

    run_with_server(tmp_path, [f'"result": {json.dumps({"tools": [GOOD], "nextCursor": "again"})}'], play)


# --------------------------------------------------------------------------------------------------------------- limit


def plain_tool(name):
    return Tool(name, "Does nothing.", OBJECT, lambda arguments, context: "")


def test_the_number_of_declared_tools_is_limited(tmp_path):
    listed = tuple(plain_tool(f"server__{n:03}") for n in range(200))
    box = Toolbox([plain_tool("own"), plain_tool("zzz")], tmp_path, sources=[lambda: listed])
    assert len(box.declarations) == MAX_DECLARED == 128
    assert {"own", "zzz", "server__125"} <= set(box.names)
    assert len(box.left_out) == 74
    assert box.left_out[0] == "server__126"
    assert box.limit_note.startswith("more than 128 tools: 74 left out: server__126, server__127, ")
    assert box.limit_note.endswith(", and 64 more")
    assert box.find("server__126") is None
    # A selection may name any of them.
    assert box.only(["server__199", "own"]).names == ("own", "server__199")
    assert box.with_tools(plain_tool("task")).left_out[0] == "server__125"


def test_own_tools_are_never_left_out(tmp_path):
    own = [plain_tool(f"own{n}") for n in range(5)]
    box = Toolbox(own, tmp_path, sources=[lambda: (plain_tool("server__a"),)], max_declared=3)
    assert (len(box.names), box.left_out) == (5, ("server__a",))
    assert Toolbox(own, tmp_path, max_declared=3).limit_note == ""


@pytest.mark.parametrize("limit", [0, -1, 2.5, True, "9", None])
def test_a_limit_is_a_number_from_1(tmp_path, limit):
    with pytest.raises(InputError, match="max_declared: a number from 1 was expected"):
        Toolbox([], tmp_path, max_declared=limit)
