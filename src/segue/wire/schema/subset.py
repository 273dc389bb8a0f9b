"""Renders a schema for a target with a subset: every node becomes a typed node, an `anyOf` of those, or a reference.

Unsupported keywords move to the description; the node then accepts more values than before, never fewer. Only a strict
subset may be unable to express a schema: `UnsupportedSchemaError`.
"""

from __future__ import annotations

import sys
from typing import Any, cast

from msgspec.structs import replace

from segue.wire.schema.changes import Location, SchemaChanges
from segue.wire.schema.containers import ARRAY_PARTS, OBJECT_PARTS, ContainerRenderer
from segue.wire.schema.description import add_to_description, describe_keyword, describe_schema
from segue.wire.schema.document import ROOT, Document, find_recursive, format_pointer
from segue.wire.schema.json_schema import (
    ANNOTATIONS,
    COMBINATORS,
    TYPES,
    Node,
    Schema,
    applies_to,
    find_value_types,
    has_type,
    is_finite,
    json_type_of,
    types_of,
    unique_values,
)
from segue.wire.schema.keywords import BOUNDS, KeywordRenderer
from segue.wire.schema.merge import Merger, enum_values
from segue.wire.schema.parse import NodeParser
from segue.wire.schema.plain_subset import Path
from segue.wire.schema.rules import SchemaRules, UnsupportedSchemaError

_MAX_DEPTH = 40
_MAX_TRAIL = 50
_HANDLED = OBJECT_PARTS | ARRAY_PARTS | BOUNDS | ANNOTATIONS | {"type", "enum", "const"}


def render_subset(document: Document, rules: SchemaRules, changes: SchemaChanges) -> Node:
    """Render the document for a target with a subset; recursion is unrolled twice if the budget allows, else once."""
    for repeats in (1, 0):
        attempt = SchemaChanges()
        renderer = _Renderer(document, rules, attempt, repeats)
        node = renderer.render()
        if renderer.budget >= 0 or repeats == 0:
            changes.extend(attempt)
            return node
    raise AssertionError("the last attempt returns")


class LeafRenderer:
    """Renders nodes without further ones in them, whose schema is otherwise plain, by the same rules as a whole one."""

    def __init__(self, rules: SchemaRules) -> None:
        self._parse_changes = SchemaChanges()
        self._parse = NodeParser(self._parse_changes).parse
        self._render_changes = SchemaChanges()
        # Nothing is inlined, so that the size does not matter.
        document = Document({}, {}, sys.maxsize)
        self._renderer = _Renderer(document, rules, self._render_changes, repeats=0)

    def render(self, node: Node, path: Path) -> Node:
        location = Location(trail=(ROOT,))
        steps: list[str] = []
        for name in path:
            steps.append("items" if name is None else f"properties.{name}")
            location = location.child("[]") if name is None else location.child(name, objects=1)
        return self._renderer.render_node(self._parse(node, ".".join(steps)), location)

    def add_changes(self, changes: SchemaChanges) -> None:
        """Add the changes in the order of a whole schema, which is parsed before it is rendered."""
        changes.extend(self._parse_changes)
        changes.extend(self._render_changes)


