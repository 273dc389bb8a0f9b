"""Find out why a provider rejects a body, and repair it with the fewest changes.

Expected output:

    accepted: False
    OAI-CHAT-03 at messages[1].tool_calls[0]
    + messages[2]: {"role":"tool","tool_call_id":"call_1","content":"[interrupted: no result was re…
    # added an error result for a tool call without a result
    accepted: True
"""

import segue

call = {"id": "call_1", "type": "function", "function": {"name": "list_dir", "arguments": "{}"}}
broken = {
    "model": "gpt-4.1",
    "messages": [
        {"role": "user", "content": "What is in this folder?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "user", "content": "Hello?"},
    ],
}

verdict = segue.check(broken, "openai-chat")
print("accepted:", bool(verdict))
for violation in verdict:
    print(violation.rule, "at", violation.path)

repaired = segue.repair(broken, "openai-chat")
print(repaired)
print("accepted:", bool(segue.check(repaired.body, "openai-chat")))
