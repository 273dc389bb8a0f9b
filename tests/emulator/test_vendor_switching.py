"""A history made by one vendor's client continues with another's, for every pair of APIs."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, closing
from typing import Any, NamedTuple

import pytest
from google.genai import types as gemini
from mistralai.client import models as mistral

import segue
from segue.emulator import RecordedRequest, start
from tests.budget import sample_pairs
from tests.emulator.vendor_chats import VENDOR_CHATS, RequestMode, VendorChat, find_values, run_tool
from tests.properties.readers import read
from tests.vendors import loops
from tests.vendors.clients import ClientCall

_BUDGET = {"type": "enabled", "budget_tokens": 1024}
ASKED: dict[str, dict[str, Any]] = {
    "openai-chat": {"model": "gpt-4.1"},
    "openai-responses": {"model": "gpt-5.1", "store": False, "include": ["reasoning.encrypted_content"]},
    "anthropic": {"model": "claude-sonnet-4-6", "thinking": _BUDGET},
    "gemini": {"model": "gemini-3-pro-preview", "thinking_config": {"include_thoughts": True}},
    "bedrock": {
        "model": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "additionalModelRequestFields": {"thinking": _BUDGET},
    },
    "azure-foundry": {"model": "gpt-5"},
    "mistral": {"model": "mistral-medium-latest"},
    "kimi": {"model": "kimi-k2-thinking"},
    "deepseek": {"model": "deepseek-v4-pro"},
    "qwen": {"model": "qwen-plus", "extra_body": {"enable_thinking": True}},
}
# Who seals its thoughts and takes them back.
MODELS = ("openai-responses", "anthropic", "gemini", "bedrock")
SIGNATURES = ("signature", "thoughtSignature", "encrypted_content")
NEXT = "And in Bergen and in Porto?"
LAST = "What is the weather in Rome, and what time is it in Europe/Rome?"
HOWS: tuple[RequestMode, RequestMode] = ("at once", "streamed")


class FirstExchange(NamedTuple):
    """One exchange, and the user's next words. `seals` are what the provider put under its thoughts."""

    body: dict[str, Any]
    ran: list[tuple[str, Any, str]]
    signatures: frozenset[str]


@pytest.fixture(scope="module")
def chats() -> Generator[dict[str, VendorChat]]:
    """A client of every API, each with a provider of its own."""
    with ExitStack() as stack:
        yield {
            api: stack.enter_context(closing(vendor_chat(stack.enter_context(start(api, seed=7)), **ASKED[api])))
            for api, vendor_chat in VENDOR_CHATS.items()
        }


@pytest.fixture(scope="module")
def played(chats: dict[str, VendorChat]) -> dict[str, FirstExchange]:
    return {api: _played(vendor_chat) for api, vendor_chat in chats.items()}


def _played(vendor_chat: VendorChat) -> FirstExchange:
    turns, _ = vendor_chat.exchange(loops.QUESTION, "at once")
    sealed = signatures(vendor_chat.emulator.requests[-1].body)
    vendor_chat.add_user(NEXT)
    return FirstExchange(vendor_chat.sent, _ran(turns), sealed)


def signatures(body: Any) -> frozenset[str]:
    return frozenset(seal for key in SIGNATURES for seal in find_values(body, key) if not seal.startswith("skip_"))


def _ran(turns: list[list[ClientCall]]) -> list[tuple[str, Any, str]]:
    return [(call.tool, call.arguments, run_tool(call)) for calls in turns for call in calls]


def _accepted(requests: list[RecordedRequest]) -> None:
    for request in requests:
        assert request.accepted, (request.refused, request.body)
        assert not [one for one in request.violations if one.severity == "reject"]


def _summarize_calls(body: Any, api: str) -> list[tuple[str, Any, str | None]]:
    reading = read(dict(body), api)
    assert not reading.surplus
    ids = [one for one in reading.ids if one is not None]
    assert len(set(ids)) == len(ids)
    return [(one.name, one.arguments, one.text) for one in reading.interactions]


@pytest.mark.parametrize(("source", "target"), sample_pairs(VENDOR_CHATS))
def test_a_history_goes_on_with_another_client(
    source: str, target: str, chats: dict[str, VendorChat], played: dict[str, FirstExchange]
) -> None:
    before, there = played[source], chats[target]
    how = HOWS[(list(VENDOR_CHATS).index(source) + list(VENDOR_CHATS).index(target)) % 2]
    converted = segue.convert(before.body, source=source, target=target, model=ASKED[target]["model"])
    first = len(there.emulator.requests)
    there.resume(converted.body, ASKED[target]["model"])
    turns, text = there.run_until_text(how)

    requests = there.emulator.requests[first:]
    _accepted(requests)
    new = _ran(turns)
    assert len(new) > 1
    assert _summarize_calls(requests[0].body, target) == before.ran
    assert _summarize_calls(requests[-1].body, target) == [*before.ran, *new]
    assert all(" ".join(result.split()) in " ".join(text.split()) for _, _, result in new)
    sealed = signatures(requests[0].body)
    if source == target and source != "azure-foundry":
        assert sealed >= before.signatures
    elif source != target:
        assert not sealed & before.signatures, "what one provider signed is of no use to another"


