"""The content of function responses ⇄ blocks.

Text is rendered as `{"output": text}`, or `{"error": text}` for a failed call (GEM-14). It is parsed from the keys that
clients use for text; any other object is the structured result itself.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from segue.canonical.blocks import Block, Code, Media, Text, ToolResponse, join_texts
from segue.canonical.json import encode_json_text
from segue.errors import InputError
from segue.render.report import Report
from segue.wire.code import fence_code
from segue.wire.gemini.capabilities import API
from segue.wire.gemini.fields import JsonObject, as_list, get_field, object_or_none
from segue.wire.gemini.media import parse_file, parse_inline, render_inline
from segue.wire.json_values import require_object
from segue.wire.media import describe_unsupported, report_dropped_name
from segue.wire.merge import intact_fragment

# Keys that clients use for text; those of `_OUTPUT_KEYS` may hold any value.
_OUTPUT_KEYS = ("output", "result")
_TEXT_KEYS = (*_OUTPUT_KEYS, "content")


def parse_result_content(inner: JsonObject) -> tuple[tuple[Block, ...], Any, bool, bool]:
    """Return content, structured value or UNSET, whether the call failed, and whether the API accepts it unchanged."""
    raw_response: Any = get_field(inner, "response")
    content, structured, failed = parse_response(raw_response, inner.get("name"))
    media, intact = _parse_result_media(inner)
    # GEM-13: must be an object
    return (*content, *media), structured, failed, intact and (raw_response is None or isinstance(raw_response, dict))


def parse_response(raw_response: Any, tool: object) -> tuple[tuple[Block, ...], Any, bool]:
    """Return content, structured value or UNSET, and whether the call failed."""
    response = object_or_none(raw_response)
    if response is None:
        if raw_response is None:
            return (), UNSET, False
        return ((Text(raw_response),), UNSET, False) if isinstance(raw_response, str) else ((), raw_response, False)
    if not response:
        return (), UNSET, False
    failed = isinstance(response.get("error"), str) and len(response) == 1
    failed = failed or (response.get("error") not in (None, "", False, [], {}) and not response.get("output"))
    for key, value in response.items():
        is_result_key = key == "error" if failed else key in _TEXT_KEYS
        # Some clients add the name of the tool.
        alone = all(other == key or (other == "name" and named == tool) for other, named in response.items())
        if is_result_key and alone and isinstance(value, str):
            return (Text(value),), UNSET, failed
        if is_result_key and alone and (failed or key in _OUTPUT_KEYS):
            return (), value, failed
    return (), response, failed


_RESULT_MEDIA_PARSERS = {"inlineData": parse_inline, "fileData": parse_file}


def _parse_result_media(inner: JsonObject) -> tuple[list[Block], bool]:
    media: list[Block] = []
    intact = True
    for index, item in enumerate(as_list(inner.get("parts"), "parts")):
        try:
            part = require_object(item)
        except InputError as error:
            raise error.with_prefix(f"parts[{index}]") from None
        members = [name for name in _RESULT_MEDIA_PARSERS if get_field(part, name) is not None]
        for name in members:
            alone = part if len(members) == 1 else {name: get_field(part, name)}
            media.append(_RESULT_MEDIA_PARSERS[name](alone))
        # GEM-10
        intact = intact and len(members) == 1 and all(block.native is None or block.native.intact for block in media)
    return media, intact


def render_result_content(response: ToolResponse, report: Report) -> tuple[JsonObject, list[JsonObject]]:
    """Return the `response` object and the media parts."""
    texts: list[str] = []
    media: list[JsonObject] = []
    for block in response.content or ():
        part = intact_fragment(block.native, API) or render_inline(block) if isinstance(block, Media) else None
        if isinstance(block, Media) and part is not None:
            report_dropped_name(block, part, report)
            media.append(part)
        else:
            texts.append(_result_block_text(block, response, report))
    failed = response.error or response.outcome is not None
    if response.structured is not UNSET and not texts:
        return _result_object(response.structured, failed), media
    if not texts and not failed:
        return {}, media
    return {"error" if failed else "output": join_texts(texts)}, media


def _result_object(value: Any, failed: bool) -> JsonObject:
    members = object_or_none(value)
    if failed:
        return members if members is not None and members.get("error") else {"error": value}
    # A value that would be parsed as an error or as text is wrapped.
    return {"output": value} if members is None or "error" in members else members


def _result_block_text(block: Block, response: ToolResponse, report: Report) -> str:
    match block:
        case Text():
            return block.text
        case Code():
            return fence_code(block)
        case Media():
            report.add(
                "text",
                f"{block.kind} rendered as text: not accepted in function responses",
                call_id=response.call_id,
                subject=block.kind,
                level="changed" if block.url else "lost",
            )
            return describe_unsupported(block)
        case _:
            return encode_json_text(block.native.fragment if block.native is not None else {})