class _Renderer:
    def __init__(self, document: Document, rules: SchemaRules, changes: SchemaChanges, repeats: int) -> None:
        self._document = document
        self._rules = rules
        self._changes = changes
        self._keywords = KeywordRenderer(rules, changes)
        self._containers = ContainerRenderer(rules, changes, self._keywords, self.render_node)
        self._repeats = repeats
        self._merger = Merger(document, changes)
        self._recursive = find_recursive(document)
        self._pending_defs: list[str] = []
        self._seen_defs: set[str] = set()
        # How much a schema may grow when references are inlined.
        self.budget = 500 + 4 * document.size

    def render(self) -> Node:
        root = self.render_node(self._document.root, Location(trail=("#",)))
        defs: Node = {}
        for name in self._pending_defs:  # grows during iteration
            defs[name] = self.render_node(self._document.find(name), Location(f"$defs.{name}", trail=(name,)))
        if self._rules.property_limit is not None and self._containers.property_count > self._rules.property_limit:
            raise UnsupportedSchemaError(f"the schema has more than {self._rules.property_limit} properties")
        if self._rules.must_terminate and "required" in root and not is_finite(root, {**defs, "#": root}, set(), 0):
            texts = [describe_keyword("required", root.pop("required"))]
            self._changes.add("`required` moved to the description: the recursion never ends", "")
            root = add_to_description(root, texts)
        return {**root, "$defs": defs} if defs else root

    # -------------------------------------------------------------------------------------------------- structure

    def render_node(self, schema: Schema, location: Location) -> Node:
        self.budget -= 1
        if isinstance(schema, bool):
            return self._render_any_value({}, [] if schema else ["no value fits here"])
        annotations = {key: value for key, value in schema.items() if key in ANNOTATIONS}
        unannotated = {key: value for key, value in schema.items() if key not in ANNOTATIONS}
        if self.budget < 0 or location.level > _MAX_DEPTH or location.objects >= self._rules.max_object_depth:
            self._changes.add("too large or too deep: any value is accepted there", location.path)
            return self._render_any_value(annotations, [describe_schema(unannotated, 1)])
        if unannotated.keys() == {"$ref"}:
            return self._render_reference(unannotated["$ref"], annotations, location)
        if (
            unannotated.keys() == {"allOf"}
            and len(unannotated["allOf"]) == 1
            and isinstance(unannotated["allOf"][0], dict)
        ):
            return self.render_node({**unannotated["allOf"][0], **annotations}, location)
        if unannotated.keys() in ({"anyOf"}, {"oneOf"}):
            (key,) = unannotated
            if key == "oneOf":
                self._changes.add("`oneOf` replaced by `anyOf`", location.path)
            members = [member for member in cast("list[Schema]", unannotated[key]) if member is not False]
            return self._render_any_of(
                [self.render_node(member, location) for member in members], annotations, location
            )
        inlined = _inlined_definitions(unannotated)
        repeated = next((name for name in inlined if location.trail.count(name) > self._repeats), None)
        if repeated is not None:
            return self._render_reference(repeated, annotations, location)
        location = replace(location, trail=(*location.trail, *inlined))
        branches = (
            self._merger.expand_branches(unannotated, location.path)
            if unannotated.keys() & COMBINATORS
            else [unannotated]
        )
        return self._render_any_of(
            [node for branch in branches for node in self._render_typed_nodes(branch, location)], annotations, location
        )

    def _render_reference(self, name: str, annotations: Node, location: Location) -> Node:
        rules, target = self._rules, self._document.find(name)
        is_deep = len(location.trail) > _MAX_TRAIL
        if rules.refs == "defs" and (rules.recursion or name not in self._recursive):
            if not annotations.keys() - rules.ref_siblings or name in self._recursive or is_deep:
                if name != "#" and name not in self._seen_defs:
                    self._seen_defs.add(name)
                    self._pending_defs.append(name)
                return {
                    "$ref": format_pointer(name),
                    **{key: annotations[key] for key in rules.ref_siblings & annotations.keys()},
                }
        elif location.trail.count(name) > self._repeats or is_deep:
            self._changes.add("recursion cut off: any value is accepted there", location.path)
            return self._render_any_value(annotations, [f"{name if name != '#' else 'the whole'} again"])
        self._changes.add("references inlined", location.path, widens=False)
        location = replace(location, trail=(*location.trail, name))
        return self.render_node(target if isinstance(target, bool) else {**target, **annotations}, location)

    def _render_any_of(self, nodes: list[Node], annotations: Node, location: Location) -> Node:
        """Render one node for these alternatives, with the annotations of all."""
        flat: list[Node] = []
        for node in nodes:
            flat += node["anyOf"] if node.keys() == {"anyOf"} else [node]
        flat = self._use_nullable(unique_values(flat))
        if not flat:
            return self._render_any_value(annotations, ["no value fits here"])
        if len(flat) == 1:
            return self._add_annotations(flat[0], annotations, location)
        siblings = self._add_annotations({}, annotations, location, several=True)
        if siblings.keys() - self._rules.any_of_siblings:
            text = siblings.get("description")
            return {"anyOf": [add_to_description(flat[0], [text] if text else []), *flat[1:]]}
        if self._rules.exclusive_siblings:
            flat, siblings = _drop_repeated_siblings(flat, siblings)
        return {**siblings, "anyOf": flat}

    def _use_nullable(self, nodes: list[Node]) -> list[Node]:
        """Make another alternative `nullable` instead of the type `null`, which OpenAPI lacks."""
        non_null = [node for node in nodes if node != {"type": "NULL"}]
        if not self._rules.openapi or len(non_null) == len(nodes) or not non_null:
            return nodes
        return [{**non_null[0], "nullable": True}, *non_null[1:]]

    def _add_annotations(self, node: Node, annotations: Node, location: Location, *, several: bool = False) -> Node:
        """Add a schema's annotations to the node; unsupported ones move to the description."""
        texts = [] if "description" not in node else [node["description"]]
        kept: Node = {
            key: annotations[key]
            for key in ("title", "description")
            if key in annotations and key in self._keywords.accepted
        }
        several = several or (self._rules.type_lists == "bare" and len(types_of(node) or ()) > 1)
        for key in [key for key in annotations if key not in ("title", "description")]:
            if key in self._keywords.accepted and not several and has_type(annotations[key], types_of(node)):
                kept[key] = annotations[key]
            elif text := describe_keyword(key, annotations[key]):
                texts.append(text)
                self._changes.add(f"`{key}` moved to the description", location.path, widens=False)
        without_description = {key: value for key, value in node.items() if key != "description"}
        return add_to_description({**without_description, **kept}, texts)

    def _render_any_value(self, annotations: Node, texts: list[str]) -> Node:
        if self._rules.closed_objects:
            raise UnsupportedSchemaError("a part of the schema accepts any value")
        node: Node = {}
        if self._rules.any_value == "types":
            node = {"type": list(TYPES)}
        elif self._rules.any_value == "branches":
            simple = [{"type": kind.upper()} for kind in TYPES if kind not in ("array", "null")]
            node = {"anyOf": [{**simple[0], "nullable": True}, *simple[1:]]}
            node["anyOf"].append({"type": "ARRAY", "items": {"anyOf": [{**simple[0], "nullable": True}, *simple[1:]]}})
        text = annotations.get("description")
        return self._describe_node(node, [*([text] if text else []), *texts])

    def _describe_node(self, node: Node, texts: list[str]) -> Node:
        if "anyOf" in node and "description" not in self._rules.any_of_siblings:
            return {"anyOf": [add_to_description(node["anyOf"][0], texts), *node["anyOf"][1:]]}
        return add_to_description(node, texts)

    # ------------------------------------------------------------------------------------------------ typed nodes

    def _render_typed_nodes(self, branch: Node, location: Location) -> list[Node]:
        """Render one alternative without combinators as nodes with a `type`."""
        values, types = enum_values(branch), types_of(branch)
        if values is not None:
            values = [value for value in values if has_type(value, types)]
            types = find_value_types(values, types)
        elif types is None:
            if self._rules.closed_objects:
                raise UnsupportedSchemaError("a part of the schema accepts any value")
            if self._rules.any_value == "empty":
                return [self._render_typed_node(branch, None, None, location)]
            types = list(TYPES)
        takes_null = self._rules.openapi and "null" in types
        groups = self._group_types(branch, [kind for kind in types if not (takes_null and kind == "null")], values)
        nodes = [self._render_typed_node(branch, group, values, location) for group in groups]
        return [*nodes, {"type": "NULL"}] if takes_null else nodes

    def _group_types(self, branch: Node, types: list[str], values: list[Any] | None) -> list[list[str]]:
        """Group the types that can share a node."""
        apart = [[kind] for kind in types]
        match self._rules.type_lists:
            case "none":
                return apart
            case "bare":
                if values is not None:
                    return apart
                bare = [kind for kind in types if not any(applies_to(key, [kind]) for key in branch.keys() - {"type"})]
                return [[kind] for kind in types if kind not in bare] + ([bare] if bare else [])
            case "scalars" | "free":
                if values is not None and not {json_type_of(value) for value in values} <= self._rules.enum_types:
                    return apart
                if self._rules.type_lists == "free" or not {"object", "array"} & set(types):
                    return [types] if types else []
                scalars = [kind for kind in types if kind not in ("object", "array")]
                return [[kind] for kind in types if kind not in scalars] + ([scalars] if scalars else [])

    def _render_typed_node(
        self, branch: Node, types: list[str] | None, values: list[Any] | None, location: Location
    ) -> Node:
        node: Node = {}
        texts: list[str] = []
        if types is not None:
            type_names = [kind.upper() for kind in types] if self._rules.openapi else types
            node["type"] = type_names[0] if len(types) == 1 else type_names
        if values is not None:
            self._keywords.add_enum(
                node, branch, [value for value in values if has_type(value, types)], texts, location
            )
        keys = branch.keys()
        if (types is None and keys & OBJECT_PARTS) or "object" in (types or ()):
            self._containers.add_object(node, branch, texts, location)
        if (types is None and keys & ARRAY_PARTS) or "array" in (types or ()):
            self._containers.add_array(node, branch, texts, location)
        for key in branch:
            if key in BOUNDS and applies_to(key, types):
                self._keywords.add_bound(node, key, branch[key], types, texts, location)
            elif key not in _HANDLED and applies_to(key, types):
                self._keywords.add(node, key, branch[key], types, texts, location)
        self._keywords.drop_contradictions(node, texts, location)
        annotations = {key: value for key, value in branch.items() if key in ANNOTATIONS}
        return self._add_annotations(add_to_description(node, texts), annotations, location)


def _drop_repeated_siblings(members: list[Node], siblings: Node) -> tuple[list[Node], Node]:
    """Drop keys from the `anyOf` members that its siblings repeat; descriptions move to the siblings."""
    texts = [member["description"] for member in members if "description" in member]
    kept = [{key: value for key, value in member.items() if key not in siblings} for member in members]
    return unique_values(kept), add_to_description(siblings, texts if "description" in siblings else [])


def _inlined_definitions(node: Node) -> list[str]:
    """Return the definitions that merging a combination would inline."""
    names = [node["$ref"]] if "$ref" in node else []
    members = [member for key in ("allOf", "anyOf", "oneOf") for member in cast("list[Schema]", node.get(key, []))]
    return names + [name for member in members if not isinstance(member, bool) for name in _inlined_definitions(member)]
