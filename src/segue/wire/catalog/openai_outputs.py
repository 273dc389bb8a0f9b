"""Output codecs of OpenAI's APIs. Values that the Responses wire parses are parsed by its functions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal, cast

from msgspec import UNSET, UnsetType

from segue.canonical.blocks import Block, Media, Opaque, Text, ToolResponse
from segue.canonical.json import encode_json_text, parse_argument_text
from segue.wire.catalog.codecs import Content, OutputCodec, Patch, has_content, parse_data_url, response_text
from segue.wire.json_values import JsonObject, get_path, object_or_none, require_list, string_or_none
from segue.wire.openai_responses.item_types import CALL_TYPES, HOSTED_TYPES
from segue.wire.openai_responses.parts import parse_image_url, parse_parts
from segue.wire.openai_shared import data_url


def has_failed(payload: JsonObject) -> bool:
    return payload.get("error") is not None or payload.get("status") == "failed"


def with_status(
    output: OutputCodec, *, done: object = "completed", failed: object = "failed", path: str = "status"
) -> OutputCodec:
    """Return the codec with a status field."""

    def render(response: ToolResponse) -> Patch:
        has_error = response.error or response.outcome is not None
        return {**output.render(response), path: failed if has_error else done}

    return OutputCodec(output.parse, render, output.path)


def output_or_error(output: OutputCodec, path: str = "error") -> OutputCodec:
    """Return a codec for an output, or an error field instead."""

    def parse(payload: JsonObject) -> Content:
        error, (content, structured) = get_path(payload, path), output.parse(payload)
        if error is None:
            return content, structured
        if isinstance(error, str):
            return (*(content or ()), Text(error)), structured
        text = string_or_none((object_or_none(error) or {}).get("message")) or encode_json_text(error)
        return (*(content or ()), Text(text)), error

    def render(response: ToolResponse) -> Patch:
        if not response.error:
            return output.render(response)
        if not has_content(response):
            return {}
        return {path: response_text(response) if isinstance(response.structured, UnsetType) else response.structured}

    return OutputCodec(parse, render, output.path)


# --------------------------------------------------------------------------------------------------------------- parts


def render_input_media(media: Media) -> JsonObject | None:
    if media.kind == "document":
        name_field = {"filename": media.name} if media.name else {}
        source = {"file_id": media.file_id} if media.file_id else {"file_url": media.url}
        if media.data is not None:
            source = {"file_data": data_url(media.mime or "application/pdf", media.data)}
        return {"type": "input_file", **name_field, **source}
    return {"type": "input_image", "detail": "auto", **_image_source(media)} if media.kind == "image" else None


def render_chat_image(media: Media) -> JsonObject | None:
    url = _image_source(media).get("image_url")
    return {"type": "image_url", "image_url": url} if media.kind == "image" and url else None


def _image_source(media: Media) -> JsonObject:
    """Return the source of an image: a data URL, a URL, or a file id."""
    if media.data is not None:
        return {"image_url": data_url(media.mime or "image/png", media.data)}
    return {"image_url": media.url} if media.url is not None else {"file_id": media.file_id}


def parts_output(
    path: str, text: str = "input_text", render_media: Callable[[Media], JsonObject | None] = render_input_media
) -> OutputCodec:
    """Return a codec for text or a list of parts; `render_media` returns None for media that the list can't hold."""

    def parse(payload: JsonObject) -> Content:
        value = get_path(payload, path)
        if isinstance(value, list):
            return tuple(parse_parts(cast("list[object]", value), "input", path)), UNSET
        if value is None or isinstance(value, str):
            return None if value is None else (Text(value),), UNSET
        return (), value

    def part(block: Block) -> JsonObject:
        original = block.native.fragment if block.native is not None and block.native.intact else None
        if original is not None and (original.get("type") == text or isinstance(block, Opaque)):
            return dict(original)
        media_part = render_media(block) if isinstance(block, Media) else None
        return media_part or {"type": text, "text": _block_text(block)}

    def render(response: ToolResponse) -> Patch:
        blocks = response.content or ()
        if all(isinstance(block, Text) for block in blocks) and len(blocks) < 2:
            return {path: response_text(response)}
        return {path: [part(block) for block in blocks]}

    return OutputCodec(parse, render, path)


def _block_text(block: Block) -> str:
    if isinstance(block, Media):
        return " ".join(filter(None, (f"[{block.kind}]", block.name or block.url or block.file_id)))
    return block.text if isinstance(block, Text | Opaque) else ""


# ----------------------------------------------------------------------------------------------------- lists of results


def _result_list(response: ToolResponse) -> list[Any]:
    """Return the list that a response holds as JSON; other text becomes its only entry."""
    value: object = response.structured
    if isinstance(value, UnsetType):
        value = parse_argument_text(response_text(response))[0] if response_text(response) else cast("list[Any]", [])
    return cast("list[Any]", value) if isinstance(value, list) else [{"type": "text", "text": response_text(response)}]


