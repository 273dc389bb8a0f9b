"""Sessions of coding clients: one row for each branch.

The first row is the conversation with which the client would continue. What it does not contain is found by reading the
log as it was earlier: up to the end of a branch that was left, and up to a compaction. A row that adds no message to
the rows before it is not one. Subagents that are in the same file are rows of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Any, cast

import msgspec

from segue.canonical.json import encode_json_sorted
from segue.corpora.client_tools import known_tools
from segue.corpora.rows import Flag, Parsed, Provenance, Row, mark, parse_request
from segue.errors import InputError
from segue.sessions.client import CANONICAL, Client
from segue.sessions.parsed_log import LogLine, ParsedLog
from segue.sessions.session import LIST_KEYS
from segue.sessions.values import list_of, object_of, string_of

_MAX_BRANCHES = 200
_OTHER_LINES = "messages that the client does not send"
_MODEL_PLACES = ("", "message", "payload", "info")
"""Where a line names a model: itself, or an object in it."""
# These models did not write a reply.
_NO_MODELS = frozenset({"<synthetic>"})


def parse(client: Client, lines: Sequence[LogLine]) -> Parsed:
    """Parse the lines of a session. `InputError` if it has no messages."""
    if client.api == CANONICAL:
        raise InputError("export the conversation for an API")
    models = _models_by_line(lines)
    rows: list[Row] = []
    in_rows: set[int] = set()
    logs: list[ParsedLog] = []
    seen: set[bytes] = set()
    problem: InputError | None = None
    for part, flags in _states(lines, in_rows):
        try:
            if not any(map(client.reader.is_line, part)):
                raise InputError(f"no line of a session of {client.title}")
            log = client.reader.parse_log(list(part))
            if rows:
                seen.update(*map(_encode_entries, logs[-1:]))
                if seen.issuperset(_encode_entries(log)):
                    continue
            rows.append(_make_row(client, log, models, flags))
        except InputError as error:
            problem = problem or error
            continue
        in_rows |= rows[-1].records
        logs.append(log)
    if not rows:
        raise problem or InputError("this session has no messages")
    return _account(rows, in_rows, _message_records(lines), logs[0].dropped)


def _account(
    rows: Sequence[Row], in_rows: AbstractSet[int], records: frozenset[int], dropped: Mapping[str, int]
) -> Parsed:
    """Return the rows, with how many records are in none of them and why, as far as the reader says."""
    everything = records | in_rows
    missing = len(everything - in_rows)
    left_out: dict[str, int] = {}
    for reason, count in dropped.items():
        if missing and count and "branch" not in reason and "compaction" not in reason:
            left_out[reason] = min(count, missing)
            missing -= left_out[reason]
    if missing:
        left_out[_OTHER_LINES] = missing
    return Parsed(tuple(rows), len(everything), left_out)


def _make_row(client: Client, log: ParsedLog, models: Mapping[int, str], flags: tuple[Flag, ...]) -> Row:
    key = next(key for key in LIST_KEYS if key in log.body)
    entries = _entries(log)
    sources = log.sources or [[number] for number in log.line_numbers]
    marked = [
        mark(entry, numbers[0], joined=numbers[1:] or None, model=models.get(numbers[-1]))
        for entry, numbers in zip(entries, sources, strict=True)
    ]
    request, records = parse_request({**log.body, key: marked}, client.api)
    tools = request.tools or known_tools(request, client.name)
    source = "file" if request.tools else "client" if tools else "unknown"
    provenance = Provenance(
        line=min(records, default=0), session=log.facts.id or "", client_version=log.facts.version or ""
    )
    request = msgspec.structs.replace(request, tools=tools, model=request.model)
    return Row(request, provenance, flags, source, records)


def _encode_entries(log: ParsedLog) -> list[bytes]:
    return [encode_json_sorted(entry) for entry in _entries(log)]


def _entries(log: ParsedLog) -> list[Mapping[str, Any]]:
    return cast("list[Mapping[str, Any]]", next(log.body[key] for key in LIST_KEYS if key in log.body))


def _models_by_line(lines: Sequence[LogLine]) -> dict[int, str]:
    """Return the model of each line: its own, or the last one that was named before it."""
    models: dict[int, str] = {}
    model: str | None = None
    if _is_export(lines):
        messages = list_of(lines[0].value["messages"])
        lines = [LogLine(number, object_of(message)) for number, message in enumerate(messages, 1)]
    for line in lines:
        value = line.value
        for key in _MODEL_PLACES:
            place = object_of(value.get(key)) if key else value
            if named := string_of(place.get("model") or place.get("modelID")):
                model = model if named in _NO_MODELS else named
                break
        if model is not None:
            models[line.number] = model
    return models


def _states(
    lines: Sequence[LogLine], in_rows: AbstractSet[int]
) -> Iterator[tuple[Sequence[LogLine], tuple[Flag, ...]]]:
    """Yield the log as it is, as it was before each end of a branch, and the subagents in it.

    `in_rows` are the records of the states so far: a branch whose end is among them was not left.
    """
    if _is_export(lines):
        yield from _states_of_export(lines[0])
        return
    yield lines, ()
    cuts = _cuts(lines)
    branches = (
        end for end in sorted(cuts, reverse=True) if cuts[end] == "compacted" or lines[end - 1].number not in in_rows
    )
    for end in islice(branches, _MAX_BRANCHES):
        yield lines[:end], (cuts[end],)
    for agent in _subagents(lines):
        yield agent, ("sidechain",)


def _cuts(lines: Sequence[LogLine]) -> dict[int, Flag]:
    """Return how many lines the log had at the end of each branch, and why it ended."""
    cuts: dict[int, Flag] = {}
    places: dict[str, int] = {}
    parents: set[str] = set()
    history: dict[str, Any] = {}
    for at, line in enumerate(lines):
        value = line.value
        if "$set" in value and (messages := list_of(object_of(value["$set"]).get("messages"))):
            before, history = history, {str(object_of(message).get("id")): message for message in messages}
            if any(history.get(name) != message for name, message in before.items()):
                cuts[at] = "compacted"
        elif "content" in value:
            history[str(value.get("id"))] = value
        if at and (flag := _find_cut(value)) is not None:
            cuts[at] = flag
        own, parent = ("uuid", "parentUuid") if "uuid" in value else ("id", "parentId")
        if parent in value and isinstance(value.get(own), str):
            places[value[own]] = at
            parents.add(str(value[parent]))
    for name, at in places.items():
        value = lines[at].value
        if name not in parents and at + 1 < len(lines) and not value.get("isSidechain") and _has_message(value):
            cuts.setdefault(at + 1, "rewound")
    return cuts


def _find_cut(value: Mapping[str, Any]) -> Flag | None:
    """Return why the messages before a line are no longer sent; None if they are."""
    payload = object_of(value.get("payload"))
    if value.get("subtype") in ("compact_boundary", "chat_compression") or value.get("type") in (
        "compaction",
        "compacted",
    ):
        return "compacted"
    return "rewound" if "$rewindTo" in value or payload.get("type") == "thread_rolled_back" else None


def _subagents(lines: Sequence[LogLine]) -> Iterator[list[LogLine]]:
    """Yield the lines of each subagent: those of one root in the tree."""
    if all(line.value.get("isSidechain") for line in lines if "uuid" in line.value):
        return
    roots: dict[str, str] = {}
    groups: dict[str, list[LogLine]] = {}
    for line in lines:
        if line.value.get("isSidechain") and isinstance(uuid := line.value.get("uuid"), str):
            root = roots[uuid] = roots.get(str(line.value.get("parentUuid")), uuid)
            groups.setdefault(root, []).append(line)
    yield from groups.values()


def _is_export(lines: Sequence[LogLine]) -> bool:
    """Return whether a session is one JSON value."""
    return len(lines) == 1 and isinstance(lines[0].value.get("messages"), list)


def _states_of_export(line: LogLine) -> Iterator[tuple[Sequence[LogLine], tuple[Flag, ...]]]:
    """Yield a session that is one JSON value, also without what was taken back, and up to each compaction."""
    yield [line], ()
    value = line.value
    info, messages = object_of(value.get("info")), list_of(value.get("messages"))
    kept = {**value, "info": {key: item for key, item in info.items() if key != "revert"}}
    if "revert" in info:
        yield [LogLine(line.number, kept)], ("rewound",)
    for at, message in enumerate(messages):
        if at and any(object_of(part).get("type") == "compaction" for part in list_of(object_of(message).get("parts"))):
            yield [LogLine(line.number, {**kept, "messages": messages[:at]})], ("compacted",)


def _message_records(lines: Sequence[LogLine]) -> frozenset[int]:
    """Return the numbers of the lines that have a message, whatever the reader makes of them."""
    if _is_export(lines):
        return frozenset(range(1, len(lines[0].value["messages"]) + 1))
    return frozenset(line.number for line in lines if _has_message(line.value))


def _has_message(value: Mapping[str, Any]) -> bool:
    payload = object_of(value.get("payload"))
    if value.get("type") == "response_item":
        return payload.get("type") in ("message", "function_call", "function_call_output", "custom_tool_call")
    if "content" in value and isinstance(value.get("id"), str):
        return value.get("type") in ("user", "gemini")
    message = object_of(value.get("message"))
    return value.get("type") in ("user", "assistant", "message", "tool_result") and bool(message)
