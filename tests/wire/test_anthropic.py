"""The wire `anthropic`, parsed and rendered: a valid body for the same API is unchanged; cross-API bodies are rendered.

Transcripts are made by hand from a parsed request, so that these tests say what the wire does and not what the renderer
decided. What comes out is validated by the vendor's own types.
"""

from __future__ import annotations

import copy
import json
from base64 import b64encode
from typing import Any

import msgspec
import pytest
from anthropic.types import Message as SdkMessage
from anthropic.types.beta.message_create_params import MessageCreateParamsNonStreaming as BetaParams
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming as Params
from pydantic import TypeAdapter

import segue
from segue.canonical.blocks import (
    Code,
    Media,
    Message,
    Native,
    Opaque,
    Origin,
    Text,
    Thinking,
    ToolCall,
    ToolResponse,
    edit_block,
)
from segue.canonical.contents import summarize
from segue.canonical.pairing import pair
from segue.canonical.request import Options, Reasoning, Reply, Request, ResponseFormat, Tool, ToolChoice, Usage
from segue.errors import InputError, ProjectionError, RemoteProtocolError
from segue.models import parse_model
from segue.render.constraints import Policy
from segue.render.passes import render
from segue.render.report import Report
from segue.render.transcript import Transcript
from segue.wire.anthropic import WIRE as ANTHROPIC
from segue.wire.anthropic import constraints
from segue.wire.base import ApiError, RenderContext
from segue.wire.ids import IdMap
from segue.wire.names import NameMap
from tests.bodies import anthropic

ADAPTER = TypeAdapter(Params)
BETA_ADAPTER = TypeAdapter(BetaParams)
EPHEMERAL = {"type": "ephemeral", "ttl": "1h"}
PNG = b64encode(b"\x89PNG").decode()
PDF = b64encode(b"%PDF-1.7").decode()


def transcript_of(request: Request, *, model: str | None = None, **changes: Any) -> Transcript:
    fields: dict[str, Any] = {
        "system": request.system,
        "messages": request.messages,
        "tools": request.tools,
        "options": request.options,
    }
    fields |= changes
    model = model or request.model
    return Transcript(
        request=request,
        constraints=constraints(parse_model(model)),
        policy=Policy(),
        contents=summarize(fields["messages"]),
        model=model,
        **fields,
    )


def projection_of(transcript: Transcript) -> RenderContext:
    names = NameMap(ANTHROPIC.name_rule(parse_model(None)))
    ids = IdMap.project(transcript, ANTHROPIC.id_scheme(parse_model(transcript.model)), names.render)
    return RenderContext(ids=ids, names=names, report=Report())


def render_body(transcript: Transcript) -> tuple[dict[str, Any], Report]:
    projection = projection_of(transcript)
    return ANTHROPIC.render_request(transcript, projection), projection.report


def convert_same_api(body: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return render_body(transcript_of(ANTHROPIC.parse_request(body), **changes))[0]


def convert_cross_api(
    *messages: Message, model: str | None = "claude-sonnet-4-5", **fields: Any
) -> tuple[dict[str, Any], Report]:
    """A request without a source API, with ids from pairing."""
    body, report = render_body(transcript_of(Request(pair(messages), model=model, **fields)))
    # Every such request gets this finding; it has a test of its own.
    others = Report()
    others.extend(finding for finding in report.findings if "Anthropic requires it" not in finding.message)
    return body, others


def test_missing_max_tokens_is_set_and_reported():
    _, report = render_body(transcript_of(Request(pair([Message("human", (Text("hi"),))]), model="claude-sonnet-4-5")))
    assert [(finding.kind, finding.subject) for finding in report.findings] == [("adjusted", "max_tokens")]


def render_options(
    model: str = "claude-sonnet-4-5", tools: tuple[Tool, ...] = (), **options: Any
) -> tuple[dict[str, Any], list]:
    body, report = convert_cross_api(
        Message("human", (Text("hi"),)), model=model, tools=tools, options=Options(**options)
    )
    return body, [finding.subject for finding in report.findings_of("adjusted")]


def request_with_content(*blocks: Any) -> dict[str, Any]:
    return anthropic.body(anthropic.user(*blocks), max_tokens=10)


def parsed(*blocks: Any) -> tuple[Any, ...]:
    return ANTHROPIC.parse_request(request_with_content(*blocks)).messages[0].blocks


# ---------------------------------------------------------------------------------------------------------------- home

USE = anthropic.call(name="read", input={"path": "a"})
RESULT = anthropic.result(content="done")

CLAUDE_CODE = {
    "model": "claude-opus-4-5-20251101",
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "<system-reminder>now</system-reminder>"},
                {"type": "text", "text": "read it", "cache_control": EPHEMERAL},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "sig1"},
                {"type": "redacted_thinking", "data": "sealed"},
                {"type": "text", "text": "I look.", "citations": None},
                USE,
                {"type": "thinking", "thinking": "", "signature": "sig2"},
                {**USE, "id": "toolu_2", "caller": {"type": "direct"}, "cache_control": EPHEMERAL},
                {**USE, "id": "toolu_3", "name": "ToolSearch"},
            ],
        },
        {
            "role": "user",
            "content": [
                {**RESULT, "tool_use_id": "toolu_2", "is_error": True, "cache_control": EPHEMERAL},
                {
                    **RESULT,
                    "content": [
                        {"type": "text", "text": "seen"},
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                        {
                            "type": "document",
                            "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
                        },
                        {
                            "type": "search_result",
                            "source": "https://x",
                            "title": "X",
                            "content": [{"type": "text", "text": "found"}],
                        },
                    ],
                },
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_3",
                    "content": [{"type": "tool_reference", "tool_name": "Grep"}],
                },
                {"type": "text", "text": "Tool loaded."},
            ],
        },
        {"role": "assistant", "content": ""},
        {"role": "user", "content": "and now?"},
    ],
    "system": [
        {"type": "text", "text": "x-anthropic-billing-header: cc"},
        {"type": "text", "text": "You are", "cache_control": {"type": "ephemeral"}},
    ],
    "tools": [
        {"name": "read", "description": "reads", "input_schema": {"type": "object", "properties": {}, "$schema": "x"}},
        {"type": "custom", "name": "late", "input_schema": {"type": "object"}, "defer_loading": True},
        {"type": "bash_20250124", "name": "bash", "cache_control": EPHEMERAL},
    ],
    "metadata": {"user_id": '{"device":"x"}'},
    "max_tokens": 32000,
    "thinking": {"type": "enabled", "budget_tokens": 31999, "display": "omitted"},
    "temperature": 1,
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "output_config": {"effort": "high", "task_budget": {"type": "tokens", "total": 9}},
    "stream": True,
    "an_unknown_field": {"x": [1, 1.0, None]},
}

