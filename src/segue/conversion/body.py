"""The bytes of a body around the newest items of its conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct

from segue.canonical.json import MAX_DEPTH, are_identical, decode_members, estimate_depth, parse_json
from segue.errors import InputError
from segue.wire.base import Wire

_SPACE = b" \t\r\n"
_SEPARATORS = _SPACE + b","
_PROBE_SIZE = 64
_items_decoder = msgspec.json.Decoder(list[Raw])
_object_decoder = msgspec.json.Decoder(dict[str, Any])


class _Kind(Struct, gc=False):
    role: str | None = None
    type: str = ""


_kind_decoder = msgspec.json.Decoder(_Kind)


class BodyFrame(Struct, frozen=True):
    """Where some items at the end of a conversation are in a body, and all bytes of the body after them.

    The first `size` bytes end where an item ends, or where the first one begins (`is_at_start`). `tail` begins with the
    bracket that closes the conversation. If `end` is set, an object that may have any other content stands between
    `tail` and `end`: the value of the key `volatile`.

    A body with the same first bytes and tail differs in these items alone, if the bytes in between are a list of JSON
    values: then neither a string nor a list is open where the tail begins.
    """

    size: int
    is_at_start: bool
    tail: bytes
    end: bytes = b""
    volatile: str = ""

    def find_volatile(self, data: bytes) -> bytes:
        """Return the value of the volatile key in a body with this frame."""
        stop = len(data) - len(self.end)
        return data[self._find_tail(data, stop) + len(self.tail) : stop]

    def _find_tail(self, data: bytes, stop: int) -> int:
        """Return the last position of the tail in a body; negative, or before the items, if it has none."""
        # The end of the tail is short, so that it is found at once.
        start = data.rfind(self.tail[-_PROBE_SIZE:], 0, stop) + min(len(self.tail), _PROBE_SIZE) - len(self.tail)
        return start if start >= 0 and data.startswith(self.tail, start) else data.rfind(self.tail, 0, stop)

    def find_items(self, data: bytes) -> bytes | None:
        """Return the bytes of the other items of a body with the same first bytes, as a JSON list.

        None if the body has another frame.
        """
        stop = len(data) - len(self.end)
        first = self.size
        if not data.endswith(self.end):
            return None
        if not self.end:
            start = stop - len(self.tail)
            if start < first or not data.endswith(self.tail):
                return None
        else:
            start = self._find_tail(data, stop)
            if start < first or not _is_object(data[start + len(self.tail) : stop]):
                return None
        items = data[first:start].strip(_SPACE)
        if not self.is_at_start and items:
            if not items.startswith(b","):
                return None
            items = items[1:].lstrip(_SPACE)
        return b"[%b]" % items

    def move_start(self, data: bytes, items: bytes) -> BodyFrame:
        """Return the frame of a body with this one, around the items after these, its first ones."""
        if len(items) == len(b"[]"):
            return self
        start = self.size
        while data[start] in _SEPARATORS:
            start += 1
        return msgspec.structs.replace(self, size=start + len(items) - len(b"[]"), is_at_start=False)


def find_frame(data: bytes, source: Wire, members: Mapping[str, Raw] | None = None) -> tuple[BodyFrame, bytes] | None:
    """Return the frame of a body around all its items, and the items. The value of a volatile key may differ.

    None for a body with other keys than plain ones, each once.
    """
    key = source.conversation_key
    spans = find_values(data, members)
    if spans is None or key not in spans or data[spans[key][0]] != ord("["):
        return None
    first, close = spans[key][0] + 1, spans[key][1] - 1
    items = data[first - 1 : close + 1]
    for name, (start, stop) in spans.items():
        if name == source.volatile_field and start > close and _is_object(data[start:stop]):
            return BodyFrame(first, True, data[close:start], data[stop:], name), items
    return BodyFrame(first, True, data[close:]), items


def is_unchanged(body: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    """Return whether a rendered body is the given one, so that it can be sent as it was given.

    Wires keep the value of a field, and each item of a list, if nothing in it changes: only texts are compared.
    """
    return [*body] == [*given] and all(
        value is given[key]
        or (isinstance(value, str) and value == given[key])
        or (isinstance(value, list) and isinstance(given[key], list) and are_identical(value, given[key]))
        for key, value in cast("Mapping[str, Sequence[object]]", body).items()
    )


def find_values(data: bytes, members: Mapping[str, Raw] | None = None) -> dict[str, tuple[int, int]] | None:
    """Return the place of the value of each key in a body; None if a key has escapes, or occurs twice."""
    spans: dict[str, tuple[int, int]] = {}
    position = data.index(b"{") + 1
    for name, raw in (decode_members(data) if members is None else members).items():
        start = data.find(b'"', position)
        quoted = b'"%b"' % name.encode()
        if not data.startswith(quoted, start):
            return None
        start = _skip_space(data, data.index(b":", start + len(quoted)) + 1)
        value = bytes(raw)
        if not data.startswith(value, start):
            return None
        position = start + len(value)
        spans[name] = start, position
    return spans if data[position:].strip(_SPACE) == b"}" else None


def split_items(items: bytes | Raw) -> list[bytes]:
    """Return the JSON of each item in a list."""
    return [bytes(raw) for raw in _items_decoder.decode(items)]


def drop_last_items(items: bytes, last: Sequence[bytes]) -> bytes:
    """Return the JSON of a list of items without these, its last ones."""
    stop = len(items) - 1
    for item in reversed(last):
        stop = items.rindex(item, 0, stop)
    return items[:stop].rstrip(_SEPARATORS) + b"]"


def cut_items(items: bytes, first: bytes) -> bytes | None:
    """Return the JSON list of the items after the first ones; None if the list begins with others, or has no more."""
    if not items.startswith(first[:-1]):
        return None
    rest = items[len(first) - 1 :].lstrip(_SPACE)
    return b"[%b" % rest[1:].lstrip(_SPACE) if rest.startswith(b",") else None


def find_replies(items: Sequence[bytes | Raw]) -> list[int]:
    """Return the indexes of the items, but the first, with which a reply probably begins, in any API."""
    found = [_is_reply(item) for item in items]
    return [index for index in range(1, len(items)) if found[index] and not found[index - 1]]


def _is_reply(item: bytes | Raw) -> bool:
    kind = _kind_decoder.decode(item)
    return kind.role in ("assistant", "model") if kind.role is not None else kind.type.endswith(("_call", "reasoning"))


def parse_items(items: bytes) -> list[Any]:
    """Decode a JSON list of items, which is part of a body."""
    value, surrogates = parse_json(items)
    # Surrogates are counted over the whole body, which is one level deeper.
    if not isinstance(value, list) or surrogates or (len(items) > MAX_DEPTH and estimate_depth(items) >= MAX_DEPTH):
        raise InputError("items that depend on the whole body")
    return cast("list[Any]", value)


def _skip_space(data: bytes, position: int) -> int:
    while data[position] in _SPACE:
        position += 1
    return position


def _is_object(data: bytes) -> bool:
    """Return whether this is a JSON object with members, nested no deeper than is accepted."""
    try:
        return bool(_object_decoder.decode(data)) and estimate_depth(data) < MAX_DEPTH // 2
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
