"""The price of a switch against what emulated providers bill, over random conversations and switches.

The emulators and the prediction were written apart, from the same page of vendors' rules. Time is a counter.
"""

from __future__ import annotations

import copy
from collections.abc import Generator, Mapping
from contextlib import ExitStack
from itertools import count
from typing import NamedTuple

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import segue
from segue.bridge.providers import catalogue
from segue.canonical.request import Usage
from segue.emulator import start

PROVIDERS = ("anthropic", "openai", "gemini", "mistral", "moonshot", "deepseek")
MODELS = (
    "anthropic/claude-opus-5",
    "anthropic/claude-sonnet-5",
    "anthropic/claude-haiku-4-5",
    "openai/gpt-5.6-sol",
    "openai/gpt-5.4",
    "gemini/gemini-3-flash-preview",
    "gemini/gemini-3-pro-preview",
    "moonshot/kimi-k2.6",
    "deepseek/deepseek-chat",
)
MAX_ERROR = 0.02
"""The largest error of an estimate, as a part of the whole prompt."""


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class World(NamedTuple):
    """Emulated providers with one clock; each key is an account with caches of its own."""

    clock: Clock
    addresses: Mapping[str, str]
    keys: Mapping[str, str]

    def environ(self, key: str) -> dict[str, str]:
        return {**self.addresses, **dict.fromkeys(self.keys.values(), key)}


class Turn(NamedTuple):
    model: str
    words: int
    seconds: float


@pytest.fixture(scope="module")
def world() -> Generator[World]:
    clock, rows = Clock(), [catalogue()[name] for name in PROVIDERS]
    with ExitStack() as stack:
        urls = {row.url_variables[0]: stack.enter_context(start(row.api, clock=clock)).base_url for row in rows}
        yield World(clock, urls, {row.name: row.keys[0] for row in rows})


NUMBERS = count()
# Ages are never a lifetime exactly.
SECONDS = st.sampled_from([1.1, 100.1, 290.1, 301.1, 1000.1, 1801.1, 4000.1])


@st.composite
def talks(draw: st.DrawFn, *words: int) -> tuple[list[Turn], str, str]:
    """Turns of several models, and two that reply in them to compare."""
    current, target, other = draw(st.permutations(MODELS))[:3]
    more = draw(st.lists(st.sampled_from([current, target, other]), max_size=4))
    names = [*draw(st.permutations([current, target])), *more]
    return [Turn(name, draw(st.sampled_from(words)), draw(SECONDS)) for name in names], current, target


class Comparison(NamedTuple):
    """The usage of the next request to both models, as predicted and as billed."""

    cost: segue.SwitchCost
    expected: list[Usage]
    billed: list[Usage]


def compare(world: World, turns: list[Turn], current: str, target: str) -> Comparison:
    environ = world.environ(f"key-{next(NUMBERS)}")
    chat, last, expected = segue.Conversation(system="Be brief."), dict[str, float](), list[Usage]()
    for turn in turns:
        chat.add_user("And now? " + "wor " * turn.words)
        segue.complete(chat, turn.model, environ=environ)
        last[turn.model] = world.clock.now
        world.clock.now += turn.seconds
    chat.add_user("Go on. " * 20)

    def cost_of(_provider: str, _model: str, usage: Usage) -> float:
        expected.append(usage)
        return 0.0

    ages = {name: world.clock.now - then for name, then in last.items()}
    cost = chat.switch_cost(target, current=current, ages=ages, cost_of=cost_of)
    billed = list[Usage]()
    for name in (current, target):
        usage = segue.complete(copy.deepcopy(chat), name, environ=environ).usage
        assert usage is not None
        billed.append(usage)
    note(f"{cost!r}\nexpected {expected[:2]}\nbilled {billed}")
    return Comparison(cost, expected[:2], billed)


@given(talks(3, 300, 900, 3000, 9000))
def test_reads_are_those_billed(world: World, talk: tuple[list[Turn], str, str]) -> None:
    result = compare(world, *talk)
    assert [usage.cache_read for usage in result.expected] == [usage.cache_read for usage in result.billed]
    assert result.cost.cached == result.billed[0].cache_read


@given(talks(1000, 3000, 9000))
def test_tokens_follow_from_replies_of_each_model(world: World, talk: tuple[list[Turn], str, str]) -> None:
    """The new messages are estimated, in the measure of the model that reads them."""
    result = compare(world, *talk)
    assert result.cost.is_measured
    for expected, billed in zip(result.expected, result.billed, strict=True):
        assert abs(expected.input - billed.input) <= MAX_ERROR * billed.input