SERVER_TOOLS = {
    "max_tokens": 100,
    "model": "claude-opus-4-6",
    "system": "plain",
    "mcp_servers": [{"type": "url", "name": "m", "url": "https://m"}],
    "tools": [
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
        {"type": "mcp_toolset", "mcp_server_name": "m"},
    ],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    "messages": [
        {"role": "user", "content": "search", "unknown_key": True},
        {
            "role": "assistant",
            "content": [
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": "srvtoolu_1",
                    "content": [
                        {"type": "web_search_result", "url": "https://x", "title": "X", "encrypted_content": "AAA"}
                    ],
                },
                {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "q", "server_name": "m", "input": {}},
                {
                    "type": "mcp_tool_result",
                    "tool_use_id": "mcptoolu_1",
                    "is_error": False,
                    "content": [{"type": "text", "text": "ok"}],
                },
                {
                    "type": "text",
                    "text": "So.",
                    "citations": [
                        {
                            "type": "web_search_result_location",
                            "url": "https://x",
                            "title": "X",
                            "encrypted_index": "E",
                            "cited_text": "c",
                        }
                    ],
                },
                {"type": "server_tool_use", "id": "srvtoolu_2", "name": "code_execution", "input": {}},
            ],
        },
    ],
}

ODDITIES = {
    "model": "claude-opus-5",
    "max_tokens": 64,
    "temperature": 0.0,
    "top_p": 1,
    "stop_sequences": ["END"],
    "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
    "thinking": {"type": "adaptive", "display": "summarized"},
    "service_tier": "auto",
    "messages": [
        {"role": "system", "content": "a system message in place"},
        {
            "role": "user",
            "content": [
                {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}, "cache_control": EPHEMERAL},
                {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
                {"type": "image", "source": {"type": "telepathy"}},
                {"type": "document", "source": {"type": "url", "url": "https://x/y.pdf"}, "title": "T"},
                {"type": "document", "source": {"type": "file", "file_id": "file_2"}, "citations": {"enabled": True}},
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}},
                {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "part"}]}},
                {"type": "container_upload", "file_id": "file_3"},
                {"type": "from_the_future", "payload": {"deep": [1]}},
            ],
        },
        {"role": "assistant", "content": [{"type": "compaction", "content": "summary"}]},
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {"role": "assistant", "content": []},
        {"role": "user", "content": "now"},
    ],
}

BODIES = {"claude code": CLAUDE_CODE, "server tools": SERVER_TOOLS, "oddities": ODDITIES}
everybody = pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)


@everybody
def test_valid_body_is_unchanged_for_same_api(body):
    before = copy.deepcopy(body)
    made = convert_same_api(body)
    assert json.dumps(made) == json.dumps(before)
    assert json.dumps(body) == json.dumps(before), "the input was changed"


@everybody
def test_render_passes_leave_valid_body_unchanged(body):
    request = ANTHROPIC.parse_request(body)
    report = Report()
    transcript = render(request, constraints(parse_model(request.model)), Policy(), report, model=request.model)
    made, late = render_body(transcript)
    assert json.dumps(made) == json.dumps(body)
    assert report.findings == late.findings == []


@everybody
def test_unchanged_blocks_are_the_same_objects(body):
    made = convert_same_api(body)
    assert all(new is old for new, old in zip(made["messages"], body["messages"], strict=True))
    assert made.get("tools") is body.get("tools")
    assert made.get("system") is body.get("system")


@pytest.mark.parametrize("body", [CLAUDE_CODE, SERVER_TOOLS], ids=["claude code", "server tools"])
def test_beta_types_accept_same_api_body(body):
    BETA_ADAPTER.validate_python({key: value for key, value in convert_same_api(body).items() if key != "stream"})


def test_only_ids_and_names_are_merged_into_the_original():
    use = {"type": "tool_use", "id": "functions.read:0", "name": "read.file", "input": {}, "cache_control": EPHEMERAL}
    result = {"type": "tool_result", "tool_use_id": "functions.read:0", "content": [], "cache_control": EPHEMERAL}
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 1,
        "messages": [
            {
                "role": "assistant",
                "content": [{"type": "text", "text": "t", "cache_control": {"type": "ephemeral"}}, use],
                "y": 2,
            },
            {"role": "user", "content": [result]},
        ],
        "tools": [{"name": "read.file", "input_schema": {"type": "object"}, "defer_loading": True}],
        "tool_choice": {"type": "tool", "name": "read.file"},
    }
    made = convert_same_api(body)
    [reply, answer] = made["messages"]
    [text, call] = reply["content"]
    assert text is body["messages"][0]["content"][0]
    assert reply["y"] == 2
    assert call == {**use, "id": call["id"], "name": made["tools"][0]["name"]}
    assert answer["content"] == [{**result, "tool_use_id": call["id"]}]
    assert call["id"].startswith("toolu_")
    assert made["tool_choice"] == {"type": "tool", "name": call["name"]}
    assert made["tools"][0]["defer_loading"] is True
    assert call["name"] != "read.file"


def test_hosted_ids_stay_under_every_policy():
    request = ANTHROPIC.parse_request(SERVER_TOOLS)
    transcript = msgspec.structs.replace(transcript_of(request), policy=Policy(ids="canonical"))
    assert render_body(transcript)[0]["messages"] == SERVER_TOOLS["messages"]


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        ("[1]", {"value": [1]}),
        ('{"a": ', {"_raw": '{"a": '}),
        (None, {}),
        ([1, 2], {"value": [1, 2]}),
    ],
)
def test_non_object_arguments_become_an_object(given, sent):
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 1,
        "messages": [
            {"role": "assistant", "content": [{**USE, "input": given, "cache_control": EPHEMERAL}], "z": 1},
            {"role": "user", "content": [RESULT]},
        ],
    }
    assert convert_same_api(body)["messages"][0] == {
        "role": "assistant",
        "content": [{**USE, "input": sent, "cache_control": EPHEMERAL}],
        "z": 1,
    }


