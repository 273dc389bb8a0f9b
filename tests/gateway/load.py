"""Load on a gateway with 1,000 client keys: many conversations of one with a budget at once, each turn a stream.

    python -m tests.gateway.load                            256 streams for 60 seconds
    python -m tests.gateway.load --streams 32 --seconds 10

It ends by itself, prints what it measured, and fails if a stream had an error, a thought was lost, the gateway's
memory, open files or store grew, or its budget is not settled.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import httpx2

from segue.cli.gateway_settings import save_client_keys
from segue.gateway.client_keys import ClientKey, hash_key
from tests.gateway.load_provider import MODEL, Upstream, expected_text, running_upstream
from tests.gateway.processes import TOOL, GatewayProcess, Home

_TURNS = 4
_KEY = "key-ada"
_STORE_MEGABYTES = 2
# What a process may use more after two thirds of the load than after the first third.
_MORE_MEGABYTES = 24
_MORE_FILES = 16


class BrokenReplyError(Exception):
    """A reply that is not complete, or not the one to its request."""


class Load:
    """Conversations with a gateway. `errors` are the failures, `turns` the replies that were complete.

    With `retries`, a request that failed is sent again: its reply was not acknowledged.
    """

    def __init__(self, url: str, upstream: Upstream, *, retries: bool = False, key: str = "") -> None:
        self.errors: list[str] = []
        self.turns = 0
        self.first_bytes: list[float] = []
        self._url = url
        self._headers = {"x-api-key": key} if key else {}
        self._upstream = upstream
        self._retries = retries
        self._numbers = itertools.count()

    async def run(self, streams: int, *, keep_on: Callable[[], bool], turns: int = _TURNS) -> None:
        """Converse with so many clients at once; each begins another conversation while `keep_on` returns True."""
        timeout = aiohttp.ClientTimeout(total=None, sock_read=120)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as session:

            async def work() -> None:
                has_more = True
                while has_more:
                    await self._converse(session, f"Prompt {next(self._numbers)}", turns)
                    has_more = keep_on()

            await asyncio.gather(*(work() for _ in range(streams)))

    async def _converse(self, session: aiohttp.ClientSession, prompt: str, turns: int) -> None:
        messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
        for turn in range(turns):
            reply = await self._send(session, prompt, turn, messages)
            if reply is None:
                return
            self.turns += 1
            messages.append(reply)
            messages += [
                {"role": "tool", "tool_call_id": call["id"], "content": "seen"} for call in reply["tool_calls"]
            ]

    async def _send(
        self, session: aiohttp.ClientSession, prompt: str, turn: int, messages: list[dict[str, Any]]
    ) -> dict[str, Any] | None:
        body = {"model": "any", "stream": True, "messages": messages, "tools": [TOOL], "reasoning_effort": "high"}
        while True:
            started = time.monotonic()
            try:
                async with session.post(
                    f"{self._url}/v1/chat/completions", json=body, headers=self._headers
                ) as response:
                    first = await response.content.readany()
                    self.first_bytes.append(time.monotonic() - started)
                    return self._parse(response.status, first + await response.content.read(), prompt, turn)
            except (aiohttp.ClientError, BrokenReplyError) as error:
                self.errors.append(f"{prompt}, turn {turn}: {error!r}")
                if not self._retries:
                    return None
                await asyncio.sleep(0.05)

    def _parse(self, status: int, data: bytes, prompt: str, turn: int) -> dict[str, Any]:
        """Return the assistant message of a stream."""
        events = [line.removeprefix(b"data: ") for line in data.split(b"\n") if line.startswith(b"data: ")]
        if status != 200 or events[-1:] != [b"[DONE]"]:
            raise BrokenReplyError(f"{status}: {data[-300:]!r}")
        deltas = [choice["delta"] for event in events[:-1] for choice in json.loads(event).get("choices", ())]
        text = "".join(delta.get("content") or "" for delta in deltas)
        if text != expected_text(prompt, turn, self._upstream.events, self._upstream.size):
            raise BrokenReplyError(f"another text: {text[:200]!r}")
        pieces = [call for delta in deltas for call in delta.get("tool_calls") or ()]
        calls = [piece for piece in pieces if piece.get("id")]
        if len(calls) != 1:
            raise BrokenReplyError(f"{len(calls)} calls")
        arguments = "".join(piece["function"].get("arguments", "") for piece in pieces)
        function = {"name": calls[0]["function"]["name"], "arguments": arguments}
        call = {"id": calls[0]["id"], "type": "function", "function": function}
        return {"role": "assistant", "content": text, "tool_calls": [call]}


class Resources:
    """What a process uses at one moment, and the size of its store."""

    def __init__(self, process: int, store: Path) -> None:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        values = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith(("VmRSS", "Threads"))}
        self.megabytes = int(values["VmRSS"]) / 1024
        self.threads = int(values["Threads"])
        self.files = count_files(process)
        self.store_mb = sum(file.stat().st_size for file in store.parent.glob(f"{store.name}*")) / 2**20

    def __str__(self) -> str:
        return (
            f"{self.megabytes:.0f} MB resident, {self.files} open files, {self.threads} threads, "
            f"{self.store_mb:.1f} MB store"
        )


def count_files(process: int) -> int:
    return len(list(Path(f"/proc/{process}/fd").iterdir()))


async def measure(load: Load, gateway: GatewayProcess, store: Path, streams: int, seconds: float) -> list[Resources]:
    """Run the load for a time, and return what the gateway used after each third."""
    started = time.monotonic()
    running = asyncio.create_task(load.run(streams, keep_on=lambda: time.monotonic() - started < seconds))
    samples: list[Resources] = []
    for third in (1, 2, 3):
        await asyncio.sleep(max(started + seconds * third / 3 - time.monotonic(), 0))
        samples.append(Resources(gateway.process.pid, store))
    await running
    return samples


def find_growth(samples: list[Resources]) -> list[str]:
    first, *_, last = samples
    grown = {
        "memory": last.megabytes > first.megabytes + _MORE_MEGABYTES,
        "open files": last.files > first.files + _MORE_FILES,
        "threads": last.threads > first.threads + _MORE_FILES,
        # The log of SQLite is written beside the file, and as large as the file at most.
        "store": last.store_mb > 4 * _STORE_MEGABYTES,
    }
    return [f"{name} grew: {first}; then {last}" for name, has_grown in grown.items() if has_grown]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running_upstream(events=40, pace=0.1) as upstream:
        home, store = Home(Path(folder) / "home", upstream, MODEL), Path(folder) / "entries.db"
        settings = f'[prices."test/{MODEL}"]\ninput = 1\noutput = 1\n[gateway]\nstore_mb = {_STORE_MEGABYTES}\n'
        home.config.write_text(home.config.read_text() + settings)
        keys = [ClientKey(f"client-{number}", hash_key(str(number))) for number in range(999)]
        save_client_keys(
            [*keys, ClientKey("ada", hash_key(_KEY), budgets=("100000/total",), metrics=True)], home.client_keys
        )
        with home.serve("--store", str(store)) as gateway:
            load = Load(gateway.url, upstream, key=_KEY)
            print(f"after start: {Resources(gateway.process.pid, store)}", flush=True)
            samples = asyncio.run(measure(load, gateway, store, options.streams, options.seconds))
            for number, sample in enumerate(samples, 1):
                print(f"after {options.seconds * number / 3:.0f} s: {sample}")
            # The request for the metrics is active itself.
            gateway.wait_for_metric("segue_requests_active", 1, key=_KEY)
            state = httpx2.get(f"{gateway.url}/v1/key", headers={"x-api-key": _KEY}).json()["budgets"][0]
    times = [seconds * 1e3 for seconds in statistics.quantiles(load.first_bytes, n=100)]
    print(f"{load.turns} streams of {upstream.events} deltas; {len(load.errors)} errors, {len(upstream.lost)} lost")
    print(f"first bytes: {times[49]:.0f} ms in the median, {times[98]:.0f} ms at the 99th percentile")
    print(f"${state['spent']:.2f} spent, ${state['reserved']:.2f} reserved")
    unsettled = [] if state["spent"] and not state["reserved"] else [f"the budget is not settled: {state}"]
    problems = [*unsettled, *load.errors[:5], *upstream.lost[:5], *find_growth(samples)]
    print("\n".join(problems) or "no error, no growth")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
