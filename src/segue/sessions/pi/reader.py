"""Parses sessions of pi: `sessions/FOLDER/TIME_ID.jsonl`, as documented in its `session-format.md` (version 3).

The first line is the header. All others are entries with an `id` and a `parentId`; the client continues from the last
one, up to its root. A `compaction` replaces the entries before the first one that it keeps; a `context_edit` replaces
the content of another entry. Version 1 has no ids, and its entries follow each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from segue.errors import InputError
from segue.sessions.any_provider import API, objects_of, result_unit, thinking_block
from segue.sessions.client import MARK_KEY
from segue.sessions.parsed_log import LogLine, ParsedLog, SessionFacts, make_title
from segue.sessions.values import object_of, string_of

VERSION = 3
_BEFORE, _BRANCH = "Summary of the conversation before:", "Summary of a branch that was left:"
_FAILED = ("error", "aborted")


def is_line(line: LogLine) -> bool:
    value = line.value
    return value.get("type") == "session" and isinstance(value.get("id"), str) and "cwd" in value


def parse_log(lines: list[LogLine]) -> ParsedLog:
    """Return the body with which the client would continue."""
    header = next(line for line in lines if is_line(line))
    version = header.value.get("version", 1)
    if not isinstance(version, int) or version > VERSION:
        raise InputError(f"unsupported version {version!r} of pi's session format", path=f"line {header.number}")
    entries = [line for line in lines if line.value.get("type") != "session"]
    path = _active_path(entries)
    current = _after_compaction(path)
    edits = {line.value.get("targetId"): line.value for line in current if line.value.get("type") == "context_edit"}
    dropped = {
        "entries on branches that were left": _count(entries, path),
        "entries before the client's own compaction": _count(path, current),
        "replies that failed or were stopped": sum(map(_is_failed, current)),
    }
    messages: list[dict[str, Any]] = []
    numbers: list[int] = []
    times: list[int | None] = []
    for index, line in enumerate(current):
        if line.value.get("type") == "compaction" and index:
            continue
        message = _parse_entry(line, edits.get(line.value.get("id")))
        if message is not None and message["content"]:
            messages.append(message)
            numbers.append(line.number)
            times.append(line.timestamp)
    if not messages:
        raise InputError("this session has no messages")
    values = [line.value for line in path]
    model, name = find_model(values)[1], find_name(values)
    facts = SessionFacts(string_of(header.value.get("id")), string_of(header.value.get("cwd")), name=name)
    body: dict[str, Any] = {**({"model": model} if model else {}), "messages": messages}
    title = name or (find_title(values) if len(current) < len(path) else None)
    return ParsedLog("pi", body, API, title, numbers, dropped, times, facts=facts)


def _active_path(entries: list[LogLine]) -> list[LogLine]:
    """Return the entries from the root to the last one."""
    if not any("id" in line.value for line in entries):
        return entries
    by_id = {line.value.get("id"): line for line in entries}
    path: list[LogLine] = []
    passed: set[Any] = set()
    line = entries[-1] if entries else None
    while line is not None and line.value.get("id") not in passed:
        passed.add(line.value.get("id"))
        path.append(line)
        line = by_id.get(parent) if (parent := line.value.get("parentId")) is not None else None
    return path[::-1]


def _after_compaction(path: list[LogLine]) -> list[LogLine]:
    """Return the last compaction, the entries that it keeps, and all after it."""
    places = [index for index, line in enumerate(path) if line.value.get("type") == "compaction"]
    if not places:
        return path
    last = places[-1]
    compaction = path[last]
    if isinstance(number := compaction.value.get("firstKeptEntryIndex"), int):
        # Version 1 counts entries from the header.
        kept = max(number - 1, 0)
    else:
        first = compaction.value.get("firstKeptEntryId")
        kept = next((index for index, line in enumerate(path[:last]) if line.value.get("id") == first), last)
    return [compaction, *path[kept:last], *path[last + 1 :]]


def _count(lines: Sequence[LogLine], kept: Sequence[LogLine]) -> int:
    """Return how many of the lines that are not kept have a message."""
    if len(lines) == len(kept):
        return 0
    numbers = {line.number for line in kept}
    return sum(line.number not in numbers and _parse_entry(line, None) is not None for line in lines)


def _is_failed(line: LogLine) -> bool:
    return object_of(line.value.get("message")).get("stopReason") in _FAILED


def _parse_entry(line: LogLine, edit: Any) -> dict[str, Any] | None:
    """Return the message that the client sends for an entry; None if it sends none."""
    value = line.value
    message = object_of(value.get("message"))
    if edit is not None and edit.get("replacement") is None:
        return None
    match value.get("type"):
        case "compaction":
            return _user_message(f"{_BEFORE}\n\n{value.get('summary', '')}")
        case "branch_summary":
            return _user_message(f"{_BRANCH}\n\n{value['summary']}") if value.get("summary") else None
        case "custom_message":
            message = {"role": "custom", "content": value.get("content")}
        case "message":
            if MARK_KEY in value or _is_failed(line):
                return None
        case _:
            return None
    if edit is not None:
        message = {**message, "content": object_of(edit["replacement"]).get("content")}
    return _parse_message(message, line.number)


def _user_message(content: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": content}]}


def _parse_message(message: dict[str, Any], number: int) -> dict[str, Any] | None:
    content = objects_of(message.get("content"))
    match message.get("role"):
        case "user" | "custom" | "hookMessage":
            return {"role": "user", "content": [_parse_block(block, number) for block in content]}
        case "assistant":
            is_signed = message.get("api") == "anthropic-messages"
            return {"role": "assistant", "content": list(_parse_reply(content, number, is_signed=is_signed))}
        case "toolResult":
            blocks = [_parse_block(block, number) for block in content]
            return result_unit(message.get("toolCallId"), blocks, is_error=message.get("isError") is True)
        case "bashExecution":
            return None if message.get("excludeFromContext") else _user_message(_format_command(message))
        case "branchSummary" | "compactionSummary" as role:
            heading = _BRANCH if role == "branchSummary" else _BEFORE
            return _user_message(f"{heading}\n\n{message.get('summary', '')}")
        case "system":
            return None
        case role:
            raise InputError(f"unsupported message role {role!r}", path=f"line {number}")


def _parse_block(block: dict[str, Any], number: int) -> dict[str, Any]:
    match block.get("type"):
        case "text":
            return {"type": "text", "text": block.get("text", "")}
        case "image":
            source = {"type": "base64", "media_type": block.get("mimeType"), "data": block.get("data")}
            return {"type": "image", "source": source}
        case kind:
            raise InputError(f"unsupported content type {kind!r}", path=f"line {number}")


def _parse_reply(content: list[dict[str, Any]], number: int, *, is_signed: bool) -> Iterator[dict[str, Any]]:
    for block in content:
        signature = block.get("thinkingSignature") if is_signed else None
        match block.get("type"):
            case "thinking" if block.get("redacted"):
                if isinstance(signature, str):
                    yield {"type": "redacted_thinking", "data": signature}
            case "thinking":
                yield thinking_block(block.get("thinking"), signature)
            case "toolCall":
                arguments = block.get("arguments")
                yield {"type": "tool_use", "id": block.get("id"), "name": block.get("name"), "input": arguments}
            case _:
                yield _parse_block(block, number)


def _format_command(message: dict[str, Any]) -> str:
    """Return a command that the user ran, with its output."""
    lines = [f"Ran `{message.get('command', '')}`", str(message.get("output") or "(no output)").rstrip()]
    if message.get("cancelled"):
        lines.append("(stopped by the user)")
    elif message.get("exitCode"):
        lines.append(f"Exit code {message['exitCode']}")
    if message.get("truncated") and message.get("fullOutputPath"):
        lines.append(f"(shortened; the whole output is in {message['fullOutputPath']})")
    return "\n".join(lines)


def find_model(values: Sequence[Any]) -> tuple[str | None, str | None]:
    """Return the provider and the model of the last reply or change of model."""
    for value in reversed(values):
        message = object_of(value.get("message"))
        if value.get("type") == "model_change":
            return string_of(value.get("provider")), string_of(value.get("modelId"))
        if message.get("role") == "assistant" and MARK_KEY not in value:
            return string_of(message.get("provider")), string_of(message.get("model"))
    return None, None


def find_name(values: Sequence[Any]) -> str | None:
    """Return the last name that was given to the session."""
    names = (value.get("name") for value in reversed(values) if value.get("type") == "session_info")
    return string_of(next(names, None))


def find_title(values: Sequence[Any]) -> str | None:
    """Return the start of the first prompt."""
    for value in values:
        message = object_of(value.get("message"))
        if message.get("role") == "user":
            texts = (block.get("text") for block in objects_of(message.get("content")))
            text = "\n".join(text for text in texts if isinstance(text, str)).strip()
            if text:
                return make_title(text)
    return None
