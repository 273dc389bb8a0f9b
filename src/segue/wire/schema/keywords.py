"""Renders single keywords of a typed node: supported ones are added, the others move to the description."""

from __future__ import annotations

import math
import re
from typing import Any

from segue.wire.schema.changes import Location, SchemaChanges
from segue.wire.schema.description import DESCRIBED_KEYWORDS, describe_keyword
from segue.wire.schema.json_schema import Node, json_type_of, unique_values
from segue.wire.schema.rules import SchemaRules

BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_LOOKAROUND = re.compile(r"\(\?[=!<]|\\[1-9bB]")
_NUMBER_FORMATS = frozenset({"float", "double", "int32", "int64"})
_RANGES = (
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
)


class KeywordRenderer:
    """`texts` collects descriptions of unsupported keywords."""

    def __init__(self, rules: SchemaRules, changes: SchemaChanges) -> None:
        self._rules = rules
        self._changes = changes
        self.accepted = rules.keywords or frozenset[str]()

    def describe(self, key: str, value: Any, texts: list[str], location: Location) -> None:
        text = describe_keyword(key, value)
        if text:
            texts.append(text)
            self._changes.add(f"`{key}` moved to the description", location.path)
        elif key not in DESCRIBED_KEYWORDS:
            self._changes.add(f"unknown keyword `{key}` dropped", location.path, widens=False)

    def add_enum(self, node: Node, branch: Node, values: list[Any], texts: list[str], location: Location) -> None:
        kinds = {json_type_of(value) for value in values}
        if kinds == {"null"} or (kinds == {"boolean"} and len(unique_values(values)) == 2):
            return
        rules = self._rules
        limit = rules.enum_limit
        valid = kinds <= rules.enum_types and (rules.empty_enum_string or "" not in values)
        if valid and (limit is None or len(values) <= limit):
            if "const" in branch and "const" in self.accepted:
                node["const"] = values[0]
            else:
                node["enum"] = values
        else:
            self.describe(
                "const" if "const" in branch else "enum", values[0] if "const" in branch else values, texts, location
            )

    def add(
        self, node: Node, key: str, value: Any, types: list[str] | None, texts: list[str], location: Location
    ) -> None:
        rules = self._rules
        valid = key in self.accepted
        if key == "format":
            numeric = value in _NUMBER_FORMATS
            valid = valid and (rules.formats is None or value in rules.formats)
            valid = valid and (rules.formats is None or types is None or numeric != ("string" in types))
        elif key == "pattern":
            valid = valid and not (rules.no_lookaround and _LOOKAROUND.search(value))
        elif key == "minItems" and rules.max_min_items is not None:
            valid = valid and value <= rules.max_min_items
        if valid:
            node[key] = value
        else:
            self.describe(key, value, texts, location)

    def add_bound(
        self, node: Node, key: str, value: float, types: list[str] | None, texts: list[str], location: Location
    ) -> None:
        low, strictly = key.endswith("inimum"), key.startswith("exclusive")
        is_integer = types == ["integer"]
        if not strictly or key in self.accepted:
            bound = (math.ceil(value) if low else math.floor(value)) if is_integer and not strictly else value
        elif is_integer:
            bound = math.floor(value) + 1 if low else math.ceil(value) - 1
        else:
            bound = value
            self.describe(key, value, texts, location)
        if key not in self.accepted:
            key = "minimum" if low else "maximum"
        if key not in self.accepted:
            if not strictly:
                self.describe(key, value, texts, location)
            return
        node[key] = bound if key not in node else max(node[key], bound) if low else min(node[key], bound)

    def drop_contradictions(self, node: Node, texts: list[str], location: Location) -> None:
        for low, high in _RANGES:
            if low in node and high in node and node[low] > node[high]:
                texts += [describe_keyword(low, node.pop(low)), describe_keyword(high, node.pop(high))]
                self._changes.add(f"contradictory `{low}` and `{high}` moved to the description", location.path)
