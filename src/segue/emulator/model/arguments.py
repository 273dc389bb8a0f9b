"""Generates arguments for a tool: a value that is valid for its schema, taken from the user's text where possible.

A schema is split into alternatives without combinators; candidates are generated for each, and the first that is valid
for the whole schema is returned. Required members are always generated, optional ones only from the text. A schema that
no candidate is valid for gets a value of its shape, or an empty object.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from segue.canonical.request import Tool
from segue.emulator.model.pattern_text import make_text
from segue.emulator.model.prompt_values import PromptValue, find_values, stem
from segue.emulator.model.scalars import ScalarSource, schema_values
from segue.wire.schema.changes import SchemaChanges
from segue.wire.schema.document import ROOT, Document, rename_definition
from segue.wire.schema.json_schema import TYPES, Node, Schema, applies_to, is_equal, types_of
from segue.wire.schema.lenient import render_lenient
from segue.wire.schema.merge import Merger, enum_values
from segue.wire.schema.parse import parse_schema_document
from segue.wire.schema.rules import UNRESTRICTED

if TYPE_CHECKING:
    import jsonschema_rs

_MAX_TEXT = 4_000
"""Characters of the text that are searched, from its end."""
_SHALLOW_DEPTH = 2
_MAX_DEPTH = 12
_MAX_WORK = 4_000
_MAX_TRIES = 60
_MAX_VARIANTS = 5
_MAX_BACKTRACKING = 100_000
_ROOT_NAME = "root"

Checks: TypeAlias = Literal["formats", "plain", "none"]


def make_arguments(schema: Mapping[str, Any] | None, text: str, *, nth: int = 0) -> Any:
    """Return a value for this schema. If the text lists several values («Lisbon and Oslo»), call `nth` gets the `nth`.

    After the last of them it is the value of the first call again.
    """
    text = text[-_MAX_TEXT:]
    document = _parse_document(schema)
    for checks in ("formats", "plain", "none"):
        with suppress(_NoValueError, RecursionError):
            first = _Generator(document, checks, ScalarSource(text, {}))
            value = first.make()
            if nth:
                replaced = _find_nth(first.scalars.used, text, nth)
                value = _Generator(document, checks, ScalarSource(text, replaced)).make()
            return value
    return {}


def make_free_text(tool: Tool, text: str) -> str:
    """Return the input of a tool that takes free text: by its regular expression, else from the user's text."""
    grammar = tool.grammar or {}
    generated = make_text(str(grammar.get("definition", ""))) if grammar.get("syntax") == "regex" else None
    if generated is not None:
        return generated
    values = find_values(text[-_MAX_TEXT:])
    return next((value.text for source in ("code", "quoted", "topic") for value in values[source]), tool.name)


def is_valid(schema: Mapping[str, Any] | None, value: Any) -> bool:
    document = _parse_document(schema)
    return _Validator(document, "plain").accepts(document.root, value)


def _parse_document(schema: Mapping[str, Any] | None) -> Document:
    """Parse a schema of any draft. References are pointers to `$defs`, also those to the root."""
    document = parse_schema_document(schema or {}, SchemaChanges())
    rendered = render_lenient(document, UNRESTRICTED, SchemaChanges())
    parts = {**rendered.pop("$defs", {}), _ROOT_NAME: rendered}
    defs = {f"#/$defs/{name}": rename_definition(part, ROOT, f"#/$defs/{_ROOT_NAME}") for name, part in parts.items()}
    return Document(defs[f"#/$defs/{_ROOT_NAME}"], defs, document.size)


def _find_nth(used: Sequence[PromptValue], text: str, nth: int) -> dict[PromptValue, PromptValue]:
    """Map each value that is the only one of its source to the `nth` of those that the text lists after it."""
    counts = Counter(value.source for value in used)
    replaced: dict[PromptValue, PromptValue] = {}
    for value in used:
        listed = [one for one in find_values(text)[value.source] if one.group == value.group]
        following = listed[listed.index(value) + nth :]
        if counts[value.source] == 1 and following:
            replaced[value] = following[0]
    return replaced


