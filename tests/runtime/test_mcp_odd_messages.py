"""MCP servers that send odd messages: an invalid tool costs that tool, an invalid content block that block.

The SDK's own validation, for each form of the protocol, is the oracle for what the SDK gets.
"""

import asyncio
import json
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import methods
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS

from segue.canonical.blocks import Media, Text
from segue.errors import InputError
from segue.runtime.mcp import McpServers, parse_servers
from segue.runtime.mcp_messages import SurrogateFilter, check_result, parse_line
from segue.runtime.mcp_results import convert_result
from segue.runtime.mcp_tools import LeftOut, convert_tools, make_tools
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
    "not an object": (5, "Input should be a valid dictionary"),
    "null": (None, "Input should be a valid dictionary"),
    "no name": ({"inputSchema": OBJECT}, "name: Field required"),
    "name of another type": ({"name": 5, "inputSchema": OBJECT}, "name: Input should be a valid string"),
    "empty name": ({"name": "", "inputSchema": OBJECT}, "name: 1 to 256 characters were expected, not 0"),
    "endless name": ({"name": "n" * 5_000, "inputSchema": OBJECT}, "name: 1 to 256 characters were expected"),
    "no schema": ({"name": "bad"}, "inputSchema: Field required"),
    "schema is a list": ({"name": "bad", "inputSchema": []}, "inputSchema: Input should be a valid dictionary"),
    "schema is true": ({"name": "bad", "inputSchema": True}, "inputSchema: Input should be a valid dictionary"),
    "type is a number": ({"name": "bad", "inputSchema": {"type": 5}}, "inputSchema.type: Input should be 'object'"),
    "type is array": ({"name": "bad", "inputSchema": {"type": "array"}}, "inputSchema.type: Input should be 'object'"),
    "property of an unknown type": (
        {"name": "bad", "inputSchema": {"type": "object", "properties": {"a": {"type": 5}}}},
        "inputSchema: 5 is not valid",
    ),
    "properties is a list": (
        {"name": "bad", "inputSchema": {"type": "object", "properties": []}},
        "inputSchema.properties: Input should be a valid dictionary",
    ),
    "required is text": (
        {"name": "bad", "inputSchema": {"type": "object", "required": "a"}},
        "inputSchema.required: Input should be a valid list",
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
    "dialect of another type": (
        {"name": "bad", "inputSchema": {"$schema": 5, "type": "object"}},
        "inputSchema.$schema: ",
    ),
    "too deep": ({"name": "bad", "inputSchema": nested(180)}, "depth exceeded"),
    "description of another type": (
        {"name": "bad", "description": 5, "inputSchema": OBJECT},
        "description: Input should be a valid string",
    ),
    "annotations of another type": (
        {"name": "bad", "annotations": ["x"], "inputSchema": OBJECT},
        "annotations: Input should be a valid dictionary",
    ),
    "headers": (
        {"name": "bad", "inputSchema": {"type": "object", "x-mcp-header": "a"}},
        "x-mcp-header found at a schema position",
    ),
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
    "schema without a type": {"name": "odd", "inputSchema": {}},
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
}


def check(method, result):
    """Correct a result, and validate it as the SDK does, in both forms of the protocol."""
    dropped = []
    result = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result}
    check_result(result, lambda name, reason: dropped.append(LeftOut(name, reason)))
    *_, parsed = (methods.parse_server_result(method, version, result) for version in KNOWN_PROTOCOL_VERSIONS[-2:])
    return cast("Any", parsed), dropped


def read_tools(entries):
    page, dropped = check("tools/list", {"tools": entries})
    declared, left_out = convert_tools(page.tools)
    return declared, [*dropped, *left_out]


def read_result(**result) -> Any:
    return convert_result(check("tools/call", result)[0])


async def call_nothing(tool, arguments, context) -> Any:
    raise AssertionError


def build_tools(declared):
    return make_tools("trial", declared, call_nothing, timeout=1, has_own_timeout=False)


@pytest.mark.parametrize("case", BAD_TOOLS)
def test_a_bad_tool_is_left_out_with_a_reason(case):
    tool, reason = BAD_TOOLS[case]
    declared, (left_out,) = read_tools([tool, GOOD])
    assert [tool.name for tool in declared] == ["good"]
    assert reason in left_out.reason
    assert len(str(left_out)) < 1_000


@pytest.mark.parametrize("case", ODD_TOOLS)
def test_an_odd_tool_is_kept_if_it_can_be_called(case, tmp_path):
    declared, dropped = read_tools([ODD_TOOLS[case], GOOD])
    tools, left_out = build_tools(declared)
    assert ([tool.name for tool in tools], dropped, left_out) == (["trial__good", "trial__odd"], [], ())
    assert len(tools[1].description) <= 4_000
    box = Toolbox(tools, tmp_path)
    assert box.validate_arguments(tools[1], {}) is None
    json.dumps(tools[1].description).encode()


