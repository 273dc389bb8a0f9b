"""What a stream tells in pieces, put together; and a call's arguments in pieces for a target that wants an object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from segue.canonical.blocks import ToolCall
from segue.canonical.jsontext import parse_argument_text, plain, write_text
from segue.render.report import Report
from segue.wire.tools import FREE_TEXT, render_arguments_object

__all__ = ["PLACEHOLDERS", "GrowingText", "InputPieces", "grown", "input_value", "written_out"]

PLACEHOLDERS = frozenset({"{}", "null"})
"""What some servers say before the real arguments come."""

# Below, what comes later replaces what came before.
_DEEPEST = 32
_MANY = 128


class GrowingText:
    """A text in pieces. Small ones take ten times the room of what they say, so there are never many of them."""

    __slots__ = ("_joined", "_pieces")

    def __init__(self, text: str = "") -> None:
        self._joined = [text] if text else []
        self._pieces: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._joined or self._pieces)

    def append(self, text: str) -> None:
        self._pieces.append(text)
        if len(self._pieces) >= _MANY:
            self._joined.append("".join(self._pieces))
            self._pieces.clear()

    def text(self) -> str:
        if self._pieces or len(self._joined) > 1:
            text = "".join((*self._joined, *self._pieces))
            self._joined = [text] if text else []
            self._pieces.clear()
        return self._joined[0] if self._joined else ""


def grown(pieces: Sequence[Any], depth: int = 0) -> Any:
    """One value of many: texts are joined, lists go on, objects grow member by member, and else the last one holds."""
    said = [piece for piece in pieces if piece is not None]
    if len(said) < 2 or depth > _DEEPEST:
        return said[-1] if said else None
    if all(isinstance(piece, str) for piece in said):
        return "".join(said)
    if all(isinstance(piece, list) for piece in said):
        return [item for piece in said for item in piece]
    if all(isinstance(piece, dict) for piece in said):
        members: dict[str, list[Any]] = {}
        for piece in cast("list[dict[str, Any]]", said):
            for key, value in piece.items():
                members.setdefault(key, []).append(value)
        return {key: grown(values, depth + 1) for key, values in members.items()}
    return said[-1]


def written_out(value: object) -> str:
    """The text of arguments; a value that stands in its place is written down."""
    if value is None:
        return ""
    return value if isinstance(value, str) else write_text(plain(value))


def input_value(text: str, *, ended: bool) -> tuple[Any, bool]:
    """The input of a call as its API says it at once, and whether it was cut off; what was, and what is no JSON, stays
    text. A whole object has nothing to wait for, so it is whole even where its end was not told."""
    value, exact = parse_argument_text(text)
    broken = not (ended or (isinstance(value, dict) and value)) or (value is None and exact is not None)
    return text if broken or value is None or isinstance(value, str) else cast("Any", value), broken


class InputPieces:
    """The text of an object, as the text of a call's arguments comes in.

    What begins as an object goes on at once (`through`), and so does free text, as the one member of an object. Any
    other value, and what can be no JSON, can only be said when all of it is there.
    """

    __slots__ = ("_free", "_held", "_said", "_waits", "through")

    def __init__(self, call: ToolCall) -> None:
        self.through = False
        self._free = call.kind == "custom"
        self._held = ""
        self._said = False
        self._waits = False

    def more(self, text: str) -> str:
        if self.through:
            return text
        if self._free:
            return self._opening() + write_text(text)[1:-1]
        if self._waits:
            return ""
        self._held += text
        begun = self._held.strip()
        second = begun[1:].lstrip()[:1]
        if begun[:1] not in ("{", "") or second not in ('"', "}", ""):
            self._waits = True
            return ""
        # What has an end and is no JSON may be all that comes.
        self.through = bool(second) and not (begun.endswith("}") and parse_argument_text(begun)[0] is None)
        return self._held if self.through else ""

    def _opening(self) -> str:
        begun, self._said = self._said, True
        return "" if begun else f'{{"{FREE_TEXT}":"'

    def rest(self, call: ToolCall, report: Report) -> str:
        """What the finished call still has to say. One that was cut off says no more than came of it."""
        if call.broken:
            return "" if self.through or self._waits or self._free else self._held.lstrip()
        if self.through:
            if call.arguments is None and call.arguments_text:
                said = "arguments that are not valid JSON had gone out before that was known"
                report.add("argument", said, call_id=call.id, subject=call.name)
            return ""
        if self._free:
            render_arguments_object(call, report)
            return self._opening() + '"}'
        if not self._held and call.arguments in ({}, None):
            return ""
        return write_text(render_arguments_object(call, report))
