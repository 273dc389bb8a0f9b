"""`tool_calls` entries and the legacy `function_call` (which has no id) ⇄ `ToolCall`.

Same-API, a call is sent as the original object with only its id and name merged into it.
"""

from __future__ import annotations

from typing import Any, cast

from segue.canonical.blocks import Native, Origin, ToolCall
from segue.canonical.ids import raw_id_or_none
from segue.canonical.json import encode_json_text, parse_argument_text
from segue.errors import InputError
from segue.wire.json_values import require_object
from segue.wire.merge import replace_modelled_fields
from segue.wire.openai_chat.dialect import ChatContext, ChatDialect, JsonObject, drop_unknown_keys
from segue.wire.tools import duplicate_key_extra, render_arguments_object, render_arguments_text

__all__ = [
    "CALL_KEYS",
    "is_legacy_call",
    "parse_call",
    "parse_legacy_call",
    "render_call",
    "render_legacy_call",
    "with_tool_name",
]

_KINDS = ("function", "custom")
CALL_KEYS = frozenset({"id", "type", "function", "custom"})


# ------------------------------------------------------------------------------------------------------------- parsing


def parse_call(entry: JsonObject, dialect: ChatDialect, model: str | None) -> ToolCall:
    """Parse a call with an id: of a function tool, a custom tool or an unknown type."""
    kind = entry.get("type")
    key = kind if isinstance(kind, str) and kind in entry else "custom" if "custom" in entry else "function"
    detail = require_object(entry.get(key), key)
    arguments: Any
    arguments_text: str | None = None
    if key == "custom":
        value = detail.get("input")
        arguments = value if isinstance(value, str) else "" if value is None else encode_json_text(value)
        intact = isinstance(value, str)
    elif key == "function":
        arguments, arguments_text, intact = _parse_arguments(detail.get("arguments"), dialect)
    else:
        arguments, intact = {name: item for name, item in detail.items() if name != "name"}, True
    id_value = entry.get("id")
    raw_id = raw_id_or_none(id_value)
    invalid_id = id_value if raw_id is None and isinstance(id_value, str) and id_value else None
    return ToolCall(
        _parse_name(detail, f"{key}.name") or ("" if key in _KINDS else key),
        arguments,
        arguments_text=arguments_text,
        kind="custom" if key == "custom" else "function",
        extra=duplicate_key_extra(detail.get("arguments"), arguments) if key == "function" else None,
        origin=Origin(dialect.provider, model, raw_id, invalid_id, "natural" if raw_id else "synthetic"),
        native=Native(dialect.name, entry, intact and _has_matching_type(key, kind, dialect)),
    )


def _has_matching_type(key: str, kind: object, dialect: ChatDialect) -> bool:
    """Whether the `type` of a call matches its content."""
    # OAI-CHAT-21
    if kind is None:
        return key == "function" and dialect.untyped_calls
    return kind == key or (isinstance(kind, str) and kind in dialect.extra_call_types)


def parse_legacy_call(entry: JsonObject, dialect: ChatDialect, model: str | None) -> ToolCall:
    """Parse a legacy `function_call`, which has no id."""
    arguments, text, intact = _parse_arguments(entry.get("arguments"), dialect)
    return ToolCall(
        _parse_name(entry, "function_call.name"),
        arguments,
        arguments_text=text,
        origin=Origin(dialect.provider, model, identity="absent"),
        native=Native(dialect.name, entry, intact) if dialect.legacy_calls else None,
    )


def _parse_arguments(value: object, dialect: ChatDialect) -> tuple[Any, str | None, bool]:
    """The value, the exact text if it is not valid JSON, and whether it is valid for the API."""
    if not isinstance(value, str):
        return {} if value is None else value, None, dialect.object_arguments and isinstance(value, dict)
    arguments, text = parse_argument_text(value)
    match dialect.arguments:
        case "text":
            return arguments, text, True
        case "json":
            return arguments, text, text is None
        case "object":
            return arguments, text, text is None and isinstance(arguments, dict)


def _parse_name(detail: JsonObject, path: str) -> str:
    name = detail.get("name")
    if name is not None and not isinstance(name, str):
        raise InputError("a tool's name must be a string", path=path)
    return name or ""


# ----------------------------------------------------------------------------------------------------------- rendering


def is_legacy_call(call: ToolCall, own_native: Native | None, context: ChatContext) -> bool:
    """Whether this is a legacy `function_call`, which has no id and no type."""
    return context.dialect.legacy_calls and own_native is not None and call.origin.identity == "absent"


def render_legacy_call(call: ToolCall, context: ChatContext) -> JsonObject:
    context.legacy_calls.add(call.id)
    name = context.project_name(call.name)
    entry = cast("JsonObject", call.native.fragment if call.native is not None else {})
    if call.native is None or not call.native.intact:
        entry = {**entry, "arguments": _render_arguments(call, context)}
    return entry if entry.get("name") == name else {**entry, "name": name}


def render_call(call: ToolCall, context: ChatContext) -> JsonObject:
    wire_id = context.ids.render(call.id)
    own_native = context.own_native(call.native)
    if own_native is not None and own_native.intact and (call.kind != "custom" or context.dialect.custom_tools):
        entry = drop_unknown_keys(cast("JsonObject", own_native.fragment), "call", context)
        kind = entry.get("type") or "function"
        if kind in _KINDS:
            detail = drop_unknown_keys(entry[kind], f"call.{kind}", context)
            entry = entry if detail is entry[kind] else {**entry, kind: detail}
            entry = with_tool_name(entry, context.project_name(call.name))
        return entry if entry.get("id") == wire_id else {**entry, "id": wire_id}
    name = context.project_name(call.name)
    rendered: JsonObject
    # OAI-CHAT-21
    if call.kind == "custom" and context.dialect.custom_tools:
        text = call.arguments if isinstance(call.arguments, str) else encode_json_text(call.arguments)
        rendered = {"id": wire_id, "type": "custom", "custom": {"name": name, "input": text}}
    else:
        # OAI-CHAT-10: always a string
        arguments = _render_arguments(call, context)
        # A vendor's own tool may have a name that is not valid for a function.
        kind = own_native.fragment.get("type") if own_native is not None else None
        kind = kind if isinstance(kind, str) and kind in context.dialect.extra_call_types else "function"
        rendered = {"id": wire_id, "type": kind, "function": {"name": name, "arguments": arguments}}
    return rendered if own_native is None else replace_modelled_fields(own_native.fragment, rendered, CALL_KEYS)


def _render_arguments(call: ToolCall, context: ChatContext) -> str:
    form = context.dialect.arguments
    broken = call.arguments is None and call.arguments_text is not None
    # OAI-CHAT-10, QWEN-03, COMP-09, COMP-14, COMP-17
    refused = form == "json" or not context.dialect.invalid_json_arguments
    if (refused and broken) or (form == "object" and not isinstance(call.arguments, dict)):
        return encode_json_text(render_arguments_object(call, context.report))
    return render_arguments_text(call, context.report)


def with_tool_name(entry: JsonObject, name: str) -> JsonObject:
    """A call, declaration or choice (`{"type": "function", "function": {"name": …}}`) with this tool name."""
    key = entry.get("type") or "function"
    detail: JsonObject = entry[key]
    return entry if detail.get("name") == name else {**entry, key: {**detail, "name": name}}
