"""Thoughts survive every caller: all of a three-round loop reach the upstream again, and thinking is never off."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Semaphore
from typing import Any

import httpx2
import pytest

from segue.bridge.entries import EntryMemory
from segue.emulator import start
from segue.transport import Transport
from segue.wire.registry import WIRES
from tests.budget import SOAK
from tests.transport.thoughts import CALLERS, ROUNDS, SCRIPT, UPSTREAMS, find_thoughts, measure, routes
from tests.transport.upstreams import options_for

ROUTES = [route for number, route in enumerate(routes()) if SOAK or (number // 2 + number) % 2]


@pytest.mark.parametrize(("caller", "upstream", "stream"), ROUTES)
def test_all_thoughts_reach_the_upstream_again(caller: str, upstream: str, stream: bool) -> None:
    found = measure(caller, upstream, stream=stream)
    assert found.refused == []
    assert found.thoughts == list(range(ROUNDS + 1))
    assert found.switched_off == 0


@pytest.mark.parametrize(("caller", "upstream"), [(caller, name) for caller in CALLERS for name in UPSTREAMS])
def test_thoughts_without_a_store(caller: str, upstream: str) -> None:
    """Envelopes alone carry them, for all callers whose API has a place for one."""
    own = {"chat": "", "responses": "responses", "messages": "anthropic", "gemini": "gemini"}[caller]
    found = measure(caller, upstream, stream=True, memory=EntryMemory(0))
    assert found.refused == []
    if caller != "chat" or upstream == own:
        assert found.thoughts == list(range(ROUNDS + 1))


# ---------------------------------------------------------------------------------------------------- side by side


def script_of(name: str) -> str:
    return SCRIPT.replace("Thought", f"{name} thought")


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("caller", CALLERS)
def test_two_transports_never_share_thoughts(caller: str, upstream: str) -> None:
    """The same prompt, the same calls and constant ids, in two threads that share a memory and the keys."""
    api, model = UPSTREAMS[upstream]
    memory, barrier = EntryMemory(), Barrier(2)

    def talk(name: str) -> list[str]:
        with start(api, script=script_of(name), seed=ord(name)) as emulator:
            options = options_for({"upstream": emulator}, memory=memory)
            with httpx2.Client(transport=Transport(f"upstream/{model}", **options), timeout=100) as http:
                barrier.wait(100)
                assert CALLERS[caller](http, False) == "Done."
            return _thoughts(api, emulator.requests)

    with ThreadPoolExecutor(2) as pool:
        texts = list(pool.map(talk, "AB"))
    _check_apart(texts)


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("upstream", ["anthropic", "kimi", "responses", "gemini"])
def test_two_conversations_on_one_transport_never_share_thoughts(caller: str, upstream: str) -> None:
    """The conversations take turns at one upstream, whose replies differ in their thoughts alone."""
    api, model = UPSTREAMS[upstream]
    turns = script_of("A").split("\n---\n")
    both = [turn.replace("A thought", f"{name} thought") for turn in turns for name in "AB"]
    with start(api, script="\n---\n".join(both)) as emulator:
        options = options_for({"upstream": emulator})
        with httpx2.Client(transport=Transport(f"upstream/{model}", **options), timeout=100) as shared:
            turnstile = [Turnstile(shared, number) for number in range(2)]
            turnstile[0].next, turnstile[1].next = turnstile[1], turnstile[0]
            with ThreadPoolExecutor(2) as pool:
                texts = list(pool.map(lambda http: CALLERS[caller](httpx2.Client(transport=http), False), turnstile))
    assert texts == ["Done.", "Done."]
    _check_apart([_thoughts(api, emulator.requests[first::2]) for first in range(2)])


class Turnstile(httpx2.BaseTransport):
    """Sends the requests of two clients in turns."""

    next: Turnstile

    def __init__(self, http: httpx2.Client, number: int) -> None:
        self._transport: Any = http._transport
        self.turn = Semaphore(1 - number)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        assert self.turn.acquire(timeout=100)
        try:
            response = self._transport.handle_request(request)
            response.read()
            return response
        finally:
            self.next.turn.release()


def _thoughts(api: str, requests: Any) -> list[str]:
    """Return the thoughts in the last request: their text, or what stands for it."""
    request = WIRES[api].parse_request(dict(requests[-1].body or {}))
    return [block.text or block.encrypted or block.signature or "" for block in find_thoughts(request, api)]


def _check_apart(texts: list[list[str]]) -> None:
    """Assert that each of two conversations has its own thoughts. Gemini and OpenAI return them without text."""
    for name, found in zip("AB", texts, strict=True):
        assert len(found) == ROUNDS
        if "thought" in found[0]:
            assert found == [f"{name} thought {number}." for number in range(ROUNDS)]
    assert not {*texts[0]} & {*texts[1]}
