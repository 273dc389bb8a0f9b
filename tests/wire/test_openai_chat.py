"""The wire `openai-chat`: parsing, same-API rendering and cross-API rendering."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam, ChatCompletionToolUnionParam
from openai.types.chat.completion_create_params import CompletionCreateParams
from pydantic import TypeAdapter

import segue
from segue.canonical.blocks import (
    Code,
    Media,
    Message,
    Native,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResponse,
    calls_of,
    edit_block,
    responses_of,
)
from segue.canonical.contents import summarize
from segue.canonical.pairing import pair
from segue.canonical.request import Options, Reasoning, Reply, Request, ResponseFormat, Tool, ToolChoice, Usage
from segue.errors import InputError, ProjectionError
from segue.models import parse_model
from segue.render.constraints import Policy
from segue.render.report import Report
from segue.render.transcript import Transcript
from segue.wire.base import ApiError, RenderContext
from segue.wire.dialects.kimi import WIRE as KIMI
from segue.wire.ids import IdMap
from segue.wire.names import NameMap
from segue.wire.openai_chat import WIRE as OPENAI_CHAT
from tests.bodies import chat
from tests.bodies.chat import assistant_calls, result, user
from tests.wire.conversion import convert_body, convert_reply, render_client_reply

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOL = {"type": "function", "function": {"name": "f", "description": "Reads.", "parameters": SCHEMA, "strict": True}}
GRAMMAR = {"syntax": "lark", "definition": 'start: "x"'}
PATCH = {
    "type": "custom",
    "custom": {"name": "patch", "description": "Patches.", "format": {"type": "grammar", "grammar": GRAMMAR}},
}
PNG = "data:image/png;base64,iVBORw0KGgo="
body_of = partial(chat.body, model="gpt-4.1")
call = partial(chat.call, arguments='{"path": "a"}')


def exhausted(value: Any) -> Any:
    """The SDK's types are validated lazily where they are `Iterable`."""
    if isinstance(value, dict):
        return {key: exhausted(item) for key, item in value.items()}
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        return value
    return [exhausted(item) for item in value]


# Kept for the whole run: a lazy check that outlives its adapter crashes.
BODY = TypeAdapter(CompletionCreateParams)
MESSAGE = TypeAdapter(ChatCompletionMessageParam)
TOOL_TYPE = TypeAdapter(ChatCompletionToolUnionParam)


def assert_sdk_accepts(body: dict[str, Any], *, extra: Literal["forbid", "ignore"] = "forbid") -> None:
    exhausted(BODY.validate_python({"model": "m", **body}, extra=extra))
    for message in body["messages"]:
        exhausted(MESSAGE.validate_python(message, extra=extra))
    for tool in body.get("tools", ()):
        exhausted(TOOL_TYPE.validate_python(tool, extra=extra))


# --------------------------------------------------------------------------------------------------------------- home

SAME_API = {
    "every option": body_of(
        {"role": "developer", "content": "Be brief.", "name": "boss"},
        user(name="ann"),
        {"role": "assistant", "content": "Yes.", "name": "bot"},
        user([{"type": "text", "text": "x", "prompt_cache_breakpoint": {"mode": "explicit"}}]),
        temperature=1,
        top_p=0.5,
        max_completion_tokens=100,
        stop="END",
        seed=7,
        user="u",
        presence_penalty=1.0,
        frequency_penalty=0,
        stream=True,
        stream_options={"include_usage": True},
        n=1,
        logprobs=True,
        top_logprobs=2,
        logit_bias={"50256": -100},
        metadata={"a": "b"},
        reasoning_effort="low",
        verbosity="low",
        store=False,
        service_tier="auto",
        unheard_of=[1.0],
        tools=[TOOL, PATCH, {"type": "mystery", "x": 1}],
        parallel_tool_calls=False,
        tool_choice={"type": "function", "function": {"name": "f"}, "note": 1},
        response_format={"type": "json_schema", "json_schema": {"name": "r", "schema": SCHEMA, "description": "d"}},
    ),
    "old token limit": body_of(user(), max_tokens=5.0, temperature=1, stop=["a", "b"], response_format={"type": "x"}),
    "key order": {"tools": [TOOL], "messages": [user()], "stream": False, "model": "gpt-4.1", "tool_choice": "auto"},
    "calls": body_of(
        user(),
        assistant_calls(call("call_1"), call("call_2", arguments='{ "path" : "é\\u00e9" }'), content=""),
        result("call_2", [{"type": "text", "text": "two"}]),
        result("call_1", ""),
        assistant_calls(call("call_3", arguments="{broken"), content="Once more."),
        result("call_3"),
    ),
    "SDK leftovers": body_of(
        user(),
        assistant_calls(
            call(index=0, function={"name": "f", "arguments": "{}", "parsed_arguments": {}}),
            refusal=None,
            audio=None,
            function_call=None,
            annotations=None,
            parsed=None,
        ),
        result(name="f", status="ok"),
        {"role": "assistant", "content": "Done.", "tool_calls": None, "annotations": [{"type": "url_citation"}]},
    ),
    "custom calls": body_of(
        user(),
        assistant_calls({"id": "call_1", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}),
        result(),
        tools=[PATCH],
        tool_choice={"type": "custom", "custom": {"name": "patch"}},
    ),
    "allowed tools": body_of(
        user(),
        tools=[TOOL],
        tool_choice={
            "type": "allowed_tools",
            "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "f"}}]},
        },
    ),
    "legacy functions": body_of(
        user(),
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": None},
        {"role": "assistant", "content": "", "function_call": {"name": "f", "arguments": "not json"}},
        {"role": "function", "name": "f", "content": "b"},
        functions=[{"name": "f", "parameters": SCHEMA}],
        function_call={"name": "f"},
    ),
    "media": body_of(
        user(
            [
                {"type": "text", "text": ""},
                {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}},
                {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
                {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
                {"type": "file", "file": {"file_id": "file-1"}},
                {"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA", "filename": "a.pdf"}},
                {"type": "hologram", "hologram": {"depth": 3}},
            ]
        ),
        {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "no"}]},
        {"role": "assistant", "refusal": "I can't."},
        {"role": "assistant", "content": None, "audio": {"id": "audio_1"}},
        model="gpt-4o-audio-preview",
    ),
    "empty messages": body_of(user(""), {"role": "assistant", "content": ""}, {"role": "system", "content": ""}),
    "system in the middle": body_of({"role": "system", "content": "a"}, user(), {"role": "system", "content": "b"}),
    "foreign reasoning": body_of(user(), {"role": "assistant", "content": "x", "reasoning_content": "hm"}),
    "foreign ids": body_of(user(), assistant_calls(call("toolu_01/|")), result("toolu_01/|")),
    "an unknown kind of call": body_of(
        user(), assistant_calls({"id": "call_1", "type": "mcp", "mcp": {"server": "s", "name": "go"}}), result()
    ),
}


