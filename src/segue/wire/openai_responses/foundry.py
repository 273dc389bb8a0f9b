"""Which items, parts, tools and ids Azure Foundry accepts, and the repair of all others (AZF-03, AZF-04, AZF-07)."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any, cast

from segue.canonical.json import are_identical
from segue.errors import InputError
from segue.render.report import Report, field_level
from segue.specs.types import Spec
from segue.wire.json_values import JsonObject, json_type_name, object_or_none
from segue.wire.openai_responses.foundry_types import INVALID, InvalidValue, foundry_type, repair, variants_of

# These declarations are repaired; hosted tools are validated instead, since their fields are restrictions.
_NAMESPACE_TOOL_TYPES = ("function", "custom")
_CLIENT_TOOL_TYPES = (*_NAMESPACE_TOOL_TYPES, "namespace")

# ---------------------------------------------------------------------------------------------------------------- ids

# AZF-07: older ids are two characters shorter.
_ITEM_ID = re.compile(r"([a-z]+)_(?:[\s\S]{48}|[\s\S]{50})")
# AZF-07: a partition key, then letters and digits.
_KEY_LENGTH = 18
_DERIVED_MARK = "hist"
_ID_PREFIXES = "msg om fc fco rs fs ws ci ig mcp mcpl mcpr mcpa ctc ctco cu cuo lsh lsho ap apo cmp wfa prog progo"
# OAI-RESP-02, OAI-RESP-03
_PREFIX_BY_TYPE = {"function_call": "fc", "custom_tool_call": "ctc", "reasoning": "rs", "message": "msg"}


def derive_id(prefix: str, *seed: str) -> str:
    """Return a deterministic id in the form of the service, with a mark by which segue recognises it later."""
    digest = sha256("|".join(seed).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{prefix}_{digest[:_KEY_LENGTH]}{_DERIVED_MARK}{digest[_KEY_LENGTH:46]}"


def is_derived_id(item_id: str) -> bool:
    return item_id.partition("_")[2][_KEY_LENGTH:].startswith(_DERIVED_MARK)


def is_item_id(value: object, *prefixes: str) -> bool:
    id_match = _ITEM_ID.fullmatch(value) if isinstance(value, str) else None
    return id_match is not None and id_match[1] in (prefixes or _ID_PREFIXES.split())


def is_valid_id(kind: str, item_id: object) -> bool:
    """Return whether an item may be sent with this id. AZF-09: the id of a memory search is not checked."""
    expected = _PREFIX_BY_TYPE.get(kind)
    if kind == "memory_search_call":
        return True
    has_form = is_item_id(item_id, expected) if expected is not None else is_item_id(item_id)
    return has_form and not is_derived_id(str(item_id))


# -------------------------------------------------------------------------------------------------------------- repair


def _repair_object(entry: JsonObject, form: Spec, report: Report) -> JsonObject:
    """Return the object without invalid optional fields; the same object if it is valid or cannot be repaired."""
    invalid_values: list[InvalidValue] = []
    repaired = repair(entry, form, invalid_values)
    if repaired is INVALID:
        return entry
    for invalid in invalid_values:
        if invalid.value is not None:
            report.add(
                "dropped",
                f"`{invalid.path}` dropped: invalid value for Azure Foundry",
                subject=invalid.path,
                level=field_level(invalid.path),
            )
    return repaired


def accepts_item(kind: str, item: JsonObject) -> bool:
    """Return whether the item type is accepted, and the item has all required fields and a valid id where required."""
    form = variants_of("Item").get(kind)
    if form is None or repair(item, form, []) is INVALID:
        return False
    return "id" not in form.required or kind == "local_shell_call_output" or is_valid_id(kind, item["id"])


def accepts_part(part: JsonObject) -> bool:
    """Return whether a content part is of an accepted type with all required fields."""
    form = variants_of("MessageContent").get(str(part.get("type")))
    return form is not None and repair(part, form, []) is not INVALID


def repair_item(item: JsonObject, kind: str, report: Report) -> JsonObject:
    """AZF-03, AZF-04: the item with its type and without invalid fields."""
    item = _repair_object(item, variants_of("Item").get(kind, Spec(kind="object")), report)
    if kind == "memory_search_call" and "id" in item and not is_item_id(item["id"]):
        item = {name: value for name, value in item.items() if name != "id"}
    if item.get("type") is None and (kind != "message" or item.get("role") == "assistant"):
        item = {"type": kind, **{name: value for name, value in item.items() if name != "type"}}
    for key in ("content", "output"):
        if isinstance(item.get(key), list):
            parts = cast("list[Any]", item[key])
            repaired = [_repair_part(part, kind, report) for part in parts]
            if not are_identical(repaired, parts):
                item = {**item, key: repaired}
    return item


def _repair_part(part: Any, kind: str, report: Report) -> Any:
    entry: JsonObject | None = object_or_none(part)
    form = variants_of("MessageContent").get(str(entry.get("type"))) if entry is not None else None
    if entry is None or form is None:
        return part
    if "annotations" in form.members and not isinstance(entry.get("annotations"), list):
        entry = {**entry, "annotations": []}
    entry = _repair_object(entry, form, report)
    if kind == "custom_tool_call_output" and entry["type"] == "input_image" and entry.get("detail") is None:
        # Only required here.
        entry = {**entry, "detail": "auto"}
    return entry


def validate_tool(tool: JsonObject) -> None:
    """Raise `InputError` if a hosted tool declaration is invalid: dropping a field could drop a restriction."""
    kind = tool.get("type")
    if kind == "namespace":
        _validate_namespace(tool)
    form = variants_of("Tool").get(str(kind))
    if kind in _CLIENT_TOOL_TYPES or form is None:
        return
    invalid_values: list[InvalidValue] = []
    repair(tool, form, invalid_values)
    for invalid in invalid_values:
        if invalid.value is not None or invalid.required:
            raise InputError(f"invalid value for the tool {kind}: {json_type_name(invalid.value)}", path=invalid.path)


def _validate_namespace(tool: JsonObject) -> None:
    if not isinstance(tool.get("description"), str | None):
        raise InputError(f"a string was expected, not {json_type_name(tool['description'])}", path="description")
    for index, entry in enumerate(cast("list[Any]", tool["tools"])):
        kind = (object_or_none(entry) or {}).get("type")
        if kind and kind not in _NAMESPACE_TOOL_TYPES:
            raise InputError(
                f"one of {', '.join(_NAMESPACE_TOOL_TYPES)} was expected, not {kind!r}", path=f"tools[{index}].type"
            )


def _add_description(tool: JsonObject, report: Report) -> JsonObject:
    if tool["type"] != "namespace" or tool.get("description") is not None:
        return tool
    report.add(
        "tools", "empty description added: required for a namespace", subject=str(tool.get("name")), level="note"
    )
    return {**tool, "description": ""}


def repair_tools(tools: list[Any], report: Report) -> list[Any]:
    """Return the declarations of known types without invalid fields."""
    known = variants_of("Tool")
    supported = [tool for tool in tools if str((object_or_none(tool) or {}).get("type")) in known]
    if len(supported) < len(tools):
        report.add("tools", "tools dropped: Azure Foundry does not have their types", subject="tools", level="lost")
    repaired = [_repair_object(_add_description(tool, report), known[tool["type"]], report) for tool in supported]
    return tools if are_identical(repaired, tools) else repaired


def repair_agent(agent: JsonObject, report: Report) -> JsonObject:
    return _repair_object(agent, foundry_type("AgentReference"), report)


def drop_invalid_body_fields(body: JsonObject, report: Report) -> JsonObject:
    """Return the body without fields that are invalid alone or in combination."""
    body = _drop_long_metadata(_repair_object(body, foundry_type("CreateResponse"), report), report)
    conflicts = {
        "background": body.get("background") is True and body.get("store") is False,
        "stream_options": body.get("stream_options") is not None and body.get("stream") is not True,
    }
    for name in (name for name, has_conflict in conflicts.items() if has_conflict):
        why = "background responses must be stored" if name == "background" else "`stream` is not set"
        report.add("adjusted", f"`{name}` dropped: {why}", subject=name, level=field_level(name))
        body = {key: value for key, value in body.items() if key != name}
    return body


def _drop_long_metadata(body: JsonObject, report: Report) -> JsonObject:
    """AZF-03: the body without metadata entries that are too long, or too many."""
    form, metadata = foundry_type("CreateResponse").members["metadata"], object_or_none(body.get("metadata"))
    if metadata is None or form.keys is None or form.items is None:
        return body
    longest_key, longest_value = form.keys.maximum, form.items.maximum
    kept = {
        key: value
        for key, value in metadata.items()
        if (longest_key is None or len(key) <= longest_key) and (longest_value is None or len(value) <= longest_value)
    }
    kept = dict(list(kept.items())[: int(form.maximum or len(kept))])
    if len(kept) == len(metadata):
        return body
    report.add("dropped", "`metadata` entries dropped: too long or too many for Azure Foundry", subject="metadata")
    return {**body, "metadata": kept}
