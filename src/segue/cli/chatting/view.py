"""A session's events as rows. Finished rows go to `push` and never change; `live_rows` are those still changing."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import assert_never

from segue.cli.chatting.calls import Calls
from segue.cli.chatting.figures import counted, seconds
from segue.cli.chatting.looks import Row, columns, cut, wrapped
from segue.cli.chatting.prose import Exact, Prose
from segue.runtime.events import (
    Asks,
    Began,
    Broke,
    CallBegan,
    CallEnded,
    CallProgress,
    CallQueued,
    Compressed,
    Ended,
    Event,
    Late,
    Moved,
    Replied,
    Requested,
    Thoughts,
    Waiting,
    Words,
)
from segue.view.clean import harmless, harmless_line

__all__ = ["View", "user_rows"]

_USER = "\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT} "
_THOUGHT = "✻"
_THOUGHTS = 200_000
"""The maximum number of reasoning characters kept for display."""


class View:
    """`width` returns the current number of columns."""

    def __init__(
        self,
        push: Callable[[list[Row]], None],
        *,
        width: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
        fold_key: str = "Ctrl-T shows it",
        exact: bool = False,
    ) -> None:
        self.unfolded = False
        """Whether the last reasoning is shown."""
        self.full = False
        """Whether tool results and findings are shown."""
        self.thought = ""
        self._push = push
        self._width = width
        self._clock = clock
        self._fold_key = fold_key
        self._prose: Exact | Prose = Exact() if exact else Prose(width)
        self._calls = Calls()
        self._speaking = False
        self._thinking: float | None = None
        self._asked: tuple[str, float] | None = None
        self._begun = False
        self._gap = 0
        """The number of empty rows before the next row."""

    # -------------------------------------------------------------------------------------------------------- events

    def hear(self, event: Event) -> None:
        if event.task is not None:
            self._hear_task(event)
            return
        match event:
            case Began():
                self._calls.take(self._width(), all_of_them=True)
                self._asked = "", self._clock()
                self.say([[], *user_rows(event.words, self._width())])
            case Requested():
                self._asked = f"{harmless_line(event.provider)}/{harmless_line(event.model)}", self._clock()
                if self.full:
                    self._tell_request(event)
            case Words():
                self._hear_words(event.text)
            case Thoughts():
                self._hear_thoughts(event.text)
            case Replied():
                self._stop_speaking()
                self._asked = None
                self.say([[]])
            case CallQueued():
                self._calls.queue(event)
            case Asks() | CallBegan() | CallProgress() | CallEnded():
                self._hear_call(event)
            case Ended():
                self._end(event)
            case Waiting() | Moved() | Broke() | Late() | Compressed():
                self._hear_notice(event)
            case _:  # pragma: no cover
                assert_never(event)

    def say(self, rows: Sequence[Row], *, exact: bool = False) -> None:
        """Print rows above the live part. Empty rows are printed only before the next row with text.

        Several empty rows become one, unless `exact`.
        """
        output: list[Row] = []
        for row in rows:
            if not any(text.strip() for _, text in row):
                self._gap = self._gap + 1 if exact else max(1, self._gap)
                continue
            output += [[] for _ in range(self._gap if self._begun else 0)]
            output.append(row)
            self._gap, self._begun = 0, True
        if output:
            self._push(output)

    def _hear_notice(self, event: Waiting | Moved | Broke | Late | Compressed) -> None:
        match event:
            case Waiting():
                self._tell(f"{_model(event)}: {event.why}; retrying in {seconds(event.seconds)}", "class:warn")
            case Moved():
                self._tell(f"→ switched to {_model(event)} ({event.why})", "class:mark")
            case Broke():
                self._stop_speaking()
                next_step = "retrying" if event.again else "giving up"
                self._tell(f"the reply of {_model(event)} was interrupted: {event.why}; {next_step}", "class:warn")
            case Late():
                self._tell(f"{event.tool} finished late; its result is stored but not sent", "class:dim")
            case Compressed():
                self._tell(f"compressed ({event.strategy}): {event.before:,} → {event.after:,} tokens", "class:dim")

    def _hear_task(self, event: Event) -> None:
        """A subagent's event: its calls are rows, its text is the last line of the call that started it."""
        match event:
            case CallQueued():
                self._calls.queue(event)
            case Asks() | CallBegan() | CallProgress() | CallEnded():
                self._hear_call(event)
            case Words() | Thoughts():
                self._calls.heard(event.task or "", event.text)
            case Requested():
                self._calls.heard(event.task or "", f"requests {event.provider}/{event.model}")
            case Waiting() | Broke():
                self._calls.heard(event.task or "", event.why)
            case _:
                pass

    def _hear_words(self, text: str) -> None:
        self._stop_thinking()
        if not self._speaking:
            text = text.lstrip("\n")
            if not text:
                return
            self._speaking = True
            self.say([[]])
        self.say(self._prose.feed(harmless(text)), exact=True)

    def _hear_thoughts(self, text: str) -> None:
        if self._thinking is None:
            self._stop_speaking()
            self._thinking, self.thought = self._clock(), ""
        self.thought = (self.thought + harmless(text))[-_THOUGHTS:]

    def _hear_call(self, event: Asks | CallBegan | CallProgress | CallEnded) -> None:
        self._calls.note(event, self._clock())
        if isinstance(event, CallEnded):
            self.say(self._calls.take(self._width(), full=self.full))

    def _stop_thinking(self) -> None:
        if self._thinking is not None:
            span = self._clock() - self._thinking
            self._thinking = None
            label = f"thought for {seconds(span)}" if span >= 0.1 else "thought"
            self.say([[], [("class:dim", f"{_THOUGHT} {label}  {self._fold_key}".rstrip())], []])

    def _stop_speaking(self) -> None:
        self._stop_thinking()
        if self._speaking:
            self.say(self._prose.close(), exact=True)
            self._speaking = False

    def _end(self, event: Ended) -> None:
        self._stop_speaking()
        self.say(self._calls.take(self._width(), all_of_them=True, full=self.full))
        self._asked = None
        if event.how == "cancelled":
            self._tell("– cancelled", "class:warn")
        elif event.how != "answered":
            self._tell(f"✗ {event.text}", "class:bad")
        elif self.full:
            self._tell(f"{counted(event.turns, 'turn')}, {seconds(event.seconds)}", "class:dim")
        self.say([[]])

    def _tell_request(self, event: Requested) -> None:
        self._tell(
            f"request {event.number} to {_model(event)} ({event.api}), {counted(event.messages, 'message')}",
            "class:dim",
        )
        for finding in event.findings:
            self._tell(f"  {harmless_line(finding)}", "class:dim")

    def _tell(self, text: str, style: str) -> None:
        self.say(wrapped(harmless_line(text), self._width(), style, indent="    ", first="  "))

    # ---------------------------------------------------------------------------------------------------------- live

    @property
    def moves(self) -> bool:
        """Whether the live rows change with time."""
        return self._asked is not None or self._thinking is not None or bool(self._calls)

    @property
    def parted(self) -> bool:
        """Whether the live rows are separated from those above by an empty row."""
        return self._begun and self._gap > 0

    def live(self, height: int) -> list[Row]:
        """The rows still changing, at most `height`."""
        rows: list[Row] = []
        if self.unfolded and self.thought:
            rows += self._unfolded(max(3, height // 2))
        elif self._thinking is not None:
            rows.append(self._thinks())
        partial = self._prose.partial if self._speaking else []
        rows += [[], *partial] if partial and rows else partial
        if self._calls:
            rows += self._calls.rows(self._width(), max(2, height - len(rows)), self._clock())
        elif self._asked is not None and not self._speaking and self._thinking is None:
            name, since = self._asked
            rows.append([("class:dim", f"  ⋯ {name}  {int(self._clock() - since)} s".replace("⋯   ", "⋯ "))])
        return rows[-height:]

    def _thinks(self) -> Row:
        span = int(self._clock() - (self._thinking or 0.0))
        head = f"{_THOUGHT} thinking {span} s"
        newest = harmless_line(self.thought[-400:])
        room = self._width() - columns(head) - 3
        row: Row = [("class:dim", head)]
        return [*row, ("class:thought", f"  {_end_of(newest, room)}")] if room > 8 else row

    def _unfolded(self, height: int) -> list[Row]:
        """The last reasoning, or the end of a long one."""
        width = self._width()
        tail = self.thought.strip()[-2 * height * width :]
        rows = wrapped(tail, width, "class:thought", indent="  ")
        head = f"{_THOUGHT} {'thinking' if self._thinking is not None else 'thought'}"
        more = " (end)" if len(rows) > height else ""
        return [[("class:dim", f"{head}{more}  Ctrl-T hides it")], *rows[-height:]]


def user_rows(words: str, width: int) -> list[Row]:
    """The rows of a user message."""
    rows = wrapped(harmless(words).strip("\n"), width, "class:user", indent="  ", first=_USER)
    rows[0][0] = "class:mark", _USER
    return rows


def _model(event: Requested | Waiting | Moved | Broke) -> str:
    return f"{event.provider}/{event.model}"


def _end_of(text: str, width: int) -> str:
    """Truncate a line at its start."""
    return text if columns(text) <= width else f"…{cut(text[::-1], width)[::-1].lstrip('…')}"
