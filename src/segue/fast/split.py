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
# The beginning of a JSON object with members.
_NON_EMPTY = b'{"'
# The number of items that are compared before all others.
_COMPARED = 16


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

    @property
    def variable(self) -> str | None:
        """The key after the conversation whose value clients change with each request."""
        keys = [*self.rest]
        later = keys[keys.index(self.fast_path.conversation_key) + 1 :]
        found = (key for key in later if key in self.fast_path.variable_keys)
        return next((key for key in found if self.rest[key].startswith(_NON_EMPTY)), None)

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
    members = decode_members(data) if job.source is None else None
    source = find_source(members or {}, job)
    fast_path = require_fast_path(source)
    key = fast_path.conversation_key
    if members is None:
        items, rest = fast_path.split_body(data)
    else:
        rest = members.copy()
        items = fast_path.decode_items(rest.pop(key, Raw()))
    if source is job.target:
        return _split_same_api(data, items, source, fast_path)
    reject_duplicate_key(data, key)
    return SplitBody(source, fast_path, items, split_rest({key: Raw(), **rest}, key))


def _split_same_api(data: bytes, items: list[Any], source: Wire, fast_path: FastPath) -> SplitBody:
    """Split a body whose items are sent unchanged, and its other fields in their order."""
    key = fast_path.conversation_key
    start = data.find(b'"%b":' % key.encode()) + len(key) + 3
    # If the first items are spelled in another way, all of them are.
    is_likely = data.startswith(encode_json(items[:_COMPARED])[:-1], start)
    if is_likely and data.startswith(encoded := encode_json(items), start):
        # The types hold all of the items, so they need not be decoded once more.
        outline = data[:start] + b"[]" + data[start + len(encoded) :]
        reject_duplicate_key(outline, key)
        members = decode_members(outline)
        if bytes(members.get(key, b"")) == b"[]":
            _require_valid(items, fast_path)
            return SplitBody(source, fast_path, items, split_rest(members, key), SentItems(items, encoded))
    reject_duplicate_key(data, key)
    _require_valid(items, fast_path)
    members = decode_members(data)
    return SplitBody(source, fast_path, items, split_rest(members, key), _decode_sent(members.get(key, Raw())))


def find_sent_items(items: list[Any], given: bytes, fast_path: FastPath) -> SentItems:
    """Return the items of a same-API body, given as a JSON list, as they are sent."""
    _require_valid(items, fast_path)
    return SentItems(items, given) if encode_json(items) == given else _decode_sent(given)


def _decode_sent(given: Raw | bytes) -> SentItems:
    untyped = _untyped.decode(given)
    return SentItems(untyped, encode_json(untyped))


def _require_valid(items: list[Any], fast_path: FastPath) -> None:
    """Raise if these items can't be sent unchanged."""
    if not fast_path.can_pass_through(items):
        raise FastPathUnsupportedError


def split_rest(members: dict[str, Raw], key: str) -> dict[str, bytes]:
    """Return the members of a body with an empty conversation, of this key."""
    return {name: b"" if name == key else _check_depth(bytes(raw)) for name, raw in members.items()}


def find_source(members: dict[str, Raw], job: ConvertJob) -> Wire:
    """Return the wire that the body is parsed with."""
    return job.source_wire(job.source or _guess_source(members))


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
