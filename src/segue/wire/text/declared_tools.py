"""Declared tools: parses untyped argument text by the type that the tool declares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, cast

from segue.canonical.json import parse_argument_text
from segue.canonical.request import Tool
from segue.wire.json_values import object_or_none
from segue.wire.text.lenient_json import InvalidJsonError, parse_lenient

NestedElements: TypeAlias = "str | list[tuple[str, NestedElements]]"

_ALL_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})


class DeclaredTools:
    """The tools declared to a model. With None, every name is valid and values are typed by their text."""

    def __init__(self, tools: Iterable[Tool] | None = None) -> None:
        self._schemas = None if tools is None else {tool.name: tool.parameters or {} for tool in tools}

    @property
    def is_given(self) -> bool:
        return self._schemas is not None

    def can_call(self, name: str) -> bool:
        return self._schemas is None or name in self._schemas

    def has_parameter(self, name: str, key: str) -> bool:
        """Return whether the tool declares this parameter."""
        return key in (object_or_none(self._schema(name).get("properties")) or {})

    def parameter_names(self, name: str) -> list[str]:
        """Return the declared parameters of a tool, in their order."""
        return list(object_or_none(self._schema(name).get("properties")) or {})

    def has_required(self, name: str, arguments: Mapping[str, Any]) -> bool | None:
        """Return whether all required parameters are present; None if the tool declares none as required."""
        required = self._schema(name).get("required")
        if not isinstance(required, list) or not required:
            return None
        return all(key in arguments for key in cast("list[object]", required))

    def parse_argument(self, name: str, key: str, text: str) -> Any:
        """Parse an argument written as plain text."""
        schema = self._schema(name)
        parameter = object_or_none((object_or_none(schema.get("properties")) or {}).get(key))
        return _parse_untyped(text) if parameter is None else _parse_as(_accepted_types(parameter, schema), text)

    def parse_nested(self, name: str, key: str, value: NestedElements) -> Any:
        """Parse an argument written as nested elements with plain text inside."""
        schema = self._schema(name)
        parameter = object_or_none((object_or_none(schema.get("properties")) or {}).get(key))
        return _parse_nested(value, parameter, schema)

    def find_type_mismatches(self, name: str, arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return the arguments whose value has none of the declared types, each with those types."""
        schema = self._schema(name)
        properties = object_or_none(schema.get("properties")) or {}
        mismatches: list[tuple[str, str]] = []
        for key, value in arguments.items():
            parameter = object_or_none(properties.get(key))
            types = _ALL_TYPES if parameter is None else frozenset(map(str.lower, _accepted_types(parameter, schema)))
            if types <= _ALL_TYPES and not _has_type(value, types):
                mismatches.append((key, " or ".join(sorted(types))))
        return mismatches

    def _schema(self, name: str) -> Mapping[str, Any]:
        return (self._schemas or {}).get(name) or {}


def _parse_as(types: frozenset[str], text: str) -> Any:
    if types == frozenset({"string"}):
        return text
    if "string" in types:
        value = _parse_untyped(text)
        return value if _json_type(value) in types or (type(value) is int and "number" in types) else text
    try:
        return parse_lenient(text.strip())
    except InvalidJsonError:
        return text


def _parse_nested(value: NestedElements, schema: Mapping[str, Any] | None, root: Mapping[str, Any]) -> Any:
    types = _ALL_TYPES if schema is None else _accepted_types(schema, root)
    if isinstance(value, str):
        if not value.strip() and len(types) == 1 and not types.isdisjoint(("array", "object")):
            return [] if "array" in types else {}
        return _parse_untyped(value) if schema is None else _parse_as(types, value)
    schemas = [] if schema is None else [schema, *_subschemas(schema, root)]
    if "object" not in types or ("array" in types and all(key == "item" for key, _ in value)):
        items = next(
            (items_schema for option in schemas if (items_schema := object_or_none(option.get("items"))) is not None),
            None,
        )
        return [_parse_nested(child, items, root) for _, child in value]
    properties: dict[str, Any] = {}
    for option in schemas:
        properties |= object_or_none(option.get("properties")) or {}
    return {key: _parse_nested(child, object_or_none(properties.get(key)), root) for key, child in value}


# Some chat templates print these values as Python constants (TPL-03).
_PYTHON_CONSTANTS = {"True": True, "False": False, "None": None}


def _parse_untyped(text: str) -> Any:
    """Parse an untyped value as JSON, unless the result is a string."""
    bare = text.strip()
    if bare in _PYTHON_CONSTANTS:
        return _PYTHON_CONSTANTS[bare]
    value, exact = parse_argument_text(bare) if bare else (None, "")
    return text if exact is not None or isinstance(value, str) else value


def _has_type(value: object, types: frozenset[str]) -> bool:
    if _json_type(value) in types or (type(value) is int and "number" in types):
        return True
    return isinstance(value, float) and value.is_integer() and "integer" in types


def _json_type(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _accepted_types(schema: Mapping[str, Any], root: Mapping[str, Any]) -> frozenset[str]:
    """Return the types that a schema accepts; all types if it names none."""
    types: set[str] = set()
    seen: set[int] = set()
    pending = [schema]
    while pending:
        current = pending.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        kind, values = current.get("type"), current.get("enum")
        if isinstance(kind, str):
            types.add(kind)
        elif isinstance(kind, list):
            types.update(str(name) for name in cast("list[object]", kind))
        elif "const" in current:
            types.add(_json_type(current["const"]))
        elif isinstance(values, list):
            types.update(_json_type(value) for value in cast("list[object]", values))
        elif options := _subschemas(current, root):
            pending += options
        else:
            return _ALL_TYPES
    return frozenset(types) or _ALL_TYPES


def _subschemas(schema: Mapping[str, Any], root: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the schemas in `anyOf`, `oneOf`, `allOf` and `$ref`."""
    options: list[Mapping[str, Any]] = []
    for key in ("anyOf", "oneOf", "allOf"):
        listed = schema.get(key)
        if isinstance(listed, list):
            options += [object_or_none(option) or {} for option in cast("list[object]", listed)]
    name = schema.get("$ref")
    if isinstance(name, str) and name.startswith("#/"):
        target: object = root
        for step in name[2:].split("/"):
            target = (object_or_none(target) or {}).get(step.replace("~1", "/").replace("~0", "~"))
        options.append(object_or_none(target) or {})
    return options
