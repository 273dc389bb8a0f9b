"""The CPU time of a gateway's process for each request, beside a bare pass-through and other gateways.

Client, provider and gateways are on loopback (`benchmarks/_gateways.py`). All gateways get the same requests in turns;
their CPU time is read from the system, and the median of several rounds counts. The requests are those of recorded runs
of Claude Code and pi, sent to a Chat provider. Each client has a session of its own, and sends its last requests one
after the other. All but the first of a session are measured; the first ones have a row of their own.

    make bench                              all of it, with the peers
    python benchmarks/gateway.py --quick    fewer clients and rounds
    python benchmarks/gateway.py --stalls   only the bodies of 26 MB
    python benchmarks/gateway.py --turns    only the cost of a request as its conversation grows
    python benchmarks/gateway.py --budgets  only segue: alone, with a store and client keys, and with budgets
    python benchmarks/gateway.py --write    the tables also into docs/gateway-speed.md
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import os
import signal
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from math import isinf
from pathlib import Path
from typing import NamedTuple

import aiohttp
from _gateways import KEY, MODEL, Server, serve, start_gateways, start_metered, start_provider
from _measure import ROOT, decode, encode, format_table, write_page
from _runs import load_runs, vary
from _turns import HEADER as TURNS_HEADER
from _turns import MODES, measure_turns
from grow import grow

PAGE = ROOT / "docs" / "gateway-speed.md"
CLIENTS = (1, 16, 64)
_LARGEST = 26_000_000
# Until the memory at the end is read: free memory is returned to the system from time to time.
_IDLE_SECONDS = 30.0
_STALL_HEADER = ["one body", "s for its response", "s, the longest other request", "of it", "load average"]
_HEADERS = {"x-api-key": KEY, "anthropic-version": "2023-06-01", "content-type": "application/json"}


class Session(NamedTuple):
    """The requests of one client: the first one, and those that are measured."""

    first: bytes
    others: list[bytes]


class Load(NamedTuple):
    """One row: what clients send. `make` returns the sessions of a round; `pace` is that of the provider."""

    title: str
    make: Callable[[int, int], list[Session]]
    pace: float = 0.0
    clients: Sequence[int] = CLIENTS
    measures_first: bool = False


# ------------------------------------------------------------------------------------------------------------ requests


def make_sessions(round_number: int, clients: int, *, run: str, size: int, items: int, stream: bool) -> list[Session]:
    """Return sessions of recorded clients, extended to a size; no two rounds have the same."""
    recorded = load_runs(run)[0]
    requests = grow(recorded, items=items, size=size, count=4) if items else recorded.requests[:4]
    # A few large sessions are enough, and many do not fit into memory.
    requests = requests[-2:] if size * clients > 2**25 else requests
    count = max(clients, 2 if size > 2**20 else 8)
    sessions: list[Session] = []
    for number in range(count):
        # Prompts of different lengths, as those of different users are.
        varied = vary(requests, round_number * 1000 + number, words=number)
        first, *others = (_adapt(body, stream=stream) for body in varied)
        sessions.append(Session(first, others))
    return sessions


def _adapt(data: bytes, *, stream: bool) -> bytes:
    return encode({**decode(data), "model": MODEL, "stream": stream})


_SMALL = partial(make_sessions, run="pi-on-anthropic", size=0, items=0)
_MIDDLE = partial(make_sessions, run="claude-on-anthropic", size=180_000, items=120, stream=False)
_LARGE = partial(make_sessions, run="claude-on-anthropic", size=1_100_000, items=400, stream=False)
LOADS = (
    Load("7 kB", partial(_SMALL, stream=False)),
    Load("180 kB", _MIDDLE),
    Load("1.1 MB", _LARGE),
    Load("1.1 MB, the first of a session", _LARGE, clients=(16,), measures_first=True),
    Load("7 kB, 300 events at once", partial(_SMALL, stream=True)),
    Load("7 kB, 300 events, one each 5 ms", partial(_SMALL, stream=True), pace=0.005, clients=(16,)),
)


# -------------------------------------------------------------------------------------------------------- measurements


async def send_all(server: Server, sessions: Sequence[Sequence[bytes]], clients: int) -> None:
    """Send the requests of all sessions, each session by one of the clients."""
    queue = iter(sessions)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(auto_decompress=False, connector=connector, headers=_HEADERS) as session:

        async def work() -> None:
            for bodies in queue:
                for body in bodies:
                    async with session.post(server.url + "/v1/messages", data=body) as response:
                        received = await response.read()
                        assert response.status == 200, (server.name, received)

        await asyncio.gather(*(work() for _ in range(clients)))


def measure(servers: Sequence[Server], load: Load, clients: int, rounds: int) -> list[float]:
    """Return the CPU seconds of a request for each server, measured in turns."""
    samples: list[list[float]] = [[] for _ in servers]
    # The first round is for what is loaded and compiled at first use.
    for number in range(rounds + 1):
        sessions = load.make(number, clients)
        first, others = [[session.first] for session in sessions], [session.others for session in sessions]
        for index, server in enumerate(servers):
            firsts = _measure_once(server, first, clients)
            seconds = firsts if load.measures_first else _measure_once(server, others, clients)
            if number:
                samples[index].append(seconds)
    return [statistics.median(row) for row in samples]


def _measure_once(server: Server, sessions: Sequence[Sequence[bytes]], clients: int) -> float:
    """Return the CPU seconds of a request; infinite if one failed, which is printed."""
    before = server.cpu_seconds()
    try:
        asyncio.run(send_all(server, sessions, clients))
    except (aiohttp.ClientError, AssertionError) as error:
        print(f"({server.name} failed: {error!r})", flush=True)
        return float("inf")
    return (server.cpu_seconds() - before) / sum(map(len, sessions))


def measure_all(provider: Server, servers: Sequence[Server], rounds: int, *, quick: bool) -> Iterator[list[str]]:
    """Yield the rows of the table: milliseconds, and multiples of the pass-through."""
    for load in LOADS:
        with urllib.request.urlopen(f"{provider.url}/pace/{load.pace}") as response:
            response.read()
        for clients in load.clients[:2] if quick else load.clients:
            bare, *others = measure(servers, load, clients, rounds)
            cells = ["failed" if isinf(time) else f"{time * 1e3:.2f} ({time / bare:.1f} ×)" for time in others]
            row = [load.title, str(clients), f"{bare * 1e3:.2f}", *cells]
            print(row, flush=True)
            yield row


# -------------------------------------------------------------------------------------------------------------- stalls


def make_large_bodies() -> list[tuple[str, bytes]]:
    """Return bodies of 26 MB with their titles: of a recorded session, and of short turns that are all irregular."""
    long = grow(load_runs("claude-on-anthropic")[0], items=9_000, size=_LARGEST, count=1)[0]
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"n": 1}}
    turn = [
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "abc="}, call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x" * 290}]},
    ]
    short = {"max_tokens": 100, "messages": [{"role": "user", "content": "Go on."}, *turn * 48_000]}
    bodies = [_adapt(long, stream=False), _adapt(encode(short), stream=False)]
    return [(f"{len(body) / 1e6:.0f} MB, {len(decode(body)['messages']):,} messages", body) for body in bodies]


def measure_stalls(server: Server) -> Iterator[list[str]]:
    """Yield a row for each large body: the seconds that it took, and those of the longest small request meanwhile."""
    for title, body in make_large_bodies():
        took: list[float] = []

        def send(body: bytes = body, took: list[float] = took) -> None:
            started = time.monotonic()
            request = urllib.request.Request(f"{server.url}/v1/messages", data=body, headers=_HEADERS)
            with urllib.request.urlopen(request) as response:
                response.read()
            took.append(time.monotonic() - started)

        sender = threading.Thread(target=send)
        small = http.client.HTTPConnection(server.url.removeprefix("http://"))
        times: list[float] = []
        sender.start()
        while sender.is_alive():
            started = time.monotonic()
            small.request("GET", "/healthz")
            small.getresponse().read()
            times.append(time.monotonic() - started)
            time.sleep(0.001)
        small.close()
        row = [title, f"{took[0]:.2f}", f"{max(times):.3f}", f"{max(times) / took[0]:.0%}", f"{os.getloadavg()[0]:.1f}"]
        print(row, flush=True)
        yield row


def rates(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return how many requests of 1.1 MB one core serves in a second, by the row of 16 clients."""
    row = next(row for row in rows if row[:2] == ["1.1 MB", "16"])
    times = ["inf" if cell == "failed" else cell.split()[0] for cell in row[2:]]
    return ["requests of 1.1 MB a second and core", *(f"{1e3 / float(time):.0f}" for time in times)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer clients and rounds")
    parser.add_argument("--stalls", action="store_true", help="only the bodies of 26 MB")
    parser.add_argument("--turns", action="store_true", help="only conversations that grow")
    parser.add_argument("--budgets", action="store_true", help="only segue with client keys and budgets")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="write the tables into docs/gateway-speed.md")
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve[0], int(options.serve[1]), options.serve[2])
        return
    turns = list(measure_turns(MODES, 2 if options.quick else options.rounds)) if not options.stalls else []
    if options.turns:
        print(format_table(TURNS_HEADER, turns))
        return
    # The servers are stopped at any end of this process.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with ExitStack() as stack:
        provider = start_provider()
        stack.callback(provider.stop)
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        if options.budgets:
            servers = start_metered(provider.url, Path(folder), stack)
            rows = list(measure_all(provider, servers, options.rounds, quick=options.quick))
            print(format_table(["ms of CPU a request", "clients", *(server.name for server in servers)], rows))
            return
        servers = start_gateways(provider.url, Path(folder), stack)
        if options.stalls:
            print(format_table(_STALL_HEADER, list(measure_stalls(servers[1]))))
            return
        names = [server.name for server in servers]
        started = [f"{server.resident_megabytes():.0f}" for server in servers]
        rows = list(measure_all(provider, servers, 2 if options.quick else options.rounds, quick=options.quick))
        stalls = list(measure_stalls(servers[1]))
        time.sleep(_IDLE_SECONDS)
        ended = [f"{server.resident_megabytes():.0f}" for server in servers]
    memory = [["MB resident after start", *started], ["MB resident at the end", *ended], rates(rows)]
    tables = "\n\n".join(
        (
            format_table(["ms of CPU a request", "clients", *names], rows),
            format_table(["", *names], memory),
            format_table(_STALL_HEADER, stalls),
            format_table(TURNS_HEADER, turns),
        )
    )
    print(tables)
    if options.write:
        write_page(tables, "gateway", PAGE)


if __name__ == "__main__":
    main()
