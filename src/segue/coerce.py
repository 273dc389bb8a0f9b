"""Coercion of user content: text, canonical blocks, content parts of any API, whole replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from segue.canonical.blocks import Block, Text
from segue.canonical.json import to_plain_json
from segue.errors import InputError
from segue.models import identify
from segue.wire.registry import WIRES

__all__ = ["Content", "coerce_blocks", "detect_reply", "is_blocks", "is_parts"]

Content = str | Block | Sequence[Block] | Sequence[Mapping[str, Any]]

_RESPONSES_PARTS = frozenset({"input_text", "input_image", "input_file"})
_PART_TYPES = frozenset({"text", "image_url", "input_audio", "file", "image", "document", *_RESPONSES_PARTS})


def is_blocks(content: object) -> bool:
    """Whether this is a block, or a non-empty list of blocks."""
    if isinstance(content, Block):
        return True
    if not isinstance(content, list | tuple):
        return False
    items = cast("Sequence[object]", content)
    return bool(items) and all(isinstance(item, Block) for item in items)


def is_parts(content: object) -> bool:
    """Whether these are content parts of an API, such as `{"type": "text", "text": …}`."""
    items = cast("list[object]", content) if isinstance(content, list) else []
    kinds = [cast("dict[str, Any]", item).get("type") if isinstance(item, dict) else None for item in items]
    return bool(kinds) and all(isinstance(kind, str) and kind in _PART_TYPES for kind in kinds)


def coerce_blocks(content: Content) -> tuple[Block, ...]:
    """Convert content to blocks."""
    if isinstance(content, str):
        return (Text(content),)
    if isinstance(content, Block):
        return (content,)
    if is_blocks(content):
        return tuple(cast("Sequence[Block]", content))
    if not is_parts(content):
        raise InputError("text, blocks or content parts were expected", path="content")
    parts = cast("list[dict[str, Any]]", to_plain_json(content))
    if any(part["type"] in _RESPONSES_PARTS for part in parts):
        wire, conversation_key = WIRES["openai-responses"], "input"
    else:
        wire, conversation_key = (
            WIRES["anthropic" if any("source" in part for part in parts) else "openai-chat"],
            "messages",
        )
    return wire.parse_request({conversation_key: [{"role": "user", "content": parts}]}).messages[0].blocks


def detect_reply(value: Mapping[str, Any]) -> str:
    """Return the API of a reply, detected by its shape."""
    if "choices" in value:
        family = identify(value.get("model") if isinstance(value.get("model"), str) else None).family
        return family if family in WIRES else "openai-chat"
    if "candidates" in value or "promptFeedback" in value:
        return "gemini"
    if value.get("object") == "response" or isinstance(value.get("output"), list):
        return "openai-responses"
    if isinstance(value.get("output"), dict):
        return "bedrock"
    if value.get("type") == "message" or isinstance(value.get("content"), list):
        return "anthropic"
    raise InputError("not a reply of a known API; pass `source` if it is one")
