"""Accumulates deltas of a stream, and renders arguments deltas for a target that needs a JSON object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from segue.canonical.blocks import ToolCall
from segue.canonical.json import encode_json_text, parse_argument_text, to_plain_json
from segue.render.report import Report
from segue.wire.tools import FREE_TEXT_KEY, render_arguments_object

__all__ = [
    "ARGUMENT_PLACEHOLDERS",
    "InputObjectWriter",
    "TextBuffer",
    "arguments_to_text",
    "merge_deltas",
    "parse_input",
]

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
    """Merges deltas of one value: texts and lists are joined, objects merged by member, else the last one wins."""
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
    """Arguments as text; a value that is not text is encoded as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else encode_json_text(to_plain_json(value))


def parse_input(text: str, *, ended: bool) -> tuple[Any, bool]:
    """The input of a call as in a complete reply, and whether it is truncated. Truncated or invalid JSON stays text; a
    complete non-empty object counts as complete even if the stream did not end the block."""
    value, exact = parse_argument_text(text)
    broken = not (ended or (isinstance(value, dict) and value)) or (value is None and exact is not None)
    return text if broken or value is None or isinstance(value, str) else cast("Any", value), broken


class InputObjectWriter:
    """Renders the arguments of one call as the text of a JSON object while their deltas arrive.

    Text that begins like an object is passed through at once, and so is free text, as the only member of an object.
    Any other value, and invalid JSON, is rendered when it is complete.
    """

    __slots__ = ("_buffer_all", "_free_text", "_held", "_opened", "passthrough")

    def __init__(self, call: ToolCall) -> None:
        self.passthrough = False
        self._free_text = call.kind == "custom"
        self._held = ""
        self._opened = False
        self._buffer_all = False

    def feed(self, text: str) -> str:
        if self.passthrough:
            return text
        if self._free_text:
            return self._open_object() + encode_json_text(text)[1:-1]
        if self._buffer_all:
            return ""
        self._held += text
        stripped = self._held.strip()
        second = stripped[1:].lstrip()[:1]
        if stripped[:1] not in ("{", "") or second not in ('"', "}", ""):
            self._buffer_all = True
            return ""
        # Text that is closed but invalid JSON may be all of the arguments.
        self.passthrough = bool(second) and not (stripped.endswith("}") and parse_argument_text(stripped)[0] is None)
        return self._held if self.passthrough else ""

    def _open_object(self) -> str:
        opened, self._opened = self._opened, True
        return "" if opened else f'{{"{FREE_TEXT_KEY}":"'

    def finish(self, call: ToolCall, report: Report) -> str:
        """The rest of the text once the call is finished; nothing is added to a truncated call."""
        if call.broken:
            return "" if self.passthrough or self._buffer_all or self._free_text else self._held.lstrip()
        if self.passthrough:
            if call.arguments is None and call.arguments_text:
                message = "arguments are not valid JSON; they were already streamed to the client"
                report.add("argument", message, call_id=call.id, subject=call.name)
            return ""
        if self._free_text:
            render_arguments_object(call, report)
            return self._open_object() + '"}'
        if not self._held and call.arguments in ({}, None):
            return ""
        return encode_json_text(render_arguments_object(call, report))
