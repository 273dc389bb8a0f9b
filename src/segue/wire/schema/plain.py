"""Renders a schema for a target that accepts nearly all of JSON Schema: only rejected parts are rewritten."""

from __future__ import annotations

import re
from typing import Any

from segue.wire.schema.document import ROOT, Document, leading_to, pointer_to, references
from segue.wire.schema.notes import Notes
from segue.wire.schema.rules import SchemaRules
from segue.wire.schema.vocabulary import ANNOTATIONS, IN_LISTS, IN_MAPS, SINGLE, Node, Schema, types_of
from segue.wire.schema.words import described, tell, told

__all__ = ["written_plain"]

# These keywords may be a boolean in every draft.
_FLAGS = frozenset({"additionalProperties", "unevaluatedProperties", "unevaluatedItems", "items"})
# A wider schema in these keywords makes the whole schema narrower.
_TURNED = frozenset({"not", "if", "oneOf", "contains"})
_NOT_IN_DRAFT_7 = ("minContains", "maxContains", "unevaluatedItems", "unevaluatedProperties")


def written_plain(document: Document, rules: SchemaRules, changes: Notes) -> Node:
    """If a definition was widened, render again, so that no inverting keyword such as `not` refers to it."""
    attempt = Notes()
    writer = _Writer(document, rules, attempt, frozenset())
    node = writer.written()
    if writer.weaker:
        attempt = Notes()
        node = _Writer(document, rules, attempt, leading_to(document, writer.weaker)).written()
    changes.extend(attempt)
    return node


class _Writer:
    def __init__(self, document: Document, rules: SchemaRules, changes: Notes, weak: frozenset[str]) -> None:
        self._document = document
        self._rules = rules
        self._changes = changes
        self._defs_key = "definitions" if rules.draft == "7" else "$defs"
        self._wanted: list[str] = []
        self._known: set[str] = set()
        self._weak = weak
        self.weaker: set[str] = set()

    def written(self) -> Node:
        root = self._definition(ROOT, "")
        defs: Node = {}
        for name in self._wanted:  # grows during iteration
            defs[name] = self._definition(name, f"$defs.{name}")
        kept = self._still_wanted(root, defs)
        return {**root, self._defs_key: kept} if kept else root

    def _still_wanted(self, root: Node, defs: Node) -> Node:
        """The definitions that are still referred to."""
        prefix = pointer_to("", key=self._defs_key)
        found = list(references(root))
        seen = set(found)
        for pointer in found:  # grows during iteration
            new = set(references(defs.get(pointer.removeprefix(prefix), {}))) - seen
            seen |= new
            found += sorted(new)
        return {name: node for name, node in defs.items() if f"{prefix}{name}" in seen}

    def _definition(self, name: str, path: str) -> Node:
        lost = self._changes.lost
        node = self._node(self._document.find(name), path)
        if self._changes.lost > lost:
            self.weaker.add(name)
        return node

    def _node(self, schema: Schema, path: str) -> Node:
        if isinstance(schema, bool):
            return {} if schema else {"not": {}}
        lost = self._changes.lost
        node: Node = {}
        texts: list[str] = []
        for key, value in schema.items():
            before = self._changes.lost
            location = f"{path}.{key}" if path else key
            node[key] = (
                self._properties(value, texts, location) if key == "properties" else self._keyword(key, value, location)
            )
            if key in _TURNED and self._changes.lost > before:
                node.pop(key)
        for key in schema.keys() & _TURNED - node.keys():
            self._turn(node, key, schema, texts, path)
        if len(node.get("properties", ())) < len(schema.get("properties", ())):
            node.pop("additionalProperties", None)
        if self._changes.lost > lost:
            for key in ("unevaluatedProperties", "unevaluatedItems"):
                self._tell(node, key, schema, texts, path)
        if self._rules.items_needed and "items" not in node and "array" in (types_of(node) or ()):
            node["items"] = {}
        if self._rules.draft == "7":
            self._draft_7(node, schema, texts, path)
        return described(node, texts)

    def _keyword(self, key: str, value: Any, path: str) -> Any:
        if key == "$ref":
            if value in self._document.defs and value not in self._known:
                self._known.add(value)
                self._wanted.append(value)
            self._changes.lost += value in self._weak
            return pointer_to(value, key=self._defs_key)
        if key in IN_MAPS:
            return {name: self._node(inner, f"{path}.{name}") for name, inner in value.items()}
        if key in IN_LISTS:
            return [self._node(inner, f"{path}[{index}]") for index, inner in enumerate(value)]
        if key in SINGLE:
            return value if isinstance(value, bool) and key in _FLAGS else self._node(value, path)
        return value

    def _turn(self, node: Node, key: str, schema: Node, texts: list[str], path: str) -> None:
        """Replace an inverting keyword whose schema was widened, which would narrow the whole schema."""
        if key == "oneOf":
            members = [self._node(member, path) for member in schema[key]]
            self._changes.add("`oneOf` replaced by `anyOf`", path)
            if "anyOf" in schema:
                node["allOf"] = [*node.get("allOf", []), {"anyOf": members}]
            else:
                node["anyOf"] = members
        elif key == "contains" and "maxContains" not in schema:
            node[key] = self._node(schema[key], path)
        else:
            self._changes.add(f"`{key}` moved to the description", path)
            texts.append(told(key, schema[key]))
            if key == "if":
                texts += [told(part, schema[part]) for part in ("then", "else") if node.pop(part, None) is not None]

    def _tell(self, node: Node, key: str, schema: Node, texts: list[str], path: str) -> None:
        if node.pop(key, True) is not True:
            texts.append(told(key, schema[key]))
            self._changes.add(f"`{key}` moved to the description", path)

    def _properties(self, properties: dict[str, Schema], texts: list[str], path: str) -> Node:
        """Property names that the target rejects move to the description."""
        wanted = self._rules.property_names
        kept: Node = {}
        for name, inner in properties.items():
            if wanted is None or re.fullmatch(wanted, name):
                kept[name] = self._node(inner, f"{path}.{name}")
            else:
                texts.append(f"also takes {name}: {tell(inner, 1)}")
                self._changes.add("a property name that the target rejects moved to the description", f"{path}.{name}")
        return kept

    def _draft_7(self, node: Node, schema: Node, texts: list[str], path: str) -> None:
        if node.get("minContains") == 0:
            del node["minContains"]
            node.pop("contains", None)
        for key in _NOT_IN_DRAFT_7:
            self._tell(node, key, schema, texts, path)
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
            # Siblings of `$ref` are ignored in draft 7.
            node["allOf"] = [{"$ref": node.pop("$ref")}, *node.get("allOf", [])]
