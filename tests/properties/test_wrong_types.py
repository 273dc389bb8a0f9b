"""Fields of the wrong type are an `InputError` with their path in `convert` and `repair`; null means absent."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import segue
from segue.canonical.json import encode_json
from segue.errors import UndetectedApiError
from segue.wire.registry import WIRES
from tests.properties.test_invalid_values import EACH, TARGETS, mutants

_NOT_STRINGS: tuple[Any, ...] = (5, True, [], {})
_NOT_NUMBERS: tuple[Any, ...] = ("hot", True, [], {})
_NOT_INTEGERS: tuple[Any, ...] = ("many", 1.5, True, [], {})
_NOT_BOOLEANS: tuple[Any, ...] = ("yes", 1, [], {})
_NOT_OBJECTS: tuple[Any, ...] = ("x", 5, True, [])
_NOT_SCHEMAS: tuple[Any, ...] = ("x", 5, True, [])
_NOT_LISTS: tuple[Any, ...] = ("x", 5, True)
_NOT_TEXT_LISTS: tuple[Any, ...] = (5, True, {}, [5])
_CHAT_FIELDS: dict[str, tuple[Any, ...]] = {
    "model": _NOT_STRINGS,
    "messages": (*_NOT_LISTS, {}),
    "messages[0]": (*_NOT_OBJECTS,),
    "messages[0].role": (*_NOT_STRINGS, "narrator", ""),
    "messages[0].name": _NOT_STRINGS,
    "messages[0].content": (5, True, {}),
    "messages[1].content[0].text": (*_NOT_STRINGS, None),
    "messages[1].content[0].type": _NOT_STRINGS,
    "messages[1].content[1].image_url": (5, True, [], {}, None),
    "messages[1].content[1].image_url.url": (*_NOT_STRINGS, None),
    "messages[1].content[1].image_url.detail": _NOT_STRINGS,
    "messages[1].content[2].input_audio": (5, True, [], {}, None),
    "messages[1].content[2].input_audio.data": (*_NOT_STRINGS, None),
    "messages[1].content[2].input_audio.format": (*_NOT_STRINGS, None),
    "messages[1].content[3].file": (*_NOT_OBJECTS, None),
    "messages[1].content[3].file.file_data": _NOT_STRINGS,
    "messages[1].content[3].file.filename": _NOT_STRINGS,
    "messages[2].tool_calls": (*_NOT_LISTS, {}),
    "messages[2].tool_calls[0]": _NOT_OBJECTS,
    "messages[2].tool_calls[0].id": _NOT_STRINGS,
    "messages[2].tool_calls[0].function": _NOT_OBJECTS,
    "messages[2].tool_calls[0].function.name": _NOT_STRINGS,
    "messages[2].reasoning_content": _NOT_STRINGS,
    "messages[2].refusal": _NOT_STRINGS,
    "messages[3].tool_call_id": _NOT_STRINGS,
    "messages[3].content": (5, True, {}),
    "tools": _NOT_LISTS,
    "tools[0]": _NOT_OBJECTS,
    "tools[0].function": (*_NOT_OBJECTS, None),
    "tools[0].function.name": (*_NOT_STRINGS, None),
    "tools[0].function.description": _NOT_STRINGS,
    "tools[0].function.parameters": _NOT_SCHEMAS,
    "tools[0].function.strict": _NOT_BOOLEANS,
    "temperature": _NOT_NUMBERS,
    "top_p": _NOT_NUMBERS,
    "max_tokens": _NOT_INTEGERS,
    "stream": _NOT_BOOLEANS,
    "stream_options": _NOT_OBJECTS,
    "stop": _NOT_TEXT_LISTS,
    "tool_choice": (5, True, []),
    "tool_choice.type": _NOT_STRINGS,
    "tool_choice.function": _NOT_OBJECTS,
    "tool_choice.function.name": _NOT_STRINGS,
    "response_format": _NOT_OBJECTS,
    "response_format.type": _NOT_STRINGS,
    "response_format.json_schema": _NOT_OBJECTS,
    "response_format.json_schema.schema": _NOT_SCHEMAS,
    "response_format.json_schema.strict": _NOT_BOOLEANS,
    "parallel_tool_calls": _NOT_BOOLEANS,
    "presence_penalty": _NOT_NUMBERS,
    "frequency_penalty": _NOT_NUMBERS,
    "n": _NOT_INTEGERS,
    "logprobs": _NOT_BOOLEANS,
    "top_logprobs": _NOT_INTEGERS,
}
_OPENAI_FIELDS: dict[str, tuple[Any, ...]] = {
    "max_completion_tokens": _NOT_INTEGERS,
    "seed": _NOT_INTEGERS,
    "user": _NOT_STRINGS,
    "store": _NOT_BOOLEANS,
    "metadata": _NOT_OBJECTS,
    "service_tier": _NOT_STRINGS,
    "audio": _NOT_OBJECTS,
    "logit_bias": _NOT_OBJECTS,
    "modalities": (*_NOT_TEXT_LISTS, "x"),
    "prediction": _NOT_OBJECTS,
    "web_search_options": _NOT_OBJECTS,
}
_RESPONSES_FIELDS: dict[str, tuple[Any, ...]] = {
    "model": _NOT_STRINGS,
    "input": (5, True, {}),
    "input[0]": _NOT_OBJECTS,
    "input[0].role": (*_NOT_STRINGS, "narrator"),
    "input[0].content": (5, True, {}),
    "input[1].content[0].text": (*_NOT_STRINGS, None),
    "input[1].content[1].image_url": (5, True, []),
    "input[1].content[1].file_id": _NOT_STRINGS,
    "input[1].content[2].file_data": _NOT_STRINGS,
    "input[1].content[2].file_url": _NOT_STRINGS,
    "input[1].content[2].file_id": _NOT_STRINGS,
    "input[1].content[2].filename": _NOT_STRINGS,
    "input[2].call_id": _NOT_STRINGS,
    "input[2].name": _NOT_STRINGS,
    "input[3].call_id": _NOT_STRINGS,
    "instructions": (5, True, {}),
    "tools": (*_NOT_LISTS, {}),
    "tools[0].name": (*_NOT_STRINGS, None),
    "tools[0].description": _NOT_STRINGS,
    "tools[0].parameters": _NOT_SCHEMAS,
    "tools[0].strict": _NOT_BOOLEANS,
    "temperature": _NOT_NUMBERS,
    "top_p": _NOT_NUMBERS,
    "max_output_tokens": _NOT_INTEGERS,
    "stream": _NOT_BOOLEANS,
    "parallel_tool_calls": _NOT_BOOLEANS,
    "tool_choice": (5, True, [], "sometimes"),
    "tool_choice.type": _NOT_STRINGS,
    "tool_choice.name": _NOT_STRINGS,
    "reasoning": _NOT_OBJECTS,
    "reasoning.effort": _NOT_STRINGS,
    "text": _NOT_OBJECTS,
    "text.format": _NOT_OBJECTS,
    "text.format.schema": _NOT_SCHEMAS,
    "previous_response_id": _NOT_STRINGS,
    "include": (*_NOT_TEXT_LISTS, "x"),
    "truncation": _NOT_STRINGS,
    "background": _NOT_BOOLEANS,
    "top_logprobs": _NOT_INTEGERS,
    "max_tool_calls": _NOT_INTEGERS,
    "prompt": _NOT_OBJECTS,
    "stream_options": _NOT_OBJECTS,
}
_MISTRAL_FIELDS: dict[str, tuple[Any, ...]] = {
    "safe_prompt": _NOT_BOOLEANS,
    "prompt_mode": _NOT_STRINGS,
    "prediction": _NOT_OBJECTS,
}
_FIELDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "openai-chat": {**_CHAT_FIELDS, **_OPENAI_FIELDS},
    "mistral": {**_CHAT_FIELDS, "random_seed": _NOT_INTEGERS, **_MISTRAL_FIELDS},
    "kimi": {**_CHAT_FIELDS, "thinking": _NOT_OBJECTS, "thinking.type": _NOT_STRINGS},
    "deepseek": {**_CHAT_FIELDS, "thinking": _NOT_OBJECTS},
    "qwen": {**_CHAT_FIELDS, "enable_thinking": _NOT_BOOLEANS, "thinking_budget": _NOT_INTEGERS},
    "openai-responses": {**_RESPONSES_FIELDS, "store": _NOT_BOOLEANS, "user": _NOT_STRINGS},
    "azure-foundry": _RESPONSES_FIELDS,
    "anthropic": {
        "model": _NOT_STRINGS,
        "system": (5, True, {}),
        "messages": (*_NOT_LISTS, {}),
        "messages[0].role": (*_NOT_STRINGS, "narrator"),
        "messages[0].content": (5, True, {}, None),
        "messages[1].content[0].text": (*_NOT_STRINGS, None),
        "messages[1].content[1].source": (*_NOT_OBJECTS, None),
        "messages[1].content[1].source.media_type": _NOT_STRINGS,
        "messages[1].content[1].source.data": _NOT_STRINGS,
        "messages[2].content[0].id": _NOT_STRINGS,
        "messages[2].content[0].name": (*_NOT_STRINGS, None),
        "messages[3].content[0].tool_use_id": _NOT_STRINGS,
        "messages[3].content[0].content": (5, True, {}),
        "messages[3].content[0].is_error": _NOT_BOOLEANS,
        "tools": (*_NOT_LISTS, {}),
        "tools[0].name": (*_NOT_STRINGS, None),
        "tools[0].description": _NOT_STRINGS,
        "tools[0].input_schema": _NOT_SCHEMAS,
        "temperature": _NOT_NUMBERS,
        "top_p": _NOT_NUMBERS,
        "top_k": _NOT_INTEGERS,
        "max_tokens": _NOT_INTEGERS,
        "stream": _NOT_BOOLEANS,
        "stop_sequences": (*_NOT_TEXT_LISTS, "x"),
        "tool_choice": _NOT_OBJECTS,
        "tool_choice.type": (*_NOT_STRINGS, "sometimes"),
        "tool_choice.name": (*_NOT_STRINGS, None),
        "tool_choice.disable_parallel_tool_use": _NOT_BOOLEANS,
        "thinking": _NOT_OBJECTS,
        "thinking.type": _NOT_STRINGS,
        "thinking.budget_tokens": _NOT_INTEGERS,
        "metadata": _NOT_OBJECTS,
        "metadata.user_id": _NOT_STRINGS,
        "cache_control": _NOT_OBJECTS,
        "context_management": _NOT_OBJECTS,
        "inference_geo": _NOT_STRINGS,
        "mcp_servers": (*_NOT_LISTS, {}),
        "service_tier": _NOT_STRINGS,
        "speed": _NOT_STRINGS,
        "output_config": _NOT_OBJECTS,
        "output_config.effort": _NOT_STRINGS,
        "output_config.format": _NOT_OBJECTS,
        "output_config.format.schema": _NOT_SCHEMAS,
    },
    "gemini": {
        "model": _NOT_STRINGS,
        "contents": _NOT_LISTS,
        "contents[0].role": (*_NOT_STRINGS, "narrator"),
        "contents[0].parts": _NOT_LISTS,
        "contents[0].parts[0].text": _NOT_STRINGS,
        "contents[1].parts[1].inlineData": _NOT_OBJECTS,
        "contents[1].parts[1].inlineData.mimeType": _NOT_STRINGS,
        "contents[1].parts[1].inlineData.data": _NOT_STRINGS,
        "contents[1].parts[2].fileData": _NOT_OBJECTS,
        "contents[1].parts[2].fileData.mimeType": _NOT_STRINGS,
        "contents[1].parts[2].fileData.fileUri": _NOT_STRINGS,
        "contents[2].parts[0].functionCall": _NOT_OBJECTS,
        "contents[2].parts[0].functionCall.name": _NOT_STRINGS,
        "contents[2].parts[0].functionCall.id": _NOT_STRINGS,
        "systemInstruction": (5, True, []),
        "tools": _NOT_LISTS,
        "tools[0].functionDeclarations[0].name": (*_NOT_STRINGS, None),
        "tools[0].functionDeclarations[0].description": _NOT_STRINGS,
        "tools[0].functionDeclarations[0].parameters": _NOT_SCHEMAS,
        "generationConfig": _NOT_OBJECTS,
        "generationConfig.temperature": _NOT_NUMBERS,
        "generationConfig.topK": _NOT_NUMBERS,
        "generationConfig.maxOutputTokens": _NOT_INTEGERS,
        "generationConfig.stopSequences": _NOT_TEXT_LISTS,
        "generationConfig.responseMimeType": _NOT_STRINGS,
        "generationConfig.candidateCount": _NOT_INTEGERS,
        "generationConfig.logprobs": _NOT_INTEGERS,
        "generationConfig.responseLogprobs": _NOT_BOOLEANS,
        "generationConfig.responseSchema": _NOT_SCHEMAS,
        "generationConfig.thinkingConfig": _NOT_OBJECTS,
        "generationConfig.thinkingConfig.thinkingBudget": _NOT_INTEGERS,
        "generationConfig.thinkingConfig.thinkingLevel": _NOT_STRINGS,
        "toolConfig": _NOT_OBJECTS,
        "toolConfig.functionCallingConfig": _NOT_OBJECTS,
        "toolConfig.functionCallingConfig.mode": (*_NOT_STRINGS, "SOMETIMES"),
    },
    "bedrock": {
        "modelId": _NOT_STRINGS,
        "messages": (*_NOT_LISTS, {}),
        "messages[0].role": (*_NOT_STRINGS, "narrator"),
        "messages[0].content[0].text": _NOT_STRINGS,
        "messages[2].content[0].toolUse.name": _NOT_STRINGS,
        "messages[2].content[0].toolUse.toolUseId": _NOT_STRINGS,
        "messages[3].content[0].toolResult.status": _NOT_STRINGS,
        "toolConfig": _NOT_OBJECTS,
        "toolConfig.tools[0].toolSpec.name": _NOT_STRINGS,
        "toolConfig.tools[0].toolSpec.inputSchema.json": _NOT_OBJECTS,
        "inferenceConfig": _NOT_OBJECTS,
        "inferenceConfig.temperature": _NOT_NUMBERS,
        "inferenceConfig.maxTokens": _NOT_INTEGERS,
        "inferenceConfig.stopSequences": (*_NOT_TEXT_LISTS, "x"),
        "additionalModelRequestFields.top_k": _NOT_INTEGERS,
        "additionalModelRequestFields.thinking": _NOT_OBJECTS,
        "additionalModelRequestFields.thinking.budget_tokens": _NOT_INTEGERS,
    },
}
_IMAGE, _AUDIO, _PDF = "iVBORw0KGgo=", "UklGRgAAAABXQVZF", "JVBERi0xLjQK"
_CHAT_MEDIA: list[dict[str, Any]] = [
    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_IMAGE}"}},
    {"type": "input_audio", "input_audio": {"data": _AUDIO, "format": "wav"}},
    {"type": "file", "file": {"file_data": f"data:application/pdf;base64,{_PDF}", "filename": "a.pdf"}},
]
_RESPONSES_MEDIA: list[dict[str, Any]] = [
    {"type": "input_image", "image_url": f"data:image/png;base64,{_IMAGE}", "detail": "auto"},
    {"type": "input_file", "file_data": f"data:application/pdf;base64,{_PDF}", "filename": "a.pdf"},
]
_CLAUDE_IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _IMAGE}}
_GEMINI_MEDIA: list[dict[str, Any]] = [
    {"inlineData": {"mimeType": "image/png", "data": _IMAGE}},
    {"fileData": {"mimeType": "application/pdf", "fileUri": "https://example.com/a.pdf"}},
]
_SCHEMA = {"type": "object", "properties": {}}


def _typed_body(api: str) -> Any:
    """A valid body that has the fields of the table, or can have them."""
    base = WIRES[api].base_api
    if base == "openai-chat":
        call = {"id": "abcdefghi", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        return {
            "messages": [
                {"role": "user", "content": "a"},
                {"role": "user", "content": [{"type": "text", "text": "b"}, *_CHAT_MEDIA]},
                {"role": "assistant", "content": "", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "abcdefghi", "content": "r"},
            ],
            "tools": [{"type": "function", "function": {"name": "f", "parameters": _SCHEMA}}],
        }
    if base == "openai-responses":
        return {
            "input": [
                {"role": "user", "content": "a"},
                {"role": "user", "content": [{"type": "input_text", "text": "b"}, *_RESPONSES_MEDIA]},
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "r"},
            ],
            "tools": [{"type": "function", "name": "f", "parameters": _SCHEMA, "strict": False}],
        }
    if base == "anthropic":
        return {
            "max_tokens": 9,
            "messages": [
                {"role": "user", "content": "a"},
                {"role": "user", "content": [{"type": "text", "text": "b"}, _CLAUDE_IMAGE]},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "r"}]},
            ],
            "tools": [{"name": "f", "input_schema": _SCHEMA}],
        }
    if base == "gemini":
        return {
            "contents": [
                {"role": "user", "parts": [{"text": "a"}]},
                {"role": "user", "parts": [{"text": "b"}, *_GEMINI_MEDIA]},
                {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "r"}}}]},
            ],
            "tools": [{"functionDeclarations": [{"name": "f"}]}],
        }
    return {
        "messages": [
            {"role": "user", "content": [{"text": "a"}]},
            {"role": "user", "content": [{"text": "b"}]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": "f", "input": {}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "c", "content": [{"text": "r"}]}}]},
        ],
        "toolConfig": {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": _SCHEMA}}}]},
    }


# What an object must hold for its other fields to be parsed, by path and where needed by API.
_SIBLINGS: dict[str, dict[str, Any]] = {
    "anthropic tool_choice": {"type": "tool", "name": "f"},
    "tool_choice": {"type": "function"},
    "response_format": {"type": "json_schema"},
    "text.format": {"type": "json_schema"},
    "output_config.format": {"type": "json_schema"},
}


def _set(body: Any, path: str, value: Any, api: str = "") -> Any:
    changed = copy.deepcopy(body)
    steps: list[str | int] = []
    for step in path.split("."):
        name, _, index = step.partition("[")
        steps += [name, *([int(index[:-1])] if index else [])]
    place, passed = changed, ""
    for step in steps[:-1]:
        passed = f"{passed}[{step}]" if isinstance(step, int) else f"{passed}.{step}".removeprefix(".")
        if isinstance(step, str) and step not in place:
            place[step] = dict(_SIBLINGS.get(f"{api} {passed}") or _SIBLINGS.get(passed, {}))
        place = place[step]
    place[steps[-1]] = value
    return changed


@pytest.mark.parametrize(("api", "path"), [(api, path) for api, fields in _FIELDS.items() for path in fields])
def test_field_of_the_wrong_type_is_bad_input(api: str, path: str) -> None:
    base = _typed_body(api)
    segue.convert(base, source=api, target=api)
    for value in _FIELDS[api][path]:
        body = _set(base, path, value, api)
        for target in (api, "anthropic", "openai-responses"):
            with pytest.raises(segue.InputError) as raised:
                segue.convert(body, source=api, target=target)
            assert raised.value.path.startswith(path), (value, raised.value.path)
        with pytest.raises(segue.InputError) as raised:
            segue.repair(body, api)
        assert raised.value.path.startswith(path), value
        with pytest.raises(segue.InputError):
            segue.Conversation.from_body(body, source=api)
        filler = {"padding": "x" * 9000}
        with pytest.raises(segue.InputError):
            segue.convert(encode_json({**body, **filler}), source=api, target="gemini")


@pytest.mark.parametrize(("api", "path"), [(api, path) for api, fields in _FIELDS.items() for path in fields])
def test_null_means_absent(api: str, path: str) -> None:
    if None in _FIELDS[api][path] or path.endswith(("messages", "input", "contents", "role", "].function", "]")):
        return
    body = _set(_typed_body(api), path, None, api)
    if api == "bedrock" or path.endswith((".name", ".type", "functionCall", ".text", "tool_choice.function")):
        # Required fields, and a closed service model.
        return
    made = segue.convert(body, source=api, target="openai-chat")
    assert segue.check(made.body, "openai-chat")


@pytest.mark.parametrize(
    ("api", "path"),
    [
        ("openai-chat", "max_tokens"),
        ("openai-chat", "seed"),
        ("anthropic", "max_tokens"),
        ("anthropic", "top_k"),
        ("openai-responses", "max_output_tokens"),
        ("gemini", "generationConfig.maxOutputTokens"),
        ("bedrock", "inferenceConfig.maxTokens"),
    ],
)
def test_integral_float_is_an_integer(api: str, path: str) -> None:
    bodies = [_set(_typed_body(api), path, value) for value in (8192.0, 8192)]
    for target in TARGETS:
        if target != api:
            first, second = (segue.convert(body, source=api, target=target).data for body in bodies)
            assert first == second
    assert b":8192.0" in segue.convert(bodies[0], source=api, target=api).data


def test_gemini_takes_numbers_as_text() -> None:
    body = _set(_typed_body("gemini"), "generationConfig", {"maxOutputTokens": "100", "temperature": "0.5"})
    made = segue.convert(body, source="gemini", target="openai-responses").body
    assert (made["max_output_tokens"], made["temperature"]) == (100, 0.5)


@pytest.mark.parametrize("keys", [("messages", "contents"), ("messages", "input"), ("input", "contents")])
def test_two_conversations_need_a_source(keys: tuple[str, str]) -> None:
    values = {
        "messages": [{"role": "user", "content": "a"}],
        "contents": [{"role": "user", "parts": [{"text": "a"}]}],
        "input": [{"role": "user", "content": "a"}],
    }
    body = {key: values[key] for key in keys}
    for given in (body, encode_json({**body, "padding": "x" * 9000})):
        with pytest.raises(UndetectedApiError, match="more than one conversation"):
            segue.convert(given, target="anthropic")
    with pytest.raises(UndetectedApiError):
        segue.Conversation.from_body(body)
    apis = {"messages": "openai-chat", "contents": "gemini", "input": "openai-responses"}
    for key, other in (keys, keys[::-1]):
        made = segue.convert(body, source=apis[key], target="anthropic")
        assert len(made.body["messages"]) == 1
        assert any(finding.subject == other for finding in made.report.findings_of("dropped"))


def test_integer_of_more_than_4300_digits() -> None:
    body = _typed_body("openai-chat")
    for value, path in ((10**4300, "seed"), (-(10**5000), "tools[0].function.parameters.minimum")):
        with pytest.raises(segue.InputError) as raised:
            segue.convert(_set(body, path, value), source="openai-chat", target="anthropic")
        assert raised.value.path == path
        assert "4,300 digits" in str(raised.value)
    assert segue.convert(_set(body, "seed", 10**4300 - 1), source="openai-chat", target="openai-chat").data


def test_unknown_fields_items_and_parts_are_not_errors() -> None:
    body = _typed_body("openai-chat")
    body["messages"][1]["content"].append({"type": "hologram", "hologram": {"a": 1}})
    body |= {"new_option": {"a": [1]}}
    made = segue.convert(body, source="openai-chat", target="anthropic")
    assert {finding.subject for finding in made.report.findings} >= {"hologram", "new_option"}


@pytest.mark.parametrize("source", TARGETS)
def test_convert_and_repair_agree(source: str) -> None:
    for case, path, value, body in mutants(source, 1, EACH):
        paths: list[str | None] = []
        for run in (
            lambda body=body: segue.convert(body, source=source, target=source),
            lambda body=body: segue.repair(body, source),
        ):
            try:
                run()
                paths.append(None)
            except segue.InputError as error:
                paths.append(error.path)
        assert paths[0] == paths[1], (case.name, path, value)
