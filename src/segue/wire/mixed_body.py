"""Tool calls, results, reasoning, declarations and tool choices of one API inside a body of another.

Clients that serve several APIs put blocks of one into bodies of another: `tool_use` blocks and Claude's tools into Chat
bodies, Chat messages into Responses input. A wire calls these functions for an item that its own parser does not
accept. The tables list only forms that no other API has; the wire of the form parses the item.

The blocks keep that wire's fragment as `native`, and the provider of the body as origin: its ids are the body's own.
Reasoning keeps its own provider, the only one that accepts its signature.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from segue.canonical.blocks import Block, Message, Native, Thinking, ToolCall, ToolResponse
from segue.canonical.request import Options, Request, Tool
from segue.errors import InputError
from segue.wire.json_values import JsonObject, list_or_empty, object_or_none, optional_schema, optional_string
from segue.wire.registry import WIRES

CHAT, RESPONSES, ANTHROPIC, GEMINI, BEDROCK = "openai-chat", "openai-responses", "anthropic", "gemini", "bedrock"
MCP = "mcp"
"""`native.api` of tool declarations listed by an MCP server."""
MCP_KEYS = frozenset({"name", "description", "inputSchema"})

# `type` of the items that are calls or results.
_ITEM_TYPES = {
    "tool_use": ANTHROPIC,
    "tool_result": ANTHROPIC,
    "server_tool_use": ANTHROPIC,
    "mcp_tool_use": ANTHROPIC,
    "mcp_tool_result": ANTHROPIC,
    "function_call": RESPONSES,
    "function_call_output": RESPONSES,
    "custom_tool_call": RESPONSES,
    "custom_tool_call_output": RESPONSES,
}
# Members of the items that have no type.
_ITEM_MEMBERS: dict[str, str] = {
    "functionCall": GEMINI,
    "functionResponse": GEMINI,
    "function_call": GEMINI,
    "function_response": GEMINI,
    "toolUse": BEDROCK,
    "toolResult": BEDROCK,
}
_REASONING_TYPES = {"thinking": ANTHROPIC, "redacted_thinking": ANTHROPIC, "reasoning": RESPONSES}
# The roles of Chat results, with the key that refers to the call.
_RESULT_KEYS = {"tool": "tool_call_id", "function": "name"}
# Keys of a declaration that only one API has, with the type of their value.
_TOOL_KEYS: tuple[tuple[str, type, str], ...] = (
    ("function", dict, CHAT),
    ("custom", dict, CHAT),
    ("input_schema", object, ANTHROPIC),
    ("functionDeclarations", object, GEMINI),
    ("function_declarations", object, GEMINI),
    ("parametersJsonSchema", object, GEMINI),
    ("parameters_json_schema", object, GEMINI),
    ("googleSearch", dict, GEMINI),
    ("codeExecution", dict, GEMINI),
    ("toolSpec", object, BEDROCK),
)
_TOOL_KEY_NAMES = frozenset(key for key, _, _ in _TOOL_KEYS)
_DECLARATIONS = "functionDeclarations"
# `type` of the tool choices that only Anthropic has, and of those that both OpenAI APIs have.
_ANTHROPIC_CHOICES = frozenset({"auto", "any", "none", "tool"})
_OPENAI_CHOICES = frozenset({"function", "custom"})
_OPENAI_MODES = frozenset({"auto", "none", "required"})


class BodyApi(Struct, frozen=True):
    """The API that a body is written in, the wire it is based on, and its provider."""

    api: str
    base_api: str
    provider: str


# ---------------------------------------------------------------------------------------------------- calls and results


def find_item_api(item: Mapping[str, Any]) -> str | None:
    """Return the API of a call or result, by its shape; None for any other item."""
    kind = item.get("type")
    if kind == "function" and isinstance(item.get("function"), dict):
        return CHAT
    if isinstance(kind, str) and kind in _ITEM_TYPES:
        return _ITEM_TYPES[kind]
    if isinstance(kind, str) and kind.endswith("_tool_result") and "tool_use_id" in item:
        return ANTHROPIC
    if _ITEM_MEMBERS.keys().isdisjoint(item):
        return None
    return next((api for key, api in _ITEM_MEMBERS.items() if isinstance(item.get(key), dict)), None)


def parse_item(item: JsonObject, body_api: BodyApi) -> ToolCall | ToolResponse | None:
    """Parse a call or result in the form of any API; None for any other item."""
    api = find_item_api(item)
    if api is None:
        return None
    body, path = _enclose_item(item, api)
    parsed = _parse(api, body, path)
    blocks = [block for message in parsed.messages for block in message.blocks if _is_tool_block(block)]
    return cast("ToolCall | ToolResponse", _adopt(blocks[-1], body_api)) if blocks else None


def _is_tool_block(block: Block) -> bool:
    return isinstance(block, ToolCall | ToolResponse)


def parse_reasoning_item(item: JsonObject, body_api: BodyApi) -> Thinking | None:
    """Parse reasoning of an assistant in the form of any API; None for any other item."""
    api = _find_reasoning_api(item)
    if api is None:
        return None
    body, path = _enclose_item(item, api)
    blocks = (block for message in _parse(api, body, path).messages for block in message.blocks)
    thought = next((block for block in blocks if isinstance(block, Thinking)), None)
    return None if thought is None else replace(thought, native=_adopt_native(thought.native, body_api))


def _find_reasoning_api(item: Mapping[str, Any]) -> str | None:
    kind = item.get("type")
    if isinstance(kind, str):
        # The `thinking` of Mistral's parts is a list.
        return None if isinstance(item.get("thinking"), list) else _REASONING_TYPES.get(kind)
    if isinstance(item.get("reasoningContent"), dict):
        return BEDROCK
    return GEMINI if item.get("thought") is True and isinstance(item.get("text"), str) else None


def has_results(blocks: Iterable[Block]) -> bool:
    """Return whether the content of a user's message has results, which makes it a tool message."""
    return False in [block.hosted for block in blocks if type(block) is ToolResponse]


