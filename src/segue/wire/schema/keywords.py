"""Renders single keywords of a typed node: supported ones are added, the others move to the description."""

from __future__ import annotations

import math
import re
from typing import Any

from segue.wire.schema.notes import Here, Notes
from segue.wire.schema.rules import SchemaRules
from segue.wire.schema.vocabulary import Node, kind_of, union
from segue.wire.schema.words import KEYWORDS, told

__all__ = ["BOUNDS", "Keywords"]

BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_LOOKS_AROUND = re.compile(r"\(\?[=!<]|\\[1-9bB]")
_NUMBER_FORMATS = frozenset({"float", "double", "int32", "int64"})
_RANGES = (
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
)


class Keywords:
    """`texts` collects descriptions of unsupported keywords."""

    def __init__(self, rules: SchemaRules, changes: Notes) -> None:
        self._rules = rules
        self._changes = changes
        self.taken = rules.keywords or frozenset[str]()

    def say(self, key: str, value: Any, texts: list[str], location: Here) -> None:
        text = told(key, value)
        if text:
            texts.append(text)
            self._changes.add(f"`{key}` moved to the description", location.path)
        elif key not in KEYWORDS:
            self._changes.add(f"unknown keyword `{key}` dropped", location.path, loss=False)

    def put_values(self, node: Node, branch: Node, values: list[Any], texts: list[str], location: Here) -> None:
        kinds = {kind_of(value) for value in values}
        if kinds == {"null"} or (kinds == {"boolean"} and len(union(values)) == 2):
            return
        rules = self._rules
        limit = rules.enum_limit
        valid = kinds <= rules.enums and (rules.empty_enum_text or "" not in values)
        if valid and (limit is None or len(values) <= limit):
            if "const" in branch and "const" in self.taken:
                node["const"] = values[0]
            else:
                node["enum"] = values
        else:
            self.say(
                "const" if "const" in branch else "enum", values[0] if "const" in branch else values, texts, location
            )

    def put(self, node: Node, key: str, value: Any, types: list[str] | None, texts: list[str], location: Here) -> None:
        rules = self._rules
        valid = key in self.taken
        if key == "format":
            numeric = value in _NUMBER_FORMATS
            valid = valid and (rules.formats is None or value in rules.formats)
            valid = valid and (rules.formats is None or types is None or numeric != ("string" in types))
        elif key == "pattern":
            valid = valid and not (rules.plain_patterns and _LOOKS_AROUND.search(value))
        elif key == "minItems" and rules.longest_min_items is not None:
            valid = valid and value <= rules.longest_min_items
        if valid:
            node[key] = value
        else:
            self.say(key, value, texts, location)

    def put_bound(
        self, node: Node, key: str, value: float, types: list[str] | None, texts: list[str], location: Here
    ) -> None:
        low, strictly = key.endswith("inimum"), key.startswith("exclusive")
        whole = types == ["integer"]
        if not strictly or key in self.taken:
            bound = (math.ceil(value) if low else math.floor(value)) if whole and not strictly else value
        elif whole:
            bound = math.floor(value) + 1 if low else math.ceil(value) - 1
        else:
            bound = value
            self.say(key, value, texts, location)
        if key not in self.taken:
            key = "minimum" if low else "maximum"
        if key not in self.taken:
            if not strictly:
                self.say(key, value, texts, location)
            return
        node[key] = bound if key not in node else max(node[key], bound) if low else min(node[key], bound)

    def unsay_contradictions(self, node: Node, texts: list[str], location: Here) -> None:
        for low, high in _RANGES:
            if low in node and high in node and node[low] > node[high]:
                texts += [told(low, node.pop(low)), told(high, node.pop(high))]
                self._changes.add(f"contradictory `{low}` and `{high}` moved to the description", location.path)
