"""Frameworks change the text of earlier replies; the reasoning of those replies returns to its call all the same.

pydantic-ai adds the reasoning as text, langchain-mistralai drops the text of a reply with calls.
"""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from segue.transport import Transport
from tests.frameworks.upstreams import Emulators

MODEL = "gemini/gemini-3.8-flash"
PLACEHOLDER = "skip_thought_signature_validator"  # GEM-17: for calls without a signature
CALLS = 'call get_time {"zone": "Europe/Oslo"}\ncall get_time {"zone": "Europe/Lisbon"}\n---\nsay Noon.'


@pytest.mark.parametrize("text", ["", "say Let me look.\n"])
@pytest.mark.parametrize("edited", [None, "", "<think>\n\n</think>", "Let me look."])
def test_signature_returns_to_its_call(text: str, edited: str | None) -> None:
    tool = {"type": "function", "function": {"name": "get_time", "parameters": {"type": "object", "properties": {}}}}
    messages: list[Any] = [{"role": "user", "content": "How late is it?"}]
    with Emulators([MODEL], {MODEL: f"think Two zones.\n{text}{CALLS}"}) as emulators:
        transport = Transport(MODEL, **emulators.options)
        with httpx2.Client(transport=transport, base_url="https://api.openai.com/v1") as client:
            body = {"model": "any", "messages": messages, "tools": [tool]}
            message = client.post("/chat/completions", json=body).json()["choices"][0]["message"]
            messages.append({**message, "content": edited})
            messages += [
                {"role": "tool", "tool_call_id": call["id"], "content": "noon"} for call in message["tool_calls"]
            ]
            assert client.post("/chat/completions", json=body).status_code == 200
        (request,) = emulators.running[MODEL].requests[1:]
    (parts,) = [content["parts"] for content in (request.body or {})["contents"] if content["role"] == "model"]
    first, second = [part for part in parts if "functionCall" in part]
    assert first["thoughtSignature"] != PLACEHOLDER
    assert "thoughtSignature" not in second
