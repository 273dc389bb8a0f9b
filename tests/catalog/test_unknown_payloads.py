"""Payloads without a catalog type, between all providers: an error, or a valid body."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

import segue
from segue.canonical.blocks import Opaque
from segue.wire.catalog.registry import GENERIC_TYPES
from segue.wire.registry import WIRES
from tests.budget import sample

ABSENT: Any = object()
TYPES: tuple[Any, ...] = (
    *(ABSENT, None, 5, "", [], {}, "wibble", "text", "image", "thinking", "message", "reasoning", "function_call"),
    *("tool_use", "output_text", "item_reference", "compaction"),
)
MEMBERS: tuple[dict[str, Any], ...] = (
    {"x": 1},
    {"x": [1, [2]]},
    {"text": "t"},
    {"text": ""},
    {"text": 5},
    {"content": [5]},
    {"role": "user", "content": "t"},
    {"role": 5},
    {"id": 5, "text": "t"},
    {"wibble": {"a": 1}},
    {"toolUse": 5},
    {"toolUse": {}},
    {"functionCall": {}},
    {"cachePoint": 5},
    {"cachePoint": {"type": "default"}},
    {"inlineData": 5},
    {"thinking": "t", "signature": "s"},
    {"call_id": "c", "output": "o"},
    {"status": 5},
)
BESIDE = {"anthropic": {"model": "claude-sonnet-4-5", "max_tokens": 9}}


def _payloads() -> Iterator[dict[str, Any]]:
    for kind, members in product(TYPES, MEMBERS):
        yield members if kind is ABSENT else {"type": kind, **members}


def _parsed(payload: dict[str, Any], provider: str) -> Any:
    try:
        return segue.parse_item(payload, provider)
    except segue.InputError:
        return None


@pytest.mark.parametrize("provider", GENERIC_TYPES)
def test_empty_payload_is_rejected(provider: str) -> None:
    with pytest.raises(segue.InputError) as raised:
        segue.parse_item({}, provider)
    assert raised.value.path == "payload"


@pytest.mark.parametrize("target", WIRES)
@pytest.mark.parametrize("provider", GENERIC_TYPES)
def test_unknown_payload_in_a_conversation_is_valid(provider: str, target: str) -> None:
    number = [*GENERIC_TYPES].index(provider) + [*WIRES].index(target)
    for payload in sample(_payloads(), 5, start=number):
        blocks = _parsed(payload, provider)
        if blocks is None:
            continue
        chat = segue.Conversation()
        chat.add_user("Go on.")
        chat.add_blocks(*blocks)
        chat.add_user("And now?")
        made = chat.render(target)
        verdict = segue.check(made.data, target)
        assert verdict, (payload, [*verdict])


@pytest.mark.parametrize(("provider", "to"), [*product(GENERIC_TYPES, GENERIC_TYPES)])
def test_unknown_payload_is_rendered_unchanged_or_not_at_all(provider: str, to: str) -> None:
    for payload in _payloads():
        blocks = _parsed(payload, provider)
        if blocks is None or not all(isinstance(block, Opaque) for block in blocks):
            continue
        try:
            made = segue.render_item(blocks, to)
        except segue.InputError:
            continue
        assert (made, to) == (payload, provider)
        # There is no checker for APIs without a wire.
        if not (GENERIC_TYPES[to].has_other_apis and isinstance(payload.get("type"), str)):
            verdict = segue.check({**BESIDE.get(to, {}), **GENERIC_TYPES[to].body(made)}, GENERIC_TYPES[to].api)
            assert verdict, (payload, [*verdict])


@pytest.mark.parametrize(
    ("provider", "payload"),
    [
        ("bedrock", {"wibble": {"a": 1}}),
        ("bedrock", {"type": "wibble"}),
        ("openai", {"x": 1}),
        ("anthropic", {"text": "t"}),
        ("azure-foundry", {"type": "wibble"}),
        ("gemini", {"x": 1}),
        ("mistral", {"x": 1}),
    ],
)
def test_invalid_payload_is_not_sent_for_same_api_and_not_lost(provider: str, payload: Any) -> None:
    blocks = segue.parse_item(payload, provider)
    with pytest.raises(segue.InputError):
        segue.render_item(blocks, provider)
    chat = segue.Conversation()
    chat.add_user("Go on.")
    chat.add_blocks(*blocks)
    chat.add_user("And now?")
    rendered = chat.render(GENERIC_TYPES[provider].api).data.decode().replace("\\", "")
    assert next(iter(payload)) in rendered


def test_compaction_with_unknown_key_is_kept_for_same_api() -> None:
    block = {"type": "compaction", "content": "so far", "stray": 5}
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [block]},
        {"role": "user", "content": "b"},
    ]
    made = segue.repair({"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": messages}, "anthropic")
    assert made.body["messages"][1]["content"] == [{"type": "compaction", "content": "so far"}]
    assert [finding.subject for finding in made.report.findings_of("dropped")] == ["stray"]