def test_edited_block_keeps_harmless_keys():
    request = ANTHROPIC.parse_request(CLAUDE_CODE)
    first, *rest = request.messages
    assert isinstance(first.blocks[1], Text)
    shorter = first.with_blocks((first.blocks[0], edit_block(first.blocks[1], text="short")))
    made, _ = render_body(transcript_of(request, messages=(shorter, *rest)))
    assert made["messages"][0]["content"] == [
        CLAUDE_CODE["messages"][0]["content"][0],
        {"type": "text", "text": "short", "cache_control": EPHEMERAL},
    ]


def test_edited_result_keeps_cache_control_and_error():
    request = ANTHROPIC.parse_request(CLAUDE_CODE)
    results = request.messages[2]
    assert isinstance(results.blocks[0], ToolResponse)
    shorter = results.with_blocks((edit_block(results.blocks[0], content=(Text("[gone]"),)), *results.blocks[1:]))
    made, _ = render_body(transcript_of(request, messages=(*request.messages[:2], shorter, *request.messages[3:])))
    assert made["messages"][2]["content"][0] == {
        "type": "tool_result",
        "tool_use_id": "toolu_2",
        "content": "[gone]",
        "is_error": True,
        "cache_control": EPHEMERAL,
    }


def test_changed_options_are_merged_into_the_body():
    request = ANTHROPIC.parse_request(CLAUDE_CODE)
    off = msgspec.structs.replace(request.options, reasoning=Reasoning(enabled=False, effort="none"))
    made, _ = render_body(transcript_of(request, options=off))
    assert made["thinking"] == {"type": "disabled"}
    assert made["output_config"] == {"task_budget": CLAUDE_CODE["output_config"]["task_budget"]}
    assert made.keys() == CLAUDE_CODE.keys()
    changed = {key for key in made if made[key] != CLAUDE_CODE[key]}
    assert changed == {"thinking", "output_config"}


def test_other_model_of_same_api_gets_only_supported_options():
    request = ANTHROPIC.parse_request({**CLAUDE_CODE, "temperature": 0.5, "thinking": CLAUDE_CODE["thinking"]})
    made, report = render_body(transcript_of(request, model="claude-opus-5-5"))
    assert made["model"] == "claude-opus-5-5"
    assert made["thinking"] == {"type": "adaptive", "display": "omitted"}
    assert made["output_config"] == CLAUDE_CODE["output_config"]
    assert made["messages"] == CLAUDE_CODE["messages"]
    assert {finding.subject for finding in report.findings} == {"temperature"}


def test_blank_system_text_and_duplicate_tools_are_dropped_for_same_api():
    tool = {"name": "a", "input_schema": {"type": "object"}}
    body = {
        **request_with_content({"type": "text", "text": "x"}),
        "system": [{"type": "text", "text": " "}],
        "tools": [tool, tool],
    }
    made, report = render_body(transcript_of(ANTHROPIC.parse_request(body)))
    assert "system" not in made
    assert made["tools"] == [tool]
    assert [finding.kind for finding in report.findings] == ["tools"]


def test_schema_without_type_is_repaired_for_same_api():
    body = {**request_with_content({"type": "text", "text": "x"}), "tools": [{"name": "a", "cache_control": EPHEMERAL}]}
    assert convert_same_api(body)["tools"] == [
        {"name": "a", "cache_control": EPHEMERAL, "input_schema": {"type": "object", "properties": {}}}
    ]


def test_result_for_provider_held_call_keeps_its_id():
    body = {**request_with_content(RESULT), "thread": {"type": "continue", "previous_message_id": "msg_1"}}
    assert convert_same_api(body) == body


# --------------------------------------------------------------------------------------------------------------- parse


def test_roles_and_grouping():
    request = ANTHROPIC.parse_request(CLAUDE_CODE)
    assert [message.speaker for message in request.messages] == ["human", "ai", "tool", "ai", "human"]
    assert [len(message.blocks) for message in request.messages] == [2, 7, 4, 0, 1]
    assert request.model == "claude-opus-4-5-20251101"
    assert [text.text for text in request.system] == ["x-anthropic-billing-header: cc", "You are"]
    assert request.native is not None
    assert request.native.fragment is CLAUDE_CODE
    assert ANTHROPIC.parse_request(ODDITIES).messages[0].speaker == "system"


def test_calls_and_results_are_paired_out_of_order():
    _, reply, results, *_ = ANTHROPIC.parse_request(CLAUDE_CODE).messages
    calls = [block for block in reply.blocks if isinstance(block, ToolCall)]
    answers = [block for block in results.blocks if isinstance(block, ToolResponse)]
    assert [call.origin.raw_id for call in calls] == ["toolu_1", "toolu_2", "toolu_3"]
    assert [answer.call_id for answer in answers] == [calls[1].id, calls[0].id, calls[2].id]
    assert [answer.error for answer in answers] == [True, False, False]
    assert all(answer.is_complete for answer in answers)
    assert calls[0].origin.identity == "natural"
    assert calls[0].origin.model is None, "a body does not record the model of its replies"


def test_thinking_belongs_to_the_provider():
    thinking, redacted = ANTHROPIC.parse_request(CLAUDE_CODE).messages[1].blocks[:2]
    assert isinstance(thinking, Thinking)
    assert isinstance(redacted, Thinking)
    assert (thinking.text, thinking.signature, thinking.prefix) == ("hm", "sig1", None)
    assert (thinking.origin.provider, thinking.origin.model) == ("anthropic", None)
    assert (redacted.encrypted, redacted.signature) == ("sealed", None)


