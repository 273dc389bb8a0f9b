"""`Relay`: one exchange with a caller, as a state machine without IO.

Its `actions`, and those that `feed`, `fail` and `close` return, are carried out by a shell in their order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from datetime import datetime

import msgspec
from msgspec import Struct

from segue.bridge import aws
from segue.bridge.actions import Action, Elapsed, Entries, Input, Load, ResponseHead
from segue.bridge.caller import own_error, respond_error, respond_json
from segue.bridge.compaction import DEFAULT_LIMIT
from segue.bridge.envelopes import EnvelopeKeys
from segue.bridge.failover import FIRST_BYTE, TargetPauses
from segue.bridge.histories import HistoryMemory
from segue.bridge.provider_errors import RefusedError, TransportError
from segue.bridge.providers import Endpoint
from segue.bridge.routes import Route, Router
from segue.canonical.blocks import ToolCall
from segue.canonical.request import Finish, Usage
from segue.errors import InputError, ProviderError, SegueError
from segue.render.report import Report
from segue.wire.base import ApiError, Wire
from segue.wire.limits import DEFAULT_LIMITS, ReplyLimits

_DAY = 86_400.0


class RelaySettings(Struct, frozen=True):
    """What all relays of a bridge share. `now` returns the time in UTC, `random` a number of random bytes.

    `has_store` is whether the shell carries out `Load` and `Save`. `max_age` is that of envelopes, in seconds, and
    `first_byte` the longest wait for the head of a streamed response where another target can take the request over.
    """

    router: Router
    keys: EnvelopeKeys
    now: Callable[[], datetime]
    random: Callable[[int], bytes]
    pauses: TargetPauses
    has_store: bool = True
    max_age: float = 30 * _DAY
    limits: ReplyLimits = DEFAULT_LIMITS
    first_byte: float = FIRST_BYTE
    compaction_limit: int = DEFAULT_LIMIT
    """The largest history in bytes that is remembered for a compaction; 0 if none is."""
    histories: HistoryMemory = msgspec.field(default_factory=HistoryMemory)


class Relay(ABC):
    """One exchange. `actions` are the first ones to carry out.

    `report`, `usage`, `finish`, `calls`, `target` and `error` can be read at any time, also after a failure.
    """

    actions: list[Action]
    route: Route | None = None
    model: str | None = None
    """The model name of the caller's request, where it has a route."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        """The caller's API or dialect."""
        self.error: ProviderError | None = None
        """The last failure of a target."""
        self.failed: list[ProviderError] = []
        """The failures after which another target took the request over."""
        self.invalid: InputError | None = None
        """Why the caller's request was rejected."""
        self.rejection: ApiError | None = None
        """The error with which segue itself rejected the request."""
        self.is_done = False
        self._on_entries: Callable[[Mapping[str, bytes]], list[Action]] | None = None

    @property
    def report(self) -> Report | None:
        """The report of the last conversion."""
        return None

    @property
    def usage(self) -> Usage | None:
        """The token counts so far."""
        return None

    @property
    def summary_usage(self) -> Usage | None:
        """The token counts of summaries of the conversation, which are part of `usage`."""
        return None

    @property
    def spending(self) -> list[tuple[Endpoint, Usage]]:
        """The usage that providers bill, for each request: as reported, else estimated. No input may follow."""
        return []

    @property
    def finish(self) -> Finish | None:
        """Why the reply ended; None if it has not."""
        return None

    @property
    def calls(self) -> list[tuple[ToolCall, str]]:
        """The tool calls of the reply so far, with the ids that the caller gets."""
        return []

    @property
    def target(self) -> str | None:
        """The `provider/model` of the last attempt."""
        return None

    def feed(self, data: Input) -> list[Action]:
        """Take the next input, and return the actions that follow from it."""
        return [] if self.is_done else self.guard(lambda: self._feed(data))

    def fail(self, error: TransportError | str) -> list[Action]:
        """Take the failure of the connection to the provider."""
        failure = TransportError("lost", error) if isinstance(error, str) else error
        if isinstance(failure, RefusedError) and not self.is_done:
            return self.guard(lambda: self.receive_refusal(failure.error))
        return [] if self.is_done else self.guard(lambda: self.receive_failure(failure))

    def receive_refusal(self, error: ApiError) -> list[Action]:
        """Take that the shell did not send the request."""
        self.error = None
        return self.respond_error(error)

    def close(self) -> list[Action]:
        """Take the end of the provider's response."""
        return [] if self.is_done else self.guard(self.receive_end)

    def keep_alive(self) -> list[Action]:
        """Return bytes that keep the caller's stream open while the provider is silent."""
        return []

    def end(self) -> None:  # noqa: B027  only relays with several targets need it
        """Take the end of the exchange, also if the caller went away."""

    def guard(self, step: Callable[[], list[Action]]) -> list[Action]:
        """Run a step; errors of the caller's request become the response."""
        try:
            return step()
        except InputError as error:
            self.invalid = error
            return self.respond_error(invalid_request_error(error))
        except SegueError as error:
            return self.respond_error(own_error(500, str(error), self.wire))

    def _feed(self, data: Input) -> list[Action]:
        match data:
            case bytes():
                return self.receive(data)
            case ResponseHead():
                return self.receive_head(data)
            case Entries():
                proceed, self._on_entries = self._on_entries, None
                return proceed(data.found) if proceed is not None else []
            case Elapsed():
                return self.send()
            case aws.Credentials():
                return self.authorize(data)

    # --------------------------------------------------------------------------------------------------- for subclasses

    @abstractmethod
    def send(self) -> list[Action]:
        """Send the request to the current target."""

    @abstractmethod
    def authorize(self, credentials: aws.Credentials | None) -> list[Action]:
        """Send the request with these credentials."""

    @abstractmethod
    def receive_head(self, head: ResponseHead) -> list[Action]:
        """Take the status and headers of the response."""

    @abstractmethod
    def receive(self, data: bytes) -> list[Action]:
        """Take bytes of the response."""

    @abstractmethod
    def receive_end(self) -> list[Action]:
        """Take the end of the response."""

    @abstractmethod
    def receive_failure(self, error: TransportError) -> list[Action]:
        """Take the failure of the connection."""

    def load(self, keys: list[str], proceed: Callable[[Mapping[str, bytes]], list[Action]]) -> list[Action]:
        """Load entries of the store, then `proceed` with those that were found."""
        self._on_entries = proceed
        return [Load(tuple(dict.fromkeys(keys)))]

    def respond_error(self, error: ApiError) -> list[Action]:
        self.is_done = True
        self.reject(error)
        return respond_error(self.wire, error)

    def reject(self, error: ApiError) -> None:
        """Record an error response that is not that of a provider."""
        if self.error is None:
            self.rejection = error

    def respond_json(self, body: Mapping[str, object]) -> list[Action]:
        self.is_done = True
        return respond_json(body)


def invalid_request_error(error: InputError) -> ApiError:
    """Return the error for a caller's request that is not valid."""
    return ApiError(400, str(error), param=error.path or None, error_kind="invalid")
