"""Routes with `prefer = "cheapest"`, and what the log says about a switch in a conversation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from segue.canonical.request import Usage
from segue.emulator.steps import ErrorStep, ReplySteps, TextStep
from segue.gateway.routes import RouteSettings
from tests.cli.project import Project
from tests.gateway.harness import Running, model_of, running_gateway

FIRST, SECOND = model_of("openai-chat"), model_of("anthropic")
BOTH = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
WORDS = "Please read this. " * 2_000
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CALLED = [
    {
        "role": "assistant",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "no"},
]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def cost(provider: str, model: str, usage: Usage) -> float:
    """The first target costs three a token; the second one four, and little from its cache."""
    if provider == "test-openai-chat":
        return 3.0 * usage.input
    return 4.0 * (usage.input - usage.cache_read) + 0.1 * usage.cache_read


def post(gateway: Running, *messages: dict[str, Any], model: str = "any", stream: bool = False) -> None:
    body = {"model": model, "stream": stream, "messages": list(messages), "tools": [TOOL]}
    response = httpx2.post(f"{gateway.url}/v1/chat/completions", json=body, timeout=100)
    assert response.status_code == 200, response.text


def counts(gateway: Running) -> tuple[int, int]:
    first, second = (len(gateway.emulators[api].requests) for api in ("openai-chat", "anthropic"))
    return first, second


@BOTH
def test_cheapest_target_with_its_warm_cache(stream: bool) -> None:
    """The cheaper target fails in the middle of a task; the other one, which caches the prompt, keeps it."""
    clock, fails = Clock(), [False]

    def answer(_request: object) -> ReplySteps:
        return (ErrorStep(529, "Overloaded."),) if fails[0] else (TextStep("Hello."),)

    scripts = {"anthropic": lambda _request: (TextStep("Hello."),), "openai-chat": answer}
    routes = (RouteSettings((SECOND, FIRST), prefer="cheapest", attempts=1),)
    with running_gateway(scripts, routes=routes, clock=clock, cost=cost) as gateway:
        start = {"role": "user", "content": WORDS}
        post(gateway, start, stream=stream)
        assert counts(gateway) == (1, 0)
        fails[0] = True
        post(gateway, start, *CALLED, stream=stream)
        assert counts(gateway) == (2, 1)
        gateway.wait_for_log(f"switched from {FIRST}: failover, about ")
        fails[0] = False
        clock.now += 100
        post(gateway, start, *CALLED, {"role": "user", "content": "Go on."}, stream=stream)
        assert counts(gateway) == (2, 2), "the cache is worth more"
        post(gateway, {"role": "user", "content": f"Something else. {WORDS}"}, stream=stream)
        assert counts(gateway) == (3, 2)
        assert gateway.log.count("switched from") == 1


@BOTH
def test_log_line_says_why_and_what_it_costs(stream: bool) -> None:
    routes = (RouteSettings((SECOND,), name="large", min_tokens=20_000), RouteSettings((FIRST,), name="small"))
    with running_gateway({"anthropic": None, "openai-chat": None}, routes=routes, cost=cost, log_json=True) as gateway:
        start = {"role": "user", "content": WORDS}
        post(gateway, start, stream=stream)
        more = [{"role": "assistant", "content": "Yes."}, {"role": "user", "content": WORDS * 2}]
        post(gateway, start, *more, stream=stream)
        post(gateway, start, *more, {"role": "assistant", "content": "Yes."}, start, stream=stream)
        gateway.wait_for_log("by route large")
        lines = [json.loads(line) for line in gateway.log.splitlines()]
        switched = [line for line in lines if line.get("switch")]
        assert [line["switch"].partition(",")[0] for line in switched] == [f"switched from {FIRST}: by route large"]
        assert switched[0]["switch_cost"] > 0


def test_route_settings_that_exclude_each_other(tmp_path: Path) -> None:
    project = Project(tmp_path)
    route = 'targets = ["a", "b"]\nprefer = "cheapest"\nbalance = "round-robin"'
    project.write_user_config(f"[[gateway.routes]]\n{route}\n")
    ended = project.run("serve", "--port", "0")
    assert ended.code == 2
    assert 'gateway.routes[0]: prefer = "cheapest"' in ended.err
    project.write_user_config('[[gateway.routes]]\ntargets = ["a"]\nprefer = "fast"\n')
    ended = project.run("serve", "--port", "0")
    assert (ended.code, "gateway.routes[0].prefer: unknown value" in ended.err) == (2, True), ended.err
