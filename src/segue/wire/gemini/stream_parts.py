"""Partial content in a stream: a text over several chunks, and the arguments of one call."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, cast

from segue.canonical.blocks import ToolCall
from segue.errors import InputError
from segue.wire.gemini.fields import JsonObject, as_list, get_field, get_text, require_object
from segue.wire.stream.parse import PayloadReader

__all__ = ["PartialCall", "TextRun"]

# A text of this length that repeats all previous text as its prefix is not a coincidence.
_LONG_TEXT = 24
_MIN_CHUNKS = 4


class TextRun:
    """A text or thought over several chunks.

    Some servers send the whole text so far in each chunk (cumulative). That is certain if the text is long, or if the
    third chunk repeats the second as the second repeated the first; until then the second one is held back.
    """

    __slots__ = ("_chunks", "_held", "_length", "_reader", "block_index", "is_cumulative", "thought")

    def __init__(self, reader: PayloadReader, block_index: int, *, thought: bool, is_cumulative: bool) -> None:
        self._reader = reader
        self.block_index = block_index
        self.thought = thought
        self.is_cumulative = is_cumulative
        self._length = self._chunks = 0
        self._held: str | None = None

    def append(self, text: str) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            if text.startswith(held):
                self.is_cumulative = True
            else:
                self._emit(held)
        if self.is_cumulative:
            so_far = self._reader.text_so_far(self.block_index)
            text = "" if so_far.startswith(text) else text.removeprefix(so_far)
        elif self._length and len(text) > self._length:
            so_far = self._reader.text_so_far(self.block_index)
            if text.startswith(so_far) and text not in (text + text)[1:-1]:
                if len(so_far) >= _LONG_TEXT:
                    self.is_cumulative = True
                    text = text[len(so_far) :]
                elif self._chunks == 1:
                    self._held = text
                    return
        self._emit(text)

    @property
    def is_incremental(self) -> bool:
        """Whether it is certain that chunks are increments and not cumulative."""
        return self._chunks >= _MIN_CHUNKS and not self.is_cumulative and self._held is None

    def append_incremental(self, text: str) -> None:
        """Append to an incremental text without the check for repetition."""
        self._emit(text)

    def _emit(self, text: str) -> None:
        if text:
            self._chunks += 1
            self._length += len(text)
            if self.thought:
                self._reader.add_thinking(self.block_index, text)
            else:
                self._reader.add_text(self.block_index, text)

    def end(self) -> str:
        if self._held is not None:
            self._emit(self._held)
            self._held = None
        return self._reader.finish_text(self.block_index)


_PATH_STEP = re.compile(r"""\.([^.\[\]'"]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""", re.DOTALL)
_VALUE_FIELDS = ("stringValue", "numberValue", "boolValue")
_MAX_DEPTH = 500


class PartialCall:
    """A call whose arguments arrive in parts, each with its JSON path."""

    __slots__ = ("_open_path", "arguments", "block_index", "call", "fragment", "part_index")

    def __init__(self, call: ToolCall, block_index: int, part_index: int, fragment: JsonObject) -> None:
        self.call = call
        self.block_index = block_index
        self.part_index = part_index
        self.fragment = fragment
        self.arguments: JsonObject = {}
        self._open_path: str | None = None

    def is_continued_by(self, inner: JsonObject) -> bool:
        name, call_id = get_text(inner, "name"), get_text(inner, "id")
        return name in (None, "", self.call.name) and call_id in (None, "", self.call.origin.raw_id)

    def add_delta(self, inner: JsonObject) -> None:
        whole = get_field(inner, "args")
        if isinstance(whole, dict):
            self.arguments.update(cast("JsonObject", whole))
        for part in map(require_object, as_list(get_field(inner, "partialArgs"), "partialArgs")):
            path = get_text(part, "jsonPath") or ""
            value: Any = next((found for key in _VALUE_FIELDS if (found := get_field(part, key)) is not None), None)
            self._set_value(path, value, grows=path == self._open_path)
            self._open_path = path if get_field(part, "willContinue") is True else None

    def _set_value(self, path: str, value: Any, *, grows: bool) -> None:
        steps = _parse_path(path)
        if not steps:
            return
        target: Any = self.arguments
        for step, following in pairwise(steps):
            empty: Any = [] if isinstance(following, int) else {}
            target = _get_or_create(target, step, path, empty)
        last = steps[-1]
        before = _get_or_create(target, last, path, None)
        # A part without a value means null, or the end of a string that it continues.
        new_value = f"{before}{value or ''}" if grows and isinstance(before, str) else value
        target[last] = new_value


def _parse_path(path: str) -> list[str | int]:
    steps: list[str | int] = []
    position = 1 if path.startswith("$") else 0
    while position < len(path):
        match = _PATH_STEP.match(path, position)
        if match is None or len(steps) >= _MAX_DEPTH:
            raise InputError(f"invalid JSON path: {path[:64]}", path="partialArgs")
        plain, number, single, double = match.groups()
        quoted = single if single is not None else double
        name = plain if plain is not None else re.sub(r"\\(.)", r"\1", quoted or "")
        steps.append(int(number[:9]) if number is not None else name)
        position = match.end()
    return steps


def _get_or_create(target: Any, step: str | int, path: str, empty: Any) -> Any:
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
