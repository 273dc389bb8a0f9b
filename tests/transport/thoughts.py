"""How many thoughts of a tool loop reach the upstream again, for each caller and each upstream that wants them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import anthropic
import httpx2
import openai
from google import genai
from google.genai import types

from segue.canonical.blocks import Thinking
from segue.canonical.request import Request
from segue.emulator import Emulator, start
from segue.render.reasoning import has_reasoning_content
from segue.transport import Transport
from segue.wire.registry import WIRES
from tests.transport.upstreams import options_for

ROUNDS = 3
# Their models here think without a setting.
_ALWAYS_ON = ("kimi", "deepseek", "mistral")
MODEL = "an-alias"
# By name: the API and the model. Two models of Anthropic bind reasoning in different ways.
UPSTREAMS: dict[str, tuple[str, str]] = {
    "anthropic": ("anthropic", "claude-sonnet-5"),
    "anthropic 4.5": ("anthropic", "claude-sonnet-4-5"),
    "gemini": ("gemini", "gemini-3.8-flash"),
    "responses": ("openai-responses", "gpt-5.6-terra"),
    "kimi": ("kimi", "kimi-k2-thinking"),
    "deepseek": ("deepseek", "deepseek-reasoner"),
    "qwen": ("qwen", "qwen3.5-plus"),
    "mistral": ("mistral", "magistral-medium-latest"),
    "bedrock": ("bedrock", "us.anthropic.claude-sonnet-5"),
}
SCRIPT = "\n---\n".join(
    [f'think Thought {n}.\nsay Looking {n}.\ncall[call_x] look {{"n": {n}}}' for n in range(ROUNDS)] + ["say Done."]
)
_SCHEMA: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
QUESTION = "Look three times."


class Measure(NamedTuple):
    """The thoughts in each request to the upstream, and the number of requests with thinking switched off."""

    thoughts: list[int]
    switched_off: int
    refused: list[str]


def find_thoughts(request: Request, api: str) -> list[Thinking]:
    """Return the thoughts of a request. Where a call has the signature of one, its text is not counted beside it."""
    blocks = [block for message in request.messages for block in message.blocks if isinstance(block, Thinking)]
    if WIRES[api].reasoning_place == "call":
        blocks = [block for block in blocks if block.signature]
    return [block for block in blocks if has_reasoning_content(block.text, block.signature, block.encrypted)]


def measure(caller: str, upstream: str, *, stream: bool, **options: Any) -> Measure:
    """Run a loop with the SDK of an API on an emulated upstream."""
    api, model = UPSTREAMS[upstream]
    with start(api, script=SCRIPT) as emulator:
        transport = Transport(f"upstream/{model}", **options_for({"upstream": emulator}, **options))
        with httpx2.Client(transport=transport, timeout=100) as http:
            assert CALLERS[caller](http, stream) == "Done."
        return judge(emulator)


def judge(emulator: Emulator) -> Measure:
    wire, thoughts, switched_off = WIRES[emulator.api], [], 0
    for sent in emulator.requests:
        request = wire.parse_request(dict(sent.body or {}))
        thoughts.append(len(find_thoughts(request, emulator.api)))
        reasoning = request.options.reasoning
        is_unset = reasoning is None and emulator.api not in _ALWAYS_ON
        switched_off += is_unset or (
            reasoning is not None and (reasoning.enabled is False or reasoning.effort == "none")
        )
    return Measure(thoughts, switched_off, [sent.refused for sent in emulator.requests if sent.refused])


def routes() -> Iterator[tuple[str, str, bool]]:
    for caller in CALLERS:
        for upstream in UPSTREAMS:
            for stream in (False, True):
                yield caller, upstream, stream


# -------------------------------------------------------------------------------------------------------------- callers


def _chat(http: Any, stream: bool) -> str:
    """A client that strips reasoning from its history, as most do."""
    client = openai.OpenAI(api_key="x", http_client=http, max_retries=0)
    history: list[Any] = [{"role": "user", "content": QUESTION}]
    function = {"name": "look", "description": "Looks.", "parameters": _SCHEMA}
    request: Any = {"model": MODEL, "tools": [{"type": "function", "function": function}], "reasoning_effort": "high"}
    while True:
        if stream:
            with client.chat.completions.stream(messages=history, **request) as chunks:
                message = chunks.get_final_completion().choices[0].message
        else:
            message = client.chat.completions.create(messages=history, **request).choices[0].message
        if not message.tool_calls:
            return message.content or ""
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
            for call in message.tool_calls
        ]
        history.append({"role": "assistant", "content": message.content, "tool_calls": calls})
        history += [{"role": "tool", "tool_call_id": call["id"], "content": "seen"} for call in calls]


def _responses(http: Any, stream: bool) -> str:
    client = openai.OpenAI(api_key="x", http_client=http, max_retries=0)
    history: list[Any] = [{"role": "user", "content": QUESTION}]
    request: Any = {
        "model": MODEL,
        "tools": [{"type": "function", "name": "look", "parameters": _SCHEMA, "strict": False}],
        "reasoning": {"effort": "high"},
        "include": ["reasoning.encrypted_content"],
        "store": False,
    }
    while True:
        if stream:
            with client.responses.stream(input=history, **request) as events:
                response = events.get_final_response()
        else:
            response = client.responses.create(input=history, **request)
        history += response.output
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return response.output_text
        history += [{"type": "function_call_output", "call_id": call.call_id, "output": "seen"} for call in calls]


def _messages(http: Any, stream: bool) -> str:
    client = anthropic.Anthropic(api_key="x", http_client=http, max_retries=0)
    history: list[Any] = [{"role": "user", "content": QUESTION}]
    request: Any = {
        "model": MODEL,
        "max_tokens": 4000,
        "tools": [{"name": "look", "description": "Looks.", "input_schema": _SCHEMA}],
        "thinking": {"type": "enabled", "budget_tokens": 2000},
    }
    while True:
        if stream:
            with client.messages.stream(messages=history, **request) as events:
                message = events.get_final_message()
        else:
            message = client.messages.create(messages=history, **request)
        history.append({"role": "assistant", "content": message.content})
        calls = [block for block in message.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in message.content if block.type == "text")
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": "seen"} for call in calls]
        history.append({"role": "user", "content": results})


def _gemini(http: Any, stream: bool) -> str:
    """A client that drops the text of thoughts and keeps their signatures, as Gemini CLI does."""
    client = genai.Client(api_key="x", http_options=types.HttpOptions(httpx_client=http))
    history: list[Any] = [types.Content(role="user", parts=[types.Part(text=QUESTION)])]
    declared = types.FunctionDeclaration(name="look", description="Looks.", parameters_json_schema=_SCHEMA)
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[declared])],
        thinking_config=types.ThinkingConfig(include_thoughts=True, thinking_level=types.ThinkingLevel.HIGH),
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    request: Any = {"model": MODEL, "config": config}
    while True:
        chunks: list[Any] = (
            list(client.models.generate_content_stream(contents=history, **request))
            if stream
            else [client.models.generate_content(contents=history, **request)]
        )
        contents = [chunk.candidates[0].content for chunk in chunks if chunk.candidates and chunk.candidates[0].content]
        parts = [part for content in contents for part in content.parts or [] if not part.thought]
        history.append(types.Content(role="model", parts=parts))
        calls = [part.function_call for part in parts if part.function_call]
        if not calls:
            return "".join(part.text or "" for part in parts)
        results = [
            types.Part(function_response=types.FunctionResponse(id=one.id, name=one.name, response={"output": "seen"}))
            for one in calls
        ]
        history.append(types.Content(role="user", parts=results))


CALLERS = {"chat": _chat, "responses": _responses, "messages": _messages, "gemini": _gemini}
