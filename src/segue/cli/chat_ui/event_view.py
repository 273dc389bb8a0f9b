"""Formats a session's events as rows. Finished rows are passed to `push` and never change; `live_rows` still do."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import assert_never

from segue.canonical.blocks import Message, Text, ToolCall, state_of
from segue.cli.chat_ui.calls import SHOWN, CallList, summarise_arguments
from segue.cli.chat_ui.formatter import MarkdownFormatter, PlainFormatter
from segue.cli.chat_ui.styles import PROMPT, Row, display_width, truncate, wrap
from segue.cli.project_context import is_context_note
from segue.errors import format_count
from segue.runtime.events import (
    ApprovalRequested,
    CallEnded,
    CallProgress,
    CallQueued,
    CallStarted,
    ConversationCompressed,
    Event,
    ExchangeEnded,
    ExchangeStarted,
    LateResult,
    ModelSwitched,
    ReasoningDelta,
    ReplyReceived,
    RequestSent,
    RetryScheduled,
    StreamBroken,
    TextDelta,
)
from segue.view.format import format_duration, format_state, index_results
from segue.view.sanitize import sanitize, sanitize_line

_REASONING_MARK = "✻"
_RECAP_MARKS = {"complete": ("✓", "class:ok"), "error": ("✗", "class:bad"), "denied": ("✗", "class:warn")}
_OTHER_MARK = ("–", "class:warn")
# A file as `attachments.quote_text` adds it to a message.
_FILE = re.compile(r"^(?P<name>[^\n]+):\n(?P<fence>`{3,})\n(?P<text>.*?)\n(?P=fence)$", re.DOTALL | re.MULTILINE)
_MAX_RECAP_ROWS = 40
_MAX_REASONING = 200_000
"""The maximum number of reasoning characters kept for display."""


class EventView:
    """The view of one session. `width` returns the current number of columns, `reasoning_hint` follows reasoning.

    `shown` is how many of the first and the last lines of a tool's result are shown.
    """

    def __init__(
        self,
        push: Callable[[list[Row]], None],
        *,
        width: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
        reasoning_hint: str = "Ctrl-T shows it",
        plain: bool = False,
        shown: tuple[int, int] = SHOWN,
    ) -> None:
        self.shows_reasoning = False
        """Whether the last reasoning is shown."""
        self.shows_details = False
        """Whether tool results and findings are shown."""
        self.reasoning = ""
        self._push = push
        self._width = width
        self._clock = clock
        self._reasoning_hint = reasoning_hint
        self._formatter: PlainFormatter | MarkdownFormatter = PlainFormatter() if plain else MarkdownFormatter(width)
        self._calls = CallList(shown)
        self._in_text = False
        self._reasoning_since: float | None = None
        self._has_thought = False
        """Whether the reasoning of this exchange was mentioned: once is enough."""
        self._open_request: tuple[str, float] | None = None
        self._has_rows = False
        self._gap = 0
        """The number of empty rows before the next row."""

    # -------------------------------------------------------------------------------------------------------- events

    def on_event(self, event: Event) -> None:
        if event.task is not None:
            self._on_task_event(event)
            return
        match event:
            case ExchangeStarted():
                self._calls.take_finished(self._width(), include_running=True)
                self._calls.begin_turn()
                self._has_thought = False
                self._open_request = "", self._clock()
                self.print_rows([[], *_format_user_message(event.text, self._width())])
            case RequestSent():
                self._open_request = f"{sanitize_line(event.provider)}/{sanitize_line(event.model)}", self._clock()
                if self.shows_details:
                    self._print_request(event)
            case TextDelta():
                self._on_text(event.text)
            case ReasoningDelta():
                self._on_reasoning(event.text)
            case ReplyReceived():
                self._end_text()
                self._open_request = None
                self.print_rows([[]])
            case CallQueued():
                self._calls.add(event)
            case ApprovalRequested() | CallStarted() | CallProgress() | CallEnded():
                self._on_call(event)
            case ExchangeEnded():
                self._on_ended(event)
            case RetryScheduled() | ModelSwitched() | StreamBroken() | LateResult() | ConversationCompressed():
                self._on_notice(event)
            case _:  # pragma: no cover
                assert_never(event)

    def print_outputs(self) -> bool:
        """Print all that the calls of the last turn with calls printed; return False if there is nothing."""
        rows = self._calls.finished_rows(self._width())
        self.print_rows([[], *rows, []])
        return bool(rows)

    def print_rows(self, rows: Sequence[Row], *, exact: bool = False) -> None:
        """Print rows above the live part. Empty rows are printed only before the next row with text.

        Several empty rows become one, unless `exact`.
        """
        output: list[Row] = []
        for row in rows:
            if not any(text.strip() for _, text in row):
                self._gap = self._gap + 1 if exact else max(1, self._gap)
                continue
            output += [[] for _ in range(self._gap if self._has_rows else 0)]
            output.append(row)
            self._gap, self._has_rows = 0, True
        if output:
            self._push(output)

    def _on_notice(
        self, event: RetryScheduled | ModelSwitched | StreamBroken | LateResult | ConversationCompressed
    ) -> None:
        match event:
            case RetryScheduled():
                delay = f"in {format_duration(event.seconds)}" if event.seconds else "at once"
                self._print_line(f"{_model_name(event)}: {event.why}; retrying {delay}", "class:warn")
            case ModelSwitched(why="chosen"):
                # The command that chose it said so.
                pass
            case ModelSwitched():
                cost = f"; {event.cost.brief}" if event.cost is not None else ""
                self._print_line(f"→ switched to {_model_name(event)} ({event.why}{cost})", "class:mark")
            case StreamBroken():
                self._end_text()
                next_step = "retrying" if event.will_retry else "giving up"
                self._print_line(
                    f"the reply of {_model_name(event)} was interrupted: {event.why}; {next_step}", "class:warn"
                )
            case LateResult():
                self._print_line(f"{event.tool} finished late; its result is stored but not sent", "class:dim")
            case ConversationCompressed():
                if event.why:
                    self._print_line(event.why, "class:warn")
                self._print_line(
                    f"compressed ({event.strategy}): {event.before:,} → {event.after:,} tokens", "class:dim"
                )

    def _on_task_event(self, event: Event) -> None:
        """Show a subagent's event: its calls as rows, its text as the last line of the call that started it."""
        match event:
            case CallQueued():
                self._calls.add(event)
            case ApprovalRequested() | CallStarted() | CallProgress() | CallEnded():
                self._on_call(event)
            case TextDelta() | ReasoningDelta():
                self._calls.set_last_line(event.task or "", event.text)
            case RequestSent():
                self._calls.set_last_line(event.task or "", f"request to {event.provider}/{event.model}")
            case RetryScheduled() | StreamBroken():
                self._calls.set_last_line(event.task or "", event.why)
            case _:
                pass

    def _on_text(self, text: str) -> None:
        self._end_reasoning()
        if not self._in_text:
            text = text.lstrip("\n")
            if not text:
                return
            self._in_text = True
            self.print_rows([[]])
        self.print_rows(self._formatter.feed(sanitize(text)), exact=True)

    def _on_reasoning(self, text: str) -> None:
        if self._reasoning_since is None:
            self._end_text()
            self._reasoning_since, self.reasoning = self._clock(), ""
        self.reasoning = (self.reasoning + sanitize(text))[-_MAX_REASONING:]

    def _on_call(self, event: ApprovalRequested | CallStarted | CallProgress | CallEnded) -> None:
        self._calls.update(event, self._clock())
        if isinstance(event, CallEnded):
            self.print_rows(self._calls.take_finished(self._width(), full=self.shows_details))

    def _end_reasoning(self) -> None:
        if self._reasoning_since is not None:
            span = self._clock() - self._reasoning_since
            self._reasoning_since = None
            if self._has_thought:
                return
            self._has_thought = True
            label = f"thought for {format_duration(span)}" if span >= 0.1 else "thought"
            self.print_rows([[], [("class:dim", f"{_REASONING_MARK} {label}  {self._reasoning_hint}".rstrip())], []])

    def _end_text(self) -> None:
        self._end_reasoning()
        if self._in_text:
            self.print_rows(self._formatter.close(), exact=True)
            self._in_text = False

    def _on_ended(self, event: ExchangeEnded) -> None:
        self._end_text()
        self.print_rows(self._calls.take_finished(self._width(), include_running=True, full=self.shows_details))
        self._open_request = None
        if event.outcome == "cancelled":
            self._print_line("– cancelled", "class:warn")
        elif event.outcome != "answered":
            self._print_line(f"✗ {event.text}", "class:bad")
        elif self.shows_details:
            self._print_line(f"{format_count(event.turns, 'turn')}, {format_duration(event.seconds)}", "class:dim")
        self.print_rows([[]])

    def _print_request(self, event: RequestSent) -> None:
        self._print_line(
            f"request {event.number} to {_model_name(event)} ({event.api}), {format_count(event.messages, 'message')}",
            "class:dim",
        )
        for finding in event.findings:
            self._print_line(f"  {sanitize_line(finding)}", "class:dim")

    def _print_line(self, text: str, style: str) -> None:
        self.print_rows(wrap(sanitize_line(text), self._width(), style, indent="    ", first_indent="  "))

    # ---------------------------------------------------------------------------------------------------------- live

    @property
    def is_active(self) -> bool:
        """Whether the live rows change with time."""
        return self._open_request is not None or self._reasoning_since is not None or bool(self._calls)

    @property
    def has_gap(self) -> bool:
        """Whether the live rows are separated from those above by an empty row."""
        return self._has_rows and self._gap > 0

    def live_rows(self, height: int) -> list[Row]:
        """Return the rows still changing, at most `height`."""
        rows: list[Row] = []
        if self.shows_reasoning and self.reasoning:
            rows += self._reasoning_rows(max(3, height // 2))
        elif self._reasoning_since is not None:
            rows.append(self._reasoning_row())
        partial = self._formatter.partial if self._in_text else []
        rows += [[], *partial] if partial and rows else partial
        if self._calls:
            rows += self._calls.rows(self._width(), max(2, height - len(rows)), self._clock())
        elif self._open_request is not None and not self._in_text and self._reasoning_since is None:
            name, since = self._open_request
            rows.append([("class:dim", f"  ⋯ {name}  {int(self._clock() - since)} s".replace("⋯   ", "⋯ "))])
        return rows[-height:]

    def _reasoning_row(self) -> Row:
        span = int(self._clock() - (self._reasoning_since or 0.0))
        head = f"{_REASONING_MARK} thinking {span} s"
        newest = sanitize_line(self.reasoning[-400:])
        room = self._width() - display_width(head) - 3
        row: Row = [("class:dim", head)]
        return [*row, ("class:thought", f"  {_truncate_start(newest, room)}")] if room > 8 else row

    def _reasoning_rows(self, height: int) -> list[Row]:
        """Return the last reasoning, or the end of a long one."""
        width = self._width()
        tail = self.reasoning.strip()[-2 * height * width :]
        rows = wrap(tail, width, "class:thought", indent="  ")
        head = f"{_REASONING_MARK} {'thinking' if self._reasoning_since is not None else 'thought'}"
        more = " (end)" if len(rows) > height else ""
        return [[("class:dim", f"{head}{more}  Ctrl-T hides it")], *rows[-height:]]


def _format_user_message(text: str, width: int) -> list[Row]:
    """Return the rows of a user message; a file in it as a card."""
    cards: list[Row] = []

    def take_card(file: re.Match[str]) -> str:
        size = format_count(file["text"].count("\n") + 1, "line")
        cards.append([("", "  "), ("class:dim", truncate(f"▤ {sanitize_line(file['name'])}  {size}", width - 2))])
        return ""

    text = _FILE.sub(take_card, sanitize(text)).strip("\n")
    rows = wrap(text, width, "class:user", indent="  ", first_indent=PROMPT) if text or not cards else []
    if rows:
        rows[0][0] = "class:mark", PROMPT
    return [*rows, *cards]


def _model_name(event: RequestSent | RetryScheduled | ModelSwitched | StreamBroken) -> str:
    return f"{event.provider}/{event.model}"


def _truncate_start(text: str, width: int) -> str:
    """Truncate a line at its start."""
    return text if display_width(text) <= width else f"…{truncate(text[::-1], width)[::-1].lstrip('…')}"


def format_recap(messages: tuple[Message, ...], width: int) -> list[Row]:
    """Format the last exchange of a stored conversation as the chat showed it; a long one is cut at its start."""
    start = next((at for at in reversed(range(len(messages))) if messages[at].speaker == "human"), None)
    if start is None:
        return []
    rows: list[Row] = []
    index = index_results(messages)
    for message in messages[start:]:
        for block in message.blocks:
            if isinstance(block, Text) and block.text.strip() and not is_context_note(block.text):
                rows += [[], *_text_rows(message.speaker, block.text, width), []]
            elif isinstance(block, ToolCall):
                results = index.results_of(block)
                mark, style = _RECAP_MARKS.get(state_of(results[-1]) if results else "pending", _OTHER_MARK)
                name, state = sanitize_line(block.name), f"  {format_state(results)}".rstrip()
                about = truncate(
                    sanitize_line(summarise_arguments(block.arguments)), max(4, width - len(name) - len(state) - 8)
                )
                row: Row = [("", "  "), (style, mark), ("class:tool", f" {name}"), ("class:dim", f"  {about}")]
                rows.append([*row, (style, state)] if state else row)
    hidden = len(rows) - _MAX_RECAP_ROWS
    if hidden > 0:
        rows = [[("class:dim", f"  … {format_count(hidden, 'earlier row')} not shown")], *rows[hidden:]]
    return [*rows, []]


def _text_rows(speaker: str, text: str, width: int) -> list[Row]:
    if speaker == "human":
        return _format_user_message(text, width)
    formatter = MarkdownFormatter(lambda: width)
    return formatter.feed(sanitize(text.strip("\n"))) + formatter.close()
