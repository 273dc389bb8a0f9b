"""An agent with a tool of its own; if the first provider is overloaded, the next one continues.

Expected output:

    It has 3 words.
    4 overloaded, 2 accepted
"""

import asyncio
from pathlib import Path

from segue.emulator import Emulator, start
from segue.runtime import Failover, InMemoryLog, ProviderClient, Session, SessionServices, Toolbox, resolve, tool

SCRIPT = 'call word_count {"text": "to be continued"}\n---\nsay It has {word_count} words.'


@tool(needs_approval=False)
def word_count(text: str) -> int:
    """Counts the words of a text."""
    return len(text.split())


async def ask(first: Emulator, second: Emulator) -> None:
    servers = {
        "one": {"api": "anthropic", "base_url": first.base_url},
        "two": {"api": "kimi", "base_url": second.base_url},
    }
    route = Failover([resolve(model, {}, servers) for model in ("one/claude-sonnet-4-5", "two/kimi-k2.6")])
    async with ProviderClient() as client:
        services = SessionServices(client=client, toolbox=Toolbox([word_count], Path()))
        session = Session(InMemoryLog(), route, services)
        ended = await session.ask("How many words has it?")
        print(ended.text)


with start("anthropic", faults=["overloaded"]) as claude, start("kimi", script=SCRIPT) as kimi:
    asyncio.run(ask(claude, kimi))
    print(len(claude.requests), "overloaded,", len(kimi.requests), "accepted")
