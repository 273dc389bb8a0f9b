"""How a one-shot run tells what happens: words as they come, every event as a line of JSON, or one value at the end.

Results go to stdout, what else there is to know to stderr. Nothing here raises while a session speaks: what can't be
written ends the exchange, and is told when that is over.
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
    """The first line of `--jsonl`: who is asked, why, and where it is kept."""

    model: str
    why: str
    conversation: str | None
    emulated: bool = False


class Teller(Protocol):
    def opened(self, opened: Opened) -> None: ...
    def hear(self, event: Event) -> None: ...
    def ended(self, ended: Ended, bill: Bill) -> None: ...


class Bill:
    """What replies cost, subagents' too; nothing where the price of one is not known.

    `models` are all that were asked, `model` the last one that was not a subagent's: whoever answered, or failed to.
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
    """Hears until something can't be written; that is told once, and from then on nothing."""
    silent = False

    def heard(event: Event) -> None:
        nonlocal silent
        if silent:
            return
        try:
            hear(event)
        except (OSError, click.ClickException) as error:
            silent = True
            failed(error)

    return heard


class Plain:
    """Words to stdout as they come, a line on stderr for each call and whatever else a reader wants to know."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._harmless = streams.on_terminal(sys.stdout)
        self._open = False
        self._wrote = False
        self._kept: str | None = None
        self._shown: dict[str, str] = {}

    def opened(self, opened: Opened) -> None:
        kept = f"; conversation {opened.conversation}" if opened.conversation else ""
        why = f" ({opened.why})" if opened.why else ""
        self._say(f"{opened.model}{why}{kept}")
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
                    f"{event.provider}/{event.model} broke off: {event.why}{'; asking again' if event.again else ''}"
                )
            case events.Waiting():
                self._say(f"{event.provider}/{event.model}: {event.why}; again in {event.seconds:.1f} s")
            case events.Moved():
                self._say(f"from here on {event.provider}/{event.model}: {event.why}")
            case events.CallQueued():
                self._shown[event.id] = event.shown
            case events.CallEnded():
                self._say(self._call(event))
            case events.Compressed():
                self._say(f"made to fit by {event.strategy}: {event.before:,} → {event.after:,} tokens")
            case _:
                pass

    def ended(self, ended: Ended, bill: Bill) -> None:
        self._close()
        if ended.how in ("failed", "steps"):
            streams.say(_told(ended, self._kept))
        elif ended.how == "answered" and ended.finish not in ("stop", None):
            streams.say(f"the answer is not whole ({ended.finish})")

    def _call(self, event: events.CallEnded) -> str:
        shown = self._shown.pop(event.id, "")
        about = f"{'  ' if event.task else ''}{event.tool}{f' {shown}' if shown else ''}"
        if event.outcome == "complete":
            return f"{about} ({event.seconds:.1f} s)"
        told = next(iter(event.text.splitlines()), "")
        return f"{about}: {event.outcome}: {told}" if told else f"{about}: {event.outcome}"

    def _write(self, text: str) -> None:
        if not text:
            return
        if self._harmless:
            text = harmless(text)
        # Between two replies a blank line, and none before the first.
        streams.write("\n" if self._wrote and not self._open else "", text)
        self._open, self._wrote = True, True
        self._last = text[-1]

    def _close(self) -> None:
        """A line that is begun is ended."""
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
    """What went wrong, with what helps after a single question."""
    if ended.how != "steps":
        return ended.text.replace(_DIAG, f"segue diag {kept} ", 1) if kept and ended.cause == "refused" else ended.text
    stopped = ended.text.partition(";")[0]
    return f"{stopped}; segue run -s {kept} goes on" if kept else f"{stopped}; --steps allows more"


class Lines:
    """Every event as a line of JSON; the last one says how it ended."""

    def opened(self, opened: Opened) -> None:
        streams.write(msgspec.json.encode(opened), b"\n")

    def hear(self, event: Event) -> None:
        streams.write(events.dump(event), b"\n")

    def ended(self, ended: Ended, bill: Bill) -> None:
        """Was heard already."""


class Value:
    """One JSON value at the end."""

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
