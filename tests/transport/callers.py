"""The vendors' SDKs in a tool loop on a transport: one function for each mode, the same for sync and async clients.

Each runs until the model calls no tool, and returns the final text. The tools are those of `ToolLog`, which gives each
call a result of its own.
"""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import anthropic
import httpx2
import openai
from google import genai
from google.genai import types
from mistralai.client import Mistral

from segue.transport import AsyncTransport, Transport

QUESTION = "How warm is it in Lisbon and in Oslo, and how late is it there?"
MODEL = "an-alias"
MAX_ROUNDS = 6


class ToolRun(NamedTuple):
    tool: str
    arguments: dict[str, Any]
    result: str


class ToolLog:
    """Two tools. No two results are equal, also for equal arguments."""

    def __init__(self) -> None:
        self.runs: list[ToolRun] = []

    def run(self, tool: str, arguments: dict[str, Any]) -> str:
        result = f"result {len(self.runs)} of {tool}"
        self.runs.append(ToolRun(tool, arguments, result))
        return result

    @property
    def functions(self) -> list[Callable[..., str]]:
        def get_weather(city: str) -> str:
            """The weather in a city.

            Args:
                city: Its name.
            """
            return self.run("get_weather", {"city": city})

        def get_time(zone: str) -> str:
            """The time in a zone.

            Args:
                zone: Its name.
            """
            return self.run("get_time", {"zone": zone})

        return [get_weather, get_time]


def _schema(parameter: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {parameter: {"type": "string"}},
        "required": [parameter],
        "additionalProperties": False,
    }


_SCHEMAS = {"get_weather": _schema("city"), "get_time": _schema("zone")}
CHAT_TOOLS: list[Any] = [
    {"type": "function", "function": {"name": name, "description": f"Calls {name}.", "parameters": schema}}
    for name, schema in _SCHEMAS.items()
]
# The parse helpers accept only strict tools.
STRICT_TOOLS: list[Any] = [{**tool, "function": {**tool["function"], "strict": True}} for tool in CHAT_TOOLS]
RESPONSE_TOOLS: list[Any] = [{"type": "function", **tool["function"]} for tool in STRICT_TOOLS]
MESSAGE_TOOLS: list[Any] = [
    {"name": name, "description": f"Calls {name}.", "input_schema": schema} for name, schema in _SCHEMAS.items()
]


async def settle(value: Any) -> Any:
    """Return the value of a sync method, or await that of an async one."""
    return await value if inspect.isawaitable(value) else value


async def iterate(items: Any) -> AsyncGenerator[Any]:
    if hasattr(items, "__aiter__"):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


@asynccontextmanager
async def entered(manager: Any) -> AsyncGenerator[Any]:
    if hasattr(manager, "__aenter__"):
        async with manager as value:
            yield value
    else:
        with manager as value:
            yield value


# ----------------------------------------------------------------------------------------------------- Chat Completions

Send = Callable[[Any, list[Any]], Awaitable[Any]]
"""Sends a history with a client, and returns the message of the reply."""


async def _chat_loop(client: Any, tools: ToolLog, send: Send) -> str:
    history: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]
    for _ in range(MAX_ROUNDS):
        message = await send(client, history)
        history.append(message)
        calls = message.tool_calls if not isinstance(message, dict) else message.get("tool_calls")
        if not calls:
            return _text_of(message.content if not isinstance(message, dict) else message["content"])
        for call in calls:
            result = tools.run(call.function.name, json.loads(call.function.arguments))
            history.append({"role": "tool", "tool_call_id": call.id, "content": result})
    raise AssertionError("the model calls tools without end")


def _text_of(content: Any) -> str:
    """Return the text of a content: a string, or the chunks of mistralai."""
    if not isinstance(content, list):
        return content or ""
    return "".join(chunk.text for chunk in content if chunk.type == "text")


async def _send_create(client: Any, history: list[Any]) -> Any:
    reply = await settle(client.chat.completions.create(model=MODEL, messages=history, tools=CHAT_TOOLS))
    assert reply.model == MODEL
    return reply.choices[0].message


