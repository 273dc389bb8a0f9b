"""Routes with `buffer_tool_calls`: a call that is cut off never starts, for clients that keep what they got of it."""

from __future__ import annotations

import httpx2
import pytest

from segue.emulator.steps import CallStep, CutStep, ReplySteps, TextStep
from segue.gateway.routes import RouteSettings
from segue.sessions.registry import PROGRAMS
from tests.gateway.harness import Running, model_of, running_gateway

TOOL = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}
BODY = {"model": "any", "messages": [{"role": "user", "content": "Hello"}], "tools": [TOOL], "stream": True}
APIS = ("openai-chat", "openai-responses", "anthropic", "kimi", "bedrock")
TEXT = TextStep("Half an answer.")
CUT: ReplySteps = (TEXT, CallStep("read", text='{"path": "alpha'), CutStep())
WHOLE: ReplySteps = (TEXT, CallStep("read", {"path": "alpha.txt"}), CallStep("read", {"path": "beta.txt"}))


def stream(gateway: Running) -> str:
    return httpx2.post(f"{gateway.url}/v1/chat/completions", json=BODY, timeout=100).text


@pytest.mark.parametrize("api", APIS)
def test_cut_call_never_starts(api: str) -> None:
    for buffer_tool_calls in (False, True):
        routes = (RouteSettings((model_of(api),), attempts=1, buffer_tool_calls=buffer_tool_calls),)
        with running_gateway({api: lambda _: CUT}, routes=routes) as gateway:
            text = stream(gateway)
        assert "Half" in text
        assert '"error"' in text
        assert "[DONE]" not in text
        assert ('"tool_calls"' in text) != buffer_tool_calls


@pytest.mark.parametrize("api", APIS)
def test_complete_calls_are_sent_in_order(api: str) -> None:
    with running_gateway({api: lambda _: WHOLE}) as gateway:
        # All routes of a gateway for one client have the setting, also after `segue route`.
        gateway.server.table.configure((), default=(model_of(api),), prefers_default=True, buffer_tool_calls=True)
        for models in ((), (model_of(api),)):
            gateway.server.table.override(models)
            text = stream(gateway)
            assert text.count('\\"path\\"') == 2
            assert 0 < text.find("alpha.txt") < text.find("beta.txt") < text.find('"finish_reason":"tool_calls"')


def test_without_other_content_the_request_is_sent_again() -> None:
    replies = iter([CUT[1:], WHOLE])
    routes = (RouteSettings((model_of("anthropic"),), attempts=2, buffer_tool_calls=True),)
    with running_gateway({"anthropic": lambda _: next(replies)}, routes=routes) as gateway:
        text = stream(gateway)
    assert '"error"' not in text
    assert text.endswith("data: [DONE]\n\n")


def test_opencode_gets_whole_calls() -> None:
    assert [name for name, setup in PROGRAMS.items() if setup.buffer_tool_calls] == ["opencode"]
