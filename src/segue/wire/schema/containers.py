"""Renders objects and arrays: declared and required properties, other keys, items."""

from __future__ import annotations

import re
from collections.abc import Callable

from segue.wire.schema.keywords import Keywords
from segue.wire.schema.merge import either
from segue.wire.schema.notes import Here, Notes
from segue.wire.schema.rules import SchemaRules, UnfitError
from segue.wire.schema.typed import nullable
from segue.wire.schema.vocabulary import Node, Schema
from segue.wire.schema.words import tell

__all__ = ["ARRAY_PARTS", "FORCED_NULL", "OBJECT_PARTS", "Containers"]

FORCED_NULL = "optional properties made required and nullable"
OBJECT_PARTS = frozenset({"properties", "patternProperties", "additionalProperties", "required"})
ARRAY_PARTS = frozenset({"prefixItems", "items"})


class Containers:
    """`render_node` renders a subschema; `property_count` counts the declared properties."""

    def __init__(
        self, rules: SchemaRules, changes: Notes, keywords: Keywords, node: Callable[[Schema, Here], Node]
    ) -> None:
        self._rules = rules
        self._changes = changes
        self._keywords = keywords
        self._node = node
        self.properties = 0

    def put_object(self, node: Node, branch: Node, texts: list[str], location: Here) -> None:
        declared: dict[str, Schema] = branch.get("properties", {})
        rest: Schema | None = branch.get("additionalProperties")
        rejected = [name for name in declared if not self._spellable(name, location)]
        for name in rejected:
            texts.append(f"also takes {name}: {tell(declared[name], 1)}")
            self._changes.add(
                "a property name that the target rejects moved to the description", location.inner(name).path
            )
        properties: Node = {}
        for name, schema in declared.items():
            if schema is False:
                self._changes.add("a forbidden property moved to the description", location.inner(name).path)
                texts.append(f"no {name}")
            elif name not in rejected:
                properties[name] = self._node(schema, location.inner(name, objects=1))
        if "patternProperties" in branch:
            self._keywords.say("patternProperties", branch["patternProperties"], texts, location)
        opened = bool(rejected) or "patternProperties" in branch
        needed = self._needed(branch, properties, True if opened or rest is None else rest, texts, location)
        self.properties += len(properties)
        if self._rules.all_required:
            needed = self._all_needed(properties, needed, location)
        empty = "properties" in branch and not location.path and not self._rules.openapi
        if properties or empty or self._rules.closed:
            node["properties"] = properties
        if needed or self._rules.all_required:
            node["required"] = needed
        self._put_rest(node, rest, texts, location, opened=opened)

    def _spellable(self, name: str, location: Here) -> bool:
        wanted = self._rules.property_names
        if not self._rules.slash_in_defs and "/" in name and location.path.startswith("$defs."):
            return False
        return wanted is None or re.fullmatch(wanted, name) is not None

    def _needed(self, branch: Node, properties: Node, rest: Schema, texts: list[str], location: Here) -> list[str]:
        """The required properties. Where each has to be declared, undeclared ones get a declaration."""
        needed: list[str] = branch.get("required", [])
        if not self._rules.required_declared and not self._rules.all_required:
            return needed
        kept: list[str] = []
        for name in needed:
            if name not in properties and self._spellable(name, location) and name not in branch.get("properties", {}):
                properties[name] = self._node(rest, location.inner(name, objects=1))
            if name in properties:
                kept.append(name)
            else:
                texts.append(f"needs {name}")
        return kept

    def _all_needed(self, properties: Node, needed: list[str], location: Here) -> list[str]:
        for name in properties:
            if name not in needed:
                self._changes.add(FORCED_NULL, location.inner(name).path)
                properties[name] = nullable(properties[name])
        return list(properties)

    def _put_rest(self, node: Node, rest: Schema | None, texts: list[str], location: Here, *, opened: bool) -> None:
        """Render the schema of undeclared keys."""
        if self._rules.closed:
            if opened or rest not in (None, False) or (rest is None and not node.get("properties") and location.path):
                raise UnfitError("an object in it accepts undeclared keys")
            if rest is None:
                self._changes.add("undeclared keys forbidden", location.path)
            node["additionalProperties"] = False
        elif rest is not None and opened:
            self._keywords.say("additionalProperties", rest, texts, location)
        elif rest is not None and "additionalProperties" in self._keywords.taken:
            node["additionalProperties"] = rest if isinstance(rest, bool) else self._node(rest, location.inner("*"))
        elif rest not in (None, True, {}):
            self._keywords.say("additionalProperties", rest, texts, location)

    def put_array(self, node: Node, branch: Node, texts: list[str], location: Here) -> None:
        prefix: list[Schema] = branch.get("prefixItems", [])
        items: Schema | None = branch.get("items")
        full = bool(prefix) and branch.get("maxItems", len(prefix) + 1) <= len(prefix)
        items = False if full else items
        if prefix and "prefixItems" in self._keywords.taken:
            node["prefixItems"] = [self._node(item, location.inner(f"[{i}]")) for i, item in enumerate(prefix)]
        elif prefix:
            self._keywords.say("prefixItems", prefix, texts, location)
            if items is False and "maxItems" in self._keywords.taken:
                node["maxItems"] = min(len(prefix), branch.get("maxItems", len(prefix)))
            items = either([*prefix, True if items is None else items])
        if items is False:
            if not full:
                self._keywords.say("items", items, texts, location)
            items = None
        if items is not None or self._rules.items_needed:
            node["items"] = self._node(True if items is None else items, location.inner("[]"))
            if not node["items"] and not self._rules.items_needed:
                del node["items"]
