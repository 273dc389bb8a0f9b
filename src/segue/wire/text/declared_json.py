"""Calls of declared tools in JSON without the format's tags: on lines of their own, or alone in a code fence.

Small models forget the tags. Only a declared name makes such JSON a call, and only with the tool's required parameters:
JSON shown to the user, an undeclared tool and a repeated declaration stay text.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from segue.wire.json_values import object_or_none
from segue.wire.text.call_reader import CallReader
from segue.wire.text.lenient_json import JsonScanner
from segue.wire.text.regions import FoundCall, Match, Opener, Reading, Segment

_KEYS = tuple(f"{quote}{key}{quote}" for quote in "\"'" for key in ("name", "type", "function", "id"))
_STRING_VALUES = {quote: re.compile(rf"[^{quote}\\\n]*+") for quote in "\"'"}
_MAX_VALUE = 256
_MAX_KEYS = 6
# A fence and its language, up to the first character of the content.
_LANGUAGES = "json|jsonc|json5|tool_calls?|tool|tools|function_calls?|function|plaintext|text"
_FENCE = re.compile(rf"(?:`{{3,}}|~{{3,}})[ \t]*(?:(?:{_LANGUAGES})(?=[\s{{\[]))?\s*+(?=[{{\[])", re.IGNORECASE)
_FENCE_BEGUN = re.compile(r"(?:`+|~+)[ \t]*[\w-]{0,16}\s{0,64}\Z")
_RUNS = {sign: re.compile(rf"{sign}*+") for sign in "`~"}


class BareCalls(CallReader):
    """Calls on lines of their own."""

    next_call = re.compile(r"(?<=\n)[{\[]|<tool_call>")

    def read(self) -> Reading[list[Segment]]:
        if not self.declared.is_given:
            return self.reject()
        return (yield from self.read_calls(tagged=False))

    def begin_call(self, *, tagged: bool) -> Reading[JsonScanner | None]:
        """Consume the beginning of an object up to the name of its tool; None if that is not a declared one."""
        opening = yield from self.take_marker("{", "[")
        start = self.checkpoint
        yield from self.skip_space()
        if opening == "[":
            if not (yield from self.take_marker("{")):
                return None
            yield from self.skip_space()
        if not (yield from self._take_declared_name()):
            return None
        scan = JsonScanner("<")
        scan.feed(opening + self.text_since(start))
        return scan

    def _take_declared_name(self) -> Reading[bool]:
        for _ in range(_MAX_KEYS):
            key = (yield from self.take_marker(*_KEYS)).strip("\"'")
            yield from self.skip_space()
            if not key or not (yield from self.take_marker(":")):
                return False
            yield from self.skip_space()
            if key == "function" and (yield from self.take_marker("{")):
                yield from self.skip_space()
                continue
            quote = yield from self.take_marker('"', "'")
            if not quote:
                return False
            value = yield from self.take_match(_STRING_VALUES[quote], _MAX_VALUE)
            if not (yield from self.take_marker(quote)):
                return False
            if key in ("name", "function"):
                return self.declared.can_call(value)
            yield from self.skip_space()
            if not (yield from self.take_marker(",")):
                return False
            yield from self.skip_space()
        return False

    def parse_calls(self, text: str, *, tagged: bool) -> list[FoundCall] | str:
        calls = super().parse_calls(text, tagged=tagged)
        if isinstance(calls, str):
            return calls
        return calls if all(map(self._is_call, calls)) else "required arguments are missing"

    def _is_call(self, call: FoundCall) -> bool:
        """Return whether the arguments are complete, and not the schema of a declaration."""
        arguments = object_or_none(call.arguments) or {}
        is_schema = "properties" in arguments and not self.declared.has_parameter(call.name, "properties")
        return not is_schema and self.declared.has_required(call.name, arguments) is not False


class _FencedCalls(BareCalls):
    """A code fence that holds only calls. Any other fence is quoted text."""

    def read(self) -> Reading[list[Segment]]:
        if not self.declared.is_given:
            return self.reject()
        fence = yield from self.take_match(_FENCE)
        segments = yield from self.read_calls(tagged=False)
        if not all(isinstance(segment, FoundCall) for segment in segments):
            return self.reject(segments)
        yield from self.skip_space()
        sign = fence[0]
        run = yield from self.take_match(_RUNS[sign])
        length = len(fence) - len(fence.lstrip(sign))
        following = yield from self.peek_char()
        if len(run) < length and not (self.ended and not following):
            return self.reject(segments)
        if following and not following.isspace():
            return self.reject(segments)
        *calls, last = [segment for segment in segments if isinstance(segment, FoundCall)]
        return [*calls, replace(last, raw_text=last.raw_text + self.flush_taken())]


def _match_bare(_text: str, _position: int, at_line_start: bool, _ended: bool) -> Match:
    return BareCalls if at_line_start else "no"


def _match_fence(text: str, position: int, at_line_start: bool, ended: bool) -> Match:
    if not at_line_start:
        return "no"
    if _FENCE.match(text, position):
        return _FencedCalls
    return "perhaps" if not ended and _FENCE_BEGUN.match(text, position) else "no"


DECLARED_JSON_OPENERS = (Opener("{[", _match_bare), Opener("`~", _match_fence, "`~"))
