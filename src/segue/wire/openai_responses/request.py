"""Responses bodies ⇄ `Request` and `Transcript`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from segue.canonical.blocks import Native, Text, calls_of
from segue.canonical.ids import raw_id_or_none
from segue.canonical.json import are_identical
from segue.canonical.pairing import pair
from segue.canonical.request import Request, Tool
from segue.errors import InputError
from segue.models import parse_model
from segue.render.transcript import Transcript
from segue.wire import mixed_body
from segue.wire.base import RenderContext
from segue.wire.json_values import (
    JsonObject,
    json_type_name,
    object_or_none,
    objects_in,
    optional_object,
    optional_string,
    require_list,
    string_or_none,
)
from segue.wire.merge import merge_changes
from segue.wire.openai_responses.context import ParseContext, ResponsesContext, ResponsesDialect
from segue.wire.openai_responses.item_types import CALL_TYPES, FUNCTION_TYPES, OUTPUT_TYPES, CallType, item_type_or_none
from segue.wire.openai_responses.messages import parse_items, render_messages, repeated_positions
from segue.wire.openai_responses.options import (
    OPTION_KEYS,
    add_vendor_options,
    fit_options,
    parse_options,
    project_allowed_tools,
    render_options,
)
from segue.wire.openai_responses.tools import (
    DECLARING_TYPES,
    namespaced_names_by_bare_name,
    parse_item_tools,
    parse_tools,
    project_tools,
    render_tools,
)
from segue.wire.openai_shared import find_custom_names, is_openai_native
from segue.wire.schema import render_format_schema, rules

BODY_KEYS = OPTION_KEYS | {"model", "input", "instructions", "tools", "previous_response_id", "conversation"}


# ------------------------------------------------------------------------------------------------------------------ in


def parse_request(body: Mapping[str, Any], dialect: ResponsesDialect) -> Request:
    model = optional_string(body.get("model"), "model") or None
    items = _input_items(body, dialect)
    declared = [] if body.get("tools") is None else parse_tools(body["tools"], dialect)
    names = {tool.name for tool in declared}
    declared += [tool for tool in parse_item_tools(items, dialect) if tool.name not in names]
    previous = _previous_state(body, dialect)
    # OAI-RESP-10: earlier items may have been stored.
    stored = body.get("store") is not False or previous is not None
    repeated = repeated_positions(items)
    unique_items = [item for position, item in enumerate(items) if position not in repeated] if repeated else items
    context = create_parse_context(
        objects_in(unique_items), None, dialect, names=namespaced_names_by_bare_name(declared), stored=stored
    )
    context.continues = context.has_references or previous is not None
    return Request(
        pair(parse_items(items, context, repeated=repeated)),
        system=_parse_instructions(body.get("instructions"), dialect),
        tools=tuple(declared),
        options=parse_options(body, dialect),
        model=model,
        continues=previous or (_find_referenced_state(items) if context.has_references or repeated else None),
        native=Native(dialect.name, body),
    )


def _input_items(body: Mapping[str, Any], dialect: ResponsesDialect) -> Sequence[object]:
    value = body.get("input")
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    if value is None:
        if _previous_state(body, dialect) is None and not isinstance(body.get("prompt"), dict):
            raise InputError("a string or a list of items was expected", path="input")
        return []
    if not isinstance(value, list):
        raise InputError(f"a string or a list of items was expected, not {json_type_name(value)}", path="input")
    return cast("list[object]", value)


def create_parse_context(
    items: Sequence[JsonObject],
    model: str | None,
    dialect: ResponsesDialect,
    *,
    stored: bool,
    names: dict[str, str] | None = None,
) -> ParseContext:
    """Collect the facts about all items that parsing a single one needs."""
    called: list[str | None] = []
    outputs: list[JsonObject] = []
    hosted: dict[str, CallType] = {}
    shells: dict[str, str] = {}
    referred = _referenced_ids(items)
    for item in items:
        kind = str(item.get("type"))
        if kind in OUTPUT_TYPES:
            outputs.append(item)
            continue
        if kind not in FUNCTION_TYPES and kind not in CALL_TYPES:
            continue
        call_id = raw_id_or_none(item.get("call_id"))
        if kind in CALL_TYPES and CALL_TYPES[kind].is_hosted(item):
            hosted.update({call_id: CALL_TYPES[kind]} if call_id is not None else {})
        elif item.get("async") is not True and (kind in FUNCTION_TYPES or not CALL_TYPES[kind].id_optional):
            called.append(call_id)
            if kind == "local_shell_call" and call_id is not None and isinstance(item.get("id"), str):
                shells[item["id"]] = call_id
    answered = [raw_id_or_none(item.get("call_id")) or raw_id_or_none(item.get("id")) for item in outputs]
    answered_ids = set(answered)
    return ParseContext(
        dialect=dialect,
        model=model,
        stored=stored,
        has_references=bool(referred),
        joined_names=names or {},
        hosted_call_ids=frozenset(
            call_id for call_id, row in hosted.items() if not row.output_required or call_id in answered_ids
        ),
        answered_ids=frozenset(shells.get(name or "", name) for name in answered),
        shell_call_ids=shells,
        repeated_output_ids=_find_repeated(answered) if len(answered_ids) < len(answered) else frozenset(),
        # Only an output without the key is parsed by it.
        all_answered=any("call_id" not in item for item in outputs)
        and (bool(referred) or _all_answered(called, [shells.get(name or "", name) for name in answered])),
    )


def _find_repeated(ids: Sequence[str | None]) -> frozenset[str]:
    return frozenset(name for name, count in Counter(ids).items() if name is not None and count > 1)


def _all_answered(called: Sequence[str | None], answered: Sequence[str | None]) -> bool:
    return None not in called and Counter(called) <= Counter(answered)


def _previous_state(body: Mapping[str, Any], dialect: ResponsesDialect) -> str | None:
    """Return the stored response or conversation that precedes the items of the body."""
    value = body.get("conversation")
    previous = optional_string(body.get("previous_response_id"), "previous_response_id") or ""
    conversation = None if isinstance(value, str) else optional_object(value, "conversation")
    state = (previous if dialect.is_response_id(previous) else None) or string_or_none(value)
    if state or conversation is None:
        return state or None
    return optional_string(conversation.get("id"), "conversation.id") or "a stored conversation"


def _referenced_ids(items: Sequence[JsonObject]) -> list[str]:
    """Return the ids of referenced stored items that may be calls or outputs."""
    # References may omit their type.
    untyped = [item for item in items if item.get("type") in (None, "item_reference")]
    ids = [item.get("id") for item in untyped if item_type_or_none(item) == "item_reference"]
    return [
        item_id for item_id in ids if isinstance(item_id, str) and item_id and not item_id.startswith(("msg", "rs"))
    ]


def _find_referenced_state(items: Sequence[object]) -> str | None:
    """Return the first stored item that the body refers to and does not contain."""
    referred = _referenced_ids(objects_in(items))
    return f"the stored item {referred[0]}" if referred else None


def _parse_instructions(value: object, dialect: ResponsesDialect) -> tuple[Text, ...]:
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        return (Text(value),)
    # Replies return instructions as a list of items; strings and parts are texts, too.
    items = [_wrap_part(entry) for entry in require_list(value, "instructions")]
    messages = parse_items(items, ParseContext(dialect=dialect), "instructions")
    return tuple(
        Text(block.text, native=block.native)
        for message in messages
        for block in message.blocks
        if isinstance(block, Text)
    )


# ----------------------------------------------------------------------------------------------------------------- out


def render_items(transcript: Transcript, render_context: RenderContext, dialect: ResponsesDialect) -> list[JsonObject]:
    """Render the items of a request."""
    calls = [call for message in transcript.messages for call in calls_of(message)]
    context = ResponsesContext(dialect, render_context, calls)
    items = render_messages(transcript.messages, context)
    return _project_item_tools(items, transcript.tools, context) if transcript.is_same_api else items


def render_request(transcript: Transcript, render_context: RenderContext, dialect: ResponsesDialect) -> JsonObject:
    original: Mapping[str, Any] = {}
    if transcript.is_same_api and transcript.request.native is not None:
        original = transcript.request.native.fragment
    calls = [call for message in transcript.messages for call in calls_of(message)]
    context = ResponsesContext(dialect, render_context, calls)
    items = render_messages(transcript.messages, context)
    if transcript.is_same_api:
        return _render_same_api(transcript, original, items, context)
    tools = render_tools(transcript, context)
    declared = frozenset(tool.name for tool in transcript.tools if tool.kind != "hosted") if tools else frozenset[str]()
    options = transcript.options
    if not is_openai_native(transcript.request.native):
        form = render_format_schema(options.response_format, rules.OPENAI, context.report, strict=rules.OPENAI_STRICT)
        options = msgspec.structs.replace(options, response_format=form)
    options = fit_options(options, parse_model(transcript.rules_model), declared, context)
    rendered = render_options(options, dialect, context.project_name, find_custom_names(transcript.tools), {})
    body: JsonObject = {} if transcript.model is None else {"model": transcript.model}
    instructions = _render_instructions(transcript.system)
    if instructions:
        body["instructions"] = instructions
    body["input"] = items
    if tools:
        body["tools"] = tools
    return body | (add_vendor_options(options, rendered) if dialect.vendor_options else rendered)


def _wrap_part(entry: object) -> object:
    """Return a string or a content part as a message; items are returned unchanged."""
    match entry:
        case str():
            return {"role": "system", "content": entry}
        case {"type": "input_text" | "output_text" | "text", "text": str()}:
            return {"role": "system", "content": [entry]}
        case _:
            return entry


def _repair_choice(body: JsonObject, transcript: Transcript, context: ResponsesContext) -> None:
    """Replace a choice in the form of Chat Completions, and drop one without a tool name."""
    choice = transcript.options.tool_choice
    if choice is not None and choice.name:
        body["tool_choice"] = {"type": body["tool_choice"]["type"], "name": context.project_name(choice.name)}
        return
    del body["tool_choice"]
    context.report.add("adjusted", "`tool_choice` dropped: it names no tool", subject="tool_choice", level="lost")


def _render_instructions(system: Sequence[Text]) -> str:
    return "\n\n".join(block.text for block in system if block.text)


def _render_same_api(
    transcript: Transcript, original: Mapping[str, Any], items: list[JsonObject], context: ResponsesContext
) -> JsonObject:
    """Merge the changes into the original body."""
    body = _merge_options(transcript, original, context)
    # Replies return instructions as a list, which requests reject.
    if transcript.system != transcript.request.system or isinstance(original.get("instructions"), list):
        body["instructions"] = _render_instructions(transcript.system)
    if original.get("input") is None and not items:
        pass
    elif not isinstance(original.get("input"), str) or items != _input_items(original, context.dialect):
        _replace_list(body, "input", _project_item_tools(items, transcript.tools, context))
    if isinstance(original.get("tools"), list):
        _replace_list(body, "tools", project_tools(original["tools"], context))
    choice = object_or_none(body.get("tool_choice"))
    if choice is not None and choice.get("type") == "allowed_tools":
        body["tool_choice"] = project_allowed_tools(choice, context.project_name)
    if choice is not None and choice.get("type") in ("function", "custom") and not _has_name(choice):
        _repair_choice(body, transcript, context)
    # OAI-RESP-24
    for key in ("messages", "system"):
        if key in body:
            del body[key]
            context.report.add("dropped", f"`{key}` dropped: not a field of Responses requests", subject=key)
    if body.get("previous_response_id") and body.get("conversation") is not None:
        del body["conversation"]
        context.report.add(
            "adjusted",
            "`conversation` dropped: not allowed together with `previous_response_id`",
            subject="conversation",
            level="lost",
        )
    return body if context.dialect.repair_body is None else context.dialect.repair_body(body, context.report)


def _has_name(choice: JsonObject) -> bool:
    return isinstance(choice.get("name"), str) and bool(choice["name"])


def _project_item_tools(items: list[JsonObject], tools: Sequence[Tool], context: ResponsesContext) -> list[JsonObject]:
    """Return the items with projected names in the tool declarations that some of them hold."""
    if not any(tool.extra and "declared_in" in tool.extra for tool in tools):
        return items
    return [_project_item(item, context) for item in items]


def _project_item(item: JsonObject, context: ResponsesContext) -> JsonObject:
    tools = item.get("tools")
    if item.get("type") not in DECLARING_TYPES or not isinstance(tools, list):
        return item
    projected = project_tools(cast("list[Any]", tools), context)
    return item if are_identical(projected, cast("list[Any]", tools)) else {**item, "tools": projected}


def _replace_list(body: JsonObject, key: str, items: list[Any]) -> None:
    """Replace a list only if its items are not the same objects."""
    current = cast("list[object]", body[key]) if isinstance(body.get(key), list) else None
    if (items or key in body) and (current is None or not are_identical(items, current)):
        body[key] = items


def _merge_options(transcript: Transcript, original: Mapping[str, Any], context: ResponsesContext) -> JsonObject:
    request = transcript.request
    declared = frozenset(tool.name for tool in request.tools if tool.kind != "hosted")
    custom = find_custom_names(request.tools)
    options = transcript.options
    if transcript.model != request.model:
        all_names = declared | {tool.name for tool in request.tools}
        options = fit_options(options, parse_model(transcript.model), all_names, context)
    original_options = render_options(request.options, context.dialect, str, custom, original)
    new_options = render_options(
        options,
        context.dialect,
        lambda name: context.project_name(name) if name in declared else name,
        custom,
        original,
    )
    mixed_body.forget_foreign_choice(original_options, original, mixed_body.RESPONSES)
    if request.model is not None:
        original_options["model"] = request.model
    if transcript.model is not None:
        new_options["model"] = transcript.model
    body = merge_changes(original, original_options, new_options)
    for key in ("reasoning", "text"):
        original_value = object_or_none(original.get(key))
        if original_value is not None and original_options.get(key) != new_options.get(key):
            merged = merge_changes(original_value, original_options.get(key, {}), new_options.get(key, {}))
            body = {**body, key: merged} if merged else {name: value for name, value in body.items() if name != key}
    return body
