"""A gateway under load: many streams, workers that are killed, clients that read slowly or leave.

`python -m tests.gateway.load` is the same with 256 streams for a minute.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.gateway.load import Load, count_files
from tests.gateway.load_provider import MODEL, Upstream, running_upstream
from tests.gateway.processes import Home

PATIENCE = 100.0
STREAMS = 32
MEGABYTE = 2**20
BODY = json.dumps({"model": "any", "stream": True, "messages": [{"role": "user", "content": "Prompt"}]}).encode()
REQUEST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)


def never() -> bool:
    return False


def wait_until(state: Callable[[], bool], describe: Callable[[], object] = str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not state():
        assert time.monotonic() < deadline, describe()
        time.sleep(0.02)


def open_stream(url: str, *, buffer: int | None = None) -> socket.socket:
    """Send a request for a stream on a connection of its own, and return the connection."""
    parts = urlsplit(url)
    connection = socket.socket()
    if buffer is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    connection.settimeout(PATIENCE)
    connection.connect((parts.hostname, parts.port))
    connection.sendall(REQUEST)
    return connection


@pytest.mark.skipif(sys.platform != "linux", reason="open files are counted in /proc")
def test_many_streams_at_once_leave_nothing_behind(tmp_path: Path) -> None:
    with running_upstream() as upstream:
        home = Home(tmp_path / "home", upstream, MODEL)
        with home.serve("--store", str(tmp_path / "entries.db")) as gateway:
            load = Load(gateway.url, upstream)
            asyncio.run(load.run(STREAMS, keep_on=never, turns=1))
            files = count_files(gateway.process.pid)
            asyncio.run(load.run(STREAMS, keep_on=never, turns=3))
            assert load.errors == upstream.lost == []
            assert load.turns == upstream.replies == 4 * STREAMS
            # The request for the metrics is active itself.
            gateway.wait_for_metric("segue_requests_active", 1)
            wait_until(lambda: count_files(gateway.process.pid) <= files)


def test_a_killed_worker_loses_no_acknowledged_turn(place: str, tmp_path: Path) -> None:
    with running_upstream(pace=0.002) as upstream:
        home = Home(tmp_path / "home", upstream, MODEL)
        with home.serve("--workers", "2", "--store", place) as gateway:
            load = Load(gateway.url, upstream, retries=True)
            killed: list[int] = []

            async def kill() -> None:
                while load.turns < 12:
                    await asyncio.sleep(0.005)
                killed.append(gateway.workers()[0])
                os.kill(killed[0], signal.SIGKILL)

            async def run() -> None:
                await asyncio.gather(load.run(8, keep_on=never, turns=6), kill())

            asyncio.run(run())
            gateway.wait_for(f"worker {killed[0]} ended with code -9; another one is started")
            assert load.turns == 48
            assert upstream.lost == []


def test_slow_clients_slow_the_provider_down(tmp_path: Path) -> None:
    with running_upstream(events=2500, size=16_000) as upstream:
        home = Home(tmp_path / "home", upstream, MODEL)
        with home.serve() as gateway, open_stream(gateway.url, buffer=4096) as connection:
            received = len(connection.recv(1000))
            wait_until(lambda: stands_still(upstream))
            # What is between provider and client is in the buffers of two connections and of the gateway.
            assert upstream.sent < 16 * MEGABYTE
            while data := connection.recv(MEGABYTE):
                received += len(data)
                assert upstream.sent - received < 16 * MEGABYTE
                if data.endswith(b"0\r\n\r\n"):
                    break
            assert received > 40_000_000


def stands_still(upstream: Upstream) -> bool:
    before = upstream.sent
    time.sleep(0.3)
    return upstream.sent == before > 0


def test_a_client_that_leaves_cancels_its_reply_at_the_provider(tmp_path: Path) -> None:
    with running_upstream(pace=0.01, events=100_000) as upstream:
        home = Home(tmp_path / "home", upstream, MODEL)
        with home.serve() as gateway:
            for _ in range(4):
                with open_stream(gateway.url) as connection:
                    assert connection.recv(1000)
            wait_until(lambda: upstream.left == 4, lambda: upstream.left)
            assert upstream.active == upstream.replies == 0
            wait_until(lambda: gateway.log.count("; 499;") == 4, lambda: gateway.log)