@pytest.mark.parametrize("case", SAME_API)
def test_valid_body_is_unchanged_for_same_api(case: str) -> None:
    body = SAME_API[case]
    before = json.dumps(body)
    made, _ = convert_body(body, OPENAI_CHAT, OPENAI_CHAT)
    assert json.dumps(made) == before
    assert json.dumps(body) == before
    assert made["messages"] is body["messages"]


@pytest.mark.parametrize("case", SAME_API)
def test_sdk_accepts_rewritten_body(case: str) -> None:
    request = OPENAI_CHAT.parse_request(SAME_API[case])
    tools = tuple(replace(tool, native=None) for tool in request.tools)
    made, _ = rendered(
        replace(request, native=None, tools=tools, messages=tuple(map(without_native, request.messages)))
    )
    assert_sdk_accepts(made)


def without_native(message: Message) -> Message:
    """The message without native fragments, as if it came from another API."""
    blocks = []
    for block in message.blocks:
        if isinstance(block, ToolResponse):
            block = replace(block, content=tuple(replace(part, native=None) for part in block.content or ()))
        blocks.append(replace(block, native=None))
    return replace(message, blocks=tuple(blocks), native=None)


def rendered(request: Request, *, model: str | None = None, fetch=None) -> tuple[dict[str, Any], Report]:
    """The wire alone, without the passes."""
    demands = OPENAI_CHAT.constraints(parse_model(model or "gpt-4.1"))
    transcript = Transcript(
        request=request,
        constraints=demands,
        policy=Policy(),
        system=request.system,
        messages=request.messages,
        contents=summarize(request.messages),
        tools=request.tools,
        options=request.options,
        model=model,
    )
    names, report = NameMap(OPENAI_CHAT.name_rule(parse_model(None))), Report()
    ids = IdMap.project(transcript, OPENAI_CHAT.id_scheme(parse_model(model)), names.render)
    return OPENAI_CHAT.render_request(transcript, RenderContext(ids, names, report, fetch)), report


def test_only_what_changes_is_copied() -> None:
    long_id = "fc_" + "0" * 50
    body = body_of(
        user(), assistant_calls(call("call_0"), call(long_id, x=1)), result("call_0"), result(long_id, n=2), user()
    )
    before = json.dumps(body)
    made, _ = convert_body(body, OPENAI_CHAT, OPENAI_CHAT)
    assert json.dumps(body) == before
    new_id = made["messages"][1]["tool_calls"][1]["id"]
    assert new_id.startswith("call_")
    assert len(new_id) <= 40
    assert json.dumps(made) == before.replace(long_id, new_id)
    for index in (0, 2, 4):
        assert made["messages"][index] is body["messages"][index]
    assert made["messages"][1]["tool_calls"][0] is body["messages"][1]["tool_calls"][0]


