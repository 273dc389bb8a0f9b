"""Reporters of a one-shot run: streamed text, every event as a JSON line, or one JSON value at the end.

Results go to stdout, everything else to stderr. Reporters never raise into a session: a failed write cancels the
exchange and is reported afterwards.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Protocol

import click
import msgspec

from segue._switch_cost import SwitchCost
from segue.canonical.request import Finish, Usage, UsageSum
from segue.cli import streams
from segue.errors import ProviderError, SegueError, format_count
from segue.runtime import events
from segue.runtime.events import Event, ExchangeEnded
from segue.view.fit import shorten_paths, truncate
from segue.view.format import format_money, format_short
from segue.view.sanitize import sanitize

_MAX_LINE = 200


JSON_VERSION = 1
"""The version of `--jsonl` and `--json`: it changes when a key is renamed or removed."""


class RunStarted(msgspec.Struct, frozen=True, kw_only=True, tag=events.name_event):
    """The first line of `--jsonl`: the model, why it was chosen, and the id of the conversation, if it is stored.

    `switch_cost` is the price of a switch from another model, in a conversation that is long enough for one.
    """

    version: int = JSON_VERSION
    model: str
    why: str
    conversation: str | None
    emulated: bool = False
    switch_cost: SwitchCost | None = None


class CallOutcome(msgspec.Struct, frozen=True):
    """A tool call of a run, without those of subagents."""

    tool: str
    outcome: events.Outcome
    seconds: float


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """The value that `segue run --json` prints. `text` is the answer, empty unless the outcome is `answered`.

    `model` is the last one of the run, `models` are all, those of subagents included. `cost` is in US dollars, null
    where a price is unknown.
    """

    version: int = JSON_VERSION
    text: str
    outcome: events.ExchangeOutcome
    error: str | None
    finish: Finish | None
    model: str
    models: tuple[str, ...]
    emulated: bool
    conversation: str | None
    turns: int
    calls: tuple[CallOutcome, ...]
    usage: Usage
    cost: float | None
    seconds: float
    switch_cost: SwitchCost | None = None


class Reporter(Protocol):
    def on_start(self, started: RunStarted) -> None: ...
    def on_event(self, event: Event) -> None: ...
    def on_end(self, ended: ExchangeEnded, totals: RunTotals, error: SegueError | None) -> None: ...


class RunTotals:
    """Usage, cost and models of a run, subagents included.

    `models` are all models that were requested, `model` the last one outside subagents.
    """

    def __init__(self, price: Callable[[str, str, Usage], float | None]) -> None:
        self.sum = UsageSum()
        self.model: str | None = None
        self.models: dict[str, None] = {}
        self._price = price

    def on_event(self, event: Event) -> None:
        if isinstance(event, events.RequestSent):
            name = f"{event.provider}/{event.model}"
            self.models[name] = None
            if event.task is None:
                self.model = name
        if isinstance(event, events.ReplyReceived):
            usage = event.usage
            self.sum.add(usage, None if usage is None else self._price(event.provider, event.model, usage))


def guard_writes(on_event: Callable[[Event], None], on_error: Callable[[Exception], None]) -> Callable[[Event], None]:
    """Wrap a listener: the first write error is passed to `on_error`, and later events are ignored."""
    has_failed = False

    def guarded_listener(event: Event) -> None:
        nonlocal has_failed
        if has_failed:
            return
        try:
            on_event(event)
        except (OSError, click.ClickException) as error:
            has_failed = True
            on_error(error)

    return guarded_listener


class TextReporter:
    """Writes text to stdout and prints a line to stderr for each tool call, retry and model change.

    On a terminal the text is streamed; elsewhere only the answer is written, when it is complete.
    """

    def __init__(self, *, quiet: bool, is_streamed: bool = True) -> None:
        self._quiet = quiet
        self._sanitizes = streams.is_terminal(sys.stdout)
        self._is_streamed = is_streamed and self._sanitizes
        self._in_line = False
        self._wrote = False
        self._started: RunStarted | None = None
        self._summaries: dict[str, str] = {}
        self._losses: set[str] = set()

    def on_start(self, started: RunStarted) -> None:
        suffix = f"; conversation {started.conversation}" if started.conversation else ""
        why = f" ({started.why})" if started.why else ""
        self._print_message(f"{started.model}{why}{suffix}")
        if started.switch_cost is not None:
            self._print_message(str(started.switch_cost))
        from segue.cli.model_choice import EMULATED_NOTE

        if self._quiet and started.emulated and started.why != "emulated":
            streams.print_message(EMULATED_NOTE)
        self._started = started

    def on_event(self, event: Event) -> None:
        match event:
            case events.RequestSent(task=None):
                self._print_losses(event)
            case events.TextDelta(task=None):
                if self._is_streamed:
                    self._write(event.text)
            case events.ReplyReceived(task=None):
                self._end_line()
            case events.StreamBroken(task=None):
                self._end_line()
                self._print_message(
                    f"{event.provider}/{event.model}: interrupted: {event.why}"
                    f"{'; retrying' if event.will_retry else ''}"
                )
            case events.RetryScheduled():
                delay = f"in {event.seconds:.1f} s" if event.seconds else "at once"
                self._print_message(f"{event.provider}/{event.model}: {event.why}; retrying {delay}")
            case events.ModelSwitched():
                cost = f"; {event.cost.brief}" if event.cost is not None else ""
                self._print_message(f"switched to {event.provider}/{event.model}: {event.why}{cost}")
            case events.CallQueued():
                self._summaries[event.id] = event.summary
            case events.CallEnded():
                self._print_message(self._format_call(event))
            case events.ConversationCompressed():
                why = f"{event.why}; " if event.why else ""
                self._print_message(f"{why}compressed ({event.strategy}): {event.before:,} → {event.after:,} tokens")
            case _:
                pass

    def _print_losses(self, event: events.RequestSent) -> None:
        """Print what the request could not carry, each loss once."""
        for finding in event.findings:
            if finding.startswith("lost: ") and finding not in self._losses:
                self._losses.add(finding)
                self._print_message(f"{event.provider}/{event.model}: {finding}")

    def on_end(self, ended: ExchangeEnded, totals: RunTotals, error: SegueError | None) -> None:
        if ended.outcome == "answered" and not self._is_streamed:
            self._write(ended.text)
        self._end_line()
        if ended.outcome in ("failed", "max-turns"):
            streams.print_message(_format_failure(ended, error, self._started))
        elif ended.outcome == "answered" and ended.finish not in ("stop", None):
            streams.print_message(f"the answer is incomplete ({ended.finish})")
        if totals.sum.cost is not None:
            usage = ended.usage
            cost = format_money(totals.sum.cost)
            self._print_message(f"{cost}: {format_short(usage.input)} tokens in, {format_short(usage.output)} out")

    def _format_call(self, event: events.CallEnded) -> str:
        summary = truncate(self._summaries.pop(event.id, ""), _MAX_LINE)
        about = f"{'  ' if event.task else ''}{event.tool}{f' {summary}' if summary else ''}"
        if event.outcome in ("complete", "cancelled"):
            return f"{about} ({'cancelled, ' if event.outcome == 'cancelled' else ''}{event.seconds:.1f} s)"
        line = next(iter(event.text.splitlines()), "")
        # A denial has the rule that would allow the call, to be copied.
        detail = line if event.outcome == "denied" else truncate(line, _MAX_LINE)
        detail = detail.removeprefix(f"{event.outcome}: ")
        return f"{about}: {event.outcome}: {detail}" if detail else f"{about}: {event.outcome}"

    def _write(self, text: str) -> None:
        if not text:
            return
        if self._sanitizes:
            text = sanitize(text)
        # A blank line between two replies.
        streams.write("\n" if self._wrote and not self._in_line else "", text)
        self._in_line, self._wrote = True, True
        self._last = text[-1]

    def _end_line(self) -> None:
        """End an open line."""
        if self._in_line:
            self._in_line = False
            if self._last != "\n":
                streams.write("\n")

    def _print_message(self, line: str) -> None:
        if not self._quiet:
            if self._in_line and self._sanitizes and self._last != "\n" and streams.is_terminal(sys.stderr):
                click.echo("", err=True)
            streams.print_message(shorten_paths(line, _MAX_LINE))


def _format_failure(ended: ExchangeEnded, error: SegueError | None, started: RunStarted | None) -> str:
    """Return the error text, with the command line that helps next."""
    conversation_id = started and started.conversation
    if ended.outcome != "max-turns":
        return error.format(conversation_id) if isinstance(error, ProviderError) else ended.text
    stopped = f"stopped after {format_count(ended.turns, 'turn')}, the limit for one prompt"
    return (
        f"{stopped}; to continue: segue run{' --emulated' if started.emulated else ''} -s {conversation_id}"
        if started and conversation_id
        else f"{stopped}; raise --max-turns to allow more"
    )


class JsonLinesReporter:
    """Prints every event as a JSON line; the last one is the end of the exchange."""

    def on_start(self, started: RunStarted) -> None:
        streams.write(msgspec.json.encode(started), b"\n")

    def on_event(self, event: Event) -> None:
        streams.write(events.encode_event(event), b"\n")

    def on_end(self, ended: ExchangeEnded, totals: RunTotals, error: SegueError | None) -> None:
        """Do nothing: the end was already printed as an event."""


class JsonReporter:
    """Prints one JSON value at the end."""

    def __init__(self) -> None:
        self._started: RunStarted | None = None
        self._calls: list[CallOutcome] = []

    def on_start(self, started: RunStarted) -> None:
        self._started = started

    def on_event(self, event: Event) -> None:
        if isinstance(event, events.CallEnded) and event.task is None:
            self._calls.append(CallOutcome(event.tool, event.outcome, event.seconds))

    def on_end(self, ended: ExchangeEnded, totals: RunTotals, error: SegueError | None) -> None:
        started = self._started
        assert started is not None
        is_answered = ended.outcome == "answered"
        result = RunResult(
            text=ended.text if is_answered else "",
            outcome=ended.outcome,
            error=None if is_answered else _format_failure(ended, error, started),
            finish=ended.finish,
            model=totals.model or started.model,
            models=tuple(totals.models),
            emulated=started.emulated,
            conversation=started.conversation,
            turns=ended.turns,
            calls=tuple(self._calls),
            usage=ended.usage,
            cost=totals.sum.cost,
            seconds=round(ended.seconds, 3),
            switch_cost=started.switch_cost,
        )
        streams.write(msgspec.json.encode(result), b"\n")
