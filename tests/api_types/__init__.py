"""The message types of each API, closed: a field that the API does not have is an error.

They judge what is rendered from other APIs; a same-API body keeps the fields of its caller.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from segue.wire.registry import WIRES
from tests.api_types import anthropic, bedrock, chat, gemini, responses

MESSAGES: dict[str, Any] = {
    **chat.MESSAGES,
    "openai-responses": responses.Item,
    "azure-foundry": responses.Item,
    "anthropic": anthropic.Message,
    "gemini": gemini.Content,
    "bedrock": bedrock.Message,
}


@cache
def _decoder(api: str) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(list[MESSAGES[api]])


def decode_messages(body: dict[str, Any], api: str) -> list[Any]:
    """Decode the messages of a body; `msgspec.ValidationError` names the field that is wrong or unknown."""
    key = WIRES[api].conversation_key
    # A message of the Responses API may have no type.
    items = [{"type": "message", **item} for item in body[key]] if key == "input" else body[key]
    return _decoder(api).decode(msgspec.json.encode(items))
