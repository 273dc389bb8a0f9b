"""Content parts, tool calls and legacy function calls ⇄ blocks.

A part of an unknown type becomes an `Opaque` block that holds the whole part. Same-API, a part or call is sent as the
original object, a call with only its id and name merged into it; cross-API, only text and the media that the dialect
accepts are rendered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, assert_never, cast

from segue.canonical.blocks import (
    UNKNOWN_PROVIDER,
    Block,
    Code,
    Media,
    Native,
    Opaque,
    Origin,
    Text,
    Thinking,
    ToolCall,
    ToolResponse,
    join_texts,
)
from segue.canonical.ids import raw_id_or_none
from segue.canonical.json import encode_json_text, parse_argument_text
from segue.errors import InputError, ProjectionError
from segue.render.constraints import TEXTS
from segue.wire.code import fence_code
from segue.wire.json_values import (
    JsonObject,
    json_type_name,
    object_or_none,
    optional_string,
    require_object,
    require_string,
    string_or_none,
)
from segue.wire.media import add_extension, detect_audio_type, report_dropped_name, report_unsupported
from segue.wire.merge import replace_modelled_fields
from segue.wire.mixed_body import parse_item, parse_reasoning_item
from segue.wire.openai_chat.dialect import ChatContext, ChatDialect, drop_unknown_keys
from segue.wire.openai_shared import (
    AUDIO_FORMATS,
    AUDIO_TYPES,
    data_url,
    fetch_media,
    image_detail,
    is_openai_file,
    split_data_url,
)
from segue.wire.tools import duplicate_key_extra, render_arguments_object, render_arguments_text

PART_KEYS = frozenset(
    {"type", "text", "refusal", "image_url", "video_url", "input_audio", "file"}
    | {"document_url", "document_name", "file_id", "thinking"}
)
_DETAILS = ("low", "high")
_CALL_KINDS = ("function", "custom")
CALL_KEYS = frozenset({"id", "type", "function", "custom"})


# ------------------------------------------------------------------------------------------------------------- parts in


def parse_content(
    content: object, dialect: ChatDialect, role: str, reasoning_origin: Origin | None = None
) -> list[Block]:
    """Parse a content; an empty string is no block. `reasoning_origin` is set where parts may be reasoning."""
    if isinstance(content, str):
        return [Text(content)] if content else []
    if content is None:
        return []
    if not isinstance(content, list):
        raise InputError(f"a string or a list of parts was expected, not {json_type_name(content)}", path="content")
    blocks: list[Block] = []
    for index, part in enumerate(cast("list[object]", content)):
        try:
            blocks.append(_parse_part(require_object(part), dialect, role, reasoning_origin))
        except InputError as error:
            raise error.with_prefix(f"content[{index}]") from None
    return blocks


def _parse_part(part: JsonObject, dialect: ChatDialect, role: str, reasoning_origin: Origin | None) -> Block:
    kind = part.get("type")
    if kind != "text" and (block := parse_item(part, dialect.body_api)) is not None:
        return block
    is_own_reasoning = kind == "thinking" and reasoning_origin is not None
    if role == "assistant" and kind != "text" and not is_own_reasoning:
        foreign = parse_reasoning_item(part, dialect.body_api)
        if foreign is not None:
            return foreign
    if not isinstance(kind, str):
        raise InputError(f"a string was expected, not {json_type_name(kind)}", path="type")
    allowed_types = dialect.allowed_part_types.get(role)
    native = Native(dialect.name, part, allowed_types is None or kind in allowed_types)
    if kind in ("text", "refusal"):
        return Text(require_string(part.get(kind), kind), refusal=kind == "refusal", native=native)
    if kind == "thinking" and (thought := _parse_thinking_text(part.get(kind))) is not None:
        if reasoning_origin is not None:
            return Thinking(thought, string_or_none(part.get("signature")), origin=reasoning_origin, native=native)
        if role == "assistant":
            origin = Origin(UNKNOWN_PROVIDER, identity="absent")
            return Thinking(thought, origin=origin, native=Native(dialect.name, part, intact=False))
        return Opaque(kind, text=thought, native=native)
    return _parse_media(kind, part, native) or Opaque(kind, text=_fallback_text(part, kind), native=native)


def _fallback_text(part: JsonObject, kind: str) -> str:
    """Return the text for a part of unknown type: its text, or the URLs in it (video frames)."""
    if (text := string_or_none(part.get("text"))) is not None:
        return text
    value = part.get(kind)
    values = cast("list[object]", value) if isinstance(value, list) else [value]
    return " ".join(item for item in values if isinstance(item, str) and item.startswith(("http://", "https://")))


def _parse_thinking_text(value: object) -> str | None:
    """Return the text of a `thinking` part: a string, or a list of text parts."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return None
    parts = [object_or_none(item) or {} for item in cast("list[object]", value)]
    return "".join(string_or_none(item.get("text")) or "" for item in parts)


