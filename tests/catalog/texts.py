"""The texts of blocks and of bodies, to see whether one arrives in the other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from msgspec import UNSET

from segue.canonical.blocks import Block, Media, Opaque, Text, ToolCall, ToolResponse


def leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, str):
        yield value


def texts(block: Block) -> Iterator[str]:
    """Arguments and outputs as texts; images by data or URL."""
    match block:
        case ToolCall():
            yield from leaves(block.arguments)
        case ToolResponse():
            for inner in block.content or ():
                yield from texts(inner)
            if block.structured is not UNSET:
                yield from leaves(block.structured)
        case Text() | Opaque():
            yield block.text
        case Media(data=None):
            yield block.url or block.file_id or ""
        case _:
            pass


def body_strings(body: Any) -> str:
    """All strings in a body, with JSON strings opened recursively."""
    strings = list(leaves(body))
    for string in strings:
        try:
            strings += leaves(json.loads(string))
        except ValueError:
            continue
    return "\n".join(strings)


def lines(word: str) -> list[str]:
    """The lines of a text, or the strings in its JSON."""
    try:
        return [line for leaf in leaves(json.loads(word)) for line in leaf.splitlines()]
    except ValueError:
        return word.splitlines()
