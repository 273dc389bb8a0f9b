"""Renders a schema for a target with a subset: every node becomes a typed node, an `anyOf` of those, or a reference.

Unsupported keywords move to the description; the node then accepts more values than before, never fewer. Only a strict
subset may be unable to express a schema: `UnsupportedSchemaError`.
"""

from __future__ import annotations

from typing import Any, cast

from msgspec.structs import replace

from segue.wire.schema.containers import ARRAY_PARTS, OBJECT_PARTS, Containers
from segue.wire.schema.document import Document, pointer_to, recursive
from segue.wire.schema.keywords import BOUNDS, Keywords
from segue.wire.schema.merge import Merger, values_of
from segue.wire.schema.notes import Here, Notes
from segue.wire.schema.rules import SchemaRules, UnfitError
from segue.wire.schema.typed import ends, fits, types_of_values
from segue.wire.schema.vocabulary import ANNOTATIONS, COMBINATORS, TYPES, Node, Schema, about, kind_of, types_of, union
from segue.wire.schema.words import described, tell, told

__all__ = ["written_narrow"]

_DEEPEST = 40
_LONGEST_TRAIL = 50
_HANDLED = OBJECT_PARTS | ARRAY_PARTS | BOUNDS | ANNOTATIONS | {"type", "enum", "const"}


def written_narrow(document: Document, rules: SchemaRules, changes: Notes) -> Node:
    """Recursion is unrolled twice if the size budget allows, else once."""
    for again in (1, 0):
        attempt = Notes()
        writer = _Writer(document, rules, attempt, again)
        node = writer.written()
        if writer.room >= 0 or again == 0:
            changes.extend(attempt)
            return node
    raise AssertionError("the last attempt returns")


