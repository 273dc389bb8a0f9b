"""Convert a Chat Completions body with tool calls to Anthropic, and print what was changed.

Expected output:

    user: What is in notes.txt?
    assistant: read_file toolu_
    user: tool_result, text
    accepted: True
    synthetic: added an error result for a tool call without a result
    tools: added a stub tool declaration: the history has tool calls but no tools are declared
    adjusted: `max_tokens` set to 8192: Anthropic requires it, the body has none
"""

import segue

call = {"id": "call_1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "notes.txt"}'}}
body = {
    "model": "gpt-4.1",
    "messages": [
        {"role": "user", "content": "What is in notes.txt?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "user", "content": "Never mind. What else can you do?"},  # the call has no result
    ],
}

converted = segue.convert(body, target="anthropic", model="claude-sonnet-4-5")

question, assistant, results = converted.body["messages"]
print("user:", question["content"])
print("assistant:", assistant["content"][0]["name"], assistant["content"][0]["id"][:6])
print("user:", ", ".join(block["type"] for block in results["content"]))
print("accepted:", bool(segue.check(converted.body, "anthropic")))
for finding in converted.report.findings:
    print(f"{finding.kind}: {finding.message}")
