"""Merges schemas: «and» and «or» of nodes, so that a combination can become one node.

A merged node accepts every value that the combination accepted, and possibly more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from segue.wire.schema.changes import SchemaChanges
from segue.wire.schema.description import add_to_description, describe_keyword, describe_schema
from segue.wire.schema.document import Document
from segue.wire.schema.json_schema import ANNOTATIONS, COMBINATORS, Node, Schema, is_equal, types_of, unique_values

__all__ = ["Merger", "enum_values", "merge_any", "merge_objects"]

_MAX_BRANCHES = 24
_MAX_TRAIL = 40
_CONDITION = ("if", "then", "else")
_CONTAINS = ("contains", "minContains", "maxContains")
_OBJECT_PARTS = frozenset({"properties", "patternProperties", "additionalProperties"})
_ARRAY_PARTS = frozenset({"prefixItems", "items"})
_UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")


class Merger:
    """Expands combinations into alternatives without combinators, with a budget proportional to the document."""

    def __init__(self, document: Document, changes: SchemaChanges) -> None:
        self._find = document.find
        self._changes = changes
        self._work = 2000 + 4 * document.size

    def expand_branches(self, schema: Schema, path: str, trail: tuple[str, ...] = ()) -> list[Node]:
        """Nodes of which at least one accepts each value that the schema accepts."""
        if isinstance(schema, bool):
            return [{}] if schema else []
        self._work -= 1
        if self._work < 0 or len(trail) > _MAX_TRAIL:
            self._changes.add("too many subschemas to merge: any value is accepted there", path)
            return [{}]
        if not schema.keys() & COMBINATORS:
            return [schema]
        own = {key: value for key, value in schema.items() if key not in COMBINATORS}
        for key in _UNEVALUATED:
            if own.pop(key, True) is not True:
                own = add_to_description(own, [describe_keyword(key, schema[key])])
                self._changes.add(f"`{key}` moved to the description", path)
        found = [own]
        for alternatives, inner in self._conjuncts(schema, path, trail):
            found = self._cross(found, alternatives, path, inner_first=inner)
        return found

    def _conjuncts(self, schema: Node, path: str, trail: tuple[str, ...]) -> Iterator[tuple[list[Node], bool]]:
        """Each conjunct as its alternatives, and whether its annotations have priority."""
        name = schema.get("$ref")
        if name is not None and name not in trail:
            yield self.expand_branches(self._find(name), path, (*trail, name)), False
        for member in schema.get("allOf", ()):
            yield self.expand_branches(member, path, (*trail, "")), False
        for key in ("anyOf", "oneOf"):
            if key in schema:
                nested = [self.expand_branches(member, path, (*trail, "")) for member in schema[key]]
                yield [branch for group in nested for branch in group], True

    def _cross(self, found: list[Node], others: list[Node], path: str, *, inner_first: bool) -> list[Node]:
        if len(found) * len(others) > _MAX_BRANCHES and len(others) > 1 and len(found) > 1:
            self._changes.add("too many combinations: some moved to the description", path)
            text = " or ".join(describe_schema(other, 1) for other in others[:4])
            return [add_to_description(node, [text]) for node in found]
        crossed: list[Node] = []
        for one in found:
            for other in others:
                both = self._intersect(one, other, path)
                if both is not None:
                    crossed.append({**both, **_annotations(other)} if inner_first else both)
        return unique_values(crossed)

    # -------------------------------------------------------------------------------------------------------- and

    def _intersect(self, one: Node, other: Node, path: str) -> Node | None:
        """A node for the values that both accept; None if there are none."""
        if not one or not other:
            return one or other
        types = _common_types(one, other)
        values = _common_values(one, other)
        if types == [] or values == []:
            return None
        merged = {key: value for key, value in one.items() if key not in ("type", "enum", "const")}
        if types is not None:
            merged = {"type": types if len(types) > 1 else types[0], **merged}
        if values is not None:
            merged |= {"enum": values}
        for key, value in other.items():
            if key in ("type", "enum", "const") or key in _OBJECT_PARTS or key in _ARRAY_PARTS:
                continue
            if key not in merged:
                self._add_keyword(merged, key, value, one)
            elif not is_equal(merged[key], value):
                self._combine_keyword(merged, key, value, path)
        _merge_object_parts(merged, one, other)
        _merge_array_parts(merged, one, other)
        return merged

    def _add_keyword(self, merged: Node, key: str, value: Any, one: Node) -> None:
        """Add a keyword of the other node; groups of keywords are added together or not at all."""
        for group in (_CONDITION, _CONTAINS):
            if key in group and any(name in one for name in group):
                return
        merged[key] = value

    def _combine_keyword(self, merged: Node, key: str, value: Any, path: str) -> None:
        mine: Any = merged[key]
        if key in ANNOTATIONS or key in _UNEVALUATED:
            return
        if key in _LOWER_BOUNDS:
            merged[key] = max(mine, value)
        elif key in _UPPER_BOUNDS:
            merged[key] = min(mine, value)
        elif key == "required":
            merged[key] = [*mine, *(name for name in value if name not in mine)]
        elif key == "uniqueItems":
            merged[key] = True
        elif key == "not":
            merged[key] = {"anyOf": [mine, value]}
        elif key == "propertyNames":
            merged[key] = _all_of(mine, value)
        elif key == "dependentSchemas":
            merged[key] = {**mine, **{name: _all_of(mine.get(name, True), schema) for name, schema in value.items()}}
        elif key == "dependentRequired":
            merged[key] = {
                **mine,
                **{name: unique_values([*mine.get(name, []), *names]) for name, names in value.items()},
            }
        elif key == "multipleOf" and isinstance(mine, int) and isinstance(value, int) and value % mine == 0:
            merged[key] = value
        elif key in _NOT_COMBINABLE:
            self._changes.add(f"a second `{key}` moved to the description", path)
            merged |= add_to_description(merged, [describe_keyword(key, value)])


_LOWER_BOUNDS = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
_UPPER_BOUNDS = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})
_NOT_COMBINABLE = frozenset({"pattern", "format", "multipleOf", *_CONDITION, *_CONTAINS})


def _annotations(node: Node) -> Node:
    return {key: value for key, value in node.items() if key in ANNOTATIONS}


def _common_types(one: Node, other: Node) -> list[str] | None:
    mine, theirs = types_of(one), types_of(other)
    if mine is None or theirs is None:
        return mine if theirs is None else theirs
    kept = [kind for kind in mine if kind in theirs or (kind == "integer" and "number" in theirs)]
    if "number" in mine and "integer" in theirs and "number" not in theirs:
        kept.append("integer")
    return list(dict.fromkeys(kept))


def enum_values(node: Node) -> list[Any] | None:
    lists = [[node["const"]]] if "const" in node else []
    lists += [node["enum"]] if "enum" in node else []
    if len(lists) == 2:
        return [value for value in lists[0] if any(is_equal(value, other) for other in lists[1])]
    return lists[0] if lists else None


def _common_values(one: Node, other: Node) -> list[Any] | None:
    mine, theirs = enum_values(one), enum_values(other)
    if mine is None or theirs is None:
        return mine if theirs is None else theirs
    return [value for value in mine if any(is_equal(value, other_value) for other_value in theirs)]


def _all_of(one: Schema, other: Schema) -> Schema:
    if one is False or other is False:
        return False
    if one in (True, {}) or other in (True, {}) or is_equal(one, other):
        return other if one in (True, {}) else one
    return {"allOf": [one, other]}


def _property_schema(node: Node, key: str) -> Schema:
    """The schema that a node certainly requires of a property."""
    properties = cast("dict[str, Schema]", node.get("properties", {}))
    if key in properties:
        return properties[key]
    return True if "patternProperties" in node else node.get("additionalProperties", True)


def _merge_object_parts(merged: Node, one: Node, other: Node) -> None:
    if not _OBJECT_PARTS & other.keys():
        return
    names = dict.fromkeys([*one.get("properties", ()), *other.get("properties", ())])
    if names:
        merged["properties"] = {
            name: _all_of(_property_schema(one, name), _property_schema(other, name)) for name in names
        }
    patterns = dict(one.get("patternProperties", {}))
    for pattern, schema in other.get("patternProperties", {}).items():
        patterns[pattern] = _all_of(patterns.get(pattern, True), schema)
    if patterns:
        merged["patternProperties"] = patterns
    if "additionalProperties" in other or "additionalProperties" in one:
        rest = _all_of(one.get("additionalProperties", True), other.get("additionalProperties", True))
        merged["additionalProperties"] = rest


def _merge_array_parts(merged: Node, one: Node, other: Node) -> None:
    if not _ARRAY_PARTS & other.keys():
        return

    def item(node: Node, index: int) -> Schema:
        prefix = cast("list[Schema]", node.get("prefixItems", []))
        return prefix[index] if index < len(prefix) else node.get("items", True)

    longest = max(len(one.get("prefixItems", ())), len(other.get("prefixItems", ())))
    if longest:
        merged["prefixItems"] = [_all_of(item(one, index), item(other, index)) for index in range(longest)]
    if "items" in one or "items" in other:
        merged["items"] = _all_of(one.get("items", True), other.get("items", True))


# ------------------------------------------------------------------------------------------------------------------ or


def merge_any(schemas: list[Schema]) -> Schema:
    """One schema for the values that any of these accepts."""
    kept = cast("list[Schema]", unique_values([schema for schema in schemas if schema is not False]))
    if not kept:
        return False
    if any(schema in (True, {}) for schema in kept):
        return True
    nodes = [cast("Node", schema) for schema in kept]
    if len(nodes) > 1 and all(node.keys() & {"enum", "const"} for node in nodes):
        plain = all(node.keys() <= {"enum", "const", "type", *ANNOTATIONS} for node in nodes)
        types = unique_values([node.get("type") for node in nodes])
        if plain and len(types) == 1:
            values = unique_values([value for node in nodes for value in enum_values(node) or []])
            kind = {} if types[0] is None else {"type": types[0]}
            return {**_annotations(nodes[0]), **kind, "enum": values}
    return kept[0] if len(kept) == 1 else {"anyOf": kept}


def merge_objects(nodes: list[Node]) -> Node:
    """One object schema for the values that any of these object schemas accepts."""
    if len(nodes) == 1:
        return nodes[0]
    first = nodes[0]
    merged: Node = {"type": "object"}
    # Keywords equal in all of them stay, except those that depend on other keywords.
    for key, value in first.items():
        if key not in _MERGED_SEPARATELY and all(key in node and is_equal(node[key], value) for node in nodes[1:]):
            merged[key] = value
    names = dict.fromkeys(name for node in nodes for name in node.get("properties", ()))
    merged["properties"] = {name: _merge_property(nodes, name) for name in names}
    required = [name for name in first.get("required", ()) if all(name in node.get("required", ()) for node in nodes)]
    if required:
        merged["required"] = required
    for key, choose in (("minProperties", min), ("maxProperties", max)):
        if all(key in node for node in nodes):
            merged[key] = choose(node[key] for node in nodes)
    patterned = "patternProperties" not in merged and any("patternProperties" in node for node in nodes)
    rest = True if patterned else merge_any([node.get("additionalProperties", True) for node in nodes])
    if rest is not True:
        merged["additionalProperties"] = rest
    return merged


_MERGED_SEPARATELY = frozenset(
    {"type", "properties", "required", "minProperties", "maxProperties", "additionalProperties", *_UNEVALUATED}
)


def _merge_property(nodes: list[Node], name: str) -> Schema:
    """A property of several objects. If one of them accepts any value, the schemas move to the description."""
    schemas = [_property_schema(node, name) for node in nodes]
    joined = merge_any(schemas)
    if joined is not True:
        return joined
    declared = [cast("Node", schema) for schema in unique_values(schemas) if isinstance(schema, dict) and schema]
    outer = _annotations(declared[0]) if declared else {}
    bare = [{key: value for key, value in node.items() if key not in ANNOTATIONS} for node in declared]
    texts = [" or ".join(describe_schema(node, 1) for node in bare[:4])] if any(bare) else []
    return add_to_description(outer, texts) or True
