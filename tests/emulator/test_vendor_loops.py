"""The vendors' own clients against the emulators, in tool loops of three exchanges: at once, streamed, and in a loop.

None of them is changed, and each keeps its history as its vendor's examples do.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import closing
from typing import Any, NamedTuple

import anthropic
import openai
import pytest
from google import genai

import segue
from segue.emulator import Emulator, start
from tests.emulator.vendor_chats import VENDOR_CHATS, RequestMode, StoredResponses, VendorChat, find_values, run_tool
from tests.properties.readers import read
from tests.vendors import loops
from tests.vendors.clients import ClientCall

QUESTIONS = (
    "What is the weather in Lisbon and in Oslo, and what time is it there?",
    "And in Bergen and in Porto?",
    "What is the weather in Rome, and what time is it in Europe/Rome?",
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
    vendor_chat: Callable[..., VendorChat] | None = None


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
        "openai-responses", {"model": "gpt-5.1", "reasoning": {"summary": "auto"}}, vendor_chat=StoredResponses
    ),
    "openai-responses, stored": Case("openai-responses", {"model": "gpt-5.1"}, "summary"),
    "azure-foundry": Case("azure-foundry", {"model": "gpt-5"}, "summary"),
    "azure-foundry, held": Case("azure-foundry", {"model": "gpt-5"}, vendor_chat=StoredResponses),
    "anthropic": Case("anthropic", {"model": "claude-sonnet-4-6"}),
    "anthropic, thinking": Case("anthropic", {"model": "claude-sonnet-4-6", "thinking": _BUDGET}, "signature"),
    "anthropic, adaptive": Case(
        "anthropic", {"model": "claude-sonnet-5", "thinking": {"type": "adaptive"}}, "signature"
    ),
    "anthropic, bound": Case("anthropic", {"model": "claude-fable-5-1", "thinking": {"type": "adaptive"}}, "signature"),
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
ASYNC: tuple[RequestMode, ...] = ("async", "async streamed")
PLAIN: tuple[RequestMode, ...] = ("at once", "streamed")
RUNS = [(name, how) for name in CASES for how in (*PLAIN, *(ASYNC if name in AWAITED else ()))]


@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")
@pytest.mark.parametrize(("name", "how"), RUNS)
def test_a_tool_loop_of_three_exchanges(name: str, how: RequestMode) -> None:
    case = CASES[name]
    called: list[ClientCall] = []
    with (
        start(case.api, seed=len(name)) as provider,
        closing((case.vendor_chat or VENDOR_CHATS[case.api])(provider, **case.asked)) as vendor_chat,
    ):
        for question in QUESTIONS:
            turns, text = vendor_chat.exchange(question, how)
            assert len(turns[0]) > 1, "calls go out in parallel"
            for call in turns[0]:
                assert " ".join(run_tool(call).split()) in " ".join(text.split())
            called += turns[0]
    _accepted(provider, streamed="streamed" in how)
    if name != "gemini 2.5":
        assert all(re.fullmatch(IDS[case.api], call.id or "") for call in called), called
        assert len({call.id for call in called}) == len(called)
    last = provider.requests[-1].body or {}
    if case.vendor_chat is None:
        reading = read(dict(last), case.api)
        assert [(one.name, one.arguments, one.text) for one in reading.interactions] == [
            (call.tool, call.arguments, run_tool(call)) for call in called
        ]
        assert not reading.surplus
    if case.thoughts:
        assert len(list(find_values(last, case.thoughts))) >= len(QUESTIONS), "the client hands back what was thought"


def _accepted(provider: Emulator, *, streamed: bool = False) -> None:
    for request in provider.requests:
        assert request.accepted, (request.refused, request.body)
        assert not [one for one in request.violations if one.severity == "reject"]
        assert request.streamed == streamed


# ----------------------------------------------------------------------------------- helpers that call tools themselves

SCRIPT = """
think  Two cities, two calls.
say    Let me look.
call   get_weather {"city": "Lisbon"}
call   get_weather {"city": "Oslo"}
---
think  The time is missing.
say    And the time.
call   get_time {"zone": "Europe/Oslo"}
---
say    {get_weather}, {get_time}.
"""


# The last asks for an answer in JSON and has no tools.
@pytest.mark.filterwarnings("ignore:The model .* is deprecated")
@pytest.mark.parametrize("name", [name for name in loops.RECORDINGS if name != "mistralai parse"])
def test_a_helper_takes_a_script_for_a_model(name: str) -> None:
    recording = loops.RECORDINGS[name]
    with start(recording.api, script=SCRIPT) as provider:
        recording.play(provider.url)
    assert [request.calls for request in provider.requests[:3]] == [("get_weather",) * 2, ("get_time",), ()]
    assert provider.requests[2].text == f"{loops.get_weather('Oslo')}, {loops.get_time('Europe/Oslo')}."
    for request in provider.requests:
        assert request.accepted, request.refused


@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")
@pytest.mark.parametrize("how", [*PLAIN, "async"])
def test_googles_chat_calls_by_itself(how: RequestMode) -> None:
    """Automatic function calling, and the history that the chat keeps of it, signatures included."""
    config = genai.types.GenerateContentConfig(tools=list(loops.TOOLS.values()))
    asked: Any = {"model": "gemini-3-pro-preview", "config": config}

    async def awaited(client: genai.Client) -> list[str]:
        async with client.aio as later:
            chat = later.chats.create(**asked)
            return [(await chat.send_message(question)).text or "" for question in QUESTIONS]

    def texts_of(client: genai.Client) -> list[str]:
        if how == "async":
            return asyncio.run(awaited(client))
        chat = client.chats.create(**asked)
        if how == "at once":
            return [chat.send_message(question).text or "" for question in QUESTIONS]
        streams = (chat.send_message_stream(question) for question in QUESTIONS)
        return ["".join(chunk.text or "" for chunk in stream) for stream in streams]

    with start("gemini") as provider:
        options = genai.types.HttpOptions(base_url=provider.base_url)
        with genai.Client(api_key="a-key", http_options=options) as client:
            texts = texts_of(client)
    _accepted(provider, streamed=how == "streamed")
    last = dict(provider.requests[-1].body or {})
    ran = read(last, "gemini").interactions
    assert len(ran) == sum(len(request.calls) for request in provider.requests) > 6
    assert len(list(find_values(last, "thoughtSignature"))) == len(QUESTIONS)
    assert all("°C" in text for text in texts), texts


def test_anthropics_runner_leaves_the_history_with_the_provider() -> None:
    """A thread: each request says what is new. One that is lost is made anew by the client."""
    with start("anthropic") as provider, _anthropic(provider) as client:
        final_text = _run(client, loops.QUESTION)
        for city in ("Lisbon", "Oslo"):
            assert " ".join(loops.get_weather(city).split()) in final_text
    _accepted(provider)
    first, second = (dict(request.body or {}) for request in provider.requests)
    assert (first["thread"], second["thread"]["type"]) == ({"type": "create"}, "continue")
    assert "tools" not in second
    assert [len(body["messages"]) for body in (first, second)] == [1, 1]
    assert [request.messages for request in provider.requests] == [1, 3]


def _anthropic(provider: Emulator) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=provider.base_url, api_key="a-key", max_retries=0)


def _run(client: anthropic.Anthropic, question: str) -> str:
    runner = client.beta.messages.tool_runner(
        model="claude-fable-5-1",
        max_tokens=4000,
        thinking={"type": "adaptive"},
        system="Be brief.",
        messages=[{"role": "user", "content": question}],
        tools=[anthropic.beta_tool(function) for function in loops.TOOLS.values()],
    )
    return " ".join("".join(block.text for block in runner.until_done().content if block.type == "text").split())


def test_stored_thread_continues_once_and_only_at_its_provider() -> None:
    asked: Any = {"model": "claude-sonnet-5", "max_tokens": 100, "messages": [{"role": "user", "content": "Hello."}]}
    with start("anthropic") as provider, _anthropic(provider) as client:
        create = client.beta.messages.create
        made = create(**asked, thread={"type": "create"})
        going_on: Any = {"type": "continue", "previous_message_id": made.id}
        create(**asked, thread=going_on)
        with pytest.raises(anthropic.types.ThreadAlreadyContinuedError):
            create(**asked, thread=going_on)
        with pytest.raises(anthropic.types.ThreadNotFoundError):
            create(**asked, thread={"type": "continue", "previous_message_id": "msg_unknown"})
        made = create(**asked, thread={"type": "create"})
        with pytest.raises(anthropic.BadRequestError, match="system"):
            create(**asked, system="Be brief.", thread={"type": "continue", "previous_message_id": made.id})


def test_missing_thread_is_recreated_by_the_client(port: int) -> None:
    with start("anthropic", port=port) as provider, _anthropic(provider) as client:
        thread = client.beta.messages.thread(model="claude-sonnet-5", max_tokens=100)
        thread.send({"role": "user", "content": "Hello."})
        provider.stop()
        with start("anthropic", port=provider.port) as another:
            thread.send({"role": "user", "content": "Thanks."})
    assert [request.status for request in another.requests] == [404, 200]
    assert another.requests[-1].messages == 3


@pytest.mark.parametrize("how", PLAIN)
@pytest.mark.parametrize(
    ("api", "model"), [("deepseek", "deepseek-v4-pro"), ("deepseek", "deepseek-reasoner"), ("kimi", "kimi-k2-thinking")]
)
def test_a_script_need_not_think(api: str, model: str, how: RequestMode) -> None:
    """Their models always do, and want it back (DS-01, DS-02, KIM-04)."""
    script = 'call get_weather {"city": "Oslo"}\n---\nsay {get_weather}\n---\nsay You are welcome.'
    with start(api, script=script) as provider, closing(VENDOR_CHATS[api](provider, model=model)) as vendor_chat:
        vendor_chat.exchange("Is it warm in Oslo?", how)
        assert vendor_chat.exchange("Thanks.", how) == ([], "You are welcome.")
    _accepted(provider, streamed=how == "streamed")
    assert len(list(find_values(provider.requests[-1].body, "reasoning_content"))) == 2


def test_azure_refuses_older_reasoning_and_repair_takes_it_out() -> None:
    """AZF-06: OpenAI's client hands all of it back, as OpenAI wants it."""
    case = Case("azure-foundry", {"model": "gpt-5", **_SEALED})
    with start(case.api) as provider, closing(VENDOR_CHATS[case.api](provider, **case.asked)) as vendor_chat:
        vendor_chat.exchange(QUESTIONS[0], "at once")
        with pytest.raises(openai.BadRequestError, match="Invalid payload"):
            vendor_chat.exchange(QUESTIONS[1], "at once")
        vendor_chat.resume(segue.repair(provider.requests[-1].body or {}, case.api).body, "gpt-5")
        vendor_chat.request("at once")
    assert provider.requests[-1].accepted
