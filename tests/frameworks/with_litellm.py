"""LiteLLM: `completion` with a client of OpenAI, in a tool loop."""

# pyright: reportMissingImports=false

from __future__ import annotations

import json
from typing import Any

import litellm
import openai

from tests.frameworks.task import INSTRUCTIONS, QUESTION, REQUESTS
from tests.frameworks.upstreams import Upstreams

_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"Look up by {parameter}.",
            "parameters": {"type": "object", "properties": {parameter: {"type": "string"}}, "required": [parameter]},
        },
    }
    for name, parameter in (("get_weather", "city"), ("get_time", "zone"))
]


def run(upstreams: Upstreams, streamed: bool) -> str:
    messages: list[Any] = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": QUESTION}]
    with openai.OpenAI(api_key="unused", http_client=upstreams.client()) as client:
        for _ in range(REQUESTS + 1):
            reply: Any = litellm.completion(
                f"custom_openai/{upstreams.model}", messages, tools=_TOOLS, stream=streamed, client=client
            )
            if streamed:
                reply = litellm.stream_chunk_builder(list(reply), messages=messages)
            message = reply.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                return message.content
            for call in message.tool_calls:
                result = upstreams.tools.record(call.function.name, json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    return ""
