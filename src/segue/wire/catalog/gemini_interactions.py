"""Gemini's Interactions types: steps with an id, and results with the id of their call."""

from __future__ import annotations

from typing import Any, cast

from msgspec import UNSET

from segue.canonical.blocks import Block, Media, Text, ToolResponse
from segue.wire.catalog.field_codecs import ArgumentsCodec, Content, OutputCodec, Patch, no_arguments, response_text
from segue.wire.catalog.shape import PayloadShape, is_true
from segue.wire.catalog.shared_codecs import object_arguments, with_failure_fields
from segue.wire.json_values import JsonObject, object_or_none, string_or_none

__all__ = ["INTERACTIONS"]

_MEDIA = ("image", "audio", "video", "document")


def _parse_result(step: JsonObject) -> Content:
    """Text, a list of content parts, or any other JSON value."""
    value = step.get("result")
    if value is None:
        return None, UNSET
    if isinstance(value, str):
        return (Text(value),), UNSET
    parts = cast("list[object]", value) if isinstance(value, list) else []
    blocks = [_parse_part(part) for part in parts]
    parsed = [block for block in blocks if block is not None]
    return (tuple(parsed), UNSET) if parsed and len(parsed) == len(blocks) else ((), cast("object", value))


def _parse_part(part: object) -> Block | None:
    match part:
        case {"type": "text", "text": str(text)}:
            return Text(text)
        case {"type": str(kind)} if kind in _MEDIA:
            return _parse_media(kind, object_or_none(part) or {})
        case _:
            return None


def _parse_media(kind: Any, part: JsonObject) -> Media | None:
    mime, data, uri = (string_or_none(part.get(key)) for key in ("mime_type", "data", "uri"))
    if data is None and uri is None:
        return None
    reachable = uri is not None and uri.startswith(("https://", "http://"))
    return Media(kind, mime, data=data, url=uri if reachable else None, file_id=None if reachable else uri)


def _render_result(response: ToolResponse) -> Patch:
    pictures = [block for block in response.content or () if isinstance(block, Media)]
    if response.structured is not UNSET and not pictures:
        return {"result": response.structured}
    if not pictures:
        return {"result": response_text(response)}
    texts = [{"type": "text", "text": text}] if (text := response_text(response)) else []
    return {"result": [*texts, *map(_render_media, pictures)]}


def _render_media(media: Media) -> JsonObject:
    source = {"data": media.data} if media.data is not None else {"uri": media.url or media.file_id or ""}
    return {"type": media.kind, **({"mime_type": media.mime} if media.mime else {}), **source}


def _render_list(response: ToolResponse) -> Patch:
    """A list of results; plain text becomes its only entry."""
    results = response.structured
    return {"result": results if isinstance(results, list) else [{"text": response_text(response)}]}


_RESULT = with_failure_fields(OutputCodec(_parse_result, _render_result), {"is_error": True})
_LIST = with_failure_fields(OutputCodec(_parse_result, _render_list), {"is_error": True})
_HIDDEN = with_failure_fields(OutputCodec(lambda _step: (None, UNSET), lambda _response: {}), {"is_error": True})


def _call_shape(tool: str, arguments: ArgumentsCodec) -> PayloadShape:
    return PayloadShape(id="id", tool=tool, arguments=arguments, kind="hosted")


def _result_shape(tool: str, output: OutputCodec | None) -> PayloadShape:
    return PayloadShape(id="call_id", tool=tool, output=output, failed=is_true("is_error"), kind="hosted")


_ARGUMENTS = object_arguments("arguments")
# By tool: the codecs of its arguments and its output. Some results have no output.
_TOOLS: dict[str, tuple[str, ArgumentsCodec, OutputCodec | None]] = {
    "CodeExecution": ("code_execution", _ARGUMENTS, _RESULT),
    "GoogleSearch": ("google_search", _ARGUMENTS, _LIST),
    "GoogleMaps": ("google_maps", _ARGUMENTS, OutputCodec(_parse_result, _render_list)),
    "UrlContext": ("url_context", _ARGUMENTS, _LIST),
    "FileSearch": ("file_search", no_arguments, None),
    "Retrieval": ("retrieval", _ARGUMENTS, _HIDDEN),
    "Processing": ("processing", no_arguments, None),
}

INTERACTIONS: dict[str, PayloadShape] = {
    "InteractionFunctionCall": PayloadShape(id="id", name="name", arguments=_ARGUMENTS),
    "InteractionFunctionResult": PayloadShape(id="call_id", name="name", output=_RESULT, failed=is_true("is_error")),
    "InteractionMcpServerToolCall": PayloadShape(
        id="id", name="name", arguments=_ARGUMENTS, kind="hosted", defaults={"server_name": "unknown"}
    ),
    "InteractionMcpServerToolResult": PayloadShape(
        id="call_id", name="name", output=OutputCodec(_parse_result, _render_result), kind="hosted"
    ),
    **{f"Interaction{name}Call": _call_shape(tool, arguments) for name, (tool, arguments, _) in _TOOLS.items()},
    **{f"Interaction{name}Result": _result_shape(tool, output) for name, (tool, _, output) in _TOOLS.items()},
}
