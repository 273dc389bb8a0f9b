"""The vendors' own clients in a tool loop: each function runs one of their helpers against a server.

What counts is what they sent. `RECORDINGS` says which API each speaks, and what the server shall answer.
"""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import anthropic
import openai
from google import genai
from google.genai import types as gemini
from mistralai.client import Mistral
from pydantic import BaseModel, Field

from tests.vendors import canned_replies
from tests.vendors.server import serve_canned

QUESTION = "How warm is it in Lisbon and in Oslo, and how late is it there?"


def get_weather(city: str) -> str:
    """The weather in a city.

    Args:
        city: Its name.
    """
    return f"{city}: {len(city)} °C,\n“mild”"


def get_time(zone: str) -> str:
    """The time in a zone.

    Args:
        zone: Its name, as in Europe/Oslo.
    """
    return f"12:00 in {zone}"


TOOLS: dict[str, Callable[..., str]] = {"get_weather": get_weather, "get_time": get_time}


class GetWeather(BaseModel):
    """The weather in a city."""

    city: str = Field(description="Its name.")


class GetTime(BaseModel):
    """The time in a zone."""

    zone: str


class Answer(BaseModel):
    lisbon: str
    oslo: str | None = None


SCHEMAS = {"get_weather": GetWeather, "get_time": GetTime}


# -------------------------------------------------------------------------------------------------------------- OpenAI


def _openai(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


def chat_tools() -> list[Any]:
    return [openai.pydantic_function_tool(schema, name=name) for name, schema in SCHEMAS.items()]


def chat_results(calls: Any) -> list[Any]:
    return [
        {"role": "tool", "tool_call_id": call.id, "content": TOOLS[call.function.name](**_arguments(call.function))}
        for call in calls
    ]


def _arguments(function: Any) -> dict[str, Any]:
    return json.loads(function.arguments)


def openai_create(url: str, model: str = "gpt-4.1") -> None:
    client, messages = _openai(url), [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]
    history: list[Any] = list(messages)
    while True:
        message = client.chat.completions.create(model=model, messages=history, tools=chat_tools()).choices[0].message
        history.append(message)
        if not message.tool_calls:
            break
        history += chat_results(message.tool_calls)
    history.append({"role": "user", "content": "Thanks. And tomorrow?"})
    client.chat.completions.create(model=model, messages=history, tools=chat_tools())


def openai_parse(url: str) -> None:
    client = _openai(url)
    history: list[Any] = [{"role": "user", "content": QUESTION}]
    for _ in range(2):
        parsed = client.chat.completions.parse(model="gpt-4.1", messages=history, tools=chat_tools())
        message = parsed.choices[0].message
        history.append(message)
        for call in message.tool_calls or []:
            assert isinstance(call.function.parsed_arguments, BaseModel)
        history += chat_results(message.tool_calls)
    client.chat.completions.create(model="gpt-4.1", messages=history, tools=chat_tools())


def openai_stream(url: str) -> None:
    client = _openai(url)
    history: list[Any] = [{"role": "user", "content": QUESTION}]
    for _ in range(3):
        with client.chat.completions.stream(model="gpt-4.1", messages=history, tools=chat_tools()) as stream:
            message = stream.get_final_completion().choices[0].message
        history += [message, *chat_results(message.tool_calls or [])]


def _function_tools() -> list[Any]:
    return [openai.pydantic_function_tool(schema, name=name)["function"] for name, schema in SCHEMAS.items()]


def response_tools() -> list[Any]:
    return [{"type": "function", **function} for function in _function_tools()]


def outputs(items: Any) -> list[Any]:
    return [
        {"type": "function_call_output", "call_id": item.call_id, "output": TOOLS[item.name](**_arguments(item))}
        for item in items
        if item.type == "function_call"
    ]


def responses_create(url: str) -> None:
    client = _openai(url)
    history: list[Any] = [{"role": "user", "content": QUESTION}]
    for _ in range(3):
        response = client.responses.create(
            model="gpt-5.1",
            input=history,
            instructions="Be brief.",
            tools=response_tools(),
            store=False,
            include=["reasoning.encrypted_content"],
            reasoning={"effort": "low", "summary": "auto"},
        )
        history += [*response.output, *outputs(response.output)]


def responses_parse(url: str) -> None:
    client = _openai(url)
    history: list[Any] = [{"role": "user", "content": [{"type": "input_text", "text": QUESTION}]}]
    for _ in range(2):
        response = client.responses.parse(model="gpt-5.1", input=history, tools=response_tools())
        history += [*response.output, *outputs(response.output)]
    client.responses.create(model="gpt-5.1", input=history, tools=response_tools())


def responses_stream(url: str) -> None:
    client = _openai(url)
    history: list[Any] = [{"role": "user", "content": QUESTION}]
    for _ in range(3):
        with client.responses.stream(model="gpt-5.1", input=history, tools=response_tools()) as stream:
            output = stream.get_final_response().output
        history += [*output, *outputs(output)]


def _agent(url: str, kind: str) -> None:
    import agents

    agents.set_tracing_disabled(True)
    client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    of = {"chat": agents.OpenAIChatCompletionsModel, "responses": agents.OpenAIResponsesModel}[kind]
    model = of(model="gpt-4.1" if kind == "chat" else "gpt-5.1", openai_client=client)
    tools: list[Any] = [agents.function_tool(function) for function in TOOLS.values()]
    agent = agents.Agent(name="helper", instructions="Be brief.", model=model, tools=tools)

    async def play() -> None:
        first = await agents.Runner.run(agent, QUESTION)
        await agents.Runner.run(agent, [*first.to_input_list(), {"role": "user", "content": "Thanks. And tomorrow?"}])
        await client.close()

    asyncio.run(play())


def agents_chat(url: str) -> None:
    _agent(url, "chat")


def agents_responses(url: str) -> None:
    _agent(url, "responses")


# ----------------------------------------------------------------------------------------------------------- Anthropic


def _anthropic(url: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)


def anthropic_runner(url: str, **wishes: Any) -> None:
    tools: list[Any] = [anthropic.beta_tool(function) for function in TOOLS.values()]
    runner = _anthropic(url).beta.messages.tool_runner(
        model="claude-sonnet-4-5",
        max_tokens=4000,
        thinking={"type": "enabled", "budget_tokens": 1024},
        messages=[{"role": "user", "content": QUESTION}],
        tools=tools,
        **wishes,
    )
    for step in runner:
        if "stream" in wishes:
            step.get_final_message()


def anthropic_runner_streaming(url: str) -> None:
    anthropic_runner(url, stream=True)


def anthropic_runner_without_thread(url: str) -> None:
    anthropic_runner(url, thread=False)


def anthropic_stream(url: str) -> None:
    client = _anthropic(url)
    history: list[Any] = [{"role": "user", "content": QUESTION}]
    tools: list[Any] = [
        {"name": name, "description": schema.__doc__, "input_schema": schema.model_json_schema()}
        for name, schema in SCHEMAS.items()
    ]
    for _ in range(3):
        with client.messages.stream(
            model="claude-sonnet-4-5", max_tokens=4000, system="Be brief.", messages=history, tools=tools
        ) as stream:
            message = stream.get_final_message()
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": TOOLS[block.name](**block.input)}
            for block in message.content
            if block.type == "tool_use"
        ]
        history += [
            {"role": "assistant", "content": message.content},
            {"role": "user", "content": results or "Thanks."},
        ]


