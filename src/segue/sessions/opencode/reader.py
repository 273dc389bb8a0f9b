"""Parses sessions of opencode in the form of `opencode export`: `{info, messages: [{info, parts}]}`.

A reply has its calls and their results in one part each. A call that did not end is sent with an error as its result. A
compaction is a message of the user with a part `compaction`, and the reply to it, which is the summary.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from segue.errors import InputError
from segue.sessions.neutral import API, object_of, objects_of, result_unit, string_of, thinking_block
from segue.sessions.parsed_log import Line, ParsedLog, SessionFacts, make_title

PARENT_KEY = "segueParent"
"""The key of the session that this one was moved from, in the session's metadata."""
ADDED_KEY = "segue"
"""The key of texts that segue added to a session, in their metadata."""
_INTERRUPTED = "The call was interrupted."
_SUMMARY = "Summary of the conversation before:"


def is_line(line: Line) -> bool:
    info = object_of(line.value.get("info"))
    return isinstance(line.value.get("messages"), list) and str(info.get("id", "")).startswith("ses")


def parse_log(lines: list[Line]) -> ParsedLog:
    """Return the body with which the client would continue."""
    value = next(line.value for line in lines if is_line(line))
    info, all_messages = object_of(value.get("info")), objects_of(value.get("messages"))
    current = _after_compaction(all_messages)
    body = _Body()
    for number, message in enumerate(current):
        body.add(message, f"messages[{len(all_messages) - len(current) + number}]")
    if not body.messages:
        raise InputError("this session has no messages")
    model = find_model(all_messages)[1]
    metadata = object_of(info.get("metadata"))
    facts = SessionFacts(
        string_of(info.get("id")),
        string_of(info.get("directory")),
        version=string_of(info.get("version")),
        name=string_of(info.get("title")),
        parent=string_of(metadata.get(PARENT_KEY)),
    )
    dropped = {
        "messages before the client's own compaction": len(all_messages) - len(current),
        "replies that failed": body.failed,
    }
    content = {**({"model": model} if model else {}), "messages": body.messages}
    return ParsedLog("opencode", content, API, facts.name, [], dropped, body.times, facts=facts)


def _after_compaction(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages from the last summary on."""
    places = [
        number
        for number, message in enumerate(messages)
        if object_of(message.get("info")).get("summary") is True and object_of(message["info"]).get("finish")
    ]
    return messages[places[-1] :] if places else messages


class _Body:
    """The messages of a body so far."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.times: list[int | None] = []
        self.failed = 0

    def add(self, message: dict[str, Any], path: str) -> None:
        info, parts = object_of(message.get("info")), objects_of(message.get("parts"))
        created = object_of(info.get("time")).get("created")
        at = created * 1000 if isinstance(created, int) else None
        match info.get("role"):
            case "user":
                blocks = [block for part in parts if (block := _parse_input(part)) is not None]
                self._append({"role": "user", "content": blocks}, at)
            case "assistant" if info.get("summary") is True:
                text = "\n".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")
                self._append({"role": "user", "content": [{"type": "text", "text": f"{_SUMMARY}\n\n{text}"}]}, at)
            case "assistant":
                if "error" in info and not any(part.get("type") in ("text", "tool") for part in parts):
                    self.failed += 1
                self._add_reply(parts, at)
            case role:
                raise InputError(f"a message of the role {role!r} is not known", path=path)

    def _append(self, message: dict[str, Any], at: int | None) -> None:
        if message["content"]:
            self.messages.append(message)
            self.times.append(at)

    def _add_reply(self, parts: list[dict[str, Any]], at: int | None) -> None:
        blocks: list[dict[str, Any]] = []
        results: list[tuple[int, dict[str, Any]]] = []

        def flush() -> None:
            self._append({"role": "assistant", "content": list(blocks)}, at)
            for _, result in sorted(results, key=itemgetter(0)):
                self._append(result, at)
            blocks.clear()
            results.clear()

        for part in parts:
            match part.get("type"):
                case "step-start":
                    flush()
                case "text":
                    if ADDED_KEY not in object_of(part.get("metadata")):
                        blocks.append({"type": "text", "text": part["text"]})
                case "reasoning":
                    metadata = object_of(object_of(part.get("metadata")).get("anthropic"))
                    blocks.append(thinking_block(part.get("text"), metadata.get("signature")))
                case "tool":
                    state = object_of(part.get("state"))
                    call = {"type": "tool_use", "id": part.get("callID"), "name": part.get("tool")}
                    blocks.append({**call, "input": object_of(state.get("input"))})
                    ended = object_of(state.get("time")).get("end")
                    result = _parse_result(part.get("callID"), state)
                    results.append((ended if isinstance(ended, int) else 1 << 62, result))
                case _:
                    continue
        flush()


def _parse_result(call_id: object, state: dict[str, Any]) -> dict[str, Any]:
    match state.get("status"):
        case "completed":
            output = objects_of(state.get("output"))
            files = [_parse_file(part) for part in objects_of(state.get("attachments"))]
            return result_unit(call_id, [*output, *(part for part in files if part is not None)], is_error=False)
        case "error":
            return result_unit(call_id, objects_of(state.get("error")), is_error=True)
        case _:
            return result_unit(call_id, [{"type": "text", "text": _INTERRUPTED}], is_error=True)


def _parse_input(part: dict[str, Any]) -> dict[str, Any] | None:
    match part.get("type"):
        case "text" if part.get("text") and not part.get("ignored"):
            return {"type": "text", "text": part["text"]}
        case "file":
            # The content of a text file is a text of its own.
            return None if part.get("mime") in ("text/plain", "application/x-directory") else _parse_file(part)
        case _:
            return None


def _parse_file(part: dict[str, Any]) -> dict[str, Any] | None:
    url = str(part.get("url", ""))
    if not url.startswith("data:") or "," not in url:
        return None
    mime = part.get("mime")
    source = {"type": "base64", "media_type": mime, "data": url.partition(",")[2]}
    kind = "image" if str(mime).startswith("image/") else "document"
    return {"type": kind, "source": source}


def find_model(messages: list[dict[str, Any]]) -> tuple[str | None, str | None]:
    """Return the provider and the model of the last message that has them."""
    for message in reversed(messages):
        info = object_of(message.get("info"))
        model = info if info.get("role") == "assistant" else object_of(info.get("model"))
        if model.get("providerID") and model.get("modelID"):
            return string_of(model["providerID"]), string_of(model["modelID"])
    return None, None


def find_title(messages: list[dict[str, Any]]) -> str | None:
    """Return the start of the first prompt."""
    for message in messages:
        for part in objects_of(message.get("parts")):
            if object_of(message.get("info")).get("role") == "user" and part.get("type") == "text":
                return make_title(str(part["text"]))
    return None
