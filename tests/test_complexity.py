"""Work grows with the length of a history and no faster, however odd it is. Counted in lines run, not in seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

import segue
from tests.bodies.chat import assistant_calls, call, result, user


def calls(*ids: str) -> dict[str, Any]:
    return assistant_calls(*map(call, ids))


HISTORIES: dict[str, Callable[[int], list[dict[str, Any]]]] = {
    "turns": lambda n: [m for i in range(n) for m in (calls(f"c{i}"), result(f"c{i}"))],
    "orphans": lambda n: [result(f"x{i}") for i in range(n)],
    "one reply with many calls": lambda n: [calls(*(f"c{i}" for i in range(n)))],
    "one id for all": lambda n: [calls(*["c"] * n), *(result("c", str(i)) for i in range(n))],
    "no ids": lambda n: [calls(*[""] * n), *(result("", str(i)) for i in range(n))],
    "results before calls": lambda n: [
        *(result(f"c{i}") for i in range(n)),
        *(calls(f"c{i}") for i in range(n)),
    ],
    "late results": lambda n: [*(calls(f"c{i}") for i in range(n)), *(result(f"c{i}") for i in range(n))],
    "duplicates": lambda n: [calls("c"), *(result("c", str(i)) for i in range(n))],
    "users": lambda n: [user("x")] * n,
    "own ids of Kimi": lambda n: [
        m for i in range(n) for m in (calls(f"functions.f:{i + n}"), result(f"functions.f:{i + n}"))
    ],
}


def work(messages: list[dict[str, Any]], target: str) -> int:
    count = 0

    def line(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return line

    before = sys.gettrace()
    sys.settrace(line)
    try:
        segue.convert({"messages": messages}, source="openai-chat", target=target)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("target", [row.name for row in segue.formats() if row.kind != "text"])
@pytest.mark.parametrize("history", HISTORIES)
def test_work_grows_with_the_length(history: str, target: str):
    """The first ten stand for what is done once; of the rest, 120 are four times as many as 30."""
    made = HISTORIES[history]
    work(made(10), target)  # what is remembered from now on
    once, short, long = (work(made(number), target) for number in (10, 40, 130))
    assert long - once < 4.1 * (short - once)
