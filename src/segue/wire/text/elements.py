"""Calls written as elements: one for a call, and in it one for each parameter, whose value is what stands between.

What stands in a value is no marker. Only a parameter that begins inside another one tells that the first has no end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from segue.wire.text.base import Found, Lost, Opener, Piece
from segue.wire.text.loose import NotReadableError, read_loose
from segue.wire.text.tape import Marks, Reading, Tape, broken, call_of, closers, opener, value
from segue.wire.text.typed import Declared

__all__ = ["Elements"]

_LONGEST_TAG = 1024
_ATTRIBUTE = re.compile(r"([\w-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")


class _Call(Struct):
    """The places of a call's parts; they are cut out at the end, all at once."""

    tag: tuple[int, int]
    parameters: list[tuple[tuple[int, int], tuple[int, int]]]
    json: tuple[int, int] | None = None


class Elements:
    """A spelling of elements.

    The kinds of marks are `section`, `call`, `parameter`, `json`, what ends each (`call end`), and `tag end`; `call`,
    `parameter` and `json` are the beginnings of tags. `name` and `key` are the attributes that name the call and the
    parameter. `is_text` tells from the attributes whether a value is text (True), JSON (False), or what the tool
    declares (None); `attribute` undoes the escapes of an attribute.
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
        self._tag_marks, kinds = marks, [kind for kind in marks.kinds if kind != "tag end"]
        self._marks = marks.only(*kinds)
        self._opening = marks.only("section", "call")
        self._call, self._call_end = marks.only("call"), marks.only("call end")
        self._section_end, self._json_end = marks.only("section end"), marks.only("json end")
        self._around_value = marks.only("parameter", "parameter end", "call")
        self._around_call = marks.only("call", "call end")
        self._name, self._key = name, key
        self._is_text, self._attribute = is_text, attribute

    @property
    def opener(self) -> Opener:
        return opener(self._opening, self._read)

    def _read(self, tape: Tape, declared: Declared) -> Reading[list[Piece]]:
        """One call, with the section's tag if that stands before or behind it."""
        if (yield from tape.take(self._opening)) == "section":
            behind = tape.at
            yield from tape.space()
            if not (yield from tape.take(self._call)):
                behind = tape.at if (yield from tape.take(self._section_end)) else behind
                return [Lost(tape.whole()[:behind], "no call follows")]
        behind = tape.at
        tag = yield from self._tag(tape)
        if tag is None:
            return [Lost(tape.whole()[:behind], "the call's tag has no end")]
        call = _Call(tag, [])
        why = yield from self._parts(tape, call)
        if isinstance(why, list):
            return why
        if why:
            yield from tape.find(self._around_call)
            return (yield from broken(tape, self._call_end, why))
        end = yield from closers(tape, self._call_end, self._section_end)
        text = tape.whole()
        if tape.ended and self._marks.may_begin(tape.text, tape.place):
            end = len(text)
        return [self._call_of(call, text, text[:end], declared)]

    def _parts(self, tape: Tape, call: _Call) -> Reading[str | list[Piece]]:
        """Past all that the call holds: nothing, or why it is broken, or what is there instead of a call."""
        while True:
            yield from tape.space()
            mark = yield from tape.here(self._marks)
            if mark == "parameter":
                yield from tape.take(self._marks)
                tag = yield from self._tag(tape)
                if tag is None:
                    return "a parameter's tag has no end"
                start = tape.at
                lost = yield from self._to_value_end(tape)
                if lost is not None:
                    return lost
                call.parameters.append((tag, (start, tape.at)))
                yield from tape.take(self._around_value)
            elif mark == "json" or (not mark and not call.parameters and (yield from tape.sign()) == "{"):
                if mark and ((yield from tape.take(self._marks)), (yield from self._tag(tape)))[1] is None:
                    return "a tag has no end"
                call.json = yield from value(tape, self._marks)
                if call.json is None:
                    return "the arguments have no end"
                if mark:
                    yield from closers(tape, self._json_end)
            elif mark in ("call end", "section end"):
                return ""
            else:
                nothing_else = tape.place == len(tape.text) or self._marks.may_begin(tape.text, tape.place)
                is_whole = tape.ended and nothing_else and (call.parameters or call.json)
                return "" if is_whole else "the call has no end"

    def _tag(self, tape: Tape) -> Reading[tuple[int, int] | None]:
        """Past the end of a tag whose beginning is passed: where its attributes stand."""
        start = tape.at
        if (yield from tape.find(self._tag_marks, _LONGEST_TAG)) != "tag end":
            return None
        end = tape.at
        yield from tape.take(self._tag_marks)
        return start, end

    def _to_value_end(self, tape: Tape) -> Reading[list[Piece] | str | None]:
        """To the tag that ends a value. Without it, what is lost goes up to the last call that began meanwhile."""
        last_call = None
        while (mark := (yield from tape.find(self._around_value))) == "call":
            last_call = tape.at
            yield from tape.take(self._around_value)
        if mark == "parameter end":
            return None
        why = "a parameter has no end"
        return why if last_call is None else [Lost(tape.whole()[:last_call], why)]

    def _call_of(self, call: _Call, text: str, written: str, declared: Declared) -> Piece:
        name = self._attributes(text[slice(*call.tag)]).get(self._name, "").strip()
        if call.json is not None:
            return call_of(name, text[slice(*call.json)], written)
        if not name:
            return Lost(written, "no tool is named")
        arguments: dict[str, Any] = {}
        for tag, place in call.parameters:
            attributes = self._attributes(text[slice(*tag)])
            key = attributes.get(self._key)
            if key is None:
                return Lost(written, "a parameter has no name")
            arguments[key] = self._value_of(name, key, text[slice(*place)], self._is_text(attributes), declared)
        return Found(name, arguments, written=written)

    def _attributes(self, tag: str) -> dict[str, str]:
        return {found[1]: self._attribute(found[2] or found[3] or "") for found in _ATTRIBUTE.finditer(tag)}

    def _value_of(self, name: str, key: str, text: str, is_text: bool | None, declared: Declared) -> Any:
        if is_text is None:
            return declared.argument(name, key, text)
        if is_text:
            return text
        try:
            return read_loose(text.strip())
        except NotReadableError:
            return text
