"""A schema for a target that takes a subset: every node becomes one typed node, an `anyOf` of such, or a reference.

What the subset has no keyword for is told in words, and the node takes more values than before, never fewer. Only a
strict subset can fail to hold a schema; that is `UnfitError`.
"""

from __future__ import annotations

import math
import re
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from segue.wire.schema.document import Document, pointer_to, recursive
from segue.wire.schema.merge import Merger, either, values_of
from segue.wire.schema.notes import Notes
from segue.wire.schema.rules import SchemaRules
from segue.wire.schema.typed import ends, fits, nullable, types_of_values
from segue.wire.schema.vocabulary import ANNOTATIONS, COMBINATORS, TYPES, Node, Schema, about, kind_of, types_of, union
from segue.wire.schema.words import KEYWORDS, described, tell, told

__all__ = ["FORCED_NULL", "UnfitError", "written_narrow"]

FORCED_NULL = "a key that may be left out is there null instead"
_DEEPEST = 40
_LONGEST_TRAIL = 50
_LOOKS_AROUND = re.compile(r"\(\?[=!<]|\\[1-9bB]")
_NUMBER_FORMATS = frozenset({"float", "double", "int32", "int64"})
_OBJECT_PARTS = frozenset({"properties", "patternProperties", "additionalProperties", "required"})
_ARRAY_PARTS = frozenset({"prefixItems", "items"})
_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_RANGES = (
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
)
_HANDLED = _OBJECT_PARTS | _ARRAY_PARTS | _BOUNDS | ANNOTATIONS | {"type", "enum", "const"}


class UnfitError(Exception):
    """A strict subset has no word for this schema."""


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


class _Here(Struct, frozen=True):
    """A place in the schema: its path, how deep it lies, and which definitions it was reached through."""

    path: str = ""
    level: int = 0
    objects: int = 0
    trail: tuple[str, ...] = ()

    def inner(self, step: str, *, objects: int = 0) -> _Here:
        path = f"{self.path}.{step}" if self.path else step
        return _Here(path, self.level + 1, self.objects + objects, self.trail)


