"""A history that one vendor's client has made goes on with another's, for every pair of APIs."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, closing
from typing import Any, NamedTuple

import pytest
from google.genai import types as gemini
from mistralai.client import models as mistral

import segue
from segue.emulator import Recorded, start
from tests.properties.readers import read
from tests.vendors import loops
from tests.vendors.clients import Called

from .talks import TALKS, How, Talk, found, run

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
HOMES = ("openai-responses", "anthropic", "gemini", "bedrock")
SEALS = ("signature", "thoughtSignature", "encrypted_content")
NEXT = "And in Bergen and in Porto?"
LAST = "How warm is it in Rome, and how late is it in Europe/Rome?"
HOWS: tuple[How, How] = ("at once", "streamed")


class Played(NamedTuple):
    """One exchange, and the user's next words. `seals` are what the provider put under its thoughts."""

    body: dict[str, Any]
    ran: list[tuple[str, Any, str]]
    seals: frozenset[str]


@pytest.fixture(scope="module")
def talks() -> Generator[dict[str, Talk]]:
    """A client of every API, each with a provider of its own."""
    with ExitStack() as stack:
        yield {
            api: stack.enter_context(closing(talk(stack.enter_context(start(api, seed=7)), **ASKED[api])))
            for api, talk in TALKS.items()
        }


@pytest.fixture(scope="module")
def played(talks: dict[str, Talk]) -> dict[str, Played]:
    return {api: _played(talk) for api, talk in talks.items()}


def _played(talk: Talk) -> Played:
    turns, _ = talk.exchange(loops.QUESTION, "at once")
    sealed = seals(talk.emulator.requests[-1].body)
    talk.say(NEXT)
    return Played(talk.sent, _ran(turns), sealed)


def seals(body: Any) -> frozenset[str]:
    return frozenset(seal for key in SEALS for seal in found(body, key) if not seal.startswith("skip_"))


def _ran(turns: list[list[Called]]) -> list[tuple[str, Any, str]]:
    return [(call.tool, call.arguments, run(call)) for calls in turns for call in calls]


def _accepted(requests: list[Recorded]) -> None:
    for request in requests:
        assert request.accepted, (request.refused, request.body)
        assert not [one for one in request.violations if one.severity == "reject"]


def _told(body: Any, api: str) -> list[tuple[str, Any, str | None]]:
    reading = read(dict(body), api)
    assert not reading.surplus
    ids = [one for one in reading.ids if one is not None]
    assert len(set(ids)) == len(ids)
    return [(one.name, one.arguments, one.text) for one in reading.interactions]


@pytest.mark.parametrize("target", TALKS)
@pytest.mark.parametrize("source", TALKS)
def test_a_history_goes_on_with_another_client(
    source: str, target: str, talks: dict[str, Talk], played: dict[str, Played]
) -> None:
    before, there = played[source], talks[target]
    how = HOWS[(list(TALKS).index(source) + list(TALKS).index(target)) % 2]
    converted = segue.convert(before.body, source=source, target=target, model=ASKED[target]["model"])
    first = len(there.emulator.requests)
    there.resumed(converted.body, ASKED[target]["model"])
    turns, text = there.answered(how)

    requests = there.emulator.requests[first:]
    _accepted(requests)
    new = _ran(turns)
    assert len(new) > 1
    assert _told(requests[0].body, target) == before.ran
    assert _told(requests[-1].body, target) == [*before.ran, *new]
    assert all(" ".join(result.split()) in " ".join(text.split()) for _, _, result in new)
    sealed = seals(requests[0].body)
    if source == target and source != "azure-foundry":
        assert sealed >= before.seals
    elif source != target:
        assert not sealed & before.seals, "what one provider signed is of no use to another"


@pytest.mark.parametrize(("home", "abroad"), [(home, api) for home in HOMES for api in TALKS if api != home])
def test_what_was_thought_is_there_again_at_home(
    home: str, abroad: str, talks: dict[str, Talk], played: dict[str, Played]
) -> None:
    """segue keeps the conversation; the clients are lent it, first one abroad, then the one that began it."""
    before = played[home]
    assert before.seals
    chat = segue.Conversation.from_body(before.body, source=home)
    went = _went_on(chat, talks[abroad], abroad)
    assert _told(went.last.body, abroad) == [*before.ran, *went.ran]
    assert not seals(went.last.body) & before.seals

    chat.add_user(LAST)
    back = _went_on(chat, talks[home], home)
    assert _told(back.last.body, home) == [*before.ran, *went.ran, *back.ran]
    assert seals(back.last.body) >= before.seals


class Gone(NamedTuple):
    last: Recorded
    ran: list[tuple[str, Any, str]]


def _went_on(chat: segue.Conversation, talk: Talk, api: str) -> Gone:
    """One exchange. The client's own objects are what segue is given."""
    first, model = len(talk.emulator.requests), ASKED[api]["model"]
    turns: list[list[Called]] = []
    while True:
        talk.resumed(chat.render(api, model=model).body, model)
        said = talk.ask("at once")
        calls = chat.add_reply(talk.reply, source=api).calls
        assert [(call.name, call.arguments) for call in calls] == [(one.tool, one.arguments) for one in said.calls]
        if not calls:
            break
        turns.append(said.calls)
        for call in calls:
            chat.add_result(call, run(Called(call.id, call.name, call.arguments)))
    requests = talk.emulator.requests[first:]
    _accepted(requests)
    assert turns
    return Gone(requests[-1], _ran(turns))


@pytest.mark.parametrize("api", TALKS)
def test_a_clients_objects_are_read_as_it_sends_them(api: str) -> None:
    """Those of streams, which hold more than those of whole replies."""
    with start(api) as provider, closing(TALKS[api](provider, **ASKED[api])) as talk:
        talk.exchange(loops.QUESTION, "streamed")
        talk.exchange(NEXT, "streamed")
    sent = dict(provider.requests[-1].body or {})
    held = {**sent, talk.root: talk.history[: len(sent[talk.root])]}
    assert held[talk.root] != sent[talk.root] or api == "bedrock"
    for target in ("openai-chat", "anthropic", api):
        told, read_off = (
            segue.convert(body, source=api, target=target, model=ASKED[target]["model"]).body for body in (held, sent)
        )
        assert told == read_off


def test_objects_made_by_hand_keep_what_their_class_says() -> None:
    """Roles and types that a class of an SDK has as defaults."""
    call = mistral.ToolCall(id="a1B2c3D4e", function=mistral.FunctionCall(name="f", arguments="{}"))
    said = [
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
    chat = segue.convert({"messages": said}, source="mistral", target="openai-chat").body["messages"]
    assert [message["role"] for message in chat] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert _told({"messages": chat}, "openai-chat") == [("f", {}, "x")]
    others = segue.convert({"contents": contents}, source="gemini", target="openai-chat").body["messages"]
    assert [message["role"] for message in others] == ["user", "assistant", "tool", "assistant", "user"]
    assert [message["content"] for message in others] == [message["content"] for message in chat[1:]]
