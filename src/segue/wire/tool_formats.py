"""The tool formats that `tool_format` selects, and the wires that accept each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from msgspec import Struct

from segue.errors import InputError, require_string, unknown_name_error
from segue.models import Model
from segue.wire.base import Wire
from segue.wire.ids import IdScheme, kimi_scheme, mistral_scheme
from segue.wire.registry import WIRES
from segue.wire.text.names import TEXT_FORMAT_NAMES


class ToolFormat(Struct, frozen=True):
    """One tool format. `wires` accept it; `ids` is None if the id scheme of the wire is used."""

    name: str
    wires: frozenset[str]
    ids: IdScheme | None = None


_TEXT_ID_SCHEMES = {"kimi-text": kimi_scheme(), "mistral-text": mistral_scheme()}


def _accepts(wire: Wire, tool_format: str) -> bool:
    if wire.tool_formats is not None:
        return tool_format in wire.tool_formats
    return any(other.tool_format == tool_format for other in WIRES.values() if other.base_api == wire.base_api)


def _list_native_formats() -> Iterator[ToolFormat]:
    """Return the tool formats of the APIs, in registry order; the first API with a format decides its ids."""
    owners: dict[str, Wire] = {}
    for wire in WIRES.values():
        owners.setdefault(wire.tool_format, wire)
    for name, owner in owners.items():
        accepting = frozenset(wire.name for wire in WIRES.values() if _accepts(wire, name))
        yield ToolFormat(name, accepting, owner.tool_format_ids)


@cache
def load_tool_formats() -> Mapping[str, ToolFormat]:
    """Return all tool formats by name: those of the APIs, then the text tool formats, which work on every API."""
    all_wires = frozenset(WIRES)
    text_formats = (ToolFormat(name, all_wires, _TEXT_ID_SCHEMES.get(name)) for name in TEXT_FORMAT_NAMES)
    return {form.name: form for form in (*_list_native_formats(), *text_formats)}


def find_tool_format(tool_format: str) -> ToolFormat | None:
    """Return the tool format of this name; None for `auto`."""
    require_string(tool_format, "tool_format")
    if tool_format == "auto":
        return None
    form = load_tool_formats().get(tool_format)
    if form is None:
        raise unknown_name_error("tool format", tool_format, ("auto", *load_tool_formats()), path="tool_format")
    return form


def id_scheme_for(wire: Wire, model: Model, tool_format: str, base_wire: Wire) -> IdScheme:
    """Return the id scheme of the tool format, or of the wire for `auto`. `wire` is `base_wire` or a dialect of it."""
    form = find_tool_format(tool_format)
    if form is None:
        return wire.id_scheme(model)
    if wire.name not in form.wires:
        accepted = [name for name, other in load_tool_formats().items() if wire.name in other.wires]
        message = f"{wire.name} does not accept the tool format {tool_format!r}; it accepts {', '.join(accepted)}"
        raise InputError(message, path="tool_format")
    return form.ids or base_wire.id_scheme(model)
