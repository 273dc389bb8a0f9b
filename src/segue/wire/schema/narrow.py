"""A schema for a target that takes a subset: every node becomes one typed node, an `anyOf` of such, or a reference.

What the subset has no keyword for is told in words, and the node takes more values than before, never fewer. Only a
strict subset can fail to hold a schema; that is `UnfitError`.
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


def written_narrow(document: Document, rules: SchemaRules, notes: Notes) -> Node:
    """Recursion is written out twice where there is room, else once."""
    for again in (1, 0):
        attempt = Notes()
        writer = _Writer(document, rules, attempt, again)
        node = writer.written()
        if writer.room >= 0 or again == 0:
            notes.extend(attempt)
            return node
    raise AssertionError("the last attempt returns")


class _Writer:
    def __init__(self, document: Document, rules: SchemaRules, notes: Notes, again: int) -> None:
        self._document = document
        self._rules = rules
        self._notes = notes
        self._keywords = Keywords(rules, notes)
        self._containers = Containers(rules, notes, self._keywords, self._node)
        self._again = again
        self._merger = Merger(document, notes)
        self._recursive = recursive(document)
        self._wanted: list[str] = []
        self._known: set[str] = set()
        # A schema that is written out may grow so much and no more.
        self.room = 500 + 4 * document.size

    def written(self) -> Node:
        root = self._node(self._document.root, Here(trail=("#",)))
        defs: Node = {}
        for name in self._wanted:  # grows while it is gone through
            defs[name] = self._node(self._document.find(name), Here(f"$defs.{name}", trail=(name,)))
        if self._rules.property_limit is not None and self._containers.properties > self._rules.property_limit:
            raise UnfitError(f"it has more than {self._rules.property_limit} keys")
        if self._rules.terminating and "required" in root and not ends(root, {**defs, "#": root}, set(), 0):
            words = [told("required", root.pop("required"))]
            self._notes.add("`required` is told in words, since the recursion has no end", "")
            root = described(root, words)
        return {**root, "$defs": defs} if defs else root

    # -------------------------------------------------------------------------------------------------- structure

    def _node(self, schema: Schema, here: Here) -> Node:
        self.room -= 1
        if isinstance(schema, bool):
            return self._anything({}, [] if schema else ["no value fits here"])
        outer = {key: value for key, value in schema.items() if key in ANNOTATIONS}
        inner = {key: value for key, value in schema.items() if key not in ANNOTATIONS}
        if self.room < 0 or here.level > _DEEPEST or here.objects >= self._rules.depth:
            self._notes.add("too large or too deep: anything is taken there", here.path)
            return self._anything(outer, [tell(inner, 1)])
        if inner.keys() == {"$ref"}:
            return self._reference(inner["$ref"], outer, here)
        if inner.keys() == {"allOf"} and len(inner["allOf"]) == 1 and isinstance(inner["allOf"][0], dict):
            return self._node({**inner["allOf"][0], **outer}, here)
        if inner.keys() in ({"anyOf"}, {"oneOf"}):
            (key,) = inner
            if key == "oneOf":
                self._notes.add("`oneOf` became `anyOf`", here.path)
            members = [member for member in cast("list[Schema]", inner[key]) if member is not False]
            return self._joined([self._node(member, here) for member in members], outer, here)
        named = _inlined(inner)
        endless = next((name for name in named if here.trail.count(name) > self._again), None)
        if endless is not None:
            return self._reference(endless, outer, here)
        here = replace(here, trail=(*here.trail, *named))
        branches = self._merger.branches(inner, here.path) if inner.keys() & COMBINATORS else [inner]
        return self._joined([node for branch in branches for node in self._typed_nodes(branch, here)], outer, here)

    def _reference(self, name: str, outer: Node, here: Here) -> Node:
        rules, target = self._rules, self._document.find(name)
        far = len(here.trail) > _LONGEST_TRAIL
        if rules.refs == "defs" and (rules.recursion or name not in self._recursive):
            if not outer.keys() - rules.beside_ref or name in self._recursive or far:
                if name != "#" and name not in self._known:
                    self._known.add(name)
                    self._wanted.append(name)
                return {"$ref": pointer_to(name), **{key: outer[key] for key in rules.beside_ref & outer.keys()}}
        elif here.trail.count(name) > self._again or far:
            self._notes.add("a recursion is cut: anything is taken there", here.path)
            return self._anything(outer, [f"{name if name != '#' else 'the whole'} again"])
        self._notes.add("references are written out", here.path, loss=False)
        here = replace(here, trail=(*here.trail, name))
        return self._node(target if isinstance(target, bool) else {**target, **outer}, here)

    def _joined(self, nodes: list[Node], outer: Node, here: Here) -> Node:
        """One node out of alternatives, with the words that hold for all of them."""
        flat: list[Node] = []
        for node in nodes:
            flat += node["anyOf"] if node.keys() == {"anyOf"} else [node]
        flat = self._without_null(union(flat))
        if not flat:
            return self._anything(outer, ["no value fits here"])
        if len(flat) == 1:
            return self._annotated(flat[0], outer, here)
        beside = self._annotated({}, outer, here, several=True)
        if beside.keys() - self._rules.beside_any_of:
            words = beside.get("description")
            return {"anyOf": [described(flat[0], [words] if words else []), *flat[1:]]}
        if self._rules.said_once:
            flat, beside = _said_above(flat, beside)
        return {**beside, "anyOf": flat}

    def _without_null(self, nodes: list[Node]) -> list[Node]:
        """OpenAPI has no type `null`; another alternative is `nullable` instead."""
        others = [node for node in nodes if node != {"type": "NULL"}]
        if not self._rules.openapi or len(others) == len(nodes) or not others:
            return nodes
        return [{**others[0], "nullable": True}, *others[1:]]

    def _annotated(self, node: Node, outer: Node, here: Here, *, several: bool = False) -> Node:
        """The node with a schema's annotations; those that the target does not take become words."""
        words = [] if "description" not in node else [node["description"]]
        kept: Node = {
            key: outer[key] for key in ("title", "description") if key in outer and key in self._keywords.taken
        }
        several = several or (self._rules.type_lists == "bare" and len(types_of(node) or ()) > 1)
        for key in [key for key in outer if key not in ("title", "description")]:
            if key in self._keywords.taken and not several and fits(outer[key], types_of(node)):
                kept[key] = outer[key]
            elif text := told(key, outer[key]):
                words.append(text)
                self._notes.add(f"`{key}` is told in words", here.path, loss=False)
        rest = {key: value for key, value in node.items() if key != "description"}
        return described({**rest, **kept}, words)

    def _anything(self, outer: Node, words: list[str]) -> Node:
        if self._rules.closed:
            raise UnfitError("a part of it takes any value")
        node: Node = {}
        if self._rules.anything == "types":
            node = {"type": list(TYPES)}
        elif self._rules.anything == "branches":
            simple = [{"type": kind.upper()} for kind in TYPES if kind not in ("array", "null")]
            node = {"anyOf": [{**simple[0], "nullable": True}, *simple[1:]]}
            node["anyOf"].append({"type": "ARRAY", "items": {"anyOf": [{**simple[0], "nullable": True}, *simple[1:]]}})
        text = outer.get("description")
        return self._worded(node, [*([text] if text else []), *words])

    def _worded(self, node: Node, words: list[str]) -> Node:
        if "anyOf" in node and "description" not in self._rules.beside_any_of:
            return {"anyOf": [described(node["anyOf"][0], words), *node["anyOf"][1:]]}
        return described(node, words)

    # ------------------------------------------------------------------------------------------------ typed nodes

    def _typed_nodes(self, branch: Node, here: Here) -> list[Node]:
        """One alternative without combinators, as nodes that name their types."""
        values, types = values_of(branch), types_of(branch)
        if values is not None:
            values = [value for value in values if fits(value, types)]
            types = types_of_values(values, types)
        elif types is None:
            if self._rules.closed:
                raise UnfitError("a part of it takes any value")
            if self._rules.anything == "empty":
                return [self._typed(branch, None, None, here)]
            types = list(TYPES)
        takes_null = self._rules.openapi and "null" in types
        groups = self._groups(branch, [kind for kind in types if not (takes_null and kind == "null")], values)
        nodes = [self._typed(branch, group, values, here) for group in groups]
        return [*nodes, {"type": "NULL"}] if takes_null else nodes

    def _groups(self, branch: Node, types: list[str], values: list[Any] | None) -> list[list[str]]:
        """The types that can share a node."""
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

    def _typed(self, branch: Node, types: list[str] | None, values: list[Any] | None, here: Here) -> Node:
        node: Node = {}
        words: list[str] = []
        if types is not None:
            spelled = [kind.upper() for kind in types] if self._rules.openapi else types
            node["type"] = spelled[0] if len(types) == 1 else spelled
        if values is not None:
            self._keywords.put_values(node, branch, [value for value in values if fits(value, types)], words, here)
        has = branch.keys()
        if (types is None and has & OBJECT_PARTS) or "object" in (types or ()):
            self._containers.put_object(node, branch, words, here)
        if (types is None and has & ARRAY_PARTS) or "array" in (types or ()):
            self._containers.put_array(node, branch, words, here)
        for key in branch:
            if key in BOUNDS and about(key, types):
                self._keywords.put_bound(node, key, branch[key], types, words, here)
            elif key not in _HANDLED and about(key, types):
                self._keywords.put(node, key, branch[key], types, words, here)
        self._keywords.unsay_contradictions(node, words, here)
        outer = {key: value for key, value in branch.items() if key in ANNOTATIONS}
        return self._annotated(described(node, words), outer, here)


def _said_above(members: list[Node], beside: Node) -> tuple[list[Node], Node]:
    """Members without what stands beside them; their words go up there."""
    words = [member["description"] for member in members if "description" in member]
    kept = [{key: value for key, value in member.items() if key not in beside} for member in members]
    return union(kept), described(beside, words if "description" in beside else [])


def _inlined(node: Node) -> list[str]:
    """The definitions that a combination would be merged with."""
    names = [node["$ref"]] if "$ref" in node else []
    members = [member for key in ("allOf", "anyOf", "oneOf") for member in cast("list[Schema]", node.get(key, []))]
    return names + [name for member in members if not isinstance(member, bool) for name in _inlined(member)]
