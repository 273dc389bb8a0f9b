"""Small independent readers of each API's bodies, written from the rulebook and without segue.

Chat pairs by id inside the run of tool messages right after the calls (OAI-CHAT-03); Anthropic by `tool_use_id` in
the user turn right after (ANT-04), neighbours of one role being one turn (ANT-21); Responses by `call_id`, wherever the
output stands (OAI-RESP-06), as long as it is of its call's type (OAI-RESP-17); Gemini in the one content right after
the calls (GEM-01), by id where there is one, else by name and order; contents of the model in a row are one turn.
Converse pairs as Anthropic does, by `toolUseId` (BED-04, BED-05).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from tests.properties.scenario import find_marker

Body = dict[str, Any]


@dataclass(frozen=True)
class Interaction:
    """A call in a body, with the text of the result at its id (None: there is none)."""

    id: Any
    name: str
    arguments: Any
    text: str | None
    error: bool = False

    @property
    def marker(self) -> str | None:
        return find_marker(json.dumps(self.arguments, ensure_ascii=False))


@dataclass
class Reading:
    interactions: list[Interaction] = field(default_factory=list)
    surplus: list[Any] = field(default_factory=list)  # results that stand at no call

    @property
    def ids(self) -> list[Any]:
        return [interaction.id for interaction in self.interactions]

    def find(self, marker: str) -> list[Interaction]:
        """The interactions whose arguments contain this marker."""
        return [one for one in self.interactions if marker in json.dumps(one.arguments, ensure_ascii=False)]


def flat(content: Any) -> str:
    """All text of a content, parts joined by nothing."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return ""


def _parsed(arguments: Any) -> Any:
    try:
        return json.loads(arguments)
    except (TypeError, ValueError):
        return arguments


def _chat_calls(message: Body) -> Iterator[tuple[Any, str, Any]]:
    for call in message.get("tool_calls") or ():
        inner = call.get("custom") if call.get("type") == "custom" else call.get("function")
        inner = inner or {}
        given = inner["input"] if "input" in inner else _parsed(inner.get("arguments"))
        yield call.get("id"), inner.get("name", ""), given


def read_chat(body: Body) -> Reading:
    reading = Reading()
    messages = body["messages"]
    index = 0
    while index < len(messages):
        message = messages[index]
        index += 1
        if message.get("role") == "tool":
            reading.surplus.append(message)
        if message.get("role") != "assistant":
            continue
        function_call = message.get("function_call")
        if function_call:
            following = messages[index] if index < len(messages) else {}
            text = flat(following.get("content")) if following.get("role") == "function" else None
            reading.interactions.append(
                Interaction("legacy", function_call["name"], _parsed(function_call["arguments"]), text)
            )
            continue
        run: dict[Any, list[Body]] = {}
        calls = list(_chat_calls(message))
        while calls and index < len(messages) and messages[index].get("role") == "tool":
            run.setdefault(messages[index].get("tool_call_id"), []).append(messages[index])
            index += 1
        for call_id, name, arguments in calls:
            found = run.get(call_id)
            text = flat(found.pop(0).get("content")) if found else None
            reading.interactions.append(Interaction(call_id, name, arguments, text))
        reading.surplus.extend(rest for left in run.values() for rest in left)
    return reading


def _turns(body: Body) -> list[tuple[str, list[Body]]]:
    turns: list[tuple[str, list[Body]]] = []
    for message in body["messages"]:
        content = message.get("content")
        blocks: list[Body] = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(blocks)
        else:
            turns.append((message["role"], blocks))
    return turns


def read_anthropic(body: Body) -> Reading:
    reading = Reading()
    waiting: dict[Any, list[Body]] = {}
    turns = _turns(body)
    for position, (role, blocks) in enumerate(turns):
        if role == "assistant":
            following = turns[position + 1] if position + 1 < len(turns) else ("", [])
            waiting = {}
            for block in following[1] if following[0] == "user" else ():
                if block.get("type") == "tool_result":
                    waiting.setdefault(block.get("tool_use_id"), []).append(block)
            for block in blocks:
                if block.get("type") != "tool_use":
                    continue
                found = waiting.get(block.get("id"))
                result = found.pop(0) if found else None
                text = flat(result.get("content", "")) if result is not None else None
                error = bool(result and result.get("is_error"))
                reading.interactions.append(
                    Interaction(block.get("id"), block.get("name", ""), block.get("input"), text, error)
                )
            reading.surplus.extend(rest for left in waiting.values() for rest in left)
        elif position == 0 or turns[position - 1][0] != "assistant":
            reading.surplus.extend(block for block in blocks if block.get("type") == "tool_result")
    return reading


