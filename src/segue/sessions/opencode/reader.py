"""Parses sessions of opencode in the form of `opencode export`: `{info, messages: [{info, parts}]}`.

The body is what the client sends: without messages that the user took back, after the last compaction, and without
replies that failed. A reply has its calls and their results in one part each. Reasoning stays reasoning, which the
client sends as text to another model. A compaction is a message of the user with a part `compaction`, and the reply to
it, which is the summary; it may keep the messages from `tail_start_id` on, which then follow the summary.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

from segue.canonical.json import parse_json
from segue.errors import InputError
from segue.sessions.any_provider import API, objects_of, result_unit, thinking_block
from segue.sessions.client import MARK_KEY
from segue.sessions.parsed_log import LogLine, ParsedLog, SessionFacts, find_bad_name
from segue.sessions.values import object_of, string_of

ADDED = {"added": True}
"""The mark of texts that segue added to a session."""
# Texts that the client sends itself in these places.
_SUMMARY_PROMPT = "What did we do so far?"
_SUBTASK = "The following tool was executed by the user"
_INTERRUPTED = "[Tool execution was interrupted]"
_CLEARED = "[Old tool result content cleared]"
# The content of these is in texts of their own.
_TEXT_FILES = ("text/plain", "application/x-directory")


def is_line(line: LogLine) -> bool:
    info = object_of(line.value.get("info"))
    return isinstance(line.value.get("messages"), list) and str(info.get("id", "")).startswith("ses")


def decode(data: bytes) -> dict[str, Any]:
    """Return a session as `opencode export` prints it; `InputError` for anything else."""
    value = object_of(parse_json(data)[0])
    if not is_line(LogLine(1, value)):
        raise InputError("not a session of opencode")
    return value


def parse_log(lines: list[LogLine]) -> ParsedLog:
    """Return the body with which the client would continue."""
    value = next(line.value for line in lines if is_line(line))
    info, stored = object_of(value.get("info")), objects_of(value.get("messages"))
    for number, message in enumerate(stored):
        if (key := find_bad_name(object_of(message.get("info")))) is not None:
            raise InputError("expected a string", path=f"messages[{number}].info.{key}")
    kept = select_kept(stored, object_of(info.get("revert")))
    current = select_current(kept)
    places = {object_of(message.get("info")).get("id"): number for number, message in enumerate(stored)}
    body = _Body()
    for message in current:
        body.add(message, places[object_of(message.get("info")).get("id")])
    if not body.messages:
        raise InputError("this session has no messages")
    model = find_model(kept)[1]
    facts = SessionFacts(
        string_of(info.get("id")),
        string_of(info.get("directory")),
        version=string_of(info.get("version")),
        name=string_of(info.get("title")),
    )
    dropped = {
        "messages that the user took back": len(stored) - len(kept),
        "messages before the client's own compaction": len(kept) - len(current),
        "replies that failed": body.failed,
        "files whose content is not in the session": body.files_without_content,
    }
    content = {**({"model": model} if model else {}), "messages": body.messages}
    return ParsedLog("opencode", content, API, facts.name, [], dropped, body.times, facts=facts, sources=body.sources)


class _Body:
    """The messages of a body so far."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.times: list[int | None] = []
        self.sources: list[list[int]] = []
        self.failed = 0
        self.files_without_content = 0

    def add(self, message: dict[str, Any], place: int) -> None:
        info, parts = object_of(message.get("info")), objects_of(message.get("parts"))
        created = object_of(info.get("time")).get("created")
        at = created * 1000 if isinstance(created, int) else None
        match info.get("role"):
            case "user":
                blocks = [block for part in parts if (block := self._parse_input(part)) is not None]
                self._append({"role": "user", "content": blocks}, at)
            case "assistant" if _has_failed(info, parts):
                self.failed += 1
            case "assistant":
                self._add_reply(parts, at)
            case role:
                raise InputError(f"unsupported message role {role!r}", path=f"messages[{place}]")
        self.sources += [[place + 1]] * (len(self.messages) - len(self.sources))

    def _append(self, message: dict[str, Any], at: int | None) -> None:
        if message["content"]:
            self.messages.append(message)
            self.times.append(at)

    def _parse_input(self, part: dict[str, Any]) -> dict[str, Any] | None:
        match part.get("type"):
            case "text" if not part.get("ignored"):
                return {"type": "text", "text": part["text"]}
            case "file" if part.get("mime") not in _TEXT_FILES:
                block = _parse_file(part)
                self.files_without_content += block is None
                return block
            case "compaction":
                return {"type": "text", "text": _SUMMARY_PROMPT}
            case "subtask":
                return {"type": "text", "text": _SUBTASK}
            case _:
                return None

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
                    if MARK_KEY not in object_of(part.get("metadata")):
                        blocks.append({"type": "text", "text": part["text"]})
                case "reasoning":
                    blocks += _parse_reasoning(part)
                case "tool":
                    state = object_of(part.get("state"))
                    call = {"type": "tool_use", "id": part.get("callID"), "name": part.get("tool")}
                    blocks.append({**call, "input": object_of(state.get("input"))})
                    place = object_of(object_of(state.get("metadata")).get(MARK_KEY)).get("place")
                    result = _parse_result(part.get("callID"), state)
                    results.append((place if isinstance(place, int) else len(results), result))
                case _:
                    continue
        flush()


def _has_failed(info: dict[str, Any], parts: list[dict[str, Any]]) -> bool:
    """Return whether a reply ended with an error, unless it was interrupted and has something to send."""
    if not info.get("error"):
        return False
    is_aborted = object_of(info["error"]).get("name") == "MessageAbortedError"
    return not is_aborted or all(part.get("type") in ("step-start", "reasoning") for part in parts)


