"""Independent readers: the calls and results of a body, paired by each provider's own rule, without segue.

Responses pairs by `call_id`, each output with the call before it that waits longest (OAI-RESP-04, 25). Gemini pairs
inside the turn right after the calls, neighbours of one role being one turn (GEM-01, GEM-08): by id where each call has
one of its own, by name where none has, else by position (GEM-12, GEM-13).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.properties.readers import Interaction, Reading, flat, read_anthropic, read_bedrock, read_chat

Body = dict[str, Any]

CALLS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}


def read_responses(body: Body) -> Reading:
    reading = Reading()
    waiting: dict[Any, list[int]] = {}
    found: list[Interaction] = reading.interactions
    kinds: list[str] = []
    for entry in body["input"] if isinstance(body["input"], list) else ():
        kind = entry.get("type")
        if kind in CALLS:
            given = entry["input"] if kind == "custom_tool_call" else _parsed(entry["arguments"])
            waiting.setdefault(entry["call_id"], []).append(len(found))
            kinds.append(CALLS[kind])
            found.append(Interaction(entry["call_id"], _qualified(entry), given, None))
        elif kind in CALLS.values():
            places = waiting.get(entry.get("call_id"))
            if not places:
                reading.surplus.append(entry)
                continue
            place = places.pop(0)
            assert kinds[place] == kind, f"a {kind} answers {found[place]}"
            call = found[place]
            found[place] = Interaction(call.id, call.name, call.arguments, flat(entry["output"]))
    return reading


def _qualified(entry: Body) -> str:
    return f"{entry['namespace']}.{entry['name']}" if entry.get("namespace") else entry["name"]


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _gemini_turns(body: Body) -> list[tuple[str, list[Body]]]:
    turns: list[tuple[str, list[Body]]] = []
    for content in body["contents"]:
        role = "user" if content.get("role") in (None, "user", "function") else content["role"]
        parts = [part for part in content.get("parts") or () if part.get("text") != ""]
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(parts)
        elif parts:
            turns.append((role, list(parts)))
    return turns


def _member(part: Body, camel: str, snake: str) -> Any:
    return part.get(camel, part.get(snake))


def response_text(response: Any) -> tuple[str, bool]:
    """The text of a functionResponse's object, and whether it is an error."""
    match response:
        case {"output": inner} | {"result": inner} | {"content": inner} if len(response) == 1:
            return _as_text(inner), False
        case {"error": inner} if len(response) == 1:
            return _as_text(inner), True
        case _:
            return _as_text(response), False


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value) if value else ""


def _in_order(calls: list[Body], answers: list[Body]) -> list[Body]:
    """The results in order, or by their ids or names where these are sufficient."""
    ids = [call.get("id") for call in calls]
    output = {answer.get("id"): answer for answer in answers}
    if None not in ids and len({*ids}) == len(ids) == len(answers) and output.keys() == {*ids}:
        return [output[one] for one in ids]
    names = [call["name"] for call in calls]
    if ids.count(None) == len(ids) and sorted(names) == sorted(answer["name"] for answer in answers):
        waiting = list(answers)
        return [waiting.pop(next(at for at, one in enumerate(waiting) if one["name"] == name)) for name in names]
    return answers


def read_gemini(body: Body) -> Reading:
    reading = Reading()
    turns = _gemini_turns(body)
    for at, (role, parts) in enumerate(turns):
        results = [found for part in parts if (found := _member(part, "functionResponse", "function_response"))]
        calls = [found for part in parts if (found := _member(part, "functionCall", "function_call"))]
        assert not (calls if role == "user" else results), f"{parts} stand under the role {role}"
        if role == "user" and (at == 0 or not reading.interactions):
            reading.surplus.extend(results)
        following = turns[at + 1][1] if at + 1 < len(turns) else []
        answers = [found for part in following if (found := _member(part, "functionResponse", "function_response"))]
        if role == "user":
            continue
        answers = _in_order(calls, answers)
        for number, call in enumerate(calls):
            answer = answers[number] if number < len(answers) else None
            text, error = response_text(answer.get("response")) if answer else (None, False)
            if answer:
                assert answer["name"] == call["name"], f"{answer} stands where {call} is answered"
                # An id that no call bears is a risk and no more: the API goes by place.
                other = answer.get("id") in [one.get("id") for one in calls] and answer.get("id") != call.get("id")
                assert not other, f"{answer} stands where {call} is answered"
            reading.interactions.append(Interaction(call.get("id"), call["name"], call.get("args", {}), text, error))
        reading.surplus.extend(answers[len(calls) :])
    return reading


READERS: dict[str, Callable[[Body], Reading]] = {
    "anthropic": read_anthropic,
    "openai-responses": read_responses,
    "azure-foundry": read_responses,
    "gemini": read_gemini,
    "bedrock": read_bedrock,
}


def read(body: Body, api: str) -> Reading:
    """The body as its API reads it; all other APIs are Chat dialects."""
    return READERS.get(api, read_chat)(body)


def declared_names(body: Body, api: str) -> list[str]:
    """The names of the tools that a body declares."""
    tools = body.get("tools") or []
    if api == "bedrock":
        return [one["toolSpec"]["name"] for one in body.get("toolConfig", {}).get("tools", ()) if "toolSpec" in one]
    if api == "gemini":
        return [one["name"] for tool in tools for one in tool.get("functionDeclarations", ())]
    if api in ("anthropic", "openai-responses", "azure-foundry"):
        return [tool["name"] for tool in tools]
    return [tool[tool["type"]]["name"] for tool in tools]
