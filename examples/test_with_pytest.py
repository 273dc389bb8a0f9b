"""A test of one's own agent: the fixture `emulator` comes with segue, and rejects what the real provider rejects.

Expected output:

    1 passed
"""

import os
import subprocess
import sys
from typing import Any

import anthropic

TOOL: Any = {"name": "get_weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}


def my_agent(client: anthropic.Anthropic, question: str) -> str:
    messages: list[Any] = [{"role": "user", "content": question}]
    while True:
        reply = client.messages.create(model="claude-sonnet-5", max_tokens=500, messages=messages, tools=[TOOL])
        calls = [block for block in reply.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in reply.content if block.type == "text")
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": "21 °C"} for call in calls]
        messages += [{"role": "assistant", "content": reply.content}, {"role": "user", "content": results}]


def test_my_agent_uses_the_weather(emulator: Any) -> None:
    provider = emulator("anthropic")
    client = anthropic.Anthropic(base_url=provider.base_url, api_key="any")
    assert "21 °C" in my_agent(client, "How warm is it in Lisbon?")
    assert [request.status for request in provider.requests] == [200, 200]


if __name__ == "__main__":
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, __file__]
    print(subprocess.run(line, capture_output=True, text=True, check=True).stdout.split("\n")[-2].partition(" in ")[0])