def _parse_media(kind: str, part: JsonObject, native: Native) -> Media | None:
    value = part.get(kind)
    match kind:
        case "image_url" | "video_url":
            if value is None and isinstance(part.get("uuid"), str):
                # vLLM: a medium of an earlier request.
                return None
            fields = {"url": value} if isinstance(value, str) else require_object(value, kind)
            url = require_string(fields.get("url"), f"{kind}.url")
            mime, data = split_data_url(url)
            medium = "image" if kind == "image_url" else "video"
            detail = image_detail(optional_string(fields.get("detail"), f"{kind}.detail"))
            return Media(medium, mime=mime, data=data, url=url if data is None else None, native=native, extra=detail)
        case "document_url":
            url = require_string(value, kind)
            mime, data = split_data_url(url)
            name = optional_string(part.get("document_name"), "document_name")
            return Media("document", mime=mime, data=data, url=url if data is None else None, name=name, native=native)
        case "input_audio" if isinstance(value, str):
            mime, data = split_data_url(value)
            if data is None and value.startswith(("http://", "https://")):
                return Media("audio", url=value, native=native)
            return Media("audio", mime=mime or detect_audio_type(data or value), data=data or value, native=native)
        case "input_audio":
            audio = require_object(value, kind)
            data, form = (require_string(audio.get(key), f"{kind}.{key}") for key in ("data", "format"))
            if data.startswith(("http://", "https://")):
                return Media("audio", mime=AUDIO_TYPES.get(form, f"audio/{form}"), url=data, native=native)
            return Media("audio", mime=AUDIO_TYPES.get(form, f"audio/{form}"), data=data, native=native)
        case "file":
            if value is None and ("file_id" in part or "file_data" in part):
                return _parse_file(part, native)
            return _parse_file(require_object(value, kind), native, kind)
        case _:
            return None


def _parse_file(file: JsonObject, native: Native, path: str = "") -> Media | None:
    data, file_id, name = (
        optional_string(file.get(key), f"{path}.{key}".removeprefix("."))
        for key in ("file_data", "file_id", "filename")
    )
    if data is None and file_id is None:
        return None
    mime, decoded = split_data_url(data) if data is not None else (None, None)
    return Media("document", mime=mime, data=decoded or data, file_id=file_id, name=name, native=native)


# ------------------------------------------------------------------------------------------------------------ parts out


def render_content(
    blocks: Sequence[Block], context: ChatContext, media_kinds: frozenset[str]
) -> str | list[JsonObject] | None:
    """Render one text as a string, anything else as parts, no blocks as None. `media_kinds` are accepted here."""
    if not blocks:
        return None
    if len(blocks) == 1:
        only = blocks[0]
        if context.own_native(only.native) is None:
            if isinstance(only, Text):
                return only.text
            part = _render_part(only, context, media_kinds)
            return part["text"] if part["type"] == "text" else [part]
    parts = [_render_part(block, context, media_kinds) for block in blocks]
    foreign = all(context.own_native(block.native) is None for block in blocks)
    if foreign and not context.dialect.content_parts and all(part["type"] == "text" for part in parts):
        return join_texts(part["text"] for part in parts)
    return parts


def _render_part(block: Block, context: ChatContext, media_kinds: frozenset[str]) -> JsonObject:
    if isinstance(block, ToolCall | ToolResponse):
        raise ProjectionError(f"{block.name or 'a tool'}: a tool call or result is not allowed in message content")
    native = context.own_native(block.native)
    if native is not None and native.intact:
        return cast("JsonObject", native.fragment)
    match block:
        case Text():
            part = _text_part(block.text)
        case Media():
            part = _render_media(block, context, media_kinds) or _text_part(report_unsupported(block, context.report))
            report_dropped_name(block, part, context.report)
        case Code():
            part = _text_part(fence_code(block))
        case Opaque():
            part = _text_part(report_unsupported(block, context.report))
        case Thinking() if context.dialect.reasoning_parts:
            part = {"type": "thinking", "thinking": [{"type": "text", "text": block.text}]}
            if block.signature is not None and block.origin.provider == context.dialect.provider:
                part["signature"] = block.signature
        case Thinking():
            context.report.add("reasoning", "reasoning outside an assistant message rendered as text", level="changed")
            part = _text_part(TEXTS.reasoning.format(content=block.text))
        case _:
            assert_never(block)
    return part if native is None else replace_modelled_fields(native.fragment, part, PART_KEYS)