def _as_anthropic(block: Body) -> Body:
    match block:
        case {"toolUse": {"type": "server_tool_use"}} | {"toolResult": {"type": str()}}:
            return {"type": "hosted"}
        case {"toolUse": use}:
            return {"type": "tool_use", "id": use.get("toolUseId"), "name": use["name"], "input": use["input"]}
        case {"toolResult": result}:
            parts = [{"text": json.dumps(part["json"])} if "json" in part else part for part in result["content"]]
            failed = result.get("status") == "error"
            return {"type": "tool_result", "tool_use_id": result["toolUseId"], "content": parts, "is_error": failed}
        case _:
            return block


def read_bedrock(body: Body) -> Reading:
    texts = [
        {"role": message["role"], "content": [_as_anthropic(block) for block in message["content"]]}
        for message in body["messages"]
    ]
    return read_anthropic({"messages": texts})


_OUTPUTS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    # OAI-RESP-17
    "tool_search_call": "function_call_output",
}


def read_responses(body: Body) -> Reading:
    reading = Reading()
    items = [item for item in body["input"] if isinstance(item, dict)] if isinstance(body["input"], list) else []
    waiting: dict[Any, list[Body]] = {}
    for item in items:
        if item.get("type") in _OUTPUTS.values():
            waiting.setdefault((item["type"], item.get("call_id")), []).append(item)
    for item in items:
        if item.get("type") not in _OUTPUTS:
            continue
        found = waiting.get((_OUTPUTS[item["type"]], item.get("call_id")))
        if item["type"] == "tool_search_call" and not found:
            continue
        given = item["input"] if "input" in item else _parsed(item.get("arguments"))
        output = flat(found.pop(0).get("output", "")) if found else None
        reading.interactions.append(Interaction(item.get("call_id"), item.get("name", ""), given, output))
    reading.surplus.extend(rest for left in waiting.values() for rest in left)
    return reading


def _gemini_result(response: Any) -> tuple[str, bool]:
    """The text of a `functionResponse`, and whether it is an error."""
    if isinstance(response, dict) and len(response) == 1:
        (key, value), error = next(iter(response.items())), "error" in response
        if key in ("output", "error") and isinstance(value, str):
            return value, error
    return ("" if response == {} else json.dumps(response, ensure_ascii=False)), False


def _answer(call: Body, waiting: list[Body], ids: set[Any]) -> Body | None:
    """The result of a call: by its id, else the first of its name whose id is no other call's."""
    named = [one for one in waiting if one["name"] == call["name"]]
    same = [one for one in named if call.get("id") and one.get("id") == call["id"]]
    return next(iter(same or [one for one in named if one.get("id") not in ids]), None)


def read_gemini(body: Body) -> Reading:
    reading = Reading()
    turns = [list(run) for _, run in groupby(body["contents"], lambda content: content.get("role") == "model")]
    for turn, following in zip(turns, [*turns[1:], []], strict=True):
        if turn[0].get("role") != "model":
            reading.surplus.extend(
                part for content in turn[1:] for part in content["parts"] if "functionResponse" in part
            )
            continue
        first = following[0]["parts"] if following else []
        waiting = [part["functionResponse"] for part in first if "functionResponse" in part]
        calls = [part["functionCall"] for content in turn for part in content["parts"] if "functionCall" in part]
        ids = {call["id"] for call in calls if call.get("id")}
        for call in calls:
            found = _answer(call, waiting, ids)
            waiting = [one for one in waiting if one is not found]
            text, error = _gemini_result(found["response"]) if found else (None, False)
            reading.interactions.append(
                Interaction(call.get("id") or None, call["name"], call.get("args"), text, error)
            )
        reading.surplus.extend(waiting)
    return reading


CHATS = ("openai-chat", "kimi", "mistral", "deepseek", "qwen")
READERS: dict[str, Callable[[Body], Reading]] = {
    **dict.fromkeys(CHATS, read_chat),
    "openai-responses": read_responses,
    "azure-foundry": read_responses,
    "anthropic": read_anthropic,
    "gemini": read_gemini,
    "bedrock": read_bedrock,
}


def read(body: Body, api: str) -> Reading:
    """The body as its API reads it; a wire without a reader is converted to Chat first."""
    if api in READERS:
        return READERS[api](body)
    import segue

    return read_chat(segue.convert(body, source=api, target="openai-chat").body)