def test_names_are_projected_everywhere() -> None:
    tool = {"type": "function", "function": {"name": "ns.read", "parameters": SCHEMA}}
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [tool]}}
    body = body_of(
        user(), assistant_calls(call(name="ns.read")), result(name="ns.read"), tools=[tool], tool_choice=allowed
    )
    made, _ = convert_body(body, OPENAI_CHAT, OPENAI_CHAT)
    spelled = made["messages"][1]["tool_calls"][0]["function"]["name"]
    assert spelled.startswith("ns_read_")
    assert json.dumps(made) == json.dumps(body).replace("ns.read", spelled)
    body["tool_choice"] = {"type": "function", "function": {"name": "ns.read"}}
    made, _ = convert_body(body, OPENAI_CHAT, OPENAI_CHAT)
    assert made["tool_choice"] == {"type": "function", "function": {"name": spelled}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(call(arguments={"path": "a"}), call(arguments='{"path":"a"}'), id="arguments as an object"),
        pytest.param(call(arguments=None), call(arguments="{}"), id="no arguments"),
        pytest.param({"id": "call_1", "function": {"name": "f", "arguments": "{}"}}, call(arguments="{}"), id="type"),
        pytest.param(
            {"id": "call_1", "type": "custom", "custom": {"name": "patch", "input": None}},
            {"id": "call_1", "type": "custom", "custom": {"name": "patch", "input": ""}},
            id="no input",
        ),
        pytest.param(call(arguments=[1], index=0), call(arguments="[1]", index=0), id="other keys stay"),
    ],
)
def test_invalid_call_is_rewritten(given: dict, expected: dict) -> None:
    made, _ = convert_body(body_of(user(), assistant_calls(given, note=1), result()), OPENAI_CHAT, OPENAI_CHAT)
    assert made["messages"][1] == assistant_calls(expected, note=1)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            [{"role": "assistant", "content": "a", "tool_calls": []}], [{"role": "assistant", "content": "a"}]
        ),
        pytest.param([{"role": "assistant", "content": None}], []),
        pytest.param([{"role": "assistant", "content": []}], []),
        pytest.param([assistant_calls(call(), content=[], x=1), result()], [assistant_calls(call(), x=1), result()]),
        pytest.param(
            [assistant_calls(call()), result(content=None, x=1)], [assistant_calls(call()), result(content="", x=1)]
        ),
        pytest.param([assistant_calls(call()), result(content=[])], [assistant_calls(call()), result(content="")]),
        pytest.param([{"role": "user", "content": None}], []),
        pytest.param([assistant_calls(call(None)), {"role": "tool", "content": "r"}], None),
    ],
)
def test_invalid_shapes_are_repaired(given: list[dict], expected: list[dict] | None) -> None:
    made, _ = convert_body(body_of(user(), *given), OPENAI_CHAT, OPENAI_CHAT)
    if expected is None:
        new_id = made["messages"][1]["tool_calls"][0]["id"]
        expected = [assistant_calls(call(new_id)), {**given[1], "tool_call_id": new_id}]
    assert made["messages"] == [user(), *expected]
    assert_sdk_accepts(made, extra="ignore")


def test_changed_message_keeps_unknown_fields() -> None:
    part = {"type": "text", "text": "secret", "prompt_cache_breakpoint": {"mode": "explicit"}}
    picture = {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}}
    request = OPENAI_CHAT.parse_request(body_of(user([part, picture], custom_key=1, name="ann")))
    message = request.messages[0]
    text, image = message.blocks
    assert isinstance(text, Text)
    changed = replace(request, messages=(message.with_blocks((edit_block(text, text="***"), image)),))
    made, _ = rendered(changed)
    assert made["messages"] == [user([{"type": "text", "text": "***"}, picture], custom_key=1, name="ann")]
    assert list(made["messages"][0]) == ["role", "content", "custom_key", "name"]


def test_changed_options_are_merged_into_existing_keys() -> None:
    body = {"max_tokens": 5, "messages": [user()], "reasoning_effort": "high", "model": "gpt-5", "x": 1}
    request = OPENAI_CHAT.parse_request(body)
    transcript = Transcript(
        request=request,
        constraints=OPENAI_CHAT.constraints(parse_model("gpt-5")),
        policy=Policy(),
        system=(),
        messages=request.messages,
        contents=summarize(request.messages),
        tools=(),
        options=replace(request.options, max_tokens=9, reasoning=Reasoning(enabled=False), seed=1),
        model="gpt-5.1",
    )
    names = NameMap(OPENAI_CHAT.name_rule(parse_model(None)))
    ids = IdMap.project(transcript, OPENAI_CHAT.id_scheme(parse_model("gpt-5")), names.render)
    made = OPENAI_CHAT.render_request(transcript, RenderContext(ids, names, Report()))
    assert list(made.items()) == [
        ("max_tokens", 9),
        ("messages", [user()]),
        ("reasoning_effort", "none"),
        ("model", "gpt-5.1"),
        ("x", 1),
        ("seed", 1),
    ]


def test_legacy_call_needs_no_result_for_same_api() -> None:
    old = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    body = body_of(user(), old, user())
    assert convert_body(body, OPENAI_CHAT, OPENAI_CHAT)[0] == body
    cross_api, _ = convert_body(body, OPENAI_CHAT, KIMI)
    assert [message["role"] for message in cross_api["messages"]] == ["user", "assistant", "tool", "user"]


def test_legacy_result_for_a_tool_call_becomes_a_tool_message() -> None:
    body = body_of(user(), assistant_calls(call(None)), {"role": "function", "name": "f", "content": "r"})
    made, _ = convert_body(body, OPENAI_CHAT, OPENAI_CHAT)
    new_id = made["messages"][1]["tool_calls"][0]["id"]
    assert made["messages"][2] == result(new_id, "r")


# ------------------------------------------------------------------------------------------------------------- parsing


def parsed(*messages: dict, **more: Any) -> Request:
    return OPENAI_CHAT.parse_request(body_of(*messages, **more))


def test_roles_and_blocks() -> None:
    request = parsed(
        {"role": "system", "content": "s"},
        {"role": "developer", "content": "d"},
        user(name="ann"),
        assistant_calls(call(), call("null"), content="hm", reasoning_content="because", refusal="no"),
        result(),
    )
    assert [message.speaker for message in request.messages] == ["system", "system", "human", "ai", "tool"]
    assert request.system == ()
    assert request.messages[2].name == "ann"
    thinking, text, refusal, first, second = request.messages[3].blocks
    assert isinstance(thinking, Thinking)
    assert (thinking.text, thinking.origin.provider, thinking.origin.model) == ("because", "unknown", None)
    assert text == Text("hm")
    assert refusal == Text("no", refusal=True)
    assert isinstance(first, ToolCall)
    assert isinstance(second, ToolCall)
    assert (first.origin.raw_id, first.origin.identity, first.arguments) == ("call_1", "natural", {"path": "a"})
    assert (second.origin.raw_id, second.origin.identity) == (None, "synthetic")
    (response,) = responses_of(request.messages[4])
    assert (response.call_id, response.name, response.content) == (first.id, "f", (Text("r"),))
    assert response.is_complete