def _text_part(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _render_media(media: Media, context: ChatContext, media_kinds: frozenset[str]) -> JsonObject | None:
    if media.kind not in media_kinds:
        return None
    if media.kind == "image" or media.kind == "video":
        key = f"{media.kind}_url"
        data, mime = (media.data, media.mime) if context.dialect.media_urls else fetch_media(media, context.fetch)
        default = "image/png" if media.kind == "image" else "video/mp4"
        url = media.url if data is None and context.dialect.media_urls else None
        url = url if data is None else data_url(mime or default, data)
        return None if url is None else {"type": key, key: {"url": url, **_render_detail(media, context)}}
    if context.dialect.string_media:
        return _render_string_media(media)
    data, mime = fetch_media(media, context.fetch)
    if data is None:
        is_uploaded = media.kind == "document" and context.dialect.vendor_options and is_openai_file(media)
        return {"type": "file", "file": {"file_id": media.file_id}} if is_uploaded else None
    if media.kind == "audio":
        form = AUDIO_FORMATS.get(mime or "")
        return None if form is None else {"type": "input_audio", "input_audio": {"data": data, "format": form}}
    mime = mime or "application/pdf"
    return {"type": "file", "file": {"filename": add_extension(media.name, mime), "file_data": data_url(mime, data)}}


def _render_detail(media: Media, context: ChatContext) -> JsonObject:
    detail = (media.extra or {}).get("detail")
    if detail is None or not context.dialect.vendor_options or media.kind != "image":
        return {}
    if detail not in _DETAILS:
        message = f"image detail {detail} set to high: not supported by {context.dialect.name}"
        context.report.add("adjusted", message, subject="detail")
    return {"detail": detail if detail in _DETAILS else "high"}


def _render_string_media(media: Media) -> JsonObject | None:
    """Render audio or a file as a string."""
    if media.kind == "audio":
        audio = media.data or media.url
        return None if audio is None else {"type": "input_audio", "input_audio": audio}
    url = media.url if media.data is None else data_url(media.mime or "application/pdf", media.data)
    if url is None:
        return None
    name_field = {} if media.name is None else {"document_name": media.name}
    return {"type": "document_url", "document_url": url, **name_field}


# ------------------------------------------------------------------------------------------------------------- calls in


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
        _parse_name(detail, key) or ("" if key in _CALL_KINDS else key),
        arguments,
        arguments_text=arguments_text,
        kind="custom" if key == "custom" else "function",
        extra=duplicate_key_extra(detail.get("arguments"), arguments) if key == "function" else None,
        origin=Origin(dialect.provider, model, raw_id, invalid_id, "natural" if raw_id else "synthetic"),
        native=Native(dialect.name, entry, intact and _has_matching_type(key, kind, dialect)),
    )


def _has_matching_type(key: str, kind: object, dialect: ChatDialect) -> bool:
    """Return whether the `type` of a call matches its content."""
    # OAI-CHAT-21
    if kind is None:
        return key == "function" and dialect.untyped
    return kind == key or (isinstance(kind, str) and kind in dialect.extra_call_types)


_FORM_KEYS = ("type", "index", "expires_at")


def is_filled(value: object) -> bool:
    """Return whether a value says anything: some servers send every member of a message, with empty values."""
    members = object_or_none(value)
    if members is not None:
        return any(is_filled(member) for key, member in members.items() if key not in _FORM_KEYS)
    return value not in (None, "")


def parse_legacy_call(entry: JsonObject, dialect: ChatDialect, model: str | None) -> ToolCall:
    """Parse a legacy `function_call`, which has no id."""
    arguments, text, intact = _parse_arguments(entry.get("arguments"), dialect)
    return ToolCall(
        _parse_name(entry, "function_call"),
        arguments,
        arguments_text=text,
        origin=Origin(dialect.provider, model, identity="absent"),
        native=Native(dialect.name, entry, intact) if dialect.legacy_calls else None,
    )


