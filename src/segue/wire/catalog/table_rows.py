"""The catalog as a table: how each type is rendered on each wire under the default policy."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct

from segue.canonical.blocks import Origin
from segue.wire.catalog.entry import Entry, load_entries
from segue.wire.catalog.registry import SHAPES
from segue.wire.registry import WIRES

__all__ = ["RenderedAs", "TypeRow", "type_rows"]

RenderedAs = Literal["itself", "itself in replies", "call", "result", "call and result", "text"]


class TypeRow(Struct, frozen=True):
    """A type and how it is rendered on each wire: `itself` where the wire has the type.

    Types that are `itself in replies` are rendered in requests as on other wires.
    """

    provider: str
    wire_type: str
    surface: str
    role: str
    family: str
    identity: str
    by_wire: dict[str, RenderedAs] = msgspec.field(name="on")


def type_rows() -> tuple[TypeRow, ...]:
    return tuple(_row(entry) for entry in load_entries())


def _row(entry: Entry) -> TypeRow:
    enclosing_body = SHAPES[entry.provider][entry.wire_type].enclosing_body
    own_api = enclosing_body.api if enclosing_body is not None else None
    cross_api = _cross_api_form(entry)
    own_form = "itself in replies" if enclosing_body is not None and enclosing_body.replies_only else "itself"
    on: dict[str, RenderedAs] = {name: own_form if name == own_api else cross_api for name in WIRES}
    return TypeRow(entry.provider, entry.wire_type, entry.surface, entry.role, entry.family, entry.identity, on)


def _cross_api_form(entry: Entry) -> RenderedAs:
    shape = SHAPES[entry.provider][entry.wire_type]
    if Origin(entry.provider, family=entry.family).is_approval:
        return "text"
    if entry.role == "output":
        return "result" if entry.pairs_with else "text"
    # Calls that only the provider can run are always rendered with a result.
    has_result = shape.kind == "hosted" or entry.role == "call+output"
    return "call and result" if has_result and not entry.pairs_with else "call"
