"""Special tokens: sets of them, regions between them, and end-of-sequence tokens that a server left in the text.

Tokens have a kind, and each kind may have several variants. A token inside a string, or inside a value with its own
end token, is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

from segue.wire.text.declared_tools import DeclaredTools
from segue.wire.text.lenient_json import STRING_REST
from segue.wire.text.regions import Match, Opener, Reading, Region, Segment

# A quote opens a string only where a value or a key may begin; an apostrophe in a word does not.
_BEFORE_STRING = frozenset("{[,:(=")
_AFTER_STRING = frozenset({*"}],:)", ""})
# Limit of the text that `EosFilter` holds back.
_MAX_HELD = 512


class TokenSet:
    """Special tokens by kind. The patterns are compiled on first use, since most formats are never used."""

    def __init__(self, kinds: Mapping[str, str | Iterable[str]]) -> None:
        self._tokens_by_kind = {
            kind: (variants,) if isinstance(variants, str) else tuple(variants) for kind, variants in kinds.items()
        }
        self._kinds = {token: kind for kind, tokens in self._tokens_by_kind.items() for token in tokens}
        self.max_length = max(map(len, self._kinds), default=1)
        self.first_chars, self.second_chars = (
            "".join({token[index] for token in self._kinds if token[index:]}) for index in (0, 1)
        )

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self._alternatives)

    @cached_property
    def structure_pattern(self) -> re.Pattern[str]:
        return re.compile(f"({self._alternatives})|[{{}}\\[\\]\"']")

    @cached_property
    def call_structure_pattern(self) -> re.Pattern[str]:
        return re.compile(f"({self._alternatives})|[(){{}}\\[\\]\"']")

    @property
    def _alternatives(self) -> str:
        return "|".join(map(re.escape, sorted(self._kinds, key=len, reverse=True))) or "(?!)"

    @cached_property
    def _prefixes(self) -> frozenset[str]:
        return frozenset(token[:length] for token in self._kinds for length in range(1, len(token)))

    def kind(self, token: str) -> str:
        return self._kinds[token]

    def select(self, *kinds: str) -> TokenSet:
        return TokenSet({kind: self._tokens_by_kind.get(kind, ()) for kind in kinds})

    def without(self, kind: str) -> TokenSet:
        return TokenSet({name: tokens for name, tokens in self._tokens_by_kind.items() if name != kind})

    def with_tokens(self, tokens: Mapping[str, str]) -> TokenSet:
        return TokenSet({**self._tokens_by_kind, **tokens})

    def can_begin(self, text: str, position: int = 0) -> bool:
        """Return whether the text from here on is an incomplete token."""
        return len(text) - position < self.max_length and text[position:] in self._prefixes

    def find_partial(self, text: str, position: int) -> int:
        """Return the position of an incomplete token at the end of the text, else the end of the text."""
        for start in range(max(position, len(text) - self.max_length + 1), len(text)):
            if text[start:] in self._prefixes:
                return start
        return len(text)


class TokenRegion(Region):
    """A region read token by token: `tokens` are all that it uses, `opening` begin a call, `closing` end one."""

    tokens: TokenSet
    opening: TokenSet
    closing: TokenSet

    def peek_token(self, tokens: TokenSet) -> Reading[str]:
        """Return the kind of the next token, or an empty string."""
        while not self.ended and (self._offset == len(self._text) or tokens.can_begin(self._text, self._offset)):
            yield
        matched = tokens.pattern.match(self._text, self._offset)
        return "" if matched is None else tokens.kind(matched[0])

    def take_token(self, tokens: TokenSet) -> Reading[str]:
        """Consume the next token if it is one of these, and return its kind."""
        kind = yield from self.peek_token(tokens)
        matched = tokens.pattern.match(self._text, self._offset)
        self.take(0 if matched is None else matched.end() - self._offset)
        return kind

    def take_until_token(self, tokens: TokenSet, within: int | None = None) -> Reading[str]:
        """Consume the text before the next token and return its kind; empty if none comes `within` the limit."""
        remaining = within
        while True:
            matched = self._search(tokens.pattern, tokens, self._offset)
            stop = self._complete_end(tokens, self._offset) if matched is None else matched.start()
            length = stop - self._offset
            if remaining is not None and length > remaining:
                self.take(remaining)
                return ""
            remaining = None if remaining is None else remaining - length
            self.take(length)
            if matched is not None:
                return tokens.kind(matched[0])
            if self.ended:
                return ""
            yield

    def take_balanced(self, strings: Mapping[str, TokenSet] | None = None, *, is_call: bool = False) -> Reading[bool]:
        """Consume a list or an object and return whether it is complete; outside of strings it may hold no token.

        `strings` maps kinds of tokens that begin a string to the tokens that end it. With `is_call` it begins with a
        parenthesis.
        """
        depth, position = 0, self._offset
        pattern = self.tokens.call_structure_pattern if is_call else self.tokens.structure_pattern
        while True:
            matched = self._search(pattern, self.tokens, position)
            if matched is None:
                self.take(self._complete_end(self.tokens, position) - self._offset)
                if self.ended:
                    return False
                yield
                position = self._offset
                continue
            char, start, position = matched[0], matched.start(), matched.end()
            ends = (strings or {}).get(self.tokens.kind(char)) if matched[1] else None
            if matched[1] and ends is None:
                self.take(start - self._offset)
                return False
            if ends is not None or char in STRING_REST:
                if ends is None and not self._can_open_string(start):
                    continue
                self.take(position - self._offset)
                if not (yield from self._take_valid_string(char if ends is None else ends)):
                    return False
                position = self._offset
            else:
                depth += 1 if char in "{[(" else -1
                if depth <= 0:
                    self.take(position - self._offset)
                    return True

    def _take_valid_string(self, ends: str | TokenSet) -> Reading[bool]:
        """Consume a string and return whether it is complete and followed by valid JSON.

        If not, rewind to a call that begins inside of it.
        """
        start = self.checkpoint
        if isinstance(ends, str):
            is_complete = yield from self.take_string(ends)
        else:
            is_complete = bool((yield from self.take_until_token(ends)) and (yield from self.take_token(ends)))
        if is_complete:
            yield from self.skip_space()
            is_complete = (yield from self.peek_char()) in _AFTER_STRING or bool(
                (yield from self.peek_token(self.tokens))
            )
        if not is_complete:
            begun = self.opening.pattern.search(self.text_since(start))
            if begun is not None:
                self.rewind(start)
                self.take(begun.start())
        return is_complete

    def take_string(self, quote: str) -> Reading[bool]:
        """Consume a string after its first quote; return whether it is terminated."""
        while True:
            content = STRING_REST[quote].match(self._text, self._offset)
            self.take(0 if content is None else content.end() - self._offset)
            if self._text.startswith(quote, self._offset):
                self.take(1)
                return True
            if self.ended:
                self.take(len(self._text) - self._offset)
                return False
            yield

    def take_value(self) -> Reading[str | None]:
        """Consume a lenient JSON value; None if it is not terminated.

        A value other than a list, object or string extends to the next token.
        """
        yield from self.skip_space()
        start = self.checkpoint
        if (yield from self.peek_token(self.tokens)):
            return ""
        char = yield from self.peek_char()
        if char in ("{", "["):
            is_complete = yield from self.take_balanced()
        elif char in STRING_REST:
            self.take(1)
            is_complete = yield from self._take_valid_string(char)
        else:
            is_complete = bool((yield from self.take_until_token(self.tokens)))
        return self.text_since(start) if is_complete else None

    def take_closers(self, *stages: TokenSet) -> Reading[None]:
        """Consume the tokens that close a call, as far as they are present."""
        for stage in stages:
            start = self.checkpoint
            yield from self.skip_space()
            if not (yield from self.take_token(stage)):
                self.rewind(start)

    def take_broken_call(self, reason: str) -> Reading[list[Segment]]:
        """Return the text up to the next token as a broken call, with that token if it closes the call."""
        yield from self.take_until_token(self.tokens)
        yield from self.take_token(self.closing)
        return [self.build_broken_call(reason)]

    def _search(self, pattern: re.Pattern[str], tokens: TokenSet, position: int) -> re.Match[str] | None:
        """Return the next match, unless the text may end inside a token there."""
        matched = pattern.search(self._text, position)
        if matched is None or self.ended or matched.start() <= len(self._text) - tokens.max_length:
            return matched
        return matched if matched.start() < tokens.find_partial(self._text, position) else None

    def _complete_end(self, tokens: TokenSet, position: int) -> int:
        return len(self._text) if self.ended else tokens.find_partial(self._text, position)

    def _can_open_string(self, position: int) -> bool:
        """Return whether a string may begin at this quote, judged by the character before it."""
        while position and self._text[position - 1].isspace():
            position -= 1
        if position:
            return self._text[position - 1] in _BEFORE_STRING
        preceding = next((text for text in reversed(self._taken) if not text.isspace() and text), "")
        return preceding.rstrip()[-1:] in _BEFORE_STRING


def token_opener(tokens: TokenSet, region: Callable[[DeclaredTools], Region]) -> Opener:
    """Return an opener for a region that begins with any of these tokens."""

    def match(text: str, position: int, _at_line_start: bool, ended: bool) -> Match:
        if not ended and tokens.can_begin(text, position):
            return "perhaps"
        return "no" if tokens.pattern.match(text, position) is None else region

    return Opener(tokens.first_chars, match, tokens.second_chars)


def partial_token_length(text: str, token: str) -> int:
    """Return the length of the longest end of the text that may begin the token."""
    start = text.find(token[0], max(0, len(text) - len(token) + 1))
    while start >= 0 and not token.startswith(text[start:]):
        start = text.find(token[0], start + 1)
    return len(text) - start if start >= 0 else 0


class EosFilter:
    """Removes EOS tokens from text: at the very end, or right after the calls.

    Text that may be the end of the reply is held back until more text arrives.
    """

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = tokens
        self._leading = re.compile(rf"(?:\s*+(?:{'|'.join(map(re.escape, tokens))}))++") if tokens else None
        self._held = ""
        self._after_call = False
        self._last_chars = ""
        self._has_s_tag = False
        self.dropped = False

    def feed(self, text: str) -> str:
        if self._leading is None:
            return text
        self._has_s_tag = self._has_s_tag or "<s>" in self._last_chars + text
        self._last_chars = (self._last_chars + text)[-2:]
        text, self._held = self._held + text, ""
        stop = self._find_eos(text, ended=False)
        if self._after_call:
            if len(text) <= _MAX_HELD and not text[:stop].strip():
                self._held = text
                return ""
            text = self._strip_leading_tokens(text)
            stop = self._find_eos(text, ended=False)
        self._held = text[stop:]
        return text[:stop]

    def flush_before_call(self) -> str:
        """Return the text held back; a call follows."""
        text, self._held = self._strip_leading_tokens(self._held), ""
        self._after_call = True
        return text

    def flush(self) -> str:
        """Return the text held back, without EOS tokens; the text has ended."""
        text, self._held = self._strip_leading_tokens(self._held), ""
        stop = self._find_eos(text, ended=True)
        self.dropped = self.dropped or stop < len(text)
        return text[:stop]

    def _strip_leading_tokens(self, text: str) -> str:
        if not self._after_call or self._leading is None:
            return text
        self._after_call = False
        leading = self._leading.match(text)
        self.dropped = self.dropped or leading is not None
        return text if leading is None else text[leading.end() :]

    def _find_eos(self, text: str, *, ended: bool) -> int:
        """Return the position of the EOS tokens at the end of the text; the last one may be incomplete."""
        stop = len(text) - (0 if ended else max(partial_token_length(text, token) for token in self._tokens))
        while len(text) - stop < _MAX_HELD:
            bare = text[max(0, stop - _MAX_HELD) : stop].rstrip()
            token = next((candidate for candidate in self._tokens if bare.endswith(candidate)), None)
            # `<s>…</s>` is also HTML for struck-out text.
            if token is None or (token == "</s>" and self._has_s_tag):
                break
            stop = len(text[:stop].rstrip()) - len(token)
        return stop