def _enclose_item(item: JsonObject, api: str) -> tuple[JsonObject, str]:
    """Return a body that holds this item, and the path of the item in it."""
    match api:
        case "openai-chat":
            return {"messages": [{"role": "assistant", "tool_calls": [item]}]}, "messages[0].tool_calls[0]"
        case "openai-responses":
            # After an open call, so that an output without an id is parsed as a result.
            return {"input": [{"type": "function_call", "call_id": "call", "arguments": "{}"}, item]}, "input[1]"
        case "gemini":
            return {"contents": [{"role": "model", "parts": [item]}]}, "contents[0].parts[0]"
        case _:
            return {"messages": [{"role": "assistant", "content": [item]}]}, "messages[0].content[0]"


def _parse(api: str, body: JsonObject, path: str) -> Request:
    """Parse a body made for one item; paths in errors are relative to the item."""
    try:
        return WIRES[api].parse_request(body)
    except InputError as error:
        raise InputError(error.message, path=error.path.removeprefix(path).removeprefix(".")) from None


def _adopt(block: Block, body_api: BodyApi) -> Block:
    """Return a block of another body as one of this body: without a canonical id, from this body's provider."""
    if not isinstance(block, ToolCall | ToolResponse):
        return block
    origin = replace(block.origin, provider=body_api.provider)
    native = _adopt_native(block.native, body_api)
    if isinstance(block, ToolCall):
        return replace(block, id="", origin=origin, native=native)
    return replace(block, call_id="", origin=origin, native=native)


def _adopt_native(native: Native | None, body_api: BodyApi) -> Native | None:
    """Return the fragment, not intact if it has the form of the body's API: then its place in the body is not valid."""
    if native is None or native.api != body_api.api:
        return native
    return Native(native.api, native.fragment, intact=False)


def _add_item(messages: list[Message], block: ToolCall | ToolResponse) -> None:
    """Add an item that stands in the place of a message. A call belongs to the reply before it, if there is one."""
    if isinstance(block, ToolResponse):
        messages.append(Message("tool", (block,)))
    elif messages and messages[-1].speaker == "ai":
        messages[-1] = messages[-1].with_blocks((*messages[-1].blocks, block))
    else:
        messages.append(Message("ai", (block,)))


# ------------------------------------------------------------------------------------------------------------- messages


def find_message_api(message: Mapping[str, Any], host_api: str) -> str | None:
    """Return the API of a whole message in another API's form that holds calls or results; None for any other."""
    if host_api != GEMINI and "content" not in message and _has_items(message.get("parts")):
        return GEMINI
    if host_api == CHAT or "parts" in message:
        return None
    if _RESULT_KEYS.get(str(message.get("role")), "") in message:
        return CHAT
    if host_api == GEMINI and (message.get("tool_calls") or _has_items(message.get("content"))):
        return CHAT
    return None


def _has_items(value: object) -> bool:
    items = list_or_empty(value)
    return any(find_item_api(item) is not None for item in map(object_or_none, items) if item is not None)


def add_message(messages: list[Message], message: JsonObject, body_api: BodyApi) -> bool:
    """Add a message of a body if it has another API's form and holds calls or results; return whether it does."""
    if "role" not in message and (block := parse_item(message, body_api)) is not None:
        _add_item(messages, block)
        return True
    parsed = parse_message(message, body_api)
    messages += [] if parsed is None else [parsed]
    return parsed is not None


