"""Objects and arrays as a target takes them: which keys are declared and needed, what others may be, and items."""

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

FORCED_NULL = "a key that may be left out is there null instead"
OBJECT_PARTS = frozenset({"properties", "patternProperties", "additionalProperties", "required"})
ARRAY_PARTS = frozenset({"prefixItems", "items"})


class Containers:
    """`node` writes a schema inside; `properties` counts the keys that were declared."""

    def __init__(
        self, rules: SchemaRules, notes: Notes, keywords: Keywords, node: Callable[[Schema, Here], Node]
    ) -> None:
        self._rules = rules
        self._notes = notes
        self._keywords = keywords
        self._node = node
        self.properties = 0

    def put_object(self, node: Node, branch: Node, words: list[str], here: Here) -> None:
        said: dict[str, Schema] = branch.get("properties", {})
        rest: Schema | None = branch.get("additionalProperties")
        strange = [name for name in said if not self._spellable(name, here)]
        for name in strange:
            words.append(f"also takes {name}: {tell(said[name], 1)}")
            self._notes.add("a key that can't be declared there is told in words", here.inner(name).path)
        properties: Node = {}
        for name, schema in said.items():
            if schema is False:
                self._notes.add("a key that no value may have is told in words", here.inner(name).path)
                words.append(f"no {name}")
            elif name not in strange:
                properties[name] = self._node(schema, here.inner(name, objects=1))
        if "patternProperties" in branch:
            self._keywords.say("patternProperties", branch["patternProperties"], words, here)
        opened = bool(strange) or "patternProperties" in branch
        needed = self._needed(branch, properties, True if opened or rest is None else rest, words, here)
        self.properties += len(properties)
        if self._rules.all_required:
            needed = self._all_needed(properties, needed, here)
        empty = "properties" in branch and not here.path and not self._rules.openapi
        if properties or empty or self._rules.closed:
            node["properties"] = properties
        if needed or self._rules.all_required:
            node["required"] = needed
        self._put_rest(node, rest, words, here, opened=opened)

    def _spellable(self, name: str, here: Here) -> bool:
        wanted = self._rules.property_names
        if not self._rules.slash_in_defs and "/" in name and here.path.startswith("$defs."):
            return False
        return wanted is None or re.fullmatch(wanted, name) is not None

    def _needed(self, branch: Node, properties: Node, rest: Schema, words: list[str], here: Here) -> list[str]:
        """The required keys. Where each has to be declared, one that is not gets a declaration of its own."""
        needed: list[str] = branch.get("required", [])
        if not self._rules.required_declared and not self._rules.all_required:
            return needed
        kept: list[str] = []
        for name in needed:
            if name not in properties and self._spellable(name, here) and name not in branch.get("properties", {}):
                properties[name] = self._node(rest, here.inner(name, objects=1))
            if name in properties:
                kept.append(name)
            else:
                words.append(f"needs {name}")
        return kept

    def _all_needed(self, properties: Node, needed: list[str], here: Here) -> list[str]:
        for name in properties:
            if name not in needed:
                self._notes.add(FORCED_NULL, here.inner(name).path)
                properties[name] = nullable(properties[name])
        return list(properties)

    def _put_rest(self, node: Node, rest: Schema | None, words: list[str], here: Here, *, opened: bool) -> None:
        """What the other keys of an object may be."""
        if self._rules.closed:
            if opened or rest not in (None, False) or (rest is None and not node.get("properties") and here.path):
                raise UnfitError("an object in it has keys that are not named")
            if rest is None:
                self._notes.add("objects take no other keys", here.path)
            node["additionalProperties"] = False
        elif rest is not None and opened:
            self._keywords.say("additionalProperties", rest, words, here)
        elif rest is not None and "additionalProperties" in self._keywords.taken:
            node["additionalProperties"] = rest if isinstance(rest, bool) else self._node(rest, here.inner("*"))
        elif rest not in (None, True, {}):
            self._keywords.say("additionalProperties", rest, words, here)

    def put_array(self, node: Node, branch: Node, words: list[str], here: Here) -> None:
        prefix: list[Schema] = branch.get("prefixItems", [])
        items: Schema | None = branch.get("items")
        full = bool(prefix) and branch.get("maxItems", len(prefix) + 1) <= len(prefix)
        items = False if full else items
        if prefix and "prefixItems" in self._keywords.taken:
            node["prefixItems"] = [self._node(item, here.inner(f"[{i}]")) for i, item in enumerate(prefix)]
        elif prefix:
            self._keywords.say("prefixItems", prefix, words, here)
            if items is False and "maxItems" in self._keywords.taken:
                node["maxItems"] = min(len(prefix), branch.get("maxItems", len(prefix)))
            items = either([*prefix, True if items is None else items])
        if items is False:
            if not full:
                self._keywords.say("items", items, words, here)
            items = None
        if items is not None or self._rules.items_needed:
            node["items"] = self._node(True if items is None else items, here.inner("[]"))
            if not node["items"] and not self._rules.items_needed:
                del node["items"]