class _Validator:
    """Validates values against the subschemas of a document."""

    def __init__(self, document: Document, checks: Checks) -> None:
        self._defs = {name.removeprefix("#/$defs/"): schema for name, schema in document.defs.items()}
        self._checks = checks
        self._validators: dict[int, tuple[Schema, jsonschema_rs.Draft202012Validator | None]] = {}

    def accepts(self, schema: Schema, value: Any) -> bool:
        if self._checks == "none" or isinstance(schema, bool):
            return schema is not False
        if id(schema) not in self._validators:
            self._validators[id(schema)] = schema, self._build(schema)  # The schema is kept, so its id stays unique.
        validator = self._validators[id(schema)][1]
        return validator is None or validator.is_valid(value)

    def _build(self, schema: Node) -> jsonschema_rs.Draft202012Validator | None:
        """Return the validator; None for a schema that can't be compiled, for instance because of its patterns."""
        import jsonschema_rs

        options = jsonschema_rs.FancyRegexOptions(backtrack_limit=_MAX_BACKTRACKING)
        formats = self._checks == "formats"
        try:
            return jsonschema_rs.Draft202012Validator(
                {**schema, "$defs": self._defs}, validate_formats=formats, offline=True, pattern_options=options
            )
        except (ValueError, jsonschema_rs.ReferencingError):
            return None


class _NoValueError(Exception):
    """No candidate is valid."""


