"""Foundry's schema of tools, items and bodies, for every member: kept, repaired or rendered as text."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

import segue
from segue.specs.types import Spec, load_types
from segue.wire.openai_responses import foundry_types
from segue.wire.openai_responses.foundry_types import INVALID, InvalidValue, repair

API = "azure-foundry"
BODY = load_types(API)["CreateResponse"]
ITEMS = load_types(API)["Item"].variants
TOOL = load_types(API)["Tool"]
USER = {"role": "user", "content": "a"}
WRONG: tuple[Any, ...] = (None, 5, "x", {}, [5])
PREFIXES = {"function_call": "fc", "custom_tool_call": "ctc", "reasoning": "rs"}

# ----------------------------------------------------------------------------------------------------------- the repair

CALL = {"id": "i", "server_label": "l", "name": "n", "arguments": "{}"}
SEARCH = {"id": "i", "status": "completed"}
FUNCTION = {"type": "function", "name": "a"}


@pytest.mark.parametrize(
    ("name", "value", "expected", "lost"),
    [
        ("Prompt", {"id": "n", "more": 5}, {"id": "n", "more": 5}, []),
        ("Prompt", {}, INVALID, ["id"]),
        ("Prompt", {"id": "n", "version": 5}, {"id": "n"}, ["version"]),
        ("Prompt", {"id": "n", "variables": {"k": True}}, {"id": "n"}, ["variables.k", "variables"]),
        ("ResponseTextParam", {"verbosity": "loud"}, {}, ["verbosity"]),
        ("ResponseTextParam", {"format": {"type": "json_schema", "schema": {}}}, {}, ["format.name", "format"]),
        ("ResponseTextParam", {"format": {"type": "up"}}, {}, ["format.type", "format"]),
        (
            "MCPTool",
            {"server_label": "l", "require_approval": {"always": {"read_only": "x"}}},
            {"server_label": "l", "require_approval": {"always": {}}},
            ["require_approval.always.read_only"],
        ),
        ("ItemMcpToolCall", {**CALL, "output": 5}, INVALID, ["output"]),
        ("ItemMcpToolCall", {**CALL, "output": None, "status": None}, {**CALL, "output": None}, ["status"]),
        (
            "ItemWebSearchToolCall",
            {**SEARCH, "action": {"type": "search", "sources": [{"type": "url", "url": 5}]}},
            INVALID,
            ["action.sources[0].url", "action.sources[0]", "action.sources", "action"],
        ),
        ("ToolSearchOutputItemParam", {"tools": [5, FUNCTION]}, {"tools": [FUNCTION]}, ["tools[0]"]),
        ("CreateResponse", {"include": None}, {"include": None}, []),
    ],
)
def test_value_is_dropped_no_further_than_needed(name: str, value: Any, expected: Any, lost: list[str]) -> None:
    found: list[InvalidValue] = []
    made = repair(value, load_types(API)[name], found)
    assert made is expected if expected is INVALID else made == expected
    assert [loss.path for loss in found] == lost
    assert (made is value) == (not lost)


def test_places_are_members_of_the_types() -> None:
    types = load_types(API)
    added = {"ItemCustomToolCall.status", "ItemCustomToolCallOutput.status", "ItemFunctionToolCall.id"}
    added |= {"ItemMessage.status", "MemorySearchToolCallItemParam.status"}
    for place in {
        *foundry_types._KEPT,
        *foundry_types._LISTS_WITHOUT_INVALID,
        *foundry_types._FIELDS,
        *foundry_types._OPTIONAL,
        *foundry_types._REQUIRED,
    }:
        name, _, member = place.partition(".")
        assert (member in types[name].members) != (place in added), place


# ------------------------------------------------------------------------------------------------------------ the forms


def _full(form: Spec) -> Any:
    """A value with every member of the type."""
    if form.any_of:
        return _full(form.any_of[-1])
    if form.discriminator:
        kind = list(form.variants)[-1]
        return {form.discriminator: kind, **_full(form.variants[kind])}
    match form.kind:
        case "string":
            return form.values[0] if form.values else "t"
        case "integer" | "number":
            return 1
        case "boolean":
            return True
        case "list":
            return [_full(form.items)] if form.items is not None else []
        case "map":
            return {"k": _full(form.items)} if form.items is not None else {}
        case "object":
            return {name: _full(member) for name, member in form.members.items()}
        case _:
            return {}


def _replaced(value: Any) -> Iterator[Any]:
    """The value with each position replaced by each invalid value."""
    for key in value if isinstance(value, dict) else range(len(value)):
        for wrong in WRONG:
            made = copy.copy(value)
            made[key] = wrong
            yield made
        if isinstance(value[key], dict | list):
            for inner in _replaced(value[key]):
                made = copy.copy(value)
                made[key] = inner
                yield made


def _held(body: Any) -> None:
    try:
        made = segue.convert(body, source=API, target=API).body
    except segue.InputError:
        return
    verdict = segue.check(made, API)
    assert verdict, (body, [*verdict])


@pytest.mark.parametrize("kind", TOOL.variants)
def test_invalid_value_in_a_tool_is_rejected_or_dropped(kind: str) -> None:
    tool = {"type": kind, **_full(TOOL.variants[kind])}
    body = {"model": "gpt-5", "input": [USER], "tools": [tool]}
    assert segue.repair(body, API).body == body
    for wrong in _replaced(tool):
        _held({**body, "tools": [wrong]})


@pytest.mark.parametrize("kind", ITEMS)
def test_invalid_value_in_an_item_is_rejected_dropped_or_rendered_as_text(kind: str) -> None:
    item = {"type": kind, **_full(ITEMS[kind])}
    if "role" in item:
        item["role"] = "developer" if kind == "additional_tools" else "assistant"
    if "id" in item:
        item["id"] = f"{PREFIXES.get(kind, 'ci')}_{'a' * 50}"
    for wrong in _replaced(item):
        _held({"model": "gpt-5", "input": [USER, wrong, USER]})


@pytest.mark.parametrize("key", sorted(BODY.members.keys() - {"input", "tools", "agent"}))
def test_invalid_value_in_a_body_is_rejected_or_dropped(key: str) -> None:
    body = {"model": "gpt-5", "input": [USER]}
    for wrong in _replaced({key: _full(BODY.members[key])}):
        _held({**body, **wrong})


# ------------------------------------------------------------------------------------------------------- what they mean


def test_memory_search_outside_the_schema_becomes_text() -> None:
    memory = {"memory_id": "m", "updated_at": 1, "scope": "s", "content": "Likes tea.", "kind": "user_profile"}
    whole = {"type": "memory_search_call", "status": "completed", "results": [{"memory_item": memory}]}
    assert segue.repair({"input": [USER, whole, USER]}, API).body["input"][1] == whole
    wrong = {**whole, "results": [{"memory_item": {**memory, "kind": 5}}]}
    made = segue.repair({"input": [USER, wrong, USER]}, API)
    assert "memory_search_call" not in [item.get("type") for item in made.body["input"]]
    assert "Likes tea." in made.data.decode()


def test_typed_call_without_required_id_becomes_a_function_call() -> None:
    action = {"type": "exec", "command": ["ls"], "env": {}}
    call = {
        "type": "local_shell_call",
        "id": f"lsh_{'a' * 50}",
        "call_id": "c",
        "action": action,
        "status": "completed",
    }
    output = {"type": "newer", "id": "c", "output": "r"}
    made = segue.repair({"model": "gpt-5", "input": [USER, call, output, USER]}, API).body
    assert segue.check(made, API), [*segue.check(made, API)]


def test_search_output_with_unknown_id_becomes_text() -> None:
    call = {"type": "tool_search_call", "arguments": {}, "call_id": None, "execution": "server", "status": "completed"}
    found = {"type": "tool_search_output", "tools": [], "call_id": "t", "execution": "server", "status": "completed"}
    for api in (API, "openai-responses"):
        made = segue.repair({"model": "gpt-5", "input": [USER, call, found, USER]}, api).body
        assert segue.check(made, api), [*segue.check(made, api)]


def test_conflicting_body_fields_are_dropped() -> None:
    body = {"model": "gpt-5", "input": [USER], "stream_options": {"include_obfuscation": False}, "background": True}
    made = segue.repair({**body, "store": False}, API)
    assert made.body == {"model": "gpt-5", "input": [USER], "store": False}
    assert {finding.subject for finding in made.report.findings_of("adjusted")} == {"stream_options", "background"}
    whole = {**body, "store": True, "stream": True}
    assert segue.repair(whole, API).body == whole
