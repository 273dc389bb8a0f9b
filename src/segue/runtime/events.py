"""What happens in a session, as values: the only thing that a user interface sees.

An exchange is `Began`, then for each turn `Requested`, what the model says as it comes, `Replied`, and for each call
`CallQueued`, `CallBegan` and `CallEnded`; last `Ended`. `task` is the call that a subagent works for, None for the
session itself. Nothing here holds a key.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from segue.canonical.request import Finish, Usage

__all__ = [
    "Asks",
    "Began",
    "Broke",
    "CallBegan",
    "CallEnded",
    "CallProgress",
    "CallQueued",
    "Compressed",
    "Ended",
    "Event",
    "HowEnded",
    "Late",
    "Moved",
    "Outcome",
    "Replied",
    "Requested",
    "Thoughts",
    "Waiting",
    "Words",
    "dump",
]

Outcome: TypeAlias = Literal["complete", "error", "cancelled", "timed-out", "interrupted"]
HowEnded: TypeAlias = Literal["answered", "cancelled", "failed", "steps"]


class _Event(Struct, frozen=True, kw_only=True):
    task: str | None = None


class Began(_Event, frozen=True, tag="began"):
    """Somebody asked something."""

    words: str


class Requested(_Event, frozen=True, tag="requested"):
    """A request goes out: the how many-th of the session, with how many messages, and what was decided for it."""

    provider: str
    model: str
    api: str
    number: int
    messages: int
    findings: tuple[str, ...] = ()


class Waiting(_Event, frozen=True, tag="waiting"):
    """The provider could not take the request now; it is sent again in `seconds`."""

    provider: str
    model: str
    why: str
    seconds: float
    attempt: int


class Moved(_Event, frozen=True, tag="moved"):
    """Another model from the next request on."""

    provider: str
    model: str
    why: str


class Words(_Event, frozen=True, tag="words"):
    """More of what the model says."""

    text: str


class Thoughts(_Event, frozen=True, tag="thoughts"):
    """More of what the model thinks."""

    text: str


class Replied(_Event, frozen=True, tag="replied"):
    """A reply is there, whole and written down."""

    provider: str
    model: str
    finish: Finish
    text: str
    calls: int
    seconds: float
    usage: Usage | None = None


class Broke(_Event, frozen=True, tag="broke"):
    """A reply broke off: none of its calls run, none of it is said again. `again` is whether the request is."""

    provider: str
    model: str
    why: str
    again: bool


class CallQueued(_Event, frozen=True, tag="call-queued"):
    """A call that will be run. `shown` is what it is about, in a few words."""

    id: str
    tool: str
    arguments: Any
    shown: str = ""


class Asks(_Event, frozen=True, tag="asks"):
    """Somebody has to say whether a call may run."""

    id: str
    tool: str
    title: str
    detail: str = ""


class CallBegan(_Event, frozen=True, tag="call-began"):
    id: str
    tool: str


class CallProgress(_Event, frozen=True, tag="call-progress"):
    """What a running tool says of itself, the newest line."""

    id: str
    tool: str
    text: str


class CallEnded(_Event, frozen=True, tag="call-ended"):
    """The one outcome of a call. `text` is what the model is told; `cut` how many characters were left out of it.

    Only where the true result comes late (`Late`) and before the next request goes out, the model is told that.
    """

    id: str
    tool: str
    outcome: Outcome
    text: str
    seconds: float
    cut: int = 0


class Late(_Event, frozen=True, tag="late"):
    """A tool that was given up came to an end after all: kept as evidence."""

    id: str
    tool: str


class Compressed(_Event, frozen=True, tag="compressed"):
    """The conversation was made to fit."""

    strategy: str
    before: int
    after: int


class Ended(_Event, frozen=True, tag="ended"):
    """The exchange is over. `text` is the answer, or what went wrong in one line; `usage` is that of all its turns.

    `finish` is how the last reply ended; `retryable` says that the same words may be answered later; `cause` is the
    kind of fault that it failed for, where there is a word for it.
    """

    how: HowEnded
    text: str
    turns: int
    usage: Usage
    seconds: float
    finish: Finish | None = None
    retryable: bool = False
    cause: str | None = None


Event: TypeAlias = (
    Began
    | Requested
    | Waiting
    | Moved
    | Words
    | Thoughts
    | Replied
    | Broke
    | CallQueued
    | Asks
    | CallBegan
    | CallProgress
    | CallEnded
    | Late
    | Compressed
    | Ended
)

_encoder = msgspec.json.Encoder()


def dump(event: Event) -> bytes:
    """The event as one line of JSON."""
    return _encoder.encode(event)
