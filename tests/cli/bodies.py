"""Small request bodies for the commands."""

from __future__ import annotations

from typing import Any

import msgspec

QUESTION = {"role": "user", "content": "How is the weather in Lisbon?"}
CALL = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Lisbon"}'}}
CALL_MESSAGE = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "sunny"}


def chat(*messages: Any, **more: Any) -> bytes:
    return msgspec.json.encode({"messages": [QUESTION, *messages], **more})


GOOD = chat(CALL_MESSAGE, RESULT)
# Lawful, with a key that some deployments refuse.
RISKY = chat({**CALL_MESSAGE, "mood": "sunny"}, RESULT)
# The call is never answered.
OPEN = chat(CALL_MESSAGE, {"role": "user", "content": "Never mind."})


def long_chat(megabytes: int) -> bytes:
    """Rounds of calls with long results, about this size."""
    rounds: list[Any] = []
    for number in range(megabytes * 10):
        call = {**CALL, "id": f"call_{number}"}
        rounds += [
            {**CALL_MESSAGE, "tool_calls": [call]},
            {**RESULT, "tool_call_id": f"call_{number}", "content": "w" * 100_000},
        ]
    return chat(*rounds)
