"""Reasoning of assistant messages: `reasoning_content`, `reasoning`, or the entries of `reasoning_details`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from segue.canonical.blocks import UNKNOWN_PROVIDER, Origin, Thinking
from segue.canonical.json import encode_json_text
from segue.wire.json_values import JsonObject, object_list, object_or_none, string_or_none
from segue.wire.openai_chat.dialect import ChatDialect

# The first of these keys with a string holds the text.
REASONING_KEYS = ("reasoning_content", "reasoning")
DETAILS_KEY = "reasoning_details"
_TEXT_KEYS = {"reasoning.text": "text", "reasoning.summary": "summary"}
_ENTRY_KEYS = {**_TEXT_KEYS, "reasoning.encrypted": "data"}


def parse_reasoning(message: Mapping[str, Any], dialect: ChatDialect, origin: Origin) -> list[Thinking]:
    """Parse the reasoning of a message, except the encrypted entry that belongs to its first call."""
    if DETAILS_KEY not in message and message.keys().isdisjoint(REASONING_KEYS):
        return []
    text = next((value for key in REASONING_KEYS if isinstance(value := message.get(key), str)), None)
    entries = object_list(message.get(DETAILS_KEY))
    blocks: list[Thinking] = []
    # KIM-04: an empty text counts as reasoning where the key itself is required.
    if text is not None and (text or dialect.reasoning_key is not None):
        blocks.append(Thinking(text, origin=origin))
    if not text:
        blocks += [
            Thinking(content, string_or_none(entry.get("signature")) or None, origin=origin)
            for entry in entries
            if (content := _entry_text(entry))
        ]
    if not dialect.encrypted_reasoning:
        blocks += [Thinking(encrypted=data, origin=origin) for data in _find_encrypted(entries)]
    return blocks + list(_parse_invalid_entries(message.get(DETAILS_KEY)))


def find_encrypted_reasoning(details: object) -> str | None:
    """Return the first encrypted entry of `reasoning_details` (COMP-21)."""
    return next(_find_encrypted(object_list(details)), None)


def parse_details_text(details: object) -> Iterator[str]:
    """Yield the texts and summaries of `reasoning_details`."""
    return (text for entry in object_list(details) if (text := _entry_text(entry)))


def _parse_invalid_entries(details: object) -> Iterator[Thinking]:
    """Yield the entries of no known form, as reasoning that no API accepts. Anything but a list is one such entry."""
    if not details:
        return
    for entry in cast("list[object]", details) if isinstance(details, list) else [details]:
        members = object_or_none(entry)
        kind = "" if members is None else str(members.get("type"))
        key = _ENTRY_KEYS.get(kind)
        if members is not None and key is not None and isinstance(members.get(key), str | None):
            continue
        yield Thinking(encrypted=encode_json_text(entry), origin=Origin(UNKNOWN_PROVIDER, identity="absent"))


def _entry_text(entry: JsonObject) -> str | None:
    key = _TEXT_KEYS.get(str(entry.get("type")))
    return None if key is None else string_or_none(entry.get(key)) or None


def _find_encrypted(entries: list[JsonObject]) -> Iterator[str]:
    encrypted = (entry.get("data") for entry in entries if entry.get("type") == "reasoning.encrypted")
    return (data for data in encrypted if isinstance(data, str) and data)
