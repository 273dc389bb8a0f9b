"""Calls written as elements between special tokens: one for the call, inside it one for each parameter.

Tokens inside a value are part of it. But if a parameter begins inside another one, the first one is unterminated.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from segue.wire.text.declared_tools import DeclaredTools
from segue.wire.text.json_calls import parse_call
from segue.wire.text.lenient_json import InvalidJsonError, parse_lenient
from segue.wire.text.regions import BrokenCall, FoundCall, Opener, Reading, Segment
from segue.wire.text.tokens import TokenRegion, TokenSet, token_opener

_MAX_TAG_LENGTH = 1024
_ATTRIBUTE = re.compile(r"([\w-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")


class ElementFormat:
    """One format of elements.

    The kinds of tokens are `section`, `call`, `parameter`, `json`, the end of each (`call end`), and `tag end`; `call`,
    `parameter` and `json` are the beginnings of tags. `name_attribute` and `key_attribute` hold the names of the tool
    and of the parameter. `is_text` decides by the attributes whether a value is text (True), JSON (False) or of the
    declared type (None); `unescape` decodes an attribute.
    """

    def __init__(
        self,
        tokens: TokenSet,
        *,
        name_attribute: str,
        key_attribute: str,
        is_text: Callable[[Mapping[str, str]], bool | None],
        unescape: Callable[[str], str] = str,
    ) -> None:
        self.tag_tokens, self.tokens = tokens, tokens.without("tag end")
        self.opening, self.call = tokens.select("section", "call"), tokens.select("call")
        self.call_end, self.section_end = tokens.select("call end"), tokens.select("section end")
        self.json_end = tokens.select("json end")
        self.around_value = tokens.select("parameter", "parameter end", "call")
        self.around_call = tokens.select("call", "call end")
        self.name_attribute, self.key_attribute = name_attribute, key_attribute
        self._is_text, self._unescape = is_text, unescape

    @property
    def opener(self) -> Opener:
        return token_opener(self.opening, partial(_Call, self))

    def parse_attributes(self, tag: str) -> dict[str, str]:
        return {
            attribute[1]: self._unescape(attribute[2] or attribute[3] or "") for attribute in _ATTRIBUTE.finditer(tag)
        }

    def parse_value(self, name: str, tag: Mapping[str, str], text: str, declared: DeclaredTools) -> Any:
        is_text = self._is_text(tag)
        if is_text is None:
            return declared.parse_argument(name, tag[self.key_attribute], text)
        if is_text:
            return text
        try:
            return parse_lenient(text.strip())
        except InvalidJsonError:
            return text


class _Call(TokenRegion):
    """One call, with the section's tags if they come directly before or after it."""

    def __init__(self, element_format: ElementFormat, declared: DeclaredTools) -> None:
        super().__init__(declared)
        self.tokens, self.opening, self.closing = element_format.tokens, element_format.opening, element_format.call_end
        self._format = element_format
        self._parameters: list[tuple[dict[str, str], str]] = []
        self._json: str | None = None

    def read(self) -> Reading[list[Segment]]:
        element_format = self._format
        if (yield from self.take_token(element_format.opening)) == "section":
            opened = self.checkpoint
            yield from self.skip_space()
            if not (yield from self.take_token(element_format.call)):
                if not (yield from self.take_token(element_format.section_end)):
                    self.rewind(opened)
                return [self.build_broken_call("no call after the opening tag")]
        opened = self.checkpoint
        tag = yield from self._take_tag()
        if tag is None:
            self.rewind(opened)
            return [self.build_broken_call("unterminated tag of the call")]
        why, is_at_next = yield from self._take_parts()
        if why:
            if not is_at_next:
                yield from self.take_until_token(element_format.around_call)
            yield from self.take_token(element_format.call_end)
            return [self.build_broken_call(why)]
        is_closed = yield from self.peek_token(element_format.tokens)
        yield from self.take_closers(element_format.call_end, element_format.section_end)
        if self.ended and element_format.tokens.can_begin(self._text, self._offset):
            self.take(len(self._text) - self._offset)
        call = self._build_call(tag.get(element_format.name_attribute, "").strip(), self.flush_taken())
        if (
            not is_closed
            and isinstance(call, FoundCall)
            and self.declared.has_required(call.name, call.arguments) is False
        ):
            return [BrokenCall(call.raw_text, "unterminated call")]
        return [call]

    def _take_parts(self) -> Reading[tuple[str, bool]]:
        """Consume the content of the call; return the reason if it is broken, and whether the next call begins here."""
        tokens = self._format.tokens
        while True:
            yield from self.skip_space()
            kind = yield from self.peek_token(tokens)
            if kind == "parameter":
                yield from self.take_token(tokens)
                tag = yield from self._take_tag()
                if tag is None:
                    return "unterminated tag of a parameter", False
                value, is_at_next = yield from self._take_parameter_value()
                if value is None:
                    return "unterminated parameter", is_at_next
                self._parameters.append((tag, value))
            elif kind == "json":
                yield from self.take_token(tokens)
                if (yield from self._take_tag()) is None:
                    return "unterminated tag", False
                self._json = yield from self.take_value()
                if self._json is None:
                    return "unterminated arguments", False
                yield from self.take_closers(self._format.json_end)
            elif kind in ("call end", "section end"):
                return "", False
            elif not kind and self._is_empty and (yield from self.peek_char()) == "{":
                self._json = yield from self.take_value()
                if self._json is None:
                    return "unterminated arguments", False
            else:
                return "" if self._can_end_here() else "unterminated call", False

    @property
    def _is_empty(self) -> bool:
        return not self._parameters and self._json is None

    def _can_end_here(self) -> bool:
        """Return whether the text has ended and only the end of the call is missing."""
        nothing_left = self._offset == len(self._text) or self._format.tokens.can_begin(self._text, self._offset)
        return self.ended and nothing_left and not self._is_empty

    def _take_tag(self) -> Reading[dict[str, str] | None]:
        """Consume the rest of a tag; return its attributes."""
        start = self.checkpoint
        if (yield from self.take_until_token(self._format.tag_tokens, _MAX_TAG_LENGTH)) != "tag end":
            return None
        text = self.text_since(start)
        yield from self.take_token(self._format.tag_tokens)
        return self._format.parse_attributes(text)

    def _take_parameter_value(self) -> Reading[tuple[str | None, bool]]:
        """Consume a value and its end tag; without one return None and rewind to the last call that began inside."""
        tokens, start, last_call = self._format.around_value, self.checkpoint, None
        while (kind := (yield from self.take_until_token(tokens))) == "call":
            last_call = self.checkpoint
            yield from self.take_token(tokens)
        if kind == "parameter end":
            value = self.text_since(start)
            yield from self.take_token(tokens)
            return value, False
        if last_call is not None:
            self.rewind(last_call)
        return None, last_call is not None

    def _build_call(self, name: str, raw_text: str) -> Segment:
        if self._json is not None:
            return parse_call(name, self._json, raw_text)
        if not name:
            return BrokenCall(raw_text, "no tool name")
        if any(self._format.key_attribute not in tag for tag, _ in self._parameters):
            return BrokenCall(raw_text, "parameter without a name")
        values = [self._format.parse_value(name, tag, text, self.declared) for tag, text in self._parameters]
        keys = [tag[self._format.key_attribute] for tag, _ in self._parameters]
        arguments = dict(zip(keys, values, strict=True))
        repeated = None if len(arguments) == len(keys) else Counter(keys).most_common(1)[0][0]
        return FoundCall(name, arguments, raw_text=raw_text, repeated_key=repeated)
