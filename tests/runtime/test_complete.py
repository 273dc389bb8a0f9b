"""`segue.complete`: any API's request to any provider, and the reply in the API of the request."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, cast

import pytest

import segue
from segue.bridge.envelopes import EnvelopeKeys
from segue.emulator import Emulator, start
from segue.wire.registry import WIRES

KEYS = EnvelopeKeys(b"k" * 32)
MESSAGES = [{"role": "user", "content": "Hello"}]
SCRIPT = 'think A thought.\nsay Looking.\ncall look {"n": 1}\n---\nsay Done.'
APIS = tuple(WIRES)
# The request of each API, and where its reply has the text.
BODIES: dict[str, tuple[dict[str, Any], Any]] = {
    "openai-chat": ({"messages": MESSAGES}, lambda reply: reply["choices"][0]["message"]["content"]),
    "openai-responses": ({"input": "Hello"}, lambda reply: reply["output"][-1]["content"][0]["text"]),
    "anthropic": ({"messages": MESSAGES, "max_tokens": 100}, lambda reply: reply["content"][-1]["text"]),
    "gemini": (
        {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]},
        lambda reply: reply["candidates"][0]["content"]["parts"][-1]["text"],
    ),
    "bedrock": (
        {"messages": [{"role": "user", "content": [{"text": "Hello"}]}]},
        lambda reply: reply["output"]["message"]["content"][-1]["text"],
    ),
}


def options(emulator: Emulator, name: str = "x") -> dict[str, Any]:
    provider = {"api": emulator.api, "base_url": emulator.base_url, "key_variable": "KEY"}
    return {"providers": {name: provider}, "environ": {"KEY": "k", "AWS_REGION": "us-east-1"}, "envelope_keys": KEYS}


def model_of(emulator: Emulator, name: str = "x") -> str:
    return f"{name}/{WIRES[emulator.api].default_model}"


@pytest.mark.parametrize("api", APIS)
def test_reply_has_the_api_of_the_request(api: str) -> None:
    with start(api, script="\n---\n".join(["say Hi there."] * 10)) as emulator:
        for name, (body, find_text) in BODIES.items():
            source = cast("segue.Api", name)
            reply = segue.complete(body, model_of(emulator), source=source, **options(emulator))
            assert find_text(reply) == "Hi there."
            assert reply.target == model_of(emulator)
            assert reply.usage is not None
            assert reply.report is not None
            events = segue.complete(body, model_of(emulator), source=source, stream=True, **options(emulator))
            streamed = segue.assemble(list(events), source)
            assert streamed.text == "Hi there."
        assert not [request.refused for request in emulator.requests if request.refused]


def test_list_of_messages_is_chat_and_fields_are_added() -> None:
    look = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
    with start("anthropic", script=SCRIPT) as emulator:
        reply = segue.complete(MESSAGES, model_of(emulator), tools=[look], temperature=1, **options(emulator))
        message = reply["choices"][0]["message"]
        (call,) = message["tool_calls"]
        assert call["function"] == {"name": "look", "arguments": '{"n":1}'}
        history = [*MESSAGES, message, {"role": "tool", "tool_call_id": call["id"], "content": "seen"}]
        answer = segue.complete(history, model_of(emulator), tools=[look], **options(emulator))
        assert answer["choices"][0]["message"]["content"] == "Done."
        assert emulator.requests[0].body is not None
        assert emulator.requests[0].body["tools"][0]["name"] == "look"


def test_works_inside_a_running_loop_and_from_threads() -> None:
    with start("gemini", script="\n---\n".join(["say Hi."] * 12)) as emulator:

        async def call() -> None:
            reply = await segue.acomplete(MESSAGES, model_of(emulator), **options(emulator))
            assert reply["choices"][0]["message"]["content"] == "Hi."
            blocking = segue.complete(MESSAGES, model_of(emulator), **options(emulator))
            assert blocking["choices"][0]["message"]["content"] == "Hi."
            events = await segue.acomplete(MESSAGES, model_of(emulator), stream=True, **options(emulator))
            async with events:
                assert [event async for event in events]

        asyncio.run(call())
        threads = [threading.Thread(target=asyncio.run, args=(call(),)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(emulator.requests) == 9


def test_fallback_is_used_before_any_content() -> None:
    with start("anthropic", script="error 529 Overloaded.") as first, start("kimi", script="say Hi.") as second:
        settings = options(first, "a")
        settings["providers"] |= options(second, "b")["providers"]
        reply = segue.complete(MESSAGES, model_of(first, "a"), fallbacks=[model_of(second, "b")], **settings)
        assert reply.target == model_of(second, "b")
        assert len(first.requests) == 1


def test_failures_are_raised() -> None:
    with start("anthropic", script="error 400 No.\n---\nsay Half a\ncut reset") as emulator:
        with pytest.raises(segue.ProviderError, match="rejected the request"):
            segue.complete(MESSAGES, model_of(emulator), **options(emulator))
        events = segue.complete(MESSAGES, model_of(emulator), stream=True, **options(emulator))
        texts: list[str] = []
        with pytest.raises(segue.ProviderError):  # noqa: PT012  the events before the error count too
            for event in events:
                texts += [choice["delta"].get("content") or "" for choice in event.get("choices", ())]
        assert "Half" in "".join(texts)


@pytest.mark.parametrize(
    ("body", "model", "error"),
    [
        ([], "anthropic/claude-sonnet-5", "this list is empty"),
        (MESSAGES, "nowhere/model", "not a known provider"),
        ([{"role": "king", "content": "x"}], "anthropic/claude-sonnet-5", r"messages\[0\]\.role"),
        (b"{", "anthropic/claude-sonnet-5", "JSON"),
        (5, "anthropic/claude-sonnet-5", "expected"),
        (MESSAGES, 5, "model"),
    ],
)
def test_bad_input_is_an_input_error(body: Any, model: Any, error: str) -> None:
    with pytest.raises(segue.InputError, match=error):
        segue.complete(body, model, environ={"ANTHROPIC_API_KEY": "k"}, envelope_keys=KEYS)


def test_missing_key_is_named() -> None:
    with pytest.raises(segue.ProviderError, match="ANTHROPIC_API_KEY"):
        segue.complete(MESSAGES, "anthropic/claude-sonnet-5", environ={}, envelope_keys=KEYS)


def test_closed_stream_cancels_the_reply() -> None:
    with start("openai-chat", script="say One.\nwait 30\nsay Two.") as emulator:
        with segue.complete(MESSAGES, model_of(emulator), stream=True, **options(emulator)) as events:
            assert next(events)
        assert list(events) == []


def test_argument_decides_whether_the_reply_is_streamed() -> None:
    with start("anthropic", script="say Hi.\n---\nsay Hi.") as emulator:
        reply = segue.complete({"messages": MESSAGES, "stream": True}, model_of(emulator), **options(emulator))
        assert reply["choices"][0]["message"]["content"] == "Hi."
        body = {"messages": MESSAGES, "stream": False}
        assert list(segue.complete(body, model_of(emulator), stream=True, **options(emulator)))


@pytest.mark.parametrize(
    "argument", [{"fallbacks": "anthropic/claude-sonnet-5"}, {"fallbacks": 5}, {"timeout": 0}, {"timeout": "long"}]
)
def test_wrong_arguments_are_named(argument: dict[str, Any]) -> None:
    with pytest.raises(segue.InputError, match=next(iter(argument))):
        segue.complete(MESSAGES, "anthropic/claude-sonnet-5", environ={"ANTHROPIC_API_KEY": "k"}, **argument)


@pytest.mark.parametrize(
    ("arguments", "fields", "error"),
    [
        (("x/y", MESSAGES), {}, "the body comes first"),
        ((MESSAGES,), {}, "no model is named"),
        ((MESSAGES, "emulated"), {"max_token": 1}, "did you mean 'max_tokens'"),
        ((MESSAGES, "emulated"), {"timout": 1}, "did you mean 'timeout'"),
        ((MESSAGES, "emulated"), {"fallback": ["x/y"]}, "did you mean 'fallbacks'"),
        ((segue.Conversation(), "emulated"), {"stream": True}, "stream"),
        ((segue.Conversation(), "emulated"), {"tools": []}, "tools"),
    ],
)
def test_wrong_call_says_what_was_meant(arguments: Any, fields: dict[str, Any], error: str) -> None:
    with pytest.raises(segue.InputError, match=error):
        segue.complete(*arguments, **fields)


def test_every_way_to_name_the_arguments_works() -> None:
    texts = {
        segue.complete(MESSAGES, "emulated").text,
        segue.complete(model="emulated", messages=MESSAGES).text,
        segue.complete({"messages": MESSAGES}, model="emulated", max_tokens=100).text,
        segue.complete(body=MESSAGES, model="emulated", provider={"order": []}).text,
    }
    assert len(texts) == 1


def test_conversation_is_continued_by_any_model() -> None:
    look = {"name": "look_up", "input_schema": {"type": "object", "properties": {"word": {"type": "string"}}}}
    chat = segue.Conversation(tools=[look])
    for model in ("claude-sonnet-5", "gpt-6-sol", "gemini-3.8-flash", "kimi-k2.6"):
        chat.add_user(f'Look up "{model}"')
        segue.complete(chat, f"emulated/{model}")
        (call,) = chat.pending
        chat.add_result(call, f"found by {model}")
        assert f"found by {model}" in segue.complete(chat, f"emulated/{model}").text
    assert len(chat.messages) == 16
