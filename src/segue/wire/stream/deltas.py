"""The values that deltas of a stream add up to: texts, fragments, and the arguments of tool calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from segue.canonical.json import encode_json_text, parse_argument_text, to_plain_json

ARGUMENT_PLACEHOLDERS = frozenset({"{}", "null"})
"""Arguments that some servers send before the real ones."""

# Deeper values are replaced instead of merged.
_MAX_MERGE_DEPTH = 32
_MAX_CHUNKS = 128


class TextBuffer:
    """A text that grows by deltas, which are joined regularly: many small strings take ten times the memory."""

    __slots__ = ("_joined", "_pieces")

    def __init__(self, text: str = "") -> None:
        self._joined = [text] if text else []
        self._pieces: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._joined or self._pieces)

    def append(self, text: str) -> None:
        self._pieces.append(text)
        if len(self._pieces) >= _MAX_CHUNKS:
            self._joined.append("".join(self._pieces))
            self._pieces.clear()

    def text(self) -> str:
        if self._pieces or len(self._joined) > 1:
            text = "".join((*self._joined, *self._pieces))
            self._joined = [text] if text else []
            self._pieces.clear()
        return self._joined[0] if self._joined else ""


def merge_deltas(deltas: Sequence[Any], depth: int = 0) -> Any:
    """Merge deltas of one value: texts and lists are joined, objects merged by member, else the last one wins."""
    present = [value for value in deltas if value is not None]
    if len(present) < 2 or depth > _MAX_MERGE_DEPTH:
        return present[-1] if present else None
    if all(isinstance(value, str) for value in present):
        return "".join(present)
    if all(isinstance(value, list) for value in present):
        return [item for value in present for item in value]
    if all(isinstance(value, dict) for value in present):
        members: dict[str, list[Any]] = {}
        for member in cast("list[dict[str, Any]]", present):
            for key, value in member.items():
                members.setdefault(key, []).append(value)
        return {key: merge_deltas(values, depth + 1) for key, values in members.items()}
    return present[-1]


def arguments_to_text(value: object) -> str:
    """Return arguments as text; a value that is not text is encoded as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else encode_json_text(to_plain_json(value))


def parse_input(text: str, *, ended: bool) -> tuple[Any, bool]:
    """Return the input of a call as in a complete reply, and whether it is truncated.

    Truncated or invalid JSON stays text; a complete non-empty object counts as complete even if the stream did not end
    the block.
    """
    value, exact = parse_argument_text(text)
    broken = not (ended or (isinstance(value, dict) and value)) or (value is None and exact is not None)
    return text if broken or value is None or isinstance(value, str) else cast("Any", value), broken
