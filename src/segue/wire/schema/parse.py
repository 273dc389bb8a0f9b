"""Parses a JSON Schema of any draft into 2020-12 with resolved references.

Drafts 4 to 2019-09, OpenAPI's `nullable` and upper-case types, and proto JSON's quoted numbers are accepted; an invalid
keyword is dropped, which only widens the schema. References of every kind (pointers, anchors, embedded `$id`s) become
names of definitions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, cast
from urllib.parse import unquote, urldefrag, urljoin

from msgspec import Struct
from msgspec.structs import replace

from segue.wire.schema.changes import SchemaChanges
from segue.wire.schema.document import ROOT, Document, list_subschemas
from segue.wire.schema.json_schema import (
    ANNOTATIONS,
    SCHEMA_LISTS,
    SCHEMA_MAPS,
    SINGLE_SCHEMAS,
    Node,
    Schema,
    is_schema,
    types_of,
)

_MAX_DEPTH = 64
_KNOWN_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
# Before draft 2019-09 siblings of `$ref` are ignored.
_LONE_REF_DRAFTS = re.compile(r"json-schema\.org/draft-0[3-7]/")
_BARE_ID_DRAFTS = re.compile(r"json-schema\.org/draft-0[34]/")
_COUNTS = frozenset(
    {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains"}
)
_IGNORED = frozenset(
    {"$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$comment"}
    | {"$defs", "definitions", "nullable", "propertyOrdering", "discriminator", "xml", "externalDocs"}
)
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
# A wider schema in these keywords makes the whole schema narrower.
_INVERTING = frozenset({"not", "if", "oneOf", "contains"})


def parse_schema_document(raw: Mapping[str, Any], changes: SchemaChanges) -> Document:
    return _Parser(dict(raw), changes).parse()


class NodeParser:
    """Parses single nodes, which have no references."""

    def __init__(self, changes: SchemaChanges) -> None:
        self._parser = _Parser({}, changes)

    def parse(self, raw: Node, path: str) -> Schema:
        return self._parser.parse_node(raw, "", path, 0)


class _Location(Struct, frozen=True):
    """A node of the raw document, and the base URI of its references."""

    node: Any
    base: str


class _KeywordContext(Struct, frozen=True):
    """The node that holds a keyword, and its place."""

    raw: Node
    base: str
    path: str
    depth: int


class _Parser:
    def __init__(self, raw: Node, changes: SchemaChanges) -> None:
        self._raw = raw
        self._changes = changes
        draft = str(raw.get("$schema", ""))
        self._ref_excludes_siblings = bool(_LONE_REF_DRAFTS.search(draft))
        self._id_key = "id" if _BARE_ID_DRAFTS.search(draft) else "$id"
        # Empty until the first reference is resolved.
        self._resources: dict[str, Node] = {}
        self._anchors: dict[tuple[str, str], Node] = {}
        self._dynamic: dict[str, list[_Location]] = {}
        self._root_base = self._base_of(raw, "")
        self._names: dict[int, str] = {id(raw): ROOT}
        self._pending: list[tuple[str, _Location]] = []
        self._used_names: set[str] = {ROOT}
        self._size = 0
        self._keyword_parsers: dict[str, Callable[[Node, str, Any, _KeywordContext], None]] = {
            "type": self._parse_type,
            "items": self._parse_items,
            "additionalItems": self._parse_items,
            "exclusiveMinimum": self._parse_exclusive_bound,
            "exclusiveMaximum": self._parse_exclusive_bound,
            "minimum": self._parse_bound,
            "maximum": self._parse_bound,
            "example": self._parse_example,
            "dependencies": self._parse_dependencies,
        }

    def parse(self) -> Document:
        root = self.parse_node(self._raw, self._root_base, "", 0)
        defs: dict[str, Schema] = {}
        while self._pending:
            name, location = self._pending.pop(0)
            defs[name] = self.parse_node(location.node, location.base, f"$defs.{name}", 0)
        return Document(root, defs, self._size)

    # ------------------------------------------------------------------------------------------------- references

    def _base_of(self, node: Node, base: str) -> str:
        uri = node.get(self._id_key)
        if not isinstance(uri, str) or uri.startswith("#"):
            return base
        return _join_uri(base, urldefrag(uri).url)

    def _index_resources(self) -> None:
        """Index embedded documents and anchors; iterative, since a document may be deep."""
        self._resources[self._root_base] = self._raw
        open_nodes: list[tuple[Node, str]] = [(self._raw, self._root_base)]
        while open_nodes:
            node, base = open_nodes.pop()
            node_base = self._base_of(node, base)
            if node_base != base:
                self._resources.setdefault(node_base, node)
            plain, dynamic = node.get("$anchor"), node.get("$dynamicAnchor")
            node_id = node.get(self._id_key)
            if isinstance(node_id, str) and node_id.startswith("#") and len(node_id) > 1:
                self._anchors.setdefault((node_base, node_id[1:]), node)
            for anchor in (plain, dynamic):
                if isinstance(anchor, str):
                    self._anchors.setdefault((node_base, anchor), node)
            if isinstance(dynamic, str):
                self._dynamic.setdefault(dynamic, []).append(_Location(node, node_base))
            for key, value in node.items():
                open_nodes += [
                    (subschema, node_base) for subschema in list_subschemas(key, value) if isinstance(subschema, dict)
                ]

    def _resolve(self, key: str, ref: str, base: str) -> _Location | None:
        if not self._resources:
            self._index_resources()
        uri, fragment = urldefrag(ref)
        if key != "$ref":
            dynamic_targets = self._dynamic.get(fragment, [])
            # The target depends on the dynamic scope, which is unknown here.
            if len(dynamic_targets) > 1 or (key == "$recursiveRef" and base != self._root_base):
                return None
        resource = _join_uri(base, uri) if uri else base
        document = self._resources.get(resource)
        if document is None:
            return None
        if not fragment or fragment.startswith("/"):
            # Pointers in embedded documents often start from the outermost document.
            return self._resolve_pointer(document, resource, fragment) or self._resolve_pointer(
                self._raw, self._root_base, fragment
            )
        anchored = self._anchors.get((resource, unquote(fragment)))
        return None if anchored is None else _Location(anchored, self._base_of(anchored, resource))

    def _resolve_pointer(self, document: Any, base: str, pointer: str) -> _Location | None:
        node = document
        for token in pointer.split("/")[1:]:
            step = unquote(token).replace("~1", "/").replace("~0", "~")
            if isinstance(node, dict) and step in node:
                node = cast("Node", node)[step]
            elif isinstance(node, list) and step.isdigit() and int(step) < len(cast("list[Any]", node)):
                node = cast("list[Any]", node)[int(step)]
            else:
                return None
            if isinstance(node, dict):
                base = self._base_of(cast("Node", node), base)
        return _Location(node, base) if is_schema(cast("object", node)) else None

    def _parse_reference(self, key: str, ref: str, base: str, path: str) -> Schema:
        location = self._resolve(key, ref, base)
        if location is None:
            self._changes.add(f"unresolvable reference {ref}: any value is accepted there", path)
            return True
        if isinstance(location.node, bool):
            return location.node
        name = self._names.get(id(location.node))
        if name is None:
            name = self._new_name(ref)
            self._names[id(location.node)] = name
            self._pending.append((name, location))
        return {"$ref": name}

    def _new_name(self, ref: str) -> str:
        stem = re.sub(r"[^A-Za-z0-9_.-]", "_", unquote(re.split(r"[/#]", ref.rstrip("/#"))[-1])) or "part"
        name, count = stem, 1
        while name in self._used_names:
            count += 1
            name = f"{stem}_{count}"
        self._used_names.add(name)
        return name

    # ------------------------------------------------------------------------------------------------------ nodes

    def parse_node(self, raw: Any, base: str, path: str, depth: int) -> Schema:
        self._size += 1
        if isinstance(raw, bool):
            return raw
        if not isinstance(raw, dict):
            self._changes.add("invalid subschema dropped", path)
            return True
        if depth > _MAX_DEPTH:
            self._changes.add(f"nested deeper than {_MAX_DEPTH} levels: any value is accepted there", path)
            return True
        raw = cast("Node", raw)
        context = _KeywordContext(raw, self._base_of(raw, base), path, depth)
        widened_before = self._changes.widened
        node: Node = {}
        alone = self._ref_excludes_siblings and isinstance(raw.get("$ref"), str)
        for key, value in raw.items():
            if key not in _REFERENCES and (not alone or key in ANNOTATIONS):
                self._parse_keyword(node, key, value, context)
        for key in _REFERENCES:
            if key in raw:
                self._add_reference(node, key, raw[key], context)
        if self._changes.widened > widened_before:
            # They depend on the other keywords.
            node.pop("unevaluatedProperties", None)
            node.pop("unevaluatedItems", None)
        if node.get("not") in (True, {}):
            return False
        return _add_null(node) if raw.get("nullable") is True else node

    def _add_reference(self, node: Node, key: str, value: Any, at: _KeywordContext) -> None:
        if not self._check_valid(key, isinstance(value, str), at):
            return
        target = self._parse_reference(key, value, at.base, at.path)
        if isinstance(target, dict) and "$ref" not in node:
            node["$ref"] = target["$ref"]
        elif target is not True:
            node["allOf"] = [*node.get("allOf", []), target]

    def _parse_keyword(self, node: Node, key: str, value: Any, at: _KeywordContext) -> None:
        """Convert one keyword other than a reference to 2020-12."""
        widened_before = self._changes.widened
        at = replace(at, path=f"{at.path}.{key}" if at.path else key)
        special = self._keyword_parsers.get(key)
        if special is not None:
            special(node, key, value, at)
        elif key in SCHEMA_MAPS or key in SCHEMA_LISTS or key in SINGLE_SCHEMAS:
            self._parse_subschemas(node, key, value, at)
        elif key not in _IGNORED:
            self._parse_plain(node, key, value, at)
        if key in _INVERTING and self._changes.widened > widened_before:
            node.pop(key, None)

    def _check_valid(self, key: str, valid: bool, at: _KeywordContext) -> bool:
        if not valid:
            self._changes.add(f"invalid `{key}` dropped", at.path)
        return valid

    def _parse_inner(self, raw: Any, at: _KeywordContext, step: str = "") -> Schema:
        return self.parse_node(raw, at.base, f"{at.path}{step}", at.depth + 1)

    def _parse_subschemas(self, node: Node, key: str, value: Any, at: _KeywordContext) -> None:
        if key in SCHEMA_MAPS:
            if self._check_valid(key, isinstance(value, dict), at):
                ordered = _order_properties(value, at.raw.get("propertyOrdering") if key == "properties" else None)
                node[key] = {name: self._parse_inner(subschema, at, f".{name}") for name, subschema in ordered}
        elif key in SCHEMA_LISTS:
            members = cast("list[Any]", value) if isinstance(value, list) else []
            if self._check_valid(key, bool(members), at):
                node[key] = [self._parse_inner(subschema, at, f"[{index}]") for index, subschema in enumerate(members)]
        elif self._check_valid(key, is_schema(value), at):
            node[key] = self._parse_inner(value, at)

    def _parse_plain(self, node: Node, key: str, value: Any, at: _KeywordContext) -> None:
        if key in _COUNTS and isinstance(value, str) and value.isdigit():
            value = int(value)
        check = _CHECKS.get(key)
        if check is None or self._check_valid(key, check(value), at):
            node[key] = int(value) if key in _COUNTS else list(dict.fromkeys(value)) if key == "required" else value

    def _parse_type(self, node: Node, key: str, value: Any, at: _KeywordContext) -> None:
        values = cast("list[Any]", value) if isinstance(value, list) else [value]
        types = list(dict.fromkeys(kind.lower() if isinstance(kind, str) else "" for kind in values))
        if self._check_valid(key, bool(types) and all(kind in _KNOWN_TYPES for kind in types), at):
            node["type"] = types if isinstance(value, list) else types[0]

    def _parse_items(self, node: Node, key: str, value: Any, at: _KeywordContext) -> None:
        tuples = isinstance(at.raw.get("items"), list)
        if isinstance(value, list) and key == "items":
            prefix = [self._parse_inner(item, at, f"[{index}]") for index, item in enumerate(cast("list[Any]", value))]
            if prefix and "prefixItems" not in at.raw:
                node["prefixItems"] = prefix
        elif key == ("additionalItems" if tuples else "items"):
            self._parse_subschemas(node, "items", value, at)

    def _parse_exclusive_bound(self, node: Node, key: str, value: Any, at: _KeywordContext) -> None:
        """Convert draft 4's `exclusiveMinimum: true`, which takes the value of `minimum`."""
        if not isinstance(value, bool):
            self._parse_plain(node, key, value, at)
        elif value and _is_number(bound := at.raw.get(key.removeprefix("exclusive").lower())):
            node[key] = bound

    def _parse_bound(self, node: Node, key: str, value: Any, at: _KeywordContext) -> None:
        if at.raw.get(f"exclusive{key.capitalize()}") is not True:
            self._parse_plain(node, key, value, at)

    def _parse_example(self, node: Node, _key: str, value: Any, _at: _KeywordContext) -> None:
        node.setdefault("examples", [value])

    def _parse_dependencies(self, node: Node, key: str, value: Any, at: _KeywordContext) -> None:
        if not self._check_valid(key, isinstance(value, dict), at):
            return
        for name, dependency in cast("Node", value).items():
            if is_schema(dependency):
                node.setdefault("dependentSchemas", {})[name] = self._parse_inner(dependency, at, f".{name}")
            elif self._check_valid(key, _is_name_list(dependency), at):
                node.setdefault("dependentRequired", {})[name] = dependency