def _parse_reasoning(part: dict[str, Any]) -> list[dict[str, Any]]:
    """Return reasoning; that of other providers is text without a signature."""
    metadata = object_of(object_of(part.get("metadata")).get("anthropic"))
    redacted, signature, text = metadata.get("redactedData"), metadata.get("signature"), part.get("text")
    if isinstance(redacted, str):
        return [{"type": "redacted_thinking", "data": redacted}]
    return [thinking_block(text, signature)] if signature or str(text or "").strip() else []


def _parse_result(call_id: object, state: dict[str, Any]) -> dict[str, Any]:
    metadata = object_of(state.get("metadata"))
    match state.get("status"):
        case "completed" if object_of(state.get("time")).get("compacted"):
            return result_unit(call_id, objects_of(_CLEARED), is_error=False)
        case "completed":
            output = objects_of(state.get("output"))
            files = [_parse_file(part) for part in objects_of(state.get("attachments"))]
            return result_unit(call_id, [*output, *(part for part in files if part is not None)], is_error=False)
        case "error" if metadata.get("interrupted") is True and isinstance(metadata.get("output"), str):
            return result_unit(call_id, objects_of(metadata["output"]), is_error=False)
        case "error":
            return result_unit(call_id, objects_of(state.get("error")), is_error=True)
        case _:
            return result_unit(call_id, objects_of(_INTERRUPTED), is_error=True)


def _parse_file(part: dict[str, Any]) -> dict[str, Any] | None:
    mime, url = str(part.get("mime")), str(part.get("url", ""))
    kind = "image" if mime.startswith("image/") else "document"
    name = string_of(part.get("filename")) if kind == "document" else None
    title = {"title": name} if name else {}
    if url.startswith("data:") and "," in url:
        source = {"type": "base64", "media_type": mime, "data": url.partition(",")[2]}
        return {"type": kind, "source": source, **title}
    if url.startswith(("https:", "http:")):
        return {"type": kind, "source": {"type": "url", "url": url}, **title}
    return None


def find_model(messages: list[dict[str, Any]]) -> tuple[str | None, str | None]:
    """Return the provider and the model of the last message that has them."""
    for message in reversed(messages):
        info = object_of(message.get("info"))
        model = info if info.get("role") == "assistant" else object_of(info.get("model"))
        if model.get("providerID") and model.get("modelID"):
            return string_of(model["providerID"]), string_of(model["modelID"])
    return None, None


Message = dict[str, Any]


# ---------------------------------------------------------------------------------------------- which messages are sent


def select_kept(messages: list[Message], revert: dict[str, Any]) -> list[Message]:
    """Return the messages before the one that the user took back. The client removes the others at the next prompt.

    If the user took back a part of a reply, the parts before it are kept.
    """
    at = _find(messages, lambda message: _id(message) == revert.get("messageID"))
    if at is None:
        return messages
    if not revert.get("partID"):
        return messages[:at]
    parts = objects_of(messages[at].get("parts"))
    end = next((number for number, part in enumerate(parts) if part.get("id") == revert["partID"]), len(parts))
    return [*messages[:at], {**messages[at], "parts": parts[:end]}]


def select_current(messages: list[Message]) -> list[Message]:
    """Return the messages from the last finished summary on, and after it those that the compaction kept."""
    current = messages[_find_start(messages) :]
    at = next((number for number in reversed(range(len(current))) if _tail_of(current[number])), None)
    if at is None:
        return current
    tail_id, compaction_id = _tail_of(current[at]), _id(current[at])
    tail = _find(current, lambda message: _id(message) == tail_id)
    summary = _find(current[at:], lambda message: _is_summary(message) and _parent(message) == compaction_id)
    if tail is None or tail >= at or summary is None:
        return current
    after = at + summary + 1
    return [*current[at:after], *current[tail:at], *current[after:]]


def _find_start(messages: list[Message]) -> int:
    """Return the place of the last finished compaction, or of the first message that it kept."""
    finished: set[object] = set()
    tail_id: object = None
    for number in reversed(range(len(messages))):
        message = messages[number]
        if tail_id is not None:
            if _id(message) == tail_id:
                return number
        elif _info(message).get("role") == "user":
            if _id(message) in finished and _compactions(message):
                tail_id = _tail_of(message)
                if tail_id in (None, _id(message)):
                    return number
        elif _is_summary(message) and _info(message).get("finish") and not _info(message).get("error"):
            finished.add(_parent(message))
    return 0


def _find(messages: list[Message], matches: Callable[[Message], bool]) -> int | None:
    return next((number for number, message in enumerate(messages) if matches(message)), None)


def _info(message: Message) -> dict[str, Any]:
    return object_of(message.get("info"))


def _id(message: Message) -> object:
    return _info(message).get("id")


def _parent(message: Message) -> object:
    return _info(message).get("parentID")


def _is_summary(message: Message) -> bool:
    return _info(message).get("role") == "assistant" and bool(_info(message).get("summary"))


def _compactions(message: Message) -> list[dict[str, Any]]:
    is_user = _info(message).get("role") == "user"
    return [part for part in objects_of(message.get("parts")) if is_user and part.get("type") == "compaction"]


def _tail_of(message: Message) -> object:
    """Return the id of the first message that a compaction kept; None if it kept none, or is not a compaction."""
    return next((part["tail_start_id"] for part in _compactions(message) if part.get("tail_start_id")), None)
