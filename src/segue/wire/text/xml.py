"""`xml`: calls as tags. One parser for all variants; Qwen3-Coder's is rendered by default (TPL-03, 05, 06).

    <tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>         Qwen3-Coder, Qwen 3.5
    <tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>             GLM
    <function_calls><invoke name="NAME"><parameter name="KEY">VALUE</parameter></invoke>…     Claude, MiniMax

The tags of MiniMax M3 are different; `minimax` parses them.

A value ends at its closing tag if the call continues after it; complete tags inside the value are part of it. Values
are not encoded, except that a tag of this format inside a value is escaped with a backslash after its `<`. Whether a
value is text or JSON follows from the declared schema; if the parameter is not declared, or accepts both, from its
text. Quoted names are decoded: entities in attributes, JSON elsewhere.
"""

from __future__ import annotations

import html
import re
from typing import Any, Literal

from msgspec import Struct

from segue.wire.text.base import Found, Opener, Piece, any_of
from segue.wire.text.hermes import tagged_objects
from segue.wire.text.loose import NotReadableError, read_loose
from segue.wire.text.reader import Reader, Reading

__all__ = ["OPENER", "SAFE_TAG", "unescaped"]


class _Spelling(Struct, frozen=True):
    """The tags of one variant. `parameter` begins a parameter, `value` its value where that has its own tag."""

    head: str
    parameter: str
    value_end: str
    end: str
    names: Literal["plain", "attribute", "element"]
    value: str = ""

    @property
    def inside(self) -> tuple[str, str, str, str]:
        """The tags that are tracked inside a value."""
        return (self.value or self.parameter, self.value_end, self.head, self.end)


def _invoke(prefix: str) -> _Spelling:
    return _Spelling(
        head=f"<{prefix}invoke name=",
        parameter=f"<{prefix}parameter name=",
        value_end=f"</{prefix}parameter>",
        end=f"</{prefix}invoke>",
        names="attribute",
    )


_FUNCTION = _Spelling("<function=", "<parameter=", "</parameter>", "</function>", "plain")
_ARGUMENTS = _Spelling("<tool_call>", "<arg_key>", "</arg_value>", "</tool_call>", "element", "<arg_value>")
_HEADS = {spelling.head: spelling for spelling in (_FUNCTION, _invoke(""), _invoke("antml:"))}
_WRAPPERS = tuple(
    f"<{name}>"
    for name in ("tool_call", "function_calls", "antml:function_calls", "minimax:tool_call", "seed:tool_call")
)
_CLOSERS = tuple(f"</{wrapper[1:]}" for wrapper in _WRAPPERS)
_OPENERS = (*_WRAPPERS, *_HEADS)
_NEXT = re.compile("|".join(map(re.escape, _OPENERS)))
_INSIDE = {
    spelling.head: re.compile("|".join(map(re.escape, spelling.inside))) for spelling in (*_HEADS.values(), _ARGUMENTS)
}
_TOOL_NAME = re.compile(r"[\w.:/-]*+")
_IN_TAG = re.compile(r"[^<>]*+")
_ATTRIBUTE = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)').*""", re.DOTALL)
SAFE_TAG = re.compile(
    r"<(\\*+)(?=/?(?:\w+:)?(?:parameter|function|invoke|arg_key|arg_value|tool_call|function_calls)\b)"
)
_NO_END = "unterminated call"


def unescaped(value: str) -> str:
    return SAFE_TAG.sub(lambda found: f"<{found[1][1:]}", value) if "<\\" in value else value