def _parse_arguments(value: object, dialect: ChatDialect) -> tuple[Any, str | None, bool]:
    """Return the value, the exact text if it is not valid JSON, and whether the API accepts its type."""
    if not isinstance(value, str):
        return {} if value is None else value, None, dialect.object_arguments and isinstance(value, dict)
    return *parse_argument_text(value), True


def _parse_name(detail: JsonObject, key: str) -> str:
    name = detail.get("name")
    if name is not None and not isinstance(name, str):
        raise InputError("a tool's name must be a string", path=f"{key}.name")
    return name or ""


# ------------------------------------------------------------------------------------------------------------ calls out


def is_legacy_call(call: ToolCall, own_native: Native | None, context: ChatContext) -> bool:
    """Return whether this is a legacy `function_call`, which has no id and no type."""
    return context.dialect.legacy_calls and own_native is not None and call.origin.identity == "absent"


def render_legacy_call(call: ToolCall, context: ChatContext) -> JsonObject:
    context.legacy_calls.add(call.id)
    name = context.project_name(call.name)
    entry = cast("JsonObject", call.native.fragment if call.native is not None else {})
    if call.native is None or not call.native.intact or not _accepts_arguments(call, entry.get("arguments"), context):
        entry = {**entry, "arguments": _render_arguments(call, context, entry.get("arguments"))}
    return entry if entry.get("name") == name else {**entry, "name": name}


def render_call(call: ToolCall, context: ChatContext) -> JsonObject:
    wire_id = context.ids.render(call.id)
    # A legacy `function_call` has a form of its own, which this server may not accept.
    own_native = context.own_native(call.native) if call.origin.identity != "absent" else None
    if own_native is not None and own_native.intact and _can_keep_call(call, own_native.fragment, context):
        entry = drop_unknown_keys(cast("JsonObject", own_native.fragment), "call", context)
        kind = entry.get("type") or "function"
        if kind in _CALL_KINDS:
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
        function = object_or_none(own_native.fragment.get("function")) if own_native is not None else None
        arguments = _render_arguments(call, context, (function or {}).get("arguments"))
        # A vendor's own tool may have a name that is not valid for a function.
        kind = own_native.fragment.get("type") if own_native is not None else None
        kind = kind if isinstance(kind, str) and kind in context.dialect.extra_call_types else "function"
        rendered = {"id": wire_id, "type": kind, "function": {"name": name, "arguments": arguments}}
    return rendered if own_native is None else replace_modelled_fields(own_native.fragment, rendered, CALL_KEYS)


def _can_keep_call(call: ToolCall, entry: Mapping[str, Any], context: ChatContext) -> bool:
    """Return whether the target accepts the original call. It may have been parsed by the rules of another server."""
    if call.kind == "custom":
        return context.dialect.custom_tools
    function = object_or_none(entry.get("function"))
    return function is None or _accepts_arguments(call, function.get("arguments"), context)


def _accepts_arguments(call: ToolCall, text: object, context: ChatContext) -> bool:
    """Return whether the target accepts the original arguments of a call."""
    if context.is_reply or context.dialect.arguments == "text" or not isinstance(text, str):
        return True
    return call.arguments_text is None and (context.dialect.arguments == "json" or isinstance(call.arguments, dict))


def _render_arguments(call: ToolCall, context: ChatContext, original: object) -> str:
    form = context.dialect.arguments
    if context.is_reply:
        return render_arguments_text(call, context.report)
    broken = call.arguments is None and call.arguments_text is not None
    # OAI-CHAT-10, QWEN-03, COMP-09, COMP-14, COMP-17
    refused = form == "json" or not context.dialect.invalid_json_arguments
    if (refused and broken) or (form == "object" and not isinstance(call.arguments, dict)):
        return encode_json_text(render_arguments_object(call, context.report))
    return render_arguments_text(call, context.report, original)


def with_tool_name(entry: JsonObject, name: str) -> JsonObject:
    """Return a call, declaration or choice (`{"type": "function", "function": {"name": …}}`) with this tool name."""
    key = entry.get("type") or "function"
    detail: JsonObject = entry[key]
    return entry if detail.get("name") == name else {**entry, key: {**detail, "name": name}}
