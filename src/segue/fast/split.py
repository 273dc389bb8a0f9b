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


class SplitBody(Struct, gc=False):
    """A split body. `original_items` is set for same-API conversions only: these items are sent unchanged."""

    source: Wire
    fast_path: FastPath
    items: list[Any]
    rest: dict[str, bytes]
    original_items: list[Any] | None = None

    def with_items(self, indexes: Iterable[int]) -> SplitBody:
        """Return the body with only these of its items."""
        items = [self.items[index] for index in indexes]
        if self.original_items is None:
            return replace(self, items=items)
        return replace(self, items=items, original_items=[self.original_items[index] for index in indexes])

    def decode(self) -> dict[str, Any]:
        """Return the body as plain JSON values."""
        items = self.original_items
        if items is None:
            items = _untyped.decode(encode_json(self.items))
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
    if not fast_path.can_pass_through(items):
        raise FastPathUnsupportedError
    rest = {name: b"" if name == key else _check_depth(bytes(raw)) for name, raw in members.items()}
    return SplitBody(source, fast_path, items, rest, _untyped.decode(raw_items))


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
