"""Reads tool calls in JSON, or in a list of Python calls, that stand in the text without a tag.

`CallReader` decides as early as it can whether JSON may be a call, so that other text is passed on.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from segue.wire.text.json_calls import convert_python_calls, parse_json_calls
from segue.wire.text.lenient_json import JsonScanner
from segue.wire.text.regions import BrokenCall, FoundCall, Reading, Region, Segment

IDENTIFIER = re.compile(r"(?:[A-Za-z_][\w.-]*+)?")
_KEYS = tuple(f"{quote}{key}{quote}" for quote in "\"'" for key in ("name", "type", "function", "id"))
_CALL_NAME = re.compile(r"""[\[{\s]*+["']name["']\s*+:\s*+["']([^"']*+)["']|\[\s*+([A-Za-z_][\w.-]*+)\s*+\(""")
# Without declared tools: certainly a list of calls, even if its values can't be parsed.
_CALL_LIST = re.compile(r"\[\s*+[A-Za-z_][\w.-]*+\(\s*+[A-Za-z_]\w*+\s*+=(?!=).*\)\s*+\]", re.DOTALL)
_UNKNOWN_TOOL = "unknown tool"


class CallReader(Region):
    """`eos_tokens` end a message; `next_call` matches where another call may begin inside a broken one."""

    eos_tokens: tuple[str, ...] = ()
    next_call: re.Pattern[str]

    def read_calls(self, *, tagged: bool) -> Reading[list[Segment]]:
        """Read consecutive calls up to the end of the message. Without a tag they may turn out to be text."""
        segments: list[Segment] = []
        while True:
            begun = len(self.text_since(0))
            start = self.checkpoint
            scan = yield from self.begin_call(tagged=tagged)
            is_complete = scan is not None and (yield from self.take_json(scan))
            text = self.text_since(start)
            calls = self.parse_calls(text, tagged=tagged) if is_complete else "unterminated call"
            if calls == _UNKNOWN_TOOL and not segments and (yield from self._is_last()):
                return [BrokenCall(self.flush_taken(), _UNKNOWN_TOOL, report_if_alone=True)]
            if isinstance(calls, str):
                search_start = begun + (0 if self.ended or scan is None else scan.string_at)
                return [*segments, self._reject(calls, search_start + 1, text, tagged=tagged)]
            has_more = yield from self.take_separator()
            segments += [replace(calls[0], raw_text=self.flush_taken()), *calls[1:]]
            if not has_more:
                return segments

    def begin_call(self, *, tagged: bool) -> Reading[JsonScanner | None]:
        """Consume just enough to decide whether this may be a call, so that other text is passed on early."""
        opening = yield from self.take_marker("{", "[")
        scan = JsonScanner("<", calls=opening == "[")
        space = self.checkpoint
        yield from self.skip_space()
        if opening == "{":
            likely = tagged or bool((yield from self.peek(*_KEYS)))
        elif (yield from self.peek("{")):
            likely = True
        else:
            name = yield from self.take_match(IDENTIFIER)
            likely = bool(name) and bool((yield from self.peek("(")))
        if not likely:
            return None
        scan.feed(opening + self.text_since(space))
        return scan

    def parse_calls(self, text: str, *, tagged: bool) -> list[FoundCall] | str:
        text = convert_python_calls(text) if text[1:].lstrip()[:1] not in ('"', "'", "{") else text
        calls = parse_json_calls(text)
        if isinstance(calls, str) or tagged:
            return calls
        if not all(self.declared.can_call(call.name) for call in calls):
            return _UNKNOWN_TOOL
        return calls if self.declared.is_given or '"parameters"' in text or '"arguments"' in text else "no arguments"

    def _reject(self, why: str, search_start: int, text: str, *, tagged: bool) -> Segment:
        """Return a broken call, or plain text.

        Without a tag it is a broken call only if it names a declared tool, or is certainly a list of calls.
        """
        broken = self.build_broken_call(why, self.next_call, search_start)
        if self.declared.is_given:
            name_match = _CALL_NAME.match(text)
            is_call = name_match is not None and self.declared.can_call(name_match[1] or name_match[2])
        else:
            is_call = _CALL_LIST.fullmatch(broken.raw_text) is not None
        return broken if tagged or is_call else broken.raw_text

    def take_separator(self) -> Reading[bool]:
        """Consume the EOS tokens, or a separator before another object; return whether an object follows."""
        if (yield from self.take_eos()):
            return False
        end = self.checkpoint
        yield from self.skip_space()
        yield from self.take_marker(";", ",")
        yield from self.skip_space()
        has_more = bool((yield from self.peek("{")))
        if not has_more:
            self.rewind(end)
        return has_more

    def _is_last(self) -> Reading[bool]:
        end = self.checkpoint
        yield from self.take_eos()
        yield from self.skip_space()
        is_at_end = yield from self.at_end()
        self.rewind(end)
        return is_at_end

    def take_eos(self) -> Reading[bool]:
        """Consume the EOS tokens; return whether there are any."""
        ended = False
        while self.eos_tokens:
            end = self.checkpoint
            yield from self.skip_space()
            if not (yield from self.take_marker(*self.eos_tokens)):
                self.rewind(end)
                break
            ended = True
        return ended
