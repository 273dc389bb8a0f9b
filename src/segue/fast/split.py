"""Splits a body: the conversation, decoded with types, and all other fields as raw JSON."""

from __future__ import annotations

from typing import Any, cast

import msgspec
from msgspec import Raw, Struct

from segue.canonical.fast_history import FastPathUnsupportedError
from segue.canonical.json import MAX_DEPTH, encode_json, estimate_depth, reject_duplicate_key
from segue.canonical.type_warmup import warm_type
from segue.pipeline import ConvertJob
from segue.wire.base import Wire
from segue.wire.detect_body import detect_source
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

    def with_items(self, items: list[Any]) -> dict[str, Any]:
        """Return the body with these items instead of its own."""
        return {
            key: items if key == self.fast_path.conversation_key else _untyped.decode(text)
            for key, text in self.rest.items()
        }


def split_body(data: bytes, job: ConvertJob) -> SplitBody:
    rest = decode_members(data) if job.source is None else {}
    source = job.source_wire(job.source or _guess_source(rest))
    if source is job.target:
        reject_duplicate_key(data, source.conversation_key)
        return _split_same_api(_untyped.decode(data), source)
    fast_path = require_fast_path(source)
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


def _split_same_api(value: Any, wire: Wire) -> SplitBody:
    fast_path = require_fast_path(wire)
    if not isinstance(value, dict):
        raise FastPathUnsupportedError
    members = cast("dict[str, Any]", value)
    items = msgspec.convert(members.get(fast_path.conversation_key), warm_type(fast_path.items_type))
    if not fast_path.can_pass_through(items):
        raise FastPathUnsupportedError
    rest = {
        key: b"" if key == fast_path.conversation_key else _check_depth(encode_json(member))
        for key, member in members.items()
    }
    return SplitBody(wire, fast_path, items, rest, members[fast_path.conversation_key])


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
    keys = {wire.fast_path.conversation_key for wire in WIRES.values() if wire.fast_path is not None}
    body: dict[str, Any] = {
        key: [] if key in keys else _untyped.decode(_check_depth(bytes(raw))) for key, raw in members.items()
    }
    return WIRES[detect_source(body)]
