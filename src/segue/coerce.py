"""Coercion of arguments: a bare list of messages to a body, text or content parts of any API to blocks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from operator import is_
from typing import Any, cast

from segue._literals import Api
from segue.canonical.blocks import Block, Text
from segue.canonical.json import parse_json, parse_json_object, replace_surrogates, to_plain_json
from segue.errors import InputError, UndetectedApiError, require_string
from segue.wire.detect_body import detect_source
from segue.wire.registry import WIRES, api_of_model, apis_of_provider, find_wire

Body = bytes | bytearray | str | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""A request body as JSON or as a mapping, or a bare list of its messages."""

Content = str | Block | Sequence[Block] | Sequence[Mapping[str, Any]]

_RESPONSES_PARTS = frozenset({"input_text", "input_image", "input_file"})
_PART_TYPES = frozenset({"text", "image_url", "input_audio", "file", "image", "document", *_RESPONSES_PARTS})


# The first character of a JSON text.
_FIRST_CHARACTER = re.compile(r"\s*(.)")
_FIRST_BYTE = re.compile(rb"\s*(.)")


def wrap_messages(body: Body, api: str | None) -> bytes | bytearray | str | Mapping[str, Any]:
    """Return the body; a bare list of messages is wrapped in an object, under the key that `api` has for them.

    Without `api`, objects with `parts` are Gemini's, and typed items without roles are those of the Responses API.
    """
    if isinstance(body, Mapping):
        return body
    if isinstance(body, str):
        first = _FIRST_CHARACTER.match(body)
        if first is not None and not first[1].isspace() and first[1] not in '{["\ufeff':
            raise InputError('a string is a body in JSON; pass a list such as [{"role": "user", "content": "…"}]')
        messages: object = parse_json(body)[0] if first is not None and first[1] == "[" else None
    elif isinstance(body, bytes | bytearray):
        first = _FIRST_BYTE.match(body)
        messages = parse_json(bytes(body))[0] if first is not None and first[1] == b"[" else None
    elif isinstance(body, list | tuple):
        messages = to_plain_json(list(body))
    else:
        messages = None
    if messages is None:
        # Any other type is rejected where the body is parsed.
        return cast("bytes | bytearray | str", body)
    items = cast("list[object]", messages)
    if not items:
        raise InputError("expected a request body or a list of messages; this list is empty")
    for place, item in enumerate(items):
        if not isinstance(item, dict):
            raise InputError("a message must be an object", path=f"[{place}]")
    objects = cast("list[dict[str, Any]]", items)
    key = _messages_key(objects) if api is None else find_wire(api, argument="source").conversation_key
    return {key: objects}


def choose_api(name: Api, body: Body, source: str | None, *, argument: str = "target") -> Api:
    """Return the API of a provider that has several: the one that the body is of."""
    require_string(name, argument)
    apis = apis_of_provider(name)
    if len(apis) < 2:
        return name
    if source is None:
        own = detect_source(parse_json_object(wrap_messages(body, None))[0])
    else:
        own = find_wire(source, argument="source").name
    if own not in apis:
        raise InputError(f"{name} has several APIs; pass one of {', '.join(apis)}", path=argument)
    return cast("Api", own)


def drop_mark(body: Body) -> tuple[Body, tuple[str, ...]]:
    """Return a body without a byte order mark, and what was changed."""
    mark: Any = "\ufeff" if isinstance(body, str) else b"\xef\xbb\xbf"
    if not isinstance(body, str | bytes | bytearray) or not body.startswith(mark):
        return body, ()
    return body[len(mark) :], ("byte order mark removed",)


