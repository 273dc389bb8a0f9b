"""The strategy `dense`: replaces results that are repeated, superseded or stale by one line.

A result is repeated where a later one is equal, superseded where the same reading tool is called again with the same
arguments, and stale where its file was written to and then read again. Whether a tool reads or writes is inferred from
the words in its name and in its `command` argument.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from posixpath import normpath
from typing import Any, cast

from msgspec import UNSET, Struct, UnsetType, structs

from segue.canonical.blocks import Text, ToolCall, ToolResponse, calls_of, edit_block, responses_of, state_of, text_of
from segue.canonical.codec import encode_value
from segue.canonical.compress.placeholders import CUT_PATTERN, REPEATED, STALE, SUPERSEDED, is_placeholder
from segue.canonical.compress.plan import Plan
from segue.canonical.json import encode_json_sorted, encode_json_text

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
_MAX_CALL_LENGTH = 80


class _FinishedCall(Struct, frozen=True):
    """A complete call and its result."""

    call: ToolCall
    response: ToolResponse
    index: int
    is_shortenable: bool
    """Whether the result may be shortened."""


def compress_dense(plan: Plan, budget: int) -> str:
    """Replace redundant results, oldest first; return a reason where the budget is still exceeded."""
    for finished, line in reversed(list(_find_redundant(_finished_calls(plan)))):
        if plan.total <= budget:
            return ""
        content = (Text(line),)
        plan.shorten(
            finished.index, finished.response, edit_block(finished.response, content=content, structured=UNSET)
        )
    return "no repeated, superseded or stale results are left"


def _finished_calls(plan: Plan) -> list[_FinishedCall]:
    """Return complete interactions, in the order of their results; those reduced to a placeholder are skipped."""
    calls = {call.id: call for message in plan.original for call in calls_of(message)}
    shortenable = {id(response) for _, response in plan.shortenable_results()}
    return [
        _FinishedCall(calls[response.call_id], response, index, id(response) in shortenable)
        for index, message in enumerate(plan.original)
        for response in responses_of(message)
        if response.call_id in calls
        and state_of(response) == "complete"
        and not is_placeholder(text_of(response.content))
    ]


def _find_redundant(interactions: list[_FinishedCall]) -> Iterator[tuple[_FinishedCall, str]]:
    """Yield interactions that a later one makes redundant, newest first, with the placeholder for each.

    A placeholder only refers to results that are kept.
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
        line = ""
        if content in by_content:
            line = REPEATED.format(call=_format_call(by_content[content].call))
        elif action == "read" and call in by_call:
            line = SUPERSEDED.format(call=_format_call(by_call[call].call))
        elif action == "read" and path in read_since_written:
            line = STALE.format(path=path, call=_format_call(read_since_written[path].call))
        if line and finished.is_shortenable:
            yield finished, line
            continue
        by_content.setdefault(content, finished)
        # A result that was cut holds less than an older one that was not.
        if action == "read" and not CUT_PATTERN.search(text_of(finished.response.content)):
            by_call.setdefault(call, finished)
            by_path.setdefault(path, finished)
        elif action == "write":
            read_since_written |= {path: by_path[path] for path in _written_paths(finished.call) if path in by_path}


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


def _format_call(call: ToolCall) -> str:
    """Format a call on one short line."""
    arguments = call.arguments if isinstance(call.arguments, str) else encode_json_text(call.arguments)
    line = " ".join(f"{call.name} {arguments}".split())
    return line if len(line) <= _MAX_CALL_LENGTH else f"{line[: _MAX_CALL_LENGTH - 1]}…"