async def _send_parse(client: Any, history: list[Any]) -> Any:
    reply = await settle(client.chat.completions.parse(model=MODEL, messages=history, tools=STRICT_TOOLS))
    return reply.choices[0].message


async def _send_stream(client: Any, history: list[Any]) -> Any:
    options: Any = {"include_usage": True}
    manager = client.chat.completions.stream(model=MODEL, messages=history, tools=STRICT_TOOLS, stream_options=options)
    async with entered(manager) as stream:
        async for _ in iterate(stream):
            pass
        completion = await settle(stream.get_final_completion())
    assert completion.usage is not None
    assert completion.model == MODEL
    return completion.choices[0].message


# ----------------------------------------------------------------------------------------------------------- Responses


async def _responses_loop(client: Any, tools: ToolLog, send: Send) -> str:
    history: list[Any] = [{"role": "user", "content": QUESTION}]
    for _ in range(MAX_ROUNDS):
        response = await send(client, history)
        history += response.output
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return response.output_text
        for call in calls:
            result = tools.run(call.name, json.loads(call.arguments))
            history.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
    raise AssertionError("the model calls tools without end")


async def _send_response(client: Any, history: list[Any]) -> Any:
    response = await settle(client.responses.create(model=MODEL, input=history, tools=RESPONSE_TOOLS, store=False))
    assert response.model == MODEL
    return response


async def _send_response_parse(client: Any, history: list[Any]) -> Any:
    return await settle(client.responses.parse(model=MODEL, input=history, tools=RESPONSE_TOOLS))


async def _send_response_stream(client: Any, history: list[Any]) -> Any:
    async with entered(client.responses.stream(model=MODEL, input=history, tools=RESPONSE_TOOLS)) as stream:
        async for _ in iterate(stream):
            pass
        response = await settle(stream.get_final_response())
    assert response.model == MODEL
    return response


async def _stored_responses(client: Any, tools: ToolLog, *, conversation: bool = False) -> str:
    """The history is kept by the service: each request has only what is new."""
    items: Any = QUESTION
    reference: dict[str, str] = {}
    if conversation:
        reference = {"conversation": (await settle(client.conversations.create())).id}
    for _ in range(MAX_ROUNDS):
        response = await settle(client.responses.create(model=MODEL, input=items, tools=RESPONSE_TOOLS, **reference))
        reference = reference if conversation else {"previous_response_id": response.id}
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return response.output_text
        items = [
            {
                "type": "function_call_output",
                "call_id": call.call_id,
                "output": tools.run(call.name, json.loads(call.arguments)),
            }
            for call in calls
        ]
    raise AssertionError("the model calls tools without end")


# ----------------------------------------------------------------------------------------------------------- Anthropic


async def _messages_loop(client: Any, tools: ToolLog, send: Send) -> str:
    history: list[Any] = [{"role": "user", "content": QUESTION}]
    for _ in range(MAX_ROUNDS):
        message = await send(client, history)
        history.append({"role": "assistant", "content": message.content})
        calls = [block for block in message.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in message.content if block.type == "text")
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": tools.run(call.name, call.input)}
            for call in calls
        ]
        history.append({"role": "user", "content": results})
    raise AssertionError("the model calls tools without end")


def _message_options(history: list[Any]) -> Any:
    return {"model": MODEL, "max_tokens": 4000, "system": "Be brief.", "messages": history, "tools": MESSAGE_TOOLS}


async def _send_message(client: Any, history: list[Any]) -> Any:
    message = await settle(client.messages.create(**_message_options(history)))
    assert message.model == MODEL
    return message


async def _send_message_stream(client: Any, history: list[Any]) -> Any:
    async with entered(client.messages.stream(**_message_options(history))) as stream:
        async for _ in iterate(stream):
            pass
        message = await settle(stream.get_final_message())
    assert message.model == MODEL
    return message


async def _tool_runner(client: Any, tools: ToolLog, *, stream: bool) -> str:
    is_async = isinstance(client, anthropic.AsyncAnthropic)
    declared = [(_async_tool if is_async else anthropic.beta_tool)(function) for function in tools.functions]
    runner = client.beta.messages.tool_runner(
        model=MODEL,
        max_tokens=4000,
        messages=[{"role": "user", "content": QUESTION}],
        tools=declared,
        max_iterations=MAX_ROUNDS,
        **({"stream": True} if stream else {}),
    )
    message: Any = None
    async for step in iterate(runner):
        message = await settle(step.get_final_message()) if stream else step
    return "".join(block.text for block in message.content if block.type == "text")


