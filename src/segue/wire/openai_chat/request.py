"""Chat Completions bodies ⇄ `Request` and `Transcript`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from msgspec.structs import replace

from segue.canonical.blocks import Message, Native
from segue.canonical.json import are_identical
from segue.canonical.pairing import pair
from segue.canonical.request import Request, Tool
from segue.errors import InputError
from segue.models import parse_model
from segue.render.transcript import Transcript
from segue.wire import mixed_body
from segue.wire.base import RenderContext
from segue.wire.draft7 import is_draft7
from segue.wire.json_values import (
    JsonObject,
    object_or_none,
    optional_boolean,
    optional_object,
    optional_schema,
    optional_string,
    require_list,
    require_object,
    string_or_none,
)
from segue.wire.merge import merge_changes
from segue.wire.openai_chat.dialect import ChatContext, ChatDialect, drop_unknown_keys
from segue.wire.openai_chat.items import CALL_KEYS, PART_KEYS, with_tool_name
from segue.wire.openai_chat.messages import ERROR_KEY, MESSAGE_KEYS, parse_message, render_messages
from segue.wire.openai_chat.options import (
    fit_options,
    option_keys,
    parse_options,
    render_chat_vendor_options,
    render_options,
)
from segue.wire.openai_chat.reasoning import DETAILS_KEY
from segue.wire.openai_shared import find_custom_names, is_openai_native
from segue.wire.schema import render_format_schema, render_schema, render_tool_schema
from segue.wire.schema.rules import MISTRAL, OPENAI_STRICT
from segue.wire.tools import limit_tools, render_object_schema, report_undeclarable, to_function_tool, to_object_schema

# The APIs whose declarations are parsed here.
_ACCEPTED_TOOLS = ("openai-chat", "openai-responses")
# `arguments` belongs to the legacy calls; the last three are added by SDKs when they parse a reply.
_ITEM_KEYS = (
    MESSAGE_KEYS
    | CALL_KEYS
    | PART_KEYS
    | {"arguments", "index", "parsed", "parsed_arguments", DETAILS_KEY, ERROR_KEY}
    | {f"function.{key}" for key in ("name", "arguments", "parsed_arguments")}
    | {"custom.name", "custom.input", "function_call.name", "function_call.arguments"}
    | {"image_url.url", "image_url.detail", "video_url.url", "input_audio.data", "input_audio.format"}
    | {f"file.{key}" for key in ("file_data", "file_id", "filename")}
)


def item_keys(dialect: ChatDialect) -> frozenset[str]:
    """Return the keys of messages, parts and calls that have a canonical field."""
    return _ITEM_KEYS if dialect.prefill_key is None else _ITEM_KEYS | {dialect.prefill_key}


def body_keys(dialect: ChatDialect) -> frozenset[str]:
    """Return the body keys that have a canonical field."""
    return option_keys(dialect) | {"model", "messages", "tools", "functions"}


# ------------------------------------------------------------------------------------------------------------- parsing


def parse_request(body: Mapping[str, Any], *, dialect: ChatDialect) -> Request:
    model = optional_string(body.get("model"), "model")
    if "messages" not in body:
        raise InputError("a list of messages was expected", path="messages")
    messages: list[Message] = []
    body_api = dialect.body_api
    for index, item in enumerate(require_list(body["messages"], "messages")):
        try:
            message = require_object(item)
            is_own = "role" in message and "parts" not in message
            if is_own or not mixed_body.add_message(messages, message, body_api):
                messages.append(parse_message(message, dialect))
        except InputError as error:
            raise error.with_prefix(f"messages[{index}]") from None
    # KIM-08: the API ignores ids and pairs by order.
    positional = dialect.constraints(parse_model(model or dialect.default_model)).pairs_by_position
    return Request(
        pair(messages, positional=positional),
        tools=tuple(_parse_tools(body, dialect)),
        options=parse_options(body, dialect),
        model=model,
        native=Native(dialect.name, body),
    )


def _parse_tools(body: Mapping[str, Any], dialect: ChatDialect) -> Iterator[Tool]:
    for key in ("tools", "functions"):
        if body.get(key) is None:
            continue
        for index, item in enumerate(require_list(body[key], key)):
            try:
                entry = require_object(item)
                if key == "functions":
                    yield _parse_function(entry, entry, dialect)
                else:
                    yield from mixed_body.parse_tool(entry, *_ACCEPTED_TOOLS) or [_parse_tool(entry, dialect)]
            except InputError as error:
                raise error.with_prefix(f"{key}[{index}]") from None


def _parse_tool(entry: JsonObject, dialect: ChatDialect) -> Tool:
    kind = entry.get("type", "function")
    if not isinstance(kind, str):
        raise InputError("a tool's type must be a string", path="type")
    if kind not in ("function", "custom"):
        function_name = string_or_none((object_or_none(entry.get("function")) or {}).get("name"))
        return Tool(function_name or kind, kind="hosted", native=Native(dialect.name, entry))
    # A flat declaration is the Responses form; it is accepted.
    flat = entry.get(kind) is None and isinstance(entry.get("name"), str)
    detail = entry if flat else require_object(entry.get(kind), kind)
    intact = not flat and ("type" in entry or dialect.untyped)
    if kind == "function":
        return _parse_function(entry, detail, dialect, intact=intact)
    form = optional_object(detail.get("format"), _detail_path(entry, detail, "format")) or {}
    grammar = optional_object(form.get("grammar"), _detail_path(entry, detail, "format.grammar"))
    grammar = grammar or (form if "definition" in form else None)
    return Tool(
        _tool_name(entry, detail),
        optional_string(detail.get("description"), _detail_path(entry, detail, "description")),
        kind="custom",
        grammar=grammar,
        native=Native(dialect.name, entry, intact),
    )


def _parse_function(entry: JsonObject, detail: JsonObject, dialect: ChatDialect, *, intact: bool = True) -> Tool:
    native = Native(dialect.name, entry, intact)
    name, description, schema = _tool_name(entry, detail), detail.get("description"), detail.get("parameters")
    if isinstance(description, str) and isinstance(schema, dict) and isinstance(detail.get("strict"), bool | None):
        return Tool(name, description, cast("JsonObject", schema), strict=detail.get("strict"), native=native)
    return Tool(
        name,
        optional_string(description, _detail_path(entry, detail, "description")),
        optional_schema(schema, _detail_path(entry, detail, "parameters")),
        strict=optional_boolean(detail.get("strict"), _detail_path(entry, detail, "strict")),
        native=native,
    )


def _tool_name(entry: JsonObject, detail: JsonObject) -> str:
    name = detail.get("name")
    if not isinstance(name, str):
        raise InputError("a tool's name was expected", path=_detail_path(entry, detail, "name"))
    return name


def _detail_path(entry: JsonObject, detail: JsonObject, key: str) -> str:
    """Return the path of a key in the declaration, which may be flat."""
    return key if detail is entry else f"{entry.get('type', 'function')}.{key}"


# ----------------------------------------------------------------------------------------------------------- rendering


def render_items(transcript: Transcript, render_context: RenderContext, *, dialect: ChatDialect) -> list[JsonObject]:
    """Render the messages of a request."""
    dialect = dialect.for_model(parse_model(transcript.rules_model or dialect.default_model))
    return render_messages(transcript.messages, transcript.system, ChatContext(dialect, render_context))


def render_request(transcript: Transcript, render_context: RenderContext, *, dialect: ChatDialect) -> JsonObject:
    model = parse_model(transcript.rules_model or dialect.default_model)
    dialect = dialect.for_model(model)
    context = ChatContext(dialect, render_context)
    messages = render_messages(transcript.messages, transcript.system, context)
    tools = _supported_tools(transcript, context)
    if transcript.is_same_api and transcript.request.native is not None:
        return _render_same_api(transcript, transcript.request.native.fragment, messages, tools, context)
    declared = frozenset(tool.name for tool in tools)
    options = transcript.options
    if not (dialect.strict_schema_rules is OPENAI_STRICT and is_openai_native(transcript.request.native)):
        form = render_format_schema(
            options.response_format, dialect.schema_rules, context.report, strict=dialect.strict_schema_rules
        )
        options = replace(options, response_format=form)
    options = fit_options(options, dialect, model, declared, context.report)
    rendered = render_options(options, dialect, context.project_name, find_custom_names(tools), {})
    if options.stream:
        # Other APIs always send usage, and their clients rely on it.
        rendered |= dialect.stream_fields
    vendor_options = render_chat_vendor_options(options, dialect, context.report)
    if vendor_options:
        rendered.pop("user", None)
    body: JsonObject = {} if transcript.model is None else {"model": transcript.model}
    body["messages"] = messages
    if tools:
        body["tools"] = [_render_tool(tool, context) for tool in tools]
    for key in ("tool_choice", "parallel_tool_calls"):
        if key in rendered:
            body[key] = rendered[key]
    return drop_unknown_keys(body | rendered | vendor_options, "body", context)


def _render_same_api(
    transcript: Transcript,
    original: Mapping[str, Any],
    messages: list[JsonObject],
    tools: Sequence[Tool],
    context: ChatContext,
) -> JsonObject:
    """Merge the changes into the original body."""
    request = transcript.request
    custom = find_custom_names(request.tools)
    original_options = render_options(request.options, context.dialect, str, custom, original)
    new_options = render_options(transcript.options, context.dialect, context.project_name, custom, original)
    mixed_body.forget_foreign_choice(original_options, original, mixed_body.CHAT)
    if request.model is not None:
        original_options["model"] = request.model
    if transcript.model is not None:
        new_options["model"] = transcript.model
    body = merge_changes(original, original_options, new_options)
    _replace_list(body, "messages", messages)
    legacy_tools = [tool for tool in tools if _is_legacy_tool(tool, context)]
    _replace_list(body, "functions", [_render_legacy_tool(tool, context) for tool in legacy_tools])
    _replace_list(body, "tools", [_render_tool(tool, context) for tool in tools if not _is_legacy_tool(tool, context)])
    choice = object_or_none(body.get("tool_choice"))
    if choice is not None and choice.get("type") == "allowed_tools":
        body["tool_choice"] = _project_allowed_tools(choice, context)
    # MIS-13
    if body.get("tools") == [] and not context.dialect.empty_tools:
        del body["tools"]
    kept = drop_unknown_keys(body, "body", context)
    # An option under a rejected key is sent under the accepted one.
    return body if kept is body else {**kept, **{key: value for key, value in new_options.items() if key not in kept}}


def _replace_list(body: JsonObject, key: str, items: list[JsonObject]) -> None:
    """Replace a list only if its items are not the same objects."""
    current = cast("list[object]", body[key]) if isinstance(body.get(key), list) else []
    if are_identical(current, items):
        return
    if items or key == "messages":
        body[key] = items
    else:
        del body[key]


def _project_allowed_tools(choice: JsonObject, context: ChatContext) -> JsonObject:
    """Return `allowed_tools` with projected tool names."""
    allowed = object_or_none(choice.get("allowed_tools")) or {}
    entries = cast("list[object]", allowed["tools"]) if isinstance(allowed.get("tools"), list) else []
    projected: list[object] = []
    for item in entries:
        entry = object_or_none(item) or {}
        kind = string_or_none(entry.get("type")) or ""
        name = (object_or_none(entry.get(kind)) or {}).get("name")
        projected.append(with_tool_name(entry, context.project_name(name)) if isinstance(name, str) else item)
    if are_identical(projected, entries):
        return choice
    return {**choice, "allowed_tools": {**allowed, "tools": projected}}


def _supported_tools(transcript: Transcript, context: ChatContext) -> Sequence[Tool]:
    """Return the tools that the target supports; report the others."""
    tools: list[Tool] = []
    for tool in transcript.tools:
        if tool.kind == "hosted" and (context.own_native(tool.native) is None or not context.dialect.hosted_tools):
            report_undeclarable(tool, context.report)
        else:
            tools.append(tool)
    if not context.dialect.custom_tools:
        tools = [to_function_tool(tool, context.report) for tool in tools]
    return limit_tools(tools, context.dialect.tool_limit, transcript, context.report)


def _is_legacy_tool(tool: Tool, context: ChatContext) -> bool:
    """Return whether the tool was declared in the legacy `functions`, where a declaration has no type."""
    own_native = context.own_native(tool.native)
    return own_native is not None and own_native.intact and own_native.fragment.keys().isdisjoint(("type", "function"))


def _render_legacy_tool(tool: Tool, context: ChatContext) -> JsonObject:
    entry = cast("JsonObject", tool.native.fragment if tool.native is not None else {})
    changes = _changed_fields(tool, entry, context)
    return {**entry, **changes} if changes else entry


def _render_tool(tool: Tool, context: ChatContext) -> JsonObject:
    own_native = context.own_native(tool.native)
    key = "custom" if tool.kind == "custom" else "function"
    detail: JsonObject
    if own_native is not None and own_native.intact and not _is_legacy_tool(tool, context):
        entry = cast("JsonObject", own_native.fragment)
        if tool.kind == "hosted":
            return entry
        detail = drop_unknown_keys(entry[key], f"tools.{key}", context)
        changes = _changed_fields(tool, detail, context)
        unchanged = not changes and detail is entry[key]
        return drop_unknown_keys(entry if unchanged else {**entry, key: {**detail, **changes}}, "tools", context)
    detail = {"name": context.project_name(tool.name)}
    if tool.description is not None:
        detail["description"] = _fit_description(tool, context)
    if tool.kind == "custom":
        if tool.grammar is not None:
            detail["format"] = {"type": "grammar", "grammar": tool.grammar}
        return {"type": key, key: detail}
    dialect = context.dialect
    if own_native is not None or (dialect.strict_schema_rules is OPENAI_STRICT and is_openai_native(tool.native)):
        detail["parameters"], strict = _render_schema(tool, context), tool.strict
    else:
        detail["parameters"], strict = render_tool_schema(
            tool, dialect.schema_rules, context.report, strict=dialect.strict_schema_rules
        )
    if strict is not None:
        detail["strict"] = strict
    return {"type": key, key: detail}


def _changed_fields(tool: Tool, detail: JsonObject, context: ChatContext) -> JsonObject:
    """Return the fields that differ from the original declaration."""
    fields: JsonObject = {"name": context.project_name(tool.name), "description": _fit_description(tool, context)}
    # COMP-10, MIS-13
    if context.dialect.parameters_required and tool.kind == "function":
        fields["parameters"] = (
            _render_schema(tool, context) if tool.parameters is None else _repair_schema(tool, context)
        )
    return {key: value for key, value in fields.items() if value is not None and detail.get(key) != value}


def _render_schema(tool: Tool, context: ChatContext) -> JsonObject:
    return _repair_schema(tool, context) or render_object_schema(tool, context.dialect.schema_rules, context.report)


def _repair_schema(tool: Tool, context: ChatContext) -> JsonObject | None:
    """Return a repaired schema if the target rejects the original, else None."""
    if (
        not context.dialect.parameters_required
        or tool.parameters is None
        or is_draft7(to_object_schema(tool.parameters))
    ):
        return None
    context.report.add("tools", "parameters repaired: not a valid JSON Schema (draft 7)", subject=tool.name)
    return render_schema(tool.parameters, MISTRAL, context.report, subject=tool.name)


def _fit_description(tool: Tool, context: ChatContext) -> str | None:
    limit = context.dialect.description_limit
    if tool.description is None or limit is None or len(tool.description) <= limit:
        return tool.description
    # OAI-CHAT-16
    context.report.add("tools", f"description cut to {limit} characters, the maximum", subject=tool.name, level="lost")
    return tool.description[: limit - 1] + "…"
