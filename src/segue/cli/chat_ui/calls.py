"""The tool calls of a turn as rows: one for each call, a subagent's calls below the call that started it."""

from __future__ import annotations

from collections.abc import Iterator

from segue.cli.chat_ui.styles import Row, display_width, truncate, wrap
from segue.errors import format_count
from segue.runtime.events import ApprovalRequested, CallEnded, CallProgress, CallQueued, CallStarted, Outcome
from segue.runtime.permission_rules import SHELL_TOOLS
from segue.view.fit import shorten_paths
from segue.view.format import format_duration
from segue.view.sanitize import sanitize, sanitize_line

_MARKS: dict[str, tuple[str, str]] = {
    "queued": ("◌", "class:dim"),
    "approval": ("?", "class:ask"),
    "running": ("⟳", "class:wait"),
    "complete": ("✓", "class:ok"),
    "error": ("✗", "class:bad"),
    "denied": ("✗", "class:warn"),
    "cancelled": ("–", "class:warn"),
    "timed-out": ("✗", "class:bad"),
    "interrupted": ("–", "class:warn"),
}
_OUTCOME_TEXT: dict[Outcome, str] = {
    "denied": "denied",
    "cancelled": "cancelled",
    "timed-out": "timed out",
    "interrupted": "interrupted",
}
_INDENT = "  "
_MAX_NAME = 28
SHOWN = (3, 2)
"""How many of the first and the last lines of a result are shown, if no setting says otherwise."""
_SHOWN_OF_FAILURE = (10, 5)


class _Call:
    """The state of one call."""

    def __init__(self, event: CallQueued) -> None:
        self.tool = sanitize_line(event.tool)
        self.summary = sanitize_line(event.summary or summarise_arguments(event.arguments))
        self.state: str = "queued"
        self.started: float | None = None
        self.last_line = ""
        self.ended: CallEnded | None = None
        self.children: list[_Call] = []

    def is_finished(self) -> bool:
        return self.ended is not None and all(call.is_finished() for call in self.children)


class CallList:
    """The calls in progress, in call order. Finished calls are taken from the front."""

    def __init__(self, shown: tuple[int, int] = SHOWN) -> None:
        self._shown = shown
        self._calls: list[_Call] = []
        self._by_id: dict[tuple[str | None, str], _Call] = {}
        self._tasks: dict[str, _Call] = {}
        self._finished: list[_Call] = []
        self._is_new_turn = False
        """Whether the next call is the first one of its turn, and replaces the finished ones."""

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, event: CallQueued) -> None:
        if self._is_new_turn:
            self._is_new_turn = False
            self._finished.clear()
        call = _Call(event)
        parent = self._tasks.get(event.task) if event.task is not None else None
        (parent.children if parent is not None else self._calls).append(call)
        self._by_id[event.task, event.id] = call
        self._tasks[event.id] = call

    def update(self, event: ApprovalRequested | CallStarted | CallProgress | CallEnded, now: float) -> None:
        call = self._by_id.get((event.task, event.id))
        if call is None or call.ended is not None:
            return
        match event:
            case ApprovalRequested():
                call.state = "approval"
            case CallStarted():
                call.state, call.started = "running", now
            case CallProgress():
                if call.state == "approval" and call.started is not None:
                    call.state = "running"
                call.last_line = sanitize_line(event.text.rstrip().rpartition("\n")[2])
            case CallEnded():
                call.state, call.ended = event.outcome, event

    def set_last_line(self, task: str, text: str) -> None:
        """Set the last line of the call that a subagent works for."""
        call = self._tasks.get(task)
        if call is not None and call.ended is None and (line := sanitize_line(text)):
            call.last_line = line

    def take_finished(self, width: int, *, include_running: bool = False, full: bool = False) -> list[Row]:
        """Remove and return the rows of finished calls, up to the first unfinished one."""
        rows: list[Row] = []
        while self._calls and (include_running or self._calls[0].is_finished()):
            self._finished.append(self._calls.pop(0))
            rows += _call_rows(self._finished[-1], width, 0.0, shown=None if full else self._shown)
        if not self._calls:
            self._by_id.clear()
            self._tasks.clear()
        return rows

    def begin_turn(self) -> None:
        self._is_new_turn = True

    def finished_rows(self, width: int) -> list[Row]:
        """Return the finished calls of the last turn with calls, with all that they printed."""
        return [row for call in self._finished for row in _call_rows(call, width, 0.0)]

    def rows(self, width: int, height: int, now: float) -> list[Row]:
        """Return the current rows of all calls, at most `height`."""
        rows = [row for call in self._calls for row in _call_rows(call, width, now, shown=self._shown)]
        if len(rows) <= height:
            return rows
        # Running calls take priority over finished and queued ones.
        running = [row for call in self._calls for row in _running_rows(call, width, now)][: max(1, height - 1)]
        hidden = sum(1 for call in self._calls for _ in _walk(call)) - len(running)
        return [*running, [("class:dim", f"{_INDENT}… and {format_count(hidden, 'more call')}")]]


