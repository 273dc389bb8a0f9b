"""Malformed bodies and the provider's errors; everything its SDK can send is accepted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any, get_args

import pytest

from segue import conformance, emulator
from segue.conformance.anthropic import types as anthropic_types
from segue.emulator import Emulator, errors
from segue.emulator.client import post
from segue.emulator.errors import anthropic, openai_chat, openai_responses
from segue.emulator.http_messages import HttpRequest
from segue.wire.registry import WIRES
from tests.bodies import anthropic as bodies
from tests.bodies import chat
from tests.conversations import snapshot
from tests.emulator.envelopes import ENVELOPES
from tests.emulator.sdk_values import members_of, values_of

USER = chat.user()
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTION = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}
TOOL = {"name": "f", "input_schema": SCHEMA}
CHAT = ("openai-chat", "deepseek", "kimi", "qwen", "mistral")
APIS = (*CHAT, "openai-responses", "anthropic", "gemini")
MODELS = {api: WIRES[api].default_model for api in APIS} | {"anthropic": "claude-sonnet-4-5"}
CLAUDE_HISTORY = [USER, bodies.assistant(bodies.call()), bodies.user(bodies.result(content="42"))]
OPTIONS = HttpRequest("POST", "/", {}, {}, b"{}")


def least(api: str) -> dict[str, Any]:
    body: dict[str, Any] = {"model": MODELS[api]}
    if api == "openai-responses":
        return {**body, "input": "q"}
    if api == "gemini":
        return {**body, "contents": [{"role": "user", "parts": [{"text": "q"}]}]}
    return {**body, "messages": [USER], **({"max_tokens": 2000} if api == "anthropic" else {})}


@pytest.fixture(scope="module")
def running() -> Iterator[dict[str, Emulator]]:
    started = {api: emulator.start(api) for api in APIS}
    yield started
    for provider in started.values():
        provider.stop()


def function(**more: Any) -> dict[str, Any]:
    return {"tools": [chat.tool(**more)]}


def schema(value: Any) -> dict[str, Any]:
    return {"tools": [{"name": "f", "input_schema": {"type": "object", **value}}]}


def make_message(*parts: Any, role: str = "user") -> dict[str, Any]:
    return {"messages": [USER, {"role": role, "content": list(parts)}]}


PART = "messages[1].content[0].type"
PARTS = "'text', 'image_url', 'input_audio', 'refusal', 'audio', and 'file'"
ROLES = "'system', 'assistant', 'user', 'function', 'tool', and 'developer'"
NO_SCHEMA = "invalid_function_parameters"
PARAMETERS = "tools[0].function.parameters"
NAMED = {"type": "function", "function": {"name": "g"}}

# What is changed in the least body → message, code, param.
OPENAI_CHAT: list[tuple[dict[str, Any], str, str | None, str | None]] = [
    ({"messages": CLAUDE_HISTORY}, f"Invalid value: 'tool_use'. Supported values are: {PARTS}.", "invalid_value", PART),
    (make_message({"type": "txt"}), f"Invalid value: 'txt'. Supported values are: {PARTS}.", "invalid_value", PART),
    (
        make_message({"type": "image_url", "image_url": {"url": "https://x/y.png"}}, role="system"),
        (
            "Invalid 'messages[1]'. Image URLs are only allowed for messages with role 'user', but this message with "
            "role 'system' contains an image URL."
        ),
        "invalid_value",
        "messages[1]",
    ),
    (
        make_message({"type": "image_url", "image_url": "https://x/y.png"}),
        "Invalid type for 'messages[1].content[0].image_url': expected an object, but got a string instead.",
        "invalid_type",
        "messages[1].content[0].image_url",
    ),
    (
        make_message({"type": "text"}),
        "Missing required parameter: 'messages[1].content[0].text'.",
        "missing_required_parameter",
        "messages[1].content[0].text",
    ),
    (make_message({"text": "x"}), f"Missing required parameter: '{PART}'.", "missing_required_parameter", PART),
    (
        {"messages": "q"},
        "Invalid type for 'messages': expected an array of objects, but got a string instead.",
        "invalid_type",
        "messages",
    ),
    (
        {"messages": []},
        "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
        "empty_array",
        "messages",
    ),
    (
        {"messages": ["q"]},
        "Invalid type for 'messages[0]': expected an object, but got a string instead.",
        "invalid_type",
        "messages[0]",
    ),
    (
        {"messages": [{"role": "bot", "content": "q"}]},
        f"Invalid value: 'bot'. Supported values are: {ROLES}.",
        "invalid_value",
        "messages[0].role",
    ),
    (
        {"messages": [{"content": "q"}]},
        "Missing required parameter: 'messages[0].role'.",
        "missing_required_parameter",
        "messages[0].role",
    ),
    (
        {"messages": [{"role": "user", "content": 5}]},
        (
            "Invalid type for 'messages[0].content': expected one of a string or array of objects, but got an integer "
            "instead."
        ),
        "invalid_type",
        "messages[0].content",
    ),
    ({"tools": [TOOL]}, "Missing required parameter: 'tools[0].type'.", "missing_required_parameter", "tools[0].type"),
    (
        {"tools": [{"type": "bash_20250124", "name": "bash"}]},
        "Invalid value: 'bash_20250124'. Supported values are: 'function' and 'custom'.",
        "invalid_value",
        "tools[0].type",
    ),
    (
        {"tools": [{"type": "function", "name": "f", "parameters": SCHEMA}]},
        "Missing required parameter: 'tools[0].function'.",
        "missing_required_parameter",
        "tools[0].function",
    ),
    (
        function(parameters=5),
        "Invalid type for 'tools[0].function.parameters': expected an object, but got an integer instead.",
        "invalid_type",
        PARAMETERS,
    ),
    (
        function(parameters="str"),
        "Invalid type for 'tools[0].function.parameters': expected an object, but got a string instead.",
        "invalid_type",
        PARAMETERS,
    ),
    (
        function(parameters=[]),
        "Invalid type for 'tools[0].function.parameters': expected an object, but got an array instead.",
        "invalid_type",
        PARAMETERS,
    ),
    (
        function(parameters=False),
        "Invalid type for 'tools[0].function.parameters': expected an object, but got a boolean instead.",
        "invalid_type",
        PARAMETERS,
    ),
    (
        function(parameters={"type": "banana"}),
        "Invalid schema for function 'f': 'banana' is not valid under any of the given schemas.",
        NO_SCHEMA,
        PARAMETERS,
    ),
    (
        function(parameters={"type": "array"}),
        "Invalid schema for function 'f': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"array\"'.",
        NO_SCHEMA,
        PARAMETERS,
    ),
    (
        function(parameters={"type": "object", "properties": {"a": {"type": "object", "properties": []}}}),
        "Invalid schema for function 'f': [] is not of type 'object'.",
        NO_SCHEMA,
        PARAMETERS,
    ),
    (
        function(parameters={"type": "object", "required": "a"}),
        "Invalid schema for function 'f': 'a' is not of type 'array'.",
        NO_SCHEMA,
        PARAMETERS,
    ),
    (
        {"tools": [FUNCTION], "tool_choice": NAMED},
        "Invalid value for 'tool_choice': no tool named 'g' was specified in the 'tools' parameter.",
        None,
        "tool_choice",
    ),
    (
        {"tool_choice": "auto"},
        "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
        None,
        "tool_choice",
    ),
    (
        {"tools": [FUNCTION], "tool_choice": "any"},
        "Invalid value: 'any'. Supported values are: 'none', 'auto', and 'required'.",
        "invalid_value",
        "tool_choice",
    ),
    ({"bogus": 1}, "Unrecognized request argument supplied: bogus", None, None),
    ({"top_k": 1, "thinking": {}}, "Unrecognized request arguments supplied: top_k, thinking", None, None),
    (
        {"stream": "yes"},
        "Invalid type for 'stream': expected a boolean, but got a string instead.",
        "invalid_type",
        "stream",
    ),
    ({"model": 5}, "Invalid type for 'model': expected a string, but got an integer instead.", "invalid_type", "model"),
    (
        {"n": -1},
        "Invalid 'n': integer below minimum value. Expected a value >= 1, but got -1 instead.",
        "integer_below_min_value",
        "n",
    ),
    (
        {"max_tokens": 0},
        "Invalid 'max_tokens': integer below minimum value. Expected a value >= 1, but got 0 instead.",
        "integer_below_min_value",
        "max_tokens",
    ),
    (
        {"temperature": 3.5},
        "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3.5 instead.",
        "decimal_above_max_value",
        "temperature",
    ),
    (
        {"temperature": "hot"},
        "Invalid type for 'temperature': expected a decimal, but got a string instead.",
        "invalid_type",
        "temperature",
    ),
    (
        {"stop": [1]},
        "Invalid type for 'stop[0]': expected a string, but got an integer instead.",
        "invalid_type",
        "stop[0]",
    ),
    (
        {"model": "claude-sonnet-4-5"},
        "The model `claude-sonnet-4-5` does not exist or you do not have access to it.",
        "model_not_found",
        None,
    ),
]
OPENAI_RESPONSES: list[tuple[dict[str, Any], str, str | None, str | None]] = [
    (
        {"input": []},
        "Invalid 'input': empty array. Expected an array with minimum length 1, but got an empty array instead.",
        "empty_array",
        "input",
    ),
    ({"bogus": 1}, "Unknown parameter: 'bogus'.", "unknown_parameter", "bogus"),
    (
        {"max_tokens": 5},
        (
            "Unsupported parameter: 'max_tokens'. In the Responses API, this parameter has moved to "
            "'max_output_tokens'. Try again with the new parameter."
        ),
        "unsupported_parameter",
        "max_tokens",
    ),
    ({"tools": [FUNCTION]}, "Missing required parameter: 'tools[0].name'.", "missing_required_parameter", None),
    (
        {"tools": [{"type": "function", "name": "f", "parameters": 5}]},
        "Invalid type for 'tools[0].parameters': expected an object, but got an integer instead.",
        "invalid_type",
        "tools[0].parameters",
    ),
    (
        {"tools": [{"type": "function", "name": "f"}], "tool_choice": {"type": "function", "name": "g"}},
        "Tool choice 'g' not found in 'tools' parameter.",
        None,
        "tool_choice",
    ),
    (
        {"max_output_tokens": "5"},
        "Invalid type for 'max_output_tokens': expected an integer, but got a string instead.",
        "invalid_type",
        "max_output_tokens",
    ),
    (
        {"model": "gemini-2.5-pro"},
        "The model `gemini-2.5-pro` does not exist or you do not have access to it.",
        "model_not_found",
        None,
    ),
]
TAGS = ", ".join(f"'{name}'" for name in sorted(anthropic_types.BLOCKS))
TOOL_TAGS = ", ".join(f"'{name}'" for name in sorted(anthropic_types.TOOLS))
NO_2020_12 = (
    "tools.0.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12 "
    "(https://json-schema.org/draft/2020-12). Learn more about tool use at https://docs.claude.com/en/docs/tool-use."
)
ABOVE = "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at "
SYSTEM = {"role": "system", "content": "Be brief."}
BUDGET = {"type": "enabled", "budget_tokens": 5000}
OTHERS: dict[str, list[tuple[dict[str, Any], str]]] = {
    "anthropic": [
        (
            make_message({"type": "image_url", "image_url": {"url": "https://x/y.png"}}),
            "messages.1.content.0: Input tag 'image_url' found using 'type' does not match any of the expected tags: "
            + TAGS,
        ),
        (make_message({"type": "image"}), "messages.1.content.0.image.source: Field required"),
        (
            make_message({"type": "image", "source": {"type": "base64", "data": "eA=="}}),
            "messages.1.content.0.image.source.base64.media_type: Field required",
        ),
        (
            {"tools": [FUNCTION]},
            f"tools.0: Input tag 'function' found using 'type' does not match any of the expected tags: {TOOL_TAGS}",
        ),
        ({"messages": []}, "messages: at least one message is required"),
        ({"messages": "q"}, "messages: Input should be a valid list"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages.0.content: Input should be a valid list"),
        ({"messages": [USER, SYSTEM]}, "role 'system' is not supported on this model"),
        ({"messages": [USER, SYSTEM], "model": "claude-opus-4-7"}, "role 'system' is not supported on this model"),
        ({"messages": [SYSTEM], "model": "claude-opus-5"}, 'messages: first message must use the "user" role'),
        (schema({"properties": []}), NO_2020_12),
        (schema({"required": "x"}), NO_2020_12),
        (schema({"properties": {"a": {"type": "banana"}}}), NO_2020_12),
        ({"tools": [TOOL], "tool_choice": {"type": "tool", "name": "g"}}, "Tool 'g' not found in provided tools"),
        ({"tool_choice": {"type": "any"}}, "tool_choice may only be specified while providing tools"),
        (
            {"tools": [TOOL], "tool_choice": {"type": "required"}},
            (
                "tool_choice: Input tag 'required' found using 'type' does not match any of the expected tags: 'any', "
                "'auto', 'none', 'tool'"
            ),
        ),
        ({"temprature": 1}, "temprature: Extra inputs are not permitted"),
        ({"temperature": 1.5}, "temperature: Input should be less than or equal to 1"),
        ({"max_tokens": "5"}, "max_tokens: Input should be a valid integer"),
        ({"max_tokens": -5}, "max_tokens: Input should be greater than or equal to 0"),
        ({"stream": "yes"}, "stream: Input should be a valid boolean"),
        ({"stop_sequences": "x"}, "stop_sequences: Input should be a valid list"),
        ({"service_tier": "flex"}, "service_tier: Input should be 'auto' or 'standard_only'"),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 5}},
            "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
        ),
        ({"thinking": {"budget_tokens": 2000}}, "thinking: Unable to extract tag using discriminator 'type'"),
        ({"thinking": BUDGET}, ABOVE),
        ({"model": 5}, "model: Input should be a valid string"),
        ({"model": "gpt-4.1"}, "model: gpt-4.1"),
    ],
    "deepseek": [
        (
            {"messages": CLAUDE_HISTORY},
            (
                "Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `tool_use`, "
                "expected `text` at line 1 column "
            ),
        ),
        ({"messages": []}, "Empty input messages"),
        (
            {"messages": [{"role": "bot", "content": "q"}]},
            (
                "Failed to deserialize the JSON body into the target type: messages[0].role: unknown variant `bot`, "
                "expected one of `system`, `user`, `assistant`, `tool`, `latest_reminder` at line 1 column "
            ),
        ),
        (
            {"stream": "yes"},
            (
                'Failed to deserialize the JSON body into the target type: stream: invalid type: string "yes", '
                "expected a boolean at line 1 column "
            ),
        ),
        ({"tools": [TOOL]}, "Failed to deserialize the JSON body into the target type: tools[0]: missing field `type`"),
        ({"temperature": 3}, "Invalid temperature value, the valid range of temperature is [0, 2.0]"),
        (function(parameters={"type": "array"}), "Invalid schema for function 'f': schema must be a JSON Schema of"),
        ({"model": "gpt-4.1"}, "Model Not Exist"),
    ],
    "kimi": [
        (
            {"messages": CLAUDE_HISTORY},
            "Invalid request: unsupported content type 'tool_use' in message with role 'assistant'",
        ),
        ({"messages": []}, "Invalid request: messages must not be empty"),
        ({"tools": [TOOL]}, "Invalid request: tools[0].type is required"),
        ({"stream": "yes"}, "Invalid request: stream must be a boolean"),
        ({"tools": [FUNCTION], "tool_choice": NAMED}, "Invalid request: tool_choice: tool g is not found in tools"),
        ({"model": "gpt-4.1"}, "Not found the model gpt-4.1 or Permission denied"),
    ],
    "qwen": [
        (
            {"messages": CLAUDE_HISTORY},
            "Invalid value: tool_use. Supported values are: 'text','image_url','video_url' and 'video'.",
        ),
        ({"stream": "yes"}, "'yes' is not of type 'boolean' - 'stream'"),
        ({"messages": "q"}, "'q' is not of type 'array' - 'messages'"),
        ({"tools": [TOOL]}, "'type' is a required property - 'tools.0'"),
        ({"max_tokens": 0}, "<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 65536]"),
        ({"model": "claude-opus-5"}, "The model `claude-opus-5` does not exist or you do not have access to it."),
    ],
    "mistral": [
        ({"messages": "q"}, "Input should be a valid list"),
        ({"messages": [{"content": "q"}]}, "Unable to extract tag using discriminator 'role'"),
    ],
}


@pytest.mark.parametrize(
    ("api", "changed", "message", "code", "param"),
    [*(("openai-chat", *row) for row in OPENAI_CHAT), *(("openai-responses", *row) for row in OPENAI_RESPONSES)],
)
def test_openai_refuses(
    running: dict[str, Emulator], api: str, changed: dict[str, Any], message: str, code: str | None, param: str | None
) -> None:
    sent = post(running[api], {**least(api), **changed})
    error = sent.body["error"]
    assert (error["message"], error["code"]) == (message, code)
    assert error["param"] == param or code == "missing_required_parameter"
    assert sent.status == (404 if code == "model_not_found" else 400)
    assert running[api].requests[-1].refused == message


@pytest.mark.parametrize(("api", "changed", "message"), [(api, *row) for api, rows in OTHERS.items() for row in rows])
def test_others_refuse(running: dict[str, Emulator], api: str, changed: dict[str, Any], message: str) -> None:
    sent = post(running[api], {**least(api), **changed})
    parsed = ENVELOPES[api](sent)
    long = message.endswith((" ", "`", "of"))
    assert (parsed.message[: len(message)] if long else parsed.message) == message
    assert sent.status in (400, 404, 422)


@pytest.mark.parametrize("api", APIS)
def test_a_model_of_another_vendor_is_not_found(running: dict[str, Emulator], api: str) -> None:
    other = "gpt-4.1" if api != "openai-chat" and api != "openai-responses" else "claude-opus-5"
    sent = post(running[api], {**least(api), "model": other})
    assert ENVELOPES[api](sent).message
    assert sent.status == {"deepseek": 400, "mistral": 400}.get(api, 404)
    assert post(running[api], least(api)).status == 200


VALID_BODIES: dict[str, list[dict[str, Any]]] = {
    "anthropic": [
        {"messages": [USER, SYSTEM], "model": "claude-opus-4-8"},
        {"messages": [USER, SYSTEM], "model": "claude-sonnet-5"},
        {"thinking": {"type": "enabled", "budget_tokens": 1999}},
        {"max_tokens": 0},
        {"tools": [TOOL], "tool_choice": {"type": "tool", "name": "f"}},
        {"tool_choice": {"type": "none"}},
        {"temperature": 1, "top_p": 0.5, "top_k": 3},
    ],
    "openai-chat": [{"tools": [FUNCTION], "tool_choice": "auto"}, function(), function(parameters={}), {"stop": "x"}],
    "openai-responses": [{"client_metadata": {"a": "b"}}, {"tools": [{"type": "web_search"}]}],
    "deepseek": [{"thinking": {"type": "disabled"}, "bogus": 1}],
    "kimi": [{"thinking": {"type": "disabled"}, "bogus": 1}],
    "qwen": [{"enable_thinking": False, "bogus": 1}, {"model": "deepseek-v3.2"}],
}


@pytest.mark.parametrize(("api", "changed"), [(api, row) for api, rows in VALID_BODIES.items() for row in rows])
def test_similar_valid_bodies_are_accepted(running: dict[str, Emulator], api: str, changed: dict[str, Any]) -> None:
    sent = post(running[api], {**least(api), **changed})
    assert sent.status == 200, sent.data


def test_a_budget_above_with_interleaved_thinking(running: dict[str, Emulator]) -> None:
    body = {**least("anthropic"), "thinking": BUDGET, "tools": [TOOL]}
    assert post(running["anthropic"], body).status == 400
    beta = {"anthropic-beta": "interleaved-thinking-2025-05-14"}
    assert post(running["anthropic"], body, headers=beta).status == 200


def test_no_form_is_looked_at_where_the_provider_is_lenient() -> None:
    with emulator.start("openai-chat", strict=False) as provider:
        assert post(provider, {**least("openai-chat"), "bogus": 1, "n": -1}).status == 200


def test_server_profile_requires_messages_only() -> None:
    with emulator.start("openai-chat", profile="vllm") as provider:
        assert post(provider, {"model": "qwen3", "messages": [USER], "top_k": 3}).status == 200
        sent = post(provider, {"model": "qwen3", "messages": "q"})
        assert sent.status == 400
        assert "Invalid type for 'messages'" in sent.data.decode()


@pytest.mark.parametrize(
    ("api", "data", "parsed"),
    [
        ("anthropic", b"{nope", "not valid JSON: unexpected character: line 1 column 2 (char 1)"),
        ("anthropic", b'{"a": 1,\n "b" 2}', "not valid JSON: unexpected character: line 2 column 6 (char 14)"),
        ("anthropic", b'{"a": "b', "not valid JSON: unexpected end of data: line 1 column 9 (char 8)"),
        ("anthropic", b"", "not valid JSON: Input is a zero-length, empty document: line 1 column 1 (char 0)"),
        ("anthropic", b'{"a": NaN}', "not valid JSON: unexpected character: line 1 column 7 (char 6)"),
        ("anthropic", b"[]", "Input should be a valid dictionary or object to extract fields from"),
        ("deepseek", b"{nope", "Failed to parse the request body as JSON: key must be a string at line 1 column 2"),
        ("deepseek", b"", "Failed to parse the request body as JSON: EOF while parsing a value at line 1 column 0"),
        ("deepseek", b"[]", "invalid type: sequence, expected struct ChatCompletionRequest at line 1 column 2"),
    ],
)
def test_where_an_unreadable_body_stops(running: dict[str, Emulator], api: str, data: bytes, parsed: str) -> None:
    assert ENVELOPES[api](post(running[api], data)).message.endswith(parsed)


def test_mistral_reports_byte_offsets(running: dict[str, Emulator]) -> None:
    (finding,) = post(running["mistral"], '{"ä": nope'.encode()).body["detail"]
    assert (finding["type"], finding["loc"]) == ("json_invalid", ["body", 7])


ODD = (None, 5, -1.5, True, "x", "", [], [5], {}, {"type": 5}, {"type": "function"}, [{"type": "x"}], [[]])


def mutated(value: Any) -> Iterator[Any]:
    """A body with something odd in each place of it, in turn."""
    yield from ODD
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from ({**value, key: other} for other in mutated(inner))
            yield {name: kept for name, kept in value.items() if name != key}
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from ([*value[:at], other, *value[at + 1 :]] for other in mutated(inner))


FULL: dict[str, dict[str, Any]] = {
    **{api: {"messages": CLAUDE_HISTORY, "tools": [FUNCTION], "tool_choice": NAMED} for api in CHAT},
    "anthropic": {"messages": CLAUDE_HISTORY, "tools": [TOOL], "tool_choice": {"type": "tool", "name": "f"}},
    "openai-responses": {
        "tools": [{"type": "function", "name": "f"}],
        "tool_choice": {"type": "function", "name": "f"},
    },
}


@pytest.mark.parametrize("api", FULL)
def test_any_json_gets_a_response(api: str) -> None:
    whole = {**least(api), **FULL[api], "thinking": {"type": "enabled", "budget_tokens": 2000}, "stream": False}
    count = 0
    for body in mutated(whole):
        # Members that are missing are told before.
        if isinstance(body, dict) and body.keys() >= least(api).keys():
            count += errors.validate(api, body, OPTIONS) is not None
    assert count > 50


# ---------------------------------------------------------------------------------------------- what the SDKs can send


def module(path: str) -> Any:
    pytest.importorskip(path.partition(".")[0])
    return import_module(path)


def each_member(params: Any, body: Mapping[str, Any], besides: set[str]) -> Iterator[dict[str, Any]]:
    for name, hint in members_of(params).items():
        if name not in besides:
            yield from ({**body, name: value} for value in values_of(hint))


def chat_fits(body: Mapping[str, Any]) -> bool:
    """Whether a generated body hangs together: who chooses among tools has declared them."""
    return "tool_choice" not in body and not ("messages" in body and not body["messages"])


def test_sdk_chat_bodies_are_accepted() -> None:
    params = module("openai.types.chat.completion_create_params").CompletionCreateParamsStreaming
    assert members_of(params).keys() == openai_chat.SPEC.members.keys()
    bodies = [*each_member(params, least("openai-chat"), {"model"})]
    assert len(bodies) > 150
    for body in filter(chat_fits, bodies):
        assert openai_chat.validate_body(body, OPTIONS) is None, body
    for choice in values_of(members_of(params)["tool_choice"]):
        named = {"name": "text"}
        tools = [{"type": "function", "function": named}, {"type": "custom", "custom": named}]
        body = {**least("openai-chat"), "tools": tools, "tool_choice": choice}
        assert openai_chat.validate_body(body, OPTIONS) is None, choice


def test_sdk_responses_bodies_are_accepted() -> None:
    params = module("openai.types.responses.response_create_params").ResponseCreateParamsStreaming
    assert members_of(params).keys() | {"client_metadata"} == openai_responses.MEMBERS.keys()
    bodies = [*each_member(params, least("openai-responses"), {"model"})]
    assert len(bodies) > 300
    named = [{"type": "function", "name": "text"}, {"type": "custom", "name": "text"}]
    for body in bodies:
        if body["input"] == []:
            continue
        whole = {**body, "tools": named} if "tool_choice" in body else body
        for entry in whole.get("context_management") or ():
            # In the SDK a string and an integer; it says that there is one type.
            entry["type"] = "compaction"
            entry.update({"compact_threshold": 1000} if entry.get("compact_threshold") else {})
        assert openai_responses.validate_body(whole, OPTIONS) is None, whole


@pytest.mark.parametrize("package", ["anthropic.types", "anthropic.types.beta"])
def test_sdk_messages_bodies_are_accepted(package: str) -> None:
    params = module(f"{package}.message_create_params").MessageCreateParamsStreaming
    assert members_of(params).keys() - {"betas"} <= anthropic_types.MEMBERS.keys()
    bodies = [*each_member(params, least("anthropic") | {"model": "claude-opus-5"}, {"model", "betas", "max_tokens"})]
    assert len(bodies) > 300
    with_betas = replace(OPTIONS, headers={"anthropic-beta": "compact-2026-01-12,compact-2026-09-04"})
    for body in bodies:
        thinking = body.get("thinking")
        if not body["messages"] or body["messages"][0]["role"] == "system":
            continue
        if thinking is not None and "budget_tokens" in thinking:
            body["thinking"] = {**thinking, "budget_tokens": 1024}
        if "tool_choice" in body:
            body["tools"] = [{"name": "text", "input_schema": SCHEMA}]
        assert anthropic.validate_body(body, with_betas) is None, body


def tags(union: Any) -> set[str]:
    found: set[str] = set()
    for member in get_args(union):
        hints = members_of(member) if hasattr(member, "__required_keys__") else {}
        found.update(value for value in values_of(hints.get("type", None)) if isinstance(value, str))
    return found


def test_blocks_and_tools_are_those_of_the_sdk() -> None:
    blocks, tools = set[str](), set[str]()
    for package, beta in (("anthropic.types", ""), ("anthropic.types.beta", "Beta")):
        name = beta.lower() + "_" if beta else ""
        blocks |= tags(getattr(module(f"{package}.{name}content_block_param"), f"{beta}ContentBlockParam"))
        tools |= tags(getattr(module(f"{package}.{name}tool_union_param"), f"{beta}ToolUnionParam"))
    assert blocks == set(anthropic_types.BLOCKS)
    assert tools | {"custom"} == set(anthropic_types.TOOLS)


# ------------------------------------------------------------------------------------------- what segue itself renders

# What was asked for in words of no API, or what came so and goes back as it came.
KEPT = {
    ("responses_unknown_items", "openai-responses"),
    ("system_in_the_messages", "anthropic"),
    ("only_a_system", "openai-responses"),
    ("unknown_block", "anthropic"),
    ("unknown_fields", "openai-chat"),
}


def test_bodies_valid_for_the_checker_pass_validation() -> None:
    seen, refused = 0, set[tuple[str, str]]()
    for name in snapshot.names():
        for api, column in snapshot.read(name).items():
            body = column["body"]
            if not body or api not in conformance.apis() or not conformance.check_body(body, api):
                continue
            seen += 1
            whole = {"max_tokens": 4096, **body} if api == "anthropic" else body
            if errors.validate(api, whole, OPTIONS) is not None:
                refused.add((name, api))
    assert seen > 3000
    assert refused == KEPT
