"""Samples of every request and reply type of the vendors' SDKs, as exchanges: a call is there with its result."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from itertools import islice
from typing import Any, get_args

from segue.wire.registry import WIRES
from tests.emulator.sdk_values import members_of, values_of
from tests.recorded.cassettes import Body, Exchange

# Values by the name of a member; any other text is "text".
_TEXTS: Mapping[str, str] = {
    **dict.fromkeys(("call_id", "tool_call_id", "id"), "call_1"),
    **dict.fromkeys(("data", "image_data"), "aGk="),
    **dict.fromkeys(("url", "image_url", "file_url", "fileUri", "document_url", "uri"), "https://example.com/a.png"),
    **dict.fromkeys(("mimeType", "media_type"), "image/png"),
    "file_data": "data:application/pdf;base64,JVBERi0=",
    "arguments": "{}",
    "encrypted_content": "gAAAAABo",
    "thoughtSignature": "aGk=",
    "approval_request_id": "mcpr_1",
    "tool_use_id": "toolu_1",
    "toolUseId": "tooluse_1",
    "name": "look",
    "bucketOwner": "123456789012",
}
_PREFIXES: Mapping[str, str] = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "web_search_call": "ws",
    "file_search_call": "fs",
    "computer_call": "cu",
    "image_generation_call": "ig",
    "code_interpreter_call": "ci",
    "mcp_call": "mcp",
    "mcp_list_tools": "mcpl",
    "mcp_approval_request": "mcpr",
    "tool_search_call": "tsc",
    "local_shell_call": "lsh",
    "shell_call": "sh",
    "program": "prog",
    "program_output": "po",
}
# A part without one of these has nothing in it.
_SOURCES: Mapping[str, Body] = {
    "input_image": {"image_url": "text"},
    "input_file": {"file_data": "text", "filename": "a.pdf"},
}
_MOST = 40
_SCHEMA = {"type": "object", "properties": {}}


def samples() -> Iterator[Exchange]:
    """Yield all samples. The status is that of a provider which accepts what its own SDK can say."""
    yield from _responses()
    yield from _chat()
    yield from _anthropic()
    yield from _gemini()
    yield from _mistral()
    yield from _bedrock()


def _named(value: Any, name: str = "", kind: str = "") -> Any:
    """Return the value with texts that fit the names of its members, and what the service requires besides the SDK."""
    if isinstance(value, dict):
        kind = value["type"] if isinstance(value.get("type"), str) else ""
        beside = _SOURCES.get(kind, {})
        if beside and all(value.get(key) is None for key in ("image_url", "file_data", "file_id", "file_url")):
            value = {**value, **beside}
        return {key: _named(inner, key, kind) for key, inner in value.items() if key != "type" or inner is not None}
    if isinstance(value, list):
        return [_named(inner, name, kind) for inner in value]
    if name in ("parameters", "input_schema") and value == "text":
        return _SCHEMA
    if value != "text" or name in ("type", "role", "status", "text"):
        return value
    return f"{_PREFIXES[kind]}_1" if name == "id" and kind in _PREFIXES else _TEXTS.get(name, value)


def _values(kind: Any) -> Iterable[Body]:
    values = (value for value in values_of(kind) if isinstance(value, dict) and None not in value.values())
    return (_named(value) for value in islice(values, _MOST))


def _alternatives(module: str, name: str) -> tuple[Any, ...]:
    union = getattr(import_module(module), name)
    arms = get_args(union)
    return get_args(arms[0]) if arms and get_args(arms[0]) else arms


def _exchange(api: str, kind: Any, number: int, body: Body, reply: Body | None = None) -> Exchange:
    title = kind if isinstance(kind, str) else f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
    return Exchange(f"{title}#{number}", WIRES[api], None, body, 200, reply, None)


def _requests(api: str, kinds: Iterable[Any], build: Any) -> Iterator[Exchange]:
    for kind in kinds:
        for number, value in enumerate(_values(kind)):
            if (body := build(value)) is not None:
                yield _exchange(api, kind, number, body)


# -------------------------------------------------------------------------------------------------------------- OpenAI

_OUTPUTS: Mapping[str, Body] = {
    "function_call": {"type": "function_call_output", "call_id": "call_1", "output": "done"},
    "custom_tool_call": {"type": "custom_tool_call_output", "call_id": "call_1", "output": "done"},
    "local_shell_call": {"type": "local_shell_call_output", "id": "call_1", "call_id": "call_1", "output": "{}"},
    "shell_call": {"type": "shell_call_output", "call_id": "call_1", "output": []},
    "apply_patch_call": {"type": "apply_patch_call_output", "call_id": "call_1", "status": "completed"},
    "computer_call": {
        "type": "computer_call_output",
        "call_id": "call_1",
        "output": {"type": "computer_screenshot", "image_url": "https://example.com/a.png"},
    },
    "program": {"type": "program_output", "id": "po_1", "call_id": "call_1", "result": "x", "status": "completed"},
    "mcp_approval_request": {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
}
_MESSAGE = {
    "type": "message",
    "id": "msg_2",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Well.", "annotations": []}],
}
_USER = {"role": "user", "content": "Go on."}


def _responses() -> Iterator[Exchange]:
    kinds = _alternatives("openai.types.responses.response_input_item_param", "ResponseInputItemParam")
    calls = {value["type"]: value for kind in kinds for value in islice(_values(kind), 1) if "type" in value}

    def build(item: Body) -> Body:
        kind = item.get("type")
        if kind in ("function_call_output", "custom_tool_call_output"):
            item = {**item, "call_id": "call_1"}
        call = next((calls[name] for name, output in _OUTPUTS.items() if output["type"] == kind), None)
        before = [] if call is None else [call]
        after = [_OUTPUTS[kind]] if kind in _OUTPUTS else [_MESSAGE] if kind == "reasoning" else []
        items = [_USER, *before, item, *after, *([] if kind == "compaction_trigger" else [_USER])]
        return {"model": "gpt-5.6-terra", "input": items}

    yield from _requests("openai-responses", kinds, build)
    tools = _alternatives("openai.types.responses.tool_param", "ToolParam")
    yield from _requests(
        "openai-responses", tools, lambda tool: {"model": "gpt-5.6-terra", "input": "q", "tools": [tool]}
    )
    body = {"model": "gpt-5.6-terra", "input": [_USER]}
    for kind in _alternatives("openai.types.responses.response_output_item", "ResponseOutputItem"):
        for number, item in enumerate(_values(kind)):
            output = [item, _MESSAGE] if item.get("type") == "reasoning" else [item]
            if "container_id" in item.get("environment", {}):
                # The service runs it, and writes the output too.
                output.append(_OUTPUTS["shell_call"])
            reply = {
                "id": "resp_1",
                "object": "response",
                "status": "completed",
                "model": "gpt-5.6-terra",
                "output": output,
            }
            yield _exchange("openai-responses", kind, number, body, reply)


_CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def _with_content(message: Body) -> Body:
    """Return the message with the content that the services require beside the SDKs."""
    return message if message.get("content") or message.get("tool_calls") else {**message, "content": "Well."}


def _chat() -> Iterator[Exchange]:
    def build(message: Body) -> Body | None:
        if message["role"] == "function" or message.get("tool_calls") == []:
            return None
        message = _with_content(message)
        messages: list[Any] = [_USER, message]
        if message["role"] == "tool":
            messages.insert(1, {"role": "assistant", "content": None, "tool_calls": [_CALL]})
        messages += [
            {"role": "tool", "tool_call_id": call["id"], "content": "x"} for call in message.get("tool_calls") or ()
        ]
        return {"model": model, "messages": [*messages, _USER]}

    # It takes every kind of content.
    model = "gpt-4o-audio-preview"
    module = "openai.types.chat.chat_completion_"
    yield from _requests("openai-chat", _alternatives(f"{module}message_param", "ChatCompletionMessageParam"), build)
    parts = _alternatives(f"{module}content_part_param", "ChatCompletionContentPartParam")
    yield from _requests(
        "openai-chat", parts, lambda part: {"model": model, "messages": [{"role": "user", "content": [part]}]}
    )
    tools = _alternatives(f"{module}tool_union_param", "ChatCompletionToolUnionParam")
    yield from _requests("openai-chat", tools, lambda tool: {"model": "gpt-4.1", "messages": [_USER], "tools": [tool]})
    message = import_module("openai.types.chat").ChatCompletionMessage
    for number, value in enumerate(_values(message)):
        choice = {"index": 0, "finish_reason": "tool_calls" if value.get("tool_calls") else "stop", "message": value}
        reply = {"id": "c", "object": "chat.completion", "created": 1, "model": "gpt-4.1", "choices": [choice]}
        yield _exchange("openai-chat", message, number, {"model": "gpt-4.1", "messages": [_USER]}, reply)


# ----------------------------------------------------------------------------------------------------------- Anthropic

_HOSTED = "srvtoolu_1"


def _anthropic() -> Iterator[Exchange]:
    def with_ids(block: Body) -> Body:
        hosted = block["type"] not in ("tool_use", "tool_result")
        ids = {"id": _HOSTED if hosted else "toolu_1", "tool_use_id": _HOSTED if hosted else "toolu_1"}
        return {**block, **{key: value for key, value in ids.items() if key in block}}

    def build(block: Body) -> Body:
        kind, block = block["type"], with_ids(block)
        use = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
        messages: list[Body] = [_USER]
        if kind == "tool_use":
            result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "done"}
            messages += [{"role": "assistant", "content": [block]}, {"role": "user", "content": [result]}]
        elif kind == "tool_result":
            messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [block]}]
        elif kind.endswith("_tool_result") and kind != "mcp_tool_result":
            tool = kind.removesuffix("_tool_result")
            hosted = {"type": "server_tool_use", "id": _HOSTED, "name": tool, "input": {}}
            messages.append({"role": "assistant", "content": [hosted, block]})
        elif kind == "mcp_tool_result":
            hosted = {"type": "mcp_tool_use", "id": _HOSTED, "name": "look", "server_name": "s", "input": {}}
            messages.append({"role": "assistant", "content": [hosted, block]})
        elif kind in ("server_tool_use", "mcp_tool_use"):
            messages.append({"role": "assistant", "content": [block]})
            return {"model": "claude-sonnet-4-5", "max_tokens": 99, "messages": messages}
        elif "thinking" in kind or kind in ("compaction", "fallback"):
            messages.append({"role": "assistant", "content": [block, {"type": "text", "text": "Well."}]})
        else:
            messages = [{"role": "user", "content": [block, {"type": "text", "text": "Well?"}]}]
            return {"model": "claude-sonnet-4-5", "max_tokens": 99, "messages": messages}
        return {
            "model": "claude-sonnet-4-5",
            "max_tokens": 99,
            "messages": [*messages, *([_USER] if messages[-1]["role"] == "assistant" else [])],
        }

    body = {"model": "claude-sonnet-4-5", "max_tokens": 99, "messages": [_USER]}
    for package, prefix, name in (("anthropic.types", "", ""), ("anthropic.types.beta", "beta_", "Beta")):
        blocks = _alternatives(f"{package}.{prefix}content_block_param", f"{name}ContentBlockParam")
        yield from _requests("anthropic", blocks, build)
        tools = _alternatives(f"{package}.{prefix}tool_union_param", f"{name}ToolUnionParam")
        yield from _requests("anthropic", tools, lambda tool: {**body, "tools": [{**tool, **_schema_of(tool)}]})
        for kind in _alternatives(f"{package}.{prefix}content_block", f"{name}ContentBlock"):
            for number, block in enumerate(_values(kind)):
                reason = "tool_use" if block["type"] == "tool_use" else "end_turn"
                reply = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5"}
                reply |= {
                    "content": [with_ids(block)],
                    "stop_reason": reason,
                    "usage": {"input_tokens": 1, "output_tokens": 1},
                }
                yield _exchange("anthropic", kind, number, body, reply)


def _schema_of(tool: Body) -> Body:
    return {"input_schema": _SCHEMA} if "input_schema" in tool else {}


# -------------------------------------------------------------------------------------------------- Gemini and Mistral


def _gemini() -> Iterator[Exchange]:
    types = import_module("google.genai.types")
    model = "gemini-3.6-flash"
    user = {"role": "user", "parts": [{"text": "Go on."}]}
    call = {
        "functionCall": {"id": "call_1", "name": "look", "args": {}},
        "thoughtSignature": "skip_thought_signature_validator",
    }
    pairs = {
        "codeExecutionResult": {"executableCode": {"language": "PYTHON", "code": "1"}},
        "toolResponse": {"toolCall": {"id": "call_1", "toolType": "GOOGLE_SEARCH_WEB", "args": {}}},
    }
    made_by_model = ("functionCall", "executableCode", "codeExecutionResult", "toolCall", "toolResponse")

    def build(part: Body) -> Body | None:
        if not part:
            return None
        if "functionResponse" in part:
            part = {"functionResponse": {"response": {}, **part["functionResponse"], "id": "call_1", "name": "look"}}
            contents = [user, {"role": "model", "parts": [call]}, {"role": "user", "parts": [part]}]
        elif "functionCall" in part:
            part = {**call, "functionCall": {**part["functionCall"], "id": "call_1", "name": "look"}}
            done = {"functionResponse": {"id": "call_1", "name": "look", "response": {}}}
            contents = [user, {"role": "model", "parts": [part]}, {"role": "user", "parts": [done]}]
        elif any(key in part for key in made_by_model):
            before = [pair for key, pair in pairs.items() if key in part]
            if "toolResponse" in part:
                part = {"toolResponse": {**part["toolResponse"], "id": "call_1", "toolType": "GOOGLE_SEARCH_WEB"}}
            contents = [user, {"role": "model", "parts": [*before, part]}, user]
        elif any(key in part for key in ("text", "inlineData", "fileData")):
            contents = [{"role": "user", "parts": [part]}]
        else:
            contents = [{"role": "user", "parts": [{"inlineData": {"mimeType": "video/mp4", "data": "aGk="}, **part}]}]
        return {"model": model, "contents": contents}

    for name, hint in members_of(types.Part).items():
        for number, value in enumerate(islice(values_of(hint), _MOST)):
            if not value:
                continue
            if name == "functionCall":
                value = {"name": "look", **value}
            if (body := build({name: _named(value, name)})) is not None:
                yield _exchange("gemini", f"google.Part.{name}", number, body)
                if name in (*made_by_model, "text", "inlineData"):
                    candidate = {
                        "content": {"role": "model", "parts": [{name: _named(value, name)}]},
                        "finishReason": "STOP",
                    }
                    reply = {"candidates": [candidate], "modelVersion": model}
                    yield _exchange(
                        "gemini", f"google.Part.{name} reply", number, {"model": model, "contents": [user]}, reply
                    )
    for name, hint in members_of(types.Tool).items():
        for number, value in enumerate(islice(values_of(hint), _MOST)):
            if value not in (None, []):
                declared = _named(value, name)
                if name == "functionDeclarations":
                    declared = [{"name": "look", **each} for each in declared]
                body = {"model": model, "contents": [user], "tools": [{name: declared}]}
                yield _exchange("gemini", f"google.Tool.{name}", number, body)


def _mistral() -> Iterator[Exchange]:
    models = import_module("mistralai.client.models")
    chunks = [
        kind for kind in _alternatives("mistralai.client.models", "ContentChunk") if "Unknown" not in kind.__name__
    ]
    body = {"model": "mistral-large-latest", "messages": [_USER]}
    call = {"id": "abcdefgh1", "type": "function", "function": {"name": "look", "arguments": "{}"}}

    def build(message: Body) -> Body:
        role, message = message.get("role"), _with_content(message)
        messages: list[Any] = [_USER, message]
        if role == "tool":
            messages = [
                _USER,
                {"role": "assistant", "content": "", "tool_calls": [call]},
                {**message, "tool_call_id": "abcdefgh1"},
            ]
        if role == "system":
            messages = [message, _USER]
        if message.get("tool_calls"):
            messages = [
                _USER,
                {**message, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "abcdefgh1", "content": "x"},
            ]
        if message.get("prefix"):
            return {**body, "messages": messages}
        return {**body, "messages": [*messages, *([_USER] if messages[-1].get("role") == "assistant" else [])]}

    kinds = [getattr(models, f"{role}Message") for role in ("User", "Assistant", "System", "Tool")]
    yield from _requests("mistral", kinds, lambda value: build(value) if value.get("role") else None)
    user = [kind for kind in chunks if kind.__name__ != "ThinkChunk"]
    yield from _requests("mistral", user, lambda chunk: {**body, "messages": [{"role": "user", "content": [chunk]}]})
    yield from _requests("mistral", [models.Tool], lambda tool: {**body, "tools": [tool]})
    for number, value in enumerate(_values(models.AssistantMessage)):
        choice = {"index": 0, "finish_reason": "tool_calls" if value.get("tool_calls") else "stop", "message": value}
        reply = {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": "mistral-large-latest",
            "choices": [choice],
        }
        yield _exchange("mistral", models.AssistantMessage, number, body, reply)


# ------------------------------------------------------------------------------------------------------------- Bedrock


def _bedrock() -> Iterator[Exchange]:
    session = import_module("botocore.session").get_session()
    operation = session.get_service_model("bedrock-runtime").operation_model("Converse")
    message = operation.input_shape.members["messages"].member
    user = {"role": "user", "content": [{"text": "Go on."}]}
    tools = {"tools": [{"toolSpec": {"name": "look", "inputSchema": {"json": _SCHEMA}}}]}
    call = {"toolUse": {"toolUseId": "tooluse_1", "name": "look", "input": {}}}
    done = {"toolResult": {"toolUseId": "tooluse_1", "content": [{"text": "done"}]}}

    hosted = {"toolUse": {**call["toolUse"], "type": "server_tool_use"}}
    ran = {"toolResult": {**done["toolResult"], "type": "nova_code_interpreter_result"}}

    def build(block: Body) -> list[Body]:
        if block.get("toolUse", {}).get("type") or block.get("toolResult", {}).get("type"):
            content = (
                [block, ran]
                if "toolUse" in block
                else [hosted, {"toolResult": {**block["toolResult"], **ran["toolResult"]}}]
            )
            return [user, {"role": "assistant", "content": [*content, {"text": "Well."}]}, user]
        if "toolUse" in block:
            return [user, {"role": "assistant", "content": [block]}, {"role": "user", "content": [done]}]
        if "toolResult" in block:
            return [user, {"role": "assistant", "content": [call]}, {"role": "user", "content": [block]}]
        if "reasoningContent" in block:
            return [user, {"role": "assistant", "content": [block, {"text": "Well."}]}, user]
        return [{"role": "user", "content": [{"text": "See."}, block]}]

    for name, shape in message.members["content"].member.members.items():
        for number, value in enumerate(islice(_shape_values(shape), _MOST)):
            block = json.loads(json.dumps(_named({name: value})).replace(_TEXTS["uri"], "s3://bucket/a.png"))
            body = {"modelId": "us.amazon.nova-2-lite-v1:0", "messages": build(block), "toolConfig": tools}
            yield _exchange("bedrock", f"botocore.{shape.name}", number, body)
            if name in ("text", "toolUse", "reasoningContent"):
                output = {"message": {"role": "assistant", "content": [block]}}
                waits = "toolUse" in block and "type" not in block["toolUse"]
                reply = {"output": output, "stopReason": "tool_use" if waits else "end_turn", "usage": {}}
                asked = {"modelId": body["modelId"], "messages": [user], "toolConfig": tools}
                yield _exchange("bedrock", f"botocore.{shape.name} reply", number, asked, reply)


def _shape_values(shape: Any, depth: int = 0) -> Iterator[Any]:
    """A few values of a shape of botocore's service model."""
    if shape.type_name == "structure" and not shape.is_document_type:
        found = {
            name: list(_shape_values(member, depth + 1)) if depth < 6 else [] for name, member in shape.members.items()
        }
        least = {name: found[name][0] for name in shape.required_members if found[name]}
        if not shape.is_tagged_union:
            yield least
        for name, values in found.items():
            yield from ({**least, name: value} for value in values)
    elif shape.type_name == "list":
        yield from ([value] for value in islice(_shape_values(shape.member, depth + 1), 4))
    elif shape.type_name == "string":
        yield from getattr(shape, "enum", None) or ["text"]
    else:
        yield {"structure": {}, "map": {}, "blob": "aGk=", "boolean": True, "integer": 1, "float": 0.5}.get(
            shape.type_name, 1
        )