# -------------------------------------------------------------------------------------------------------------- Gemini


def _gemini(url: str) -> genai.Client:
    return genai.Client(api_key="none", http_options=gemini.HttpOptions(base_url=url))


def _gemini_config() -> gemini.GenerateContentConfig:
    return gemini.GenerateContentConfig(system_instruction="Be brief.", tools=list(TOOLS.values()), temperature=0.5)


def gemini_automatic(url: str, model: str = "gemini-2.5-flash") -> None:
    with _gemini(url) as client:
        client.models.generate_content(model=model, contents=QUESTION, config=_gemini_config())


def gemini_automatic_3(url: str) -> None:
    gemini_automatic(url, "gemini-3-pro-preview")


def gemini_chat(url: str) -> None:
    with _gemini(url) as client:
        chat = client.chats.create(model="gemini-2.5-flash", config=_gemini_config())
        chat.send_message(QUESTION)
        chat.send_message("Thanks. And tomorrow?")


def gemini_stream(url: str) -> None:
    with _gemini(url) as client:
        config = _gemini_config()
        list(client.models.generate_content_stream(model="gemini-2.5-flash", contents=QUESTION, config=config))


# ------------------------------------------------------------------------------------------------------------- Mistral


def mistral_tools() -> list[Any]:
    return [
        {
            "type": "function",
            "function": {"name": name, "description": schema.__doc__, "parameters": schema.model_json_schema()},
        }
        for name, schema in SCHEMAS.items()
    ]


def mistral_results(calls: Any) -> list[Any]:
    return [{**result, "name": call.function.name} for call, result in zip(calls, chat_results(calls), strict=True)]


def mistral_complete(url: str) -> None:
    history: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]
    with Mistral(api_key="none", server_url=url) as client:
        for _ in range(3):
            message = (
                client.chat.complete(
                    model="mistral-large-latest", messages=history, tools=mistral_tools(), temperature=0.2
                )
                .choices[0]
                .message
            )
            assert message is not None
            history.append(message)
            history += mistral_results(message.tool_calls or [])


def mistral_parse(url: str) -> None:
    with Mistral(api_key="none", server_url=url) as client:
        client.chat.parse(
            model="mistral-large-latest", messages=[{"role": "user", "content": QUESTION}], response_format=Answer
        )


