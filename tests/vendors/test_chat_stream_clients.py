"""Chat completions that segue streams, read by the clients of OpenAI and Mistral; and what those dump, by segue."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Generator, Iterable
from typing import Any, NamedTuple

import msgspec
import openai
import pytest
from mistralai.client import Mistral
from openai.types.chat import ChatCompletionChunk

import segue
from segue.canonical.blocks import Text
from segue.canonical.request import Reply
from segue.wire.base import ApiError
from segue.wire.registry import WIRES
from segue.wire.stream.events import Failed, reply_events
from tests.conversations.build import call
from tests.conversations.replies import chat_reply
from tests.streams.rendering import render_stream, stream_reply
from tests.vendors.server import CannedServer, serve_canned

WORDS = "Hello wörld 😀, <b>&amp;</b>\n\t“quoted” "
THOUGHT = "Hm.\n\nTwo files, I think."
OPENAIS = ("openai-chat", "kimi", "deepseek", "qwen")
# KIM-01, MIS-01
IDS = {"kimi": ("functions.read_file:0", "functions.read_file:1", "functions.search:2")}
NINE_CHARACTERS = ("a1B2c3D4e", "f5G6h7I8j", "k9L0m1N2o")


class Seen(NamedTuple):
    """What a client makes of a stream."""

    text: str
    thinking: str
    refusal: str
    calls: list[tuple[str, str, Any]]
    finish: str
    usage: tuple[int, int, int] | None


def _calls(api: str) -> list[Any]:
    first, second, third = IDS.get(api, NINE_CHARACTERS)
    return [
        call(first, "read_file", {"path": "a", "deep": {"list": [1, 2.5, None, "é"]}}),
        call(second, "read_file", {}),
        call(third, "search", {"query": 'a "quoted" \\ one'}),
    ]


def _thoughtful(api: str, *calls: Any, text: str | None) -> Any:
    """A body with reasoning where this vendor has it."""
    if api == "mistral":
        parts: list[Any] = [{"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]}]
        return chat_reply(*calls, content=[*parts, *([{"type": "text", "text": text}] if text else [])])
    body = chat_reply(*calls, content=text)
    body["choices"][0]["message"]["reasoning_content"] = THOUGHT
    return body


def _refused(_api: str) -> Any:
    body = chat_reply(content=None)
    body["choices"][0]["message"]["refusal"] = "I can't, sorry."
    return body


BODIES: dict[str, Callable[[str], Any]] = {
    "words": lambda _api: chat_reply(content=WORDS),
    "one call": lambda api: chat_reply(_calls(api)[0]),
    "several calls after words": lambda api: chat_reply(*_calls(api), content=WORDS),
    "reasoning and words": lambda api: _thoughtful(api, text=WORDS),
    "reasoning and calls": lambda api: _thoughtful(api, *_calls(api), text=None),
    "reasoning, words and calls": lambda api: _thoughtful(api, *_calls(api), text=WORDS),
    "words that were cut off": lambda _api: chat_reply(content=WORDS, finish="length"),
    "words that were filtered": lambda _api: chat_reply(content=WORDS, finish="content_filter"),
    "nothing": lambda _api: chat_reply(content=""),
}
REPLIES = [(api, name) for api in (*OPENAIS, "mistral") for name in BODIES]
OPENAI_REPLIES = [*((api, name) for api, name in REPLIES if api != "mistral"), ("openai-chat", "a refusal")]
BODIES["a refusal"] = _refused


def _replies(api: str, name: str) -> Iterable[Reply]:
    """The reply from this vendor, and the same from an unknown source."""
    reply = segue.assemble([BODIES[name](api)], api)
    yield reply
    yield msgspec.structs.replace(
        reply, native=None, blocks=tuple(msgspec.structs.replace(block, native=None) for block in reply.blocks)
    )


def _expected(reply: Reply) -> Seen:
    assert reply.usage is not None
    refusal = "".join(block.text for block in reply.blocks if isinstance(block, Text) and block.refusal)
    calls = [(one.raw_id or "", one.name, one.arguments) for one in reply.calls]
    finish = "content_filter" if reply.finish == "filter" else reply.finish
    usage = (reply.usage.input, reply.usage.output, reply.usage.input + reply.usage.output)
    text = "".join(block.text for block in reply.blocks if isinstance(block, Text) and not block.refusal)
    return Seen(text, reply.thinking, refusal, calls, finish, usage)


# --------------------------------------------------------------------------------------------------------------- OpenAI

ASKED: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Go."}]}


@pytest.fixture(scope="module")
def provider() -> Generator[CannedServer]:
    with serve_canned([]) as server:
        yield server


@pytest.fixture(scope="module")
def client(provider: CannedServer) -> Generator[openai.OpenAI]:
    with openai.OpenAI(api_key="x", base_url=f"{provider.url}/v1", max_retries=0) as made:
        yield made


@pytest.fixture(scope="module")
def mistral(provider: CannedServer) -> Generator[Mistral]:
    with Mistral(api_key="x", server_url=provider.url) as made:
        yield made


def _completed(completion: Any) -> Seen:
    """What the accumulator put together."""
    (choice,) = completion.choices
    message = choice.message
    assert (message.role, completion.object) == ("assistant", "chat.completion")
    calls = [(one.id, one.function.name, json.loads(one.function.arguments)) for one in message.tool_calls or []]
    assert all(one.type == "function" for one in message.tool_calls or [])
    usage = completion.usage and (
        completion.usage.prompt_tokens,
        completion.usage.completion_tokens,
        completion.usage.total_tokens,
    )
    thinking = getattr(message, "reasoning_content", None) or ""
    return Seen(message.content or "", thinking, message.refusal or "", calls, choice.finish_reason, usage)


def _joined(chunks: Iterable[ChatCompletionChunk]) -> Seen:
    """What everybody's own loop over chunks puts together: calls by their index, id and name from their first delta."""
    texts = {"content": "", "reasoning_content": "", "refusal": ""}
    calls: dict[int, list[str]] = {}
    finish, usage = "", None
    for chunk in chunks:
        if chunk.usage is not None:
            usage = (chunk.usage.prompt_tokens, chunk.usage.completion_tokens, chunk.usage.total_tokens)
        for choice in chunk.choices:
            assert not finish, "something was said after the end"
            finish = choice.finish_reason or finish
            for key in texts:
                texts[key] += getattr(choice.delta, key, None) or ""
            for delta in choice.delta.tool_calls or []:
                assert delta.function is not None
                if delta.index not in calls:
                    calls[delta.index] = [delta.id or "", delta.function.name or "", ""]
                else:
                    assert (delta.id, delta.function.name) == (None, None)
                calls[delta.index][2] += delta.function.arguments or ""
    assert [*calls] == [*range(len(calls))]
    made = [(raw_id, name, json.loads(arguments)) for raw_id, name, arguments in calls.values()]
    return Seen(texts["content"], texts["reasoning_content"], texts["refusal"], made, finish, usage)


