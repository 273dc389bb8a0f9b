"""A conversation that its provider compacts, under the vendor's SDK: home again, then at the second target."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from segue.emulator import start
from tests.transport.callers import connect, open_http, settle
from tests.transport.upstreams import MODELS, options_for

FACTS = ("KESTREL-7", "OSPREY-9")
HOME, ABROAD = "openai-responses", "kimi"
TALK = [
    {"role": "user", "content": f"Remember {FACTS[0]}."},
    {"role": "assistant", "content": f"Noted, and {FACTS[1]}."},
    {"role": "user", "content": "More."},
]
ASK = {"role": "user", "content": "And now?"}


@pytest.mark.parametrize("is_async", [False, True])
def test_facts_reach_the_second_target_and_the_item_goes_home_unchanged(is_async: bool) -> None:
    with start(HOME, faults=["server-error@3"]) as home, start(ABROAD) as abroad:
        upstreams = {"home": home, "abroad": abroad}
        models = [f"{name}/{MODELS[emulator.api]}" for name, emulator in upstreams.items()]

        async def run() -> dict[str, Any]:
            async with open_http(*models, is_async=is_async, **options_for(upstreams)) as http:
                client = connect("openai", http)
                compacting: list[Any] = [*TALK, {"type": "compaction_trigger"}]
                reply = await settle(client.responses.create(model="any", input=compacting, store=False))
                (made,) = reply.output
                item = made.model_dump(exclude_none=True)
                for _ in range(2):
                    await settle(client.responses.create(model="any", input=[item, ASK], store=False))
                return item

        item = asyncio.run(run())
    first, second, failed = home.requests
    assert first.refused is None
    assert second.body is not None
    assert second.body["input"] == [item, ASK]
    assert not failed.accepted
    sent = json.dumps(abroad.requests[-1].body)
    assert [sent.count(fact) for fact in FACTS] == [1, 1]
    assert item["encrypted_content"] not in sent
