"""The CPU time of stored conversations: an agent turn, a resume, and the creation from a long history.

An agent turn is a request to an emulated provider, a reply that calls a tool, and the result, all stored in SQLite. The
provider is a process of its own on loopback; CPU time is that of the agent's process, with all its threads. A resume
opens a stored conversation and renders its first request. The floor of resume and creation is msgspec's untyped decode
and encode of the same body. All run in turns, and the least of several rounds counts.

    python benchmarks/turn.py            all of it
    python benchmarks/turn.py --quick    1,000 messages, few rounds
    python benchmarks/turn.py --write    the tables also into docs/speed.md
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, cast

from _measure import floor, format_table, time_once, write_page
from _transcripts import body

from segue import Conversation
from segue._literals import Api
from segue.runtime import Fixed, ProviderClient, Session, Toolbox, resolve, standard_tools
from segue.store import ConversationStore, StoredConversation, open_store

PROVIDERS = {
    "anthropic": "claude-sonnet-4-5",
    "openai-chat": "gpt-5",
    "openai-responses": "gpt-5",
    "gemini": "gemini-2.5-pro",
}
TURNS = 40
_SCRIPT = "---\n".join(['call read_file {"path": "notes.txt"}\n'] * (TURNS - 1) + ["say Done.\n"])


# ------------------------------------------------------------------------------------------------------ the agent turn


def serve(api: str) -> None:
    """Run an emulated provider until stdin is closed; print its address."""
    from segue.emulator import start

    with start(api, script=_SCRIPT) as provider:
        print(provider.base_url, flush=True)
        sys.stdin.read()


@contextmanager
def start_provider(api: str) -> Generator[str]:
    command = [sys.executable, __file__, "--serve", api]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.communicate()


async def run_exchange(api: str, url: str, store: ConversationStore, folder: Path) -> float:
    """Return the CPU seconds of a turn, on average over an exchange."""
    endpoint = resolve(f"emulated/{PROVIDERS[api]}", {}, {"emulated": {"api": api, "base_url": url}})
    log = StoredConversation.create(store, Conversation("You are a careful engineer."))
    async with ProviderClient() as client:
        session = Session(log, Fixed(endpoint), client=client, toolbox=Toolbox(standard_tools(), folder))
        start = time.process_time()
        ended = await session.ask("Read my notes.")
        seconds = time.process_time() - start
        await session.close()
    assert ended.turns == TURNS, ended
    return seconds / TURNS


def measure_turns(rounds: int, folder: Path) -> dict[str, float]:
    (folder / "notes.txt").write_text("Buy milk.\n" * 40)
    best = dict.fromkeys(PROVIDERS, float("inf"))
    with open_store(folder / "turns.db") as store:
        for _ in range(rounds):
            for api in best:
                with start_provider(api) as url:
                    best[api] = min(best[api], asyncio.run(run_exchange(api, url, store, folder)))
    return best


# ---------------------------------------------------------------------------------------------------- resume and create


class Stored(NamedTuple):
    """The CPU seconds of a stored conversation: its creation, forking, opening and rendering it, and the floor."""

    create: float
    fork: float
    open: float
    render: float
    floor: float

    @classmethod
    def measure(cls, api: str, data: bytes, store: ConversationStore) -> Stored:
        chat = Conversation.from_body(data, source=cast("Api", api))
        conversations: list[StoredConversation] = []
        create = time_once(lambda: conversations.append(StoredConversation.create(store, chat)))
        fork = time_once(conversations[0].fork)
        name = conversations.pop().id
        opened = time_once(lambda: conversations.append(StoredConversation(store, name)))
        # The first request goes to another API than the messages came from.
        target = "openai-chat" if api == "anthropic" else "anthropic"
        render = time_once(lambda: conversations[0].render(target).data)
        return cls(create, fork, opened, render, time_once(floor(data)))


def measure_stored(messages: int, rounds: int, folder: Path) -> dict[str, Stored]:
    """Return the least time of each step, for bodies of each API."""
    bodies = {api: body(api, messages) for api in PROVIDERS}
    samples: dict[str, list[Stored]] = {api: [] for api in PROVIDERS}
    for number in range(rounds):
        # A new file in each round, so that its size is the same.
        with open_store(folder / f"long-{number}.db") as store:
            for api, data in bodies.items():
                samples[api].append(Stored.measure(api, data, store))
        (folder / f"long-{number}.db").unlink()
    return {api: Stored(*map(min, zip(*found, strict=True))) for api, found in samples.items()}


# ---------------------------------------------------------------------------------------------------------- the tables


def turn_table(rounds: int, folder: Path) -> str:
    seconds = measure_turns(rounds, folder)
    return format_table(
        ["", *seconds], [["CPU time of a turn", *(f"{each * 1e3:.1f} ms" for each in seconds.values())]]
    )


def stored_table(messages: int, rounds: int, folder: Path) -> str:
    rows = [
        [
            api,
            f"{stored.create * 1e6 / messages:.0f} µs a message",
            f"{stored.fork * 1e3:.1f} ms",
            *(f"{seconds * 1e3:.0f} ms" for seconds in (stored.open, stored.render, stored.open + stored.render)),
            f"{(stored.open + stored.render) / stored.floor:.1f}",
        ]
        for api, stored in measure_stored(messages, rounds, folder).items()
    ]
    return format_table(["source", "create", "fork", "open", "render", "open and render", "× the floor"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="1,000 messages, few rounds")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="write the tables into docs/speed.md")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    rounds, messages = (2, 1_000) if options.quick else (options.rounds, 10_000)
    parts: list[str] = []

    def show(title: str, text: str) -> None:
        parts.append(f"**{title}**\n\n{text}")
        print(f"\n{title}\n\n{text}", flush=True)

    with TemporaryDirectory() as folder:
        show("A turn of the agent with one tool call, stored in SQLite", turn_table(rounds, Path(folder)))
        title = f"A stored conversation of {messages:,} messages"
        show(title, stored_table(messages, rounds, Path(folder)))
    if options.write:
        write_page("\n\n".join(parts), "turn")


if __name__ == "__main__":
    main()
