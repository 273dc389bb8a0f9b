"""The wire `gemini`: tools, options, replies and errors. Contents and parts are in `test_gemini.py`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

import segue
from segue.canonical.blocks import Origin, Text, Thinking, ToolCall
from segue.canonical.request import Options, Reasoning, Reply, ResponseFormat, ToolChoice, Usage
from segue.errors import InputError, RemoteProtocolError
from segue.wire.anthropic import WIRE as ANTHROPIC
from segue.wire.base import ApiError
from segue.wire.gemini import WIRE as GEMINI
from segue.wire.openai_chat import WIRE as OPENAI_CHAT
from tests.budget import examples
from tests.conversations.sdk import complaints
from tests.wire.conversion import convert_reply, render_client_reply

HI = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
SKIP = "skip_thought_signature_validator"
TOOLS = [{"functionDeclarations": [{"name": "look"}]}]
ANTHROPIC_TOOLS = [
    {"type": "web_search_20250305", "name": "web_search"},
    {"name": "look", "input_schema": {"type": "object"}},
]


def read_tools(*tools: Any) -> Any:
    return GEMINI.parse_request({**HI, "tools": list(tools)}).tools


def read_options(**fields: Any) -> Options:
    return GEMINI.parse_request({**HI, **fields}).options


def convert_same_api(target: str | None = None, **fields: Any) -> tuple[dict[str, Any], list[str | None]]:
    """The converted body and its findings; `target` is the target model."""
    made = segue.convert({**HI, **fields}, source="gemini", target="gemini", model=target)
    assert segue.check(made.body, "gemini", model=target), str(segue.check(made.body, "gemini", model=target))
    return made.body, [finding.subject for finding in made.report.findings]


def convert_options(model: str | None = None, **fields: Any) -> tuple[dict[str, Any], list[str | None]]:
    """The options of a Chat body converted to Gemini."""
    given = {"messages": [{"role": "user", "content": "hi"}], **fields}
    made = segue.convert(given, source="openai-chat", target="gemini", model=model)
    assert segue.check(made.body, "gemini", model=model), str(segue.check(made.body, "gemini", model=model))
    assert not complaints(made.body, "gemini")
    return made.body, [finding.subject for finding in made.report.findings_of("adjusted", "tools")]


# ---------------------------------------------------------------------------------------------------------------- tools


SHOWN = {"includeThoughts": True}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"type": "STRING"}, {"type": "string"}),
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "STRING", "format": "enum", "enum": ["a"]}, {"type": "string", "enum": ["a"]}),
        ({"type": "STRING", "enum": ["a"], "nullable": True}, {"type": ["string", "null"], "enum": ["a", None]}),
        (
            {"any_of": [{"type": "STRING"}, {"type": "INTEGER"}], "nullable": True},
            {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
        ),
        (
            {"type": "ARRAY", "items": {"type": "NUMBER"}, "min_items": "2", "maxItems": 3},
            {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 3},
        ),
        (
            {"type": "OBJECT", "properties": {"any_of": {"type": "STRING"}}, "property_ordering": ["any_of"]},
            {"type": "object", "properties": {"any_of": {"type": "string"}}},
        ),
        (
            {"defs": {"P": {"type": "OBJECT"}}, "properties": {"p": {"ref": "#/defs/P"}}},
            {"$defs": {"P": {"type": "object"}}, "properties": {"p": {"$ref": "#/$defs/P"}}},
        ),
        ({"type": "TYPE_UNSPECIFIED", "example": 3, "nullable": False}, {"examples": [3]}),
        ({"additional_properties": {"type": "STRING"}}, {"additionalProperties": {"type": "string"}}),
    ],
)
def test_the_apis_own_schemas_are_read_as_json_schema(given: Any, expected: Any):
    (tool,) = read_tools({"functionDeclarations": [{"name": "f", "parameters": given}]})
    assert tool.parameters == expected


def test_a_json_schema_is_read_as_it_is():
    schema = {"type": "object", "properties": {"x": {"const": 1}}, "$schema": "s"}
    for key in ("parametersJsonSchema", "parameters_json_schema"):
        (tool,) = read_tools({"function_declarations": {"name": "f", "description": "d", key: schema}})
        assert (tool.name, tool.description, tool.parameters) == ("f", "d", schema)


def test_each_function_and_each_hosted_tool_is_a_tool():
    tools = read_tools(
        {"functionDeclarations": [{"name": "a"}, {"name": "b"}], "codeExecution": {}},
        {"googleSearch": {}, "urlContext": None},
    )
    assert [(tool.name, tool.kind) for tool in tools] == [
        ("a", "function"),
        ("b", "function"),
        ("codeExecution", "hosted"),
        ("googleSearch", "hosted"),
    ]
    made = segue.convert(
        {**HI, "tools": [{"functionDeclarations": [{"name": "a"}], "googleSearch": {}}]}, target="anthropic"
    )
    assert [tool["name"] for tool in made.body["tools"]] == ["a", "web_search"]
    assert [finding.subject for finding in made.report.findings_of("tools")] == ["googleSearch"]


@pytest.mark.parametrize(
    ("tools", "path"),
    [
        ("x", "tools"),
        ([3], "tools[0]"),
        ([{"functionDeclarations": 3}], "tools[0].functionDeclarations"),
        ([{"function_declarations": [3]}], "tools[0].function_declarations[0]"),
        ([{"functionDeclarations": [{}]}], "tools[0].functionDeclarations[0].name"),
    ],
)
def test_invalid_tool_error_names_the_path(tools: Any, path: str):
    with pytest.raises(InputError) as caught:
        GEMINI.parse_request({**HI, "tools": tools})
    assert caught.value.path == path


def test_cross_api_tools_are_functions_with_json_schema():
    schema = {"type": "object", "properties": {"x": {"type": ["string", "null"]}}, "additionalProperties": False}
    body, reported = convert_options(
        tools=[
            {"type": "function", "function": {"name": "f", "description": "d", "parameters": schema, "strict": True}},
            {"type": "function", "function": {"name": "bare"}},
            {"type": "function", "function": {"name": "odd", "parameters": {"type": "string"}}},
            {"type": "custom", "custom": {"name": "patch"}},
            {"type": "function", "function": {"name": "f"}},
        ]
    )
    (tool,) = body["tools"]
    functions = tool["functionDeclarations"]
    assert [one["name"] for one in functions] == ["f", "bare", "odd", "patch"]
    assert functions[0] == {"name": "f", "description": "d", "parametersJsonSchema": schema}
    assert functions[1] == {"name": "bare"}
    assert functions[2]["parametersJsonSchema"]["properties"] == {"value": {"type": "string"}}
    assert functions[3]["parametersJsonSchema"]["required"] == ["input"]
    assert sorted(filter(None, reported)) == ["f", "f", "odd", "patch"]


@pytest.mark.parametrize(
    "parameters",
    [
        {"type": "STRING"},
        {"type": "OBJECT", "properties": {"a": {"type": "ARRAY"}}},
        {"type": "OBJECT", "properties": {"a": {"type": ["string", "null"]}}},
        {"type": "OBJECT", "properties": {"a": {"type": "STRING", "enum": ["", "b"]}}},
        {"type": "object", "$schema": "s", "properties": {"a": {"const": 1}}},
        {"type": "object", "properties": {"a": {"anyOf": [{"oneOf": []}]}}},
        {"type": "object", "required": [1]},
    ],
)
def test_schema_rejected_as_json_schema_is_sent_as_openapi(parameters: Any):
    function = {"name": "f", "description": "d", "parameters": parameters, "behavior": "BLOCKING"}
    body, reported = convert_same_api(tools=[{"functionDeclarations": [function]}, {"googleSearch": {}}])
    (made,) = body["tools"][0]["functionDeclarations"]
    assert "parameters" not in made
    assert (made["description"], made["behavior"]) == ("d", "BLOCKING")
    assert "parametersJsonSchema" in made
    assert body["tools"][1] == {"googleSearch": {}}
    assert reported == ["f"]


def test_invalid_declarations_are_repaired_for_same_api():
    twice = [{"name": "f", "parameters": {}, "parametersJsonSchema": {"type": "object"}}, {"name": "g", "colour": 1}]
    body, reported = convert_same_api(
        tools=[{"functionDeclarations": twice, "hologram": {}}, {"functionDeclarations": [{"name": "f"}]}]
    )
    assert body["tools"] == [
        {"functionDeclarations": [{"name": "f", "parametersJsonSchema": {"type": "object"}}, {"name": "g"}]},
        {"functionDeclarations": []},
    ]
    assert sorted(filter(None, reported)) == ["colour", "f", "f", "hologram"]


def test_deep_schema_is_supported():
    deep: dict[str, Any] = {"type": "STRING"}
    for _ in range(400):
        deep = {"type": "ARRAY", "items": deep}
    tools = [{"functionDeclarations": [{"name": "f", "parameters": {"type": "OBJECT", "properties": {"a": deep}}}]}]
    segue.convert({**HI, "tools": tools}, target="anthropic")
    assert segue.convert({**HI, "tools": tools}, target="gemini").body["tools"] == tools


# -------------------------------------------------------------------------------------------------------------- options


def test_options_are_parsed_in_camel_and_snake_case():
    camel = read_options(
        generationConfig={
            "maxOutputTokens": 10,
            "temperature": 0.5,
            "topP": 0.9,
            "topK": 40.0,
            "stopSequences": ["a"],
            "seed": 7,
            "presencePenalty": 0.1,
            "frequencyPenalty": 0.2,
        }
    )
    snake = read_options(
        generation_config={
            "max_output_tokens": 10,
            "temperature": 0.5,
            "top_p": 0.9,
            "top_k": 40,
            "stop_sequences": ["a"],
            "seed": 7,
            "presence_penalty": 0.1,
            "frequency_penalty": 0.2,
        }
    )
    assert camel == snake == Options(10, 0.5, 0.9, 40, ("a",), seed=7, presence_penalty=0.1, frequency_penalty=0.2)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"mode": "AUTO"}, ToolChoice("auto")),
        ({"mode": "any"}, ToolChoice("required")),
        ({"mode": "ANY", "allowedFunctionNames": ["a"]}, ToolChoice("tool", "a")),
        ({"mode": "ANY", "allowed_function_names": ["a", "b"]}, ToolChoice("required", allowed=("a", "b"))),
        ({"mode": "VALIDATED", "allowedFunctionNames": ["a"]}, ToolChoice("auto", allowed=("a",))),
        ({"mode": "NONE"}, ToolChoice("none")),
        ({"mode": "MODE_UNSPECIFIED"}, None),
        ({}, None),
    ],
)
def test_tool_choice_is_parsed(config: Any, expected: Any):
    assert read_options(toolConfig={"functionCallingConfig": config}).tool_choice == expected
    assert read_options(tool_config={"function_calling_config": config}).tool_choice == expected


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"thinkingBudget": 0}, Reasoning(enabled=False)),
        ({"thinkingBudget": -1}, Reasoning(enabled=True, adaptive=True)),
        ({"thinkingBudget": 512}, Reasoning(enabled=True, budget=512)),
        ({"thinkingLevel": "LOW"}, Reasoning(effort="low")),
        ({"thinking_level": "minimal"}, Reasoning(effort="minimal")),
        ({"thinkingLevel": "THINKING_LEVEL_UNSPECIFIED"}, None),
        ({"includeThoughts": True}, Reasoning(visible=True)),
    ],
)
def test_thinking_config_is_parsed(config: Any, expected: Any):
    assert read_options(generationConfig={"thinkingConfig": config}).reasoning == expected


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"responseMimeType": "application/json"}, ResponseFormat("json")),
        (
            {"responseMimeType": "application/json", "responseSchema": {"type": "OBJECT"}},
            ResponseFormat("schema", {"type": "object"}),
        ),
        (
            {"response_mime_type": "application/json", "response_json_schema": {"type": "array"}},
            ResponseFormat("schema", {"type": "array"}),
        ),
        ({"responseMimeType": "text/plain"}, ResponseFormat("text")),
        ({"responseMimeType": "text/x.enum"}, None),
        ({}, None),
    ],
)
def test_response_format_is_parsed(config: Any, expected: Any):
    assert read_options(generationConfig=config).response_format == expected


LOOK = [{"type": "function", "function": {"name": "look"}}]


@pytest.mark.parametrize(
    ("model", "fields", "config", "reported"),
    [
        (None, {"max_completion_tokens": 9, "seed": 1}, {"maxOutputTokens": 9, "seed": 1}, []),
        (None, {"temperature": 2, "top_p": 0.5}, {"temperature": 2, "topP": 0.5}, []),
        (None, {"stop": ["1", "2", "3", "4"]}, {"stopSequences": ["1", "2", "3", "4"]}, []),
        (None, {"presence_penalty": 0.5}, {}, ["presencePenalty"]),
        (None, {"frequency_penalty": 0}, {"frequencyPenalty": 0}, []),
        ("gemini-2.0-flash", {"presence_penalty": 0.5}, {"presencePenalty": 0.5}, []),
        (None, {"stream": True, "user": "u"}, {}, ["user", "stream"]),
        (None, {"response_format": {"type": "json_object"}}, {"responseMimeType": "application/json"}, []),
        (
            None,
            {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}},
            {"responseMimeType": "application/json", "responseJsonSchema": {"type": "object"}},
            [],
        ),
        ("gemini-2.5-pro", {"response_format": {"type": "json_object"}, "tools": LOOK}, {}, ["response_format"]),
        (None, {"reasoning_effort": "high"}, {"thinkingConfig": {"thinkingLevel": "HIGH"}}, []),
        (None, {"reasoning_effort": "minimal"}, {"thinkingConfig": {"thinkingLevel": "LOW"}}, ["reasoning"]),
        (
            "gemini-3-flash-preview",
            {"reasoning_effort": "minimal"},
            {"thinkingConfig": {"thinkingLevel": "MINIMAL"}},
            [],
        ),
        (
            "gemini-3-pro-preview",
            {"reasoning_effort": "medium"},
            {"thinkingConfig": {"thinkingLevel": "LOW"}},
            ["reasoning"],
        ),
        ("gemini-3.1-pro", {"reasoning_effort": "medium"}, {"thinkingConfig": {"thinkingLevel": "MEDIUM"}}, []),
        ("gemini-4-argon", {"reasoning_effort": "none"}, {"thinkingConfig": {"thinkingLevel": "LOW"}}, ["reasoning"]),
        ("gemini-2.5-flash", {"reasoning_effort": "none"}, {"thinkingConfig": {"thinkingBudget": 0}}, []),
        ("gemini-2.5-pro", {"reasoning_effort": "none"}, {"thinkingConfig": {"thinkingBudget": 128}}, ["reasoning"]),
        ("gemini-2.5-pro", {"reasoning_effort": "high"}, {"thinkingConfig": {"thinkingBudget": 16384}}, []),
        ("gemini-2.0-flash", {"reasoning_effort": "high"}, {}, ["reasoning"]),
        ("gemini-2.0-flash", {"reasoning_effort": "none"}, {}, []),
    ],
)
def test_cross_api_options(model: str | None, fields: Any, config: Any, reported: list[str]):
    body, subjects = convert_options(model, **fields)
    assert body.get("generationConfig", {}) == config
    assert subjects == reported


@pytest.mark.parametrize(
    ("model", "thinking", "config"),
    [
        ("gemini-3.8-flash", {"type": "enabled", "budget_tokens": 4000}, {**SHOWN, "thinkingLevel": "MEDIUM"}),
        ("gemini-3.8-flash", {"type": "adaptive"}, SHOWN),
        ("gemini-3.8-flash", {"type": "adaptive", "display": "omitted"}, None),
        ("gemini-2.5-flash", {"type": "adaptive"}, {**SHOWN, "thinkingBudget": -1}),
        ("gemini-2.5-flash", {"type": "enabled", "budget_tokens": 60_000}, {**SHOWN, "thinkingBudget": 24_576}),
        ("gemini-2.5-flash-lite", {"type": "enabled", "budget_tokens": 100}, {**SHOWN, "thinkingBudget": 512}),
    ],
)
def test_cross_api_budgets(model: str, thinking: Any, config: Any):
    given = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 9, "thinking": thinking}
    made = segue.convert(given, source="anthropic", target="gemini", model=model).body
    assert made["generationConfig"].get("thinkingConfig") == config


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        ("auto", {"mode": "AUTO"}),
        ("required", {"mode": "ANY"}),
        ("none", {"mode": "NONE"}),
        ({"type": "function", "function": {"name": "look"}}, {"mode": "ANY", "allowedFunctionNames": ["look"]}),
    ],
)
def test_cross_api_tool_choice(choice: Any, config: Any):
    body, _ = convert_options(tools=LOOK, tool_choice=choice)
    assert body["toolConfig"] == {"functionCallingConfig": config}
    body, reported = convert_options(tool_choice=choice)
    assert "toolConfig" not in body
    assert reported == ["tool_choice"]


def test_undeclared_forced_tool_is_dropped():
    gone = {"type": "function", "function": {"name": "gone"}}
    body, reported = convert_options(tools=LOOK, tool_choice=gone)
    assert "toolConfig" not in body
    assert reported == ["tool_choice"]
    hosted = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 9, "tools": ANTHROPIC_TOOLS}
    forced = {**hosted, "tool_choice": {"type": "tool", "name": "web_search"}}
    made = segue.convert(forced, source="anthropic", target="gemini")
    assert segue.check(made.body, "gemini")
    # GEM-24
    assert made.body["toolConfig"] == {"includeServerSideToolInvocations": True}


@pytest.mark.parametrize("names", ["gone", ["gone"], ["gone", "lost"]])
def test_undeclared_forced_function_for_same_api(names: Any):
    config = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": names}}
    body, reported = convert_same_api(tools=TOOLS, toolConfig=config)
    assert body["toolConfig"] == {"functionCallingConfig": {"mode": "AUTO"}}
    assert reported == ["tool_choice"]


def test_the_report_names_an_option_as_bodies_do():
    assert convert_options(parallel_tool_calls=False, tools=LOOK)[1] == ["parallel_tool_calls"]


def test_gemini_only_options_are_reported_cross_api():
    fields = {
        "generationConfig": {
            "candidateCount": 2,
            "temperature": 1,
            "speechConfig": {"x": 1},
            "thinkingConfig": {"thinkingLevel": "LOW", "includeThoughts": True},
        },
        "tool_config": {"retrieval_config": {"x": 1}},
        "safetySettings": [{}],
    }
    made = segue.convert({**HI, **fields}, target="openai-chat")
    assert [finding.subject for finding in made.report.findings_of("dropped")] == [
        "generationConfig.candidateCount",
        "generationConfig.speechConfig",
        "safetySettings",
        "tool_config.retrieval_config",
    ]


def test_other_model_of_same_api_gets_only_supported_options():
    config = {
        "temperature": 1,
        "presence_penalty": 0.5,
        "thinking_config": {"thinking_budget": 0, "include_thoughts": True},
    }
    body, _ = convert_same_api("gemini-3.8-flash", generation_config=config, model="gemini-2.0-flash")
    assert body["model"] == "gemini-3.8-flash"
    assert body["generation_config"] == {
        "temperature": 1,
        "thinking_config": {"thinkingLevel": "LOW", "includeThoughts": True},
    }
    body, _ = convert_same_api("gemini-2.5-pro", generationConfig={"thinkingConfig": {"thinkingLevel": "HIGH"}})
    assert body["generationConfig"] == {"thinkingConfig": {"thinkingBudget": 16384}}
    assert "model" not in body


def test_tool_choice_matches_the_declared_tools():
    config = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["look", "gone"]}}
    body, reported = convert_same_api(tools=TOOLS, toolConfig=config)
    assert body["toolConfig"] == {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["look"]}}
    assert reported == ["tool_choice"]
    body, _ = convert_same_api(
        tools=TOOLS, toolConfig={"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": ["look"]}}
    )
    assert body["toolConfig"] == {"functionCallingConfig": {"mode": "AUTO"}}
    body, _ = convert_same_api("gemini-2.5-pro", toolConfig={"includeServerSideToolInvocations": True})
    assert "includeServerSideToolInvocations" not in body["toolConfig"]


def test_system_text():
    system = GEMINI.parse_request({**HI, "systemInstruction": {"parts": [{"text": "a"}, {"inlineData": {}}]}}).system
    assert [text.text for text in system] == ["a", "[inlineData not supported here]"]
    assert convert_same_api(systemInstruction="plain words")[0]["systemInstruction"] == {
        "parts": [{"text": "plain words"}]
    }
    assert convert_same_api(system_instruction={"parts": [{}, {"text": "a"}]})[0]["system_instruction"] == {
        "parts": [{"text": "a"}]
    }
    made = segue.convert({"system": "a", "messages": [], "max_tokens": 1}, source="anthropic", target="gemini").body
    assert made["systemInstruction"] == {"parts": [{"text": "a"}]}
    with pytest.raises(InputError, match="systemInstruction"):
        GEMINI.parse_request({**HI, "systemInstruction": [3]})


# -------------------------------------------------------------------------------------------------------------- replies

REPLY = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [
                    {"text": "hm", "thought": True},
                    {"text": "I look."},
                    {"functionCall": {"name": "look", "args": {"q": 1}}, "thoughtSignature": "c2lnbmVkIQ=="},
                    {"functionCall": {"name": "look", "args": {"q": 2}}},
                    {"text": ""},
                ],
            },
            "finishReason": "STOP",
            "index": 0,
            "groundingMetadata": {"webSearchQueries": ["x"]},
        }
    ],
    "usageMetadata": {
        "promptTokenCount": 100,
        "cachedContentTokenCount": 60,
        "toolUsePromptTokenCount": 20,
        "candidatesTokenCount": 7,
        "thoughtsTokenCount": 3,
        "totalTokenCount": 130,
    },
    "modelVersion": "gemini-3.8-flash",
    "responseId": "r1",
}


def test_a_reply_is_read():
    reply = GEMINI.parse_reply(REPLY)
    assert (reply.finish, reply.id, reply.model) == ("tool_calls", "r1", "gemini-3.8-flash")
    assert (reply.text, reply.thinking) == ("I look.", "hm")
    assert reply.usage == Usage(input=120, output=10, cache_read=60, reasoning=3)
    assert [call.arguments for call in reply.calls] == [{"q": 1}, {"q": 2}]


def test_reply_is_unchanged_for_same_api():
    assert convert_reply(REPLY, GEMINI, GEMINI)[0] is REPLY
    converted = segue.convert(HI, source="gemini", target="gemini")
    # A shorter id may be a constant.
    reply = {**REPLY, "responseId": "mAitaLmkHPPlz7IPvtfUqQ4"}
    assert converted.reply(reply) == reply


def test_a_reply_goes_to_clients_of_other_apis():
    body, report = convert_reply(REPLY, GEMINI, ANTHROPIC)
    assert [block["type"] for block in body["content"]] == ["text", "tool_use", "tool_use"]
    assert body["stop_reason"] == "tool_use"
    assert report.findings_of("reasoning")
    body, _ = convert_reply(REPLY, GEMINI, OPENAI_CHAT)
    (choice,) = body["choices"]
    assert choice["message"]["reasoning_content"].strip() == "hm"
    assert len({entry["id"] for entry in choice["message"]["tool_calls"]}) == 2
    assert choice["finish_reason"] == "tool_calls"


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("STOP", "stop"),
        (None, "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "filter"),
        ("RECITATION", "filter"),
        ("PROHIBITED_CONTENT", "filter"),
        ("SPII", "filter"),
        ("MALFORMED_FUNCTION_CALL", "error"),
        ("UNEXPECTED_TOOL_CALL", "error"),
        ("TOO_MANY_TOOL_CALLS", "error"),
        ("OTHER", "error"),
        ("CONTINUATION", "pause"),
        ("A_NEW_ONE", "stop"),
    ],
)
def test_finish_reasons_are_read(reason: str | None, finish: str):
    assert GEMINI.parse_reply({"candidates": [{"finishReason": reason}]}).finish == finish


def test_every_sdk_finish_reason_is_supported():
    from segue.wire.gemini.reply import _FINISHES

    assert {reason.value for reason in types.FinishReason} <= _FINISHES.keys()


def test_a_blocked_prompt_is_a_reply_without_a_candidate():
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 4}}
    reply = GEMINI.parse_reply(blocked)
    assert (reply.finish, reply.blocks) == ("filter", ())
    assert convert_reply(blocked, GEMINI, GEMINI)[0] is blocked
    assert convert_reply(blocked, GEMINI, OPENAI_CHAT)[0]["choices"][0]["finish_reason"] == "content_filter"


CALL = ToolCall("look", {"q": 1}, origin=Origin("anthropic", raw_id="toolu_1"))


@pytest.mark.parametrize(
    ("fields", "reason", "parts"),
    [
        ({}, "STOP", [{"text": "hi"}]),
        ({"finish": "length"}, "MAX_TOKENS", [{"text": "hi"}]),
        ({"finish": "filter", "blocks": ()}, "SAFETY", None),
        ({"finish": "error", "blocks": ()}, "OTHER", None),
        ({"finish": "pause"}, "MAX_TOKENS", [{"text": "hi"}]),
        ({"blocks": ()}, "STOP", [{"text": ""}]),
        (
            {"blocks": (Thinking("hm", "sealed", origin=Origin("anthropic")), Text(""), CALL), "finish": "tool_calls"},
            "STOP",
            [
                {"text": "hm", "thought": True},
                {"functionCall": {"id": "ID", "name": "look", "args": {"q": 1}}, "thoughtSignature": SKIP},
            ],
        ),
        ({"blocks": (Thinking(encrypted="x", origin=Origin("anthropic")), Text("a"))}, "STOP", [{"text": "a"}]),
    ],
)
def test_cross_api_reply(fields: Any, reason: str, parts: Any):
    usage = Usage(input=10, output=5, cache_read=4, reasoning=2)
    body, _ = render_client_reply(
        Reply(**{"blocks": (Text("hi"),), "usage": usage, "id": "r", "model": "m", **fields}), GEMINI
    )
    (candidate,) = body["candidates"]
    assert candidate["finishReason"] == reason
    made = candidate.get("content", {}).get("parts")
    for part in made or ():
        if "functionCall" in part:
            part["functionCall"]["id"] = "ID"
    assert made == parts
    assert body["usageMetadata"] == {
        "promptTokenCount": 10,
        "candidatesTokenCount": 3,
        "totalTokenCount": 15,
        "cachedContentTokenCount": 4,
        "thoughtsTokenCount": 2,
    }
    assert (body["modelVersion"], body["responseId"]) == ("m", "r")
    types.GenerateContentResponse.model_validate_json(json.dumps(body))


def test_hosted_call_of_another_provider_is_dropped_from_reply():
    search = ToolCall("web_search", {"q": 1}, kind="hosted", origin=Origin("openai", raw_id="ws_1"))
    body, report = render_client_reply(Reply((search, search.respond("found"), Text("so"))), GEMINI)
    assert body["candidates"][0]["content"]["parts"] == [{"text": "so"}]
    assert [finding.kind for finding in report.findings] == ["dropped"]


@pytest.mark.parametrize(
    "garbage",
    [{}, {"candidates": []}, {"candidates": "x"}, {"candidates": [3]}, {"candidates": [{"content": {"parts": [3]}}]}],
)
def test_invalid_reply_is_rejected(garbage: Any):
    with pytest.raises(RemoteProtocolError):
        GEMINI.parse_reply(garbage)
    with pytest.raises(RemoteProtocolError):
        segue.convert(HI, source="gemini", target="gemini").reply(garbage)


def test_conversation_continues_on_gemini():
    chat = segue.Conversation(tools=[{"functionDeclarations": [{"name": "look"}, {"name": "find"}]}])
    chat.add_user("go")
    reply = chat.add_reply(REPLY)
    assert [tool.name for tool in chat.tools] == ["look", "find"]
    for call in reply.calls:
        chat.add_result(call, f"found {call.arguments['q']}")
    contents = chat.render("gemini").body["contents"]
    assert contents[1]["parts"][:4] == REPLY["candidates"][0]["content"]["parts"][:4]
    assert [part["functionResponse"]["response"] for part in contents[2]["parts"]] == [
        {"output": "found 1"},
        {"output": "found 2"},
    ]
    for target in ("anthropic", "openai-chat", "openai-responses", "kimi", "gemini"):
        assert segue.check(chat.render(target).body, target)


# --------------------------------------------------------------------------------------------------------------- errors


def test_errors_are_read():
    body = {
        "error": {
            "code": 400,
            "message": "Invalid JSON payload received.",
            "status": "INVALID_ARGUMENT",
            "details": [
                {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [{"field": "contents[1]"}]}
            ],
        }
    }
    expected = ApiError(400, "Invalid JSON payload received.", code="INVALID_ARGUMENT", param="contents[1]")
    assert GEMINI.parse_error(400, body) == expected
    assert GEMINI.parse_error(0, body) == expected
    assert GEMINI.parse_error(429, {}) == ApiError(429, "HTTP status 429", "rate_limit_error")
    assert GEMINI.parse_error(500, {"error": {"details": [3, {"fieldViolations": "x"}]}}).param is None
    with pytest.raises(RemoteProtocolError, match="Invalid JSON payload"):
        segue.convert(HI, source="gemini", target="gemini").reply(body)


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (400, "INVALID_ARGUMENT"),
        (401, "UNAUTHENTICATED"),
        (403, "PERMISSION_DENIED"),
        (404, "NOT_FOUND"),
        (422, "INVALID_ARGUMENT"),
        (429, "RESOURCE_EXHAUSTED"),
        (500, "INTERNAL"),
        (502, "INTERNAL"),
        (503, "UNAVAILABLE"),
        (529, "UNAVAILABLE"),
    ],
)
def test_errors_are_written_by_their_status(status: int, name: str):
    made = GEMINI.render_error(ApiError(status, "no", "anything", code="else"))
    # Only Anthropic has the status 529.
    assert made == {"error": {"code": 503 if status == 529 else status, "message": "no", "status": name}}
    known = ApiError(400, "no", code="FAILED_PRECONDITION")
    assert GEMINI.render_error(known)["error"]["status"] == "FAILED_PRECONDITION"


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (ApiError(400, "API key not valid.", code="API_KEY_INVALID"), "ErrorInfo"),
        (ApiError(400, "Unknown name.", code="INVALID_ARGUMENT", param="contents[1]"), "BadRequest"),
    ],
)
def test_error_details_parse_and_render(error: ApiError, detail: str):
    made = GEMINI.render_error(error)
    assert made["error"]["status"] == "INVALID_ARGUMENT"
    assert made["error"]["details"][0]["@type"] == f"type.googleapis.com/google.rpc.{detail}"
    assert GEMINI.parse_error(400, made) == error
    assert (
        GEMINI.parse_error(400, {"error": {"details": [{"reason": "OTHER"}, 3], "status": "ABORTED"}}).code == "ABORTED"
    )


# ----------------------------------------------------------------------------------------------------------------- fuzz

_KEYS = st.sampled_from(
    (
        *("functionDeclarations", "name", "description", "parameters", "parametersJsonSchema", "type", "properties"),
        *("items", "anyOf", "nullable", "enum", "required", "googleSearch", "functionCallingConfig", "mode", "ref"),
        *("allowedFunctionNames", "thinkingConfig", "thinkingBudget", "topK", "stopSequences", "responseSchema"),
        *("responseMimeType", "parts", "text", "category"),
    )
)
_VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-2, 2), st.just(1e30), st.sampled_from(["", "ANY", "OBJECT", "look"])
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=4)),
    max_leaves=12,
)
_FIELDS = ("tools", "toolConfig", "generationConfig", "systemInstruction", "safetySettings", "cachedContent", "model")


@examples(5)
@given(fields=st.dictionaries(st.sampled_from(_FIELDS), _VALUES, max_size=4))
def test_any_fields_give_a_body_or_an_input_error(fields: dict[str, Any]):
    for target in ("gemini", "anthropic"):
        try:
            made = segue.convert({**HI, **fields}, source="gemini", target=target).body
        except InputError:
            continue
        verdict = segue.check(made, target, model=made.get("model") if isinstance(made.get("model"), str) else None)
        assert verdict, f"{verdict}\n{json.dumps(made)}"
