"""Answer a Chat Completions client with the stream of an Anthropic model, event by event.

Expected output:

    {"role":"assistant","content":""}
    {"content":"Good "}
    {"content":"morning."}
    {}
    [DONE]
"""

import json

import segue
import segue.emulator

body = {"model": "gpt-4.1", "stream": True, "messages": [{"role": "user", "content": "Say hello."}]}
converted = segue.convert(body, target="anthropic", model="claude-sonnet-4-5")
stream = converted.stream()

with segue.emulator.start("anthropic", script="say Good morning.") as claude:
    upstream = segue.emulator.post(claude, converted.body, stream=True).data

sent = b""
for start in range(0, len(upstream), 100):  # chunks of any size
    sent += stream.feed(upstream[start : start + 100])
sent += stream.close()

for line in sent.decode().splitlines():
    if line == "data: [DONE]":
        print("[DONE]")
    elif line.startswith("data: ") and (choices := json.loads(line[6:])["choices"]):
        print(json.dumps(choices[0]["delta"], separators=(",", ":")))
