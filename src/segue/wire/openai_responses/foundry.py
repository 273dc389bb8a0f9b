"""Which items, parts, tools and ids Azure Foundry accepts, and the repair of the others (AZF-03, AZF-04, AZF-07)."""

from __future__ import annotations

import re
from typing import Any, cast

from segue.errors import InputError
from segue.render.report import Report
from segue.wire.fields import JsonObject, kind_of, object_or_none
from segue.wire.openai_responses.foundry_forms import AGENT, BODY, ITEMS, PARTS, TOOLS
from segue.wire.openai_responses.foundry_lines import MISFIT, Loss, Record, mended

__all__ = [
    "fitted_agent",
    "fitted_body",
    "hold_tool",
    "is_id",
    "lawful_id",
    "mended_item",
    "mended_tools",
    "takes",
    "takes_part",
]

# These declarations are repaired; hosted tools are validated instead, since their fields are restrictions.
_HELD = ("function", "custom")
_CLIENTS_OWN = (*_HELD, "namespace")

# ---------------------------------------------------------------------------------------------------------------- ids

# AZF-07: older ids are two characters shorter.
_ID = re.compile(r"([a-z]+)_(?:[\s\S]{48}|[\s\S]{50})")
_PREFIXES = "msg om fc fco rs fs ws ci ig mcp mcpl mcpr mcpa ctc ctco cu cuo lsh lsho ap apo cmp wfa prog progo"
# OAI-RESP-02, OAI-RESP-03
_PREFIX_OF = {"function_call": "fc", "custom_tool_call": "ctc", "reasoning": "rs", "message": "msg"}


def is_id(name: object, *prefixes: str) -> bool:
    found = _ID.fullmatch(name) if isinstance(name, str) else None
    return found is not None and found[1] in (prefixes or _PREFIXES.split())


def lawful_id(kind: str, item_id: object) -> bool:
    """Whether an item may be sent with this id. AZF-09: the id of a memory search is not checked."""
    expected = _PREFIX_OF.get(kind)
    return kind == "memory_search_call" or (is_id(item_id, expected) if expected is not None else is_id(item_id))


# -------------------------------------------------------------------------------------------------------------- repair


def _fitted(entry: JsonObject, form: Record, report: Report) -> JsonObject:
    """The object without invalid optional fields; the same object if it is valid or cannot be repaired."""
    lost: list[Loss] = []
    made = mended(entry, form, lost)
    if made is MISFIT:
        return entry
    for loss in lost:
        if loss.value is not None:
            report.add("dropped", f"`{loss.path}` dropped: invalid value for Azure Foundry", subject=loss.path)
    return made


def takes(kind: str, item: JsonObject) -> bool:
    """Whether the item type is accepted, and the item has all required fields and a valid id where required."""
    form = ITEMS.get(kind)
    if form is None or mended(item, form, []) is MISFIT:
        return False
    needs_id = "id" in form.members and not form.members["id"][0]
    return not needs_id or kind == "local_shell_call_output" or lawful_id(kind, item["id"])


def takes_part(part: JsonObject) -> bool:
    """Whether a content part is of an accepted type with all required fields."""
    form = PARTS.get(str(part.get("type")))
    return form is not None and mended(part, form, []) is not MISFIT


def mended_item(item: JsonObject, kind: str, report: Report) -> JsonObject:
    """AZF-03, AZF-04: the item with its type and without invalid fields."""
    item = _fitted(item, ITEMS.get(kind, Record()), report)
    if kind == "memory_search_call" and "id" in item and not is_id(item["id"]):
        item = {name: value for name, value in item.items() if name != "id"}
    if item.get("type") is None and (kind != "message" or item.get("role") == "assistant"):
        item = {"type": kind, **{name: value for name, value in item.items() if name != "type"}}
    for key in ("content", "output"):
        if isinstance(item.get(key), list):
            parts = cast("list[Any]", item[key])
            made = [_mended_part(part, kind, report) for part in parts]
            if any(a is not b for a, b in zip(made, parts, strict=True)):
                item = {**item, key: made}
    return item


def _mended_part(part: Any, kind: str, report: Report) -> Any:
    entry: JsonObject | None = object_or_none(part)
    form = PARTS.get(str(entry.get("type"))) if entry is not None else None
    if entry is None or form is None:
        return part
    if "annotations" in form.members and not isinstance(entry.get("annotations"), list):
        entry = {**entry, "annotations": []}
    entry = _fitted(entry, form, report)
    if kind == "custom_tool_call_output" and entry["type"] == "input_image" and entry.get("detail") is None:
        # Only required here.
        entry = {**entry, "detail": "auto"}
    return entry


def hold_tool(tool: JsonObject) -> None:
    """Raise `InputError` if a hosted tool declaration is invalid: dropping a field could drop a restriction."""
    kind = tool.get("type")
    if kind == "namespace":
        _hold_namespace(tool)
    if kind in _CLIENTS_OWN or kind not in TOOLS:
        return
    lost: list[Loss] = []
    mended(tool, TOOLS[kind], lost)
    for loss in lost:
        if loss.value is not None or loss.needed:
            raise InputError(f"invalid value for the tool {kind}: {kind_of(loss.value)}", path=loss.path)


def _hold_namespace(tool: JsonObject) -> None:
    if not isinstance(tool.get("description"), str | None):
        raise InputError(f"a string was expected, not {kind_of(tool['description'])}", path="description")
    for index, held in enumerate(cast("list[Any]", tool["tools"])):
        kind = (object_or_none(held) or {}).get("type")
        if kind and kind not in _HELD:
            raise InputError(f"one of {', '.join(_HELD)} was expected, not {kind!r}", path=f"tools[{index}].type")


def _described(tool: JsonObject, report: Report) -> JsonObject:
    if tool["type"] != "namespace" or tool.get("description") is not None:
        return tool
    report.add("tools", "added an empty description: required for a namespace", subject=str(tool.get("name")))
    return {**tool, "description": ""}


def mended_tools(tools: list[Any], report: Report) -> list[Any]:
    """The declarations of known types without invalid fields."""
    known = [tool for tool in tools if str((object_or_none(tool) or {}).get("type")) in TOOLS]
    if len(known) < len(tools):
        report.add("tools", "dropped tools of types unknown to Azure Foundry", subject="tools")
    made = [_fitted(_described(tool, report), TOOLS[tool["type"]], report) for tool in known]
    same = len(made) == len(tools) and all(a is b for a, b in zip(made, tools, strict=True))
    return tools if same else made


def fitted_agent(agent: JsonObject, report: Report) -> JsonObject:
    return _fitted(agent, AGENT, report)


def fitted_body(body: JsonObject, report: Report) -> JsonObject:
    """The body without fields that are invalid alone or in combination."""
    body = _fitted(body, BODY, report)
    against = {
        "background": body.get("background") is True and body.get("store") is False,
        "stream_options": body.get("stream_options") is not None and body.get("stream") is not True,
    }
    for name in (name for name, is_against in against.items() if is_against):
        why = "background responses must be stored" if name == "background" else "`stream` is not set"
        report.add("adjusted", f"{name} dropped: {why}", subject=name)
        body = {key: value for key, value in body.items() if key != name}
    return body
