"""The tool calls of a turn as rows: one for each call, a subagent's calls below the call that started it."""

from __future__ import annotations

from collections.abc import Iterator

from segue.cli.chatting.figures import counted, seconds
from segue.cli.chatting.looks import Row, columns, cut
from segue.runtime.events import Asks, CallBegan, CallEnded, CallProgress, CallQueued, Outcome
from segue.view.clean import harmless, harmless_line

__all__ = ["Calls"]

_MARKS: dict[str, tuple[str, str]] = {
    "queued": ("◌", "class:dim"),
    "asks": ("?", "class:ask"),
    "running": ("⟳", "class:wait"),
    "complete": ("✓", "class:ok"),
    "error": ("✗", "class:bad"),
    "cancelled": ("–", "class:warn"),
    "timed-out": ("✗", "class:bad"),
    "interrupted": ("–", "class:warn"),
}
_TOLD: dict[Outcome, str] = {"cancelled": "cancelled", "timed-out": "timed out", "interrupted": "interrupted"}
_INDENT = "  "
_NAME = 28
_DETAIL = 8
"""The number of result lines shown with `full`."""


class _Call:
    """The state of one call."""

    def __init__(self, event: CallQueued) -> None:
        self.tool = harmless_line(event.tool)
        self.shown = harmless_line(event.shown or _arguments(event.arguments))
        self.state: str = "queued"
        self.began: float | None = None
        self.newest = ""
        self.ended: CallEnded | None = None
        self.inner: list[_Call] = []

    def all_ended(self) -> bool:
        return self.ended is not None and all(call.all_ended() for call in self.inner)


class Calls:
    """The calls in progress, in call order. Finished calls are taken from the front."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._known: dict[tuple[str | None, str], _Call] = {}
        self._tasks: dict[str, _Call] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def queue(self, event: CallQueued) -> None:
        call = _Call(event)
        parent = self._tasks.get(event.task) if event.task is not None else None
        (parent.inner if parent is not None else self._calls).append(call)
        self._known[event.task, event.id] = call
        self._tasks[event.id] = call

    def note(self, event: Asks | CallBegan | CallProgress | CallEnded, now: float) -> None:
        call = self._known.get((event.task, event.id))
        if call is None or call.ended is not None:
            return
        match event:
            case Asks():
                call.state = "asks"
            case CallBegan():
                call.state, call.began = "running", now
            case CallProgress():
                call.newest = harmless_line(event.text.rstrip().rpartition("\n")[2])
            case CallEnded():
                call.state, call.ended = event.outcome, event

    def heard(self, task: str, text: str) -> None:
        """Set the last line of the call that a subagent works for."""
        call = self._tasks.get(task)
        if call is not None and call.ended is None and (line := harmless_line(text)):
            call.newest = line

    def take(self, width: int, *, all_of_them: bool = False, full: bool = False) -> list[Row]:
        """Remove and return the rows of finished calls, up to the first unfinished one."""
        rows: list[Row] = []
        while self._calls and (all_of_them or self._calls[0].all_ended()):
            rows += _rows(self._calls.pop(0), width, 0.0, full=full)
        if not self._calls:
            self._known.clear()
            self._tasks.clear()
        return rows

    def rows(self, width: int, height: int, now: float) -> list[Row]:
        """The current rows of all calls, at most `height`."""
        rows = [row for call in self._calls for row in _rows(call, width, now)]
        if len(rows) <= height:
            return rows
        # Running calls take priority over finished and queued ones.
        running = [row for call in self._calls for row in _running(call, width, now)][: max(1, height - 1)]
        hidden = sum(1 for call in self._calls for _ in _walked(call)) - len(running)
        return [*running, [("class:dim", f"{_INDENT}… and {counted(hidden, 'more call')}")]]


def _walked(call: _Call) -> Iterator[_Call]:
    yield call
    for inner in call.inner:
        yield from _walked(inner)


def _running(call: _Call, width: int, now: float, depth: int = 1) -> Iterator[Row]:
    if call.state in ("running", "asks"):
        yield _line(call, width, now, depth)
    for inner in call.inner:
        yield from _running(inner, width, now, depth + 1)


def _rows(call: _Call, width: int, now: float, depth: int = 1, *, full: bool = False) -> list[Row]:
    rows = [_line(call, width, now, depth), *_result(call, width, depth, full=full)]
    for inner in call.inner:
        rows += _rows(inner, width, now, depth + 1, full=full)
    return rows


def _line(call: _Call, width: int, now: float, depth: int) -> Row:
    mark, style = _MARKS[call.state]
    name = cut(call.tool, _NAME)
    row: Row = [("", _INDENT * depth), (style, mark), ("", " "), ("class:tool", name)]
    state = _state(call, now)
    room = width - columns(row) - columns(state) - 4
    if call.shown and room > 3:
        row += [("", "  "), ("", cut(call.shown, room))]
        room = width - columns(row) - columns(state) - 4
    row.append(("class:dim", f"  {state}" if state else ""))
    if call.newest and call.ended is None and room > 8:
        row.append(("class:dim", f"  {cut(call.newest, room)}"))
    return row


def _state(call: _Call, now: float) -> str:
    if call.ended is None:
        if call.state == "running" and call.began is not None:
            return f"{max(0, int(now - call.began))} s"
        return "needs permission" if call.state == "asks" else call.state
    parts = [_TOLD.get(call.ended.outcome, "")]
    lines = call.ended.text.count("\n") + 1
    if call.ended.outcome == "complete" and lines > 1:
        parts.append(counted(lines, "line"))
    parts.append(seconds(call.ended.seconds) if call.began is not None else "")
    parts.append(f"{call.ended.cut:,} characters truncated" if call.ended.cut else "")
    return ", ".join(filter(None, parts))


def _result(call: _Call, width: int, depth: int, *, full: bool) -> list[Row]:
    """The first line of an error; with `full` the beginning of any result."""
    if call.ended is None:
        return []
    indent = _INDENT * depth + "  "
    lines = [line for line in harmless(call.ended.text).expandtabs(4).split("\n") if line.strip()]
    if full:
        rest = len(lines) - _DETAIL
        rows: list[Row] = [[("", indent), ("class:dim", cut(line, width - len(indent)))] for line in lines[:_DETAIL]]
        return [*rows, [("", indent), ("class:dim", f"… {counted(rest, 'more line')}")]] if rest > 0 else rows
    if call.ended.outcome != "error" or not lines:
        return []
    return [[("", indent), ("class:bad", cut(lines[0].strip(), width - len(indent)))]]


def _arguments(arguments: object) -> str:
    """A summary for tools without one of their own: the first single-line argument."""
    if not isinstance(arguments, dict):
        return arguments if isinstance(arguments, str) else ""
    values: list[object] = list(arguments.values())  # pyright: ignore[reportUnknownArgumentType]
    return next((value for value in values if isinstance(value, str) and "\n" not in value), "")