def mistral_stream(url: str) -> None:
    history: list[Any] = [{"role": "user", "content": QUESTION}]
    with Mistral(api_key="none", server_url=url) as client:
        for _ in range(3):
            calls: list[Any] = []
            text = ""
            with client.chat.stream(model="mistral-large-latest", messages=history, tools=mistral_tools()) as stream:
                for event in stream:
                    delta = event.data.choices[0].delta
                    text += delta.content or "" if isinstance(delta.content, str) else ""
                    calls += delta.tool_calls or []
            history.append({"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})})
            history += mistral_results(calls)


# ---------------------------------------------------------------------------------------------------------- recordings


class Recording(NamedTuple):
    api: str
    play: Callable[[str], None]
    answers: list[Any]


class SentRequest(NamedTuple):
    path: str
    body: bytes


_LAST = canned_replies.chat()[-1:]
_MISTRAL_IDS = ("a1B2c3D4e", "f5G6h7I8j", "k9L0m1N2o")
_MISTRAL = canned_replies.chat("mistral-large-latest", _MISTRAL_IDS)
_GEMINI_3 = "gemini-3-pro-preview"
_JSON_ANSWER = [
    {
        **_MISTRAL[-1],
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": '{"lisbon": "mild", "oslo": null}'},
            }
        ],
    }
]


def _whole_calls(streams: list[Any]) -> list[Any]:
    """MIS-16: a call comes whole in one delta."""
    made: list[Any] = []
    for stream in streams:
        events = [event for event in stream if event[1] == "[DONE]" or not _continues(event[1])]
        for _, payload in events:
            for call in _deltas_of(payload):
                call["function"]["arguments"] = _ARGUMENTS[call["id"]]
        made.append(events)
    return made


_ARGUMENTS = {
    call["id"]: call["function"]["arguments"]
    for answer in _MISTRAL
    for call in answer["choices"][0]["message"].get("tool_calls", [])
}


def _deltas_of(payload: Any) -> list[Any]:
    return [] if payload == "[DONE]" else payload["choices"][0]["delta"].get("tool_calls", [])


def _continues(payload: Any) -> bool:
    return any("id" not in call for call in _deltas_of(payload))


RECORDINGS: dict[str, Recording] = {
    "openai create": Recording("openai-chat", openai_create, canned_replies.chat() + _LAST),
    "openai parse": Recording("openai-chat", openai_parse, canned_replies.chat()),
    "openai stream": Recording("openai-chat", openai_stream, canned_replies.chat_streams()),
    "openai-agents on chat": Recording("openai-chat", agents_chat, canned_replies.chat() + _LAST),
    "openai responses create": Recording("openai-responses", responses_create, canned_replies.responses()),
    "openai responses parse": Recording("openai-responses", responses_parse, canned_replies.responses()),
    "openai responses stream": Recording("openai-responses", responses_stream, canned_replies.response_streams()),
    "openai-agents on responses": Recording(
        "openai-responses", agents_responses, canned_replies.responses() + canned_replies.responses()[-1:]
    ),
    "anthropic tool runner": Recording("anthropic", anthropic_runner, canned_replies.messages()),
    "anthropic tool runner without thread": Recording(
        "anthropic", anthropic_runner_without_thread, canned_replies.messages()
    ),
    "anthropic streaming tool runner": Recording(
        "anthropic", anthropic_runner_streaming, canned_replies.message_streams()
    ),
    "anthropic stream": Recording("anthropic", anthropic_stream, canned_replies.message_streams()),
    "google-genai automatic calls": Recording("gemini", gemini_automatic, canned_replies.candidates()),
    "google-genai automatic calls, Gemini 3": Recording(
        "gemini", gemini_automatic_3, canned_replies.candidates(_GEMINI_3, signed=True, ids=True)
    ),
    "google-genai chat": Recording(
        "gemini", gemini_chat, canned_replies.candidates() + canned_replies.candidates()[-1:]
    ),
    "google-genai stream": Recording("gemini", gemini_stream, canned_replies.candidate_streams()),
    "mistralai complete": Recording("mistral", mistral_complete, _MISTRAL),
    "mistralai parse": Recording("mistral", mistral_parse, _JSON_ANSWER),
    "mistralai stream": Recording(
        "mistral", mistral_stream, _whole_calls(canned_replies.chat_streams("mistral-large-latest", _MISTRAL_IDS))
    ),
}


@cache
def record_client(name: str) -> tuple[SentRequest, ...]:
    """What a vendor's client sent, request by request."""
    recording = RECORDINGS[name]
    with warnings.catch_warnings(), serve_canned(recording.answers) as server:
        # Vendors warn of models that grow old; that is theirs to say.
        warnings.simplefilter("ignore")
        recording.play(server.url)
        assert not server.answers, "the client asked less often than it was expected to"
        return tuple(SentRequest(*asked) for asked in server.requests)
