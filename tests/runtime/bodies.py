"""Independent readers of request bodies, one per API, and invariants of every body.

They follow the API documentation of calls and results and share no code with segue.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

Body = Mapping[str, Any]
Kind = Literal["call", "result", "text", "thinking"]

CHAT = ("openai-chat", "mistral", "kimi", "deepseek", "qwen")
RESPONSES = ("openai-responses", "azure-foundry")


class Part(NamedTuple):
    """One part of a body. `at` is the index of its message or item; the `value` of a call is its arguments."""

    kind: Kind
    speaker: str
    at: int
    value: Any = ""
    id: str | None = None
    name: str | None = None
    error: bool = False


def parts(api: str, body: Body) -> list[Part]:
    """All parts of a body in order, without system text."""
    if api in CHAT:
        return list(_chat(body))
    if api in RESPONSES:
        return list(_responses(body))
    return list({"anthropic": _anthropic, "gemini": _gemini, "bedrock": _bedrock}[api](body))


def calls(api: str, body: Body) -> list[Part]:
    return [part for part in parts(api, body) if part.kind == "call"]


def results(api: str, body: Body) -> list[Part]:
    return [part for part in parts(api, body) if part.kind == "result"]


# ------------------------------------------------------------------------------------------------------------- readers


def _join_text(content: Any) -> str:
    """The text of content that is a string or a list of parts."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(part.get("text", "") for part in content)


def _arguments(text: str) -> Any:
    """Parsed arguments; text that is not JSON is returned unchanged."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _chat(body: Body) -> Iterator[Part]:
    for at, message in enumerate(body["messages"]):
        role, content = message["role"], message.get("content")
        if role == "system":
            continue
        if role == "tool":
            text = _join_text(content)
            error = text.startswith("[error] ")
            yield Part("result", role, at, text.removeprefix("[error] "), message["tool_call_id"], error=error)
            continue
        if message.get("reasoning_content"):
            yield Part("thinking", role, at, message["reasoning_content"])
        for chunk in [{"type": "text", "text": content}] if isinstance(content, str) else content or []:
            if chunk["type"] == "thinking":
                yield Part("thinking", role, at, _join_text(chunk["thinking"]))
            elif chunk.get("text"):
                yield Part("text", role, at, chunk["text"])
        for call in message.get("tool_calls") or ():
            function = call["function"]
            yield Part("call", role, at, _arguments(function["arguments"]), call["id"], function["name"])


def _responses(body: Body) -> Iterator[Part]:
    for at, item in enumerate(body["input"]):
        match item.get("type", "message"):
            case "function_call":
                yield Part("call", "assistant", at, _arguments(item["arguments"]), item["call_id"], item["name"])
            case "function_call_output":
                text = _join_text(item["output"])
                error = text.startswith("[error] ")
                yield Part("result", "tool", at, text.removeprefix("[error] "), item["call_id"], error=error)
            case "reasoning":
                yield Part("thinking", "assistant", at, _join_text(item.get("summary")))
            case _ if item["role"] in ("system", "developer"):
                pass
            case _:
                yield Part("text", item["role"], at, _join_text(item["content"]))


def _anthropic(body: Body) -> Iterator[Part]:
    for at, message in enumerate(body["messages"]):
        role, content = message["role"], message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            match block["type"]:
                case "tool_use":
                    yield Part("call", role, at, block["input"], block["id"], block["name"])
                case "tool_result":
                    said, error = _join_text(block.get("content")), block.get("is_error") is True
                    yield Part("result", role, at, said, block["tool_use_id"], error=error)
                case "thinking" | "redacted_thinking":
                    yield Part("thinking", role, at, block.get("thinking", ""))
                case _:
                    yield Part("text", role, at, block["text"])


def _gemini(body: Body) -> Iterator[Part]:
    for at, content in enumerate(body["contents"]):
        role = content["role"]
        for part in content["parts"]:
            if call := part.get("functionCall"):
                yield Part("call", role, at, call.get("args", {}), call.get("id"), call["name"])
            elif result := part.get("functionResponse"):
                response = result["response"]
                error = set(response) == {"error"}
                said = response.get("error" if error else "output", "")
                yield Part("result", role, at, said, result.get("id"), result["name"], error)
            elif part.get("text"):
                yield Part("thinking" if part.get("thought") else "text", role, at, part["text"])


def _bedrock(body: Body) -> Iterator[Part]:
    for at, message in enumerate(body["messages"]):
        role = message["role"]
        for block in message["content"]:
            if call := block.get("toolUse"):
                yield Part("call", role, at, call["input"], call["toolUseId"], call["name"])
            elif result := block.get("toolResult"):
                error = result.get("status") == "error"
                yield Part("result", role, at, _join_text(result["content"]), result["toolUseId"], error=error)
            elif thought := block.get("reasoningContent"):
                yield Part("thinking", role, at, thought.get("reasoningText", {}).get("text", ""))
            elif "cachePoint" not in block:
                yield Part("text", role, at, block["text"])


# ---------------------------------------------------------------------------------------------------------- invariants


def unpaired_ids(api: str, body: Body) -> list[str]:
    """Calls without exactly one result, results without exactly one call. Ids that lack go by place and name."""
    called, answered = calls(api, body), results(api, body)
    if api == "gemini" and not all(part.id for part in (*called, *answered)):
        one, other = [part.name for part in called], [part.name for part in answered]
        return [] if one == other else [f"{one} were called and {other} answered"]
    once = Counter(part.id for part in called)
    twice = Counter(part.id for part in answered)
    return [
        f"{name}: {once[name]} calls, {twice[name]} results" for name in {*once, *twice} if once[name] != twice[name]
    ]


def repeated_ids(api: str, body: Body) -> list[str]:
    """Ids of more than one result or more than one call."""
    many: list[str] = []
    for held in (calls(api, body), results(api, body)):
        many += [f"{kind} {name}" for (kind, name), n in Counter((p.kind, p.id) for p in held if p.id).items() if n > 1]
    return many


_VALID_IDS = {
    "openai-chat": r"[A-Za-z0-9_-]{1,40}",
    "openai-responses": r"[A-Za-z0-9_-]{1,64}",
    "azure-foundry": r"[A-Za-z0-9_-]{1,64}",
    "anthropic": r"[A-Za-z0-9_-]{1,64}",
    "bedrock": r"[A-Za-z0-9_-]{1,64}",
    "gemini": r"[A-Za-z0-9_-]{1,64}",
    "mistral": r"[A-Za-z0-9]{9}",
    "kimi": r"functions\.(?P<name>[A-Za-z0-9_-]+):(?P<index>0|[1-9][0-9]*)",
    "deepseek": r"[A-Za-z0-9_-]{1,64}",
    "qwen": r"[A-Za-z0-9_-]{1,64}",
}


def invalid_ids(api: str, body: Body) -> list[str]:
    """Ids that the API rejects; for Kimi also ids with another tool's name or a repeated index."""
    wrong: list[str] = []
    indexes: list[str] = []
    for part in calls(api, body):
        if part.id is None and api == "gemini":
            continue
        found = re.fullmatch(_VALID_IDS[api], part.id or "")
        if found is None:
            wrong.append(f"{part.id!r} of {part.name}")
        elif api == "kimi":
            indexes.append(found["index"])
            if found["name"] != part.name:
                wrong.append(f"{part.id!r} of {part.name}")
    return wrong + [f"index {index} twice" for index, times in Counter(indexes).items() if times > 1]


