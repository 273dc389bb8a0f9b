"""The work of a compression grows with the length of the history and no faster. Counted in lines, not in seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from segue.canonical.blocks import Message, Text, ToolCall, ToolResponse
from segue.canonical.compress import STRATEGIES, compress
from segue.canonical.tokens import TokenEstimator
from tests.work import count_work


def human(text: str = "go", **more: Any) -> Message:
    return Message("human", (Text(text),), **more)


def ai(*numbers: int) -> Message:
    return Message("ai", tuple(ToolCall("read", {"path": f"{i % 7}"}, f"c{i}") for i in numbers))


def results(*numbers: int, pinned: bool = False) -> Message:
    found = tuple(ToolResponse(f"c{i}", content=(Text(f"{i % 5} " * 200),)) for i in numbers)
    return Message("tool", found, pinned=pinned)


HISTORIES: dict[str, Callable[[int], list[Message]]] = {
    "turns": lambda n: [m for i in range(n) for m in (human(), ai(i), results(i))],
    # Each result follows the next call, so one kept message keeps all of them.
    "late results": lambda n: [
        *(human(), ai(0)),
        *(m for i in range(1, n) for m in (human(), ai(i), results(i - 1))),
        *(human(pinned=True), results(n - 1), human(), human()),
    ],
    "nested results": lambda n: [
        human(),
        *(m for i in range(n) for m in (ai(i), human())),
        human(pinned=True),
        *(results(i) for i in reversed(range(n))),
        human(),
    ],
    "pins": lambda n: [m for i in range(n) for m in (human(pinned=i % 2 == 0), ai(i), results(i, pinned=i % 3 == 0))],
    "parallel calls": lambda n: [human(), ai(*range(n)), results(*range(n)), human(), ai(n), results(n), human()],
    "parallel calls, results one by one": lambda n: [
        *(human(), ai(*range(n)), *(results(i) for i in reversed(range(n)))),
        *(human(), ai(n), results(n), human()),
    ],
}


@pytest.mark.parametrize("share", [0.0, 0.6])
@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_work_grows_with_the_length(strategy: str, history: str, share: float):
    def work(number: int) -> int:
        messages, count = HISTORIES[history](number), TokenEstimator()
        budget = int(share * sum(map(count, messages)))
        return count_work(lambda: compress(messages, strategy, budget, count=count, summarise=lambda _: "s"))

    assert work(160) < 4.7 * work(40)