def _async_tool(function: Callable[..., str]) -> Any:
    async def call(**arguments: Any) -> str:
        return function(**arguments)

    schema = _SCHEMAS[function.__name__]
    return anthropic.beta_async_tool(call, name=function.__name__, description="A tool.", input_schema=schema)


# --------------------------------------------------------------------------------------------------------- google-genai


def _models(client: genai.Client, *, is_async: bool) -> Any:
    return client.aio.models if is_async else client.models


_GEMINI_TOOLS: Any = types.Tool(
    function_declarations=[
        types.FunctionDeclaration(name=name, description=f"Calls {name}.", parameters_json_schema=schema)
        for name, schema in _SCHEMAS.items()
    ]
)


async def _gemini_loop(models: Any, tools: ToolLog, *, stream: bool) -> str:
    history: list[Any] = [types.Content(role="user", parts=[types.Part(text=QUESTION)])]
    config = types.GenerateContentConfig(
        tools=[_GEMINI_TOOLS], automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True)
    )
    for _ in range(MAX_ROUNDS):
        parts: list[Any] = []
        if stream:
            chunks = models.generate_content_stream(model=MODEL, contents=history, config=config)
            async for chunk in iterate(await settle(chunks)):
                assert chunk.model_version in (None, MODEL)
                parts += (chunk.candidates[0].content.parts or []) if chunk.candidates[0].content else []
        else:
            reply = await settle(models.generate_content(model=MODEL, contents=history, config=config))
            assert reply.model_version == MODEL
            parts = reply.candidates[0].content.parts
        history.append(types.Content(role="model", parts=parts))
        calls = [part.function_call for part in parts if part.function_call]
        if not calls:
            return "".join(part.text or "" for part in parts if not part.thought)
        results = [
            types.Part(
                function_response=types.FunctionResponse(
                    id=call.id, name=call.name, response={"output": tools.run(call.name, call.args)}
                )
            )
            for call in calls
        ]
        history.append(types.Content(role="user", parts=results))
    raise AssertionError("the model calls tools without end")


async def _automatic_calls(models: Any, tools: ToolLog, *, stream: bool) -> str:
    config = types.GenerateContentConfig(tools=list(tools.functions))
    if not stream:
        reply = await settle(models.generate_content(model=MODEL, contents=QUESTION, config=config))
        return reply.text or ""
    parts: list[Any] = []
    chunks = models.generate_content_stream(model=MODEL, contents=QUESTION, config=config)
    async for chunk in iterate(await settle(chunks)):
        parts += (chunk.candidates[0].content.parts or []) if chunk.candidates and chunk.candidates[0].content else []
    last = max(place for place, part in enumerate(parts) if part.function_call or part.function_response)
    return "".join(part.text or "" for part in parts[last + 1 :] if not part.thought)


# ------------------------------------------------------------------------------------------------------------ mistralai


async def _send_mistral(client: Any, history: list[Any], *, is_async: bool) -> Any:
    chat = client.chat
    method = chat.complete_async if is_async else chat.complete
    reply = await settle(method(model=MODEL, messages=history, tools=CHAT_TOOLS))
    assert reply.model == MODEL
    return reply.choices[0].message


async def _send_mistral_stream(client: Any, history: list[Any], *, is_async: bool) -> Any:
    chat = client.chat
    method = chat.stream_async if is_async else chat.stream
    text, calls = "", []
    async with entered(await settle(method(model=MODEL, messages=history, tools=CHAT_TOOLS))) as stream:
        async for event in iterate(stream):
            assert event.data.model == MODEL
            delta = event.data.choices[0].delta
            text += delta.content if isinstance(delta.content, str) else ""
            calls += delta.tool_calls or []
    return {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}


# -------------------------------------------------------------------------------------------------------- all the modes


class Caller(NamedTuple):
    """A mode of an SDK. `run` takes the SDK's client, the tools, and whether the client is async."""

    sdk: str
    run: Callable[[Any, ToolLog, bool], Awaitable[str]]