# What its accumulator makes of replies that are not at their end.
UNFINISHED = {"length": openai.LengthFinishReasonError, "content_filter": openai.ContentFilterFinishReasonError}


@pytest.mark.parametrize(("api", "name"), OPENAI_REPLIES)
def test_openai_reads_the_same_reply(provider: CannedServer, client: openai.OpenAI, api: str, name: str) -> None:
    for reply in _replies(api, name):
        expected = _expected(reply)
        provider.answers = [stream_reply(api, reply, 5)] * 2
        chunks = list(client.chat.completions.create(**ASKED, stream=True))
        assert _joined(chunks) == expected
        assert len({(chunk.id, chunk.model, chunk.created) for chunk in chunks}) == 1
        with client.chat.completions.stream(**ASKED) as stream:
            fired = list(stream)
            assert _completed(stream.current_completion_snapshot) == expected
            if (unfinished := UNFINISHED.get(expected.finish)) is None:
                assert _completed(stream.get_final_completion()) == expected
            else:
                with pytest.raises(unfinished):
                    stream.get_final_completion()
        done = [event for event in fired if event.type == "tool_calls.function.arguments.done"]
        assert [(event.name, json.loads(event.arguments)) for event in done] == [one[1:] for one in expected.calls]


@pytest.mark.parametrize("api", OPENAIS)
def test_openais_asynchronous_client_reads_the_same_reply(provider: CannedServer, api: str) -> None:
    (reply, _) = _replies(api, "reasoning, words and calls")
    provider.answers = [stream_reply(api, reply, 5)] * 2

    async def listen() -> tuple[list[ChatCompletionChunk], Any]:
        async with openai.AsyncOpenAI(api_key="x", base_url=f"{provider.url}/v1", max_retries=0) as client:
            chunks = [chunk async for chunk in await client.chat.completions.create(**ASKED, stream=True)]
            async with client.chat.completions.stream(**ASKED) as stream:
                return chunks, await stream.get_final_completion()

    chunks, completion = asyncio.run(listen())
    assert _joined(chunks) == _completed(completion) == _expected(reply)


def test_openai_reads_a_call_with_free_text(provider: CannedServer, client: openai.OpenAI) -> None:
    free = {"id": "call_1", "type": "custom", "custom": {"name": "patch", "input": '*** Begin\n"a"'}}
    provider.answers = [stream_reply("openai-chat", segue.assemble([chat_reply(free)], "openai-chat"), 5)]
    with client.chat.completions.stream(**ASKED) as stream:
        list(stream)
        (made,) = stream.current_completion_snapshot.choices[0].message.tool_calls or []
    assert {key: value for key, value in made.to_dict().items() if key in free} == free


