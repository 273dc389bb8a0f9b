"""Arguments that were written without types, typed by what the tool was declared to take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from segue.canonical.jsontext import parse_argument_text
from segue.canonical.request import Tool
from segue.wire.fields import object_or_none
from segue.wire.text.loose import NotReadableError, read_loose

__all__ = ["Declared"]

_ANY = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})


class Declared:
    """The tools that a model was told of; without any, every name will do and values are what they look like."""

    def __init__(self, tools: Iterable[Tool] | None = None) -> None:
        self._schemas = None if tools is None else {tool.name: tool.parameters or {} for tool in tools}

    @property
    def given(self) -> bool:
        return self._schemas is not None

    def knows(self, name: str) -> bool:
        return self._schemas is None or name in self._schemas

    def argument(self, name: str, key: str, text: str) -> Any:
        """The value of an argument that was written as bare text."""
        schema = (self._schemas or {}).get(name) or {}
        properties = object_or_none(schema.get("properties")) or {}
        found = object_or_none(properties.get(key))
        if found is None:
            return self._looks_like(text)
        types = _types_of(found)
        if "string" in types:
            if types == frozenset({"string", "null"}) and text.strip() == "null":
                return None
            return text
        try:
            return read_loose(text.strip())
        except NotReadableError:
            return text

    def _looks_like(self, text: str) -> Any:
        """A value of which nobody said what it is: JSON where it is JSON that no text would be."""
        bare = text.strip()
        value, exact = parse_argument_text(bare) if bare else (None, "")
        return text if exact is not None or isinstance(value, str) else value


def _types_of(schema: Mapping[str, Any], depth: int = 0) -> frozenset[str]:
    """What a schema takes; nothing said means anything."""
    kind = schema.get("type")
    if isinstance(kind, str):
        return frozenset({kind})
    if isinstance(kind, list):
        return frozenset(str(one) for one in cast("list[object]", kind))
    values = schema.get("enum")
    if isinstance(values, list):
        return frozenset("string" if isinstance(value, str) else "number" for value in cast("list[object]", values))
    found: frozenset[str] = frozenset()
    for key in ("anyOf", "oneOf"):
        options = schema.get(key)
        if isinstance(options, list) and depth < 8:
            for option in cast("list[object]", options):
                found |= _types_of(object_or_none(option) or {}, depth + 1)
    return found or _ANY
