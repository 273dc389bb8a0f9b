"""Content parts, call items and output items ⇄ blocks.

A part of an unknown type becomes an `Opaque` block that holds the whole part. Same-API, each part is sent as the
original object; a part of the other side's type (`output_text` in a user message) is parsed and repaired.

`call_id` pairs a call with its output; `id` is the item's own and never a substitute. Same-API, a call or output is
sent as the original object with only `call_id` and name merged into it; a newly rendered item has no `id`, which is
always valid (OAI-RESP-02).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, assert_never, cast

import msgspec
from msgspec import UNSET

from segue.canonical.blocks import (
    Block,
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
    text_of,
)
from segue.canonical.ids import raw_id_or_none
from segue.canonical.json import encode_json_text
from segue.errors import InputError, ProjectionError
from segue.render.constraints import TEXTS
from segue.wire.json_values import (
    JsonObject,
    json_type_name,
    object_or_none,
    require_list,
    require_object,
    string_or_none,
)
from segue.wire.media import add_extension, report_dropped_name
from segue.wire.merge import replace_modelled_fields
from segue.wire.openai_responses.context import (
    OPENAI,
    ParseContext,
    ResponsesContext,
    ResponsesDialect,
    join_name,
    parse_arguments,
    split_name,
)
from segue.wire.openai_responses.item_types import (
    CALL_TYPE_BY_OUTPUT,
    CALL_TYPES,
    FUNCTION_TYPES,
    are_strings_or_none,
    parse_image_url,
)
from segue.wire.openai_responses.required_fields import has_valid_call_id, has_valid_status
from segue.wire.openai_shared import AUDIO_TYPES, data_url, fetch_media, split_data_url
from segue.wire.tools import duplicate_key_extra, render_arguments_text

_Side: TypeAlias = Literal["input", "output"]
# OAI-RESP-15
_TEXT_TYPES: dict[_Side, str] = {"input": "input_text", "output": "output_text"}
_TEXT_PART_TYPES = frozenset({"input_text", "output_text", "text"})
PART_KEYS = frozenset(
    {"type", "text", "refusal", "image_url", "detail", "file_id", "file_url", "file_data", "filename", "input_audio"}
)
# Types in use that are not listed for messages.
_UNLISTED_TYPES = frozenset({"input_audio", "computer_screenshot", "summary_text", "reasoning_text"})
# Types known to be invalid here, or parts without a required field. Any other may be newer than this table.
_REJECTED_TYPES = frozenset(
    {"input_image", "input_file", "image", "image_url", "file", "document", "tool_use", "tool_result", "thinking", ""}
)
_PDF = "application/pdf"
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


# ------------------------------------------------------------------------------------------------------------- parts in


def parse_parts(value: object, side: _Side, path: str, dialect: ResponsesDialect = OPENAI) -> list[Block]:
    blocks: list[Block] = []
    for index, part in enumerate(require_list(value, path)):
        try:
            blocks.append(_parse_part(require_object(part), side, dialect))
        except InputError as error:
            raise error.with_prefix(f"{path}[{index}]") from None
    return blocks


def are_intact(blocks: Iterable[Block]) -> bool:
    """Return whether each part can be sent unchanged."""
    return all(block.native is not None and block.native.intact for block in blocks)


def _parse_part(part: JsonObject, side: _Side, dialect: ResponsesDialect) -> Block:
    kind = part.get("type")
    if not isinstance(kind, str):
        raise InputError(f"a part's `type` must be a string, not {json_type_name(kind)}", path="type")
    if kind in _TEXT_PART_TYPES:
        return Text(_parse_text(part, "text"), native=Native(dialect.name, part, kind == _TEXT_TYPES[side]))
    if kind == "refusal":
        return Text(_parse_text(part, "refusal"), refusal=True, native=Native(dialect.name, part, side == "output"))
    text = string_or_none(part.get("text")) or ""
    unknown = dialect.accepts_part is not None and not dialect.accepts_part(part)
    media = _parse_media(kind, part, dialect)
    if media is not None and (side == "output" or unknown):
        media = msgspec.structs.replace(media, native=Native(dialect.name, part, intact=False))
    refused = kind in _REJECTED_TYPES or (side == "output" and kind in _UNLISTED_TYPES) or unknown
    return media or Opaque(kind, text=text, native=Native(dialect.name, part, not refused))


def _parse_text(part: JsonObject, key: str) -> str:
    text = part.get(key)
    if not isinstance(text, str):
        raise InputError(f"a string was expected, not {json_type_name(text)}", path=key)
    return text


def _parse_media(kind: str, part: JsonObject, dialect: ResponsesDialect) -> Media | None:
    match kind:
        case "input_image" | "image_url":
            # An object with the URL is the Chat Completions form.
            url_object = object_or_none(part.get("image_url"))
            url = part.get("image_url") if url_object is None else url_object.get("url")
            return parse_image_url(part, url, dialect, intact=kind == "input_image" and url_object is None)
        case "input_file":
            return _parse_file(part, dialect)
        case "input_audio":
            audio = object_or_none(part.get("input_audio")) or {}
            data, form = audio.get("data"), audio.get("format")
            if not isinstance(data, str) or not isinstance(form, str):
                return None
            mime, native = AUDIO_TYPES.get(form, f"audio/{form}"), Native(dialect.name, part)
            return Media("audio", mime=mime, data=data, native=native)
        case _:
            return None


def _parse_file(part: JsonObject, dialect: ResponsesDialect) -> Media | None:
    data, url, file_id = (string_or_none(part.get(key)) for key in ("file_data", "file_url", "file_id"))
    if data is None and url is None and file_id is None:
        return None
    mime, decoded = split_data_url(data) if data is not None else (None, None)
    name = string_or_none(part.get("filename"))
    is_valid = are_strings_or_none(part, "file_data", "file_url", "file_id")
    return Media("document", mime, decoded or data, url, file_id, name, native=Native(dialect.name, part, is_valid))


# ------------------------------------------------------------------------------------------------------------ parts out


def render_content(blocks: Sequence[Block], context: ResponsesContext) -> str | list[JsonObject]:
    """Render one text as a string, anything else as a list of parts."""
    if not blocks:
        return ""
    if len(blocks) == 1 and context.own_native(blocks[0].native) is None:
        part = render_part(blocks[0], context)
        return part["text"] if part["type"] == "input_text" else [part]
    return [render_part(block, context) for block in blocks]


def render_part(block: Block, context: ResponsesContext) -> JsonObject:
    """Render a part of an input message or of a tool output."""
    if isinstance(block, ToolCall | ToolResponse):
        raise ProjectionError(f"{block.name or 'a tool'}: a tool call or result is not allowed in message content")
    native = context.own_native(block.native)
    if native is not None and native.intact:
        return cast("JsonObject", native.fragment)
    part = _render_new_part(block, context)
    return (
        part
        if native is None or isinstance(block, Opaque)
        else replace_modelled_fields(native.fragment, part, PART_KEYS)
    )


def _render_new_part(block: Text | Media | Code | Opaque | Thinking, context: ResponsesContext) -> JsonObject:
    match block:
        case Text():
            return _text_part(block.text)
        case Media():
            label = " ".join(detail for detail in (block.name, block.url) if detail) or None
            part = _render_media(block, context) or _render_unsupported(block.kind, label, context)
            report_dropped_name(block, part, context.report)
            return part
        case Code():
            return _text_part(f"```{block.language}\n{block.code}\n```")
        case Opaque():
            return _render_unsupported(block.kind, block.text, context)
        case Thinking():
            context.report.add("reasoning", "reasoning outside a reply rendered as text")
            return _text_part(TEXTS.reasoning.format(content=block.text))
        case _:
            assert_never(block)


def _text_part(text: str) -> JsonObject:
    return {"type": "input_text", "text": text}


def _render_unsupported(kind: str, detail: str | None, context: ResponsesContext) -> JsonObject:
    context.report.add("text", f"{kind} rendered as text: not supported by {context.dialect.name} here", subject=kind)
    return _text_part(" ".join([TEXTS.unsupported.format(kind=kind), *([detail] if detail else [])]))


def _is_provider_file(media: Media, context: ResponsesContext) -> bool:
    return media.file_id is not None and media.native is not None and media.native.api in context.dialect.file_apis


def _render_media(media: Media, context: ResponsesContext) -> JsonObject | None:
    if media.kind == "image":
        detail = (media.extra or {}).get("detail", "auto")
        if media.data is None and media.url is None:
            part = {"type": "input_image", "detail": detail, "file_id": media.file_id}
            return part if _is_provider_file(media, context) else None
        url = media.url if media.data is None else data_url(media.mime or "image/png", media.data)
        return {"type": "input_image", "detail": detail, "image_url": url}
    if media.kind != "document":
        return None
    if media.data is None and media.url is not None and context.fetch is None:
        return {"type": "input_file", "file_url": media.url}
    data, mime = fetch_media(media, context.fetch)
    if data is None:
        return {"type": "input_file", "file_id": media.file_id} if _is_provider_file(media, context) else None
    mime = mime or _PDF
    return {"type": "input_file", "filename": add_extension(media.name, mime), "file_data": data_url(mime, data)}


# ------------------------------------------------------------------------------------------------------------- calls in


def _parse_origin(item: JsonObject, key: str, context: ParseContext, *, nullable: bool = False) -> Origin:
    id_value = item.get(key)
    raw_id = raw_id_or_none(id_value)
    invalid_id = id_value if raw_id is None and isinstance(id_value, str) and id_value else None
    item_id = raw_id_or_none(item.get("id")) if key != "id" else None
    identity = "natural" if raw_id else "nullable" if nullable else "synthetic"
    parent = raw_id_or_none((object_or_none(item.get("caller")) or {}).get("caller_id"))
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
        # A tool search without output has not been observed to be rejected.
        awaited=not context.has_references and not row.id_optional,
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
        return tuple(blocks), UNSET, are_intact(blocks)
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
    return row.render_output is not None and all(isinstance(block, Text) for block in response.content or ())


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
        rendered["arguments"] = render_arguments_text(call, context.report)
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
        return CALL_TYPES[call.native.fragment["type"]].output_type
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
        context.report.add(
            "dropped", f"tool output cut to {OUTPUT_LIMIT} characters, the maximum", call_id=response.call_id
        )
        return content[: OUTPUT_LIMIT - 1] + "…"
    return content


def _has_text(blocks: Iterable[Block]) -> bool:
    return any(isinstance(block, Text) for block in blocks)
