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

from segue.canonical.blocks import Text, ToolCall, ToolResponse, calls_of, edited, responses_of, state_of, text_of
from segue.canonical.codec import dumped
from segue.canonical.jsontext import write_sorted, write_text
from segue.canonical.sheet import Sheet
from segue.canonical.texts import CUT, REPEATED, STALE, SUPERSEDED, is_mark

__all__ = ["dense"]

_READS = frozenset(
    {
        *("cat", "diff", "fetch", "find", "get", "glob", "grep", "head", "list", "look", "ls", "open", "peek", "read"),
        *("search", "show", "stat", "status", "tail", "tree", "view"),
    }
)
_WRITES = frozenset(
    {
        *("append", "apply", "create", "delete", "edit", "insert", "modify", "move", "overwrite", "patch", "put"),
        *("remove", "rename", "replace", "rm", "save", "set", "touch", "undo", "update", "write"),
    }
)
# A second call of these returns something else, not a newer version.
_MOVING = frozenset({"ask", "next", "poll", "pop", "random", "wait"})
_PATHS = (
    *("path", "file_path", "filepath", "filePath", "file", "filename", "file_name", "target_file", "absolute_path"),
    *("relative_path", "relative_workspace_path", "notebook_path", "uri", "dir", "directory", "folder"),
)
_ACTIONS = ("command", "action", "operation", "mode")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PATCHED = re.compile(r"^(?:\*\*\* (?:Add|Update|Delete) File: |\+\+\+ (?:b/)?)(\S.*?)\s*$", re.MULTILINE)
_SHOWN = 80


class _Done(Struct, frozen=True):
    """A complete call and its result."""

    call: ToolCall
    response: ToolResponse
    place: int
    free: bool
    """Whether the result may be shortened."""


def dense(sheet: Sheet, budget: int) -> str:
    """Replace redundant results, oldest first; return a reason where the budget is still exceeded."""
    for done, line in reversed(list(_spare(_interactions(sheet)))):
        if sheet.total <= budget:
            return ""
        content = (Text(line),)
        sheet.shorten(done.place, done.response, edited(done.response, content=content, structured=UNSET))
    return "no repeated, superseded or stale results are left"


def _interactions(sheet: Sheet) -> list[_Done]:
    """Return complete interactions, in the order of their results; those reduced to a placeholder are skipped."""
    calls = {call.id: call for message in sheet.given for call in calls_of(message)}
    free = {id(response) for _, response in sheet.responses()}
    return [
        _Done(calls[response.call_id], response, place, id(response) in free)
        for place, message in enumerate(sheet.given)
        for response in responses_of(message)
        if response.call_id in calls and state_of(response) == "complete" and not is_mark(text_of(response.content))
    ]


def _spare(interactions: list[_Done]) -> Iterator[tuple[_Done, str]]:
    """Yield interactions that a later one makes redundant, newest first, with the placeholder for each.

    A placeholder only refers to results that are kept.
    """
    by_content: dict[bytes, _Done] = {}
    by_call: dict[bytes, _Done] = {}
    by_path: dict[str, _Done] = {}
    read_since_written: dict[str, _Done] = {}
    for done in reversed(interactions):
        content, call, path, does = _content_key(done), _call_key(done.call), _path_of(done.call), _does(done.call)
        line = ""
        if content in by_content:
            line = REPEATED.format(call=_shown(by_content[content].call))
        elif does == "read" and call in by_call:
            line = SUPERSEDED.format(call=_shown(by_call[call].call))
        elif does == "read" and path in read_since_written:
            line = STALE.format(path=path, call=_shown(read_since_written[path].call))
        if line and done.free:
            yield done, line
            continue
        by_content.setdefault(content, done)
        # A result that was cut holds less than an older one that was not.
        if does == "read" and not CUT.search(text_of(done.response.content)):
            by_call.setdefault(call, done)
            by_path.setdefault(path, done)
        elif does == "write":
            read_since_written |= {path: by_path[path] for path in _written(done.call) if path in by_path}


def _content_key(done: _Done) -> bytes:
    response = done.response
    blocks = [dumped(structs.replace(block, native=None)) for block in response.content or ()]
    return write_sorted([blocks, None if isinstance(response.structured, UnsetType) else [response.structured]])


def _call_key(call: ToolCall) -> bytes:
    return write_sorted([call.name, call.arguments, call.arguments_text])


def _does(call: ToolCall) -> str:
    """Return `read`, `write`, or `""` where neither can be inferred. Action arguments override the tool's name."""
    given = _arguments(call)
    for name in (*(given.get(key) for key in _ACTIONS), call.name):
        words = {word.lower() for word in _WORD.findall(name)} if isinstance(name, str) else set[str]()
        if name is not call.name and (len(words) > 2 or not name):
            continue
        if words & _WRITES:
            return "write"
        if words & _READS and not words & _MOVING:
            return "read"
    return ""


def _arguments(call: ToolCall) -> Mapping[str, Any]:
    return cast("dict[str, Any]", call.arguments) if isinstance(call.arguments, dict) else {}


def _path_of(call: ToolCall) -> str:
    given = _arguments(call)
    found = next((given[key] for key in _PATHS if isinstance(given.get(key), str) and given[key]), None)
    return normpath(found) if found is not None else ""


def _written(call: ToolCall) -> set[str]:
    """Return the files that a call writes to: its path argument, and those of a patch."""
    patches = [call.arguments, *_arguments(call).values()]
    found = {name for patch in patches if isinstance(patch, str) for name in _PATCHED.findall(patch)}
    return {normpath(name) for name in found} | {_path_of(call)} - {""}


def _shown(call: ToolCall) -> str:
    """Format a call on one short line."""
    given = call.arguments if isinstance(call.arguments, str) else write_text(call.arguments)
    line = " ".join(f"{call.name} {given}".split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"
