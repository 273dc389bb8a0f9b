"""Every mode of the SDKs on every upstream: tool loops of three rounds with parallel calls and any call ids."""

from __future__ import annotations

import asyncio
from itertools import product
from typing import Any

import pytest

from segue.emulator import start
from tests.budget import sample
from tests.transport.callers import CALLERS, ToolLog, connect, open_http
from tests.transport.upstreams import CALLS, ID_KINDS, LAST, MODELS, check_upstream, faults_of, make_script, options_for


def _is_whole(row: tuple[str, bool, str, str]) -> bool:
    """Return whether the requests have the whole history: Anthropic's tool runner leaves it with Anthropic."""
    name, _, api, _ = row
    return not (name.startswith("tool runner") and api == "anthropic")


# A share without a common divisor with the number of rows of each dimension, so that all values are tried together.
ROWS = list(sample(filter(_is_whole, product(CALLERS, (False, True), MODELS, ID_KINDS)), 29))


@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")
@pytest.mark.parametrize(
    ("name", "is_async", "api", "ids"),
    ROWS,
    ids=[
        "-".join((name.replace(" ", "_"), "async" if is_async else "sync", api, ids))
        for name, is_async, api, ids in ROWS
    ],
)
def test_tool_loop(name: str, is_async: bool, api: str, ids: str) -> None:
    caller, tools = CALLERS[name], ToolLog()

    async def run(base: dict[str, Any]) -> str:
        async with open_http(f"upstream/{MODELS[api]}", is_async=is_async, **base) as http:
            return await caller.run(connect(caller.sdk, http), tools, is_async)

    with start(api, script=make_script(ids), faults=faults_of(ids)) as emulator:
        text = asyncio.run(run(options_for({"upstream": emulator})))
    assert text == LAST
    assert [(run.tool, run.arguments) for run in tools.runs] == CALLS
    check_upstream(emulator, tools)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("name", ["tool runner", "tool runner stream"])
def test_provider_gets_the_whole_history_of_a_thread(name: str, is_async: bool) -> None:
    caller, tools = CALLERS[name], ToolLog()

    async def run(base: dict[str, Any]) -> str:
        async with open_http("upstream/claude-sonnet-5", is_async=is_async, **base) as http:
            return await caller.run(connect(caller.sdk, http), tools, is_async)

    with start("anthropic", script=make_script()) as emulator:
        assert asyncio.run(run(options_for({"upstream": emulator}))) == LAST
    assert [(run.tool, run.arguments) for run in tools.runs] == CALLS
    assert all(request.accepted for request in emulator.requests)
    bodies = [request.body or {} for request in emulator.requests]
    assert [len(body["messages"]) for body in bodies] == [1, 3, 5, 7]
    assert not [body for body in bodies if "thread" in body]
