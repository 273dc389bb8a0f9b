"""Call, output, message and reasoning items ⇄ blocks.

`call_id` pairs a call with its output; `id` is the item's own and never a substitute. Same-API, a call or output is
sent as the original object with only `call_id` and name merged into it; a newly rendered item has no `id`, which is
always valid (OAI-RESP-02).

A message item with several parts becomes as many `Text` blocks, each with the item reduced to that part; same-API,
neighbours that were one item are joined again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import UNSET

from segue.canonical.blocks import Block, Message, Native, Origin, Text, Thinking, ToolCall, ToolResponse, text_of
from segue.canonical.ids import raw_id_or_none
from segue.canonical.json import encode_json_text
from segue.errors import InputError
from segue.wire.json_values import JsonObject, json_type_name, object_or_none, string_or_none
from segue.wire.merge import replace_modelled_fields
from segue.wire.names import join_name, split_name
from segue.wire.openai_responses.context import ParseContext, ResponsesContext, parse_arguments
from segue.wire.openai_responses.item_types import CALL_TYPE_BY_OUTPUT, CALL_TYPES, FUNCTION_TYPES, CallType
from segue.wire.openai_responses.parts import are_intact, are_strings_or_none, parse_parts, render_content
from segue.wire.openai_responses.required_fields import has_valid_call_id, has_valid_status
from segue.wire.tools import duplicate_key_extra, render_arguments_text

_CHAT_KEYS = frozenset({"tool_calls", "tool_call_id", "function_call"})
MESSAGE_KEYS = frozenset({"type", "id", "role", "content", "status", *_CHAT_KEYS})
CALL_KEYS = frozenset(
    {"type", "id", "call_id", "name", "namespace", "arguments", "input", "output", "status"}
    | {"action", "actions", "operation", "code", "result", "tools"}
)
_MODELLED_KEYS = frozenset({"type", "id", "call_id", "name", "namespace", "arguments", "input", "output"})
# OAI-RESP-16
OUTPUT_LIMIT = 10_485_760
# The output that Codex writes for an open call when it is killed; the real one may follow.
_ABORTED = "aborted"
# OAI-RESP-19
_NAMESPACE = re.compile(r"[a-zA-Z0-9_-]{1,64}")


# ------------------------------------------------------------------------------------------------------------- calls in


def _parse_origin(item: JsonObject, key: str, context: ParseContext, *, nullable: bool = False) -> Origin:
    id_value = item.get(key)
    raw_id = raw_id_or_none(id_value)
    invalid_id = id_value if raw_id is None and isinstance(id_value, str) and id_value else None
    item_id = raw_id_or_none(item.get("id")) if key != "id" else None
    identity = "natural" if raw_id else "nullable" if nullable else "synthetic"
    parent = raw_id_or_none((object_or_none(item["caller"]) or {}).get("caller_id")) if "caller" in item else None
    return Origin(context.dialect.provider, context.model, raw_id, item_id or invalid_id, identity, parent)


def parse_call(item: JsonObject, context: ParseContext, *, valid_id: bool) -> ToolCall:
    kind = item["type"]
    row = CALL_TYPES.get(kind)
    if row is None:
        return _parse_function(item, context, valid_id=valid_id)
    # OAI-RESP-04
    hosted = row.is_hosted(item) and (
        not row.output_required or raw_id_or_none(item.get("call_id")) in context.hosted_call_ids
    )
    # Hosted calls are sent back with their own ids or not at all.
    has_usable_id = not hosted or has_valid_call_id(item) or (row.id_optional and item.get("call_id") is None)
    first = context.is_first_use(kind, item)
    raw_arguments = row.arguments(item)
    arguments, text = parse_arguments(raw_arguments) if row.arguments_are_text else (raw_arguments, None)
    return ToolCall(
        row.get_name(item),
        arguments,
        arguments_text=text,
        kind="hosted" if hosted else "function",
        origin=_parse_origin(item, "call_id", context, nullable=hosted),
        native=context.native(
            item, valid_id and context.is_valid_item(kind, item) and has_usable_id and (first or not hosted)
        ),
        awaited=not context.has_references,
    )


def _parse_function(item: JsonObject, context: ParseContext, *, valid_id: bool) -> ToolCall:
    raw_name = item.get("name")
    if raw_name is not None and not isinstance(raw_name, str):
        raise InputError(f"a tool's name must be a string, not {json_type_name(raw_name)}", path="name")
    name, namespace = raw_name or "", string_or_none(item.get("namespace"))
    context.is_first_use(item["type"], item)
    is_custom = item["type"] == "custom_tool_call"
    value = item.get("input" if is_custom else "arguments")
    arguments: Any
    text: str | None = None
    if is_custom:
        arguments = value if isinstance(value, str) else "" if value is None else encode_json_text(value)
    else:
        arguments, text = parse_arguments(value)
    return ToolCall(
        join_name(namespace, name) if namespace else context.joined_names.get(name, name),
        arguments,
        arguments_text=text,
        kind="custom" if is_custom else "function",
        extra=None if is_custom else duplicate_key_extra(value, arguments),
        origin=_parse_origin(item, "call_id", context),
        # OAI-RESP-17: always a string
        native=context.native(item, valid_id and isinstance(value, str) and has_valid_status(item["type"], item)),
        awaited=item.get("async") is not True and not context.has_references,
    )


def parse_output(item: JsonObject, context: ParseContext, *, valid_id: bool) -> ToolResponse:
    kind = item["type"]
    call_type = CALL_TYPE_BY_OUTPUT.get(kind)
    row = CALL_TYPES[call_type] if call_type is not None else None
    # OAI-RESP-20: for the local shell, the output's item id may be the id of its call.
    key = _call_id_key(item)
    origin = _parse_origin(item, key, context, nullable=True)
    if key == "id" and origin.raw_id is not None:
        origin = msgspec.structs.replace(origin, raw_id=context.shell_call_ids.get(origin.raw_id, origin.raw_id))
    structured: Any = UNSET
    hosted = is_hosted_output(item, context)
    if row is not None:
        has_usable_id = not hosted or has_valid_call_id(item) or (row.id_optional and item.get("call_id") is None)
        content, structured = row.content(item), row.structured(item)
        is_valid = context.is_valid_item(kind, item) and has_usable_id and (not hosted or context.has_call(item))
    else:
        content, structured, is_valid = _parse_output_content(item.get("output"), context)
        is_valid = is_valid and has_valid_status(kind, item) and _has_valid_name(item)
    first = context.is_first_use(kind, item)
    return ToolResponse(
        name=_output_name(item) if row is None else row.get_name(item) or None,
        content=content,
        structured=structured,
        error=row is not None and row.is_error(item),
        is_complete=row is None or not row.is_pending(item),
        outcome="interrupted"
        if item.get("output") == _ABORTED and origin.raw_id in context.repeated_output_ids
        else None,
        hosted=hosted,
        origin=origin,
        native=context.native(item, valid_id and is_valid and (first or not hosted)),
    )


def _call_id_key(item: Mapping[str, Any]) -> str:
    """Return the key of an output that holds the id of its call."""
    local = item.get("type") == "local_shell_call_output"
    return "id" if local and raw_id_or_none(item.get("call_id")) is None else "call_id"


def _has_valid_name(item: JsonObject) -> bool:
    # OAI-RESP-19
    name, namespace = item.get("name"), item.get("namespace")
    is_valid = name is None or (isinstance(name, str) and len(name) <= 128)
    return is_valid and (namespace is None or (isinstance(namespace, str) and bool(_NAMESPACE.fullmatch(namespace))))


def is_hosted_output(item: JsonObject, context: ParseContext) -> bool:
    """Return whether the provider made this output."""
    call_type = CALL_TYPE_BY_OUTPUT.get(item["type"])
    call_id = raw_id_or_none(item.get("call_id"))
    return call_type is not None and (call_id in context.hosted_call_ids or CALL_TYPES[call_type].is_hosted(item))


def _output_name(item: JsonObject) -> str | None:
    name, namespace = string_or_none(item.get("name")), string_or_none(item.get("namespace"))
    return join_name(namespace, name) if name and namespace else name or None


def _parse_output_content(output: object, context: ParseContext) -> tuple[tuple[Block, ...], Any, bool]:
    """Return blocks, structured value or UNSET, and whether the API accepts it unchanged (OAI-RESP-16)."""
    if isinstance(output, str):
        return (Text(output),), UNSET, len(output) <= OUTPUT_LIMIT
    if isinstance(output, list):
        blocks = parse_parts(cast("list[object]", output), "input", "output", context.dialect)
        return tuple(blocks), UNSET, are_intact(blocks, context.dialect)
    return (), UNSET if output is None else output, False


# ------------------------------------------------------------------------------------------------------------ calls out


def find_typed_calls(messages: Sequence[Message], context: ResponsesContext) -> frozenset[str]:
    """Return the ids of calls that keep their own item type: call and output are intact or can be rendered."""
    responses = {
        block.call_id: block for message in messages for block in message.blocks if isinstance(block, ToolResponse)
    }
    return frozenset(call.id for call in context.calls.values() if _keeps_type(call, responses.get(call.id), context))


def _keeps_type(call: ToolCall, response: ToolResponse | None, context: ResponsesContext) -> bool:
    own_native = context.own_native(call.native)
    row = (
        CALL_TYPES.get(own_native.fragment["type"])
        if own_native is not None and "type" in own_native.fragment
        else None
    )
    if own_native is None or row is None or not own_native.intact:
        return False
    # The item may have lost a required id.
    if not context.dialect.accepts_item(own_native.fragment["type"], cast("JsonObject", own_native.fragment)):
        return False
    output_native = context.own_native(response.native) if response is not None else None
    if response is None or (
        output_native is not None and output_native.intact and output_native.fragment.get("type") == row.output_type
    ):
        return True
    can_render = row.render_output is not None and all(isinstance(block, Text) for block in response.content or ())
    return can_render or _takes_function_output(row, context)


def _takes_function_output(row: CallType, context: ResponsesContext) -> bool:
    # OAI-RESP-17: known of OpenAI's own service.
    return row.function_output and context.dialect.vendor_options


def render_call(call: ToolCall, context: ResponsesContext) -> JsonObject:
    wire_id, name = context.ids.render(call.id), context.project_name(call.name)
    own_native = context.own_native(call.native)
    if (
        own_native is not None
        and own_native.intact
        and (own_native.fragment["type"] in FUNCTION_TYPES or call.id in context.typed_call_ids)
    ):
        return project_call_item(cast("JsonObject", own_native.fragment), call, context)
    rendered: JsonObject = {"type": "function_call", "call_id": wire_id, **_name_fields(name)}
    if call.kind == "custom":
        text = call.arguments if isinstance(call.arguments, str) else encode_json_text(call.arguments)
        rendered |= {"type": "custom_tool_call", "input": text}
    else:
        original = own_native.fragment.get("arguments") if own_native is not None else None
        rendered["arguments"] = render_arguments_text(call, context.report, original)
    item_id = context.known_item_id(rendered["type"], call.origin.item_id)
    if item_id is not None and call.origin.provider == context.dialect.provider:
        rendered["id"] = item_id
    if own_native is None or own_native.fragment.get("type") != rendered["type"]:
        return rendered
    return _merge_item(own_native.fragment, rendered, _MODELLED_KEYS)


def _merge_item(fragment: Mapping[str, Any], rendered: JsonObject, modelled: frozenset[str]) -> JsonObject:
    replaced_keys = modelled if has_valid_status(rendered["type"], dict(fragment)) else modelled | {"status"}
    return replace_modelled_fields(fragment, rendered, replaced_keys)


def project_call_item(item: JsonObject, call: ToolCall, context: ResponsesContext) -> JsonObject:
    """Return the item of a call with projected id and name; the same object if they do not change."""
    wire_id = context.ids.render(call.id)
    changes: JsonObject = {} if item.get("call_id") == wire_id else {"call_id": wire_id}
    if item["type"] in FUNCTION_TYPES:
        namespace, bare = split_name(context.project_name(call.name))
        current_namespace = item.get("namespace")
        if item.get("name") != bare:
            changes["name"] = bare
        if namespace is None and current_namespace is not None:
            item = {key: value for key, value in item.items() if key != "namespace"}
        # OAI-RESP-18: a custom tool call may omit the namespace.
        elif current_namespace != namespace and (current_namespace is not None or item["type"] == "function_call"):
            changes["namespace"] = namespace
    return {**item, **changes} if changes else item


def _name_fields(name: str) -> JsonObject:
    # OAI-RESP-18
    namespace, bare = split_name(name)
    return {"name": name} if namespace is None else {"name": bare, "namespace": namespace}


def render_output(response: ToolResponse, context: ResponsesContext) -> JsonObject:
    own_native = context.own_native(response.native)
    # OAI-RESP-05: the call may be stored with the provider.
    call = context.calls.get(response.call_id)
    wire_id = response.origin.raw_id if call is None else context.ids.render(response.call_id)
    kind = _output_type(response, call, own_native, context)
    if own_native is not None and own_native.intact and own_native.fragment.get("type") == kind:
        keeps_id = wire_id is None or wire_id == response.origin.raw_id
        return (
            cast("JsonObject", own_native.fragment)
            if keeps_id
            else {**own_native.fragment, _call_id_key(own_native.fragment): wire_id}
        )
    rendered: JsonObject = {"type": kind} if wire_id is None else {"type": kind, "call_id": wire_id}
    render_typed = CALL_TYPES[CALL_TYPE_BY_OUTPUT[kind]].render_output if kind in CALL_TYPE_BY_OUTPUT else None
    if render_typed is not None:
        rendered |= render_typed(response, _result_text(response))
        if kind == "local_shell_call_output" and wire_id is not None:
            rendered["id"] = wire_id
    else:
        rendered["output"] = _render_output_content(response, context)
    if own_native is None or own_native.fragment.get("type") != kind:
        return rendered
    name_keys = frozenset({"name", "namespace"}) if _has_valid_name(dict(own_native.fragment)) else frozenset[str]()
    return _merge_item(own_native.fragment, rendered, _MODELLED_KEYS - name_keys)


def _output_type(
    response: ToolResponse, call: ToolCall | None, own_native: Native | None, context: ResponsesContext
) -> str:
    """Return the type of an output, which is that of its call (OAI-RESP-17)."""
    if call is None and own_native is not None:
        return own_native.fragment["type"]
    if call is not None and call.id in context.typed_call_ids and call.native is not None:
        row = CALL_TYPES[call.native.fragment["type"]]
        is_own = own_native is not None and own_native.intact and own_native.fragment.get("type") == row.output_type
        keeps_type = is_own or not _takes_function_output(row, context)
        return row.output_type if keeps_type else FUNCTION_TYPES["function_call"]
    return FUNCTION_TYPES["custom_tool_call" if call is not None and call.kind == "custom" else "function_call"]


def _result_text(response: ToolResponse) -> str:
    if response.structured is not UNSET:
        return encode_json_text(response.structured)
    return text_of(response.content)


def _render_output_content(response: ToolResponse, context: ResponsesContext) -> str | list[JsonObject]:
    if response.structured is not UNSET and not _has_text(response.content or ()):
        json_text = encode_json_text(response.structured)
        content = json_text if not response.content else render_content((Text(json_text), *response.content), context)
    else:
        content = render_content(response.content or (), context)
    if isinstance(content, str) and len(content) > OUTPUT_LIMIT:
        message = f"tool output cut to {OUTPUT_LIMIT} characters, the maximum"
        context.report.add("dropped", message, call_id=response.call_id)
        return content[: OUTPUT_LIMIT - 1] + "…"
    return content


def _has_text(blocks: Iterable[Block]) -> bool:
    return any(isinstance(block, Text) for block in blocks)


# ------------------------------------------------------------------------------------------------ text and reasoning in


def parse_assistant_message(item: JsonObject, context: ParseContext) -> list[Block]:
    """Parse one block for each part, each with the item reduced to that part as its fragment."""
    content, is_valid = item.get("content"), is_valid_message(item)
    if isinstance(content, str):
        return [Text(content, native=context.native(item, is_valid))]
    if content is None:
        return [Text("", native=context.native(item, intact=False))]
    if not isinstance(content, list):
        raise InputError(f"a string or a list of parts was expected, not {json_type_name(content)}", path="content")
    parts = parse_parts(cast("list[object]", content), "output", "content", context.dialect)
    if not parts:
        return [Text("", native=context.native(item, is_valid))]
    # One invalid part makes the whole item not intact.
    intact = is_valid and are_intact(parts, context.dialect)
    blocks: list[Block] = []
    for index, (part, block) in enumerate(zip(cast("list[object]", content), parts, strict=True)):
        if isinstance(block, ToolCall | ToolResponse | Thinking):
            blocks.append(block)
            continue
        if len(parts) == 1:
            native, position = context.native(item, intact), None
        else:
            native, position = context.native({**item, "content": [part]}, intact), {"part": [index, len(parts)]}
        blocks.append(msgspec.structs.replace(block, native=native, extra=position))
    return blocks


def is_valid_message(item: JsonObject) -> bool:
    # OAI-RESP-14: Chat Completions keys are rejected with any value.
    return has_valid_status("message", item) and _CHAT_KEYS.isdisjoint(item)


def parse_reasoning(item: JsonObject, context: ParseContext) -> Thinking:
    """Parse reasoning. Its item id becomes the signature if the provider may have stored the item."""
    texts = [
        text
        for key in ("summary", "content")
        for part in (cast("list[object]", item[key]) if isinstance(item.get(key), list) else [])
        if (text := string_or_none((object_or_none(part) or {}).get("text")))
    ]
    item_id = raw_id_or_none(item.get("id"))
    encrypted = string_or_none(item.get("encrypted_content")) or None
    # OAI-RESP-10: reasoning in plain text is not looked up in the store.
    stored = context.stored or (isinstance(item.get("content"), list) and bool(item["content"]))
    is_stored = item_id is not None and stored and context.dialect.is_valid_id("reasoning", item_id)
    return Thinking(
        "\n\n".join(texts),
        signature=item_id if is_stored else None,
        encrypted=encrypted,
        origin=Origin(
            context.dialect.provider, context.model, item_id=item_id, identity="natural" if item_id else "absent"
        ),
        native=context.native(
            item, isinstance(item.get("summary"), list) and are_strings_or_none(item, "encrypted_content")
        ),
    )


# ----------------------------------------------------------------------------------------------- text and reasoning out


def assistant_message(text: str) -> JsonObject:
    # The only form of assistant text that needs no id.
    return {"role": "assistant", "content": text}


def render_text(block: Text, own_native: Native | None, context: ResponsesContext) -> JsonObject:
    rendered = assistant_message(block.text)
    if own_native is None:
        return rendered
    item_id = context.known_item_id("message", own_native.fragment.get("id"))
    if item_id is not None:
        part: JsonObject = {"type": "output_text", "text": block.text, "annotations": []}
        rendered |= {"type": "message", "id": item_id, "status": "completed", "content": [part]}
    return replace_modelled_fields(own_native.fragment, rendered, MESSAGE_KEYS)


def render_reasoning(block: Thinking, own_native: Native | None) -> JsonObject:
    summary = [{"type": "summary_text", "text": block.text}] if block.text else []
    if own_native is not None:
        fragment = {
            key: value for key, value in own_native.fragment.items() if key != "encrypted_content" or block.encrypted
        }
        return {
            **fragment,
            "summary": own_native.fragment["summary"] if isinstance(fragment.get("summary"), list) else summary,
        }
    if not block.encrypted and not block.signature:
        return {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": block.text}]}
    rendered: JsonObject = {"type": "reasoning", "summary": summary, "encrypted_content": block.encrypted}
    return rendered if block.origin.item_id is None else {"id": block.origin.item_id, **rendered}


def _part_position(block: Block, context: ResponsesContext) -> tuple[int, int] | None:
    """Return the index of this part in its item, and the number of parts."""
    own_native = context.own_native(block.native)
    match block.extra:
        case {"part": [int(index), int(count)]} if own_native is not None and own_native.intact:
            return index, count
        case _:
            return None


def join_parts(item: JsonObject, previous: Block, block: Block, context: ResponsesContext) -> JsonObject | None:
    """Return the item with the part of `block` appended if both blocks were parts of it, else None."""
    previous_position, position = _part_position(previous, context), _part_position(block, context)
    if (
        previous_position is None
        or position is None
        or position != (previous_position[0] + 1, previous_position[1])
        or block.native is None
    ):
        return None
    fragment = block.native.fragment
    return {**item, "content": [*item["content"], *fragment["content"]]}
