"""Renders objects and arrays: declared and required properties, other keys, items."""

from __future__ import annotations

import re
from collections.abc import Callable

from segue.wire.schema.changes import FORCED_NULL_CHANGE, Location, SchemaChanges
from segue.wire.schema.description import describe_schema
from segue.wire.schema.json_schema import Node, Schema, add_null
from segue.wire.schema.keywords import KeywordRenderer
from segue.wire.schema.merge import merge_any
from segue.wire.schema.rules import SchemaRules, UnsupportedSchemaError

OBJECT_PARTS = frozenset({"properties", "patternProperties", "additionalProperties", "required"})
ARRAY_PARTS = frozenset({"prefixItems", "items"})


class ContainerRenderer:
    """`render_node` renders a subschema; `property_count` counts the declared properties."""

    def __init__(
        self,
        rules: SchemaRules,
        changes: SchemaChanges,
        keywords: KeywordRenderer,
        render_node: Callable[[Schema, Location], Node],
    ) -> None:
        self._rules = rules
        self._changes = changes
        self._keywords = keywords
        self._render_node = render_node
        self.property_count = 0

    def add_object(self, node: Node, branch: Node, texts: list[str], location: Location) -> None:
        declared: dict[str, Schema] = branch.get("properties", {})
        additional: Schema | None = branch.get("additionalProperties")
        rejected = [name for name in declared if not self._can_declare(name, location)]
        for name in rejected:
            texts.append(f"also takes {name}: {describe_schema(declared[name], 1)}")
            self._changes.add(
                "a property name that the target rejects moved to the description", location.child(name).path
            )
        properties: Node = {}
        for name, schema in declared.items():
            if schema is False:
                self._changes.add("a forbidden property moved to the description", location.child(name).path)
                texts.append(f"no {name}")
            elif name not in rejected:
                properties[name] = self._render_node(schema, location.child(name, objects=1))
        if "patternProperties" in branch:
            self._keywords.describe("patternProperties", branch["patternProperties"], texts, location)
        is_open = bool(rejected) or "patternProperties" in branch
        required = self._required_keys(
            branch, properties, True if is_open or additional is None else additional, texts, location
        )
        self.property_count += len(properties)
        if self._rules.all_required:
            required = self._require_all(properties, required, location)
        empty = "properties" in branch and not location.path and not self._rules.openapi
        if properties or empty or self._rules.closed_objects:
            node["properties"] = properties
        if required or self._rules.all_required:
            node["required"] = required
        self._add_additional_properties(node, additional, texts, location, is_open=is_open)

    def _can_declare(self, name: str, location: Location) -> bool:
        pattern = self._rules.property_name_pattern
        if not self._rules.slash_in_defs and "/" in name and location.path.startswith("$defs."):
            return False
        return pattern is None or re.fullmatch(pattern, name) is not None

    def _required_keys(
        self, branch: Node, properties: Node, additional: Schema, texts: list[str], location: Location
    ) -> list[str]:
        """Return the required properties. Where each has to be declared, undeclared ones get a declaration."""
        required: list[str] = branch.get("required", [])
        if not self._rules.required_must_be_declared and not self._rules.all_required:
            return required
        kept: list[str] = []
        for name in required:
            if (
                name not in properties
                and self._can_declare(name, location)
                and name not in branch.get("properties", {})
            ):
                properties[name] = self._render_node(additional, location.child(name, objects=1))
            if name in properties:
                kept.append(name)
            else:
                texts.append(f"needs {name}")
        return kept

    def _require_all(self, properties: Node, required: list[str], location: Location) -> list[str]:
        for name in properties:
            if name not in required:
                self._changes.add(FORCED_NULL_CHANGE, location.child(name).path)
                properties[name] = add_null(properties[name])
        return list(properties)

    def _add_additional_properties(
        self, node: Node, additional: Schema | None, texts: list[str], location: Location, *, is_open: bool
    ) -> None:
        """Render the schema of undeclared keys."""
        if self._rules.closed_objects:
            if (
                is_open
                or additional not in (None, False)
                or (additional is None and not node.get("properties") and location.path)
            ):
                raise UnsupportedSchemaError("an object in the schema allows undeclared properties")
            if additional is None:
                self._changes.add("undeclared properties forbidden", location.path)
            node["additionalProperties"] = False
        elif additional is not None and is_open:
            self._keywords.describe("additionalProperties", additional, texts, location)
        elif additional is not None and "additionalProperties" in self._keywords.accepted:
            node["additionalProperties"] = (
                additional if isinstance(additional, bool) else self._render_node(additional, location.child("*"))
            )
        elif additional not in (None, True, {}):
            self._keywords.describe("additionalProperties", additional, texts, location)

    def add_array(self, node: Node, branch: Node, texts: list[str], location: Location) -> None:
        prefix: list[Schema] = branch.get("prefixItems", [])
        items: Schema | None = branch.get("items")
        has_no_more_items = bool(prefix) and branch.get("maxItems", len(prefix) + 1) <= len(prefix)
        items = False if has_no_more_items else items
        if prefix and "prefixItems" in self._keywords.accepted:
            node["prefixItems"] = [self._render_node(item, location.child(f"[{i}]")) for i, item in enumerate(prefix)]
        elif prefix:
            self._keywords.describe("prefixItems", prefix, texts, location)
            if items is False and "maxItems" in self._keywords.accepted:
                node["maxItems"] = min(len(prefix), branch.get("maxItems", len(prefix)))
            items = merge_any([*prefix, True if items is None else items])
        if items is False:
            if not has_no_more_items:
                self._keywords.describe("items", items, texts, location)
            items = None
        if items is not None or self._rules.items_required:
            node["items"] = self._render_node(True if items is None else items, location.child("[]"))
            if not node["items"] and not self._rules.items_required:
                del node["items"]