class _Writer:
    def __init__(self, document: Document, rules: SchemaRules, notes: Notes, again: int) -> None:
        self._document = document
        self._rules = rules
        self._taken = rules.keywords or frozenset[str]()
        self._notes = notes
        self._again = again
        self._merger = Merger(document, notes)
        self._recursive = recursive(document)
        self._wanted: list[str] = []
        self._known: set[str] = set()
        self._properties = 0
        # A schema that is written out may grow so much and no more.
        self.room = 500 + 4 * document.size

    def written(self) -> Node:
        root = self._node(self._document.root, _Here(trail=("#",)))
        defs: Node = {}
        for name in self._wanted:  # grows while it is gone through
            defs[name] = self._node(self._document.find(name), _Here(f"$defs.{name}", trail=(name,)))
        if self._rules.property_limit is not None and self._properties > self._rules.property_limit:
            raise UnfitError(f"it has more than {self._rules.property_limit} keys")
        if self._rules.terminating and "required" in root and not ends(root, {**defs, "#": root}, set(), 0):
            words = [told("required", root.pop("required"))]
            self._notes.add("`required` is told in words, since the recursion has no end", "")
            root = described(root, words)
        return {**root, "$defs": defs} if defs else root

    # -------------------------------------------------------------------------------------------------- structure

    def _node(self, schema: Schema, here: _Here) -> Node:
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

    def _reference(self, name: str, outer: Node, here: _Here) -> Node:
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

    def _joined(self, nodes: list[Node], outer: Node, here: _Here) -> Node:
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

    def _annotated(self, node: Node, outer: Node, here: _Here, *, several: bool = False) -> Node:
        """The node with a schema's annotations; those that the target does not take become words."""
        words = [] if "description" not in node else [node["description"]]
        kept: Node = {key: outer[key] for key in ("title", "description") if key in outer and key in self._taken}
        several = several or (self._rules.type_lists == "bare" and len(types_of(node) or ()) > 1)
        for key in [key for key in outer if key not in ("title", "description")]:
            if key in self._taken and not several and fits(outer[key], types_of(node)):
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

    def _typed_nodes(self, branch: Node, here: _Here) -> list[Node]:
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

    def _typed(self, branch: Node, types: list[str] | None, values: list[Any] | None, here: _Here) -> Node:
        node: Node = {}
        words: list[str] = []
        if types is not None:
            spelled = [kind.upper() for kind in types] if self._rules.openapi else types
            node["type"] = spelled[0] if len(types) == 1 else spelled
        if values is not None:
            self._put_values(node, branch, [value for value in values if fits(value, types)], words, here)
        has = branch.keys()
        if (types is None and has & _OBJECT_PARTS) or "object" in (types or ()):
            self._put_object(node, branch, words, here)
        if (types is None and has & _ARRAY_PARTS) or "array" in (types or ()):
            self._put_array(node, branch, words, here)
        for key in branch:
            if key in _BOUNDS and about(key, types):
                self._put_bound(node, key, branch[key], types, words, here)
            elif key not in _HANDLED and about(key, types):
                self._put(node, key, branch[key], types, words, here)
        for low, high in _RANGES:
            if low in node and high in node and node[low] > node[high]:
                words += [told(low, node.pop(low)), told(high, node.pop(high))]
                self._notes.add(f"`{low}` and `{high}`, which contradict each other, are told in words", here.path)
        outer = {key: value for key, value in branch.items() if key in ANNOTATIONS}
        return self._annotated(described(node, words), outer, here)

    def _say(self, key: str, value: Any, words: list[str], here: _Here) -> None:
        text = told(key, value)
        if text:
            words.append(text)
            self._notes.add(f"`{key}` is told in words", here.path)
        elif key not in KEYWORDS:
            self._notes.add(f"`{key}`, which JSON Schema does not know, is left out", here.path, loss=False)

    def _put_values(self, node: Node, branch: Node, values: list[Any], words: list[str], here: _Here) -> None:
        kinds = {kind_of(value) for value in values}
        if kinds == {"null"} or (kinds == {"boolean"} and len(union(values)) == 2):
            return
        rules = self._rules
        limit = rules.enum_limit
        lawful = kinds <= rules.enums and (rules.empty_enum_text or "" not in values)
        if lawful and (limit is None or len(values) <= limit):
            if "const" in branch and "const" in self._taken:
                node["const"] = values[0]
            else:
                node["enum"] = values
        else:
            self._say("const" if "const" in branch else "enum", values[0] if "const" in branch else values, words, here)

    def _put(self, node: Node, key: str, value: Any, types: list[str] | None, words: list[str], here: _Here) -> None:
        rules = self._rules
        lawful = key in self._taken
        if key == "format":
            numeric = value in _NUMBER_FORMATS
            lawful = lawful and (rules.formats is None or value in rules.formats)
            lawful = lawful and (rules.formats is None or types is None or numeric != ("string" in types))
        elif key == "pattern":
            lawful = lawful and not (rules.plain_patterns and _LOOKS_AROUND.search(value))
        elif key == "minItems" and rules.longest_min_items is not None:
            lawful = lawful and value <= rules.longest_min_items
        if lawful:
            node[key] = value
        else:
            self._say(key, value, words, here)

    def _put_bound(
        self, node: Node, key: str, value: float, types: list[str] | None, words: list[str], here: _Here
    ) -> None:
        low, strictly = key.endswith("inimum"), key.startswith("exclusive")
        whole = types == ["integer"]
        if not strictly or key in self._taken:
            said = (math.ceil(value) if low else math.floor(value)) if whole and not strictly else value
        elif whole:
            said = math.floor(value) + 1 if low else math.ceil(value) - 1
        else:
            said = value
            self._say(key, value, words, here)
        if key not in self._taken:
            key = "minimum" if low else "maximum"
        if key not in self._taken:
            if not strictly:
                self._say(key, value, words, here)
            return
        node[key] = said if key not in node else max(node[key], said) if low else min(node[key], said)

    # -------------------------------------------------------------------------------------------- objects, arrays

    def _put_object(self, node: Node, branch: Node, words: list[str], here: _Here) -> None:
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
            self._say("patternProperties", branch["patternProperties"], words, here)
        opened = bool(strange) or "patternProperties" in branch
        needed = self._needed(branch, properties, True if opened or rest is None else rest, words, here)
        self._properties += len(properties)
        if self._rules.all_required:
            needed = self._all_needed(properties, needed, here)
        empty = "properties" in branch and not here.path and not self._rules.openapi
        if properties or empty or self._rules.closed:
            node["properties"] = properties
        if needed or self._rules.all_required:
            node["required"] = needed
        self._put_rest(node, rest, words, here, opened=opened)

    def _spellable(self, name: str, here: _Here) -> bool:
        wanted = self._rules.property_names
        if not self._rules.slash_in_defs and "/" in name and here.path.startswith("$defs."):
            return False
        return wanted is None or re.fullmatch(wanted, name) is not None

    def _needed(self, branch: Node, properties: Node, rest: Schema, words: list[str], here: _Here) -> list[str]:
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

    def _all_needed(self, properties: Node, needed: list[str], here: _Here) -> list[str]:
        for name in properties:
            if name not in needed:
                self._notes.add(FORCED_NULL, here.inner(name).path)
                properties[name] = nullable(properties[name])
        return list(properties)

    def _put_rest(self, node: Node, rest: Schema | None, words: list[str], here: _Here, *, opened: bool) -> None:
        """What the other keys of an object may be."""
        if self._rules.closed:
            if opened or rest not in (None, False) or (rest is None and not node.get("properties") and here.path):
                raise UnfitError("an object in it has keys that are not named")
            if rest is None:
                self._notes.add("objects take no other keys", here.path)
            node["additionalProperties"] = False
        elif rest is not None and opened:
            self._say("additionalProperties", rest, words, here)
        elif rest is not None and "additionalProperties" in self._taken:
            node["additionalProperties"] = rest if isinstance(rest, bool) else self._node(rest, here.inner("*"))
        elif rest not in (None, True, {}):
            self._say("additionalProperties", rest, words, here)

    def _put_array(self, node: Node, branch: Node, words: list[str], here: _Here) -> None:
        prefix: list[Schema] = branch.get("prefixItems", [])
        items: Schema | None = branch.get("items")
        full = bool(prefix) and branch.get("maxItems", len(prefix) + 1) <= len(prefix)
        items = False if full else items
        if prefix and "prefixItems" in self._taken:
            node["prefixItems"] = [self._node(item, here.inner(f"[{i}]")) for i, item in enumerate(prefix)]
        elif prefix:
            self._say("prefixItems", prefix, words, here)
            if items is False and "maxItems" in self._taken:
                node["maxItems"] = min(len(prefix), branch.get("maxItems", len(prefix)))
            items = either([*prefix, True if items is None else items])
        if items is False:
            if not full:
                self._say("items", items, words, here)
            items = None
        if items is not None or self._rules.items_needed:
            node["items"] = self._node(True if items is None else items, here.inner("[]"))
            if not node["items"] and not self._rules.items_needed:
                del node["items"]


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