def test_hosted_calls_and_results():
    blocks = ANTHROPIC.parse_request(SERVER_TOOLS).messages[1].blocks
    search, found, query, answer, _, running = blocks
    assert isinstance(search, ToolCall)
    assert isinstance(found, ToolResponse)
    assert (search.kind, search.name, search.arguments) == ("hosted", "web_search", {"query": "x"})
    assert found.hosted
    assert found.call_id == search.id
    assert found.content == (Text("X\nhttps://x"),)
    assert isinstance(query, ToolCall)
    assert isinstance(answer, ToolResponse)
    assert (query.kind, answer.call_id) == ("hosted", query.id)
    assert [block.text for block in answer.content or () if isinstance(block, Text)] == ["ok"]
    assert isinstance(running, ToolCall)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ({"type": "web_search_tool_result_error", "error_code": "unavailable"}, True),
        ({"type": "code_execution_result", "stdout": "", "stderr": "x", "return_code": 1, "content": []}, False),
    ],
)
def test_hosted_error_is_detected_by_content(content, error):
    [block] = parsed({"type": "some_new_tool_result", "tool_use_id": "srvtoolu_1", "content": content})
    assert isinstance(block, ToolResponse)
    assert block.error is error


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
            Media("image", "image/png", data=PNG),
        ),
        ({"type": "image", "source": {"type": "url", "url": "https://x"}}, Media("image", url="https://x")),
        ({"type": "image", "source": {"type": "file", "file_id": "f"}}, Media("image", file_id="f")),
        ({"type": "image", "source": {"type": "base64"}}, Opaque("image")),
        (
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
                "title": "T",
            },
            Media("document", "application/pdf", data=PDF, name="T"),
        ),
        (
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}, "title": "T"},
            Text("T\nd"),
        ),
        (
            {
                "type": "document",
                "source": {
                    "type": "content",
                    "content": [{"type": "text", "text": "a"}, {"type": "image", "source": {}}],
                },
            },
            Text("a\n[image not supported here]"),
        ),
        (
            {"type": "search_result", "title": "T", "source": "s", "content": [{"type": "text", "text": "found"}]},
            Text("T\ns\nfound"),
        ),
        ({"type": "tool_reference", "tool_name": "Grep"}, Text("Grep")),
        ({"type": "container_upload", "file_id": "f"}, Opaque("container_upload", text="[file f]")),
        ({"type": "from_the_future"}, Opaque("from_the_future")),
    ],
    ids=lambda value: value.get("type") if isinstance(value, dict) else "",
)
def test_every_kind_of_content(block, expected):
    [found] = parsed(block)
    assert found == msgspec.structs.replace(expected, native=Native("anthropic", block))


def test_result_may_be_empty():
    for content, intact in ({}, True), ({"content": None}, False), ({"content": []}, True), ({"content": ""}, True):
        [block] = parsed({"type": "tool_result", "tool_use_id": "t", **content})
        assert isinstance(block, ToolResponse)
        assert not any(isinstance(part, Text) and part.text for part in block.content or ())
        assert block.native is not None
        assert block.native.intact is intact


def test_absent_ids_are_marked_absent():
    for raw_id in (None, "", "null"):
        [block] = parsed({**USE, "id": raw_id})
        assert isinstance(block, ToolCall)
        assert (block.origin.raw_id, block.origin.identity) == (None, "synthetic")
        assert block.id.startswith("hist_tool_")


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "messages"),
        ({"messages": {}}, "messages"),
        ({"messages": [1]}, "messages[0]"),
        ({"messages": [{"content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": 1}]}, "messages[0].content"),
        ({"messages": [{"role": "assistant", "content": {}}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": ["x"]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [{}]}]}, "messages[0].content[0].type"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
        ({"messages": [{"role": "assistant", "content": [{"type": "tool_use"}]}]}, "messages[0].content[0].name"),
        (
            {"messages": [{"role": "user", "content": [{**RESULT, "content": [{"text": 1}]}]}]},
            "messages[0].content[0].content[0].type",
        ),
        ({"messages": [{"role": "user", "content": [{**RESULT, "content": 5}]}]}, "messages[0].content[0].content"),
        ({"messages": [], "tools": {}}, "tools"),
        ({"messages": [], "tools": ["x"]}, "tools[0]"),
        ({"messages": [], "tools": [{}]}, "tools[0].name"),
        ({"messages": [], "system": 3}, "system"),
        ({"messages": [], "system": [{}]}, "system[0].type"),
        ({"messages": [], "system": [{"type": "text"}]}, "system[0].text"),
    ],
)
def test_input_error_names_the_path(body, path):
    with pytest.raises(InputError) as caught:
        ANTHROPIC.parse_request(body)
    assert caught.value.path == path


def test_assistant_content_may_be_empty():
    for content in ({"content": None}, {}, {"content": ""}, {"content": []}):
        body = {"messages": [{"role": "assistant", **content}]}
        [message] = ANTHROPIC.parse_request(body).messages
        assert message.blocks == ()
        # ANT-16: null is refused, so it can't go home as it is.
        assert (convert_same_api(body) == body) is (content.get("content") is not None)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"max_tokens": 5, "temperature": 0.5, "top_p": 1, "top_k": 3}, Options(5, 0.5, 1, 3)),
        ({"max_tokens": 5.0, "temperature": None, "top_k": 2.0}, Options(5, top_k=2)),
        ({"stop_sequences": ["a", "b"]}, Options(stop=("a", "b"))),
        ({"tool_choice": {"type": "any"}}, Options(tool_choice=ToolChoice("required"))),
        ({"tool_choice": {"type": "none"}}, Options(tool_choice=ToolChoice("none"))),
        (
            {"tool_choice": {"type": "tool", "name": "a", "disable_parallel_tool_use": True}},
            Options(tool_choice=ToolChoice("tool", "a"), parallel=False),
        ),
        (
            {"tool_choice": {"type": "auto", "disable_parallel_tool_use": False}},
            Options(tool_choice=ToolChoice("auto"), parallel=True),
        ),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 2000}},
            Options(reasoning=Reasoning(enabled=True, budget=2000, visible=True)),
        ),
        ({"thinking": {"type": "disabled"}}, Options(reasoning=Reasoning(enabled=False))),
        ({"thinking": {"type": "between_tools"}}, Options(reasoning=Reasoning(enabled=False))),
        (
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}},
            Options(reasoning=Reasoning(enabled=True, adaptive=True, effort="max", visible=True)),
        ),
        ({"output_config": {"effort": "low"}}, Options(reasoning=Reasoning(effort="low"))),
        (
            {"output_config": {"effort": "low"}, "model": "claude-opus-4-5"},
            Options(reasoning=Reasoning(enabled=False, effort="low")),
        ),
        ({"output_config": {"effort": "low"}, "model": "claude-opus-5"}, Options(reasoning=Reasoning(effort="low"))),
        ({"output_config": {"effort": "huge"}, "thinking": {"type": "new"}}, Options()),
        (
            {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}},
            Options(response_format=ResponseFormat("schema", {"type": "object"}, strict=True)),
        ),
        (
            {"output_format": {"type": "json_schema", "schema": {}}},
            Options(response_format=ResponseFormat("schema", {}, strict=True)),
        ),
        ({"stream": True, "metadata": {"user_id": "u"}}, Options(stream=True, user="u")),
        ({"metadata": {"user_id": None}}, Options()),
    ],
)
def test_options_are_read(fields, expected):
    assert ANTHROPIC.parse_request({"messages": [], **fields}).options == expected


