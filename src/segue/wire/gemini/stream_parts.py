"""Partial content in a stream: a text over several chunks, and the arguments of one call."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, cast

from segue.canonical.blocks import ToolCall
from segue.errors import InputError
from segue.wire.gemini.fields import JsonObject, items_of, look, object_of, text_at
from segue.wire.stream_reader import Reader

__all__ = ["GrowingCall", "Run"]

# A text of this length that repeats all previous text as its prefix is not a coincidence.
_LONG = 24
_CHUNKS = 4


class Run:
    """A text or thought over several chunks.

    Some servers send the whole text so far in each chunk (cumulative). That is certain if the text is long, or if the
    third chunk repeats the second as the second repeated the first; until then the second one is held back.
    """

    __slots__ = ("_chunks", "_held", "_length", "_reader", "place", "repeats", "thought")

    def __init__(self, reader: Reader, place: int, *, thought: bool, repeats: bool) -> None:
        self._reader = reader
        self.place = place
        self.thought = thought
        self.repeats = repeats
        self._length = self._chunks = 0
        self._held: str | None = None

    def say(self, text: str) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            if text.startswith(held):
                self.repeats = True
            else:
                self._tell(held)
        if self.repeats:
            so_far = self._reader.said(self.place)
            text = "" if so_far.startswith(text) else text.removeprefix(so_far)
        elif self._length and len(text) > self._length:
            so_far = self._reader.said(self.place)
            if text.startswith(so_far) and text not in (text + text)[1:-1]:
                if len(so_far) >= _LONG:
                    self.repeats = True
                    text = text[len(so_far) :]
                elif self._chunks == 1:
                    self._held = text
                    return
        self._tell(text)

    @property
    def settled(self) -> bool:
        """Whether it is certain that chunks are increments and not cumulative."""
        return self._chunks >= _CHUNKS and not self.repeats and self._held is None

    def more(self, text: str) -> None:
        """Append to an incremental text without the check for repetition."""
        self._tell(text)

    def _tell(self, text: str) -> None:
        if text:
            self._chunks += 1
            self._length += len(text)
            if self.thought:
                self._reader.thinking(self.place, text)
            else:
                self._reader.text(self.place, text)

    def end(self) -> str:
        if self._held is not None:
            self._tell(self._held)
            self._held = None
        return self._reader.ended(self.place)


_STEP = re.compile(r"""\.([^.\[\]'"]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""", re.DOTALL)
_VALUES = ("stringValue", "numberValue", "boolValue")
_DEPTH = 500


class GrowingCall:
    """A call whose arguments arrive in parts, each with its JSON path."""

    __slots__ = ("_open", "arguments", "at", "call", "fragment", "place")

    def __init__(self, call: ToolCall, place: int, at: int, fragment: JsonObject) -> None:
        self.call = call
        self.place = place
        self.at = at
        self.fragment = fragment
        self.arguments: JsonObject = {}
        self._open: str | None = None

    def goes_on_with(self, inner: JsonObject) -> bool:
        name, call_id = text_at(inner, "name"), text_at(inner, "id")
        return name in (None, "", self.call.name) and call_id in (None, "", self.call.origin.raw_id)

    def take(self, inner: JsonObject) -> None:
        whole = look(inner, "args")
        if isinstance(whole, dict):
            self.arguments.update(cast("JsonObject", whole))
        for piece in map(object_of, items_of(look(inner, "partialArgs"), "partialArgs")):
            path = text_at(piece, "jsonPath") or ""
            value: Any = next((found for key in _VALUES if (found := look(piece, key)) is not None), None)
            self._lay(path, value, grows=path == self._open)
            self._open = path if look(piece, "willContinue") is True else None

    def _lay(self, path: str, value: Any, *, grows: bool) -> None:
        steps = _steps(path)
        if not steps:
            return
        target: Any = self.arguments
        for step, following in pairwise(steps):
            empty: Any = [] if isinstance(following, int) else {}
            target = _under(target, step, path, empty)
        last = steps[-1]
        before = _under(target, last, path, None)
        # A part without a value means null, or the end of a string that it continues.
        joined = f"{before}{value or ''}" if grows and isinstance(before, str) else value
        target[last] = joined


def _steps(path: str) -> list[str | int]:
    steps: list[str | int] = []
    position = 1 if path.startswith("$") else 0
    while position < len(path):
        found = _STEP.match(path, position)
        if found is None or len(steps) >= _DEPTH:
            raise InputError(f"invalid JSON path: {path[:64]}", path="partialArgs")
        plain, number, single, double = found.groups()
        quoted = single if single is not None else double
        name = plain if plain is not None else re.sub(r"\\(.)", r"\1", quoted or "")
        steps.append(int(number[:9]) if number is not None else name)
        position = found.end()
    return steps


def _under(target: Any, step: str | int, path: str, empty: Any) -> Any:
    """The value at this step; `empty` is inserted if there is none."""
    if isinstance(step, str) and isinstance(target, dict):
        fields = cast("JsonObject", target)
        if fields.get(step) is None and empty is not None:
            fields[step] = empty
        return fields.get(step)
    if isinstance(step, int) and isinstance(target, list):
        items = cast("list[Any]", target)
        if step < len(items):
            items[step] = empty if items[step] is None and empty is not None else items[step]
            return items[step]
        if step == len(items):
            items.append(empty)
            return empty
    raise InputError(f"JSON path does not match the arguments: {path[:64]}", path="partialArgs")
