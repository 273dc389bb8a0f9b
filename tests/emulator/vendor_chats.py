"""Conversations held with the vendors' own clients, unmodified. The history is kept as each vendor's examples keep it.

`add_user` adds a question, `request` calls the model, `add_results` adds the tool results. `resume` takes a whole
request body: its members become the parameters of the client's method.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import anthropic
import openai
from google import genai
from google.genai import types as gemini
from mistralai.client import Mistral as MistralClient
from mistralai.client import models as mistral
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from segue.emulator import Emulator
from tests import converse
from tests.vendors import boto, loops
from tests.vendors.clients import ClientCall

RequestMode = Literal["at once", "streamed", "async", "async streamed"]
KEY = "a-key"


class ChatReply(NamedTuple):
    text: str
    calls: list[ClientCall]


def run_tool(call: ClientCall) -> str:
    return loops.TOOLS[call.tool](**call.arguments)


def find_values(value: Any, key: str) -> Iterator[Any]:
    """All values under this key, at any depth."""
    if isinstance(value, dict):
        yield from (inner for name, inner in value.items() if name == key and inner is not None)
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from find_values(inner, key)


class VendorChat(ABC):
    root: ClassVar[str]
    """The parameter that holds the history, which is the member of the body too."""
    model_key: ClassVar[str] = "model"

    def __init__(self, emulator: Emulator, **arguments: Any) -> None:
        self.emulator = emulator
        self.arguments = {**arguments, self.root: []}
        self.closing = ExitStack()
        self.client = self.connect(emulator)
        self._loop: asyncio.Runner | None = None
        self.reply: Any = None
        """What the client gave last."""

    def close(self) -> None:
        self.closing.close()

    @property
    def history(self) -> list[Any]:
        return self.arguments[self.root]

    def resume(self, body: Mapping[str, Any], model: str) -> None:
        whole = {**body, self.model_key: model}
        self.arguments = self.parameters({key: value for key, value in whole.items() if key != "stream"})

    @property
    def sent(self) -> dict[str, Any]:
        """The body that was sent last, with all that was appended since."""
        body = dict(self.emulator.requests[-1].body or {})
        return {**body, self.root: [*body[self.root], *self.history[len(body[self.root]) :]]}

    def request(self, how: RequestMode) -> ChatReply:
        if how in ("at once", "streamed"):
            self.reply = self.request_sync(stream=how == "streamed")
        else:
            if self._loop is None:
                self._loop = self.closing.enter_context(asyncio.Runner())
                self.closing.callback(lambda: self._loop and self._loop.run(self.close_async()))
            self.reply = self._loop.run(self.request_async(stream=how == "async streamed"))
        return self.append_reply(self.reply)

    def exchange(self, question: str, how: RequestMode) -> tuple[list[list[ClientCall]], str]:
        """Sends requests until there are no calls: the calls of each turn, and the final text."""
        self.add_user(question)
        return self.run_until_text(how)

    def run_until_text(self, how: RequestMode) -> tuple[list[list[ClientCall]], str]:
        turns: list[list[ClientCall]] = []
        while True:
            answer = self.request(how)
            if not answer.calls:
                return turns, answer.text
            turns.append(answer.calls)
            assert len(turns) < 4, "the model calls without end"
            self.add_results([(call, run_tool(call)) for call in answer.calls])

    @abstractmethod
    def connect(self, emulator: Emulator) -> Any: ...

    async def close_async(self) -> None:
        """Closes the client that is asked in a loop."""
        raise NotImplementedError

    def parameters(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return dict(body)

    def add_user(self, text: str) -> None:
        self.history.append({"role": "user", "content": text})

    @abstractmethod
    def request_sync(self, *, stream: bool) -> Any: ...

    async def request_async(self, *, stream: bool) -> Any:
        raise NotImplementedError

    @abstractmethod
    def append_reply(self, reply: Any) -> ChatReply:
        """Appends a reply to the history."""

    @abstractmethod
    def add_results(self, results: list[tuple[ClientCall, str]]) -> None: ...


# -------------------------------------------------------------------------------------------------------------- OpenAI


def _with_extras(method: Callable[..., Any], body: Mapping[str, Any]) -> dict[str, Any]:
    """What OpenAI's client has no parameter for goes into `extra_body`, as its other vendors tell."""
    known = inspect.signature(method).parameters
    extra = {key: value for key, value in body.items() if key not in known}
    own = {key: value for key, value in body.items() if key in known}
    return {**own, **({"extra_body": extra} if extra else {})}