def test_tools_are_read():
    read, late, bash = ANTHROPIC.parse_request(CLAUDE_CODE).tools
    assert (read.name, read.description, read.kind) == ("read", "reads", "function")
    assert read.parameters == {"type": "object", "properties": {}, "$schema": "x"}
    assert (late.kind, bash.kind, bash.name) == ("function", "hosted", "bash")
    assert [tool.name for tool in ANTHROPIC.parse_request(SERVER_TOOLS).tools] == ["web_search", "m"]


# -------------------------------------------------------------------------------------------------------------- abroad

CALL = ToolCall("read", {"path": "a"}, origin=Origin("openai", "gpt-4o", "call_1"))
ANSWER = ToolResponse(content=(Text("done"),), is_complete=True, origin=Origin("openai", "gpt-4o", "call_1"))


def test_cross_api_conversation():
    body, report = convert_cross_api(
        Message("human", (Text("read it"),)),
        Message("ai", (Text("I look."), CALL)),
        Message("tool", (ANSWER, Text("and then?"))),
        Message("ai", (Text("Done."),)),
        Message("human", (Text("a"), Text("b"))),
        system=(Text("be kind"),),
        tools=(Tool("read", "reads", {"type": "object", "properties": {"path": {"type": "string"}}}),),
    )
    [_, use] = body["messages"][1]["content"]
    assert body == {
        "model": "claude-sonnet-4-5",
        "max_tokens": 8192,
        "system": "be kind",
        "messages": [
            {"role": "user", "content": "read it"},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": use["id"], "name": "read", "input": {"path": "a"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": use["id"], "content": "done"},
                    {"type": "text", "text": "and then?"},
                ],
            },
            {"role": "assistant", "content": "Done."},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        ],
        "tools": [
            {
                "name": "read",
                "description": "reads",
                "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
            }
        ],
    }
    assert list(body) == ["model", "max_tokens", "system", "messages", "tools"]
    assert use["id"].startswith("toolu_")
    assert report.findings == []
    ADAPTER.validate_python(body)


def test_no_model_in_body_without_a_model():
    body, _ = convert_cross_api(Message("human", (Text("x"),)), model=None)
    assert list(body) == ["max_tokens", "messages"]


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ({"content": ()}, {}),
        ({"content": None}, {}),
        ({"content": (Text(""),)}, {"content": ""}),
        ({"content": (Text("a"), Text(""), Text("b"))}, {"content": [{"type": "text", "text": t} for t in "ab"]}),
        ({"structured": {"a": 1}}, {"content": '{"a":1}'}),
        ({"content": (Text("no"),), "error": True}, {"content": "no", "is_error": True}),
        ({"content": (Text("[cut]"),), "outcome": "interrupted"}, {"content": "[cut]", "is_error": True}),
        (
            {"content": (Text("see"), Media("image", "image/png", data=PNG))},
            {
                "content": [
                    {"type": "text", "text": "see"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                ]
            },
        ),
    ],
)
def test_cross_api_results(response, expected):
    answer = msgspec.structs.replace(ANSWER, **{"content": None, **response})
    body, _ = convert_cross_api(Message("ai", (CALL,)), Message("tool", (answer,)))
    [block] = body["messages"][1]["content"]
    assert {key: value for key, value in block.items() if key not in ("type", "tool_use_id")} == expected
    ADAPTER.validate_python(body)


@pytest.mark.parametrize(
    ("call", "sent", "reported"),
    [
        (ToolCall("f", {"a": 1}), {"a": 1}, False),
        (ToolCall("f"), {}, False),
        (ToolCall("f", [1]), {"value": [1]}, True),
        (ToolCall("f", None, arguments_text="{bad"), {"_raw": "{bad"}, True),
        (ToolCall("f", "*** patch", kind="custom"), {"input": "*** patch"}, True),
    ],
)
def test_cross_api_arguments_are_an_object(call, sent, reported):
    body, report = convert_cross_api(Message("ai", (call,)), Message("tool", (ToolResponse(content=()),)))
    [use] = body["messages"][0]["content"]
    assert (use["type"], use["input"]) == ("tool_use", sent)
    assert bool(report.findings_of("argument")) is reported


