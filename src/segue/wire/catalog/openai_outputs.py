"""Output codecs of OpenAI's APIs. Values that the Responses wire parses are parsed by its functions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal, cast

from msgspec import UNSET, UnsetType

from segue.canonical.blocks import Block, Media, Opaque, Text, ToolResponse
from segue.canonical.jsontext import parse_argument_text, write_text
from segue.wire.catalog.fields import Content, Output, Patch, said
from segue.wire.catalog.fields import data_url as data_address
from segue.wire.catalog.paths import at
from segue.wire.fields import JsonObject, list_of, object_or_none, string_or_none
from segue.wire.openai import data_url
from segue.wire.openai_responses.hosted import HOSTED
from segue.wire.openai_responses.parts import parse_image_url, parse_parts
from segue.wire.openai_responses.typed import TYPED

__all__ = [
    "chat_picture",
    "code_outputs",
    "commands",
    "exit_said",
    "found",
    "has_failed",
    "input_picture",
    "list_in",
    "or_error",
    "parts",
    "picture_made",
    "screenshot",
    "stated",
    "tools_found",
]


def has_failed(payload: JsonObject) -> bool:
    return payload.get("error") is not None or payload.get("status") == "failed"


def stated(output: Output, *, done: object = "completed", failed: object = "failed", path: str = "status") -> Output:
    """An output with a status field."""

    def render(response: ToolResponse) -> Patch:
        wrong = response.error or response.outcome is not None
        return {**output.write(response), path: failed if wrong else done}

    return Output(output.read, render, output.path)


def or_error(output: Output, path: str = "error") -> Output:
    """An output, or an error field instead."""

    def parse(payload: JsonObject) -> Content:
        error, (content, structured) = at(payload, path), output.read(payload)
        if error is None:
            return content, structured
        if isinstance(error, str):
            return (*(content or ()), Text(error)), structured
        text = string_or_none((object_or_none(error) or {}).get("message")) or write_text(error)
        return (*(content or ()), Text(text)), error

    def render(response: ToolResponse) -> Patch:
        if not response.error:
            return output.write(response)
        if not _says_something(response):
            return {}
        return {path: said(response) if isinstance(response.structured, UnsetType) else response.structured}

    return Output(parse, render, output.path)


# --------------------------------------------------------------------------------------------------------------- parts


def input_picture(media: Media) -> JsonObject | None:
    if media.kind == "document":
        named = {"filename": media.name} if media.name else {}
        source = {"file_id": media.file_id} if media.file_id else {"file_url": media.url}
        if media.data is not None:
            source = {"file_data": data_url(media.mime or "application/pdf", media.data)}
        return {"type": "input_file", **named, **source}
    return {"type": "input_image", "detail": "auto", **_address(media)} if media.kind == "image" else None


def chat_picture(media: Media) -> JsonObject | None:
    address = _address(media).get("image_url")
    return {"type": "image_url", "image_url": address} if media.kind == "image" and address else None


def _address(media: Media) -> JsonObject:
    """The source of an image: a data URL, a URL, or a file id."""
    if media.data is not None:
        return {"image_url": data_url(media.mime or "image/png", media.data)}
    return {"image_url": media.url} if media.url is not None else {"file_id": media.file_id}


def parts(path: str, text: str = "input_text", picture: Callable[[Media], JsonObject | None] = input_picture) -> Output:
    """Text, or a list of parts; `render_media` renders media as a part, None if the list can't hold it."""

    def parse(payload: JsonObject) -> Content:
        given = at(payload, path)
        if isinstance(given, list):
            return tuple(parse_parts(cast("list[object]", given), "input", path)), UNSET
        if given is None or isinstance(given, str):
            return None if given is None else (Text(given),), UNSET
        return (), given

    def part(block: Block) -> JsonObject:
        own = block.native.fragment if block.native is not None and block.native.intact else None
        if own is not None and (own.get("type") == text or isinstance(block, Opaque)):
            return dict(own)
        made = picture(block) if isinstance(block, Media) else None
        return made or {"type": text, "text": _told(block)}

    def render(response: ToolResponse) -> Patch:
        blocks = response.content or ()
        if all(isinstance(block, Text) for block in blocks) and len(blocks) < 2:
            return {path: said(response)}
        return {path: [part(block) for block in blocks]}

    return Output(parse, render, path)


def _told(block: Block) -> str:
    if isinstance(block, Media):
        return " ".join(filter(None, (f"[{block.kind}]", block.name or block.url or block.file_id)))
    return block.text if isinstance(block, Text | Opaque) else ""


# ----------------------------------------------------------------------------------------------------- lists of results


