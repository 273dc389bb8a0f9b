"""The strategy `dense`: replaces results that are repeated, superseded or stale by one line.

A result is repeated where a later one is equal, superseded where the same reading tool is called again with the same
arguments, and stale where its file was written to and then read again. Whether a tool reads or writes is inferred from
the words in its name and in its `command` argument.

Invariant: the note refers to a result that follows it in every rendered request. Targets render a result after its call
or in its own position, so only a result is later whose call follows the other one's result, or that follows it in the
same reply in both orders.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from posixpath import normpath
from typing import Any, cast

from msgspec import UNSET, Struct, UnsetType, structs

from segue.canonical.blocks import Shortening, ShortenReason, ToolCall, ToolResponse, edit_block, state_of, text_of
from segue.canonical.codec import encode_value
from segue.canonical.compress.plan import Plan
from segue.canonical.json import encode_json_sorted
from segue.canonical.placeholders import CUT_PATTERN, format_note, is_note

_READ_VERBS = frozenset(
    {
        *("cat", "diff", "fetch", "find", "get", "glob", "grep", "head", "list", "look", "ls", "open", "peek", "read"),
        *("search", "show", "stat", "status", "tail", "tree", "view"),
    }
)
_WRITE_VERBS = frozenset(
    {
        *("append", "apply", "create", "delete", "edit", "insert", "modify", "move", "overwrite", "patch", "put"),
        *("remove", "rename", "replace", "rm", "save", "set", "touch", "undo", "update", "write"),
    }
)
# A second call of these returns something else, not a newer version.
_NON_REPEATABLE = frozenset({"ask", "next", "poll", "pop", "random", "wait"})
_PATH_ARGUMENTS = (
    *("path", "file_path", "filepath", "filePath", "file", "filename", "file_name", "target_file", "absolute_path"),
    *("relative_path", "relative_workspace_path", "notebook_path", "uri", "dir", "directory", "folder"),
)
_ACTION_ARGUMENTS = ("command", "action", "operation", "mode")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PATCHED_FILE = re.compile(r"^(?:\*\*\* (?:Add|Update|Delete) File: |\+\+\+ (?:b/)?)(\S.*?)\s*$", re.MULTILINE)


class _FinishedCall(Struct, frozen=True):
    """A complete call and its result. Both positions are message index and block index."""

    call: ToolCall
    response: ToolResponse
    call_position: tuple[int, int]
    position: tuple[int, int]
    is_shortenable: bool
    """Whether the result may be shortened."""
    is_only_copy: bool
    """Whether a note refers to this result as its repetition. Then only an equal result makes it redundant."""

    def follows(self, other: _FinishedCall) -> bool:
        """Return whether this result is rendered after the other one for every target."""
        if self.call_position[0] == other.call_position[0]:
            return self.call_position > other.call_position and self.position > other.position
        return self.call_position > other.position


def compress_dense(plan: Plan, budget: int) -> str:
    """Replace redundant results, oldest first; return a reason where the budget is still exceeded."""
    redundant = reversed(list(_find_redundant(_finished_calls(plan))))
    plan.shorten(((finished.position[0], (finished.response, note)) for finished, note in redundant), budget)
    return "no repeated, superseded or stale results are left"


def _finished_calls(plan: Plan) -> list[_FinishedCall]:
    """Return complete interactions with one result after the call, in the order of their results; notes are skipped."""
    positions: dict[str, tuple[int, int]] = {}
    results: list[tuple[tuple[int, int], ToolResponse]] = []
    for index, message in enumerate(plan.current):
        for place, block in enumerate(message.blocks if message is not None else ()):
            if isinstance(block, ToolCall) and block.kind != "hosted" and not block.broken:
                positions[block.id] = index, place
            elif isinstance(block, ToolResponse) and block.call_id in positions:
                results.append(((index, place), block))
    counts = Counter(response.call_id for _, response in results)
    shortenings = [response.shortened for _, response in results if response.shortened is not None]
    repeated_ids = {shortening.call_id for shortening in shortenings if shortening.reason == "repeated"}
    shortenable = {id(response) for index in range(len(plan.current)) for response in plan.shortenable_results(index)}
    return [
        _FinishedCall(
            plan.calls[response.call_id],
            response,
            positions[response.call_id],
            position,
            is_shortenable=id(response) in shortenable,
            is_only_copy=response.call_id in repeated_ids,
        )
        for position, response in results
        if counts[response.call_id] == 1 and state_of(response) == "complete" and not is_note(response)
    ]


def _find_redundant(interactions: list[_FinishedCall]) -> Iterator[tuple[_FinishedCall, ToolResponse]]:
    """Yield interactions that a later one makes redundant, newest first, with the note for each.

    A note only refers to results that are kept.
    """
    by_content: dict[bytes, _FinishedCall] = {}
    by_call: dict[bytes, _FinishedCall] = {}
    by_path: dict[str, _FinishedCall] = {}
    read_since_written: dict[str, _FinishedCall] = {}
    for finished in reversed(interactions):
        content, call, path, action = (
            _content_key(finished),
            _call_key(finished.call),
            _find_path(finished.call),
            _classify_call(finished.call),
        )
        is_whole = finished.response.shortened is None
        is_outdatable = action == "read" and not finished.is_only_copy
        later: list[tuple[ShortenReason, _FinishedCall | None]] = [
            ("repeated", by_content.get(content) if is_whole else None),
            ("superseded", by_call.get(call) if is_outdatable else None),
            ("stale", read_since_written.get(path) if is_outdatable else None),
        ]
        notes = (_make_note(finished, reason, other) for reason, other in later if other and other.follows(finished))
        note = next(notes, None)
        if note is not None and finished.is_shortenable:
            yield finished, note
            continue
        if is_whole:
            by_content.setdefault(content, finished)
        # A result that was cut holds less than an older one that was not.
        if action == "read" and is_whole and not CUT_PATTERN.search(text_of(finished.response.content)):
            by_call.setdefault(call, finished)
            by_path.setdefault(path, finished)
        elif action == "write":
            read_since_written |= {path: by_path[path] for path in _written_paths(finished.call) if path in by_path}


def _make_note(finished: _FinishedCall, reason: ShortenReason, other: _FinishedCall) -> ToolResponse:
    shortening = Shortening(reason, other.call.id, _find_path(finished.call) if reason == "stale" else "")
    content = (format_note(shortening, other.call),)
    return edit_block(finished.response, content=content, structured=UNSET, shortened=shortening)


def _content_key(finished: _FinishedCall) -> bytes:
    response = finished.response
    blocks = [encode_value(structs.replace(block, native=None)) for block in response.content or ()]
    return encode_json_sorted([blocks, None if isinstance(response.structured, UnsetType) else [response.structured]])


def _call_key(call: ToolCall) -> bytes:
    return encode_json_sorted([call.name, call.arguments, call.arguments_text])


def _classify_call(call: ToolCall) -> str:
    """Return `read`, `write`, or `""` where neither can be inferred. Action arguments override the tool's name."""
    arguments = _argument_object(call)
    for name in (*(arguments.get(key) for key in _ACTION_ARGUMENTS), call.name):
        words = {word.lower() for word in _WORD.findall(name)} if isinstance(name, str) else set[str]()
        if name is not call.name and (len(words) > 2 or not name):
            continue
        if words & _WRITE_VERBS:
            return "write"
        if words & _READ_VERBS and not words & _NON_REPEATABLE:
            return "read"
    return ""


def _argument_object(call: ToolCall) -> Mapping[str, Any]:
    return cast("dict[str, Any]", call.arguments) if isinstance(call.arguments, dict) else {}


def _find_path(call: ToolCall) -> str:
    arguments = _argument_object(call)
    path = next(
        (arguments[key] for key in _PATH_ARGUMENTS if isinstance(arguments.get(key), str) and arguments[key]), None
    )
    return normpath(path) if path is not None else ""


def _written_paths(call: ToolCall) -> set[str]:
    """Return the files that a call writes to: its path argument, and those of a patch."""
    patches = [call.arguments, *_argument_object(call).values()]
    names = {name for patch in patches if isinstance(patch, str) for name in _PATCHED_FILE.findall(patch)}
    return {normpath(name) for name in names} | {_find_path(call)} - {""}
