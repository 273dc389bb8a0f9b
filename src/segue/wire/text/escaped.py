"""Calls whose markup was escaped: as HTML entities, as in a JSON string, or with Markdown's backslashes.

GLM does so at times. Escaped markup is how markup is shown to a user, so it is a call only if the tool is declared. The
text is unescaped and parsed as the format's ordinary markup.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Sequence
from functools import partial

from msgspec.structs import replace

from segue.wire.text.declared_tools import DeclaredTools
from segue.wire.text.regions import FoundCall, Opener, Reading, Region, RegionEnd, Segment, literals_opener

# Text without an escape, an escape, or its first character alone; and an escape that the text may end in.
_PIECES = {
    "&": re.compile(r"[^&]++|&(?:[a-z]{2,4}|#\d{1,4}|#x[0-9a-fA-F]{1,4});|&"),
    "\\": re.compile(r"[^\\]++|\\u[0-9a-fA-F]{4}|\\[^u]|\\", re.DOTALL),
}
_MARKER_END = re.compile("[>=]")
_PARTIAL = {"&": re.compile(r"&[#\w]{0,6}\Z"), "\\": re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")}


def _unescape(piece: str) -> str:
    if piece[0] == "&":
        return html.unescape(piece)
    if piece[0] != "\\":
        return piece
    try:
        return json.loads(f'"{piece}"')
    except ValueError:
        return piece[1:]


class _EscapedCalls(Region):
    def __init__(self, sign: str, make_region: Callable[[DeclaredTools], Region], declared: DeclaredTools) -> None:
        self._sign = sign
        self._inner = make_region(declared)
        self._pieces: list[tuple[str, str]] = []
        super().__init__(declared)

    def read(self) -> Reading[list[Segment]]:
        if not self.declared.is_given:
            return self.reject()
        closed: RegionEnd | None = None
        waiting, is_open = "", False
        while closed is None:
            while not self.ended and (
                self._offset == len(self._text) or _PARTIAL[self._sign].match(self._text, self._offset)
            ):
                yield
            matched = _PIECES[self._sign].match(self._text, self._offset)
            if matched is None:
                closed = self._inner.close()
                break
            piece = matched[0]
            self.take(len(piece))
            self._pieces.append((piece, _unescape(piece)))
            waiting += self._pieces[-1][1]
            # A region gets its whole marker at once.
            is_open = is_open or _MARKER_END.search(waiting) is not None
            if is_open:
                closed, waiting = self._inner.feed(waiting), ""
        self._unread(len(closed.rest))
        calls = [segment for segment in closed.segments if isinstance(segment, FoundCall)]
        if calls and len(calls) == len(closed.segments) and all(self.declared.can_call(call.name) for call in calls):
            return [replace(calls[0], raw_text=self.flush_taken()), *(replace(call, raw_text="") for call in calls[1:])]
        return [text] if (text := self.flush_taken()) else self.reject()

    def _unread(self, length: int) -> None:
        """Unread the end of the text that has this length after it was unescaped."""
        text = self.flush_taken()
        raw_length = 0
        for piece, unescaped in reversed(self._pieces):
            if not length:
                break
            raw_length += len(piece) if length >= len(unescaped) else length
            length = max(0, length - len(unescaped))
        kept = len(text) - raw_length
        self._text = text + self._text[self._offset :]
        self._offset = 0
        self.take(kept)


def escaped_openers(markers: Sequence[str], make_region: Callable[[DeclaredTools], Region]) -> tuple[Opener, ...]:
    """Return openers for the escaped forms of these markers, which begin a region of the format."""
    entities = [marker.replace("<", "&lt;").replace(">", "&gt;") for marker in markers]
    backslashes = [
        form
        for marker in markers
        for form in {
            marker.replace("<", "\\u003c").replace(">", "\\u003e"),
            marker.replace("<", "\\u003C").replace(">", "\\u003E"),
            marker.replace("<", "\\<"),
            marker.replace("<", "\\<").replace(">", "\\>"),
            marker.replace("<", "\\<").replace(">", "\\>").replace("_", "\\_"),
        }
    ]
    return (
        literals_opener(entities, partial(_EscapedCalls, "&", make_region)),
        literals_opener(sorted(backslashes), partial(_EscapedCalls, "\\", make_region)),
    )
