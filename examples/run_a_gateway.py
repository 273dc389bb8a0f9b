"""A gateway for clients of any API: Anthropic's SDK and OpenAI's, both on a model of Moonshot, emulated here.

Expected output:

    Messages: Hello! What can I do for you?
    Responses: Hello! What can I do for you?
"""

import re
import subprocess
import sys

import anthropic
import openai

# The same as `segue serve -m moonshot/kimi-k2.6`; with MOONSHOT_API_KEY, leave --emulated out.
line = [sys.executable, "-m", "segue", "serve", "-m", "moonshot/kimi-k2.6", "--emulated", "--port", "0"]
with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as gateway:
    assert gateway.stderr is not None
    found = re.search(r"http://\S+(?=;)", gateway.stderr.readline())
    assert found is not None
    claude = anthropic.Anthropic(base_url=found[0], api_key="any")
    message = claude.messages.create(
        model="any", max_tokens=100, messages=[{"role": "user", "content": "Hello!"}], thinking={"type": "disabled"}
    )
    print("Messages:", "".join(block.text for block in message.content if block.type == "text"))
    gpt = openai.OpenAI(base_url=f"{found[0]}/v1", api_key="any")
    print("Responses:", gpt.responses.create(model="any", input="Hello!").output_text)
    gateway.terminate()
