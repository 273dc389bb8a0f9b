"""Renders a schema for a target that accepts nearly all of JSON Schema: only rejected parts are rewritten."""

from __future__ import annotations

from typing import Any

from segue.wire.schema.changes import SchemaChanges
from segue.wire.schema.description import add_to_description, describe_keyword
from segue.wire.schema.document import ROOT, Document, find_dependents, format_pointer, iter_references
from segue.wire.schema.json_schema import ANNOTATIONS, SCHEMA_LISTS, SCHEMA_MAPS, SINGLE_SCHEMAS, Node, Schema, types_of
from segue.wire.schema.rules import SchemaRules

# These keywords may be a boolean in every draft.
_BOOLEAN_ALLOWED = frozenset({"additionalProperties", "unevaluatedProperties", "unevaluatedItems", "items"})
# A wider schema in these keywords makes the whole schema narrower.
_INVERTING = frozenset({"not", "if", "oneOf", "contains"})
_NOT_IN_DRAFT_7 = ("minContains", "maxContains", "unevaluatedItems", "unevaluatedProperties")


def render_lenient(document: Document, rules: SchemaRules, changes: SchemaChanges) -> Node:
    """Render the document for a lenient target.

    If a definition was widened, the document is rendered again without inverting keywords (`not`) that refer to it.
    """
    attempt = SchemaChanges()
    renderer = _Renderer(document, rules, attempt, frozenset())
    node = renderer.render()
    if renderer.widened:
        attempt = SchemaChanges()
        node = _Renderer(document, rules, attempt, find_dependents(document, renderer.widened)).render()
    changes.extend(attempt)
    return node


class _Renderer:
    def __init__(
        self, document: Document, rules: SchemaRules, changes: SchemaChanges, widened_definitions: frozenset[str]
    ) -> None:
        self._document = document
        self._rules = rules
        self._changes = changes
        self._defs_key = "definitions" if rules.draft == "7" else "$defs"
        self._pending_defs: list[str] = []
        self._seen_defs: set[str] = set()
        self._widened_definitions = widened_definitions
        self.widened: set[str] = set()

    def render(self) -> Node:
        root = self._render_definition(ROOT, "")
        defs: Node = {}
        for name in self._pending_defs:  # grows during iteration
            defs[name] = self._render_definition(name, f"$defs.{name}")
        used_defs = self._used_definitions(root, defs)
        return {**root, self._defs_key: used_defs} if used_defs else root

    def _used_definitions(self, root: Node, defs: Node) -> Node:
        """Return the definitions that are still referred to."""
        prefix = format_pointer("", key=self._defs_key)
        pointers = list(iter_references(root))
        seen = set(pointers)
        for pointer in pointers:  # grows during iteration
            new_pointers = set(iter_references(defs.get(pointer.removeprefix(prefix), {}))) - seen
            seen |= new_pointers
            pointers += sorted(new_pointers)
        return {name: node for name, node in defs.items() if f"{prefix}{name}" in seen}

    def _render_definition(self, name: str, path: str) -> Node:
        widened_before = self._changes.widened
        node = self._render_node(self._document.find(name), path)
        if self._changes.widened > widened_before:
            self.widened.add(name)
        return node

    def _render_node(self, schema: Schema, path: str) -> Node:
        if isinstance(schema, bool):
            return {} if schema else {"not": {}}
        widened_before = self._changes.widened
        node: Node = {}
        texts: list[str] = []
        for key, value in schema.items():
            widened_before_keyword = self._changes.widened
            location = f"{path}.{key}" if path else key
            node[key] = self._render_keyword(key, value, location)
            if key in _INVERTING and self._changes.widened > widened_before_keyword:
                node.pop(key)
        for key in schema.keys() & _INVERTING - node.keys():
            self._replace_inverting(node, key, schema, texts, path)
        if self._changes.widened > widened_before:
            for key in ("unevaluatedProperties", "unevaluatedItems"):
                self._move_to_description(node, key, schema, texts, path)
        if self._rules.items_required and "items" not in node and "array" in (types_of(node) or ()):
            node["items"] = {}
        if self._rules.draft == "7":
            self._convert_to_draft_7(node, schema, texts, path)
        return add_to_description(node, texts)

    def _render_keyword(self, key: str, value: Any, path: str) -> Any:
        if key == "$ref":
            if value in self._document.defs and value not in self._seen_defs:
                self._seen_defs.add(value)
                self._pending_defs.append(value)
            self._changes.widened += value in self._widened_definitions
            return format_pointer(value, key=self._defs_key)
        if key in SCHEMA_MAPS:
            return {name: self._render_node(subschema, f"{path}.{name}") for name, subschema in value.items()}
        if key in SCHEMA_LISTS:
            return [self._render_node(subschema, f"{path}[{index}]") for index, subschema in enumerate(value)]
        if key in SINGLE_SCHEMAS:
            return value if isinstance(value, bool) and key in _BOOLEAN_ALLOWED else self._render_node(value, path)
        return value

    def _replace_inverting(self, node: Node, key: str, schema: Node, texts: list[str], path: str) -> None:
        """Replace an inverting keyword whose schema was widened, which would narrow the whole schema."""
        if key == "oneOf":
            members = [self._render_node(member, path) for member in schema[key]]
            self._changes.add("`oneOf` replaced by `anyOf`", path)
            if "anyOf" in schema:
                node["allOf"] = [*node.get("allOf", []), {"anyOf": members}]
            else:
                node["anyOf"] = members
        elif key == "contains" and "maxContains" not in schema:
            node[key] = self._render_node(schema[key], path)
        else:
            self._changes.add(f"`{key}` moved to the description", path)
            texts.append(describe_keyword(key, schema[key]))
            if key == "if":
                texts += [
                    describe_keyword(part, schema[part])
                    for part in ("then", "else")
                    if node.pop(part, None) is not None
                ]

    def _move_to_description(self, node: Node, key: str, schema: Node, texts: list[str], path: str) -> None:
        if node.pop(key, True) is not True:
            texts.append(describe_keyword(key, schema[key]))
            self._changes.add(f"`{key}` moved to the description", path)

    def _convert_to_draft_7(self, node: Node, schema: Node, texts: list[str], path: str) -> None:
        if node.get("minContains") == 0:
            del node["minContains"]
            node.pop("contains", None)
        for key in _NOT_IN_DRAFT_7:
            self._move_to_description(node, key, schema, texts, path)
        if "prefixItems" in node:
            if "items" in node:
                node["additionalItems"] = node["items"]
            node["items"] = node.pop("prefixItems")
        dependencies: Node = {name: {"required": names} for name, names in node.pop("dependentRequired", {}).items()}
        for name, subschema in node.pop("dependentSchemas", {}).items():
            dependencies[name] = {"allOf": [dependencies[name], subschema]} if name in dependencies else subschema
        if dependencies:
            node["dependencies"] = dependencies
        if "$ref" in node and node.keys() - ANNOTATIONS - {"$ref"}:
            # Siblings of `$ref` are ignored in draft 7.
            node["allOf"] = [{"$ref": node.pop("$ref")}, *node.get("allOf", [])]
