"""Merges the members of `allOf`, `anyOf` and `oneOf` into one node.

A merged node accepts every value that the combination accepted, and possibly more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from segue.wire.schema.changes import SchemaChanges
from segue.wire.schema.description import add_to_description, describe_keyword, describe_schema
from segue.wire.schema.document import Document
from segue.wire.schema.json_schema import ANNOTATIONS, COMBINATORS, Node, Schema, is_equal, types_of, unique_values

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
        """Return nodes of which at least one accepts each value that the schema accepts."""
        if isinstance(schema, bool):
            return [{}] if schema else []
        self._work -= 1
        if self._work < 0 or len(trail) > _MAX_TRAIL:
            self._changes.add("too many subschemas to merge: any value is accepted there", path)
            return [{}]
        if not schema.keys() & COMBINATORS:
            return [schema]
        node = {key: value for key, value in schema.items() if key not in COMBINATORS}
        for key in _UNEVALUATED:
            if node.pop(key, True) is not True:
                node = add_to_description(node, [describe_keyword(key, schema[key])])
                self._changes.add(f"`{key}` moved to the description", path)
        branches = [node]
        for alternatives, has_priority in self._conjuncts(schema, path, trail):
            branches = self._cross(branches, alternatives, path, has_priority=has_priority)
        return branches

    def _conjuncts(self, schema: Node, path: str, trail: tuple[str, ...]) -> Iterator[tuple[list[Node], bool]]:
        """Yield each conjunct as its alternatives, and whether its annotations have priority."""
        name = schema.get("$ref")
        if name is not None and name not in trail:
            yield self.expand_branches(self._find(name), path, (*trail, name)), False
        for member in schema.get("allOf", ()):
            yield self.expand_branches(member, path, (*trail, "")), False
        for key in ("anyOf", "oneOf"):
            if key in schema:
                nested = [self.expand_branches(member, path, (*trail, "")) for member in schema[key]]
                yield [branch for group in nested for branch in group], True

    def _cross(self, branches: list[Node], alternatives: list[Node], path: str, *, has_priority: bool) -> list[Node]:
        if len(branches) * len(alternatives) > _MAX_BRANCHES and len(alternatives) > 1 and len(branches) > 1:
            self._changes.add("too many combinations: some moved to the description", path)
            text = " or ".join(describe_schema(alternative, 1) for alternative in alternatives[:4])
            return [add_to_description(node, [text]) for node in branches]
        crossed: list[Node] = []
        for branch in branches:
            for alternative in alternatives:
                merged = self._intersect(branch, alternative, path)
                if merged is not None:
                    crossed.append({**merged, **_annotations(alternative)} if has_priority else merged)
        return unique_values(crossed)

    # -------------------------------------------------------------------------------------------------------- and

    def _intersect(self, left: Node, right: Node, path: str) -> Node | None:
        """Return a node for the values that both accept; None if there are none."""
        if not left or not right:
            return left or right
        types = _common_types(left, right)
        values = _common_values(left, right)
        if types == [] or values == []:
            return None
        merged = {key: value for key, value in left.items() if key not in ("type", "enum", "const")}
        if types is not None:
            merged = {"type": types if len(types) > 1 else types[0], **merged}
        if values is not None:
            merged |= {"enum": values}
        for key, value in right.items():
            if key in ("type", "enum", "const") or key in _OBJECT_PARTS or key in _ARRAY_PARTS:
                continue
            if key not in merged:
                self._add_keyword(merged, key, value, left)
            elif not is_equal(merged[key], value):
                self._combine_keyword(merged, key, value, path)
        _merge_object_parts(merged, left, right)
        _merge_array_parts(merged, left, right)
        return merged

    def _add_keyword(self, merged: Node, key: str, value: Any, left: Node) -> None:
        """Add a keyword of the other node; groups of keywords are added together or not at all."""
        for group in (_CONDITION, _CONTAINS):
            if key in group and any(name in left for name in group):
                return
        merged[key] = value

    def _combine_keyword(self, merged: Node, key: str, value: Any, path: str) -> None:
        current: Any = merged[key]
        if key in ANNOTATIONS or key in _UNEVALUATED:
            return
        if key in _LOWER_BOUNDS:
            merged[key] = max(current, value)
        elif key in _UPPER_BOUNDS:
            merged[key] = min(current, value)
        elif key == "required":
            merged[key] = [*current, *(name for name in value if name not in current)]
        elif key == "uniqueItems":
            merged[key] = True
        elif key == "not":
            merged[key] = {"anyOf": [current, value]}
        elif key == "propertyNames":
            merged[key] = _all_of(current, value)
        elif key == "dependentSchemas":
            merged[key] = {
                **current,
                **{name: _all_of(current.get(name, True), schema) for name, schema in value.items()},
            }
        elif key == "dependentRequired":
            merged[key] = {
                **current,
                **{name: unique_values([*current.get(name, []), *names]) for name, names in value.items()},
            }
        elif key == "multipleOf" and isinstance(current, int) and isinstance(value, int) and value % current == 0:
            merged[key] = value
        elif key in _NOT_COMBINABLE:
            self._changes.add(f"a second `{key}` moved to the description", path)
            merged |= add_to_description(merged, [describe_keyword(key, value)])


_LOWER_BOUNDS = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
_UPPER_BOUNDS = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})
_NOT_COMBINABLE = frozenset({"pattern", "format", "multipleOf", *_CONDITION, *_CONTAINS})


def _annotations(node: Node) -> Node:
    return {key: value for key, value in node.items() if key in ANNOTATIONS}


def _common_types(left: Node, right: Node) -> list[str] | None:
    left_types, right_types = types_of(left), types_of(right)
    if left_types is None or right_types is None:
        return left_types if right_types is None else right_types
    common = [kind for kind in left_types if kind in right_types or (kind == "integer" and "number" in right_types)]
    if "number" in left_types and "integer" in right_types and "number" not in right_types:
        common.append("integer")
    return list(dict.fromkeys(common))


def enum_values(node: Node) -> list[Any] | None:
    lists = [[node["const"]]] if "const" in node else []
    lists += [node["enum"]] if "enum" in node else []
    if len(lists) == 2:
        return [value for value in lists[0] if any(is_equal(value, other) for other in lists[1])]
    return lists[0] if lists else None


def _common_values(left: Node, right: Node) -> list[Any] | None:
    left_values, right_values = enum_values(left), enum_values(right)
    if left_values is None or right_values is None:
        return left_values if right_values is None else right_values
    return [value for value in left_values if any(is_equal(value, right_value) for right_value in right_values)]


def _all_of(left: Schema, right: Schema) -> Schema:
    if left is False or right is False:
        return False
    if left in (True, {}) or right in (True, {}) or is_equal(left, right):
        return right if left in (True, {}) else left
    return {"allOf": [left, right]}


def _property_schema(node: Node, key: str) -> Schema:
    """Return the schema that every value of this property must match."""
    properties = cast("dict[str, Schema]", node.get("properties", {}))
    if key in properties:
        return properties[key]
    return True if "patternProperties" in node else node.get("additionalProperties", True)


def _merge_object_parts(merged: Node, left: Node, right: Node) -> None:
    if not _OBJECT_PARTS & right.keys():
        return
    names = dict.fromkeys([*left.get("properties", ()), *right.get("properties", ())])
    if names:
        merged["properties"] = {
            name: _all_of(_property_schema(left, name), _property_schema(right, name)) for name in names
        }
    patterns = dict(left.get("patternProperties", {}))
    for pattern, schema in right.get("patternProperties", {}).items():
        patterns[pattern] = _all_of(patterns.get(pattern, True), schema)
    if patterns:
        merged["patternProperties"] = patterns
    if "additionalProperties" in right or "additionalProperties" in left:
        additional = _all_of(left.get("additionalProperties", True), right.get("additionalProperties", True))
        merged["additionalProperties"] = additional


def _merge_array_parts(merged: Node, left: Node, right: Node) -> None:
    if not _ARRAY_PARTS & right.keys():
        return

    def item(node: Node, index: int) -> Schema:
        prefix = cast("list[Schema]", node.get("prefixItems", []))
        return prefix[index] if index < len(prefix) else node.get("items", True)

    longest = max(len(left.get("prefixItems", ())), len(right.get("prefixItems", ())))
    if longest:
        merged["prefixItems"] = [_all_of(item(left, index), item(right, index)) for index in range(longest)]
    if "items" in left or "items" in right:
        merged["items"] = _all_of(left.get("items", True), right.get("items", True))


# ------------------------------------------------------------------------------------------------------------------ or


def merge_any(schemas: list[Schema]) -> Schema:
    """Merge these into one schema for the values that any of them accepts."""
    distinct = cast("list[Schema]", unique_values([schema for schema in schemas if schema is not False]))
    if not distinct:
        return False
    if any(schema in (True, {}) for schema in distinct):
        return True
    nodes = [cast("Node", schema) for schema in distinct]
    if len(nodes) > 1 and all(node.keys() & {"enum", "const"} for node in nodes):
        plain = all(node.keys() <= {"enum", "const", "type", *ANNOTATIONS} for node in nodes)
        types = unique_values([node.get("type") for node in nodes])
        if plain and len(types) == 1:
            values = unique_values([value for node in nodes for value in enum_values(node) or []])
            kind = {} if types[0] is None else {"type": types[0]}
            return {**_annotations(nodes[0]), **kind, "enum": values}
    return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}


def merge_objects(nodes: list[Node]) -> Node:
    """Merge these into one object schema for the values that any of them accepts."""
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
    additional = True if patterned else merge_any([node.get("additionalProperties", True) for node in nodes])
    if additional is not True:
        merged["additionalProperties"] = additional
    return merged


_MERGED_SEPARATELY = frozenset(
    {"type", "properties", "required", "minProperties", "maxProperties", "additionalProperties", *_UNEVALUATED}
)


def _merge_property(nodes: list[Node], name: str) -> Schema:
    """Merge a property of several objects. If one of them accepts any value, the schemas move to the description."""
    schemas = [_property_schema(node, name) for node in nodes]
    joined = merge_any(schemas)
    if joined is not True:
        return joined
    declared = [cast("Node", schema) for schema in unique_values(schemas) if isinstance(schema, dict) and schema]
    annotations = _annotations(declared[0]) if declared else {}
    bare = [{key: value for key, value in node.items() if key not in ANNOTATIONS} for node in declared]
    texts = [" or ".join(describe_schema(node, 1) for node in bare[:4])] if any(bare) else []
    return add_to_description(annotations, texts) or True