@pytest.mark.parametrize(
    ("media", "source"),
    [
        (Media("image", data=PNG), {"type": "base64", "media_type": "image/png", "data": PNG}),
        (Media("image", "image/jpg", data=PNG), {"type": "base64", "media_type": "image/jpeg", "data": PNG}),
        (Media("image", url="https://x/y"), {"type": "url", "url": "https://x/y"}),
        (
            Media("image", url=f"data:image/webp;base64,{PNG}"),
            {"type": "base64", "media_type": "image/webp", "data": PNG},
        ),
        (
            Media("document", "application/pdf", data=PDF),
            {"type": "base64", "media_type": "application/pdf", "data": PDF},
        ),
        (
            Media("document", "text/markdown", data=b64encode("né".encode()).decode()),
            {"type": "text", "media_type": "text/plain", "data": "né"},
        ),
        (Media("document", url="data:text/plain,a%20b"), {"type": "text", "media_type": "text/plain", "data": "a b"}),
        (Media("document", url="https://x/y.pdf"), {"type": "url", "url": "https://x/y.pdf"}),
    ],
)
def test_pictures_and_documents_by_every_source(media, source):
    body, report = convert_cross_api(Message("human", (Text("see"), media)))
    assert body["messages"][0]["content"][1] == {"type": media.kind, "source": source}
    assert report.findings == []
    ADAPTER.validate_python(body)


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (Media("audio", "audio/wav", data="AA"), "[audio not supported here]"),
        (Media("image", "image/svg+xml", data="AA", name="a.svg"), "[image not supported here] a.svg"),
        (Media("image", url="gs://b/o"), "[image not supported here] gs://b/o"),
        (Media("image", file_id="file-1"), "[image not supported here] file-1"),
        (Media("document", "application/msword", data="AA", name="a.doc"), "[document not supported here] a.doc"),
        (Media("document", "text/plain", data="%%"), "[document not supported here]"),
        (Opaque("riddle"), "[riddle not supported here]"),
        (Opaque("riddle", text="who?"), "[riddle not supported here] who?"),
    ],
)
def test_unsupported_content_is_reported(block, text):
    body, report = convert_cross_api(Message("human", (Text("x"), block)))
    assert body["messages"][0]["content"][1] == {"type": "text", "text": text}
    assert [finding.kind for finding in report.findings] == ["text"]


def test_fetched_content_is_sent_inline():
    transcript = transcript_of(Request((Message("human", (Media("image", url="gs://b/o"),)),)))
    projection = projection_of(transcript)
    fetching = RenderContext(
        projection.ids, projection.names, projection.report, fetch=lambda _url: (b"\x89PNG", "image/png")
    )
    [message] = ANTHROPIC.render_request(transcript, fetching)["messages"]
    assert message["content"][0]["source"] == {"type": "base64", "media_type": "image/png", "data": PNG}


def test_code_is_fenced():
    body, _ = convert_cross_api(Message("ai", (Code("print()", "python"), Code("```"))))
    assert [block["text"] for block in body["messages"][0]["content"]] == ["```python\nprint()\n```", "````\n```\n````"]


def test_own_thinking_without_native_is_rendered_from_its_fields():
    mine = Origin("anthropic", "claude-sonnet-4-5")
    body, _ = convert_cross_api(
        Message("ai", (Thinking("t", "s", origin=mine), Thinking(encrypted="x", origin=mine), Text("a")))
    )
    assert body["messages"][0]["content"][:2] == [
        {"type": "thinking", "thinking": "t", "signature": "s"},
        {"type": "redacted_thinking", "data": "x"},
    ]
    ADAPTER.validate_python(body)


def test_result_without_a_call_is_an_internal_error():
    with pytest.raises(ProjectionError):
        convert_cross_api(Message("tool", (ANSWER,)))


def test_cross_api_tools():
    tools = (
        Tool("a.b", parameters={"type": "string"}, strict=True),
        Tool("patch", kind="custom", description="edits"),
        Tool("web", kind="hosted", native=Native("openai-responses", {"type": "web_search"})),
        Tool("n"),
        Tool("n", "again"),
    )
    body, report = convert_cross_api(Message("human", (Text("x"),)), tools=tools)
    assert [tool["input_schema"] for tool in body["tools"]] == [
        {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]},
        {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]},
        {"type": "object", "properties": {}},
    ]
    assert body["tools"][0]["name"] != "a.b"
    assert [(finding.kind, finding.subject) for finding in report.findings] == [
        ("tools", "a.b"),
        ("tools", "a.b"),
        ("tools", "patch"),
        ("tools", "web"),
        ("tools", "n"),
    ]
    ADAPTER.validate_python(body)


def test_cross_api_system_text():
    two, _ = convert_cross_api(Message("human", (Text("x"),)), system=(Text("a"), Text(" "), Text("b")))
    assert two["system"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    none, _ = convert_cross_api(Message("human", (Text("x"),)), system=(Text(" "),))
    assert "system" not in none


# ------------------------------------------------------------------------------------------------------------- options

ON = Reasoning(enabled=True)
CLOSED = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("model", "reasoning", "thinking", "effort"),
    [
        ("claude-sonnet-4-5", Reasoning(effort="high"), {"type": "enabled", "budget_tokens": 16384}, None),
        ("claude-sonnet-4-5", Reasoning(effort="minimal"), {"type": "enabled", "budget_tokens": 1024}, None),
        ("claude-sonnet-4-5", Reasoning(budget=100), {"type": "enabled", "budget_tokens": 1024}, None),
        ("claude-sonnet-4-5", Reasoning(adaptive=True), {"type": "enabled", "budget_tokens": 8192}, None),
        ("claude-sonnet-4-5", ON, {"type": "enabled", "budget_tokens": 8192}, None),
        ("claude-sonnet-4-5", Reasoning(enabled=False), {"type": "disabled"}, None),
        ("claude-sonnet-4-5", Reasoning(effort="none"), {"type": "disabled"}, None),
        ("claude-3-7-sonnet", ON, {"type": "enabled", "budget_tokens": 8192}, None),
        ("claude-3-5-sonnet", ON, None, None),
        ("claude-3-5-sonnet", Reasoning(enabled=False), None, None),
        ("claude-opus-4-6", Reasoning(effort="xhigh"), {"type": "adaptive"}, "high"),
        ("claude-opus-4-6", Reasoning(effort="max"), {"type": "adaptive"}, "max"),
        ("claude-opus-4-6", Reasoning(effort="minimal"), {"type": "adaptive"}, "low"),
        ("claude-opus-4-6", ON, {"type": "adaptive"}, None),
        ("claude-opus-4-6", Reasoning(budget=4000), {"type": "enabled", "budget_tokens": 4000}, None),
        ("claude-opus-4-7", Reasoning(effort="xhigh"), {"type": "adaptive"}, "xhigh"),
        ("claude-opus-4-8", Reasoning(budget=4000), {"type": "adaptive"}, "medium"),
        ("claude-opus-5", Reasoning(enabled=False, effort="max"), {"type": "disabled"}, "high"),
        ("claude-sonnet-5-5", Reasoning(enabled=False), {"type": "between_tools"}, None),
        ("claude-opus-5-5", Reasoning(enabled=False), None, "low"),
        ("claude-fable-5", Reasoning(effort="none"), None, "low"),
        ("claude-haiku-5-5", Reasoning(enabled=False), {"type": "disabled"}, None),
        ("kimi-k2", Reasoning(effort="low"), {"type": "enabled", "budget_tokens": 2048}, None),
        ("glm-4.6", Reasoning(effort="low"), {"type": "enabled", "budget_tokens": 2048}, None),
    ],
)
def test_thinking_options_by_model(model, reasoning, thinking, effort):
    body, _ = render_options(model, reasoning=reasoning)
    assert body.get("thinking") == thinking
    assert body.get("output_config", {}).get("effort") == effort
    ADAPTER.validate_python(body)