def parse_message(message: JsonObject, body_api: BodyApi) -> Message | None:
    """Parse a whole message in another API's form that holds calls or results; None for any other message."""
    api = find_message_api(message, body_api.base_api)
    if api is None:
        return None
    key = "contents" if api == GEMINI else "messages"
    parsed = _parse(api, {key: [message]}, f"{key}[0]").messages[0]
    blocks = tuple(_adopt(block, body_api) for block in parsed.blocks)
    return replace(parsed, blocks=blocks, turn_key=None)


def split_calls(message: JsonObject, body_api: BodyApi) -> tuple[JsonObject, tuple[Block, ...]]:
    """Return a reply in another API's form without its Chat `tool_calls`, and the calls."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list) or not calls:
        return message, ()
    parsed = _parse(CHAT, {"messages": [{"role": "assistant", "tool_calls": calls}]}, "messages[0]")
    rest = {key: value for key, value in message.items() if key != "tool_calls"}
    return rest, tuple(_adopt(block, body_api) for block in parsed.messages[0].blocks)


# ---------------------------------------------------------------------------------------------------------------- tools


def find_tool_api(entry: Mapping[str, Any]) -> str | None:
    """Return the API of a declaration, by its shape; `mcp` for a tool as an MCP server lists it, None if it may be any.

    A flat function with `parameters` is declared so in both OpenAI APIs; it counts as Chat if it has no type.
    """
    if not _TOOL_KEY_NAMES.isdisjoint(entry):
        for key, kind, api in _TOOL_KEYS:
            if entry.get(key) is not None and isinstance(entry[key], kind):
                return api
    if not isinstance(entry.get("name"), str):
        return None
    kind, schema = entry.get("type"), object_or_none(entry.get("parameters"))
    if entry.get("inputSchema") is not None:
        return MCP
    if schema is not None and kind is None:
        return GEMINI if schema.get("type") == "OBJECT" else CHAT
    if schema is not None and kind == "function":
        return RESPONSES
    # Tool types defined by Anthropic end with a date: `bash_20250124`.
    return ANTHROPIC if isinstance(kind, str) and kind[-8:].isdigit() else None


def parse_tool(entry: JsonObject, host_api: str, *accepted: str) -> tuple[Tool, ...] | None:
    """Parse a declaration of another API; None for this API's own, and for forms that its wire accepts too."""
    api = find_tool_api(entry)
    is_bare = api == GEMINI and "name" in entry
    if api is None or (api in (host_api, *accepted) and not is_bare):
        return None
    return tuple(parse_declaration(entry, api))


def parse_declaration(entry: JsonObject, api: str) -> Iterator[Tool]:
    """Parse a declaration of this API; one of Gemini may declare several tools. Paths are relative to the entry."""
    if api == MCP:
        description = optional_string(entry.get("description"), "description")
        schema = optional_schema(entry["inputSchema"], "inputSchema")
        yield Tool(entry["name"], description, schema, native=Native(MCP, entry))
        return
    is_bare = api == GEMINI and "name" in entry
    path = f"tools[0].{_DECLARATIONS}[0]" if is_bare else "tools[0]"
    tools = [{_DECLARATIONS: [entry]}] if is_bare else [entry]
    # Each wire parses its own list of messages and ignores the others.
    yield from _parse(api, {"messages": [], "input": [], "contents": [], "tools": tools}, path).tools


# ---------------------------------------------------------------------------------------------------------- tool choice


def _find_choice_api(value: object, host_api: str) -> str | None:
    """Return the API of a tool choice, by its shape; None if it may be the body's own."""
    choice = object_or_none(value)
    if choice is None:
        # Both OpenAI APIs have these modes.
        return CHAT if host_api == ANTHROPIC and isinstance(value, str) and value in _OPENAI_MODES else None
    kind = choice.get("type")
    api: str | None = None
    if isinstance(kind, str) and kind in _ANTHROPIC_CHOICES:
        api = ANTHROPIC
    elif isinstance(kind, str) and kind in _OPENAI_CHOICES:
        nested, named = isinstance(choice.get(kind), dict), isinstance(choice.get("name"), str)
        api = CHAT if nested else RESPONSES if named else None
    return None if api == host_api else api


def parse_choice(value: object, host_api: str) -> Options | None:
    """Parse a `tool_choice` in the form of another API: the choice, and `parallel` where the form has it."""
    api = _find_choice_api(value, host_api)
    if api is None:
        return None
    return _parse(api, {"messages": [], "input": [], "tool_choice": value}, "").options


def forget_foreign_choice(rendered: JsonObject, body: Mapping[str, Any], host_api: str) -> None:
    """Remove a choice in another API's form from the rendering of a body, so that merging replaces it in the body."""
    if _find_choice_api(body.get("tool_choice"), host_api) is not None:
        for key in ("tool_choice", "parallel_tool_calls"):
            rendered.pop(key, None)