class _Calls(Reader):
    """One call, or several between the same tags."""

    _padded = True
    _twice: str | None = None

    def read(self) -> Reading[list[Piece]]:
        wrapper = yield from self.one_of(*_WRAPPERS)
        # Seed writes no line breaks around values, so those at the ends belong to the value.
        self._padded = wrapper != "<seed:tool_call>"
        segments: list[Piece] = []
        while True:
            yield from self.space()
            head = yield from self.one_of(*_HEADS)
            begun = len(self.since(0))
            if head:
                call = yield from self._named(_HEADS[head])
            elif segments or "tool_call" not in wrapper:
                return [*segments, self.lost("no call after the tag")]
            elif (yield from self.ahead("{", "[")):
                return (yield from tagged_objects(self, f"</{wrapper[1:]}", _NEXT))
            else:
                name = yield from self.matching(_TOOL_NAME)
                call = (yield from self._call(_ARGUMENTS, name)) if name else "no call after the tag"
            if isinstance(call, str):
                return [*segments, self.lost(call, _NEXT if self.ended else None, begun)]
            more = yield from self._behind(wrapper)
            segments.append(Found(*call, written=self.written(), twice=self._twice))
            if not more:
                return segments

    def _behind(self, wrapper: str) -> Reading[bool]:
        """Consume the closing tag; return whether another call between the same tags follows instead."""
        end = self.mark
        yield from self.space()
        if not (yield from self.one_of(*_CLOSERS)):
            more = bool(wrapper) and bool((yield from self.ahead(*_HEADS)))
            self.give_back(end)
            return more
        return False

    def _named(self, spelling: _Spelling) -> Reading[tuple[str, Any] | str]:
        name = yield from self._name(spelling)
        return (yield from self._call(spelling, name)) if name else "no tool name"

    def _call(self, spelling: _Spelling, name: str) -> Reading[tuple[str, Any] | str]:
        """Name and arguments of a call, or the reason why it is not valid. GLM's end tag is that of the wrapper."""
        arguments: dict[str, Any] = {}
        self._twice = None
        while True:
            yield from self.space()
            found = yield from self.ahead(spelling.parameter, spelling.end, *_CLOSERS)
            if found != spelling.parameter:
                break
            self.take(len(found))
            key = yield from self._name(spelling)
            if key is None or not (yield from self._value_begins(spelling)):
                return _NO_END if self.ended else "parameter without a name"
            value = yield from self._value(spelling, name)
            if value is None:
                return _NO_END
            if spelling.names == "plain" and self._padded:
                value = value.removeprefix("\n").removesuffix("\n")
            self._twice = key if key in arguments else self._twice
            arguments[key] = self.declared.argument(name, key, unescaped(value))
        if not found:
            if not arguments or not (yield from self.at_end()):
                return _NO_END
            # An unterminated call may be cut off between two parameters. One missing tag is accepted.
            whole = self.declared.whole(name, arguments)
            if not (spelling is _ARGUMENTS if whole is None else whole):
                return _NO_END
        elif found == spelling.end and spelling is not _ARGUMENTS:
            self.take(len(found))
        return name, arguments

    def _name(self, spelling: _Spelling) -> Reading[str | None]:
        """Consume the rest of a tag that holds a name."""
        text = yield from self.matching(_IN_TAG)
        closing = "</arg_key>" if spelling.names == "element" else ">"
        if not (yield from self.one_of(closing)):
            return None
        if spelling.names != "attribute":
            return _unquoted(text.strip())
        found = _ATTRIBUTE.fullmatch(text)
        return html.unescape(text.strip() if found is None else found[1] or found[2] or "")

    def _value_begins(self, spelling: _Spelling) -> Reading[bool]:
        if not spelling.value:
            return True
        yield from self.space()
        return bool((yield from self.one_of(spelling.value)))

    def _value(self, spelling: _Spelling, name: str) -> Reading[str | None]:
        """Read a value and its closing tag, which may be missing before the next parameter or the end of the call."""
        opening, closing, head, _end = spelling.inside
        start, closed = self.mark, -1
        values = calls = 0
        while token := (yield from self.until(_INSIDE[spelling.head], max(map(len, spelling.inside)))):
            here = self.mark
            self.take(len(token))
            if token == opening:
                key = "" if spelling.value else (yield from self._name(spelling))
                if key and not values and not calls and self.declared.takes(name, key):
                    return self._cut_off(start, here, closed)
                values += key is not None
            elif token == head:
                calls += 1
            elif token == closing and values:
                values, closed = values - 1, here
            elif token == closing:
                yield from self.space()
                behind = yield from self.ahead(spelling.parameter, spelling.end, *_CLOSERS)
                if behind or (yield from self.at_end()):
                    return "".join(self._taken[start:here])
            elif calls:
                calls -= 1
            else:
                yield from self.space()
                wrapped = bool((yield from self.ahead(*_CLOSERS))) if spelling is not _ARGUMENTS else False
                if wrapped or (yield from self.at_end()):
                    return self._cut_off(start, here, closed)
        return None

    def _cut_off(self, start: int, here: int, closed: int) -> str:
        """End the value here, or at a closing tag right before that was attributed to a tag inside the value."""
        self.give_back(here)
        if closed >= 0 and not self.since(closed + 1).strip():
            here = closed
        return "".join(self._taken[start:here])


def _unquoted(name: str) -> str:
    if name[:1] not in ('"', "'"):
        return name
    try:
        value = read_loose(name)
    except NotReadableError:
        return name
    return value if isinstance(value, str) else name


OPENER: Opener = any_of(_OPENERS, _Calls)
