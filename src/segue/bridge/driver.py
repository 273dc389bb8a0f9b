"""`drive`: a relay as a generator of actions, which a shell carries out one by one.

The generator yields an action and takes its result, so that a shell needs no loop of its own over actions and inputs. A
shell raises a failed connection in the generator as `UpstreamError`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from typing import Any

from segue.bridge.actions import (
    Action,
    Authorize,
    Delete,
    Elapsed,
    EndExchange,
    EndResponse,
    Entries,
    Load,
    Read,
    Respond,
    Save,
    Send,
    Wait,
    Write,
)
from segue.bridge.provider_errors import TransportError
from segue.bridge.relay import Relay


class UpstreamError(Exception):
    """The connection to a provider failed. `cause` is the exception of the HTTP library, if it has one."""

    def __init__(self, error: TransportError, cause: Exception | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.cause = cause


def drive(relay: Relay, *, raise_failures: bool = False) -> Generator[Action, Any, None]:
    """Yield the actions of a relay, and a `Read` for each part of a response, until the caller's response is complete.

    With `raise_failures`, a failed connection that ends the exchange before the response has begun is raised as the
    exception of the HTTP library, and not turned into an error response.
    """
    actions: deque[Action] = deque(relay.actions)
    is_reading = has_head = False
    while actions or is_reading:
        action = actions.popleft() if actions else Read()
        if isinstance(action, EndExchange):
            return
        try:
            result = yield action
        except UpstreamError as failure:
            is_reading = False
            following = relay.fail(failure.error)
            if raise_failures and relay.is_done and not has_head and failure.cause is not None:
                raise failure.cause from None
            actions.extend(following)
            continue
        match action:
            case Send():
                is_reading = True
                actions.extend(relay.feed(result))
            case Read():
                is_reading = bool(result)
                actions.extend(relay.feed(result) if result else relay.close())
            case Load():
                actions.extend(relay.feed(Entries(result)))
            case Wait():
                actions.extend(relay.feed(Elapsed()))
            case Authorize():
                actions.extend(relay.feed(result))
            case Respond():
                has_head = True
            case Save() | Delete() | Write() | EndResponse():
                pass
