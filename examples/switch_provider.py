"""Start a task with one provider and finish it with another: each gets the history in its own form.

Expected output:

    anthropic: calls weather {'city': 'Oslo'}
    gemini: It is 4 °C in Oslo.
    accepted: [True] [True]
"""

import segue
import segue.emulator

city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
chat = segue.Conversation(tools=[{"name": "weather", "description": "The weather.", "input_schema": city}])
chat.add_user("How warm is it in Oslo?")

with (
    segue.emulator.start("anthropic", script='call weather {"city": "Oslo"}') as claude,
    segue.emulator.start("gemini", script="say It is {weather} in Oslo.") as gemini,
):
    request = chat.render("anthropic", model="claude-sonnet-4-5")
    reply = chat.add_reply(segue.emulator.post(claude, request.body).body, source="anthropic")
    (call,) = reply.calls
    print("anthropic: calls", call.name, call.arguments)
    chat.add_result(call, "4 °C")

    request = chat.render("gemini", model="gemini-2.5-flash")
    answer = segue.emulator.post(gemini, request.body, model="gemini-2.5-flash")
    reply = chat.add_reply(answer.body, source="gemini")
    print("gemini:", reply.text)
    print("accepted:", [each.accepted for each in claude.requests], [each.accepted for each in gemini.requests])