def test_calls_of_every_kind() -> None:
    custom = {"id": "call_2", "type": "custom", "custom": {"name": "patch", "input": "{not json"}}
    request = parsed(
        assistant_calls(call(arguments="{broken"), custom, call("call_3", arguments="")),
        {"role": "assistant", "function_call": {"name": "f", "arguments": '{"a":1}'}},
    )
    broken, free, empty = calls_of(request.messages[0])
    (old,) = calls_of(request.messages[1])
    assert (broken.arguments, broken.arguments_text) == (None, "{broken")
    assert (free.kind, free.arguments, free.arguments_text) == ("custom", "{not json", None)
    assert empty.arguments == {}
    assert (old.arguments, old.origin.raw_id, old.origin.identity) == ({"a": 1}, None, "absent")


def test_parts() -> None:
    request = parsed(*SAME_API["media"]["messages"])
    _, picture, linked, sound, held, file, unknown = request.messages[0].blocks
    assert isinstance(picture, Media)
    assert (picture.kind, picture.mime, picture.data, picture.url) == ("image", "image/png", "iVBORw0KGgo=", None)
    assert isinstance(linked, Media)
    assert (linked.data, linked.url) == (None, "https://example.com/a.png")
    assert isinstance(sound, Media)
    assert (sound.kind, sound.mime, sound.data) == ("audio", "audio/wav", "AAAA")
    assert isinstance(held, Media)
    assert (held.kind, held.file_id) == ("document", "file-1")
    assert isinstance(file, Media)
    assert (file.mime, file.data, file.name) == ("application/pdf", "AAAA", "a.pdf")
    assert isinstance(unknown, Opaque)
    assert unknown.kind == "hologram"


def test_native_fragments_are_the_input_objects() -> None:
    body = body_of(user([{"type": "text", "text": "a"}]), assistant_calls(call()), result())
    request = OPENAI_CHAT.parse_request(body)
    assert request.native is not None
    assert request.native.fragment is body
    for message, original in zip(request.messages, body["messages"], strict=True):
        assert message.native is not None
        assert message.native.fragment is original
    text, made, answer = (message.blocks[0].native for message in request.messages)
    assert text is not None
    assert text.fragment is body["messages"][0]["content"][0]
    assert made is not None
    assert made.fragment is body["messages"][1]["tool_calls"][0]
    assert answer is not None
    assert answer.fragment is body["messages"][2]


def test_options_and_tools() -> None:
    request = parsed(user(), **{key: value for key, value in SAME_API["every option"].items() if key != "messages"})
    assert request.options == Options(
        max_tokens=100,
        temperature=1,
        top_p=0.5,
        stop=("END",),
        tool_choice=ToolChoice("tool", "f"),
        parallel=False,
        reasoning=Reasoning(effort="low"),
        response_format=ResponseFormat("schema", SCHEMA, "r"),
        stream=True,
        seed=7,
        presence_penalty=1.0,
        frequency_penalty=0,
        user="u",
        vendor_options={
            "store": False,
            "metadata": {"a": "b"},
            "service_tier": "auto",
            "verbosity": "low",
            "user": "u",
        },
    )
    function, patch, mystery = request.tools
    assert (function.name, function.description, function.parameters, function.strict) == ("f", "Reads.", SCHEMA, True)
    assert (patch.name, patch.kind, patch.grammar) == ("patch", "custom", GRAMMAR)
    assert (mystery.name, mystery.kind) == ("mystery", "hosted")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"tool_choice": "required"}, Options(tool_choice=ToolChoice("required"))),
        ({"tool_choice": {"type": "custom", "custom": {"name": "p"}}}, Options(tool_choice=ToolChoice("tool", "p"))),
        (
            {"tool_choice": SAME_API["allowed tools"]["tool_choice"]},
            Options(tool_choice=ToolChoice("required", allowed=("f",))),
        ),
        ({"function_call": "none"}, Options(tool_choice=ToolChoice("none"))),
        ({"function_call": {"name": "f"}}, Options(tool_choice=ToolChoice("tool", "f"))),
        ({"max_tokens": 5, "stop": ["a"]}, Options(max_tokens=5, stop=("a",))),
        ({"max_completion_tokens": 0, "max_tokens": 5}, Options(max_tokens=0)),
        ({"reasoning_effort": "none"}, Options(reasoning=Reasoning(enabled=False, effort="none"))),
        ({"response_format": {"type": "json_object"}}, Options(response_format=ResponseFormat("json"))),
        ({"max_tokens": 8192.0, "seed": 7.0, "temperature": None}, Options(max_tokens=8192, seed=7)),
    ],
)
def test_single_options(options: dict, expected: Options) -> None:
    assert parsed(user(), **options).options == expected


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "messages"),
        ({"messages": {}}, "messages"),
        ({"messages": ["x"]}, "messages[0]"),
        ({"messages": [{}]}, "messages[0].role"),
        ({"messages": [{"role": 1}]}, "messages[0].role"),
        ({"messages": [user(), {"role": "wizard"}]}, "messages[1].role"),
        ({"messages": [user(5)]}, "messages[0].content"),
        ({"messages": [user({"type": "text"})]}, "messages[0].content"),
        ({"messages": [user(["x"])]}, "messages[0].content[0]"),
        ({"messages": [user([{"text": "x"}])]}, "messages[0].content[0].type"),
        ({"messages": [user([{"type": "text", "text": 1}])]}, "messages[0].content[0].text"),
        ({"messages": [{"role": "assistant", "tool_calls": {}}]}, "messages[0].tool_calls"),
        ({"messages": [assistant_calls("x")]}, "messages[0].tool_calls[0]"),
        (
            {"messages": [assistant_calls(call(), {"id": "a", "type": "function"})]},
            "messages[0].tool_calls[1].function",
        ),
        ({"messages": [assistant_calls(call(name=1))]}, "messages[0].tool_calls[0].function.name"),
        ({"messages": [{"role": "assistant", "function_call": []}]}, "messages[0].function_call"),
        ({"messages": [result(content=1)]}, "messages[0].content"),
        ({"messages": [], "tools": {}}, "tools"),
        ({"messages": [], "tools": [TOOL, 1]}, "tools[1]"),
        ({"messages": [], "tools": [{"type": "function"}]}, "tools[0].function"),
        ({"messages": [], "tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
        ({"messages": [], "functions": [{}]}, "functions[0].name"),
    ],
)
def test_bad_shapes_are_named_by_their_path(body: dict, path: str) -> None:
    with pytest.raises(InputError) as caught:
        OPENAI_CHAT.parse_request(body)
    assert caught.value.path == path


