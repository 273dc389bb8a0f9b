"""The vendors' own clients against the emulators, in tool loops of three exchanges: at once, streamed, and in a loop.

None of them is changed, and each keeps its history as its vendor's examples do.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from typing import Any, NamedTuple

import pytest

from segue.emulator import Emulator, start
from tests.properties.readers import read
from tests.vendors import loops
from tests.vendors.clients import Called

from .talks import TALKS, HeldResponses, How, Talk, found, run

QUESTIONS = (
    loops.QUESTION,
    "And in Bergen and in Porto?",
    "How warm is it in Rome, and how late is it in Europe/Rome?",
)
IDS = {
    "openai-chat": r"call_\w{24}",
    "openai-responses": r"call_\w{24}",
    "azure-foundry": r"call_\w{24}",
    "anthropic": r"toolu_01[1-9A-Za-z]{22}",
    "gemini": r"[0-9a-z]{8}",
    "bedrock": r"tooluse_[\w-]{22}",
    "mistral": r"[0-9A-Za-z]{9}",
    "kimi": r"functions\.get_(weather|time):\d+",
    "deepseek": r"call_0\d_\w{24}",
    "qwen": r"call_[0-9a-f]{24}",
}


class Case(NamedTuple):
    """What a client is asked with. `thoughts` is the member of a body that thinking stands under."""

    api: str
    asked: dict[str, Any]
    thoughts: str | None = None
    talk: Callable[..., Talk] | None = None


_SEALED = {"reasoning": {"effort": "low"}, "store": False, "include": ["reasoning.encrypted_content"]}
_BUDGET = {"type": "enabled", "budget_tokens": 1024}
CASES = {
    "openai-chat": Case("openai-chat", {"model": "gpt-4.1"}),
    "kimi": Case("kimi", {"model": "kimi-k2-0905-preview"}),
    "kimi, thinking": Case("kimi", {"model": "kimi-k2-thinking"}, "reasoning_content"),
    "deepseek": Case("deepseek", {"model": "deepseek-chat"}),
    "deepseek, thinking": Case("deepseek", {"model": "deepseek-v4-pro"}, "reasoning_content"),
    "qwen": Case("qwen", {"model": "qwen-plus"}),
    "qwen, thinking": Case(
        "qwen", {"model": "qwen-plus", "extra_body": {"enable_thinking": True}}, "reasoning_content"
    ),
    "openai-responses": Case("openai-responses", {"model": "gpt-5.1", **_SEALED}, "encrypted_content"),
    "openai-responses, held": Case(
        "openai-responses", {"model": "gpt-5.1", "reasoning": {"summary": "auto"}}, talk=HeldResponses
    ),
    "openai-responses, stored": Case("openai-responses", {"model": "gpt-5.1"}, "summary"),
    "azure-foundry": Case("azure-foundry", {"model": "gpt-5"}, "summary"),
    "azure-foundry, held": Case("azure-foundry", {"model": "gpt-5"}, talk=HeldResponses),
    "anthropic": Case("anthropic", {"model": "claude-sonnet-4-6"}),
    "anthropic, thinking": Case("anthropic", {"model": "claude-sonnet-4-6", "thinking": _BUDGET}, "signature"),
    "anthropic, adaptive": Case(
        "anthropic", {"model": "claude-sonnet-5", "thinking": {"type": "adaptive"}}, "signature"
    ),
    "anthropic, bound": Case(
        "anthropic", {"model": "claude-fable-5-1", "thinking": {"type": "adaptive"}}, "signature"
    ),
    "gemini 2.5": Case("gemini", {"model": "gemini-2.5-flash"}),
    "gemini 3": Case(
        "gemini", {"model": "gemini-3-pro-preview", "thinking_config": {"include_thoughts": True}}, "thoughtSignature"
    ),
    "mistral": Case("mistral", {"model": "mistral-medium-latest"}),
    "mistral, thinking": Case("mistral", {"model": "magistral-medium-latest"}, "thinking"),
    "bedrock": Case("bedrock", {"model": "us.anthropic.claude-sonnet-4-5-20250929-v1:0"}),
    "bedrock, thinking": Case(
        "bedrock",
        {
            "model": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "additionalModelRequestFields": {"thinking": _BUDGET},
        },
        "signature",
    ),
}


# One of each client that can be awaited.
AWAITED = ("openai-chat", "openai-responses", "anthropic, thinking", "gemini 3", "mistral")
ASYNC: tuple[How, ...] = ("async", "async streamed")
PLAIN: tuple[How, ...] = ("at once", "streamed")
RUNS = [(name, how) for name in CASES for how in (*PLAIN, *(ASYNC if name in AWAITED else ()))]


@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")
@pytest.mark.parametrize(("name", "how"), RUNS)
def test_a_tool_loop_of_three_exchanges(name: str, how: How) -> None:
    case = CASES[name]
    told: list[Called] = []
    with start(case.api, seed=len(name)) as provider, closing((case.talk or TALKS[case.api])(provider, **case.asked)) as talk:
        for question in QUESTIONS:
            turns, text = talk.exchange(question, how)
            assert len(turns[0]) > 1, "calls go out in parallel"
            for call in turns[0]:
                assert " ".join(run(call).split()) in " ".join(text.split())
            told += turns[0]
    _accepted(provider, streamed="streamed" in how)
    if name != "gemini 2.5":
        assert all(re.fullmatch(IDS[case.api], call.id or "") for call in told), told
        assert len({call.id for call in told}) == len(told)
    last = provider.requests[-1].body or {}
    if case.talk is None:
        reading = read(dict(last), case.api)
        assert [(one.name, one.arguments, one.text) for one in reading.interactions] == [
            (call.tool, call.arguments, run(call)) for call in told
        ]
        assert not reading.surplus
    if case.thoughts:
        assert len(list(found(last, case.thoughts))) >= len(QUESTIONS), "the client hands back what was thought"


def _accepted(provider: Emulator, *, streamed: bool = False) -> None:
    for request in provider.requests:
        assert request.accepted, (request.refused, request.body)
        assert not [one for one in request.violations if one.severity == "reject"]
        assert request.streamed == streamed
