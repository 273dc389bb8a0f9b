"""Use tools with a model that has no tool API: they are written into the prompt, calls are extracted from its text.

Expected output:

    declared in the body: False
    described in the prompt: True
    called: weather {"city":"Oslo"}
    hermes: 1 call, text left: 'One moment. '
"""

import segue

weather = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
body = {"messages": [{"role": "user", "content": "Is it cold in Oslo?"}], "tools": [weather]}

converted = segue.convert(body, target="openai-chat", tool_format="hermes")
print("declared in the body:", "tools" in converted.body)
print("described in the prompt:", "weather" in converted.body["messages"][0]["content"])

text = 'One moment. <tool_call>{"name": "weather", "arguments": {"city": "Oslo"}}</tool_call>'
answer = {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}
reply = converted.reply(answer)
function = reply["choices"][0]["message"]["tool_calls"][0]["function"]
print("called:", function["name"], function["arguments"])

extracted = segue.extract(text)
print(f"{extracted.format}: {len(extracted.calls)} call, text left: {extracted.text!r}")
