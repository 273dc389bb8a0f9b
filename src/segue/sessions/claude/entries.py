"""The entries of a Claude Code session: their message, its blocks, and the reply that they are part of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from segue.sessions.parsed_log import LogLine
from segue.sessions.values import object_of


def blocks_of(line: LogLine) -> list[Mapping[str, Any]]:
    """Return the blocks of an entry's message; a text is one block."""
    content = object_of(line.value.get("message")).get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    items = cast("list[Any]", content) if isinstance(content, list) else []
    return [item for item in items if isinstance(item, dict)]


def reply_id(line: LogLine) -> str | None:
    """Return the id of the reply that an entry is part of; None for other entries."""
    message = object_of(line.value.get("message"))
    name = message.get("id")
    return name if line.value.get("type") == "assistant" and isinstance(name, str) else None
