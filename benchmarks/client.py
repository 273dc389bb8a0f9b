"""Which HTTP client: what a request and a piece of a stream cost, and what is seen of a server that misbehaves.

The server is a process of its own, on loopback; CPU time is that of the client's process, all its threads included.
Each fault is met by a process of its own as well, twenty times, so that one that dies is seen. The decision that came
of it is docs/decisions/0008-http-client.md. What is not installed is left out.

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
PIECE = b"%x\r\n%b\r\n" % (len(EVENT), EVENT)
BODY = b'{"messages":"' + b"x" * 2000 + b'"}'
LARGE = [b"x" * 100_000] * 100
FAULTS = ("reset", "close", "cut", "cut-reset", "silence", "slow", "garbage", "bad-piece", "huge-head", "long-head")
PATIENCE = 0.3
MODULES = {"pyreqwest": "pyreqwest.client", "aiohttp": "aiohttp"}
Ask = Callable[..., Awaitable[tuple[int, int]]]
"""Path, body and patience to the status and the number of pieces that came."""


# ----------------------------------------------------------------------------------------------------------- the server


async def serve(port: int) -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", port, backlog=256)
    print("ready", flush=True)
    await server.serve_forever()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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
            if not await _told(path, writer):
                break
            await writer.drain()
    writer.close()


async def _told(path: str, writer: asyncio.StreamWriter) -> bool:
    """Writes the answer; whether the connection goes on."""
    name, _, count = path.partition("/")
    plain = b"HTTP/1.1 200 OK\r\n%bcontent-length: 2\r\n\r\nok"
    match name:
        case "ok":
            writer.write(plain % b"")
        case "stream":
            writer.write(HEAD)
            for _ in range(int(count)):
                writer.write(PIECE)
                await writer.drain()
                await asyncio.sleep(0)
            writer.write(b"0\r\n\r\n")
        case "reset" | "close":
            return _gone(writer, reset=name == "reset")
        case "cut" | "cut-reset":
            writer.write(HEAD + PIECE)
            await asyncio.sleep(0.02)
            return _gone(writer, reset=name == "cut-reset")
        case "silence":
            writer.write(HEAD + PIECE)
            await asyncio.sleep(10 * PATIENCE)
        case "slow":
            await asyncio.sleep(10 * PATIENCE)
        case "garbage":
            writer.write(b"\x16\x03\x01 not HTTP at all\r\n\r\n")
            return False
        case "bad-piece":
            writer.write(HEAD + b"5\r\nhelloXX\r\n")
            return False
        case "long-head":
            writer.write(plain % (b"x-long: " + b"a" * 20_000 + b"\r\n"))
        case _:
            writer.write(plain % (b"x-huge: " + b"a" * (1 << 20) + b"\r\n"))
    return True


def _gone(writer: asyncio.StreamWriter, *, reset: bool) -> bool:
    if reset:
        bare: Any = writer.get_extra_info("socket")
        bare.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
    return False


@contextmanager
def served() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with subprocess.Popen([sys.executable, __file__, "--serve", str(port)], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        server.stdout.readline()
        try:
            yield f"http://127.0.0.1:{port}/"
        finally:
            server.kill()


# ---------------------------------------------------------------------------------------------------------- the clients


async def with_pyreqwest(base: str, use: Callable[[Ask], Awaitable[None]]) -> None:
    from pyreqwest.client import ClientBuilder

    async with ClientBuilder().follow_redirects(False).build() as client:

        async def ask(path: str, body: Any = BODY, patience: float = 30.0) -> tuple[int, int]:
            asked = client.post(base + path).headers({"content-type": "application/json"})
            if isinstance(body, bytes):
                asked = asked.body_bytes(body)
            else:
                asked = asked.header("content-length", str(sum(map(len, body)))).body_stream(body)
            pieces = 0
            # Without this limit nothing of a stream is seen before 64 kB of it have come.
            async with (
                asyncio.timeout(patience) as limit,
                asked.streamed_read_buffer_limit(0).build_streamed() as answer,
            ):
                while await answer.body_reader.read_chunk() is not None:
                    pieces += 1
                    limit.reschedule(asyncio.get_running_loop().time() + patience)
            return answer.status, pieces

        await use(ask)


async def with_aiohttp(base: str, use: Callable[[Ask], Awaitable[None]]) -> None:
    import aiohttp

    connector, jar = aiohttp.TCPConnector(limit=0), aiohttp.DummyCookieJar()
    limits = {"max_line_size": 1 << 17, "max_field_size": 1 << 17}
    async with aiohttp.ClientSession(connector=connector, cookie_jar=jar, **limits) as client:

        async def ask(path: str, body: Any = BODY, patience: float = 30.0) -> tuple[int, int]:
            async def written() -> AsyncIterator[bytes]:
                for piece in body:
                    yield piece

            headers = {"content-type": "application/json"}
            data: Any = body
            if not isinstance(body, bytes):
                headers["content-length"], data = str(sum(map(len, body))), written()
            pieces = 0
            async with (
                asyncio.timeout(patience) as limit,
                client.post(base + path, data=data, headers=headers) as answer,
            ):
                while await answer.content.readany():
                    pieces += 1
                    limit.reschedule(asyncio.get_running_loop().time() + patience)
            return answer.status, pieces

        await use(ask)


CLIENTS = {"pyreqwest": with_pyreqwest, "aiohttp": with_aiohttp}


# ----------------------------------------------------------------------------------------------------------- the tables


async def measured(name: str, base: str, rounds: int) -> list[str]:
    cells: list[str] = []

    async def least(work: Callable[[], Awaitable[Any]], share: int) -> float:
        found = float("inf")
        for _ in range(rounds):
            start = time.process_time()
            await work()
            found = min(found, (time.process_time() - start) / share)
        return found

    async def use(ask: Ask) -> None:
        async def one_by_one() -> None:
            for _ in range(200):
                await ask("ok")

        async def together() -> None:
            await asyncio.gather(*(ask("ok") for _ in range(64)))

        await one_by_one()
        cells.append(f"{await least(one_by_one, 200) * 1e6:.0f} µs")
        cells.append(f"{await least(together, 64) * 1e6:.0f} µs")
        cells.append(f"{await least(lambda: ask('stream/2000'), 2000) * 1e6:.1f} µs")
        joined = b"".join(LARGE)
        if name == "aiohttp":
            joined = [joined]
        cells.append(f"{await least(lambda: ask('ok', joined), 1) * 1e3:.1f} ms")
        cells.append(f"{await least(lambda: ask('ok', LARGE), 1) * 1e3:.1f} ms")

    await CLIENTS[name](base, use)
    return cells


def imported(module: str) -> str:
    """The least milliseconds that an import adds to a bare interpreter, of seven."""

    def started(code: str) -> float:
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - begin

    with_it, bare = (min(started(code) for _ in range(7)) for code in (f"import asyncio, {module}", "import asyncio"))
    return f"{(with_it - bare) * 1e3:.0f} ms"


async def meet(name: str, base: str, fault: str) -> None:
    """One fault, three times, with a request that must succeed before each; what was seen goes to stdout."""

    async def use(ask: Ask) -> None:
        seen = "nothing wrong"
        for _ in range(3):
            assert await ask("ok") == (200, 1)
            try:
                await ask(fault, patience=PATIENCE)
            except Exception as error:  # noqa: BLE001
                seen = type(error).__name__
        print(seen, flush=True)

    await CLIENTS[name](base, use)


def met(name: str, base: str, fault: str, times: int) -> str:
    seen: set[str] = set()
    died = 0
    for _ in range(times):
        ran = subprocess.run(
            [sys.executable, __file__, "--meet", name, base, fault], capture_output=True, text=True, check=False
        )
        died += ran.returncode != 0
        seen.add(ran.stdout.strip())
    told = ", ".join(sorted(seen))
    return f"{told}; **died in {died} of {times}**" if died else told


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *rows])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--meet", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        asyncio.run(serve(asked.serve))
    elif asked.meet:
        asyncio.run(meet(*asked.meet))
    else:
        names = [name for name in CLIENTS if find_spec(name) is not None]
        rounds, times = (2, 3) if asked.quick else (7, 20)
        with served() as base:
            rows = [[name, imported(MODULES[name]), *asyncio.run(measured(name, base, rounds))] for name in names]
            head = [
                "",
                "import",
                "a request",
                "of 64 at once",
                "a piece of a stream",
                "10 MB joined",
                "10 MB in 100 pieces",
            ]
            print(table(head, rows), "\n")
            print(
                table(["", *names], [[fault, *(met(name, base, fault, times) for name in names)] for fault in FAULTS])
            )


if __name__ == "__main__":
    main()