def misplaced_results(api: str, body: Body) -> list[str]:
    """Results that do not directly follow their calls in call order."""
    if api in CHAT:
        return _misplaced_in_chat(api, body["messages"])
    if api in RESPONSES:
        return _misplaced_in_items(parts(api, body))
    return _misplaced_in_turns(api, body)


def _misplaced_in_chat(api: str, messages: Sequence[Body]) -> list[str]:
    wrong: list[str] = []
    due: list[str] = []
    for at, message in enumerate(messages):
        if message["role"] == "tool":
            if not due or due.pop(0) != message["tool_call_id"]:
                wrong.append(f"messages[{at}]: {message['tool_call_id']} is not due here")
            continue
        if due:
            wrong.append(f"messages[{at}]: {due} are still due")
        if api == "mistral" and message["role"] == "user" and at and messages[at - 1]["role"] == "tool":
            wrong.append(f"messages[{at}]: a user right after a tool")
        due = [call["id"] for call in message.get("tool_calls") or ()]
    return [*wrong, *(f"{name} has no result at the end" for name in due)]


def _misplaced_in_items(said: Sequence[Part]) -> list[str]:
    """Nothing may be between a run of calls and the run of their results."""
    wrong: list[str] = []
    due: list[str | None] = []
    answering = False
    for part in said:
        if part.kind == "call":
            if answering and due:
                wrong.append(f"input[{part.at}]: {due} are still due")
            answering = False
            due.append(part.id)
        elif part.kind == "result":
            answering = True
            if not due or due.pop(0) != part.id:
                wrong.append(f"input[{part.at}]: {part.id} is not due here")
        elif due:
            wrong.append(f"input[{part.at}]: {part.kind} while {due} are due")
    return [*wrong, *(f"{name} has no result at the end" for name in due)]


def _misplaced_in_turns(api: str, body: Body) -> list[str]:
    """Results come first in the next message and nowhere else; roles alternate."""
    messages = body["contents" if api == "gemini" else "messages"]
    held: dict[int, list[Part]] = {at: [] for at in range(len(messages))}
    for part in parts(api, body):
        held[part.at].append(part)
    wrong: list[str] = []
    due: list[str | None] = []
    for at, message in enumerate(messages):
        answered = [part.id or part.name for part in held[at] if part.kind == "result"]
        if answered != due:
            wrong.append(f"messages[{at}]: {answered} answered, {due} due")
        kinds = [part.kind for part in held[at]]
        if "result" in kinds[len(answered) :]:
            wrong.append(f"messages[{at}]: a result after something else")
        if at and api != "gemini" and messages[at - 1]["role"] == message["role"]:
            wrong.append(f"messages[{at}]: {message['role']} twice")
        due = [part.id or part.name for part in held[at] if part.kind == "call"]
    return [*wrong, *(f"{name} has no result at the end" for name in due)]


def find_violations(api: str, body: Body) -> list[str]:
    """All that is wrong with the calls and results of a body."""
    return [
        *(f"pairing: {found}" for found in unpaired_ids(api, body)),
        *(f"placement: {found}" for found in misplaced_results(api, body)),
        *(f"ids: {found}" for found in invalid_ids(api, body)),
        *(f"repeated: {found}" for found in repeated_ids(api, body)),
    ]