def test_names_that_are_equal_or_become_equal():
    entries = [{**GOOD, "name": name} for name in ("a.b", "a b", "a.b", "\u202e", "x" * 200)]
    tools, left_out = build_tools(read_tools(entries)[0])
    assert [tool.name for tool in tools] == ["trial__a_b", "trial__a_b_2", f"trial__{'x' * 57}", "trial___"]
    assert [str(entry) for entry in left_out] == ["'a.b' (declared twice)"]


BAD_BLOCKS = {
    "not an object": (5, "Input should be a valid dictionary"),
    "null": (None, "Input should be a valid dictionary"),
    "no type": ({"data": "x"}, "text: Field required"),
    "unknown type": ({"type": "video", "data": "x"}, "unknown type 'video'"),
    "type of another type": ({"type": 5, "text": "x"}, "type: Input should be 'text'"),
    "no text": ({"type": "text"}, "text: Field required"),
    "text of another type": ({"type": "text", "text": {"a": 1}}, "text: Input should be a valid string"),
    "no data": ({"type": "image", "mimeType": "image/png"}, "data: Field required"),
    "no media type": ({"type": "image", "data": "AAAA"}, "mimeType: Field required"),
    "media type": ({"type": "image", "data": "AAAA", "mimeType": "png"}, "a media type was expected, not 'png'"),
    "not base64": ({"type": "image", "data": "a*b=", "mimeType": "image/png"}, "left out: it is not base64"),
    "base64 without end": ({"type": "audio", "data": "AAAAA", "mimeType": "audio/wav"}, "left out: it is not base64"),
    "data of another type": (
        {"type": "audio", "data": 5, "mimeType": "audio/wav"},
        "data: Input should be a valid string",
    ),
    "empty data": ({"type": "image", "data": "", "mimeType": "image/png"}, "left out: it is empty"),
    "no resource": ({"type": "resource"}, "resource: Field required"),
    "resource without uri": ({"type": "resource", "resource": {"text": "x"}}, "uri: Field required"),
    "resource of nothing": ({"type": "resource", "resource": {"uri": "a:b"}}, "Field required"),
    "resource with odd text": (
        {"type": "resource", "resource": {"uri": "a:b", "text": None}},
        "text: Input should be a valid string",
    ),
    "resource with a bad image": (
        {"type": "resource", "resource": {"uri": "a:b", "mimeType": "image/png", "blob": "*"}},
        "left out: it is not base64",
    ),
    "link without uri": ({"type": "resource_link", "name": "x"}, "uri: Field required"),
    "link with odd name": ({"type": "resource_link", "uri": "a:b", "name": 5}, "name: Input should be a valid string"),
    "too deep": ({"type": "text", "text": "x", "_meta": nested(300)}, "depth"),
}


@pytest.mark.parametrize("case", BAD_BLOCKS)
def test_a_bad_block_is_left_out_with_a_reason(case):
    block, reason = BAD_BLOCKS[case]
    first, last = {"type": "text", "text": "first"}, {"type": "text", "text": "last"}
    result = read_result(content=[first, block, last])
    lines = result.content.split("\n")
    assert (lines[0], lines[-1], result.error) == ("first", "last", False)
    (line,) = (line for line in lines if "left out: " in line)
    assert reason in line


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"content": []}, "[nothing]"),
        ({"structuredContent": {"a": 1}}, '{"a":1}'),
        ({"structuredContent": {"a": float("nan")}}, "[structuredContent left out: a: nan is not a JSON number]"),
        ({"content": [{"type": "text", "text": "x"}], "structuredContent": {}}, "x"),
        ({"content": [{"type": "text", "text": "x"}], "unknown": 5}, "x"),
        (
            {"content": [{"type": "text", "text": "x"}] * 1_002},
            "\n".join(["x"] * 1_000 + ["[2 more content blocks left out]"]),
        ),
    ],
)
def test_odd_results(result, text):
    assert read_result(**result).content == text