class _Generator:
    """Generates one value. `optional` means: only from the text, and an error if it has nothing."""

    def __init__(self, document: Document, checks: Checks, scalars: ScalarSource) -> None:
        self.scalars = scalars
        self._root = document.root
        self._validator = _Validator(document, checks)
        self._merger = Merger(document, SchemaChanges())
        self._work = _MAX_WORK

    def make(self) -> Any:
        return self._value(self._root, "", 0)

    def _value(
        self, schema: Schema, name: str, depth: int, *, avoid: Sequence[Any] = (), optional: bool = False
    ) -> Any:
        """Return a value for the property `name` that equals none of `avoid`."""
        self._work -= 1
        if schema is False or depth > _MAX_DEPTH or self._work < 0:
            raise _NoValueError
        for value in islice(self._candidates(schema, name, depth, optional), _MAX_TRIES):
            if self._validator.accepts(schema, value) and not any(is_equal(value, other) for other in avoid):
                self.scalars.mark_used(value)
                return value
        raise _NoValueError

    def _candidates(self, schema: Schema, name: str, depth: int, optional: bool) -> Iterator[Any]:
        branches = self._merger.expand_branches(schema, "")
        for node in sorted(branches, key=_weight) if depth > _SHALLOW_DEPTH else branches:
            values = enum_values(node)
            if values is not None:
                yield from self.scalars.enum_values(values, node, optional=optional)
                continue
            for kind in _types_to_try(node, depth):
                used = len(self.scalars.used)
                with suppress(_NoValueError):
                    yield from self._values_of_type(kind, node, name, depth, optional)
                del self.scalars.used[used:]

    def _values_of_type(self, kind: str, node: Node, name: str, depth: int, optional: bool) -> Iterator[Any]:
        match kind:
            case "object":
                yield from () if optional else self._objects(node, depth)
            case "array":
                yield from self._arrays(node, stem(name), depth, optional)
            case "string":
                yield from self.scalars.strings(node, name, optional=optional)
            case "number" | "integer":
                yield from self.scalars.numbers(node, name, whole=kind == "integer", optional=optional)
            case "boolean":
                yield from self.scalars.booleans(node, name, optional=optional)
            case _:
                yield from () if optional else (None,)

    # ---------------------------------------------------------------------------------------------------------- arrays

    def _arrays(self, node: Node, name: str, depth: int, optional: bool) -> Iterator[list[Any]]:
        prefix = cast("list[Schema]", node.get("prefixItems", []))
        least, most = node.get("minItems", 0), node.get("maxItems", math.inf)
        listed = [] if prefix or not most else self._listed_items(node.get("items", True), name, depth)
        if listed:
            yield self._pad_items(listed[: int(min(most, len(listed)))], node, name, depth, least)
        if optional:
            return
        yield from (value for value in schema_values(node) if isinstance(value, list))
        needed = [self._value(part, name, depth + 1) for part in prefix[: int(min(most, len(prefix)))]]
        for _ in range(node.get("minContains", 1) if "contains" in node else 0):
            needed.append(self._value(node["contains"], name, depth + 1, avoid=needed))
        if depth < _SHALLOW_DEPTH and not needed and most > 0:
            with suppress(_NoValueError):
                yield self._pad_items([], node, name, depth, max(1, least))
        yield self._pad_items(needed, node, name, depth, least)
        yield []

    def _listed_items(self, item: Schema, name: str, depth: int) -> list[Any]:
        """Return the items that the text lists: the first value that is valid, and those joined to it."""
        items: list[Any] = []
        used = self.scalars.used
        count = len(used)
        with suppress(_NoValueError):
            items.append(self._value(item, name, depth + 1, optional=True))
        following = self.scalars.following(used[-1]) if len(used) > count else None
        while following is not None and self._validator.accepts(item, following.value):
            used.append(following)
            items.append(following.value)
            following = self.scalars.following(following)
        return items

    def _pad_items(self, items: list[Any], node: Node, name: str, depth: int, least: int) -> list[Any]:
        items = list(items)
        while len(items) < least:
            avoid = items if node.get("uniqueItems") else ()
            items.append(self._value(node.get("items", True), name, depth + 1, avoid=avoid))
        return items

    # --------------------------------------------------------------------------------------------------------- objects

    def _objects(self, node: Node, depth: int) -> Iterator[dict[str, Any]]:
        order = {name: place for place, name in enumerate(node.get("properties", ()))}
        required = sorted(node.get("required", ()), key=lambda name: order.get(name, len(order)))
        bare = {name: self._property(node, name, depth) for name in required}
        for value in (self._add_optional(bare, node, depth), bare):
            yield self._add_required(value, node, depth)
        yield from (value for value in schema_values(node) if isinstance(value, dict))
        for name, first in bare.items():
            tried = [first]
            with suppress(_NoValueError):
                for _ in range(_MAX_VARIANTS):
                    tried.append(self._property(node, name, depth, avoid=tried))
                    yield {**bare, name: tried[-1]}

    def _property(self, node: Node, name: str, depth: int, *, avoid: Sequence[Any] = (), optional: bool = False) -> Any:
        declared = node.get("properties", {}).get(name)
        schema = node.get("additionalProperties", True) if declared is None else declared
        return self._value(schema, name, depth + 1, avoid=avoid, optional=optional)

    def _add_optional(self, value: dict[str, Any], node: Node, depth: int) -> dict[str, Any]:
        value = dict(value)
        for name in node.get("properties", ()):
            if name not in value:
                with suppress(_NoValueError):
                    value[name] = self._property(node, name, depth, optional=True)
        return value

    def _add_required(self, value: dict[str, Any], node: Node, depth: int) -> dict[str, Any]:
        """Add the properties that others require, and as many as `minProperties` requires."""
        value = dict(value)
        dependent = node.get("dependentRequired", {})
        for name in [name for key in value for name in dependent.get(key, ()) if name not in value]:
            value[name] = self._property(node, name, depth)
        for name in (*node.get("properties", ()), *(f"key{number}" for number in range(1, 9))):
            if len(value) < node.get("minProperties", 0) and name not in value:
                with suppress(_NoValueError):
                    value[name] = self._property(node, name, depth)
        return value


_WEIGHTS = {"null": 0, "boolean": 1, "integer": 1, "number": 1, "string": 1, "array": 2, "object": 3}


def _weight(node: Node) -> int:
    """Return the size to expect of a value: deep inside, small ones go first, so that recursive schemas end."""
    return 0 if enum_values(node) else min(_WEIGHTS[kind] for kind in types_of(node) or ("null",))


def _types_to_try(node: Node, depth: int) -> list[str]:
    """Return the types in order: those that the keywords apply to first, null last; at the root an object first."""
    types = types_of(node)
    if types is None:
        keywords = [key for key in node if not applies_to(key, ["null"])]
        constrained = [kind for kind in TYPES if any(applies_to(key, [kind]) for key in keywords)]
        types = list(dict.fromkeys([*constrained, *TYPES]))
    if depth > _SHALLOW_DEPTH:
        return sorted(types, key=_WEIGHTS.__getitem__)
    return sorted(types, key=lambda kind: (depth == 0 and kind != "object", kind == "null"))