JUNK = st.sampled_from([None, True, 0, -1.5, "", "x", [], [None], {}, {"type": "text"}, [[]], [{"type": 1}]])


@given(case=st.sampled_from([*SAME_API]), data=st.data())
def test_garbage_gives_a_value_or_an_input_error(case: str, data: st.DataObject) -> None:
    body = json.loads(json.dumps(SAME_API[case]))
    for _ in range(data.draw(st.integers(1, 3))):
        place: Any = body
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = data.draw(st.sampled_from(keys))
            if not isinstance(place[key], dict | list) or data.draw(st.integers(0, 4)) == 0:
                place[key] = json.loads(json.dumps(data.draw(JUNK)))
                break
            place = place[key]
    before = json.dumps(body)
    with contextlib.suppress(InputError):
        made, _ = convert_body(body, OPENAI_CHAT, OPENAI_CHAT)
        convert_body(made, OPENAI_CHAT, OPENAI_CHAT)
    assert json.dumps(body) == before


# -------------------------------------------------------------------------------------------------------------- abroad


def render_cross_api(*messages: Message, **more: Any) -> Request:
    return Request(pair(messages), **more)


def test_cross_api_roles_and_content() -> None:
    made, _ = rendered(
        render_cross_api(
            Message("system", (Text("s"),)),
            Message("human", (Text("a"), Text("b"))),
            Message("system", (Text("later"),)),
            Message("ai", (Text("x", native=Native("anthropic", {"cache_control": {}})),), name="two words"),
            Message("ai", ()),
            Message("ai", (Text("a"), Text("b"), Text("never", refusal=True)), name="bot"),
            Message("ai", (Text("no", refusal=True),)),
            system=(Text("top"),),
            native=Native("anthropic", {"unknown": 1}),
        ),
        model="gpt-4.1",
    )
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert made == {
        "model": "gpt-4.1",
        "messages": [
            {"role": "system", "content": "top"},
            {"role": "system", "content": "s"},
            {"role": "user", "content": parts},
            {"role": "developer", "content": "later"},
            {"role": "assistant", "content": "x"},
            {"role": "assistant", "content": ""},
            {"role": "assistant", "content": parts, "refusal": "never", "name": "bot"},
            {"role": "assistant", "content": None, "refusal": "no"},
        ],
    }
    assert_sdk_accepts(made)


def test_cross_api_calls_and_results() -> None:
    made, report = rendered(
        render_cross_api(
            Message(
                "ai",
                (
                    Thinking("hm"),
                    ToolCall("ns.read", {"a": 1}),
                    ToolCall("patch", "free", kind="custom"),
                    ToolCall("cut", None, arguments_text='{"a'),
                ),
            ),
            Message("tool", (ToolResponse(content=(Text("r"),)),)),
            Message("tool", (ToolResponse(structured={"b": [1]}),)),
            Message("tool", (ToolResponse(content=(Text("one"), Text("two"))),)),
        )
    )
    call_item, *answers = made["messages"]
    ids = [entry["id"] for entry in call_item["tool_calls"]]
    assert call_item["content"] is None
    assert "reasoning_content" not in call_item
    assert [finding.kind for finding in report.findings] == ["reasoning"]
    assert all(call_id.startswith("call_") for call_id in ids)
    assert [entry.get("function", entry.get("custom")) for entry in call_item["tool_calls"]] == [
        {"name": NameMap(OPENAI_CHAT.name_rule(parse_model(None))).render("ns.read"), "arguments": '{"a":1}'},
        {"name": "patch", "input": "free"},
        {"name": "cut", "arguments": '{"a'},
    ]
    assert answers == [
        result(ids[0], "r"),
        result(ids[1], '{"b":[1]}'),
        result(ids[2], [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]),
    ]
    assert_sdk_accepts(made)


MEDIA: list[tuple[Any, Any, bool]] = [
    (Media("image", "image/png", "AA"), {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}, True),
    (Media("image", url="https://x/a.png"), {"type": "image_url", "image_url": {"url": "https://x/a.png"}}, True),
    (Media("image", file_id="file_1"), "[image not supported here] file_1", False),
    (Media("audio", "audio/mpeg", "AA"), {"type": "input_audio", "input_audio": {"data": "AA", "format": "mp3"}}, True),
    (Media("audio", "audio/ogg", "AA"), "[audio not supported here]", False),
    (Media("video", "video/mp4", "AA", name="a.mp4"), "[video not supported here] a.mp4", False),
    (
        Media("document", "application/pdf", "AA"),
        {"type": "file", "file": {"filename": "document.pdf", "file_data": "data:application/pdf;base64,AA"}},
        True,
    ),
    (Media("document", url="https://x/a.pdf"), "[document not supported here] https://x/a.pdf", False),
    (Code("print(1)", "python"), "```python\nprint(1)\n```", True),
    (Opaque("hologram", text="deep"), "[hologram not supported here] deep", False),
    (Thinking("hm"), "[reasoning] hm", False),
]