@pytest.mark.parametrize(
    ("model", "options", "max_tokens", "budget"),
    [
        ("claude-sonnet-4-5", {}, 8192, None),
        ("claude-3-opus-20240229", {}, 4096, None),
        ("claude-3-haiku-20240307", {"max_tokens": 9000}, 4096, None),
        ("claude-sonnet-4-5", {"reasoning": ON}, 16384, 8192),
        ("claude-sonnet-4-5", {"reasoning": Reasoning(budget=4000), "max_tokens": 4000}, 4000, 2000),
        ("claude-sonnet-4-5", {"reasoning": Reasoning(budget=4000), "max_tokens": 1025}, 1025, 1024),
        ("claude-sonnet-4-5", {"reasoning": Reasoning(budget=4000), "max_tokens": 1024}, 1024, None),
        ("claude-opus-4-1", {"reasoning": Reasoning(effort="max")}, 32_000, 16_000),
        ("claude-opus-4-1", {"max_tokens": 100_000}, 32_000, None),
        ("an-unknown-model", {"max_tokens": 100_000}, 100_000, None),
    ],
)
def test_max_tokens_leaves_room_for_thinking_and_answer(model, options, max_tokens, budget):
    body, _ = render_options(model, **options)
    assert body["max_tokens"] == max_tokens
    assert body.get("thinking", {}).get("budget_tokens") == budget


@pytest.mark.parametrize(
    ("model", "options", "sent", "reported"),
    [
        ("claude-sonnet-4-5", {"temperature": 0.5, "top_k": 3}, {"temperature": 0.5, "top_k": 3}, []),
        ("claude-sonnet-4-5", {"temperature": 0.5, "top_p": 0.9}, {"temperature": 0.5}, ["top_p"]),
        ("claude-sonnet-4-20250514", {"temperature": 0.5, "top_p": 0.9}, {"temperature": 0.5, "top_p": 0.9}, []),
        (
            "claude-sonnet-4-5",
            {"temperature": 0.5, "top_p": 0.9, "top_k": 3, "reasoning": ON},
            {},
            ["temperature", "top_p", "top_k"],
        ),
        ("claude-sonnet-4-5", {"top_p": 0.97, "reasoning": ON}, {"top_p": 0.97}, []),
        ("claude-sonnet-4-5", {"temperature": 1, "reasoning": ON}, {"temperature": 1}, []),
        ("claude-opus-4-7", {"temperature": 0.5, "top_k": 3}, {}, ["temperature", "top_k"]),
        ("claude-sonnet-4-5", {"stop": ("a", " ", "\n")}, {"stop_sequences": ["a"]}, ["stop"]),
        ("claude-sonnet-4-5", {"seed": 1, "presence_penalty": 0.5}, {}, ["seed", "presence_penalty"]),
        ("claude-sonnet-4-5", {"frequency_penalty": 0}, {}, ["frequency_penalty"]),
        ("claude-sonnet-4-5", {"user": "u", "stream": False}, {"stream": False, "metadata": {"user_id": "u"}}, []),
        ("claude-sonnet-4-5", {"response_format": ResponseFormat("text")}, {}, []),
        ("claude-sonnet-4-5", {"response_format": ResponseFormat("json")}, {}, ["response_format"]),
        (
            "claude-sonnet-4-5",
            {"response_format": ResponseFormat("schema", CLOSED)},
            {"output_config": {"format": {"type": "json_schema", "schema": CLOSED}}},
            [],
        ),
        (
            "claude-sonnet-4-5",
            {"response_format": ResponseFormat("schema", {"type": "object"})},
            {},
            ["response_format"],
        ),
        ("claude-3-7-sonnet", {"response_format": ResponseFormat("schema", {})}, {}, ["response_format"]),
    ],
)
def test_cross_api_options(model, options, sent, reported):
    body, subjects = render_options(model, **options)
    rest = {key: value for key, value in body.items() if key not in ("model", "max_tokens", "messages", "thinking")}
    assert rest == sent
    assert subjects == reported


TOOLS = (Tool("a", parameters={"type": "object"}),)


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ({}, None),
        ({"parallel": True}, None),
        ({"parallel": False}, {"type": "auto", "disable_parallel_tool_use": True}),
        ({"tool_choice": ToolChoice("auto")}, {"type": "auto"}),
        (
            {"tool_choice": ToolChoice("required"), "parallel": False},
            {"type": "any", "disable_parallel_tool_use": True},
        ),
        ({"tool_choice": ToolChoice("tool", "a")}, {"type": "tool", "name": "a"}),
        ({"tool_choice": ToolChoice("none"), "parallel": False}, {"type": "none"}),
    ],
)
def test_cross_api_tool_choice(options, sent):
    body, _ = render_options(tools=TOOLS, **options)
    assert body.get("tool_choice") == sent
    assert "tool_choice" not in render_options(**options)[0]
    ADAPTER.validate_python(body)


def test_forced_choice_becomes_auto_where_unsupported():
    for model, sent in ("claude-opus-5-5", "auto"), ("claude-fable-5-1", "auto"), ("claude-fable-5", "any"):
        body, subjects = render_options(model, TOOLS, tool_choice=ToolChoice("required"))
        assert body["tool_choice"] == {"type": sent}
        assert subjects == (["tool_choice"] if sent == "auto" else [])


# -------------------------------------------------------------------------------------------------------------- replies

REPLY = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "I look.", "citations": None},
        {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {
        "input_tokens": 5,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 20,
        "output_tokens": 7,
        "output_tokens_details": {"thinking_tokens": 3},
        "service_tier": "standard",
    },
    "container": None,
}


