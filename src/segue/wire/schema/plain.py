"""A schema for a target that takes JSON Schema nearly as it is: only what a row refuses is written anew."""

from __future__ import annotations

import re
from typing import Any

from segue.wire.schema.document import ROOT, Document, leading_to, pointer_to, references
from segue.wire.schema.notes import Notes
from segue.wire.schema.rules import SchemaRules
from segue.wire.schema.vocabulary import ANNOTATIONS, IN_LISTS, IN_MAPS, SINGLE, Node, Schema, types_of
from segue.wire.schema.words import described, tell, told

__all__ = ["written_plain"]

# A boolean says it shortest here, and every draft has it.
_FLAGS = frozenset({"additionalProperties", "unevaluatedProperties", "unevaluatedItems", "items"})
# A weaker schema in here makes the whole one stronger.
_TURNED = frozenset({"not", "if", "oneOf", "contains"})
_NOT_IN_DRAFT_7 = ("minContains", "maxContains", "unevaluatedItems", "unevaluatedProperties")


def written_plain(document: Document, rules: SchemaRules, notes: Notes) -> Node:
    """Where a definition got weaker, it is written a second time, so that nobody says `not` to it."""
    attempt = Notes()
    writer = _Writer(document, rules, attempt, frozenset())
    node = writer.written()
    if writer.weaker:
        attempt = Notes()
        node = _Writer(document, rules, attempt, leading_to(document, writer.weaker)).written()
    notes.extend(attempt)
    return node


class _Writer:
    def __init__(self, document: Document, rules: SchemaRules, notes: Notes, weak: frozenset[str]) -> None:
        self._document = document
        self._rules = rules
        self._notes = notes
        self._defs_key = "definitions" if rules.draft == "7" else "$defs"
        self._wanted: list[str] = []
        self._known: set[str] = set()
        self._weak = weak
        self.weaker: set[str] = set()

    def written(self) -> Node:
        root = self._definition(ROOT, "")
        defs: Node = {}
        for name in self._wanted:  # grows while it is gone through
            defs[name] = self._definition(name, f"$defs.{name}")
        kept = self._still_wanted(root, defs)
        return {**root, self._defs_key: kept} if kept else root

    def _still_wanted(self, root: Node, defs: Node) -> Node:
        """The definitions that something refers to after all."""
        prefix = pointer_to("", key=self._defs_key)
        found = list(references(root))
        seen = set(found)
        for pointer in found:  # grows while it is gone through
            new = set(references(defs.get(pointer.removeprefix(prefix), {}))) - seen
            seen |= new
            found += sorted(new)
        return {name: node for name, node in defs.items() if f"{prefix}{name}" in seen}

    def _definition(self, name: str, path: str) -> Node:
        lost = self._notes.lost
        node = self._node(self._document.find(name), path)
        if self._notes.lost > lost:
            self.weaker.add(name)
        return node

    def _node(self, schema: Schema, path: str) -> Node:
        if isinstance(schema, bool):
            return {} if schema else {"not": {}}
        lost = self._notes.lost
        node: Node = {}
        words: list[str] = []
        for key, value in schema.items():
            before = self._notes.lost
            here = f"{path}.{key}" if path else key
            node[key] = self._properties(value, words, here) if key == "properties" else self._keyword(key, value, here)
            if key in _TURNED and self._notes.lost > before:
                node.pop(key)
        for key in schema.keys() & _TURNED - node.keys():
            self._turn(node, key, schema, words, path)
        if len(node.get("properties", ())) < len(schema.get("properties", ())):
            node.pop("additionalProperties", None)
        if self._notes.lost > lost:
            for key in ("unevaluatedProperties", "unevaluatedItems"):
                self._tell(node, key, schema, words, path)
        if self._rules.items_needed and "items" not in node and "array" in (types_of(node) or ()):
            node["items"] = {}
        if self._rules.draft == "7":
            self._draft_7(node, schema, words, path)
        return described(node, words)

    def _keyword(self, key: str, value: Any, path: str) -> Any:
        if key == "$ref":
            if value in self._document.defs and value not in self._known:
                self._known.add(value)
                self._wanted.append(value)
            self._notes.lost += value in self._weak
            return pointer_to(value, key=self._defs_key)
        if key in IN_MAPS:
            return {name: self._node(inner, f"{path}.{name}") for name, inner in value.items()}
        if key in IN_LISTS:
            return [self._node(inner, f"{path}[{index}]") for index, inner in enumerate(value)]
        if key in SINGLE:
            return value if isinstance(value, bool) and key in _FLAGS else self._node(value, path)
        return value

    def _turn(self, node: Node, key: str, schema: Node, words: list[str], path: str) -> None:
        """What got weaker in this keyword would make the whole stronger, so another one takes its place."""
        if key == "oneOf":
            members = [self._node(member, path) for member in schema[key]]
            self._notes.add("`oneOf` became `anyOf`", path)
            if "anyOf" in schema:
                node["allOf"] = [*node.get("allOf", []), {"anyOf": members}]
            else:
                node["anyOf"] = members
        elif key == "contains" and "maxContains" not in schema:
            node[key] = self._node(schema[key], path)
        else:
            self._notes.add(f"`{key}` is told in words", path)
            words.append(told(key, schema[key]))
            if key == "if":
                words += [told(part, schema[part]) for part in ("then", "else") if node.pop(part, None) is not None]

    def _tell(self, node: Node, key: str, schema: Node, words: list[str], path: str) -> None:
        if node.pop(key, True) is not True:
            words.append(told(key, schema[key]))
            self._notes.add(f"`{key}` is told in words", path)

    def _properties(self, said: dict[str, Schema], words: list[str], path: str) -> Node:
        """Keys that the target can't spell are told in words."""
        wanted = self._rules.property_names
        kept: Node = {}
        for name, inner in said.items():
            if wanted is None or re.fullmatch(wanted, name):
                kept[name] = self._node(inner, f"{path}.{name}")
            else:
                words.append(f"also takes {name}: {tell(inner, 1)}")
                self._notes.add("a key that can't be declared there is told in words", f"{path}.{name}")
        return kept

    def _draft_7(self, node: Node, schema: Node, words: list[str], path: str) -> None:
        if node.get("minContains") == 0:
            del node["minContains"]
            node.pop("contains", None)
        for key in _NOT_IN_DRAFT_7:
            self._tell(node, key, schema, words, path)
        if "prefixItems" in node:
            if "items" in node:
                node["additionalItems"] = node["items"]
            node["items"] = node.pop("prefixItems")
        needs: Node = {name: {"required": names} for name, names in node.pop("dependentRequired", {}).items()}
        for name, inner in node.pop("dependentSchemas", {}).items():
            needs[name] = {"allOf": [needs[name], inner]} if name in needs else inner
        if needs:
            node["dependencies"] = needs
        if "$ref" in node and node.keys() - ANNOTATIONS - {"$ref"}:
            # Beside `$ref` nothing else is looked at.
            node["allOf"] = [{"$ref": node.pop("$ref")}, *node.get("allOf", [])]