def test_openai_reads_a_call_that_was_cut_off(provider: CannedServer, client: openai.OpenAI) -> None:
    """Its words are those that came, and the end says why."""
    reply = segue.assemble([chat_reply(call("call_1", "read_file", '{"path": "a'), finish="length")], "openai-chat")
    provider.answers = [stream_reply("openai-chat", reply, 5)]
    with client.chat.completions.stream(**ASKED) as stream:
        list(stream)
        (choice,) = stream.current_completion_snapshot.choices
    (made,) = choice.message.tool_calls or []
    assert (made.function.arguments, choice.finish_reason) == ('{"path": "a', "length")


@pytest.mark.parametrize("api", OPENAIS)
def test_openai_reads_a_failure(provider: CannedServer, client: openai.OpenAI, api: str) -> None:
    events_sent = [
        *reply_events(WIRES[api].parse_reply(chat_reply(content="Hi")))[:-2],
        Failed(ApiError(429, "Slow down.")),
    ]
    provider.answers = [render_stream(api, events_sent)]
    with pytest.raises(openai.APIError, match=r"Slow down\."):
        list(client.chat.completions.create(**ASKED, stream=True))


@pytest.mark.parametrize(("api", "name"), OPENAI_REPLIES)
def test_chunks_of_openais_types_are_read(provider: CannedServer, client: openai.OpenAI, api: str, name: str) -> None:
    """As its client has them, dumped with everything that is null, and dumped without."""
    (reply, _) = _replies(api, name)
    provider.answers = [stream_reply(api, reply, 5)]
    chunks = list(client.chat.completions.create(**ASKED, stream=True))
    dumped = [chunk.model_dump(mode="json") for chunk in chunks]
    bare = [chunk.model_dump(mode="json", exclude_none=True) for chunk in chunks]
    for payloads in (chunks, dumped, bare):
        assert _expected(segue.assemble(payloads, api)) == _expected(reply)


# -------------------------------------------------------------------------------------------------------------- Mistral


def _join_mistral(events: Iterable[Any]) -> Seen:
    """What a client of Mistral puts together: calls come whole, reasoning stands among the parts."""
    text, thinking, finish, usage = "", "", "", None
    calls: list[tuple[str, str, Any]] = []
    for event in events:
        (choice,) = event.data.choices
        assert not finish, "something was said after the end"
        finish = choice.finish_reason or ""
        if event.data.usage:
            usage = (event.data.usage.prompt_tokens, event.data.usage.completion_tokens, event.data.usage.total_tokens)
        content = choice.delta.content or ""
        if isinstance(content, str):
            text += content
        else:
            for part in content:
                if part.type == "thinking":
                    thinking += "".join(piece.text for piece in part.thinking)
                else:
                    text += part.text
        found = choice.delta.tool_calls or []
        calls += [(one.id, one.function.name, json.loads(one.function.arguments)) for one in found]
    return Seen(text, thinking, "", calls, finish, usage)


# Its client has no word for a filter, and reads what it does not know as it is.
@pytest.mark.parametrize("name", [name for api, name in REPLIES if api == "mistral"])
def test_mistral_reads_the_same_reply(provider: CannedServer, mistral: Mistral, name: str) -> None:
    for reply in _replies("mistral", name):
        provider.answers = [stream_reply("mistral", reply, 5)]
        with mistral.chat.stream(**ASKED) as stream:
            assert _join_mistral(stream) == _expected(reply)


def test_mistrals_asynchronous_client_reads_the_same_reply(provider: CannedServer) -> None:
    (reply, _) = _replies("mistral", "reasoning, words and calls")
    provider.answers = [stream_reply("mistral", reply, 5)]

    async def listen() -> list[Any]:
        async with Mistral(api_key="x", server_url=provider.url) as client:
            return [event async for event in await client.chat.stream_async(**ASKED)]

    assert _join_mistral(asyncio.run(listen())) == _expected(reply)


@pytest.mark.parametrize("name", [name for api, name in REPLIES if api == "mistral"])
def test_events_of_mistrals_types_are_read(provider: CannedServer, mistral: Mistral, name: str) -> None:
    (reply, _) = _replies("mistral", name)
    provider.answers = [stream_reply("mistral", reply, 5)]
    with mistral.chat.stream(**ASKED) as stream:
        events = list(stream)
    dumped = [event.data.model_dump(mode="json", warnings=False) for event in events]
    for payloads in (events, [event.data for event in events], dumped):
        assert _expected(segue.assemble(payloads, "mistral")) == _expected(reply)