class _OpenAI(VendorChat):
    @cached_property
    def later(self) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(base_url=self.emulator.base_url, api_key=KEY, max_retries=0)

    def connect(self, emulator: Emulator) -> openai.OpenAI:
        return self.closing.enter_context(openai.OpenAI(base_url=emulator.base_url, api_key=KEY, max_retries=0))

    async def close_async(self) -> None:
        await self.later.close()


class Chat(_OpenAI):
    root = "messages"

    def __init__(self, emulator: Emulator, **arguments: Any) -> None:
        super().__init__(emulator, **{"tools": loops.chat_tools(), **arguments})

    def parameters(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return _with_extras(self.client.chat.completions.create, body)

    def request_sync(self, *, stream: bool) -> Any:
        if not stream:
            return self.client.chat.completions.create(**self.arguments)
        with self.client.chat.completions.stream(**self.arguments, stream_options={"include_usage": True}) as events:
            return events.get_final_completion()

    async def request_async(self, *, stream: bool) -> Any:
        if not stream:
            return await self.later.chat.completions.create(**self.arguments)
        usage: Any = {"include_usage": True}
        async with self.later.chat.completions.stream(**self.arguments, stream_options=usage) as events:
            return await events.get_final_completion()

    def append_reply(self, reply: Any) -> ChatReply:
        assert isinstance(reply, ChatCompletion)
        assert reply.usage is not None
        assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens > 0
        (choice,) = reply.choices
        calls: list[Any] = choice.message.tool_calls or []
        assert choice.finish_reason == ("tool_calls" if calls else "stop")
        self.history.append(choice.message)
        found = [ClientCall(one.id, one.function.name, json.loads(one.function.arguments)) for one in calls]
        return ChatReply(choice.message.content or "", found)

    def add_results(self, results: list[tuple[ClientCall, str]]) -> None:
        self.arguments[self.root] += [
            {"role": "tool", "tool_call_id": call.id, "content": text} for call, text in results
        ]


class Responses(_OpenAI):
    root = "input"

    def __init__(self, emulator: Emulator, **arguments: Any) -> None:
        super().__init__(emulator, **{"tools": loops.response_tools(), **arguments})

    def parameters(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return _with_extras(self.client.responses.create, body)

    def request_sync(self, *, stream: bool) -> Any:
        if not stream:
            return self.client.responses.create(**self.arguments)
        with self.client.responses.stream(**self.arguments) as events:
            return events.get_final_response()

    async def request_async(self, *, stream: bool) -> Any:
        if not stream:
            return await self.later.responses.create(**self.arguments)
        async with self.later.responses.stream(**self.arguments) as events:
            return await events.get_final_response()

    def append_reply(self, reply: Any) -> ChatReply:
        assert isinstance(reply, Response)
        assert (reply.status, reply.error) == ("completed", None)
        assert reply.usage is not None
        assert reply.usage.total_tokens == reply.usage.input_tokens + reply.usage.output_tokens > 0
        self.append_output(reply)
        calls = [one for one in reply.output if one.type == "function_call"]
        return ChatReply(
            reply.output_text, [ClientCall(one.call_id, one.name, json.loads(one.arguments)) for one in calls]
        )

    def append_output(self, reply: Response) -> None:
        self.history.extend(reply.output)

    def add_results(self, results: list[tuple[ClientCall, str]]) -> None:
        for call, text in results:
            self.history.append({"type": "function_call_output", "call_id": call.id, "output": text})


class StoredResponses(Responses):
    """The provider stores the conversation; only new items are sent."""

    def append_output(self, reply: Response) -> None:
        self.arguments |= {"previous_response_id": reply.id, "input": []}


# ----------------------------------------------------------------------------------------------------------- Anthropic


class Anthropic(VendorChat):
    root = "messages"

    def __init__(self, emulator: Emulator, **arguments: Any) -> None:
        tools = [
            {"name": name, "description": schema.__doc__, "input_schema": schema.model_json_schema()}
            for name, schema in loops.SCHEMAS.items()
        ]
        super().__init__(emulator, **{"max_tokens": 4000, "tools": tools, **arguments})

    @cached_property
    def later(self) -> anthropic.AsyncAnthropic:
        return anthropic.AsyncAnthropic(base_url=self.emulator.base_url, api_key=KEY, max_retries=0)

    def connect(self, emulator: Emulator) -> anthropic.Anthropic:
        return self.closing.enter_context(anthropic.Anthropic(base_url=emulator.base_url, api_key=KEY, max_retries=0))

    async def close_async(self) -> None:
        await self.later.close()

    def request_sync(self, *, stream: bool) -> Any:
        if not stream:
            return self.client.messages.create(**self.arguments)
        with self.client.messages.stream(**self.arguments) as events:
            return events.get_final_message()

    async def request_async(self, *, stream: bool) -> Any:
        if not stream:
            return await self.later.messages.create(**self.arguments)
        async with self.later.messages.stream(**self.arguments) as events:
            return await events.get_final_message()

    def append_reply(self, reply: Any) -> ChatReply:
        assert isinstance(reply, anthropic.types.Message)
        assert reply.usage.input_tokens + (reply.usage.cache_read_input_tokens or 0) > 0
        assert reply.usage.output_tokens > 0
        uses = [block for block in reply.content if block.type == "tool_use"]
        assert reply.stop_reason == ("tool_use" if uses else "end_turn")
        self.history.append({"role": "assistant", "content": reply.content})
        text = "".join(block.text for block in reply.content if block.type == "text")
        return ChatReply(text, [ClientCall(use.id, use.name, use.input) for use in uses])

    def add_results(self, results: list[tuple[ClientCall, str]]) -> None:
        blocks = [{"type": "tool_result", "tool_use_id": call.id, "content": text} for call, text in results]
        self.history.append({"role": "user", "content": blocks})


# -------------------------------------------------------------------------------------------------------------- Gemini


class Gemini(VendorChat):
    root = "contents"

    def __init__(self, emulator: Emulator, *, model: str, **config: Any) -> None:
        declared: Any = [
            {"name": name, "description": schema.__doc__, "parameters_json_schema": schema.model_json_schema()}
            for name, schema in loops.SCHEMAS.items()
        ]
        tools: list[Any] = [gemini.Tool(function_declarations=declared)]
        super().__init__(emulator, model=model, config=gemini.GenerateContentConfig(tools=tools, **config))

    def connect(self, emulator: Emulator) -> genai.Client:
        return self.closing.enter_context(
            genai.Client(api_key=KEY, http_options=gemini.HttpOptions(base_url=emulator.base_url))
        )

    async def close_async(self) -> None:
        await self.client.aio.aclose()

    def parameters(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The client has its own classes for all of it; bytes are base64 text in JSON."""
        rest = {key: value for key, value in body.items() if key not in ("model", "contents", "generationConfig")}
        config = json.dumps({**body.get("generationConfig", {}), **rest})
        return {
            "model": body["model"],
            "contents": [gemini.Content.model_validate_json(json.dumps(one)) for one in body["contents"]],
            "config": gemini.GenerateContentConfig.model_validate_json(config),
        }

    def add_user(self, text: str) -> None:
        self.history.append(gemini.UserContent(text))

    def request_sync(self, *, stream: bool) -> Any:
        if not stream:
            return self.client.models.generate_content(**self.arguments)
        return list(self.client.models.generate_content_stream(**self.arguments))

    async def request_async(self, *, stream: bool) -> Any:
        if not stream:
            return await self.client.aio.models.generate_content(**self.arguments)
        return [chunk async for chunk in await self.client.aio.models.generate_content_stream(**self.arguments)]

    def append_reply(self, reply: Any) -> ChatReply:
        chunks = reply if isinstance(reply, list) else [reply]
        assert all(isinstance(chunk, gemini.GenerateContentResponse) for chunk in chunks)
        usage = chunks[-1].usage_metadata
        counts = (usage.prompt_token_count, usage.candidates_token_count, usage.thoughts_token_count)
        assert usage.total_token_count == sum(count or 0 for count in counts) > 0
        parts = [part for chunk in chunks for part in chunk.parts or []]
        assert chunks[-1].candidates[0].finish_reason == gemini.FinishReason.STOP
        self.history.append(gemini.ModelContent(parts=parts))
        calls = [part.function_call for part in parts if part.function_call]
        text = "".join(part.text or "" for part in parts if not part.thought)
        return ChatReply(text, [ClientCall(call.id, call.name or "", call.args) for call in calls])

    def add_results(self, results: list[tuple[ClientCall, str]]) -> None:
        given = [
            gemini.FunctionResponse(id=call.id, name=call.tool, response={"output": text}) for call, text in results
        ]
        self.history.append(gemini.Content(role="user", parts=[gemini.Part(function_response=one) for one in given]))


# ------------------------------------------------------------------------------------------------------------- Mistral


class Mistral(VendorChat):
    root = "messages"

    def __init__(self, emulator: Emulator, **arguments: Any) -> None:
        super().__init__(emulator, **{"tools": loops.mistral_tools(), **arguments})

    def connect(self, emulator: Emulator) -> MistralClient:
        return self.closing.enter_context(MistralClient(api_key=KEY, server_url=emulator.base_url))

    async def close_async(self) -> None:
        async with self.client:
            """It is closed on leaving."""

    def request_sync(self, *, stream: bool) -> Any:
        if not stream:
            return self.client.chat.complete(**self.arguments)
        with self.client.chat.stream(**self.arguments) as events:
            return [event.data for event in events]

    async def request_async(self, *, stream: bool) -> Any:
        if not stream:
            return await self.client.chat.complete_async(**self.arguments)
        async with await self.client.chat.stream_async(**self.arguments) as events:
            return [event.data async for event in events]

    def append_reply(self, reply: Any) -> ChatReply:
        message, usage = _mistral_message(reply)
        assert usage.prompt_tokens is not None
        assert usage.completion_tokens is not None
        assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens > 0
        self.history.append(message)
        calls: list[Any] = message.tool_calls or []
        content = message.content or ""
        text = content if isinstance(content, str) else "".join(getattr(chunk, "text", "") for chunk in content)
        return ChatReply(
            text, [ClientCall(one.id, one.function.name, json.loads(one.function.arguments)) for one in calls]
        )

    def add_results(self, results: list[tuple[ClientCall, str]]) -> None:
        for call, text in results:
            self.history.append({"role": "tool", "tool_call_id": call.id, "name": call.tool, "content": text})


def _mistral_message(reply: Any) -> tuple[mistral.AssistantMessage, mistral.UsageInfo]:
    """The message of a reply, or of the chunks of one: the client has nothing that puts them together."""
    if isinstance(reply, mistral.ChatCompletionResponse):
        (choice,) = reply.choices
        assert isinstance(choice.message, mistral.AssistantMessage)
        assert choice.finish_reason == ("tool_calls" if choice.message.tool_calls else "stop")
        return choice.message, reply.usage
    assert all(isinstance(chunk, mistral.CompletionChunk) for chunk in reply)
    deltas = [chunk.choices[0].delta for chunk in reply if chunk.choices]
    calls = [call for delta in deltas for call in delta.tool_calls or []]
    contents = [delta.content for delta in deltas if delta.content]
    chunks = [chunk for content in contents if not isinstance(content, str) for chunk in content]
    text = "".join(content for content in contents if isinstance(content, str))
    content = [*chunks, *([mistral.TextChunk(text=text)] if text else [])] if chunks else text
    return mistral.AssistantMessage(content=content, tool_calls=calls or None), reply[-1].usage


# ------------------------------------------------------------------------------------------------------------- Bedrock


class Bedrock(VendorChat):
    root = "messages"
    model_key = "modelId"

    def __init__(self, emulator: Emulator, *, model: str, **arguments: Any) -> None:
        super().__init__(emulator, **{"modelId": model, "toolConfig": {"tools": boto.tools()}, **arguments})

    def connect(self, emulator: Emulator) -> Any:
        return boto.connect(emulator.base_url)

    def parameters(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return converse.as_parameters(dict(body))

    def add_user(self, text: str) -> None:
        self.history.append({"role": "user", "content": [{"text": text}]})

    def request_sync(self, *, stream: bool) -> Any:
        if not stream:
            return self.client.converse(**self.arguments)
        events = list(self.client.converse_stream(**self.arguments)["stream"])
        message = {"role": "assistant", "content": list(boto.collect_blocks(events))}
        (stopped,) = (event["messageStop"] for event in events if "messageStop" in event)
        return {"output": {"message": message}, "usage": boto.collect_usage(events), **stopped}

    def append_reply(self, reply: Any) -> ChatReply:
        message, usage = reply["output"]["message"], reply["usage"]
        read = usage["inputTokens"] + usage.get("cacheReadInputTokens", 0)
        assert usage["totalTokens"] == read + usage["outputTokens"] > 0
        self.history.append(message)
        uses = [block["toolUse"] for block in message["content"] if "toolUse" in block]
        assert reply["stopReason"] == ("tool_use" if uses else "end_turn")
        text = "".join(block.get("text", "") for block in message["content"])
        return ChatReply(text, [ClientCall(use["toolUseId"], use["name"], use["input"]) for use in uses])

    def add_results(self, results: list[tuple[ClientCall, str]]) -> None:
        blocks = [{"toolResult": {"toolUseId": call.id, "content": [{"text": text}]}} for call, text in results]
        self.history.append({"role": "user", "content": blocks})


VENDOR_CHATS: dict[str, Callable[..., VendorChat]] = {
    "openai-chat": Chat,
    "openai-responses": Responses,
    "anthropic": Anthropic,
    "gemini": Gemini,
    "bedrock": Bedrock,
    "azure-foundry": Responses,
    "mistral": Mistral,
    "kimi": Chat,
    "deepseek": Chat,
    "qwen": Chat,
}
