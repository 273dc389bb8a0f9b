"""The writes of a response to a client's connection."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from segue.gateway.connections import JoiningTransport


class Recorded:
    """A transport that records its calls."""

    def __init__(self) -> None:
        self.calls: list[str | bytes] = []
        self.closing = False

    def write(self, data: bytes) -> None:
        self.calls.append(data)

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.calls.append("close")

    def abort(self) -> None:
        self.calls.append("abort")


def run(*steps: str | bytes | None) -> list[str | bytes]:
    """Write bytes and call methods; None is the end of a step of the event loop. Return the calls of the transport."""
    recorded = Recorded()

    async def work() -> None:
        transport: Any = JoiningTransport(cast("asyncio.Transport", recorded), asyncio.get_running_loop())
        for step in steps:
            if isinstance(step, bytes):
                transport.write(step)
            elif step == "lost":
                recorded.closing = True
            elif step is not None:
                getattr(transport, step)()
            else:
                await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(work())
    return recorded.calls


def test_writes_of_one_step_are_joined() -> None:
    assert run(b"head", b"body", None, b"more", None, b"end") == [b"headbody", b"more", b"end"]


def test_many_bytes_are_not_held_back() -> None:
    large = b"x" * 100_000
    assert run(b"head", large, b"tail") == [b"head" + large, b"tail"]


@pytest.mark.parametrize("method", ["close", "abort"])
def test_all_is_written_before_a_connection_is_closed(method: str) -> None:
    assert run(b"head", b"body", method) == [b"headbody", method]


def test_nothing_is_written_to_a_lost_connection() -> None:
    assert run(b"head", "lost", None) == []
