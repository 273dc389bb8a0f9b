"""Splits a body: the conversation, decoded with types, and all other fields as raw JSON."""

from __future__ import annotations

from typing import Any, cast

import msgspec
from msgspec import Raw, Struct

from segue.canonical.jsontext import MAX_DEPTH, depth_of, refuse_twice, write
from segue.canonical.learning import learnt
from segue.canonical.plain import NotPlainError
from segue.carry import Asked
from segue.wire.base import Wire
from segue.wire.detect import detect_source
from segue.wire.lane import Lane, members_of
from segue.wire.registry import WIRES

__all__ = ["Body", "lane_of", "take_apart"]

_untyped = msgspec.json.Decoder()


class Body(Struct, gc=False):
    """A split body. `original_items` are set same-API only, where they are sent unchanged."""

    source: Wire
    lane: Lane
    items: list[Any]
    rest: dict[str, bytes]
    own: list[Any] | None = None

    def around(self, items: list[Any]) -> dict[str, Any]:
        """Return the body with these items instead of its own."""
        return {key: items if key == self.lane.key else _untyped.decode(text) for key, text in self.rest.items()}


def take_apart(data: bytes, asked: Asked) -> Body:
    rest = members_of(data) if asked.source is None else {}
    source = asked.from_wire(asked.source or _likely_source(rest))
    if source is asked.target:
        refuse_twice(data, source.root)
        return _at_home(_untyped.decode(data), source)
    lane = lane_of(source)
    refuse_twice(data, lane.key)
    if asked.source is None:
        items = lane.typed(rest.pop(lane.key, Raw()))
    else:
        items, rest = lane.take_apart(data)
    return Body(source, lane, items, {lane.key: b"", **{key: _shallow(bytes(raw)) for key, raw in rest.items()}})


def _at_home(value: Any, wire: Wire) -> Body:
    lane = lane_of(wire)
    if not isinstance(value, dict):
        raise NotPlainError
    members = cast("dict[str, Any]", value)
    items = msgspec.convert(members.get(lane.key), learnt(lane.items))
    if not lane.goes_home(items):
        raise NotPlainError
    rest = {key: b"" if key == lane.key else _shallow(write(member)) for key, member in members.items()}
    return Body(wire, lane, items, rest, members[lane.key])


def lane_of(wire: Wire) -> Lane:
    if wire.lane is None:
        raise NotPlainError
    return wire.lane


def _shallow(data: bytes) -> bytes:
    """Return the data if it is not nested so deep that the full pipeline would reject it; raise otherwise."""
    if len(data) > MAX_DEPTH and depth_of(data) > MAX_DEPTH // 2:
        raise NotPlainError
    return data


def _likely_source(members: dict[str, Raw]) -> Wire:
    """Guess the wire of a body without its conversation; the sample verifies it."""
    keys = {wire.lane.key for wire in WIRES.values() if wire.lane is not None}
    seen: dict[str, Any] = {
        key: [] if key in keys else _untyped.decode(_shallow(bytes(raw))) for key, raw in members.items()
    }
    return WIRES[detect_source(seen)]
