"""OpenAI's SDK on models of three vendors: the transport converts requests and replies, and no key is needed here.

Expected output:

    anthropic/claude-sonnet-5: calls get_weather {"city":"Oslo"}
    moonshot/kimi-k2.6: I looked it up. 4 °C in Oslo
    gemini/gemini-3.8-flash: You are welcome!
"""

from typing import Any

import openai

from segue.transport import client

# Without `emulated/`, keys are taken from ANTHROPIC_API_KEY, MOONSHOT_API_KEY and GEMINI_API_KEY.
MODELS = ("emulated/anthropic/claude-sonnet-5", "emulated/moonshot/kimi-k2.6", "emulated/gemini/gemini-3.8-flash")
city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
tools: Any = [{"type": "function", "function": {"name": "get_weather", "parameters": city}}]
messages: list[Any] = [{"role": "user", "content": "How warm is it in Oslo?"}]

for model in MODELS:
    sdk = openai.OpenAI(api_key="unused", http_client=client(model))
    message = sdk.chat.completions.create(model="any", messages=messages, tools=tools).choices[0].message
    messages.append(message)
    name = model.removeprefix("emulated/")
    for call in message.tool_calls or ():
        assert call.type == "function"
        print(f"{name}: calls {call.function.name} {call.function.arguments}")
        messages.append({"role": "tool", "tool_call_id": call.id, "content": "4 °C in Oslo"})
    if not message.tool_calls:
        print(f"{name}: {message.content}")
        messages.append({"role": "user", "content": "Thanks!"})