def paired(reply: Reply) -> tuple[Reply, RenderContext]:
    [message] = pair([Message("ai", reply.blocks)])
    request = Request((message,), model="claude-sonnet-4-5")
    return msgspec.structs.replace(reply, blocks=message.blocks), projection_of(transcript_of(request))


def test_a_reply_is_read():
    reply = ANTHROPIC.parse_reply(REPLY)
    assert (reply.finish, reply.id, reply.model, reply.text) == ("tool_calls", "msg_1", "claude-sonnet-4-5", "I look.")
    assert reply.usage == Usage(input=125, output=7, cache_read=100, cache_write=20, reasoning=3)
    assert reply.calls[0].arguments == {"path": "a"}
    assert reply.calls[0].id == ""


def test_reply_is_unchanged_for_same_api():
    reply, projection = paired(ANTHROPIC.parse_reply(REPLY))
    assert ANTHROPIC.render_reply(reply, projection) is REPLY


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "tool_calls"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "filter"),
        ("pause_turn", "pause"),
        ("compaction", "pause"),
        (None, "tool_calls"),
        ("a_new_one", "tool_calls"),
    ],
)
def test_stop_reasons(reason, finish):
    assert ANTHROPIC.parse_reply({**REPLY, "stop_reason": reason}).finish == finish


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "end_turn"),
        ({"stop_sequence": "END"}, "stop_sequence"),
        ({"finish": "length"}, "max_tokens"),
        ({"finish": "filter"}, "refusal"),
        ({"finish": "pause"}, "pause_turn"),
        ({"finish": "tool_calls"}, "end_turn"),
        ({"finish": "error"}, "max_tokens"),
        ({"blocks": (CALL,)}, "tool_use"),
        ({"blocks": (CALL,), "finish": "length"}, "max_tokens"),
    ],
)
def test_cross_api_reply(fields, reason):
    usage = Usage(input=10, output=2, cache_read=4)
    made = Reply(**{"blocks": (Text("hi"),), "usage": usage, "id": "chatcmpl-1", "model": "gpt-4o", **fields})
    reply, projection = paired(made)
    body = ANTHROPIC.render_reply(reply, projection)
    assert body["stop_reason"] == reason
    assert body["id"].startswith("msg_")
    assert body["usage"] == {
        "input_tokens": 6,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 4,
        "output_tokens": 2,
    }
    SdkMessage.model_validate(body)


def test_blocks_a_client_cannot_send_back_are_dropped_from_reply():
    theirs, ours = Origin("deepseek", "deepseek-reasoner"), Origin("anthropic", "claude-sonnet-4-5")
    search = ToolCall("web_search", {"q": 1}, kind="hosted", origin=Origin("openai", raw_id="ws_1"))
    blocks = (
        Thinking("their thoughts", origin=theirs),
        Thinking("unsigned", origin=ours),
        Thinking("mine", "sig", origin=ours),
        search,
        search.respond("found"),
        Text(""),
        Text("so"),
    )
    reply, projection = paired(Reply(blocks))
    body = ANTHROPIC.render_reply(reply, projection)
    assert body["content"] == [
        {"type": "thinking", "thinking": "mine", "signature": "sig"},
        {"type": "text", "text": "so"},
    ]
    assert body["stop_reason"] == "end_turn"
    assert [finding.kind for finding in projection.report.findings] == ["reasoning", "dropped"]
    SdkMessage.model_validate(body)


def test_invalid_reply_is_rejected():
    for body in ({}, {"content": "text"}, {"content": [{"text": "x"}]}):
        with pytest.raises(RemoteProtocolError):
            ANTHROPIC.parse_reply(body)


# -------------------------------------------------------------------------------------------------------------- errors


def test_errors_parse_and_render():
    body = {
        "type": "error",
        "error": {"type": "overloaded_error", "message": "Overloaded", "details": {"error_code": "busy"}},
        "request_id": "req_1",
    }
    assert ANTHROPIC.parse_error(529, body) == ApiError(529, "Overloaded", "overloaded_error", code="busy")
    assert ANTHROPIC.parse_error(404, {}) == ApiError(404, "HTTP status 404", "not_found_error")
    assert ANTHROPIC.parse_error(418, {"message": "tea"}) == ApiError(418, "tea", "invalid_request_error")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (413, "request_too_large"),
        (422, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (503, "overloaded_error"),
        (529, "overloaded_error"),
    ],
)
def test_error_kinds_follow_the_status(status, kind):
    made = ANTHROPIC.render_error(ApiError(status, "no", kind="insufficient_quota"))
    assert made == {"type": "error", "error": {"type": kind, "message": "no"}}


# ------------------------------------------------------------------------------------------------------------- demands


@pytest.mark.parametrize(
    ("model", "first", "ending", "bound", "adapts"),
    [
        ("claude-3-5-sonnet-latest", "human", "prefill", "model", False),
        ("claude-sonnet-4-20250514", "any", "prefill", "model", False),
        ("claude-sonnet-4-5", "any", "prefill", "model", False),
        ("claude-opus-4-6", "any", "human", "model", True),
        ("claude-opus-5", "any", "human", "model", True),
        ("claude-fable-5-1", "any", "human", "prefix", True),
        ("claude-sonnet-latest", "any", "human", "model", False),
        ("kimi-k2", "any", "human", "model", False),
        (None, "any", "human", "model", False),
    ],
)
def test_constraints_by_model(model, first, ending, bound, adapts):
    row = constraints(parse_model(model))
    assert (row.first_speaker, row.ending, row.reasoning_binding, row.reasoning_is_adaptive) == (
        first,
        ending,
        bound,
        adapts,
    )
    assert (row.api, row.provider, row.result_grouping) == ("anthropic", "anthropic", "joint")


def test_unknown_block_key_is_dropped_and_reported():
    # ANT-12
    body = request_with_content({"type": "text", "text": "t", "colour": "red", "cache_control": {"type": "ephemeral"}})
    made = segue.convert(body, source="anthropic", target="anthropic")
    assert made.body["messages"][0]["content"] == [
        {"type": "text", "text": "t", "cache_control": {"type": "ephemeral"}}
    ]
    assert [(finding.kind, finding.subject) for finding in made.report.findings] == [("dropped", "colour")]