def _listed(response: ToolResponse) -> list[Any]:
    """The list that a response holds as JSON; other text becomes its only entry."""
    given: object = response.structured
    if isinstance(given, UnsetType):
        given = parse_argument_text(said(response))[0] if said(response) else cast("list[Any]", [])
    return cast("list[Any]", given) if isinstance(given, list) else [{"type": "text", "text": said(response)}]


def _says_something(response: ToolResponse) -> bool:
    return bool(response.content) or not isinstance(response.structured, UnsetType)


def list_in(path: str) -> Output:
    """A list of search results, as JSON text."""

    def parse(payload: JsonObject) -> Content:
        given = at(payload, path)
        return None if given is None else (Text(write_text(list_of(given, path))),), UNSET

    return Output(parse, lambda response: {path: _listed(response)} if _says_something(response) else {}, path)


found = Output(
    lambda payload: (HOSTED["web_search_call"].result(payload), UNSET),
    lambda response: {"action.sources": _listed(response)} if _says_something(response) else {},
)


def code_outputs(path: str, picture: Callable[[Media], JsonObject]) -> Output:
    """Logs and images of a program."""

    def parse(payload: JsonObject) -> Content:
        given = at(payload, path)
        outputs = None if given is None else list_of(given, path)
        return None if outputs is None else tuple(_code_output(object_or_none(entry) or {}) for entry in outputs), UNSET

    def render(response: ToolResponse) -> Patch:
        blocks = (Text(said(response)),) if not isinstance(response.structured, UnsetType) else response.content or ()
        return {path: [picture(b) if isinstance(b, Media) else {"type": "logs", "logs": _told(b)} for b in blocks]}

    return Output(parse, render, path)


def _code_output(entry: JsonObject) -> Block:
    match entry:
        case {"type": "logs", "logs": str(logs)}:
            return Text(logs)
        case {"type": "image", "image": {"file_id": str(file_id)}}:
            return Media("image", file_id=file_id)
        case {"type": "image", "url": str(url)}:
            return data_address(url)
        case _:
            return Text(write_text(entry))


def tools_found(response: ToolResponse) -> Patch:
    """The tools that a search found: the declarations, else the names in its text."""
    if isinstance(response.structured, list):
        return {"tools": cast("list[Any]", response.structured)}
    listed = re.fullmatch(r"\[tools found: (.*)\]", said(response))
    names = listed[1].split(", ") if listed is not None and listed[1] != "none" else []
    return {"tools": [{"type": "function", "name": name} for name in names]}


# --------------------------------------------------------------------------------------------------- commands, images

_EXIT = re.compile(r"(?s)(?P<text>.*?)\n?\[(?:exit code (?P<code>-?\d+)|(?P<timeout>timed out))\]")


def exit_said(response: ToolResponse) -> tuple[str, int | Literal["timeout"] | None]:
    """Split a command's output into its text and the exit code or timeout in its last line; None without that line."""
    ended = _EXIT.fullmatch(said(response))
    if ended is None:
        return said(response), None
    return ended["text"], "timeout" if ended["timeout"] else int(ended["code"])


def _chunk(response: ToolResponse) -> JsonObject:
    text, code = exit_said(response)
    if code == "timeout":
        return {"stdout": text, "stderr": "", "outcome": {"type": "timeout"}}
    wrong = response.error or response.outcome is not None
    exit_code = code if code is not None else 1 if wrong else 0
    return {"stdout": text, "stderr": "", "outcome": {"type": "exit", "exit_code": exit_code}}


commands = Output(
    lambda payload: (TYPED["shell_call"].content(payload), UNSET), lambda response: {"output": [_chunk(response)]}
)


def _shown(payload: JsonObject) -> Content:
    shot = object_or_none(payload.get("output"))
    picture = None if shot is None else parse_image_url(shot, shot.get("image_url"), intact=False)
    return None if shot is None else () if picture is None else (picture,), UNSET


def _shot(response: ToolResponse) -> Patch:
    picture = next((block for block in response.content or () if isinstance(block, Media)), None)
    return {"output": {"type": "computer_screenshot", **({} if picture is None else _address(picture))}}


screenshot = Output(_shown, _shot)


def _made(response: ToolResponse) -> Patch:
    picture = next((block for block in response.content or () if isinstance(block, Media)), None)
    if picture is not None:
        return {"result": picture.data, "output_format": (picture.mime or "image/png").rpartition("/")[2]}
    if not _says_something(response):
        return {"result": None}
    return {"result": None, "error": {"type": "image_generation_error", "code": None, "message": said(response)}}


picture_made = Output(lambda payload: (HOSTED["image_generation_call"].result(payload), UNSET), _made)
