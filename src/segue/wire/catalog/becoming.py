"""What each type becomes on each wire, as the default policy has it: the whole catalogue in one table."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from segue.canonical.blocks import Origin
from segue.wire.catalog.entry import Entry, entries
from segue.wire.catalog.table import SHAPES
from segue.wire.registry import WIRES

__all__ = ["Becoming", "TypeRow", "type_rows"]

Becoming = Literal["itself", "itself in replies", "call", "result", "call and result", "text"]


class TypeRow(Struct, frozen=True):
    """A type, and what it becomes: `itself` where the wire has it, else what can be said there.

    What is itself in replies only is in requests what it is abroad.
    """

    provider: str
    wire_type: str
    surface: str
    role: str
    family: str
    identity: str
    on: dict[str, Becoming]


def type_rows() -> tuple[TypeRow, ...]:
    return tuple(_row(entry) for entry in entries())


def _row(entry: Entry) -> TypeRow:
    inside = SHAPES[entry.provider][entry.wire_type].inside
    home = inside.api if inside is not None else None
    abroad = _abroad(entry)
    own = "itself in replies" if inside is not None and inside.replies_only else "itself"
    on: dict[str, Becoming] = {name: own if name == home else abroad for name in WIRES}
    return TypeRow(entry.provider, entry.wire_type, entry.surface, entry.role, entry.family, entry.identity, on)


def _abroad(entry: Entry) -> Becoming:
    shape = SHAPES[entry.provider][entry.wire_type]
    if Origin(entry.provider, family=entry.family).is_approval:
        return "text"
    if entry.role == "output":
        return "result" if entry.pairs_with else "text"
    # What nobody but the provider could answer is never left without an answer.
    answered = shape.kind == "hosted" or entry.role == "call+output"
    return "call and result" if answered and not entry.pairs_with else "call"