class _Writer:
    def __init__(self, document: Document, rules: SchemaRules, changes: Notes, again: int) -> None:
        self._document = document
        self._rules = rules
        self._changes = changes
        self._keywords = Keywords(rules, changes)
        self._containers = Containers(rules, changes, self._keywords, self._node)
        self._again = again
        self._merger = Merger(document, changes)
        self._recursive = recursive(document)
        self._wanted: list[str] = []
        self._known: set[str] = set()
        # How much a schema may grow when references are inlined.
        self.room = 500 + 4 * document.size

    def written(self) -> Node:
        root = self._node(self._document.root, Here(trail=("#",)))
        defs: Node = {}
        for name in self._wanted:  # grows during iteration
            defs[name] = self._node(self._document.find(name), Here(f"$defs.{name}", trail=(name,)))
        if self._rules.property_limit is not None and self._containers.properties > self._rules.property_limit:
            raise UnfitError(f"it has more than {self._rules.property_limit} properties")
        if self._rules.terminating and "required" in root and not ends(root, {**defs, "#": root}, set(), 0):
            texts = [told("required", root.pop("required"))]
            self._changes.add("`required` moved to the description: the recursion never ends", "")
            root = described(root, texts)
        return {**root, "$defs": defs} if defs else root

    # -------------------------------------------------------------------------------------------------- structure

    def _node(self, schema: Schema, location: Here) -> Node:
        self.room -= 1
        if isinstance(schema, bool):
            return self._anything({}, [] if schema else ["no value fits here"])
        outer = {key: value for key, value in schema.items() if key in ANNOTATIONS}
        inner = {key: value for key, value in schema.items() if key not in ANNOTATIONS}
        if self.room < 0 or location.level > _DEEPEST or location.objects >= self._rules.depth:
            self._changes.add("too large or too deep: any value is accepted there", location.path)
            return self._anything(outer, [tell(inner, 1)])
        if inner.keys() == {"$ref"}:
            return self._reference(inner["$ref"], outer, location)
        if inner.keys() == {"allOf"} and len(inner["allOf"]) == 1 and isinstance(inner["allOf"][0], dict):
            return self._node({**inner["allOf"][0], **outer}, location)
        if inner.keys() in ({"anyOf"}, {"oneOf"}):
            (key,) = inner
            if key == "oneOf":
                self._changes.add("`oneOf` replaced by `anyOf`", location.path)
            members = [member for member in cast("list[Schema]", inner[key]) if member is not False]
            return self._joined([self._node(member, location) for member in members], outer, location)
        named = _inlined(inner)
        endless = next((name for name in named if location.trail.count(name) > self._again), None)
        if endless is not None:
            return self._reference(endless, outer, location)
        location = replace(location, trail=(*location.trail, *named))
        branches = self._merger.branches(inner, location.path) if inner.keys() & COMBINATORS else [inner]
        return self._joined(
            [node for branch in branches for node in self._typed_nodes(branch, location)], outer, location
        )

    def _reference(self, name: str, outer: Node, location: Here) -> Node:
        rules, target = self._rules, self._document.find(name)
        far = len(location.trail) > _LONGEST_TRAIL
        if rules.refs == "defs" and (rules.recursion or name not in self._recursive):
            if not outer.keys() - rules.beside_ref or name in self._recursive or far:
                if name != "#" and name not in self._known:
                    self._known.add(name)
                    self._wanted.append(name)
                return {"$ref": pointer_to(name), **{key: outer[key] for key in rules.beside_ref & outer.keys()}}
        elif location.trail.count(name) > self._again or far:
            self._changes.add("recursion cut off: any value is accepted there", location.path)
            return self._anything(outer, [f"{name if name != '#' else 'the whole'} again"])
        self._changes.add("references inlined", location.path, loss=False)
        location = replace(location, trail=(*location.trail, name))
        return self._node(target if isinstance(target, bool) else {**target, **outer}, location)

    def _joined(self, nodes: list[Node], outer: Node, location: Here) -> Node:
        """One node for these alternatives, with the annotations of all."""
        flat: list[Node] = []
        for node in nodes:
            flat += node["anyOf"] if node.keys() == {"anyOf"} else [node]
        flat = self._without_null(union(flat))
        if not flat:
            return self._anything(outer, ["no value fits here"])
        if len(flat) == 1:
            return self._annotated(flat[0], outer, location)
        siblings = self._annotated({}, outer, location, several=True)
        if siblings.keys() - self._rules.beside_any_of:
            text = siblings.get("description")
            return {"anyOf": [described(flat[0], [text] if text else []), *flat[1:]]}
        if self._rules.said_once:
            flat, siblings = _said_above(flat, siblings)
        return {**siblings, "anyOf": flat}

    def _without_null(self, nodes: list[Node]) -> list[Node]:
        """OpenAPI has no type `null`; another alternative becomes `nullable` instead."""
        others = [node for node in nodes if node != {"type": "NULL"}]
        if not self._rules.openapi or len(others) == len(nodes) or not others:
            return nodes
        return [{**others[0], "nullable": True}, *others[1:]]

    def _annotated(self, node: Node, outer: Node, location: Here, *, several: bool = False) -> Node:
        """The node with a schema's annotations; unsupported ones move to the description."""
        texts = [] if "description" not in node else [node["description"]]
        kept: Node = {
            key: outer[key] for key in ("title", "description") if key in outer and key in self._keywords.taken
        }
        several = several or (self._rules.type_lists == "bare" and len(types_of(node) or ()) > 1)
        for key in [key for key in outer if key not in ("title", "description")]:
            if key in self._keywords.taken and not several and fits(outer[key], types_of(node)):
                kept[key] = outer[key]
            elif text := told(key, outer[key]):
                texts.append(text)
                self._changes.add(f"`{key}` moved to the description", location.path, loss=False)
        rest = {key: value for key, value in node.items() if key != "description"}
        return described({**rest, **kept}, texts)

    def _anything(self, outer: Node, texts: list[str]) -> Node:
        if self._rules.closed:
            raise UnfitError("a part of it accepts any value")
        node: Node = {}
        if self._rules.anything == "types":
            node = {"type": list(TYPES)}
        elif self._rules.anything == "branches":
            simple = [{"type": kind.upper()} for kind in TYPES if kind not in ("array", "null")]
            node = {"anyOf": [{**simple[0], "nullable": True}, *simple[1:]]}
            node["anyOf"].append({"type": "ARRAY", "items": {"anyOf": [{**simple[0], "nullable": True}, *simple[1:]]}})
        text = outer.get("description")
        return self._worded(node, [*([text] if text else []), *texts])

    def _worded(self, node: Node, texts: list[str]) -> Node:
        if "anyOf" in node and "description" not in self._rules.beside_any_of:
            return {"anyOf": [described(node["anyOf"][0], texts), *node["anyOf"][1:]]}
        return described(node, texts)

    # ------------------------------------------------------------------------------------------------ typed nodes

    def _typed_nodes(self, branch: Node, location: Here) -> list[Node]:
        """One alternative without combinators, as nodes with a `type`."""
        values, types = values_of(branch), types_of(branch)
        if values is not None:
            values = [value for value in values if fits(value, types)]
            types = types_of_values(values, types)
        elif types is None:
            if self._rules.closed:
                raise UnfitError("a part of it accepts any value")
            if self._rules.anything == "empty":
                return [self._typed(branch, None, None, location)]
            types = list(TYPES)
        takes_null = self._rules.openapi and "null" in types
        groups = self._groups(branch, [kind for kind in types if not (takes_null and kind == "null")], values)
        nodes = [self._typed(branch, group, values, location) for group in groups]
        return [*nodes, {"type": "NULL"}] if takes_null else nodes

    def _groups(self, branch: Node, types: list[str], values: list[Any] | None) -> list[list[str]]:
        """Group the types that can share a node."""
        apart = [[kind] for kind in types]
        match self._rules.type_lists:
            case "none":
                return apart
            case "bare":
                if values is not None:
                    return apart
                bare = [kind for kind in types if not any(about(key, [kind]) for key in branch.keys() - {"type"})]
                return [[kind] for kind in types if kind not in bare] + ([bare] if bare else [])
            case "scalars" | "free":
                if values is not None and not {kind_of(value) for value in values} <= self._rules.enums:
                    return apart
                if self._rules.type_lists == "free" or not {"object", "array"} & set(types):
                    return [types] if types else []
                scalars = [kind for kind in types if kind not in ("object", "array")]
                return [[kind] for kind in types if kind not in scalars] + ([scalars] if scalars else [])

    def _typed(self, branch: Node, types: list[str] | None, values: list[Any] | None, location: Here) -> Node:
        node: Node = {}
        texts: list[str] = []
        if types is not None:
            type_names = [kind.upper() for kind in types] if self._rules.openapi else types
            node["type"] = type_names[0] if len(types) == 1 else type_names
        if values is not None:
            self._keywords.put_values(node, branch, [value for value in values if fits(value, types)], texts, location)
        has = branch.keys()
        if (types is None and has & OBJECT_PARTS) or "object" in (types or ()):
            self._containers.put_object(node, branch, texts, location)
        if (types is None and has & ARRAY_PARTS) or "array" in (types or ()):
            self._containers.put_array(node, branch, texts, location)
        for key in branch:
            if key in BOUNDS and about(key, types):
                self._keywords.put_bound(node, key, branch[key], types, texts, location)
            elif key not in _HANDLED and about(key, types):
                self._keywords.put(node, key, branch[key], types, texts, location)
        self._keywords.unsay_contradictions(node, texts, location)
        outer = {key: value for key, value in branch.items() if key in ANNOTATIONS}
        return self._annotated(described(node, texts), outer, location)


def _said_above(members: list[Node], siblings: Node) -> tuple[list[Node], Node]:
    """Drop keys from the `anyOf` members that its siblings repeat; descriptions move to the siblings."""
    texts = [member["description"] for member in members if "description" in member]
    kept = [{key: value for key, value in member.items() if key not in siblings} for member in members]
    return union(kept), described(siblings, texts if "description" in siblings else [])


def _inlined(node: Node) -> list[str]:
    """The definitions that merging a combination would inline."""
    names = [node["$ref"]] if "$ref" in node else []
    members = [member for key in ("allOf", "anyOf", "oneOf") for member in cast("list[Schema]", node.get(key, []))]
    return names + [name for member in members if not isinstance(member, bool) for name in _inlined(member)]
