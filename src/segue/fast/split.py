"""Splits a body: the conversation, decoded with types, and all other fields as raw JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from segue.canonical.fast_history import FastPathUnsupportedError
from segue.canonical.json import MAX_DEPTH, encode_json, estimate_depth, reject_duplicate_key
from segue.pipeline import ConvertJob
from segue.wire.base import Wire
from segue.wire.detect_body import CONVERSATION_KEYS, detect_source
from segue.wire.fast_path import FastPath, decode_members
from segue.wire.registry import WIRES

_untyped = msgspec.json.Decoder()
# The number of bytes that are compared at once.
_COMPARED = 65_536


class SentItems(Struct, gc=False):
    """The items of a same-API conversation, which are sent unchanged: as values, and encoded as a JSON list."""

    items: list[Any]
    data: bytes | memoryview

    def split(self, index: int) -> tuple[SentItems, SentItems]:
        """Return the items before an index, and those from it on, both without brackets."""
        before, after = self.items[:index], self.items[index:]
        size = len(encode_json(after)) - 2
        view = memoryview(self.data)
        stop = len(view) - 1
        return SentItems(before, view[1 : stop - size - 1]), SentItems(after, view[stop - size : stop])


class SplitBody(Struct, gc=False):
    """A split body. `sent` is set for same-API conversions only."""

    source: Wire
    fast_path: FastPath
    items: list[Any]
    rest: dict[str, bytes]
    sent: SentItems | None = None

    def with_items(self, indexes: Iterable[int]) -> SplitBody:
        """Return the body with only these of its items."""
        items = [self.items[index] for index in indexes]
        if self.sent is None:
            return replace(self, items=items)
        sent = [self.sent.items[index] for index in indexes]
        return replace(self, items=items, sent=SentItems(sent, encode_json(sent)))

    def decode(self) -> dict[str, Any]:
        """Return the body as plain JSON values."""
        items = _untyped.decode(encode_json(self.items) if self.sent is None else self.sent.data)
        key = self.fast_path.conversation_key
        return {name: items if name == key else _untyped.decode(text) for name, text in self.rest.items()}


def split_body(data: bytes, job: ConvertJob) -> SplitBody:
    rest = decode_members(data) if job.source is None else {}
    source = job.source_wire(job.source or _guess_source(rest))
    fast_path = require_fast_path(source)
    if source is job.target:
        reject_duplicate_key(data, fast_path.conversation_key)
        return _split_same_api(rest or decode_members(data), source, fast_path)
    reject_duplicate_key(data, fast_path.conversation_key)
    if job.source is None:
        items = fast_path.decode_items(rest.pop(fast_path.conversation_key, Raw()))
    else:
        items, rest = fast_path.split_body(data)
    return SplitBody(
        source,
        fast_path,
        items,
        {fast_path.conversation_key: b"", **{key: _check_depth(bytes(raw)) for key, raw in rest.items()}},
    )


def _split_same_api(members: dict[str, Raw], source: Wire, fast_path: FastPath) -> SplitBody:
    key = fast_path.conversation_key
    raw_items = members.get(key, Raw())
    items = fast_path.decode_items(raw_items)
    rest = {name: b"" if name == key else _check_depth(bytes(raw)) for name, raw in members.items()}
    return SplitBody(source, fast_path, items, rest, find_sent_items(items, raw_items, fast_path))


def find_sent_items(items: list[Any], given: Raw | bytes, fast_path: FastPath) -> SentItems:
    """Return the items of a same-API body, given as a JSON list, as they are sent."""
    if not fast_path.can_pass_through(items):
        raise FastPathUnsupportedError
    encoded = encode_json(items)
    if _is_equal(encoded, given):
        # The types hold all of the items, so they need not be decoded once more.
        return SentItems(items, encoded)
    untyped = _untyped.decode(given)
    return SentItems(untyped, encode_json(untyped))


def _is_equal(data: bytes, other: Raw | bytes) -> bool:
    """Compare bytes with others of any type, without a copy of all of them."""
    view = memoryview(other)
    if len(view) != len(data):
        return False
    return all(data.startswith(view[start : start + _COMPARED], start) for start in range(0, len(data), _COMPARED))


def require_fast_path(wire: Wire) -> FastPath:
    if wire.fast_path is None:
        raise FastPathUnsupportedError
    return wire.fast_path


def _check_depth(data: bytes) -> bytes:
    """Return the data if it is not nested so deep that the full pipeline would reject it; raise otherwise."""
    if len(data) > MAX_DEPTH and estimate_depth(data) > MAX_DEPTH // 2:
        raise FastPathUnsupportedError
    return data


def _guess_source(members: dict[str, Raw]) -> Wire:
    """Return the wire detected without the items of the conversation; the conversion of the sample verifies it."""
    body: dict[str, Any] = {
        key: [] if key in CONVERSATION_KEYS else _untyped.decode(_check_depth(bytes(raw)))
        for key, raw in members.items()
    }
    return WIRES[detect_source(body)]