def test_an_image_beside_a_bad_block_is_kept():
    image = {"type": "image", "mimeType": "image/png", "data": "AA\nAA"}
    result = read_result(content=[image, {"type": "image"}], isError=True)
    assert result.content == (
        Media("image", "image/png", "AAAA"),
        Text("[content block 2 left out: data: Field required]"),
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


@given(st.lists(json_values, max_size=4))
def test_any_list_of_tools_keeps_the_good_one(entries):
    declared, left_out = read_tools([*entries, GOOD])
    assert "good" in [tool.name for tool in declared]
    assert len(declared) + len(left_out) == len(entries) + 1


@given(st.lists(json_values, max_size=4))
def test_any_result_keeps_the_good_block(blocks):
    content = read_result(content=[*blocks, {"type": "text", "text": "good"}]).content
    texts = content.split("\n") if isinstance(content, str) else [getattr(block, "text", "") for block in content]
    assert "good" in texts


@given(st.text(st.characters() | st.sampled_from("\ud83d\ude00\ud800\\u"), max_size=12), st.lists(st.integers(0, 80)))
def test_halves_of_surrogate_pairs_are_replaced_in_any_chunks(text, cuts):
    """Python's own decoding of UTF-16 is the oracle."""
    data = json.dumps(text).encode() + b"\n"
    bounds = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    surrogates = SurrogateFilter()
    read = b"".join(surrogates.read(data[start:end]) for start, end in pairwise(bounds))
    assert json.loads(read) == text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


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
    ('"result": {"content": [{"type": "text", "text": "cut \\ud83d"}]}', "cut \ufffd"),
    ('"result": {"content": [{"type": "text", "text": "a", "x": NaN}]}', "a"),
    ('"result": {"structuredContent": {"a": 5}}', '{"a":5}'),
]
ERRORS = [
    ('"result": null', "odd: the response is invalid: "),
    ('"result": []', "odd: the response is invalid: "),
    (
        '"result": {"content": [], "isError": []}',
        "odd: the response is invalid: isError: Input should be a valid boolean",
    ),
    ('"result": {"content": 5}', "odd: the response is invalid: content: Input should be a valid list"),
    ('"error": "broken"', "odd: the response is invalid: "),
    ('"error": {"message": "no code"}', "odd: the response is invalid: "),
    ('"error": {"code": 1, "message": "plain"}', "odd: plain"),
    ('"x": 5', "odd: the response is invalid: "),
    (f'"result": {"[" * 5_000 + "]" * 5_000}', "odd: the response is invalid: Invalid JSON: recursion limit exceeded"),
]


def test_odd_answers_cost_no_more_than_the_call(tmp_path):
    # A list with the deepest can't be parsed at all.
    bad = [entry for case, (entry, _) in BAD_TOOLS.items() if case != "too deep"]
    page = json.dumps(
        {"tools": [*bad, GOOD, *({**tool, "name": f"odd{n}"} for n, tool in enumerate(ODD_TOOLS.values()))]}
    )

    async def play(servers):
        assert servers.problems == {}
        names = [tool.name for tool in servers.tools()]
        assert names == ["odd__good", *(f"odd__odd{n}" for n in range(len(ODD_TOOLS)))]
        assert servers.left_out["odd"].startswith(f"{len(bad)} left out: tool 1 (Input should be a valid dictionary")
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


def test_a_list_that_is_nested_too_deeply_is_a_problem_of_the_server(tmp_path):
    async def play(servers):
        assert "the response is invalid: Invalid JSON: recursion limit exceeded" in servers.problems["odd"]

    deep = {**GOOD, "inputSchema": "DEEP"}
    page = json.dumps({"tools": [GOOD, deep]}).replace('"DEEP"', '{"a": ' * 900 + "{}" + "}" * 900)
    run_with_server(tmp_path, [f'"result": {page}'], play)


@pytest.mark.parametrize(
    ("line", "answered"),
    [
        ('{"jsonrpc": "2.0", "id": 7, "result": [DEEP]}', 7),
        ('{"id":7,"jsonrpc":"2.0","error":[DEEP]}', 7),
        ('{"result":{"id":5,"a":[DEEP]},"jsonrpc":"2.0","id":7}', 7),
        ('{"result":{"a":[DEEP],"id":5},"id":7,"jsonrpc":"2.0"}', 7),
        ('{"result":{"a":[DEEP],"id":5}}', None),
        ('{"jsonrpc": "2.0", "id": 7, "method": "x", "params": [DEEP]}', None),
        ('{"jsonrpc": "2.0", "method": "x", "params": [DEEP]}', None),
        ("DEEP", None),
    ],
)
@pytest.mark.parametrize("padding", [0, 5_000])
def test_a_line_that_can_not_be_parsed_answers_its_request_only(line, answered, padding):
    message = parse_line(line.replace("DEEP", "[" * 500 + "]" * 500 + " " * padding).encode())
    assert getattr(getattr(message, "message", None), "id", None) == answered


def test_the_number_of_tools_and_blocks_is_limited():
    page, dropped = check("tools/list", {"tools": [{**GOOD, "name": f"t{n}"} for n in range(10_002)]})
    assert (len(page.tools), dropped) == (10_000, [LeftOut("all further tools", "the limit of a list is 10,000")])


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
