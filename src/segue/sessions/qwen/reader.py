"""Parses sessions of Qwen Code: `~/.qwen/projects/FOLDER/chats/ID.jsonl`.

Each line is a record with its own `uuid` and its parent's; `message` is a content of the Gemini API, whichever API the
model has. The client continues from the last record up to the root: other branches were left by a rewind. Lines with
the same `uuid` are parts of one record. A `chat_compression` replaces everything before it by a shorter history.
A `slash_command` answers the prompt before it without the model.
"""

from __future__ import annotations

from typing import Any, cast

from segue.errors import InputError
from segue.sessions.gemini_contents import API, parts_of, text_of
from segue.sessions.parsed_log import LogLine, ParsedLog, SessionFacts, is_client_text, make_title
from segue.sessions.values import list_of, object_of

_TYPES = ("user", "assistant", "tool_result")
_REMINDER = "<system-reminder>"
# System records beside the conversation, which are never the end of it.
_SIDE_RECORDS = frozenset(
    {
        "managed_session_commit_v1",
        "managed_session_event_v1",
        "managed_session_header_v1",
        "session_artifact_event",
        "session_artifact_snapshot",
        "session_sources_snapshot",
    }
)


def is_line(line: LogLine) -> bool:
    value = line.value
    has_parts = isinstance(object_of(value.get("message")).get("parts"), list)
    return value.get("type") in _TYPES and has_parts and isinstance(value.get("uuid"), str)


def is_record(value: Any) -> bool:
    """Return whether a line is a record of the conversation, with or without a message."""
    if not isinstance(value.get("uuid"), str) or value.get("isSidechain"):
        return False
    return value.get("type") in _TYPES or (value.get("type") == "system" and value.get("subtype") not in _SIDE_RECORDS)


def parse_log(lines: list[LogLine]) -> ParsedLog:
    """Return the body with which the client would continue."""
    records = [line for line in lines if is_record(line.value)]
    branch = _active_branch(records)
    dropped = {"lines on branches that were left": sum(map(is_line, records)) - sum(map(is_line, branch))}
    compaction = max((at for at, line in enumerate(branch) if _compacted_history(line) is not None), default=None)
    contents: list[tuple[LogLine, dict[str, Any], list[int]]] = []
    if compaction is not None:
        dropped["lines before the client's own compaction"] = sum(map(is_line, branch[:compaction]))
        history = _compacted_history(branch[compaction]) or []
        line = branch[compaction]
        contents = [(line, _without_reminders(object_of(content)), [line.number]) for content in history]
        branch = branch[compaction + 1 :]
    for line in branch:
        if contents and _is_answer_of_client(line, contents[-1][0]):
            contents.pop()
        elif is_line(line) and line.value.get("subtype") != "realtime_message":
            content = _content(line)
            if contents and _is_result(line) and _is_result(contents[-1][0]):
                # The results of one reply are sent together.
                _, before, numbers = contents[-1]
                merged = {**content, "parts": [*before["parts"], *content["parts"]]}
                contents[-1] = line, merged, [*numbers, line.number]
            else:
                contents.append((line, content, [line.number]))
    contents = [each for each in contents if each[1].get("parts")]
    if not contents:
        raise InputError("this session has no messages")
    model = _last(branch, "model")
    body = {**({"model": model} if model else {}), "contents": [content for _, content, _ in contents]}
    numbers, times = [line.number for line, *_ in contents], [line.timestamp for line, *_ in contents]
    name = find_name([line.value for line in records])
    found = [_last(records, key) for key in ("sessionId", "cwd", "gitBranch", "version")]
    facts = SessionFacts(*found, name=name)
    title = find_title([line.value for line in lines]) if compaction is not None else None
    return ParsedLog(
        "qwen-code",
        body,
        API,
        name or title,
        numbers,
        dropped,
        times,
        facts=facts,
        sources=[numbers for *_, numbers in contents],
    )


def _active_branch(records: list[LogLine]) -> list[LogLine]:
    """Return the lines from the last record up to the root, in the order of the file."""
    parents: dict[str, Any] = {}
    for line in records:
        parents.setdefault(line.value["uuid"], line.value.get("parentUuid"))
    uuids: set[Any] = set()
    uuid = records[-1].value["uuid"] if records else None
    while uuid in parents and uuid not in uuids:
        uuids.add(uuid)
        uuid = parents[uuid]
    return [line for line in records if line.value["uuid"] in uuids]


def _content(line: LogLine) -> dict[str, Any]:
    message = object_of(line.value["message"])
    role = "model" if line.value["type"] == "assistant" else "user"
    return {"role": role, "parts": parts_of(message["parts"])}


def _is_result(line: LogLine) -> bool:
    return line.value.get("type") == "tool_result"


def _is_answer_of_client(line: LogLine, before: LogLine) -> bool:
    """Return whether the client itself answered a prompt, which is one of its commands; the model gets neither."""
    payload = object_of(line.value.get("systemPayload"))
    output = list_of(payload.get("outputHistoryItems"))
    if line.value.get("subtype") != "slash_command" or payload.get("phase") != "result" or payload.get("sentToModel"):
        return False
    is_shown = bool(output) and all(object_of(item).get("type") == "assistant" for item in output)
    prompt = [{"text": payload.get("rawCommand")}]
    is_prompt = before.value.get("type") == "user" and "subtype" not in before.value
    return is_shown and is_prompt and object_of(before.value["message"]).get("parts") == prompt


def _compacted_history(line: LogLine) -> list[Any] | None:
    if line.value.get("subtype") != "chat_compression":
        return None
    history = object_of(line.value.get("systemPayload")).get("compressedHistory")
    return cast("list[Any]", history) if isinstance(history, list) else None


def _without_reminders(content: dict[str, Any]) -> dict[str, Any]:
    """Return a content of a compacted history without the client's own reminders, such as that of the date."""
    kept = [part for part in parts_of(content.get("parts")) if not str(part.get("text")).startswith(_REMINDER)]
    return {**content, "parts": kept}


def _last(lines: list[LogLine], key: str) -> str | None:
    values = (line.value.get(key) for line in reversed(lines))
    return next((value for value in values if isinstance(value, str) and value), None)


def find_name(values: list[Any]) -> str | None:
    """Return the title that the user or the client gave a session."""
    for value in reversed(values):
        name = object_of(value.get("systemPayload")).get("customTitle")
        if value.get("subtype") == "custom_title" and isinstance(name, str) and name:
            return name
    return None


def find_title(values: list[Any]) -> str | None:
    """Return the title of a session from some of its lines: the given one, or the start of the first prompt."""
    if name := find_name(values):
        return make_title(name)
    for value in values:
        if value.get("type") == "user":
            text = text_of(parts_of(object_of(value.get("message")).get("parts")))
            if text.strip() and not is_client_text(text):
                return make_title(text)
    return None
