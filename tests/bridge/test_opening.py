"""The digest of a conversation's first user message, which is found without decoding the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from segue.bridge import digests
from segue.bridge.digests import digest_opening
from segue.wire.registry import WIRES

ODD = 'a text with },{"role":"user"} and \\" in it'
BLOCKS = [{"type": "text", "text": ODD}, {"type": "text", "text": "two"}]
REPLY = {"role": "assistant", "content": "Hello"}
CONVERSATIONS: dict[str, tuple[str, list[Any]]] = {
    "text": ("openai-chat", [{"role": "user", "content": "One"}, REPLY]),
    "system": ("openai-chat", [{"role": "system", "content": ODD}, {"role": "user", "content": ODD}, REPLY]),
    "blocks": ("anthropic", [{"role": "user", "content": BLOCKS}, REPLY]),
    "role-last": ("anthropic", [{"content": BLOCKS, "role": "user"}, REPLY]),
    "parts": ("gemini", [{"parts": [{"text": ODD}], "role": "user"}, {"parts": [{"text": "Hello"}], "role": "model"}]),
    "items": (
        "openai-responses",
        [
            {"type": "message", "role": "developer", "content": ODD},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": ODD}]},
            {"type": "message", **REPLY},
        ],
    ),
    "alone": ("openai-chat", [{"role": "user", "content": "One"}]),
    "late": ("openai-chat", [REPLY, REPLY, {"role": "user", "content": "One"}, REPLY]),
}


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_the_rest_of_a_conversation_does_not_change_the_digest(name: str) -> None:
    api, items = CONVERSATIONS[name]
    wire = WIRES[api]
    user = next(item for item in items if item.get("role") == "user")
    expected = digest_opening(wire, Raw(json.dumps([user]).encode()))
    assert expected != digest_opening(wire, None)
    # All items up to the message are decoded where a gap is not recognised.
    for indent in (None, 2):
        for number in (0, 1, 200):
            conversation = json.dumps([*items, *[items[-1]] * number], indent=indent).encode()
            assert digest_opening(wire, Raw(conversation)) == expected


@pytest.mark.parametrize("conversation", [None, b"", b'"text"', b"[]", b'[{"role":"assistant","content":"x"}]'])
def test_a_conversation_without_a_user_message_has_one_digest(conversation: bytes | None) -> None:
    wire = WIRES["openai-chat"]
    given = None if conversation is None else Raw(conversation)
    assert digest_opening(wire, given) == digest_opening(wire, None)


def test_only_the_beginning_of_a_long_conversation_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    decode = digests._decode_items

    def record(data: bytes) -> list[Raw]:
        sizes.append(len(data))
        return decode(data)

    monkeypatch.setattr(digests, "_decode_items", record)
    items = [{"role": "user", "content": BLOCKS}, *[REPLY] * 1000]
    digest_opening(WIRES["anthropic"], Raw(json.dumps(items).encode()))
    assert sum(sizes) < 1000