@pytest.mark.parametrize(("block", "expected", "silent"), MEDIA)
def test_user_content_types(block: Any, expected: Any, silent: bool) -> None:
    made, report = rendered(render_cross_api(Message("human", (block,))))
    assert made["messages"][0]["content"] == ([expected] if isinstance(expected, dict) else expected)
    assert bool(report.findings) != silent
    assert_sdk_accepts(made)


def test_a_document_by_url_can_be_fetched() -> None:
    document = Media("document", url="https://x/a.pdf", name="a.pdf")
    made, report = rendered(
        render_cross_api(Message("human", (document,))), fetch=lambda _url: (b"\0\0", "application/pdf")
    )
    assert made["messages"][0]["content"] == [
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAA="}}
    ]
    assert not report.findings


def test_call_in_a_user_message_is_an_internal_error() -> None:
    with pytest.raises(ProjectionError):
        rendered(render_cross_api(Message("human", (ToolCall("f", {}),))))


def test_cross_api_tools() -> None:
    tools = (
        Tool("ns.read", "d" * 2000, {"type": "object", "properties": {}}),
        Tool("plain", parameters=None, strict=False),
        Tool("patch", "p", kind="custom", grammar=GRAMMAR),
        Tool("web_search", kind="hosted", native=Native("anthropic", {"type": "web_search_20250305"})),
    )
    options = Options(tool_choice=ToolChoice("tool", "patch"), parallel=True)
    made, report = rendered(render_cross_api(Message("human", (Text("a"),)), tools=tools, options=options))
    first, second, third = made["tools"]
    assert first["function"]["description"] == "d" * 1023 + "…"
    assert first["function"]["name"].startswith("ns_read_")
    assert second["function"] == {"name": "plain", "parameters": {"type": "object", "properties": {}}, "strict": False}
    assert third == {**PATCH, "custom": {**PATCH["custom"], "description": "p"}}
    assert made["tool_choice"] == {"type": "custom", "custom": {"name": "patch"}}
    assert list(made) == ["messages", "tools", "tool_choice", "parallel_tool_calls"]
    assert [finding.subject for finding in report.findings_of("tools")] == ["web_search", "ns.read"]
    assert_sdk_accepts(made)


def numbered(count: int) -> Iterator[dict]:
    for number in range(count):
        yield {"type": "function", "function": {"name": f"t{number}", "parameters": SCHEMA}}


def test_more_tools_than_the_api_takes() -> None:
    body = body_of(user(), assistant_calls(call(name="t140")), result(), tools=list(numbered(150)))
    made, report = convert_body(body, OPENAI_CHAT, OPENAI_CHAT)
    names = [tool["function"]["name"] for tool in made["tools"]]
    assert names == [f"t{number}" for number in [*range(127), 140]]
    assert len(report.findings_of("tools")) == 22


def test_long_description_is_cut_for_same_api() -> None:
    long = {"type": "function", "function": {"name": "a", "description": "é" * 1025, "parameters": SCHEMA}, "x": 1}
    made, report = convert_body(body_of(user(), tools=[TOOL, long]), OPENAI_CHAT, OPENAI_CHAT)
    assert made["tools"][0] is TOOL
    assert made["tools"][1]["function"]["description"] == "é" * 1023 + "…"
    assert made["tools"][1]["x"] == 1
    assert len(report.findings_of("tools")) == 1


ALL = Options(
    max_tokens=10,
    temperature=2,
    top_p=1,
    top_k=5,
    stop=("a", "b", "c", "d", "e"),
    tool_choice=ToolChoice("auto"),
    parallel=True,
    reasoning=Reasoning(enabled=True, budget=5000),
    response_format=ResponseFormat("schema", SCHEMA),
    stream=True,
    seed=1,
    presence_penalty=0.5,
    user="u",
)


def test_cross_api_options() -> None:
    made, report = rendered(render_cross_api(Message("human", (Text("a"),)), options=ALL))
    assert made == {
        "messages": [{"role": "user", "content": "a"}],
        "max_completion_tokens": 10,
        "temperature": 2,
        "top_p": 1,
        "stop": ["a", "b", "c", "d"],
        "response_format": {"type": "json_schema", "json_schema": {"name": "response", "schema": SCHEMA}},
        "stream": True,
        "stream_options": {"include_usage": True},
        "seed": 1,
        "presence_penalty": 0.5,
        "user": "u",
    }
    assert [finding.subject for finding in report.findings_of("adjusted")] == [
        "tool_choice",
        "parallel_tool_calls",
        "top_k",
        "stop",
        "reasoning",
    ]


@pytest.mark.parametrize(
    ("model", "left_out"),
    [
        ("gpt-5", {"temperature", "top_p", "presence_penalty", "stop"}),
        ("o3", {"temperature", "top_p", "presence_penalty", "stop"}),
        ("gpt-4.1", {"reasoning_effort"}),
        ("somebody/else", set()),
    ],
)
def test_options_that_a_model_refuses(model: str, left_out: set[str]) -> None:
    plain, _ = rendered(render_cross_api(Message("human", (Text("a"),)), options=ALL))
    plain["reasoning_effort"] = "medium"
    made, report = rendered(render_cross_api(Message("human", (Text("a"),)), options=ALL), model=model)
    assert plain.keys() - made.keys() == left_out
    subjects = {finding.subject for finding in report.findings_of("adjusted")}
    assert left_out <= {*subjects, "reasoning_effort"}


