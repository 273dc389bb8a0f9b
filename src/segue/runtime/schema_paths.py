"""The number of paths through a JSON Schema, which limits the work of validation.

A subschema that several references lead to is validated once for each of them, so a short schema can have exponentially
many paths.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import unquote

_DEFINITIONS = ("$defs", "definitions")


def has_more_paths(schema: Mapping[str, Any], limit: int) -> bool:
    """Return whether the schema has more paths than the limit; a recursive reference counts as one."""
    try:
        return _Counter(schema, limit).count(schema) > limit
    except RecursionError:
        return True


class _Counter:
    """Counts the paths below each object once. Counts above the limit are cut to one more."""

    def __init__(self, schema: Mapping[str, Any], limit: int) -> None:
        self._root = schema
        self._limit = limit
        self._counts: dict[int, int] = {}

    def count(self, node: object) -> int:
        if not isinstance(node, Mapping | list):
            return 0
        container = cast("Mapping[str, object] | list[object]", node)
        key = id(container)
        if key not in self._counts:
            # The count of a recursive reference to it.
            self._counts[key] = 1
            total = 1
            for child in self._children(container):
                total = min(total + self.count(child), self._limit + 1)
            self._counts[key] = total
        return self._counts[key]

    def _children(self, node: Mapping[str, object] | list[object]) -> list[object]:
        if isinstance(node, list):
            return node
        children = [value for key, value in node.items() if key not in _DEFINITIONS]
        reference = node.get("$ref")
        if isinstance(reference, str):
            children.append(self._resolve(reference))
        return children

    def _resolve(self, reference: str) -> object:
        """Return the target of a reference inside of the schema, or None."""
        node: object = self._root
        pointer = unquote(reference.removeprefix("#"))
        for step in pointer.split("/")[1:] if reference.startswith("#") else ():
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(node, Mapping):
                node = cast("Mapping[str, object]", node).get(key)
            elif isinstance(node, list) and key.isdecimal() and int(key) < len(cast("list[object]", node)):
                node = cast("list[object]", node)[int(key)]
            else:
                return None
        return node if reference.startswith("#") else None
