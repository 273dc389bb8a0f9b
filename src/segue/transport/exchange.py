"""Runs a relay for an HTTP library: carries out its commands, and yields the response for the caller.

The library's own objects are behind two small protocols, so that one module serves httpx2 and httpx.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any, Protocol

import anyio
import anyio.to_thread

from segue.bridge.actions import Authorize, Delete, Load, Respond, ResponseHead, Save, Send, Wait, Write
from segue.bridge.driver import Command, Read, UpstreamError, drive
from segue.bridge.entries import EntryMemory
from segue.bridge.http_requests import HttpRequest
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


def _use_memory(command: Command, memory: EntryMemory) -> Mapping[str, bytes] | None:
    match command:
        case Load():
            return memory.load(command.keys)
        case Save():
            memory.save(command.entries)
        case Delete():
            memory.delete(command.keys)
        case _:
            pass
    return None


class _Executor:
    """Carries out commands that need no event loop."""

    def __init__(self, send: Callable[[HttpRequest], Upstream], memory: EntryMemory) -> None:
        self._send = send
        self._memory = memory
        self._upstream: Upstream | None = None

    def execute(self, command: Command) -> Any:
        match command:
            case Send():
                self.close()
                upstream = self._upstream = self._send(command.request)
                return ResponseHead(upstream.status, upstream.headers)
            case Read():
                return self._upstream.read() if self._upstream is not None else b""
            case Authorize():
                return command.signer.get()
            case Wait():
                return time.sleep(command.seconds)
            case _:
                return _use_memory(command, self._memory)

    def close(self) -> None:
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            upstream.close()


class _AsyncExecutor:
    """The same for an event loop."""

    def __init__(self, send: Callable[[HttpRequest], Awaitable[AsyncUpstream]], memory: EntryMemory) -> None:
        self._send = send
        self._memory = memory
        self._upstream: AsyncUpstream | None = None

    async def execute(self, command: Command) -> Any:
        match command:
            case Send():
                await self.close()
                upstream = self._upstream = await self._send(command.request)
                return ResponseHead(upstream.status, upstream.headers)
            case Read():
                return await self._upstream.read() if self._upstream is not None else b""
            case Authorize():
                return await anyio.to_thread.run_sync(command.signer.get)
            case Wait():
                return await anyio.sleep(command.seconds)
            case _:
                return _use_memory(command, self._memory)

    async def close(self) -> None:
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            with anyio.CancelScope(shield=True):
                await upstream.close()


def run_exchange(
    relay: Relay, send: Callable[[HttpRequest], Upstream], memory: EntryMemory
) -> Iterator[Respond | bytes]:
    """Yield the head of the caller's response, then its body in chunks."""
    commands, executor = drive(relay, raise_failures=True), _Executor(send, memory)
    try:
        command = next(commands, None)
        while command is not None:
            if isinstance(command, Respond | Write):
                yield command if isinstance(command, Respond) else command.data
                command = _advance(commands, None)
                continue
            try:
                result = executor.execute(command)
            except UpstreamError as failure:
                command = _throw(commands, failure)
            else:
                command = _advance(commands, result)
    finally:
        executor.close()


async def run_async_exchange(
    relay: Relay, send: Callable[[HttpRequest], Awaitable[AsyncUpstream]], memory: EntryMemory
) -> AsyncIterator[Respond | bytes]:
    """Yield the head of the caller's response, then its body in chunks."""
    commands, executor = drive(relay, raise_failures=True), _AsyncExecutor(send, memory)
    try:
        command = next(commands, None)
        while command is not None:
            if isinstance(command, Respond | Write):
                yield command if isinstance(command, Respond) else command.data
                command = _advance(commands, None)
                continue
            try:
                result = await executor.execute(command)
            except UpstreamError as failure:
                command = _throw(commands, failure)
            else:
                command = _advance(commands, result)
    finally:
        await executor.close()


def _advance(commands: Any, result: object) -> Command | None:
    try:
        return commands.send(result)
    except StopIteration:
        return None


def _throw(commands: Any, failure: UpstreamError) -> Command | None:
    try:
        return commands.throw(failure)
    except StopIteration:
        return None