@pytest.mark.parametrize(
    ("reasoning", "model", "effort", "reported"),
    [
        # The default model does not reason: disabling reasoning loses nothing.
        (Reasoning(effort="high"), None, None, True),
        (Reasoning(enabled=True, budget=2000), None, None, True),
        (Reasoning(enabled=True), None, None, True),
        (Reasoning(enabled=False), None, None, False),
        (Reasoning(enabled=False), "gpt-5.1", "none", False),
        (Reasoning(enabled=False), "gpt-4o", None, False),
        (Reasoning(enabled=False), "gpt-5-chat-latest", None, False),
        (Reasoning(enabled=False), "llama-3.3-70b", None, False),
        (Reasoning(enabled=True, budget=2000), "llama-3.3-70b", None, True),
        (Reasoning(enabled=False), "o3", None, True),
        (Reasoning(enabled=False), "gpt-5", None, True),
        (Reasoning(enabled=False), "somebody/else", None, True),
        (Reasoning(enabled=True), "o3", None, False),
        (Reasoning(enabled=True), "gpt-5.1", "medium", True),
        (Reasoning(enabled=True), "somebody/else", "medium", True),
        (Reasoning(budget=1), "o3", "low", True),
        (Reasoning(budget=10**6), "o3", "high", True),
    ],
)
def test_effort(reasoning: Reasoning, model: str | None, effort: str | None, reported: bool) -> None:
    options = Options(reasoning=reasoning)
    made, report = rendered(render_cross_api(Message("human", (Text("a"),)), options=options), model=model)
    assert made.get("reasoning_effort") == effort
    assert [finding.subject for finding in report.findings_of("adjusted")] == ["reasoning"] * reported


@pytest.mark.parametrize("thinking", [{"type": "disabled"}, {"type": "enabled", "budget_tokens": 2000}])
def test_unnamed_model_may_support_reasoning(thinking: dict[str, Any]) -> None:
    body = {"max_tokens": 9000, "messages": [{"role": "user", "content": "a"}], "thinking": thinking}
    made = segue.convert(body, source="anthropic", target="openai-chat", profile="vllm").body
    assert made["reasoning_effort"] == ("none" if thinking["type"] == "disabled" else "low")


@pytest.mark.parametrize(
    ("target", "place"),
    [
        ("openai-chat", ("user",)),
        ("openai-responses", ("safety_identifier",)),
        ("kimi", ("user",)),
        ("deepseek", ("user_id",)),
        ("anthropic", ("metadata", "user_id")),
    ],
)
def test_long_user_id_is_hashed(target: str, place: tuple[str, ...]) -> None:
    limit = {"anthropic": 256, "deepseek": 512}.get(target, 64)

    def sent(user: str) -> tuple[str, list[str | None]]:
        body = {"messages": [{"role": "user", "content": "a"}]}
        source = "openai-chat" if not target.startswith("openai") else "kimi"
        made = segue.convert({**body, "user": user}, source=source, target=target)
        value: Any = made.body
        for key in place:
            value = value[key]
        return value, [finding.subject for finding in made.report.findings_of("adjusted") if finding.subject == "user"]

    assert sent("u" * limit) == ("u" * limit, [])
    for name in ("u" * (limit + 1), "v" * (limit + 1)):
        assert sent(name) == (sha256(name.encode()).hexdigest(), ["user"])


def test_user_id_with_invalid_characters_is_hashed() -> None:
    body = {"messages": [{"role": "user", "content": "a"}], "user": "ann@example.org"}
    made = segue.convert(body, source="openai-chat", target="deepseek")
    assert made.body["user_id"] == sha256(b"ann@example.org").hexdigest()
    assert segue.convert(made.body, source="deepseek", target="openai-chat").body["user"] == made.body["user_id"]


@pytest.mark.parametrize("target", ["mistral", "qwen", "anthropic", "gemini", "kimi", "openai-chat"])
def test_dropped_prefill_is_reported_once(target: str) -> None:
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "prefix": True}]
    made = segue.convert({"model": "deepseek-chat", "messages": messages}, source="deepseek", target=target)
    (finding,) = made.report.findings_of("dropped", "inserted")
    assert "prefill" in finding.message
    assert finding.kind == ("dropped" if target in ("kimi", "openai-chat") else "inserted")
    again = segue.convert({"messages": [messages[1], *messages]}, source="deepseek", target=target)
    reported = sum("prefill" in finding.message for finding in again.report.findings)
    assert reported == (1 if target in ("kimi", "openai-chat") else 2)


def test_constraints_by_model() -> None:
    assert OPENAI_CHAT.constraints(parse_model("gpt-5.6-terra")).reasoning_excludes_tools
    assert OPENAI_CHAT.constraints(parse_model("gpt-6")).reasoning_excludes_tools
    assert not OPENAI_CHAT.constraints(parse_model("gpt-5.1")).reasoning_excludes_tools
    assert not OPENAI_CHAT.constraints(parse_model("gpt-5.5")).reasoning_by_default
    assert OPENAI_CHAT.constraints(parse_model("gpt-5.6")).reasoning_by_default
    assert not OPENAI_CHAT.constraints(parse_model("o9")).reasoning_excludes_tools


# -------------------------------------------------------------------------------------------------- replies and errors

