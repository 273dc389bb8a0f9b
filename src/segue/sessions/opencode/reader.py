"""Parses sessions of opencode in the form of `opencode export`: `{info, messages: [{info, parts}]}`.

The body is what the client sends: without messages that the user took back, after the last compaction, and without
replies that failed. A reply has its calls and their results in one part each. Reasoning stays reasoning, which the
client sends as text to another model.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from segue.canonical.json import parse_json
from segue.errors import InputError
from segue.sessions.any_provider import API, objects_of, result_unit, thinking_block
from segue.sessions.client import MARK_KEY
from segue.sessions.opencode.history import select_current, select_kept
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