def parse_loosely(body: Body, api: str | None) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Parse a body or a list of messages, with plain texts among content parts, and return what was changed."""
    body, changes = drop_mark(body)
    value, _ = parse_json_object(wrap_messages(body, api))
    key = next((key for key in ("messages", "input", "contents") if isinstance(value.get(key), list)), "")
    wires = WIRES.values() if api is None else (find_wire(api, argument="source"),)
    kind = next((wire.text_part_type for wire in wires if wire.conversation_key == key), None)
    messages = [_wrap_texts(message, kind) for message in value.get(key, ())]
    if not key or all(map(is_, messages, value[key])):
        return value, changes
    return {**value, key: messages}, (*changes, "plain text among content parts made a part")


def _wrap_texts(message: Any, kind: str | None) -> Any:
    """Return a message with each plain text in its list of parts as a part of this type."""
    if not isinstance(message, dict):
        return message
    fields = cast("dict[str, Any]", message)
    key = "parts" if "parts" in fields else "content"
    parts = fields.get(key)
    if not isinstance(parts, list) or not any(isinstance(part, str) for part in cast("list[Any]", parts)):
        return fields
    if kind == "input_text" and fields.get("role") == "assistant":
        kind = "output_text"
    head = {"type": kind} if kind is not None else {}
    parts = [{**head, "text": part} if isinstance(part, str) else part for part in cast("list[Any]", parts)]
    return {**fields, key: parts}


def _messages_key(messages: Sequence[Mapping[str, Any]]) -> str:
    if any("parts" in message for message in messages):
        return "contents"
    is_input = any(
        "type" in message and ("role" not in message or message["type"] == "message") for message in messages
    )
    return "input" if is_input else "messages"


def is_blocks(content: object) -> bool:
    """Return whether this is a block, or a non-empty list of blocks."""
    if isinstance(content, Block):
        return True
    if not isinstance(content, list | tuple):
        return False
    items = cast("Sequence[object]", content)
    return bool(items) and all(isinstance(item, Block) for item in items)


def is_content_parts(content: object) -> bool:
    """Return whether these are content parts of an API, such as `{"type": "text", "text": …}`."""
    items = cast("list[object]", content) if isinstance(content, list) else []
    kinds = [cast("dict[str, Any]", item).get("type") if isinstance(item, dict) else None for item in items]
    return bool(kinds) and all(isinstance(kind, str) and kind in _PART_TYPES for kind in kinds)


def coerce_blocks(content: Content) -> tuple[Block, ...]:
    """Convert content to blocks."""
    if isinstance(content, str):
        return (Text(replace_surrogates(content)),)
    if isinstance(content, Block):
        return (content,)
    if is_blocks(content):
        return tuple(cast("Sequence[Block]", content))
    if not is_content_parts(content):
        raise InputError("text, blocks or content parts were expected", path="content")
    parts = cast("list[dict[str, Any]]", to_plain_json(content))
    if any(part["type"] in _RESPONSES_PARTS for part in parts):
        wire, conversation_key = WIRES["openai-responses"], "input"
    else:
        wire, conversation_key = (
            WIRES["anthropic" if any("source" in part for part in parts) else "openai-chat"],
            "messages",
        )
    try:
        return wire.parse_request({conversation_key: [{"role": "user", "content": parts}]}).messages[0].blocks
    except InputError as error:
        raise InputError(error.message, path=error.path.removeprefix(f"{conversation_key}[0].")) from None


def detect_reply_api(value: Mapping[str, Any]) -> str:
    """Return the API of a reply, detected by its shape."""
    if "choices" in value:
        model = value.get("model")
        owner = api_of_model(model if isinstance(model, str) else "")
        return owner if owner is not None and WIRES[owner].base_api == "openai-chat" else "openai-chat"
    if "candidates" in value or "promptFeedback" in value:
        return "gemini"
    if value.get("object") == "response" or isinstance(value.get("output"), list):
        return "openai-responses"
    if isinstance(value.get("output"), dict):
        return "bedrock"
    if value.get("type") == "message" or isinstance(value.get("content"), list):
        return "anthropic"
    raise UndetectedApiError("not a reply of a known API")