def _join_uri(base: str, uri: str) -> str:
    try:
        return urljoin(base, uri)
    except ValueError:
        return uri


def _order_properties(properties: Node, order: Any) -> list[tuple[str, Any]]:
    """Order the properties by Gemini's `propertyOrdering`."""
    first = [name for name in cast("list[Any]", order) if isinstance(name, str)] if isinstance(order, list) else []
    names = dict.fromkeys([name for name in first if name in properties] + list(properties))
    return [(name, properties[name]) for name in names]


def _add_null(node: Node) -> Node:
    """Convert OpenAPI's `nullable: true`."""
    if "type" in node and not node.keys() & {"const", "allOf", "anyOf", "oneOf", "not", "$ref"}:
        types = types_of(node) or []
        node["type"] = types if "null" in types else [*types, "null"]
        if "enum" in node and None not in node["enum"]:
            node["enum"] = [*node["enum"], None]
        return node
    if not node.keys() - ANNOTATIONS:
        return node
    annotations = {key: value for key, value in node.items() if key in ANNOTATIONS}
    constraints = {key: value for key, value in node.items() if key not in ANNOTATIONS}
    return {**annotations, "anyOf": [constraints, {"type": "null"}]}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return _is_number(value) and cast("float", value) >= 0 and int(cast("float", value)) == value


def _is_string(value: object) -> bool:
    return isinstance(value, str)


def _is_boolean(value: object) -> bool:
    return isinstance(value, bool)


def _is_name_list(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in cast("list[Any]", value))


def _is_name_map(value: object) -> bool:
    return isinstance(value, dict) and all(_is_name_list(names) for names in cast("Node", value).values())


_CHECKS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(_COUNTS, _is_count),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    **dict.fromkeys(("pattern", "format", "title", "description", "contentEncoding", "contentMediaType"), _is_string),
    **dict.fromkeys(("uniqueItems", "deprecated", "readOnly", "writeOnly"), _is_boolean),
    "multipleOf": lambda value: _is_number(value) and value > 0,
    "required": _is_name_list,
    "dependentRequired": _is_name_map,
    "enum": lambda value: isinstance(value, list) and value != [],
    "examples": lambda value: isinstance(value, list),
}