REPLY = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1700000000,
    "model": "gpt-4.1-2025-04-14",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": None,
                "refusal": None,
                "annotations": [],
                "tool_calls": [call(), {"id": "call_2", "type": "custom", "custom": {"name": "patch", "input": "x"}}],
            },
            "logprobs": None,
            "finish_reason": "stop",
        },
        {"index": 1, "message": {"role": "assistant", "content": "other"}, "finish_reason": "stop"},
    ],
    "usage": {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 1},
        "completion_tokens_details": {"reasoning_tokens": 2},
    },
    "system_fingerprint": "fp",
}


def test_a_reply_is_read() -> None:
    reply = OPENAI_CHAT.parse_reply(REPLY)
    assert (reply.id, reply.model, reply.finish) == ("chatcmpl-1", "gpt-4.1-2025-04-14", "tool_calls")
    assert reply.usage == Usage(input=10, output=5, cache_read=4, cache_write=1, reasoning=2)
    assert [(made.name, made.id, made.origin.raw_id) for made in reply.calls] == [
        ("f", "", "call_1"),
        ("patch", "", "call_2"),
    ]
    assert reply.calls[0].origin.model == "gpt-4.1-2025-04-14"


def test_reply_is_unchanged_for_same_api() -> None:
    made, _ = convert_reply(REPLY, OPENAI_CHAT, OPENAI_CHAT)
    assert made is REPLY


def test_changed_reply_keeps_unknown_fields() -> None:
    reply = OPENAI_CHAT.parse_reply(REPLY)
    assert reply.native is not None
    changed = replace(reply, blocks=(Text("hi"),), finish="stop", native=replace(reply.native, intact=False))
    made, _ = render_client_reply(changed, OPENAI_CHAT)
    assert list(made) == list(REPLY)
    assert made["created"] == 1700000000
    assert made["choices"][0]["message"] == {"role": "assistant", "content": "hi", "refusal": None}
    assert made["choices"][0]["finish_reason"] == "stop"
    assert made["choices"][1] is REPLY["choices"][1]


@pytest.mark.parametrize(
    ("reason", "calls", "finish"),
    [
        ("stop", False, "stop"),
        ("stop", True, "tool_calls"),
        ("tool_calls", True, "tool_calls"),
        ("function_call", True, "tool_calls"),
        ("length", True, "length"),
        ("content_filter", False, "filter"),
        (None, False, "stop"),
        ("eos", False, "stop"),
    ],
)
def test_finish(reason: str | None, calls: bool, finish: str) -> None:
    message = assistant_calls(call()) if calls else {"role": "assistant", "content": "a"}
    assert OPENAI_CHAT.parse_reply({"choices": [{"message": message, "finish_reason": reason}]}).finish == finish


def test_cross_api_reply() -> None:
    hosted = ToolCall("web_search", {}, kind="hosted")
    reply = Reply(
        (Thinking("hm"), Text("Let me see."), hosted, ToolResponse(hosted=True), ToolCall("f", {"path": "a"})),
        finish="tool_calls",
        usage=Usage(input=3, output=4, reasoning=1),
        model="claude-opus-4-5",
    )
    made, report = render_client_reply(reply, OPENAI_CHAT)
    completion = ChatCompletion.model_validate(made)
    message = completion.choices[0].message
    assert made["choices"][0]["message"]["reasoning_content"] == "hm"
    assert message.content == "Let me see."
    assert [entry.type for entry in message.tool_calls or ()] == ["function"]
    assert completion.choices[0].finish_reason == "tool_calls"
    assert completion.usage is not None
    assert completion.usage.total_tokens == 7
    assert completion.created == 0
    assert completion.id.startswith("chatcmpl-")
    assert [finding.subject for finding in report.findings_of("dropped")] == ["web_search"]
    assert render_client_reply(reply, OPENAI_CHAT)[0] == made


@pytest.mark.parametrize("finish", ["stop", "tool_calls", "length", "filter", "pause", "error"])
def test_every_finish_has_a_reason(finish: Any) -> None:
    made, _ = render_client_reply(Reply((Text("a"),), finish=finish), OPENAI_CHAT)
    ChatCompletion.model_validate(made)


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "choices"),
        ({"choices": []}, "choices"),
        ({"choices": [1]}, "choices[0]"),
        ({"choices": [{}]}, "choices[0].message"),
        ({"choices": [{"message": {"content": 1}}]}, "choices[0].message.content"),
    ],
)
def test_invalid_reply_is_rejected(body: dict, path: str) -> None:
    with pytest.raises(InputError) as caught:
        OPENAI_CHAT.parse_reply(body)
    assert caught.value.path == path


def test_errors() -> None:
    body = {"error": {"message": "bad", "type": "invalid_request_error", "param": "messages", "code": "x"}}
    error = OPENAI_CHAT.parse_error(400, body)
    assert error == ApiError(400, "bad", "invalid_request_error", "x", "messages")
    assert OPENAI_CHAT.render_error(error) == body
    assert OPENAI_CHAT.parse_error(429, {"error": "slow down"}) == ApiError(429, "slow down", "rate_limit_error")
    assert OPENAI_CHAT.parse_error(500, {"message": "oops", "code": 7}) == ApiError(500, "oops", "server_error", "7")
    assert OPENAI_CHAT.parse_error(400, {}).message


@pytest.mark.parametrize("name", [0, False, [], {"a": 1}])
def test_empty_function_call_with_a_name_of_another_type_is_an_error(name: Any) -> None:
    message = {"role": "assistant", "content": "b", "function_call": {"name": name, "arguments": ""}}
    with pytest.raises(segue.InputError, match="name must be a string"):
        segue.repair({"messages": [{"role": "user", "content": "a"}, message]}, "openai-chat")
