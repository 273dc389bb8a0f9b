"""Text tool formats: the emulated model finds tools in the system text, writes calls as text and reads results."""

from __future__ import annotations

import json
from typing import Any

import pytest

import segue
from segue.emulator import start
from segue.wire.text.registry import TEXT_FORMATS
from tests.emulator.http_requests import send_request

MODELS = {"xml as GLM writes it": ("xml", "glm-4.6"), "xml as MiniMax writes it": ("xml", "MiniMax-M2")}
CASES = {**{name: (name, "some-model") for name in TEXT_FORMATS}, **MODELS}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "Weather.", "parameters": SCHEMA}}]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_a_tool_loop_in_a_text_format(case: str, *, stream: bool) -> None:
    tool_format, model = CASES[case]
    body = {"model": model, "messages": [{"role": "user", "content": "How is the weather in Paris?"}], "tools": TOOLS}
    with start("openai-chat", strict=False) as emulator:
        for _ in range(2):
            sent = segue.convert(body, source="openai-chat", target="openai-chat", tool_format=tool_format)
            assert "tools" not in sent.body
            answer = send_request(emulator, {**sent.body, "stream": stream}).data
            if stream:
                reader = sent.stream()
                answer = reader.feed(answer) + reader.close()
                reply = segue.assemble(answer, "openai-chat")
                message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
                if reply.calls:
                    functions = [{"name": call.name, "arguments": json.dumps(call.arguments)} for call in reply.calls]
                    message["tool_calls"] = [
                        {"id": call.raw_id, "type": "function", "function": function}
                        for call, function in zip(reply.calls, functions, strict=True)
                    ]
            else:
                message = sent.reply(answer)["choices"][0]["message"]
            body["messages"].append(message)
            for call in message.get("tool_calls", ()):
                assert call["function"]["name"] == "get_weather"
                assert "Paris" in call["function"]["arguments"]
                body["messages"].append({"role": "tool", "tool_call_id": call["id"], "content": "sunny, 21 degrees"})
    assert [one["role"] for one in body["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert "21 degrees" in body["messages"][-1]["content"]
