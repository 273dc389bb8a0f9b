"""Repair of Foundry requests by the types in `segue.specs`: invalid optional fields are dropped (AZF-03, AZF-08).

Fields that a type does not have are not checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import replace

from segue.canonical.json import are_identical
from segue.specs.types import ANY, STRING, Spec, any_of, load_types, nullable, tagged
from segue.wire.json_values import JsonObject

_API = "azure-foundry"
INVALID: Final = object()
"""Returned for a value that cannot be repaired by dropping parts of it."""

# Optional fields that are too important to be dropped.
_KEPT = frozenset(
    {
        *("ItemComputerToolCall.action", "ItemComputerToolCall.actions", "WebSearchActionSearch.sources"),
        *("ComputerCallOutputItemParam.acknowledged_safety_checks", "ItemFileSearchToolCall.results"),
        *("ItemMcpToolCall.error", "ItemMcpToolCall.output", "ItemMcpListTools.error"),
        "MemorySearchToolCallItemParam.results",
    }
)
# Lists whose invalid entries are dropped.
_LISTS_WITHOUT_INVALID = frozenset(
    {
        *("AdditionalToolsItemParam.tools", "ToolSearchOutputItemParam.tools", "CreateResponse.include"),
        *("MessageContentOutputTextContent.annotations", "OutputMessageContentOutputTextContent.annotations"),
    }
)
_LIST = Spec(kind="list")
_TEXT_OR_LIST = any_of(STRING, _LIST)
# Fields in place of the published ones: those that are repaired elsewhere, and fields that other types have.
_FIELDS: Mapping[str, Spec] = {
    "AdditionalToolsItemParam.role": STRING,
    "AgentReference.type": STRING,
    "CreateResponse.agent": ANY,
    "CreateResponse.agent_reference": Spec(kind="map"),
    "CreateResponse.input": _TEXT_OR_LIST,
    "CreateResponse.tools": _LIST,
    "FunctionCallOutputItemParam.output": _TEXT_OR_LIST,
    "ItemCustomToolCall.status": STRING,
    "ItemCustomToolCallOutput.output": _TEXT_OR_LIST,
    "ItemCustomToolCallOutput.status": STRING,
    "ItemFunctionToolCall.id": nullable(STRING),
    "ItemMessage.content": _TEXT_OR_LIST,
    "ItemMessage.role": STRING,
    "ItemMessage.status": STRING,
    "ItemMessage.type": STRING,
    "MemorySearchToolCallItemParam.status": STRING,
}
_OPTIONAL = frozenset({"AgentReference.type"})
# AZF-04
_REQUIRED = frozenset({"MessageContentOutputTextContent.annotations"})

_PYTHON_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "list": (list,),
    "map": (dict,),
    "object": (dict,),
}


class InvalidValue(Struct, frozen=True):
    """An invalid or missing value, its path, and whether the field is required."""

    path: str
    value: object
    required: bool


class _Field(Struct, frozen=True):
    name: str
    spec: Spec
    is_required: bool
    can_drop: bool
    can_drop_entries: bool


def foundry_type(name: str) -> Spec:
    """Return a type by its name in the vendor's library."""
    return load_types(_API)[name]


def variants_of(name: str) -> Mapping[str, Spec]:
    """Return the types of items (`Item`), tools (`Tool`) or content parts (`MessageContent`), by their `type`."""
    return load_types(_API)[name].variants


@cache
def _fields_of(name: str, is_variant: bool) -> tuple[_Field, ...]:
    """Return the fields of a type; without `type` if its value has chosen the type."""
    owner = foundry_type(name)
    published = {key: field for key, field in owner.members.items() if key != "type" or not is_variant}
    replaced = {place.partition(".")[2]: field for place, field in _FIELDS.items() if place.startswith(f"{name}.")}
    return tuple(_make_field(f"{name}.{key}", field, owner) for key, field in {**published, **replaced}.items())


def _make_field(place: str, field: Spec, owner: Spec) -> _Field:
    name = place.partition(".")[2]
    required = (name in owner.required and place not in _OPTIONAL) or place in _REQUIRED
    if name == "status":
        # AZF-03: a null status is rejected, even where the schema of the type allows it.
        field = replace(field, nullable=False)
    return _Field(name, field, required, not required and place not in _KEPT, place in _LISTS_WITHOUT_INVALID)


def repair(value: Any, expected: Spec, invalid: list[InvalidValue]) -> Any:
    """Return the value without invalid droppable parts: the same object if valid, `INVALID` if not repairable.

    `expected` is the type that belongs to the value's own `type`, which is not checked.
    """
    return _repair_object(value, expected, invalid, "", is_variant=True)


