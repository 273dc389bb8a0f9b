"""`make_brief`: a hand-over of a conversation to a fresh start, extracted without a model.

Every statement is something that was said, called or printed, and names the turn that it came from: turn 3 is that of
`segue diag ID 3`. Nothing is concluded, so what the history does not show is not in the brief.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from segue.canonical.blocks import Message, ToolCall, calls_of, first_text, state_of, text_of
from segue.view.format import ResultIndex, format_result, index_results

_PATHS = ("path", "file_path", "filename", "target_file")
_CONTENTS = ("content", "contents", "file_text")
_OLD, _NEW = ("old_string", "old", "old_text", "old_str"), ("new_string", "new", "new_text", "new_str")
_COMMANDS = ("command", "cmd")
_LISTS, _ITEM_TEXTS, _ITEM_STATES = ("items", "todos", "plan"), ("text", "content", "step"), ("state", "status")
_DONE = ("done", "completed", "cancelled")
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_MAX_LINES, _MAX_LINE = 12, 200


class Statement(Struct, frozen=True):
    """A statement and the number of its turn; 0 is before the first reply."""

    turn: int
    text: str


class Brief(Struct, frozen=True):
    """The statements of a hand-over. `is_empty` if there is nothing to hand over."""

    goal: tuple[Statement, ...] = ()
    files: tuple[Statement, ...] = ()
    open_points: tuple[Statement, ...] = ()
    results: tuple[Statement, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.goal

    def __str__(self) -> str:
        """Return the brief as Markdown."""
        sections = {
            "Goal, in the user's words": self.goal,
            "Files that were changed": self.files,
            "Open points": self.open_points,
            "Last results": self.results,
        }
        return "\n".join(
            f"## {title}\n\n{''.join(f'- [turn {each.turn}] {each.text}{chr(10)}' for each in statements)}"
            for title, statements in sections.items()
            if statements
        )


def make_brief(messages: Sequence[Message]) -> Brief:
    """Return the brief of a conversation."""
    placed = list(_number_turns(messages))
    results = index_results(messages)
    calls = [(turn, call) for turn, message in placed for call in calls_of(message)]
    return Brief(
        goal=tuple(
            Statement(turn, _shorten(text))
            for turn, message in placed
            if message.speaker == "human" and (text := first_text(message.blocks))
        ),
        files=tuple(_find_changes(calls, results)),
        open_points=tuple(_find_open_points(messages, calls, results)),
        results=tuple(_find_last_results(calls, results)),
    )


def _number_turns(messages: Sequence[Message]) -> Iterator[tuple[int, Message]]:
    """Yield each message with the number of its turn."""
    numbers: dict[str, int] = {}
    turn = 0
    for message in messages:
        if message.turn_key is not None:
            turn = numbers.setdefault(message.turn_key, len(numbers) + 1)
        yield turn, message


def _find_changes(calls: Sequence[tuple[int, ToolCall]], results: ResultIndex) -> Iterator[Statement]:
    """Yield what calls wrote, with their diffs; failed and open calls wrote nothing."""
    for turn, call in calls:
        found = results.results_of(call)
        if not found or state_of(found[-1]) != "complete":
            continue
        patch = _find_text(call)
        if "*** Begin Patch" in patch:
            lines = [line for line in patch.splitlines() if line[:1] in "+-" and line.strip("+-")]
            yield Statement(turn, f"{', '.join(_PATCHED.findall(patch))}{_format_lines(lines)}")
            continue
        path, content, new = (_pick(call, names) for names in (_PATHS, _CONTENTS, _NEW))
        if path is None or (content is None and new is None):
            continue
        old = _pick(call, _OLD) or ""
        lines = [f"-{line}" for line in old.splitlines()] + [f"+{line}" for line in (new or content or "").splitlines()]
        yield Statement(turn, f"{path}{_format_lines(lines)}")


def _find_open_points(
    messages: Sequence[Message], calls: Sequence[tuple[int, ToolCall]], results: ResultIndex
) -> Iterator[Statement]:
    lists = [(turn, items) for turn, call in calls if (items := _find_items(call)) is not None]
    for turn, items in lists[-1:]:
        for item in items:
            state = next((str(item[name]) for name in _ITEM_STATES if name in item), "")
            text = next((str(item[name]) for name in _ITEM_TEXTS if name in item), "")
            if text and state not in _DONE:
                yield Statement(turn, f"to do: {_shorten(text)}{f' ({state})' if state else ''}")
    for turn, call in calls:
        found = results.results_of(call)
        if not found or state_of(found[-1]) == "pending":
            yield Statement(turn, f"the call of {call.name} has no result")
    last = messages[-1] if messages else None
    if last is not None and last.speaker == "ai" and (question := text_of(last.blocks).strip()).endswith("?"):
        yield Statement(list(_number_turns(messages))[-1][0], f"the model asked: {_shorten(question)}")


def _find_last_results(calls: Sequence[tuple[int, ToolCall]], results: ResultIndex) -> Iterator[Statement]:
    """Yield the newest run of each command."""
    newest: dict[str, tuple[int, ToolCall]] = {}
    for turn, call in calls:
        if (command := _pick(call, _COMMANDS)) is not None and results.results_of(call):
            newest.pop(command, None)
            newest[command] = turn, call
    for command, (turn, call) in newest.items():
        result = results.results_of(call)[-1]
        failed = "" if state_of(result) == "complete" else f", {state_of(result)}"
        lines = format_result(result).strip("\n").splitlines()
        yield Statement(turn, f"`{_shorten(command)}`{failed}{_format_lines(lines, from_end=True)}")


def _arguments(call: ToolCall) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", call.arguments) if isinstance(call.arguments, dict) else {}


def _find_text(call: ToolCall) -> str:
    """Return the free text of a call, which some APIs get as its only argument."""
    if isinstance(call.arguments, str):
        return call.arguments
    values = list(_arguments(call).values())
    return values[0] if len(values) == 1 and isinstance(values[0], str) else ""


def _pick(call: ToolCall, names: Sequence[str]) -> str | None:
    """Return the first of these arguments that is a text, or a list of words."""
    for name in names:
        value: Any = _arguments(call).get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and all(isinstance(word, str) for word in cast("list[Any]", value)):
            return " ".join(cast("list[str]", value))
    return None


def _find_items(call: ToolCall) -> list[Mapping[str, Any]] | None:
    """Return the items of a to-do list."""
    for name in _LISTS:
        items: Any = _arguments(call).get(name)
        if isinstance(items, list) and items and all(isinstance(item, dict) for item in cast("list[Any]", items)):
            found = cast("list[Mapping[str, Any]]", items)
            if all(any(key in item for key in _ITEM_STATES) for item in found):
                return found
    return None


def _format_lines(lines: Sequence[str], *, from_end: bool = False) -> str:
    """Return lines in a fence; of many the first ones, or the last."""
    hidden = len(lines) - _MAX_LINES
    shown = lines[-_MAX_LINES:] if from_end else lines[:_MAX_LINES]
    more = [f"… {hidden:,} more"] if hidden > 0 else []
    kept = [*more, *shown] if from_end else [*shown, *more]
    fence = "`" * max(3, 1 + max((len(run) for line in kept for run in re.findall("`{3,}", line)), default=0))
    body = "".join(f"  {line[:_MAX_LINE]}\n" for line in kept)
    return f"\n  {fence}\n{body}  {fence}" if kept else ""


def _shorten(text: str) -> str:
    """Return a text on one line, which is not cut: the words of the user are the goal."""
    return " ".join(text.split())
