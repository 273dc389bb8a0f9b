"""Single keywords of a typed node: those that the target takes are put into it, the others are told in words."""

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
    """`words` collects what could not be put."""

    def __init__(self, rules: SchemaRules, notes: Notes) -> None:
        self._rules = rules
        self._notes = notes
        self.taken = rules.keywords or frozenset[str]()

    def say(self, key: str, value: Any, words: list[str], here: Here) -> None:
        text = told(key, value)
        if text:
            words.append(text)
            self._notes.add(f"`{key}` is told in words", here.path)
        elif key not in KEYWORDS:
            self._notes.add(f"`{key}`, which JSON Schema does not know, is left out", here.path, loss=False)

    def put_values(self, node: Node, branch: Node, values: list[Any], words: list[str], here: Here) -> None:
        kinds = {kind_of(value) for value in values}
        if kinds == {"null"} or (kinds == {"boolean"} and len(union(values)) == 2):
            return
        rules = self._rules
        limit = rules.enum_limit
        lawful = kinds <= rules.enums and (rules.empty_enum_text or "" not in values)
        if lawful and (limit is None or len(values) <= limit):
            if "const" in branch and "const" in self.taken:
                node["const"] = values[0]
            else:
                node["enum"] = values
        else:
            self.say("const" if "const" in branch else "enum", values[0] if "const" in branch else values, words, here)

    def put(self, node: Node, key: str, value: Any, types: list[str] | None, words: list[str], here: Here) -> None:
        rules = self._rules
        lawful = key in self.taken
        if key == "format":
            numeric = value in _NUMBER_FORMATS
            lawful = lawful and (rules.formats is None or value in rules.formats)
            lawful = lawful and (rules.formats is None or types is None or numeric != ("string" in types))
        elif key == "pattern":
            lawful = lawful and not (rules.plain_patterns and _LOOKS_AROUND.search(value))
        elif key == "minItems" and rules.longest_min_items is not None:
            lawful = lawful and value <= rules.longest_min_items
        if lawful:
            node[key] = value
        else:
            self.say(key, value, words, here)

    def put_bound(
        self, node: Node, key: str, value: float, types: list[str] | None, words: list[str], here: Here
    ) -> None:
        low, strictly = key.endswith("inimum"), key.startswith("exclusive")
        whole = types == ["integer"]
        if not strictly or key in self.taken:
            said = (math.ceil(value) if low else math.floor(value)) if whole and not strictly else value
        elif whole:
            said = math.floor(value) + 1 if low else math.ceil(value) - 1
        else:
            said = value
            self.say(key, value, words, here)
        if key not in self.taken:
            key = "minimum" if low else "maximum"
        if key not in self.taken:
            if not strictly:
                self.say(key, value, words, here)
            return
        node[key] = said if key not in node else max(node[key], said) if low else min(node[key], said)

    def unsay_contradictions(self, node: Node, words: list[str], here: Here) -> None:
        for low, high in _RANGES:
            if low in node and high in node and node[low] > node[high]:
                words += [told(low, node.pop(low)), told(high, node.pop(high))]
                self._notes.add(f"`{low}` and `{high}`, which contradict each other, are told in words", here.path)
