"""Work grows with the length of a history and no faster, however odd it is. Counted in lines run, not in seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import segue
from tests.bodies.chat import assistant_calls, call, result, user
from tests.work import count_work


def calls(*ids: str) -> dict[str, Any]:
    return assistant_calls(*map(call, ids))


HISTORIES: dict[str, Callable[[int], list[dict[str, Any]]]] = {
    "turns": lambda n: [m for i in range(n) for m in (calls(f"c{i}"), result(f"c{i}"))],
    "orphans": lambda n: [result(f"x{i}") for i in range(n)],
    "one reply with many calls": lambda n: [calls(*(f"c{i}" for i in range(n)))],
    "one id for all": lambda n: [calls(*["c"] * n), *(result("c", str(i)) for i in range(n))],
    "no ids": lambda n: [calls(*[""] * n), *(result("", str(i)) for i in range(n))],
    "results before calls": lambda n: [*(result(f"c{i}") for i in range(n)), *(calls(f"c{i}") for i in range(n))],
    "late results": lambda n: [*(calls(f"c{i}") for i in range(n)), *(result(f"c{i}") for i in range(n))],
    "duplicates": lambda n: [calls("c"), *(result("c", str(i)) for i in range(n))],
    "users": lambda n: [user("x")] * n,
    "own ids of Kimi": lambda n: [
        m for i in range(n) for m in (calls(f"functions.f:{i + n}"), result(f"functions.f:{i + n}"))
    ],
}


def work(messages: list[dict[str, Any]], target: str) -> int:
    return count_work(lambda: segue.convert({"messages": messages}, source="openai-chat", target=target))


@pytest.mark.parametrize("target", [row.name for row in segue.formats() if row.kind != "text"])
@pytest.mark.parametrize("history", HISTORIES)
def test_work_grows_with_the_length(history: str, target: str):
    """The first ten stand for what is done once; of the rest, 120 are four times as many as 30."""
    made = HISTORIES[history]
    work(made(10), target)  # what is remembered from now on
    once, short, long = (work(made(number), target) for number in (10, 40, 130))
    assert long - once < 4.1 * (short - once)


# -------------------------------------------------------------------------------------------- requests of every API


def tools(number: int) -> list[dict[str, Any]]:
    parameters = {"type": "object", "properties": {"a": {"type": "string"}}}
    return [
        {"type": "function", "function": {"name": f"tool.{i} of a long name", "parameters": parameters}}
        for i in range(number)
    ]


REQUESTS: dict[str, Callable[[int], dict[str, Any]]] = {
    "turns": lambda n: {"messages": [user("x"), *HISTORIES["turns"](n), user("x")]},
    "parallel calls": lambda n: {
        "messages": [user("x"), calls(*(f"c{i}" for i in range(n))), *(result(f"c{i}") for i in range(n))]
    },
    "tools": lambda n: {"messages": [user("x")], "tools": tools(n)},
}
APIS = [row.name for row in segue.formats() if row.kind == "wire"]


@pytest.mark.parametrize("source", APIS)
@pytest.mark.parametrize("request_kind", REQUESTS)
def test_work_of_a_request_of_every_api_grows_with_its_length(request_kind: str, source: str):
    """Parsed by each wire, and rendered for the next one."""
    target = APIS[APIS.index(source) - 1]
    bodies = {
        number: segue.convert(REQUESTS[request_kind](number), source="openai-chat", target=source).body
        for number in (10, 40, 130)
    }

    def convert(number: int) -> None:
        segue.convert(bodies[number], source=source, target=target)

    convert(10)
    once, short, long = (count_work(lambda number=number: convert(number)) for number in bodies)
    assert long - once < 4.1 * (short - once)