def _walk(call: _Call) -> Iterator[_Call]:
    yield call
    for child in call.children:
        yield from _walk(child)


def _running_rows(call: _Call, width: int, now: float, depth: int = 1) -> Iterator[Row]:
    if call.state in ("running", "approval"):
        yield _call_row(call, width, now, depth)
    for child in call.children:
        yield from _running_rows(child, width, now, depth + 1)


def _call_rows(
    call: _Call, width: int, now: float, depth: int = 1, *, shown: tuple[int, int] | None = None
) -> list[Row]:
    rows = [_call_row(call, width, now, depth)]
    for child in call.children:
        rows += _call_rows(child, width, now, depth + 1, shown=shown)
    return [*rows, *_result_rows(call, width, depth, shown)]


def _call_row(call: _Call, width: int, now: float, depth: int) -> Row:
    mark, style = _MARKS[call.state]
    name = truncate(call.tool, _MAX_NAME)
    row: Row = [("", _INDENT * depth), (style, mark), ("", " "), ("class:tool", name)]
    state = _format_state(call, now)
    room = width - display_width(row) - display_width(state) - 4
    if call.summary and room > 3:
        row += [("", "  "), ("", truncate(call.summary, room))]
        room = width - display_width(row) - display_width(state) - 4
    row.append(("class:dim", f"  {state}" if state else ""))
    if call.last_line and call.ended is None and room > 8:
        row.append(("class:dim", f"  {truncate(call.last_line, room)}"))
    return row


def _format_state(call: _Call, now: float) -> str:
    if call.ended is None:
        if call.state == "running" and call.started is not None:
            return f"{max(0, int(now - call.started))} s"
        return "needs permission" if call.state == "approval" else call.state
    parts = [_OUTCOME_TEXT.get(call.ended.outcome, "")]
    lines = call.ended.text.count("\n") + 1
    if call.ended.outcome == "complete" and lines > 1:
        parts.append(format_count(lines, "line"))
    parts.append(format_duration(call.ended.seconds) if call.started is not None else "")
    parts.append(f"{format_count(call.ended.cut, 'character')} truncated" if call.ended.cut else "")
    return ", ".join(filter(None, parts))


def _result_rows(call: _Call, width: int, depth: int, shown: tuple[int, int] | None) -> list[Row]:
    """Return so many first and last lines of a result, truncated, of a failure more; by default all of it.

    The reason of a failure is wrapped; what a command printed has none.
    """
    if call.ended is None:
        return []
    indent, outcome = _INDENT * depth + "  ", call.ended.outcome
    lines = [line.rstrip() for line in sanitize(call.ended.text).expandtabs(4).strip("\n").split("\n")]
    rows: list[Row] = []
    if lines[0] and (outcome == "denied" or (outcome == "error" and call.tool not in SHELL_TOOLS)):
        reason = shorten_paths(lines.pop(0).strip().removeprefix("denied: "), width - len(indent))
        rows = wrap(reason, width, _MARKS[outcome][1], indent=indent)
    if shown is None:
        return [*rows, *(row for line in lines if line for row in wrap(line, width, "class:dim", indent=indent))]
    if outcome not in ("complete", "error", "timed-out"):
        return rows
    first, last = shown if outcome == "complete" else map(max, shown, _SHOWN_OF_FAILURE)
    hidden = len(lines) - first - last
    # A line that says that one line is hidden takes the place of that line.
    if hidden > 1:
        lines[first : len(lines) - last] = [f"… {format_count(hidden, 'more line')}, Ctrl-O shows all"]
    return [*rows, *([("", indent), ("class:dim", truncate(line, width - len(indent)))] for line in lines if line)]


def summarise_arguments(arguments: object) -> str:
    """Return a summary for tools that do not provide one: the first argument that is a single line."""
    if not isinstance(arguments, dict):
        return arguments if isinstance(arguments, str) else ""
    values: list[object] = list(arguments.values())  # pyright: ignore[reportUnknownArgumentType]
    return next((value for value in values if isinstance(value, str) and "\n" not in value), "")
