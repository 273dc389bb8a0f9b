"""The values that deltas of a stream add up to: texts, fragments, and the arguments of tool calls."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import Any, cast

from segue.canonical.json import encode_json_text, parse_argument_text, to_plain_json
from segue.wire.json_values import object_or_none

ARGUMENT_PLACEHOLDERS = frozenset({"{}", "null"})
"""Arguments that some servers send before the real ones."""

# Deeper values are replaced instead of merged.
_MAX_MERGE_DEPTH = 32
_MAX_CHUNKS = 128


class TextBuffer:
    """A text that grows by deltas, which are joined regularly: many small strings take ten times the memory."""

    __slots__ = ("_joined", "_length", "_pieces")

    def __init__(self, text: str = "") -> None:
        self._joined = [text] if text else []
        self._pieces: list[str] = []
        self._length = len(text)

    def __bool__(self) -> bool:
        return bool(self._joined or self._pieces)

    def __len__(self) -> int:
        return self._length

    def append(self, text: str) -> None:
        self._pieces.append(text)
        self._length += len(text)
        if len(self._pieces) >= _MAX_CHUNKS:
            self._joined.append("".join(self._pieces))
            self._pieces.clear()

    def text(self) -> str:
        if self._pieces or len(self._joined) > 1:
            text = "".join((*self._joined, *self._pieces))
            self._joined = [text] if text else []
            self._pieces.clear()
        return self._joined[0] if self._joined else ""

    def starts_with(self, prefix: str) -> bool:
        """Return whether the text begins with `prefix`; the cost is that of the prefix, not of the text."""
        position = 0
        for piece in chain(self._joined, self._pieces):
            if position >= len(prefix):
                return True
            if not piece.startswith(prefix[position : position + len(piece)]):
                return False
            position += len(piece)
        return position >= len(prefix)

    def text_from(self, start: int) -> str:
        """Return the text from a position on; the cost is that of the returned text."""
        pieces: list[str] = []
        position = self._length
        for piece in chain(reversed(self._pieces), reversed(self._joined)):
            if position <= start:
                break
            position -= len(piece)
            pieces.append(piece)
        return "".join(reversed(pieces))[start - position :] if pieces else ""

    def is_prefix_of(self, text: str) -> bool:
        """Return whether `text` begins with this text; the cost is that of `text`."""
        return self._length <= len(text) and text.startswith(self.text())


_STRUCTURE = re.compile(r'[{}\[\]]|"')
_REST_OF_STRING = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)


class ArgumentsBuffer(TextBuffer):
    """The arguments text of a call in progress. Any number of `is_complete_object` takes one scan of the text."""

    __slots__ = ("_depth", "_in_string", "_is_complete", "_scanned")

    def __init__(self, text: str = "") -> None:
        super().__init__(text)
        self._scanned = self._depth = 0
        self._in_string = False
        # None before the end of the first value; then nothing but white space may follow.
        self._is_complete: bool | None = None

    def is_complete_object(self) -> bool:
        """Return whether this is a complete, non-empty JSON object."""
        text, self._scanned = self.text_from(self._scanned), len(self)
        if self._is_complete is None:
            self._scan(text)
        elif self._is_complete and text and not text.isspace():
            self._is_complete = False
        return bool(self._is_complete)

    def _scan(self, text: str) -> None:
        position = 0
        while self._is_complete is None:
            if self._in_string:
                end = _REST_OF_STRING.match(text, position)
                position = end.end() if end is not None else position
                if position == len(text) or text[position] != '"':
                    # A backslash at the end is scanned again with what follows it.
                    self._scanned -= len(text) - position
                    return
                self._in_string = False
                position += 1
            match = _STRUCTURE.search(text, position)
            if match is None:
                return
            position = match.end()
            if match[0] == '"':
                self._in_string = True
            elif match[0] in "{[":
                self._depth += 1
            else:
                self._depth -= 1
                if self._depth <= 0:
                    self._is_complete = is_complete_object(self.text())


def is_complete_object(text: str) -> bool:
    """Return whether this is a complete, non-empty JSON object."""
    return text.rstrip().endswith("}") and bool(object_or_none(parse_argument_text(text)[0]))


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