def _chat(send: Send) -> Callable[[Any, ToolLog, bool], Awaitable[str]]:
    return lambda client, tools, _: _chat_loop(client, tools, send)


def _responses(send: Send) -> Callable[[Any, ToolLog, bool], Awaitable[str]]:
    return lambda client, tools, _: _responses_loop(client, tools, send)


def _messages(send: Send) -> Callable[[Any, ToolLog, bool], Awaitable[str]]:
    return lambda client, tools, _: _messages_loop(client, tools, send)


def _mistral(send: typing.Any) -> Callable[[Any, ToolLog, bool], Awaitable[str]]:
    return lambda client, tools, is_async: _chat_loop(
        client, tools, lambda client, history: send(client, history, is_async=is_async)
    )


CALLERS: dict[str, Caller] = {
    "chat create": Caller("openai", _chat(_send_create)),
    "chat parse": Caller("openai", _chat(_send_parse)),
    "chat stream": Caller("openai", _chat(_send_stream)),
    "responses create": Caller("openai", _responses(_send_response)),
    "responses parse": Caller("openai", _responses(_send_response_parse)),
    "responses stream": Caller("openai", _responses(_send_response_stream)),
    "responses stored": Caller("openai", lambda client, tools, _: _stored_responses(client, tools)),
    "conversation": Caller("openai", lambda client, tools, _: _stored_responses(client, tools, conversation=True)),
    "messages create": Caller("anthropic", _messages(_send_message)),
    "messages stream": Caller("anthropic", _messages(_send_message_stream)),
    "tool runner": Caller("anthropic", lambda client, tools, _: _tool_runner(client, tools, stream=False)),
    "tool runner stream": Caller("anthropic", lambda client, tools, _: _tool_runner(client, tools, stream=True)),
    "gemini": Caller(
        "google", lambda client, tools, is_async: _gemini_loop(_models(client, is_async=is_async), tools, stream=False)
    ),
    "gemini stream": Caller(
        "google", lambda client, tools, is_async: _gemini_loop(_models(client, is_async=is_async), tools, stream=True)
    ),
    "automatic calls": Caller(
        "google",
        lambda client, tools, is_async: _automatic_calls(_models(client, is_async=is_async), tools, stream=False),
    ),
    "automatic calls stream": Caller(
        "google",
        lambda client, tools, is_async: _automatic_calls(_models(client, is_async=is_async), tools, stream=True),
    ),
    "mistral": Caller("mistral", _mistral(_send_mistral)),
    "mistral stream": Caller("mistral", _mistral(_send_mistral_stream)),
}
STREAMED = tuple(name for name in CALLERS if "stream" in name)


def connect(sdk: str, http: Any, *, max_retries: int = 0) -> Any:
    """Return the client of an SDK on an HTTP client, which is sync or async."""
    is_async = hasattr(http, "aclose")
    match sdk:
        case "openai":
            made = openai.AsyncOpenAI if is_async else openai.OpenAI
            return made(api_key="caller-key", http_client=http, max_retries=max_retries)
        case "anthropic":
            made = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
            return made(api_key="caller-key", http_client=http, max_retries=max_retries)
        case "google":
            clients: Any = {"httpx_async_client" if is_async else "httpx_client": http}
            return genai.Client(api_key="caller-key", http_options=types.HttpOptions(**clients))
        case _:
            clients = {"async_client" if is_async else "client": http}
            return Mistral(api_key="caller-key", **clients)


@asynccontextmanager
async def open_http(*models: str, is_async: bool, library: Any = httpx2, **options: Any) -> AsyncGenerator[Any]:
    """Open an HTTP client with a transport for these models."""
    if library is httpx2:
        sync_class: Any = Transport
        async_class: Any = AsyncTransport
    else:
        from segue.transport import httpx as twin

        sync_class, async_class = twin.Transport, twin.AsyncTransport
    if is_async:
        async with library.AsyncClient(transport=async_class(*models, **options), timeout=100) as http:
            yield http
    else:
        with library.Client(transport=sync_class(*models, **options), timeout=100) as http:
            yield http
