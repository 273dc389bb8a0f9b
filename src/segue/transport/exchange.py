"""Runs a relay for an HTTP library: carries out its actions, and yields the response for the caller.

The library's own objects are behind two small protocols, so that one module serves httpx2 and httpx.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Protocol

import anyio
import anyio.to_thread

from segue.bridge.actions import (
    Action,
    Authorize,
    Delete,
    Elapsed,
    Entries,
    Finish,
    Input,
    Load,
    Respond,
    ResponseHead,
    Save,
    Send,
    Wait,
    Write,
)
from segue.bridge.entries import EntryMemory
from segue.bridge.http_requests import HttpRequest
from segue.bridge.provider_errors import TransportError
from segue.bridge.relay import Relay


class Upstream(Protocol):
    """A provider's response: the head, and the body in chunks. Failures are raised as `UpstreamError`."""

    status: int
    headers: Mapping[str, str]

    def read(self) -> bytes: ...
    def close(self) -> None: ...


class AsyncUpstream(Protocol):
    """The same for an event loop."""

    status: int
    headers: Mapping[str, str]

    async def read(self) -> bytes: ...
    async def close(self) -> None: ...


class UpstreamError(Exception):
    """The connection to a provider failed; the library's own exception is its cause."""

    def __init__(self, error: TransportError, cause: Exception) -> None:
        super().__init__(str(error))
        self.error = error
        self.cause = cause


class _Steps:
    """The actions that are left to carry out, and the part of them that needs no connection."""

    def __init__(self, relay: Relay, memory: EntryMemory) -> None:
        self.relay = relay
        self.actions: list[Action] = list(relay.actions)
        self._memory = memory

    def add(self, actions: list[Action]) -> None:
        self.actions += actions

    def feed(self, data: Input) -> None:
        self.add(self.relay.feed(data))

    def use_memory(self, action: Load | Save | Delete) -> None:
        match action:
            case Load():
                self.feed(Entries(self._memory.load(action.keys)))
            case Save():
                self._memory.save(action.entries)
            case Delete():
                self._memory.delete(action.keys)

    def fail(self, failure: UpstreamError, *, has_head: bool) -> None:
        """Pass a failure to the relay; raise the library's exception if nothing can take the reply's place.

        The caller's SDK then raises its own error for it, such as that of a timeout.
        """
        actions = self.relay.fail(failure.error)
        if self.relay.is_done and not has_head:
            raise failure.cause
        self.add(actions)


def run_exchange(
    relay: Relay, send: Callable[[HttpRequest], Upstream], memory: EntryMemory
) -> Iterator[Respond | bytes]:
    """Yield the head of the caller's response, then its body in chunks."""
    steps = _Steps(relay, memory)
    upstream: Upstream | None = None
    has_head = False
    try:
        while steps.actions or upstream is not None:
            if not steps.actions:
                assert upstream is not None
                try:
                    data = upstream.read()
                except UpstreamError as failure:
                    steps.fail(failure, has_head=has_head)
                    data = b""
                else:
                    steps.add(relay.feed(data) if data else relay.close())
                if not data:
                    upstream.close()
                    upstream = None
                continue
            match action := steps.actions.pop(0):
                case Respond():
                    has_head = True
                    yield action
                case Write():
                    yield action.data
                case Send():
                    if upstream is not None:
                        upstream.close()
                        upstream = None
                    try:
                        upstream = send(action.request)
                    except UpstreamError as failure:
                        steps.fail(failure, has_head=has_head)
                    else:
                        steps.feed(ResponseHead(upstream.status, upstream.headers))
                case Authorize():
                    steps.feed(action.signer.get())
                case Wait():
                    time.sleep(action.seconds)
                    steps.feed(Elapsed())
                case Finish():
                    return
                case Load() | Save() | Delete():
                    steps.use_memory(action)
    finally:
        if upstream is not None:
            upstream.close()


async def run_async_exchange(
    relay: Relay, send: Callable[[HttpRequest], Awaitable[AsyncUpstream]], memory: EntryMemory
) -> AsyncIterator[Respond | bytes]:
    """Yield the head of the caller's response, then its body in chunks."""
    steps = _Steps(relay, memory)
    upstream: AsyncUpstream | None = None
    has_head = False
    try:
        while steps.actions or upstream is not None:
            if not steps.actions:
                assert upstream is not None
                try:
                    data = await upstream.read()
                except UpstreamError as failure:
                    steps.fail(failure, has_head=has_head)
                    data = b""
                else:
                    steps.add(relay.feed(data) if data else relay.close())
                if not data:
                    await upstream.close()
                    upstream = None
                continue
            match action := steps.actions.pop(0):
                case Respond():
                    has_head = True
                    yield action
                case Write():
                    yield action.data
                case Send():
                    if upstream is not None:
                        await upstream.close()
                        upstream = None
                    try:
                        upstream = await send(action.request)
                    except UpstreamError as failure:
                        steps.fail(failure, has_head=has_head)
                    else:
                        steps.feed(ResponseHead(upstream.status, upstream.headers))
                case Authorize():
                    steps.feed(await anyio.to_thread.run_sync(action.signer.get))
                case Wait():
                    await anyio.sleep(action.seconds)
                    steps.feed(Elapsed())
                case Finish():
                    return
                case Load() | Save() | Delete():
                    steps.use_memory(action)
    finally:
        if upstream is not None:
            with anyio.CancelScope(shield=True):
                await upstream.close()
