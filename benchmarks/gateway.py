"""The CPU time of a gateway's process for each request, as a multiple of a bare pass-through on the same server.

Client, provider and servers are on loopback. The provider answers at once with a fixed reply, the pass-through sends
each request on unchanged. Both servers are processes of their own; their CPU time is read from the system, and they are
measured in turns. The bodies are recorded requests of Claude Code (`benchmarks/grow.py`), sent to a Chat provider.

    python benchmarks/gateway.py            all sizes and streams
    python benchmarks/gateway.py --quick    fewer requests
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import aiohttp
from _measure import format_table
from _runs import load_runs, vary
from grow import grow

EVENTS = 300
REPLY = (
    b'{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,'
    b'"finish_reason":"stop","message":{"role":"assistant","content":"Done."}}],'
    b'"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}'
)
CHUNK = (
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,%b}]}\n\n'
)
STREAM = [
    CHUNK % b'"delta":{"role":"assistant","content":""},"finish_reason":null',
    *[CHUNK % b'"delta":{"content":" word"},"finish_reason":null'] * EVENTS,
    CHUNK % b'"delta":{},"finish_reason":"stop"',
    b"data: [DONE]\n\n",
]


# ---------------------------------------------------------------------------------------------------------- the servers


async def answer(scope, receive, send) -> None:
    """Answer at once: a stream if the body has the flag."""
    body = await read_body(receive)
    is_stream = b'"stream":true' in body
    kind = b"text/event-stream" if is_stream else b"application/json"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
    for chunk in STREAM if is_stream else [REPLY]:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
        if is_stream:
            await asyncio.sleep(0)
    await send({"type": "http.response.body", "body": b""})


async def read_body(receive) -> bytes:
    chunks: list[bytes] = []
    while True:
        event = await receive()
        chunks.append(event.get("body", b""))
        if not event.get("more_body"):
            return b"".join(chunks)


class PassThrough:
    """Sends each request on unchanged, and returns the response as it arrives."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._session: aiohttp.ClientSession | None = None

    async def __call__(self, scope, receive, send) -> None:
        if self._session is None:
            self._session = aiohttp.ClientSession(auto_decompress=False)
        body = await read_body(receive)
        async with self._session.post(self._upstream + "/chat/completions", data=body) as response:
            kind = response.headers["content-type"].encode()
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
            async for chunk in response.content.iter_any():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def serve(name: str, port: int, upstream: str) -> None:
    """Run one of the servers in this process."""
    import uvicorn

    if name == "gateway":
        from segue.bridge.envelopes import EnvelopeKeys
        from segue.bridge.providers import resolve
        from segue.gateway.server import GatewayRoutes, GatewayServer, GatewaySettings

        providers = {"up": {"api": "openai-chat", "base_url": upstream, "key_variable": "KEY"}}
        settings = GatewaySettings(
            lambda model: resolve(model, {"KEY": "k"}, providers),
            lambda: GatewayRoutes(default=("up/m",), prefers_default=True),
            EnvelopeKeys(b"k" * 32),
            port=port,
            log_output=Path(os.devnull).open("w"),  # noqa: SIM115
        )
        GatewayServer(settings).run()
        return
    app = answer if name == "provider" else PassThrough(upstream)
    uvicorn.run(app, port=port, access_log=False, log_level="critical", lifespan="off")


class Server:
    """A server in a process of its own."""

    def __init__(self, name: str, upstream: str = "") -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [sys.executable, __file__, "--serve", name, str(self.port), upstream]
        self._process = subprocess.Popen(command)
        self.url = f"http://127.0.0.1:{self.port}"
        self._wait()

    def _wait(self) -> None:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise SystemExit("a server did not start")

    def cpu_seconds(self) -> float:
        """Return the CPU time of the process so far, with all its threads."""
        tasks = Path(f"/proc/{self._process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    def resident_megabytes(self) -> float:
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


# -------------------------------------------------------------------------------------------------------- measurements


async def send_all(server: Server, bodies: Sequence[bytes], concurrency: int) -> None:
    queue = iter(bodies)
    async with aiohttp.ClientSession(auto_decompress=False) as session:

        async def work() -> None:
            for body in queue:
                async with session.post(server.url + "/v1/messages", data=body) as response:
                    await response.read()
                    assert response.status == 200

        await asyncio.gather(*(work() for _ in range(concurrency)))


def measure(servers: Sequence[Server], bodies: Sequence[bytes], concurrency: int, rounds: int) -> list[float]:
    """Return the least CPU seconds of a request for each server, measured in turns."""
    least = [float("inf")] * len(servers)
    for _ in range(rounds):
        for index, server in enumerate(servers):
            before = server.cpu_seconds()
            asyncio.run(send_all(server, bodies, concurrency))
            least[index] = min(least[index], (server.cpu_seconds() - before) / len(bodies))
    return least


def sessions(name: str, *, items: int, size: int, count: int, stream: bool) -> list[bytes]:
    """Return requests of Claude Code: the last ones of a session of this size, of several sessions in turn."""
    run = load_runs(name)[0]
    requests = grow(run, items=items, size=size, count=4) if items else run.requests[:4]
    found: list[bytes] = []
    for number in itertools.count():
        found += vary(requests, number)
        if len(found) >= count:
            break
    flag, other = (b'"stream":true', b'"stream":false') if stream else (b'"stream":false', b'"stream":true')
    return [body.replace(other, flag) for body in found[:count]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer requests and rounds")
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve[0], int(options.serve[1]), options.serve[2])
        return
    rounds = 2 if options.quick else 4
    provider = Server("provider")
    servers = [Server("pass-through", provider.url), Server("gateway", provider.url)]
    started = servers[1].resident_megabytes()
    small = sessions("pi-on-anthropic", items=0, size=0, count=64, stream=False)
    middle = sessions("claude-on-anthropic", items=120, size=180_000, count=24, stream=False)
    large = sessions("claude-on-anthropic", items=400, size=1_100_000, count=16, stream=False)
    streams = sessions("pi-on-anthropic", items=0, size=0, count=24, stream=True)
    rows: list[list[str]] = []
    try:
        for title, bodies in (("7 kB", small), ("180 kB", middle), ("1.1 MB", large), ("7 kB, 300 events", streams)):
            for concurrency in (1, 16):
                bare, gateway = measure(servers, bodies, concurrency, rounds)
                rows.append(
                    [
                        title,
                        str(concurrency),
                        f"{bare * 1e3:.2f} ms",
                        f"{gateway * 1e3:.2f} ms",
                        f"{gateway / bare:.1f}",
                    ]
                )
                print(rows[-1], flush=True)
        head = ["body", "at once", "pass-through", "gateway", "× pass-through"]
        print(format_table(head, rows))
        print(f"\nresident after start: {started:.0f} MB, at the end: {servers[1].resident_megabytes():.0f} MB")
    finally:
        for server in (*servers, provider):
            server.stop()


if __name__ == "__main__":
    main()
