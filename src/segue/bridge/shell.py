"""Runs a relay: carries out its actions with a shell, and yields the response for the caller.

A shell has the connections, the clock and the store. There is one protocol for threads and one for event loops.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

from segue.bridge import aws
from segue.bridge.actions import (
    Action,
    Authorize,
    Delete,
    EndExchange,
    EndResponse,
    Load,
    Read,
    Respond,
    ResponseHead,
    Save,
    Send,
    Wait,
    Write,
)
from segue.bridge.driver import UpstreamError, drive
from segue.bridge.http_requests import HttpRequest
from segue.bridge.provider_errors import TransportError
from segue.bridge.relay import Relay
from segue.errors import InputError


class Upstream(Protocol):
    """A provider's response: the head, and the body in chunks. Failures are raised as `UpstreamError`."""

    status: int
    headers: Mapping[str, str]

    def read(self) -> bytes:
        """Return the next bytes of the body; empty at its end."""
        ...

    def close(self) -> None: ...


class Shell(Protocol):
    """Connections, clock and store of a program without event loop."""

    def send(self, request: HttpRequest) -> Upstream: ...
    def sleep(self, seconds: float) -> None: ...
    def load(self, keys: Iterable[str]) -> Mapping[str, bytes]: ...
    def save(self, entries: Mapping[str, bytes]) -> None: ...
    def delete(self, keys: Iterable[str]) -> None: ...


class AsyncUpstream(Protocol):
    """A provider's response for an event loop."""

    status: int
    headers: Mapping[str, str]

    async def read(self) -> bytes:
        """Return the next bytes of the body; empty at its end."""
        ...

    async def close(self) -> None: ...


class AsyncShell(Protocol):
    """Connections, clock and store of a program with an event loop."""

    async def send(self, request: HttpRequest) -> AsyncUpstream: ...
    async def authorize(self, signer: aws.CredentialSource) -> aws.Credentials: ...
    async def sleep(self, seconds: float) -> None: ...
    async def load(self, keys: Iterable[str]) -> Mapping[str, bytes]: ...
    async def save(self, entries: Mapping[str, bytes]) -> None: ...
    async def delete(self, keys: Iterable[str]) -> None: ...


class AsyncSteps(Protocol):
    """Runs the steps of a relay, one after the other: in the event loop, or in threads."""

    async def run(self, step: Callable[[], Action | None], /) -> Action | None: ...


@contextmanager
def _failed_credentials() -> Generator[None]:
    """Raise credentials that can't be fetched as the failure of a connection: the next target may have some."""
    try:
        yield
    except InputError as error:
        raise UpstreamError(TransportError("credentials", str(error))) from None


class _Executor:
    """Carries out actions one by one."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._upstream: Upstream | None = None

    def execute(self, action: Action) -> Any:
        match action:
            case Send():
                self.close()
                upstream = self._upstream = self._shell.send(action.request)
                return ResponseHead(upstream.status, upstream.headers)
            case Read():
                return self._upstream.read() if self._upstream is not None else b""
            case Authorize():
                with _failed_credentials():
                    return action.signer.get()
            case Wait():
                return self._shell.sleep(action.seconds)
            case Load():
                return self._shell.load(action.keys)
            case Save():
                return self._shell.save(action.entries)
            case Delete():
                return self._shell.delete(action.keys)
            case Respond() | Write() | EndResponse() | EndExchange():
                return None

    def close(self) -> None:
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            upstream.close()


class _AsyncExecutor:
    """The same for an event loop."""

    def __init__(self, shell: AsyncShell) -> None:
        self._shell = shell
        self._upstream: AsyncUpstream | None = None

    async def execute(self, action: Action) -> Any:
        match action:
            case Send():
                await self.close()
                upstream = self._upstream = await self._shell.send(action.request)
                return ResponseHead(upstream.status, upstream.headers)
            case Read():
                return await self._upstream.read() if self._upstream is not None else b""
            case Authorize():
                with _failed_credentials():
                    return await self._shell.authorize(action.signer)
            case Wait():
                return await self._shell.sleep(action.seconds)
            case Load():
                return await self._shell.load(action.keys)
            case Save():
                return await self._shell.save(action.entries)
            case Delete():
                return await self._shell.delete(action.keys)
            case Respond() | Write() | EndResponse() | EndExchange():
                return None

    async def close(self) -> None:
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            await upstream.close()


def run_exchange(relay: Relay, shell: Shell, *, raise_failures: bool = False) -> Generator[Respond | bytes, None, None]:
    """Yield the head of the caller's response, then its body in chunks. `raise_failures` is that of `drive`.

    Closing the generator closes the connection to the provider.
    """
    actions, executor = drive(relay, raise_failures=raise_failures), _Executor(shell)
    try:
        action = next(actions, None)
        while action is not None:
            if isinstance(action, Respond | Write):
                yield action if isinstance(action, Respond) else action.data
            try:
                result = executor.execute(action)
            except UpstreamError as failure:
                action = _throw(actions, failure)
            else:
                action = _advance(actions, result)
    finally:
        relay.end()
        executor.close()


async def run_async_exchange(
    relay: Relay, shell: AsyncShell, *, raise_failures: bool = False, steps: AsyncSteps | None = None
) -> AsyncGenerator[Respond | bytes | EndResponse, None]:
    """Yield the head of the caller's response, then its body in chunks. `raise_failures` is that of `drive`.

    `steps` run the steps of the relay; without them, they run in the event loop. An `EndResponse` after the last chunk
    means that the provider's response is still read. Closing the generator closes the connection to the provider.
    """
    actions, executor = drive(relay, raise_failures=raise_failures), _AsyncExecutor(shell)
    try:
        action = next(actions, None)
        while action is not None:
            if isinstance(action, Respond | Write | EndResponse):
                yield action.data if isinstance(action, Write) else action
            try:
                result = await executor.execute(action)
            except UpstreamError as failure:
                step = partial(_throw, actions, failure)
            else:
                step = partial(_advance, actions, result)
            is_output = isinstance(action, Respond | Write | EndResponse)
            action = step() if steps is None or is_output else await steps.run(step)
    finally:
        relay.end()
        await executor.close()


def _advance(actions: Generator[Action, Any, None], result: object) -> Action | None:
    try:
        return actions.send(result)
    except StopIteration:
        return None


def _throw(actions: Generator[Action, Any, None], failure: UpstreamError) -> Action | None:
    try:
        return actions.throw(failure)
    except StopIteration:
        return None
