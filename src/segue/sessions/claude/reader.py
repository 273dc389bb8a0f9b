"""Parses Claude Code session logs: `~/.claude/projects/…/SESSION.jsonl`.

Each line is an entry with its own `uuid` and its parent's; `user` and `assistant` entries have an Anthropic `message`.
The entries are a tree, and the client continues from one branch of it:

- the active branch leads from the last entry up to the root; other branches were abandoned by a rewind;
- one reply takes several lines, a block each, with the same `message.id`; where its calls ran in parallel, each result
  is a child of its own line, so the path up from the last one misses the others;
- subagents (`isSidechain`) are separate conversations;
- a `compact_boundary` starts over with a summary and the earlier entries that it names.

The output of `--output-format stream-json` has the same entries in sequence, without parents.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import msgspec

from segue.errors import InputError
from segue.sessions.claude.attachments import blocks_of, expand_entry, order_as_sent, reply_id
from segue.sessions.client import MARK_KEY
from segue.sessions.parsed_log import LogLine, ParsedLog, SessionFacts, is_client_text, make_title
from segue.sessions.values import list_of, object_of, string_of

API = "anthropic"
SYNTHETIC_MODEL = "<synthetic>"
"""The model of a reply that the client itself wrote."""
_MESSAGE_TYPES = ("user", "assistant")
_TITLE_KEYS = (("custom-title", "customTitle"), ("ai-title", "aiTitle"), ("summary", "summary"))
_REASONING = ("thinking", "redacted_thinking")


def is_line(line: LogLine) -> bool:
    value = line.value
    message = object_of(value.get("message"))
    # Qwen Code has the same lines with `parts` in place of `content`.
    has_message = value.get("type") in _MESSAGE_TYPES and bool(message) and "parts" not in message
    return has_message and not {"parentUuid", "sessionId", "session_id", "uuid"}.isdisjoint(value)


def parse_log(lines: list[LogLine]) -> ParsedLog:
    """Return the body with which the client would continue."""
    lines = [expand_entry(line) for line in lines]
    messages = [line for line in lines if is_line(line)]
    main = [line for line in messages if not _is_subagent(line)] or messages
    dropped = {"lines of subagents": len(messages) - len(main)}
    boundary = max((line.number for line in lines if _is_boundary(line, main is messages)), default=0)
    preserved = _preserved_entries(lines, boundary)
    current = [line for line in main if line.number > boundary or line.value.get("uuid") in preserved]
    dropped["lines before the client's own compaction"] = len(main) - len(current)
    branch = _active_branch(lines, current, boundary, preserved)
    dropped["lines on branches that were left"] = len(current) - len(branch)
    written = [line for line in branch if not _is_client_error(line)]
    added = sum(MARK_KEY in line.value for line in branch)
    dropped["lines that no model wrote"] = len(branch) - len(written) - added
    sent = _without_lone_reasoning(_without_stripped_reasoning(written, lines))
    dropped["replies that are only reasoning, which the client does not send"] = len(written) - len(sent)
    # The summary replaces earlier messages, so it comes before the preserved ones.
    ordered = sorted(sent, key=lambda line: (not line.value.get("isCompactSummary"), line.number))
    ordered = order_as_sent(ordered)
    name = _find_title(lines)
    log = _build_log(ordered, name or _first_user_text(ordered, main), dropped)
    return msgspec.structs.replace(log, facts=_collect_facts(main, name))


def _without_stripped_reasoning(written: list[LogLine], lines: list[LogLine]) -> list[LogLine]:
    """Return the entries without the reasoning that the client removed from its history after the API rejected it."""
    markers = [line for line in lines if object_of(line.value.get("attachment")).get("type") == "thinking_stripped"]
    if not markers or not written:
        return written
    above = _find_ancestors(written[-1].value.get("uuid"), _parents(lines))
    markers = [line for line in markers if line.value.get("uuid") in above]
    if not markers:
        return written
    last = markers[-1]
    start = object_of(object_of(last.value.get("attachment")).get("from")).get("messageId")
    first = next((line.number for line in written if start is not None and reply_id(line) == start), 0)
    return [_without_reasoning(line) if first <= line.number < last.number else line for line in written]


def _without_reasoning(line: LogLine) -> LogLine:
    blocks = blocks_of(line)
    kept = [block for block in blocks if block.get("type") not in _REASONING]
    if len(kept) == len(blocks):
        return line
    return LogLine(line.number, {**line.value, "message": {**object_of(line.value.get("message")), "content": kept}})


def _without_lone_reasoning(lines: list[LogLine]) -> list[LogLine]:
    """Return the entries without replies that are only reasoning: the client does not send them."""
    shown = {reply_id(line) for line in lines if any(block.get("type") not in _REASONING for block in blocks_of(line))}
    return [line for line in lines if reply_id(line) is None or reply_id(line) in shown]


def _collect_facts(messages: list[LogLine], name: str | None) -> SessionFacts:
    """Collect the facts from the last entry that has each: resuming may change them."""

    def last(key: str) -> str | None:
        values = (line.value.get(key) for line in reversed(messages))
        return next((value for value in values if isinstance(value, str) and value), None)

    return SessionFacts(last("sessionId"), last("cwd"), last("gitBranch"), last("version"), name)


def _is_subagent(line: LogLine) -> bool:
    return bool(line.value.get("isSidechain") or line.value.get("parent_tool_use_id"))


def _is_boundary(line: LogLine, include_subagents: bool) -> bool:
    return line.value.get("subtype") == "compact_boundary" and (include_subagents or not _is_subagent(line))


def _preserved_entries(lines: list[LogLine], boundary: int) -> set[Any]:
    """Return the uuids of entries before a compaction that are still sent after it."""
    metadata = next(
        (object_of(line.value.get("compactMetadata")) for line in lines if line.number == boundary), object_of(None)
    )
    kept = {str(uuid) for uuid in list_of(object_of(metadata.get("preservedMessages")).get("uuids"))}
    segment = object_of(metadata.get("preservedSegment"))
    parents = _parents(lines)
    uuid: Any = string_of(segment.get("tailUuid"))
    while uuid in parents and uuid not in kept:
        kept.add(uuid)
        uuid = parents[uuid] if uuid != segment.get("headUuid") else None
    return kept


def _active_branch(lines: list[LogLine], messages: list[LogLine], boundary: int, preserved: set[Any]) -> list[LogLine]:
    """Return the entries from the last one up to its root, plus the other lines and results of the same replies."""
    if not any("parentUuid" in line.value for line in messages):
        return messages
    # Entries of other types can be parents too.
    parents = _parents(line for line in lines if line.number > boundary or line.value.get("uuid") in preserved)
    uuids = _find_ancestors(messages[-1].value.get("uuid"), parents)
    uuids |= preserved | {line.value.get("uuid") for line in messages if line.value.get("isCompactSummary")}
    branch = [line for line in messages if line.value.get("uuid") in uuids]
    replies = {name for line in branch if (name := reply_id(line))}
    uuids |= {line.value.get("uuid") for line in messages if reply_id(line) in replies}
    # A result is known by its reply and call: ids may repeat in other replies. An abandoned branch may repeat a result
    # that the active branch already has.
    lookup = _ReplyLookup(messages, parents)
    answered = {key for line in branch for key in lookup.result_keys(line)}
    calls = {
        (reply_id(line), str(block.get("id")))
        for line in messages
        if line.value.get("uuid") in uuids
        for block in blocks_of(line)
        if block.get("type") == "tool_use"
    }
    ids = {call_id for _, call_id in calls}
    return [
        line
        for line in messages
        if line.value.get("uuid") in uuids
        or (line.value.get("parentUuid") in uuids and not (calls - answered).isdisjoint(lookup.result_keys(line)))
        # What hooks add to parallel calls is beside the path, too.
        or string_of(object_of(line.value.get("attachment")).get("toolUseID")) in ids
    ]


class _ReplyLookup:
    """Finds the replies that results belong to: the next one above them in the tree."""

    def __init__(self, messages: list[LogLine], parents: dict[Any, Any]) -> None:
        self._replies = {line.value.get("uuid"): name for line in messages if (name := reply_id(line))}
        self._parents = parents

    def result_keys(self, line: LogLine) -> list[tuple[str | None, str]]:
        """Return the reply and the call of each result in an entry."""
        ids = [str(block.get("tool_use_id")) for block in blocks_of(line) if block.get("type") == "tool_result"]
        if not ids:
            return []
        uuid, passed = line.value.get("parentUuid"), set[Any]()
        while uuid is not None and uuid not in self._replies and uuid not in passed:
            passed.add(uuid)
            uuid = self._parents.get(uuid)
        return [(self._replies.get(uuid), call_id) for call_id in ids]


def _find_ancestors(uuid: Any, parents: dict[Any, Any]) -> set[Any]:
    """Return an entry and all above it in the tree."""
    found: set[Any] = set()
    while uuid is not None and uuid not in found:
        found.add(uuid)
        uuid = parents.get(uuid)
    return found


def _parents(lines: Iterable[LogLine]) -> dict[Any, Any]:
    return {line.value["uuid"]: line.value.get("parentUuid") for line in lines if line.value.get("uuid")}


def _is_client_error(line: LogLine) -> bool:
    """Return whether an entry is an error message of the client in place of a reply."""
    message = object_of(line.value.get("message"))
    return bool(line.value.get("isApiErrorMessage")) or message.get("model") == SYNTHETIC_MODEL


def _build_log(lines: list[LogLine], title: str | None, dropped: dict[str, int]) -> ParsedLog:
    if not lines:
        raise InputError("this session has no messages")
    messages: list[dict[str, Any]] = []
    numbers: list[int] = []
    times: list[int | None] = []
    sources: list[list[int]] = []
    replies: dict[str, tuple[dict[str, Any], int]] = {}
    seen: set[Any] = set()
    model = None
    for line in lines:
        uuid = line.value.get("uuid")
        if uuid is not None and uuid in seen:
            continue
        seen.add(uuid)
        source = object_of(line.value["message"])
        model = source.get("model") or model
        name = reply_id(line)
        if name in replies:
            message, index = replies[name]
            blocks = cast("list[Any]", message["content"])
            blocks += [block for block in blocks_of(line) if not _has_block(block, blocks)]
            times[index] = line.timestamp or times[index]
            sources[index].append(line.number)
            continue
        message = {"role": source.get("role", line.value["type"]), "content": source.get("content")}
        if name is not None:
            message["content"] = list(blocks_of(line))
            replies[name] = message, len(messages)
        messages.append(message)
        numbers.append(line.number)
        times.append(line.timestamp)
        sources.append([line.number])
    body = {**({"model": model} if model else {}), "messages": messages}
    return ParsedLog("claude-code", body, API, title, numbers, dropped, times, sources=sources)


def _has_block(block: Mapping[str, Any], blocks: list[Mapping[str, Any]]) -> bool:
    """Return whether a block is already there: a line may repeat the reply so far."""
    if block.get("type") == "tool_use":
        return any(other.get("type") == "tool_use" and other.get("id") == block.get("id") for other in blocks)
    return block in blocks


def _find_title(lines: list[LogLine]) -> str | None:
    """Return the title set by the user, else by the client. A file may also have titles of other sessions."""
    entries = {line.value.get("uuid") for line in lines} - {None}
    sessions = {line.value.get("sessionId") for line in lines if is_line(line)} - {None}
    for kind, key in _TITLE_KEYS:
        titles = [
            title
            for line in lines
            if line.value.get("type") == kind
            and ("sessionId" not in line.value or not sessions or line.value["sessionId"] in sessions)
            and ("leafUuid" not in line.value or line.value["leafUuid"] in entries)
            and isinstance(title := line.value.get(key), str)
            and title
        ]
        if titles:
            return titles[-1]
    return None


def find_excerpt_title(values: list[dict[str, Any]]) -> str | None:
    """Return the title of a session from some of its lines: the given one, or the start of the first or last prompt."""
    lines = [LogLine(number, value) for number, value in enumerate(values, 1)]
    prompts = (value.get("lastPrompt") for value in values if value.get("type") == "last-prompt")
    texts = (text for line in lines if is_line(line) and not _is_subagent(line) and (text := _user_text(line)))
    text = _find_title(lines) or next(texts, None) or next(prompts, None)
    return make_title(text) if isinstance(text, str) else None


def _first_user_text(lines: list[LogLine], own: list[LogLine]) -> str | None:
    """Return the first user text as title, where the imported messages do not start with it."""
    first = next((line for line in lines if line.value.get("type") == "user"), None)
    if first is None or _user_text(first):
        return None
    return next((make_title(text) for line in own if (text := _user_text(line))), None)


def _user_text(line: LogLine) -> str:
    """Return the text that the user typed in an entry; empty for text that the client inserted."""
    if line.value.get("type") != "user" or line.value.get("isMeta") or line.value.get("isCompactSummary"):
        return ""
    texts = [block.get("text") for block in blocks_of(line) if block.get("type") == "text"]
    typed = [text for text in texts if isinstance(text, str) and not is_client_text(text)]
    return "\n".join(typed).strip()
