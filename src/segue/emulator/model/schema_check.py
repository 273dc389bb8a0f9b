"""Checks a value against a parsed JSON Schema (2020-12, as far as tools use it).

`unevaluatedItems`, `unevaluatedProperties` and formats are not checked.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, cast

from segue.wire.schema.document import Document
from segue.wire.schema.json_schema import Node, Schema, is_equal, json_type_of, types_of, unique_values

__all__ = ["SchemaChecker", "matches"]

_DEEPEST = 60
"""Steps without going into a value; a reference that leads to itself says nothing."""


@lru_cache(maxsize=256)
def _compile(pattern: str) -> re.Pattern[str] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return None


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern is found in a text; one that Python can't read is found in any."""
    compiled = _compile(pattern)
    return compiled is None or compiled.search(text) is not None


class SchemaChecker:
    """Without `patterns` any text is taken for what they ask for."""

    def __init__(self, document: Document, *, patterns: bool = True) -> None:
        self._find = document.find
        self._patterns = patterns
        self._about: dict[str, Callable[[Node, Any, int], bool]] = {
            "string": self._is_text,
            "number": lambda node, value, _: _is_number(node, value),
            "array": self._is_array,
            "object": self._is_object,
        }

    def accepts(self, schema: Schema, value: Any, depth: int = 0) -> bool:
        if isinstance(schema, bool):
            return schema
        kind = json_type_of(value)
        if depth > _DEEPEST or not schema:
            return True
        if not _is_typed(types_of(schema), kind, value):
            return False
        if "const" in schema and not is_equal(schema["const"], value):
            return False
        if "enum" in schema and not any(is_equal(one, value) for one in schema["enum"]):
            return False
        about = self._about.get(kind)
        return (about is None or about(schema, value, depth)) and self._combines(schema, value, depth + 1)

    def _combines(self, node: Node, value: Any, depth: int) -> bool:
        if "$ref" in node and not self.accepts(self._find(node["$ref"]), value, depth):
            return False
        if not all(self.accepts(part, value, depth) for part in node.get("allOf", ())):
            return False
        if "anyOf" in node and not any(self.accepts(part, value, depth) for part in node["anyOf"]):
            return False
        if "oneOf" in node and sum(self.accepts(part, value, depth) for part in node["oneOf"]) != 1:
            return False
        if "not" in node and self.accepts(node["not"], value, depth):
            return False
        if "if" in node:
            return self.accepts(
                node.get("then" if self.accepts(node["if"], value, depth) else "else", True), value, depth
            )
        return True

    def _is_text(self, node: Node, value: str, _depth: int) -> bool:
        if not node.get("minLength", 0) <= len(value) <= node.get("maxLength", len(value)):
            return False
        return not self._patterns or "pattern" not in node or matches(node["pattern"], value)

    def _is_array(self, node: Node, value: list[Any], depth: int) -> bool:
        if not node.get("minItems", 0) <= len(value) <= node.get("maxItems", len(value)):
            return False
        if node.get("uniqueItems") and len(unique_values(value)) < len(value):
            return False
        prefix = cast("list[Schema]", node.get("prefixItems", []))
        rest: Schema = node.get("items", True)
        for index, item in enumerate(value):
            if not self.accepts(prefix[index] if index < len(prefix) else rest, item):
                return False
        if "contains" in node:
            found = sum(self.accepts(node["contains"], item) for item in value)
            return node.get("minContains", 1) <= found <= node.get("maxContains", found)
        return True

    def _is_object(self, node: Node, value: dict[str, Any], depth: int) -> bool:
        if not node.get("minProperties", 0) <= len(value) <= node.get("maxProperties", len(value)):
            return False
        if any(name not in value for name in node.get("required", ())):
            return False
        for name, needed in node.get("dependentRequired", {}).items():
            if name in value and any(other not in value for other in needed):
                return False
        if not all(
            self.accepts(node.get("propertyNames", True), name)
            and all(self.accepts(part, item) for part in property_schemas(node, name))
            for name, item in value.items()
        ):
            return False
        return all(
            self.accepts(part, value, depth + 1)
            for name, part in node.get("dependentSchemas", {}).items()
            if name in value
        )


def property_schemas(node: Node, name: str) -> list[Schema]:
    """All that a node says of the value of a key."""
    said: list[Schema] = []
    if name in node.get("properties", ()):
        said.append(node["properties"][name])
    said += [part for pattern, part in node.get("patternProperties", {}).items() if matches(pattern, name)]
    return said or [node.get("additionalProperties", True)]


def _is_typed(types: list[str] | None, kind: str, value: Any) -> bool:
    if types is None or kind in types:
        return True
    return kind == "number" and "integer" in types and (isinstance(value, int) or value.is_integer())


def _is_number(node: Node, value: float) -> bool:
    if not node.get("minimum", value) <= value <= node.get("maximum", value):
        return False
    if "exclusiveMinimum" in node and not value > node["exclusiveMinimum"]:
        return False
    if "exclusiveMaximum" in node and not value < node["exclusiveMaximum"]:
        return False
    return "multipleOf" not in node or _is_multiple(value, node["multipleOf"])


def _is_multiple(value: float, step: float) -> bool:
    """By both ways of counting: in decimals as they are written, and as the machine divides."""
    if Fraction(str(value)) % Fraction(str(step)):
        return False
    return not isinstance(step, float) or (value / step).is_integer()