def _repair(value: Any, expected: Spec, invalid: list[InvalidValue], path: str) -> Any:
    if expected.kind == "any" and not expected.any_of:
        return value
    if value is None:
        return value if expected.nullable else INVALID
    if expected.any_of:
        return _repair_any_of(value, expected, invalid, path)
    is_unexpected_bool = isinstance(value, bool) and expected.kind != "boolean"
    if not isinstance(value, _PYTHON_TYPES[expected.kind]) or is_unexpected_bool:
        return INVALID
    match expected.kind:
        case "list":
            return _repair_list(cast("list[Any]", value), expected, invalid, path)
        case "map":
            return _repair_map(cast("JsonObject", value), expected, invalid, path)
        case "object":
            return _repair_object(cast("JsonObject", value), expected, invalid, path)
        case _:
            return value if not expected.values or value in expected.values else INVALID


def _repair_list(
    value: list[Any], expected: Spec, invalid: list[InvalidValue], path: str, *, can_drop: bool = False
) -> Any:
    kept: list[Any] = []
    for index, entry in enumerate(value):
        repaired = _repair(entry, expected.items or ANY, invalid, f"{path}[{index}]")
        if repaired is not INVALID:
            kept.append(repaired)
            continue
        invalid.append(InvalidValue(f"{path}[{index}]", entry, required=not can_drop))
        if not can_drop:
            return INVALID
    return value if are_identical(kept, value) else kept


def _repair_any_of(value: Any, expected: Spec, invalid: list[InvalidValue], path: str) -> Any:
    """Repair by the alternative that drops the least."""
    attempts: list[tuple[bool, list[InvalidValue], Any]] = []
    for option in _merge_tagged(expected.any_of):
        dropped: list[InvalidValue] = []
        repaired = _repair(value, option, dropped, path)
        if repaired is value:
            return value
        attempts.append((repaired is INVALID, dropped, repaired))
    is_invalid, dropped, repaired = min(
        attempts, key=lambda attempt: (attempt[0], not attempt[1] if attempt[0] else len(attempt[1]))
    )
    invalid += dropped
    return INVALID if is_invalid else repaired


def _merge_tagged(options: tuple[Spec, ...]) -> list[Spec]:
    """Return the alternatives; objects that differ in their `type` become one, so that only the right one is tried."""
    by_type = {option.members["type"].values[0]: option for option in options if _has_one_type(option)}
    if len(by_type) < 2:
        return list(options)
    return [*(option for option in options if not _has_one_type(option)), tagged("type", by_type)]


def _has_one_type(option: Spec) -> bool:
    return "type" in option.members and len(option.members["type"].values) == 1


def _repair_map(value: JsonObject, expected: Spec, invalid: list[InvalidValue], path: str) -> Any:
    items = expected.items or ANY
    fields = [_Field(name, items, is_required=True, can_drop=False, can_drop_entries=False) for name in value]
    return _repair_fields(value, fields, invalid, path)


def _repair_object(
    value: JsonObject, expected: Spec, invalid: list[InvalidValue], path: str, *, is_variant: bool = False
) -> Any:
    if expected.discriminator:
        kind = value.get(expected.discriminator)
        chosen = expected.variants.get(kind) if isinstance(kind, str) else None
        if chosen is None:
            invalid.append(InvalidValue(_join_path(path, expected.discriminator), kind, required=True))
            return INVALID
        return _repair_object(value, chosen, invalid, path, is_variant=True)
    return _repair_fields(value, _fields_of(expected.name, is_variant), invalid, path) if expected.name else value


def _repair_fields(value: JsonObject, fields: Sequence[_Field], invalid: list[InvalidValue], path: str) -> Any:
    changes: JsonObject = {}
    for field in fields:
        name = field.name
        place = _join_path(path, name)
        if name not in value:
            if field.is_required:
                invalid.append(InvalidValue(place, None, required=True))
                return INVALID
            continue
        if field.can_drop_entries and isinstance(value[name], list):
            repaired = _repair_list(value[name], field.spec, invalid, place, can_drop=True)
        else:
            repaired = _repair(value[name], field.spec, invalid, place)
        if repaired is INVALID:
            invalid.append(InvalidValue(place, value[name], required=not field.can_drop))
            if not field.can_drop:
                return INVALID
        if repaired is not value[name]:
            changes[name] = repaired
    if not changes:
        return value
    return {
        name: repaired for name, original in value.items() if (repaired := changes.get(name, original)) is not INVALID
    }


def _join_path(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
