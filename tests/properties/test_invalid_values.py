"""One value of a body replaced by another: an `InputError`, or a valid body. Nothing else is raised."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest

import segue
from segue.conformance import check_body
from tests.bodies import anthropic, chat
from tests.budget import sample
from tests.conversations.build import Case
from tests.conversations.table import CASES

VALUES: tuple[Any, ...] = (None, 5, -1, True, "", [], {}, "x")
TARGETS = tuple(row.name for row in segue.formats() if row.kind != "text")
EACH = 100
"""How many places are tried in the bodies of one API."""

Path = tuple[str | int, ...]


def _places(value: Any, path: Path = ()) -> Iterator[Path]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield (*path, key)
        yield from _places(item, (*path, key))


def _with(body: Any, path: Path, value: Any) -> Any:
    changed = copy.deepcopy(body)
    place = changed
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return changed


def mutants(source: str, seed: int, count: int) -> Iterator[tuple[Case, Path, Any, Any]]:
    """The case, the path, the value set there, and the body."""
    chance = random.Random(f"{source} {seed}")
    cases = [case for case in CASES if case.source == source]
    for _ in range(count):
        case = chance.choice(cases)
        path = chance.choice([*_places(case.body)])
        value = chance.choice(VALUES)
        yield case, path, value, _with(case.body, path, value)


def rejects(body: Any, api: str) -> list[str]:
    return [
        f"{found.rule} {found.path}: {found.message}" for found in check_body(body, api) if found.severity == "reject"
    ]


def _search(**changes: Any) -> Any:
    found = {"type": "web_search_result", "url": "https://a.example", "title": "A", "encrypted_content": "RU5D"}
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [found]}
    for key, value in changes.items():
        (result if key in result else found)[key] = value
    use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
    return anthropic.body(chat.user("q"), anthropic.assistant(use, result), chat.user("on"))


def _tooled(**changes: Any) -> Any:
    return anthropic.body(chat.user("a"), tools=[changes])


def _declared(**changes: Any) -> Any:
    return {"model": "gpt-5", "input": "a", "tools": [{**changes}]}


@pytest.mark.parametrize(
    ("api", "body", "path"),
    [
        ("anthropic", _tooled(type="bash_20250124", name=[]), "tools[0].name"),
        ("anthropic", _tooled(type=5, name="bash"), "tools[0].type"),
        ("anthropic", _search(tool_use_id=None), "messages[1].content[1].tool_use_id"),
        ("anthropic", _search(tool_use_id=""), "messages[1].content[1].tool_use_id"),
        ("anthropic", _search(encrypted_content=-1), "messages[1].content[1].content[0].encrypted_content"),
        (
            "gemini",
            {
                "contents": [{"role": "user", "parts": [{"text": "a"}]}],
                "toolConfig": {"functionCallingConfig": {"mode": True}},
            },
            "toolConfig.functionCallingConfig.mode",
        ),
        ("deepseek", {"messages": [{"role": "user", "content": "a"}], "tool_choice": True}, "tool_choice"),
        ("openai-chat", {"messages": [{"role": "user", "content": "a"}], "reasoning_effort": 5}, "reasoning_effort"),
        ("openai-chat", {"messages": [{"role": "user", "content": "a"}], "reasoning_effort": ""}, "reasoning_effort"),
        (
            "gemini",
            {
                "contents": [{"role": "user", "parts": [{"text": "a"}]}],
                "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f", []]}},
            },
            "toolConfig.functionCallingConfig.allowedFunctionNames[1]",
        ),
        ("azure-foundry", _declared(type="mcp", server_label="s", server_url=5), "tools[0].server_url"),
        ("azure-foundry", _declared(type="mcp", server_label="s", allowed_tools=["a", 5]), "tools[0].allowed_tools[1]"),
        ("azure-foundry", _declared(type="file_search"), "tools[0].vector_store_ids"),
        ("azure-foundry", _declared(type="namespace", name="n", description=5, tools=[]), "tools[0].description"),
    ],
)
def test_invalid_value_error_names_the_path(api: str, body: Any, path: str) -> None:
    with pytest.raises(segue.InputError) as raised:
        segue.convert(body, source=api, target=api)
    assert raised.value.path == path
    with pytest.raises(segue.InputError):
        segue.repair(body, api)


def test_negative_budget_disables_reasoning() -> None:
    body = {"messages": [{"role": "user", "content": "a"}], "enable_thinking": True, "thinking_budget": -1}
    for model in ("gpt-5.1", "gpt-5", None):
        made = segue.convert(body, source="qwen", target="openai-responses", model=model).body
        assert made.get("reasoning", {}).get("effort") in ("none", None)


@pytest.mark.parametrize("kind", ["function", "newer"])
def test_unknown_effort_becomes_none_with_functions(kind: str) -> None:
    tool = {"type": kind, "function": {"name": "f", "parameters": {"type": "object"}}}
    body = {"model": "gpt-5.6", "messages": [{"role": "user", "content": "a"}], "reasoning_effort": "newest"}
    assert segue.repair(body, "openai-chat").body == body
    assert segue.repair({**body, "tools": [tool]}, "openai-chat").body["reasoning_effort"] == "none"


def test_call_to_a_vendor_tool_keeps_its_type() -> None:
    call = {"id": "t:0", "type": "builtin_function", "function": {"name": "$web_search", "arguments": -1}}
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "t:0", "name": "$web_search", "content": "r"},
    ]
    made = segue.repair({"model": "kimi-k2-0905-preview", "messages": messages}, "kimi").body
    assert made["messages"][1]["tool_calls"][0]["type"] == "builtin_function"
    assert made["messages"][1]["tool_calls"][0]["function"]["arguments"] == "-1"
    assert segue.check(made, "kimi")


@pytest.mark.parametrize("target", ["openai-responses", "azure-foundry"])
def test_valid_fields_of_user_location_are_converted(target: str) -> None:
    where = {"type": "approximate", "city": "Turin", "country": True}
    tool = {"type": "web_search_20250305", "name": "web_search", "max_uses": "x", "user_location": where}
    made = segue.convert(_tooled(**tool), source="anthropic", target=target)
    assert made.body["tools"] == [{"type": "web_search", "user_location": {"type": "approximate", "city": "Turin"}}]
    lost = [finding.message for finding in made.report.findings_of("tools")]
    assert any("`user_location.country`" in line for line in lost)
    assert any("`max_uses (a string)`" in line for line in lost)


def test_search_with_unsupported_limits_is_not_declared() -> None:
    tool = {"type": "web_search_20250305", "name": "web_search", "allowed_domains": ["a.example", 5]}
    made = segue.convert(_tooled(**tool), source="anthropic", target="openai-responses")
    assert "tools" not in made.body
    assert made.report.findings_of("tools")


def test_invalid_image_detail_becomes_auto() -> None:
    part = {"type": "image_url", "image_url": {"url": "https://a.example/a.png", "detail": "x"}}
    body = {"messages": [{"role": "user", "content": [part]}]}
    made = segue.convert(body, source="openai-chat", target="azure-foundry").body
    assert made["input"][0]["content"][0]["detail"] == "auto"


def test_search_from_the_server_stays() -> None:
    assert not segue.repair(_search(), "anthropic").changes


@pytest.mark.parametrize("source", TARGETS)
def test_invalid_value_is_rejected_or_repaired(source: str) -> None:
    found: list[str] = []
    for number, (case, path, value, body) in enumerate(mutants(source, 0, EACH)):
        where = f"{case.name} {path} {value!r}"
        for target in sample(TARGETS, 3, start=number):
            try:
                made = segue.convert(body, source=source, target=target).body
            except segue.InputError:
                continue
            found += [f"{where} → {target}: {reject}" for reject in rejects(made, target)]
        try:
            segue.check(body, source)
            made = segue.repair(body, source).body
        except segue.InputError:
            continue
        found += [f"{where} repaired: {reject}" for reject in rejects(made, source)]
    # A value that the vendor's list lacks may be newer, and goes home unchanged.
    found = [line for line in found if "satisfy enum value set" not in line]
    assert not found, "\n".join(found)