@pytest.mark.parametrize(("home", "abroad"), [(home, api) for home in MODELS for api in VENDOR_CHATS if api != home])
def test_reasoning_returns_to_its_own_api(
    home: str, abroad: str, chats: dict[str, VendorChat], played: dict[str, FirstExchange]
) -> None:
    """segue keeps the conversation; first a client of another API continues it, then the original one."""
    before = played[home]
    assert before.signatures
    chat = segue.Conversation.from_body(before.body, source=home)
    went = _continue(chat, chats[abroad], abroad)
    assert _summarize_calls(went.last.body, abroad) == [*before.ran, *went.ran]
    assert not signatures(went.last.body) & before.signatures

    chat.add_user(LAST)
    back = _continue(chat, chats[home], home)
    assert _summarize_calls(back.last.body, home) == [*before.ran, *went.ran, *back.ran]
    assert signatures(back.last.body) >= before.signatures


class Continued(NamedTuple):
    last: RecordedRequest
    ran: list[tuple[str, Any, str]]


def _continue(chat: segue.Conversation, vendor_chat: VendorChat, api: str) -> Continued:
    """One exchange. The client's own objects are what segue is given."""
    first, model = len(vendor_chat.emulator.requests), ASKED[api]["model"]
    turns: list[list[ClientCall]] = []
    while True:
        vendor_chat.resume(chat.render(api, model=model).body, model)
        reply = vendor_chat.request("at once")
        calls = chat.add_reply(vendor_chat.reply, source=api).calls
        assert [(call.name, call.arguments) for call in calls] == [(one.tool, one.arguments) for one in reply.calls]
        if not calls:
            break
        turns.append(reply.calls)
        for call in calls:
            chat.add_result(call, run_tool(ClientCall(call.id, call.name, call.arguments)))
    requests = vendor_chat.emulator.requests[first:]
    _accepted(requests)
    assert turns
    return Continued(requests[-1], _ran(turns))


@pytest.mark.parametrize("api", VENDOR_CHATS)
def test_a_clients_objects_are_read_as_it_sends_them(api: str) -> None:
    """Those of streams, which hold more than those of whole replies."""
    with start(api) as provider, closing(VENDOR_CHATS[api](provider, **ASKED[api])) as vendor_chat:
        vendor_chat.exchange(loops.QUESTION, "streamed")
        vendor_chat.exchange(NEXT, "streamed")
    sent = dict(provider.requests[-1].body or {})
    held = {**sent, vendor_chat.root: vendor_chat.history[: len(sent[vendor_chat.root])]}
    assert held[vendor_chat.root] != sent[vendor_chat.root] or api == "bedrock"
    for target in ("openai-chat", "anthropic", api):
        rendered, read_off = (
            segue.convert(body, source=api, target=target, model=ASKED[target]["model"]).body for body in (held, sent)
        )
        assert rendered == read_off


def test_constructed_objects_keep_class_defaults() -> None:
    """Roles and types that a class of an SDK has as defaults."""
    call = mistral.ToolCall(id="a1B2c3D4e", function=mistral.FunctionCall(name="f", arguments="{}"))
    reply = [
        mistral.SystemMessage(content="Be brief."),
        mistral.UserMessage(content=[mistral.TextChunk(text="Hello.")]),
        mistral.AssistantMessage(tool_calls=[call]),
        mistral.ToolMessage(content="x", tool_call_id="a1B2c3D4e", name="f"),
        mistral.AssistantMessage(content="Done."),
        mistral.UserMessage(content="Thanks."),
    ]
    contents = [
        gemini.UserContent("Hello."),
        gemini.ModelContent(gemini.Part.from_function_call(name="f", args={})),
        gemini.UserContent(gemini.Part.from_function_response(name="f", response={"output": "x"})),
        gemini.ModelContent("Done."),
        gemini.UserContent("Thanks."),
    ]
    chat = segue.convert({"messages": reply}, source="mistral", target="openai-chat").body["messages"]
    assert [message["role"] for message in chat] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert _summarize_calls({"messages": chat}, "openai-chat") == [("f", {}, "x")]
    others = segue.convert({"contents": contents}, source="gemini", target="openai-chat").body["messages"]
    assert [message["role"] for message in others] == ["user", "assistant", "tool", "assistant", "user"]
    assert [message["content"] for message in others] == [message["content"] for message in chat[1:]]
