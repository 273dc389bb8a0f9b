"""HTTP clients compared: the cost of a request and of a chunk of a stream, and the errors they raise for faults.

The server runs in a process of its own on loopback; CPU time is that of the client's process with all its threads.
Each fault is caused in twenty processes, so that a crash is counted. docs/decisions/0008-http-client.md has the
results. A client that is not installed is skipped.

    python benchmarks/client.py            both tables
    python benchmarks/client.py --quick    fewer rounds
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import struct
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
EVENT = b'data: {"id":"x","choices":[{"index":0,"delta":{"content":"hello "}}]}\n\n'
CHUNK = b"%x\r\n%b\r\n" % (len(EVENT), EVENT)
BODY = b'{"messages":"' + b"x" * 2000 + b'"}'
LARGE = [b"x" * 100_000] * 100
FAULTS = ("reset", "close", "cut", "cut-reset", "silence", "slow", "garbage", "bad-chunk", "huge-head", "long-head")
TIMEOUT = 0.3
MODULES = {"pyreqwest": "pyreqwest.client", "aiohttp": "aiohttp"}
Send = Callable[..., Awaitable[tuple[int, int]]]
"""Takes a path, a body and a time limit; returns the status and the number of chunks."""


# ----------------------------------------------------------------------------------------------------------- the server


async def serve() -> None:
    """Serve on a free port, and print it."""
    server = await asyncio.start_server(_handle, "127.0.0.1", 0, backlog=256)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def _handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split()[1].decode().strip("/")
            length = next(
                (
                    int(line.split(b":")[1])
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length")
                ),
                0,
            )
            await reader.readexactly(length)
            if not await _respond(path, writer):
                break
            await writer.drain()
    writer.close()


async def _respond(path: str, writer: asyncio.StreamWriter) -> bool:
    """Write the response; return whether the connection stays open."""
    name, _, count = path.partition("/")
    plain = b"HTTP/1.1 200 OK\r\n%bcontent-length: 2\r\n\r\nok"
    match name:
        case "ok":
            writer.write(plain % b"")
        case "stream":
            writer.write(HEAD)
            for _ in range(int(count)):
                writer.write(CHUNK)
                await writer.drain()
                await asyncio.sleep(0)
            writer.write(b"0\r\n\r\n")
        case "reset" | "close":
            return _disconnect(writer, reset=name == "reset")
        case "cut" | "cut-reset":
            writer.write(HEAD + CHUNK)
            await asyncio.sleep(0.02)
            return _disconnect(writer, reset=name == "cut-reset")
        case "silence":
            writer.write(HEAD + CHUNK)
            await asyncio.sleep(10 * TIMEOUT)
        case "slow":
            await asyncio.sleep(10 * TIMEOUT)
        case "garbage":
            writer.write(b"\x16\x03\x01 not HTTP at all\r\n\r\n")
            return False
        case "bad-chunk":
            writer.write(HEAD + b"5\r\nhelloXX\r\n")
            return False
        case "long-head":
            writer.write(plain % (b"x-long: " + b"a" * 20_000 + b"\r\n"))
        case _:
            writer.write(plain % (b"x-huge: " + b"a" * (1 << 20) + b"\r\n"))
    return True


def _disconnect(writer: asyncio.StreamWriter, *, reset: bool) -> bool:
    if reset:
        bare: Any = writer.get_extra_info("socket")
        bare.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
    return False


@contextmanager
def run_server() -> Iterator[str]:
    with subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        try:
            yield f"http://127.0.0.1:{port}/"
        finally:
            server.kill()


# ---------------------------------------------------------------------------------------------------------- the clients


async def with_pyreqwest(base: str, use: Callable[[Send], Awaitable[None]]) -> None:
    from pyreqwest.client import ClientBuilder

    async with ClientBuilder().follow_redirects(False).build() as client:

        async def send(path: str, body: Any = BODY, timeout: float = 30.0) -> tuple[int, int]:
            request = client.post(base + path).headers({"content-type": "application/json"})
            if isinstance(body, bytes):
                request = request.body_bytes(body)
            else:
                request = request.header("content-length", str(sum(map(len, body)))).body_stream(body)
            chunks = 0
            # By default the first 64 kB of a stream are buffered.
            async with (
                asyncio.timeout(timeout) as limit,
                request.streamed_read_buffer_limit(0).build_streamed() as response,
            ):
                while await response.body_reader.read_chunk() is not None:
                    chunks += 1
                    limit.reschedule(asyncio.get_running_loop().time() + timeout)
            return response.status, chunks

        await use(send)


async def with_aiohttp(base: str, use: Callable[[Send], Awaitable[None]]) -> None:
    import aiohttp

    connector, jar = aiohttp.TCPConnector(limit=0), aiohttp.DummyCookieJar()
    limits = {"max_line_size": 1 << 17, "max_field_size": 1 << 17}
    async with aiohttp.ClientSession(connector=connector, cookie_jar=jar, **limits) as client:

        async def send(path: str, body: Any = BODY, timeout: float = 30.0) -> tuple[int, int]:
            async def iterate() -> AsyncIterator[bytes]:
                for chunk in body:
                    yield chunk

            headers = {"content-type": "application/json"}
            data: Any = body
            if not isinstance(body, bytes):
                headers["content-length"], data = str(sum(map(len, body))), iterate()
            chunks = 0
            async with (
                asyncio.timeout(timeout) as limit,
                client.post(base + path, data=data, headers=headers) as response,
            ):
                while await response.content.readany():
                    chunks += 1
                    limit.reschedule(asyncio.get_running_loop().time() + timeout)
            return response.status, chunks

        await use(send)


CLIENTS = {"pyreqwest": with_pyreqwest, "aiohttp": with_aiohttp}


# ----------------------------------------------------------------------------------------------------------- the tables


async def measure(name: str, base: str, rounds: int) -> list[str]:
    cells: list[str] = []

    async def least(work: Callable[[], Awaitable[Any]], share: int) -> float:
        found = float("inf")
        for _ in range(rounds):
            start = time.process_time()
            await work()
            found = min(found, (time.process_time() - start) / share)
        return found

    async def use(send: Send) -> None:
        async def one_by_one() -> None:
            for _ in range(200):
                await send("ok")

        async def together() -> None:
            await asyncio.gather(*(send("ok") for _ in range(64)))

        await one_by_one()
        cells.append(f"{await least(one_by_one, 200) * 1e6:.0f} µs")
        cells.append(f"{await least(together, 64) * 1e6:.0f} µs")
        cells.append(f"{await least(lambda: send('stream/2000'), 2000) * 1e6:.1f} µs")
        joined = b"".join(LARGE)
        if name == "aiohttp":
            joined = [joined]
        cells.append(f"{await least(lambda: send('ok', joined), 1) * 1e3:.1f} ms")
        cells.append(f"{await least(lambda: send('ok', LARGE), 1) * 1e3:.1f} ms")

    await CLIENTS[name](base, use)
    return cells


def measure_import(module: str) -> str:
    """Return the milliseconds that an import adds to a bare interpreter, the least of seven."""

    def run(code: str) -> float:
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - begin

    with_it, bare = (min(run(code) for _ in range(7)) for code in (f"import asyncio, {module}", "import asyncio"))
    return f"{(with_it - bare) * 1e3:.0f} ms"


async def cause_fault(name: str, base: str, fault: str) -> None:
    """Cause a fault three times, each after a successful request, and print the last error."""

    async def use(send: Send) -> None:
        seen = "no error"
        for _ in range(3):
            assert await send("ok") == (200, 1)
            try:
                await send(fault, timeout=TIMEOUT)
            except Exception as error:  # noqa: BLE001
                seen = type(error).__name__
        print(seen, flush=True)

    await CLIENTS[name](base, use)


def count_errors(name: str, base: str, fault: str, times: int) -> str:
    seen: set[str] = set()
    crashed = 0
    for _ in range(times):
        ran = subprocess.run(
            [sys.executable, __file__, "--fault", name, base, fault], capture_output=True, text=True, check=False
        )
        crashed += ran.returncode != 0
        seen.add(ran.stdout.strip())
    errors = ", ".join(sorted(seen))
    return f"{errors}; **crashed in {crashed} of {times}**" if crashed else errors


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *rows])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--fault", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve())
    elif options.fault:
        asyncio.run(cause_fault(*options.fault))
    else:
        names = [name for name in CLIENTS if find_spec(name) is not None]
        rounds, times = (2, 3) if options.quick else (7, 20)
        with run_server() as base:
            rows = [[name, measure_import(MODULES[name]), *asyncio.run(measure(name, base, rounds))] for name in names]
            head = [
                "",
                "import",
                "a request",
                "of 64 at once",
                "a chunk of a stream",
                "10 MB joined",
                "10 MB in 100 chunks",
            ]
            print(table(head, rows), "\n")
            rows = [[fault, *(count_errors(name, base, fault, times) for name in names)] for fault in FAULTS]
            print(table(["", *names], rows))


if __name__ == "__main__":
    main()
