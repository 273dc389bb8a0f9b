"""The events of a session, for user interfaces and the output of `--jsonl`.

An exchange emits `ExchangeStarted`; for each turn `RequestSent`, the deltas of the reply, `ReplyReceived`, and for each
call `CallQueued`, `CallStarted` and `CallEnded`; then `ExchangeEnded`. `task` is the id of the `task` call whose
subagent emitted the event, None for the session itself. No event holds an API key.
"""

from __future__ import annotations

import re
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from segue._switch_cost import SwitchCost
from segue.canonical.request import Finish, Usage

__all__ = [
    "ApprovalRequested",
    "CallEnded",
    "CallProgress",
    "CallQueued",
    "CallStarted",
    "ConversationCompressed",
    "Event",
    "ExchangeEnded",
    "ExchangeOutcome",
    "ExchangeStarted",
    "LateResult",
    "ModelSwitched",
    "Outcome",
    "ReasoningDelta",
    "ReplyReceived",
    "RequestSent",
    "RetryScheduled",
    "StreamBroken",
    "TextDelta",
    "encode_event",
    "name_event",
]

Outcome: TypeAlias = Literal["complete", "error", "denied", "cancelled", "timed-out", "interrupted"]
ExchangeOutcome: TypeAlias = Literal["answered", "cancelled", "failed", "max-turns"]


def name_event(class_name: str) -> str:
    """Return the `type` of an event in JSON: `TextDelta` is `text-delta`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", class_name).lower()


class _Event(Struct, frozen=True, kw_only=True, tag=name_event):
    task: str | None = None


class ExchangeStarted(_Event, frozen=True):
    """An exchange starts with a user message."""

    text: str


class RequestSent(_Event, frozen=True):
    """A request is sent: its number in the session, the number of its messages, and what was lost or changed in it."""

    provider: str
    model: str
    api: str
    number: int
    messages: int
    findings: tuple[str, ...] = ()


class RetryScheduled(_Event, frozen=True):
    """A request failed and is retried in `seconds`."""

    provider: str
    model: str
    why: str
    seconds: float
    attempt: int


class ModelSwitched(_Event, frozen=True):
    """Requests go to another model from now on. `cost` is what that costs, where it can be predicted."""

    provider: str
    model: str
    why: str
    cost: SwitchCost | None = None


class TextDelta(_Event, frozen=True):
    """A delta of the reply's text."""

    text: str


class ReasoningDelta(_Event, frozen=True):
    """A delta of the reply's reasoning."""

    text: str


class ReplyReceived(_Event, frozen=True):
    """A reply is complete and recorded."""

    provider: str
    model: str
    finish: Finish
    text: str
    calls: int
    seconds: float
    usage: Usage | None = None


class StreamBroken(_Event, frozen=True):
    """A reply stream broke: none of its calls run, and it does not enter the history."""

    provider: str
    model: str
    why: str
    will_retry: bool


class CallQueued(_Event, frozen=True):
    """A tool call is queued. `summary` describes it in a few words."""

    id: str
    tool: str
    arguments: Any
    summary: str = ""


class ApprovalRequested(_Event, frozen=True):
    """The user is asked whether a call may run."""

    id: str
    tool: str
    title: str
    detail: str = ""


class CallStarted(_Event, frozen=True):
    """A tool call starts to run."""

    id: str
    tool: str


class CallProgress(_Event, frozen=True):
    """The latest progress line of a running tool."""

    id: str
    tool: str
    text: str


class CallEnded(_Event, frozen=True):
    """The outcome of a call. `text` is the result for the model; `cut` is how many characters were omitted from it.

    If the tool's actual result arrives later (`LateResult`) but before the next request, the model gets that instead.
    """

    id: str
    tool: str
    outcome: Outcome
    text: str
    seconds: float
    cut: int = 0


class LateResult(_Event, frozen=True):
    """A cancelled or timed-out tool returned after all; its result is recorded as evidence."""

    id: str
    tool: str


class ConversationCompressed(_Event, frozen=True):
    """The history was compressed, from about `before` to `after` tokens. `why` is the error that required it."""

    strategy: str
    before: int
    after: int
    why: str = ""


class ExchangeEnded(_Event, frozen=True):
    """An exchange ended. `text` is the answer, or the error in one line; `usage` is the sum over its turns.

    `finish` is the finish reason of the last reply; `retryable` is whether the same message may succeed later;
    `cause` is the kind of error, if known.
    """

    outcome: ExchangeOutcome
    text: str
    turns: int
    usage: Usage
    seconds: float
    finish: Finish | None = None
    retryable: bool = False
    cause: str | None = None


Event: TypeAlias = (
    ExchangeStarted
    | RequestSent
    | RetryScheduled
    | ModelSwitched
    | TextDelta
    | ReasoningDelta
    | ReplyReceived
    | StreamBroken
    | CallQueued
    | ApprovalRequested
    | CallStarted
    | CallProgress
    | CallEnded
    | LateResult
    | ConversationCompressed
    | ExchangeEnded
)

_encoder = msgspec.json.Encoder()


def encode_event(event: Event) -> bytes:
    """Encode the event as one line of JSON."""
    return _encoder.encode(event)