def list_output(path: str) -> OutputCodec:
    """Return a codec for a list of search results, as JSON text."""

    def parse(payload: JsonObject) -> Content:
        value = get_path(payload, path)
        return None if value is None else (Text(encode_json_text(require_list(value, path))),), UNSET

    return OutputCodec(parse, lambda response: {path: _result_list(response)} if has_content(response) else {}, path)


web_search_output = OutputCodec(
    lambda payload: (HOSTED_TYPES["web_search_call"].result(payload), UNSET),
    lambda response: {"action.sources": _result_list(response)} if has_content(response) else {},
)


def code_interpreter_output(path: str, render_image: Callable[[Media], JsonObject]) -> OutputCodec:
    """Return a codec for the logs and images of a program."""

    def parse(payload: JsonObject) -> Content:
        value = get_path(payload, path)
        outputs = None if value is None else require_list(value, path)
        return None if outputs is None else tuple(
            _parse_code_output(object_or_none(entry) or {}) for entry in outputs
        ), UNSET

    def render(response: ToolResponse) -> Patch:
        blocks = (
            (Text(response_text(response)),)
            if not isinstance(response.structured, UnsetType)
            else response.content or ()
        )
        return {
            path: [
                render_image(b) if isinstance(b, Media) else {"type": "logs", "logs": _block_text(b)} for b in blocks
            ]
        }

    return OutputCodec(parse, render, path)


def render_image_file(media: Media) -> JsonObject:
    """Return the image of a program as a file, as the APIs with run steps have it."""
    return {"type": "image", "image": {"file_id": media.file_id or media.url or media.name or ""}}


def _parse_code_output(entry: JsonObject) -> Block:
    match entry:
        case {"type": "logs", "logs": str(logs)}:
            return Text(logs)
        case {"type": "image", "image": {"file_id": str(file_id)}}:
            return Media("image", file_id=file_id)
        case {"type": "image", "url": str(url)}:
            return parse_data_url(url)
        case _:
            return Text(encode_json_text(entry))


def render_found_tools(response: ToolResponse) -> Patch:
    """Render the tools that a search found: the declarations, else the names in its text."""
    if isinstance(response.structured, list):
        return {"tools": cast("list[Any]", response.structured)}
    listed = re.fullmatch(r"\[tools found: (.*)\]", response_text(response))
    names = listed[1].split(", ") if listed is not None and listed[1] != "none" else []
    return {"tools": [{"type": "function", "name": name} for name in names]}


# --------------------------------------------------------------------------------------------------- commands, images

_EXIT_LINE = re.compile(r"(?s)(?P<text>.*?)\n?\[(?:exit code (?P<code>-?\d+)|(?P<timeout>timed out))\]")


def split_exit_line(response: ToolResponse) -> tuple[str, int | Literal["timeout"] | None]:
    """Split a command's output into its text and the exit code or timeout in its last line; None without that line."""
    ended = _EXIT_LINE.fullmatch(response_text(response))
    if ended is None:
        return response_text(response), None
    return ended["text"], "timeout" if ended["timeout"] else int(ended["code"])


def _render_chunk(response: ToolResponse) -> JsonObject:
    text, code = split_exit_line(response)
    if code == "timeout":
        return {"stdout": text, "stderr": "", "outcome": {"type": "timeout"}}
    has_error = response.error or response.outcome is not None
    exit_code = code if code is not None else 1 if has_error else 0
    return {"stdout": text, "stderr": "", "outcome": {"type": "exit", "exit_code": exit_code}}


shell_output = OutputCodec(
    lambda payload: (CALL_TYPES["shell_call"].content(payload), UNSET),
    lambda response: {"output": [_render_chunk(response)]},
)


def screenshot_output(path: str = "output") -> OutputCodec:
    """Return a codec for the screenshot of a computer."""

    def parse(payload: JsonObject) -> Content:
        output = object_or_none(get_path(payload, path))
        picture = None if output is None else parse_image_url(output, output.get("image_url"), intact=False)
        return None if output is None else () if picture is None else (picture,), UNSET

    def render(response: ToolResponse) -> Patch:
        picture = next((block for block in response.content or () if isinstance(block, Media)), None)
        return {path: {"type": "computer_screenshot", **({} if picture is None else _image_source(picture))}}

    return OutputCodec(parse, render)


def _render_image(response: ToolResponse) -> Patch:
    picture = next((block for block in response.content or () if isinstance(block, Media)), None)
    if picture is not None:
        return {"result": picture.data, "output_format": (picture.mime or "image/png").rpartition("/")[2]}
    if not has_content(response):
        return {"result": None}
    return {
        "result": None,
        "error": {"type": "image_generation_error", "code": None, "message": response_text(response)},
    }


image_generation_output = OutputCodec(
    lambda payload: (HOSTED_TYPES["image_generation_call"].result(payload), UNSET), _render_image
)
