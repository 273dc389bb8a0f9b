"""Deltas that are alike but for their text, their number, and the padding that OpenAI puts into each."""

from __future__ import annotations

import re

import msgspec

from segue.wire.stream import Alike

__all__ = ["ENOUGH", "AlikeButNumbered"]

ENOUGH = 8
"""So many deltas of one part are read in full before the others are taken to be like them."""
_VARIES = re.compile(rb'("sequence_number":\s*)\d+|("obfuscation":\s*)"[^"\\]*"')
_STRING = rb'("[^"\\]*(?:\\.[^"\\]*)*")'

_decode_text = msgspec.json.Decoder(str).decode


class AlikeButNumbered(Alike):
    __slots__ = ("_pattern",)

    def __init__(self, like: Alike) -> None:
        super().__init__(like.head, like.tail, like.tell)
        self._pattern = re.compile(_loose(like.head) + _STRING + _loose(like.tail), re.DOTALL)

    def take(self, payload: bytes) -> bool:
        found = self._pattern.fullmatch(payload)
        if found is None:
            return False
        try:
            text = _decode_text(found[1])
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return False
        self.tell(text)
        return True


def _loose(written: bytes) -> bytes:
    """A pattern of these bytes in which what differs from delta to delta may differ."""
    made: list[bytes] = []
    position = 0
    for found in _VARIES.finditer(written):
        number, padding = found.groups()
        made += [re.escape(written[position : found.start()]), re.escape(number or padding)]
        made.append(rb"\d+" if number else rb'"[^"\\]*"')
        position = found.end()
    return b"".join([*made, re.escape(written[position:])])
