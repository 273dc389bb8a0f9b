"""Calls written as elements: one for the call, inside it one for each parameter with its value as content.

Tokens inside a value do not count, but a parameter that begins inside another one means that the first is unterminated.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from segue.wire.text.base import Found, Lost, Opener, Piece
from segue.wire.text.loose import NotReadableError, read_loose
from segue.wire.text.marks import MarkedReader, Marks, call_of, opener
from segue.wire.text.reader import Reading
from segue.wire.text.typed import Declared

__all__ = ["Elements"]

_LONGEST_TAG = 1024
_ATTRIBUTE = re.compile(r"([\w-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")


class Elements:
    """One format of elements.

    The kinds of tokens are `section`, `call`, `parameter`, `json`, the end of each (`call end`), and `tag end`; `call`,
    `parameter` and `json` are the beginnings of tags. `name_attribute` and `key_attribute` hold the names of the tool
    and of the parameter. `is_text` decides by the attributes whether a value is text (True), JSON (False) or of the
    declared type (None); `unescape` decodes an attribute.
    """

    def __init__(
        self,
        marks: Marks,
        *,
        name: str,
        key: str,
        is_text: Callable[[Mapping[str, str]], bool | None],
        attribute: Callable[[str], str] = str,
    ) -> None:
        self.in_tag, self.marks = marks, marks.but("tag end")
        self.opening, self.call = marks.only("section", "call"), marks.only("call")
        self.call_end, self.section_end = marks.only("call end"), marks.only("section end")
        self.json_end = marks.only("json end")
        self.around_value = marks.only("parameter", "parameter end", "call")
        self.around_call = marks.only("call", "call end")
        self.name, self.key = name, key
        self._is_text, self._attribute = is_text, attribute

    @property
    def opener(self) -> Opener:
        return opener(self.opening, partial(_Call, self))

    def attributes(self, tag: str) -> dict[str, str]:
        return {found[1]: self._attribute(found[2] or found[3] or "") for found in _ATTRIBUTE.finditer(tag)}

    def value_of(self, name: str, tag: Mapping[str, str], text: str, declared: Declared) -> Any:
        is_text = self._is_text(tag)
        if is_text is None:
            return declared.argument(name, tag[self.key], text)
        if is_text:
            return text
        try:
            return read_loose(text.strip())
        except NotReadableError:
            return text


class _Call(MarkedReader):
    """One call, with the section's tags if they come directly before or after it."""

    def __init__(self, element_format: Elements, declared: Declared) -> None:
        super().__init__(declared)
        self.marks, self.opening, self.closing = element_format.marks, element_format.opening, element_format.call_end
        self._form = element_format
        self._parameters: list[tuple[dict[str, str], str]] = []
        self._json: str | None = None

    def read(self) -> Reading[list[Piece]]:
        element_format = self._form
        if (yield from self.past(element_format.opening)) == "section":
            opened = self.mark
            yield from self.space()
            if not (yield from self.past(element_format.call)):
                if not (yield from self.past(element_format.section_end)):
                    self.give_back(opened)
                return [self.lost("no call")]
        opened = self.mark
        tag = yield from self._tag()
        if tag is None:
            self.give_back(opened)
            return [self.lost("unterminated tag of the call")]
        why, is_at_next = yield from self._parts()
        if why:
            if not is_at_next:
                yield from self.find(element_format.around_call)
            yield from self.past(element_format.call_end)
            return [self.lost(why)]
        is_closed = yield from self.here(element_format.marks)
        yield from self.closers(element_format.call_end, element_format.section_end)
        if self.ended and element_format.marks.may_begin(self._text, self._at):
            self.take(len(self._text) - self._at)
        call = self._call_of(tag.get(element_format.name, "").strip(), self.written())
        if not is_closed and isinstance(call, Found) and self.declared.whole(call.name, call.arguments) is False:
            return [Lost(call.written, "unterminated call")]
        return [call]

    def _parts(self) -> Reading[tuple[str, bool]]:
        """Consume the content of the call; return the reason if it is broken, and whether the next call begins here."""
        marks = self._form.marks
        while True:
            yield from self.space()
            mark = yield from self.here(marks)
            if mark == "parameter":
                yield from self.past(marks)
                tag = yield from self._tag()
                if tag is None:
                    return "unterminated tag of a parameter", False
                value, is_at_next = yield from self._value()
                if value is None:
                    return "unterminated parameter", is_at_next
                self._parameters.append((tag, value))
            elif mark == "json":
                yield from self.past(marks)
                if (yield from self._tag()) is None:
                    return "unterminated tag", False
                self._json = yield from self.value()
                if self._json is None:
                    return "unterminated arguments", False
                yield from self.closers(self._form.json_end)
            elif mark in ("call end", "section end"):
                return "", False
            elif not mark and self._is_empty and (yield from self.sign()) == "{":
                self._json = yield from self.value()
                if self._json is None:
                    return "unterminated arguments", False
            else:
                return "" if self._may_end_here() else "unterminated call", False

    @property
    def _is_empty(self) -> bool:
        return not self._parameters and self._json is None

    def _may_end_here(self) -> bool:
        """True if the text is over and only the end of the call is missing."""
        nothing_left = self._at == len(self._text) or self._form.marks.may_begin(self._text, self._at)
        return self.ended and nothing_left and not self._is_empty

    def _tag(self) -> Reading[dict[str, str] | None]:
        """Consume the rest of a tag; return its attributes."""
        start = self.mark
        if (yield from self.find(self._form.in_tag, _LONGEST_TAG)) != "tag end":
            return None
        text = self.since(start)
        yield from self.past(self._form.in_tag)
        return self._form.attributes(text)

    def _value(self) -> Reading[tuple[str | None, bool]]:
        """Consume a value and its end tag; without one return None and rewind to the last call that began inside."""
        marks, start, last_call = self._form.around_value, self.mark, None
        while (mark := (yield from self.find(marks))) == "call":
            last_call = self.mark
            yield from self.past(marks)
        if mark == "parameter end":
            value = self.since(start)
            yield from self.past(marks)
            return value, False
        if last_call is not None:
            self.give_back(last_call)
        return None, last_call is not None

    def _call_of(self, name: str, written: str) -> Piece:
        if self._json is not None:
            return call_of(name, self._json, written)
        if not name:
            return Lost(written, "no tool name")
        if any(self._form.key not in tag for tag, _ in self._parameters):
            return Lost(written, "parameter without a name")
        values = [self._form.value_of(name, tag, text, self.declared) for tag, text in self._parameters]
        keys = [tag[self._form.key] for tag, _ in self._parameters]
        arguments = dict(zip(keys, values, strict=True))
        twice = None if len(arguments) == len(keys) else Counter(keys).most_common(1)[0][0]
        return Found(name, arguments, written=written, twice=twice)
