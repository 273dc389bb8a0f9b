"""Reporters of a one-shot run: streamed text, every event as a JSON line, or one JSON value at the end.

Results go to stdout, everything else to stderr. Reporters never raise into a session: a failed write cancels the
exchange and is reported afterwards.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol

import click
import msgspec

from segue.canonical.request import Usage
from segue.cli import streams
from segue.runtime import events
from segue.runtime.events import Ended, Event
from segue.view.clean import harmless

__all__ = ["Bill", "Lines", "Opened", "Plain", "Teller", "Value", "guarded"]

_SHOWN = 100
_DIAG = "segue diag "


class Opened(msgspec.Struct, frozen=True, tag="opened"):
    """The first line of `--jsonl`: the model, why it was chosen, and the conversation id."""

    model: str
    why: str
    conversation: str | None
    emulated: bool = False


class Teller(Protocol):
    def opened(self, opened: Opened) -> None: ...
    def hear(self, event: Event) -> None: ...
    def ended(self, ended: Ended, bill: Bill) -> None: ...


class Bill:
    """Cost and models of a run, subagents included; `cost` is None where a price is unknown.

    `models` are all models that were requested, `model` the last one outside subagents.
    """

    def __init__(self, price: Callable[[str, str, Usage], float | None]) -> None:
        self.cost: float | None = None
        self.model: str | None = None
        self.models: dict[str, None] = {}
        self._price = price
        self._known = True

    def hear(self, event: Event) -> None:
        if isinstance(event, events.Requested):
            name = f"{event.provider}/{event.model}"
            self.models[name] = None
            if event.task is None:
                self.model = name
        if not isinstance(event, events.Replied):
            return
        spent = self._price(event.provider, event.model, event.usage) if event.usage is not None else None
        self._known = self._known and spent is not None
        self.cost = (self.cost or 0.0) + spent if self._known and spent is not None else None


def guarded(hear: Callable[[Event], None], failed: Callable[[Exception], None]) -> Callable[[Event], None]:
    """Wrap a listener: the first write error is passed to `on_error`, and later events are ignored."""
    silent = False

    def guarded_listener(event: Event) -> None:
        nonlocal silent
        if silent:
            return
        try:
            hear(event)
        except (OSError, click.ClickException) as error:
            silent = True
            failed(error)

    return guarded_listener


class Plain:
    """Streams text to stdout and prints a line to stderr for each tool call, retry and model change."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._harmless = streams.on_terminal(sys.stdout)
        self._open = False
        self._wrote = False
        self._kept: str | None = None
        self._shown: dict[str, str] = {}

    def opened(self, opened: Opened) -> None:
        suffix = f"; conversation {opened.conversation}" if opened.conversation else ""
        why = f" ({opened.why})" if opened.why else ""
        self._say(f"{opened.model}{why}{suffix}")
        self._kept = opened.conversation

    def hear(self, event: Event) -> None:
        match event:
            case events.Words(task=None):
                self._write(event.text)
            case events.Replied(task=None):
                self._close()
            case events.Broke(task=None):
                self._close()
                self._say(
                    f"{event.provider}/{event.model}: interrupted: {event.why}{'; retrying' if event.again else ''}"
                )
            case events.Waiting():
                self._say(f"{event.provider}/{event.model}: {event.why}; retrying in {event.seconds:.1f} s")
            case events.Moved():
                self._say(f"switched to {event.provider}/{event.model}: {event.why}")
            case events.CallQueued():
                self._shown[event.id] = event.shown
            case events.CallEnded():
                self._say(self._call(event))
            case events.Compressed():
                self._say(f"compressed ({event.strategy}): {event.before:,} → {event.after:,} tokens")
            case _:
                pass

    def ended(self, ended: Ended, bill: Bill) -> None:
        self._close()
        if ended.how in ("failed", "steps"):
            streams.say(_told(ended, self._kept))
        elif ended.how == "answered" and ended.finish not in ("stop", None):
            streams.say(f"the answer is incomplete ({ended.finish})")

    def _call(self, event: events.CallEnded) -> str:
        summary = self._shown.pop(event.id, "")
        about = f"{'  ' if event.task else ''}{event.tool}{f' {summary}' if summary else ''}"
        if event.outcome == "complete":
            return f"{about} ({event.seconds:.1f} s)"
        detail = next(iter(event.text.splitlines()), "")
        return f"{about}: {event.outcome}: {detail}" if detail else f"{about}: {event.outcome}"

    def _write(self, text: str) -> None:
        if not text:
            return
        if self._harmless:
            text = harmless(text)
        # A blank line between two replies.
        streams.write("\n" if self._wrote and not self._open else "", text)
        self._open, self._wrote = True, True
        self._last = text[-1]

    def _close(self) -> None:
        """End an open line."""
        if self._open:
            self._open = False
            if self._last != "\n":
                streams.write("\n")

    def _say(self, line: str) -> None:
        if not self._quiet:
            if self._open and self._harmless and self._last != "\n" and streams.on_terminal(sys.stderr):
                click.echo("", err=True)
            streams.say(line if len(line) <= _SHOWN * 2 else f"{line[: _SHOWN * 2]}…")


def _told(ended: Ended, kept: str | None) -> str:
    """The error text, with the command line that helps next."""
    if ended.how != "steps":
        return ended.text.replace(_DIAG, f"segue diag {kept} ", 1) if kept and ended.cause == "refused" else ended.text
    stopped = ended.text.partition(";")[0]
    return f"{stopped}; to continue: segue run -s {kept}" if kept else f"{stopped}; raise --steps to allow more"


class Lines:
    """Prints every event as a JSON line; the last one is the end of the exchange."""

    def opened(self, opened: Opened) -> None:
        streams.write(msgspec.json.encode(opened), b"\n")

    def hear(self, event: Event) -> None:
        streams.write(events.dump(event), b"\n")

    def ended(self, ended: Ended, bill: Bill) -> None:
        """The end was already printed as an event."""


class Value:
    """Prints one JSON value at the end."""

    def __init__(self) -> None:
        self._opened: Opened | None = None
        self._calls: list[dict[str, Any]] = []

    def opened(self, opened: Opened) -> None:
        self._opened = opened

    def hear(self, event: Event) -> None:
        if isinstance(event, events.CallEnded) and event.task is None:
            self._calls.append({"tool": event.tool, "outcome": event.outcome, "seconds": event.seconds})

    def ended(self, ended: Ended, bill: Bill) -> None:
        opened = self._opened
        assert opened is not None
        value = {
            "text": ended.text if ended.how == "answered" else "",
            "how": ended.how,
            "error": None if ended.how == "answered" else _told(ended, opened.conversation),
            "finish": ended.finish,
            "model": bill.model or opened.model,
            "models": list(bill.models),
            "emulated": opened.emulated,
            "conversation": opened.conversation,
            "turns": ended.turns,
            "calls": self._calls,
            "usage": msgspec.to_builtins(ended.usage),
            "cost": bill.cost,
            "seconds": round(ended.seconds, 3),
        }
        streams.write(msgspec.json.encode(value), b"\n")
