"""Every vendor's client in a tool loop with every upstream: segue stands between them and carries requests and streams.

The upstream counts its calls anew in each turn. The client must never see one id twice (Claude Code loops for ever if
it does), and each result must reach the upstream at its call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import ExitStack
from typing import Any, NamedTuple
from urllib.parse import unquote

import anthropic
import openai
import pytest
from google import genai
from google.genai import types
from mistralai.client import Mistral

import segue
from segue.canonical.blocks import Block, Origin, Text, Thinking, ToolCall
from segue.canonical.request import Reply, Usage
from segue.wire.registry import WIRES
from tests.properties.readers import Reading, read
from tests.streams.rendering import stream_reply
from tests.vendors import boto, loops
from tests.vendors.server import CannedServer, serve_canned

THOUGHTS = ("Two cities, two calls.", "The time is missing.", "And there?", "All is there.")
WORDS = ("Let me look.", "And the time.", "", "Mild and cool, and “noon” in both 😀.")
CALLS: tuple[tuple[tuple[str, dict[str, str]], ...], ...] = (
    (("get_weather", {"city": "Lisbon"}), ("get_weather", {"city": "Oslo"})),
    (("get_time", {"zone": "Europe/Oslo"}),),
    (("get_time", {"zone": "Europe/Lisbon"}),),
    (),
)
RAN = [call for turn in CALLS for call in turn]
RESULTS = [loops.TOOLS[name](**arguments) for name, arguments in RAN]


def upstream(api: str, turn: int) -> bytes:
    """How a model answers over this API. Its first call of each turn is `call_1`."""
    provider = WIRES[api].provider
    signed = Origin(provider, identity="absent")
    blocks: list[Block] = [Thinking(THOUGHTS[turn], signature="c2lnbmVk", origin=signed)]
    if WORDS[turn]:
        blocks.append(Text(WORDS[turn]))
    for place, (name, arguments) in enumerate(CALLS[turn], 1):
        origin = Origin(provider, raw_id=f"call_{place}")
        blocks.append(ToolCall(name, arguments, id=f"hist_tool_{turn}_{place}", origin=origin))
    finish = "tool_calls" if CALLS[turn] else "stop"
    return stream_reply(api, Reply(tuple(blocks), finish, Usage(11, 7), f"reply-{turn}", "a-model"), 9)


class Bridge:
    """Converts the requests of a client of one API to another, and streams the replies back."""

    def __init__(self, source: str, target: str) -> None:
        self.source = source
        self.target = target
        self.requests: list[dict[str, Any]] = []
        self.passed_on: list[dict[str, Any]] = []
        self.faults: list[BaseException] = []

    def __call__(self, path: str, body: bytes) -> bytes:
        try:
            return self._answer(path, json.loads(body))
        except BaseException as fault:
            self.faults.append(fault)
            raise

    def _answer(self, path: str, body: dict[str, Any]) -> bytes:
        self.requests.append(body)
        if self.source == "bedrock":
            body = {**body, "modelId": unquote(path).split("/")[2]}
        converted = segue.convert(body, source=self.source, target=self.target, model=WIRES[self.target].default_model)
        self.passed_on.append(converted.body)
        stream_data = upstream(self.target, len(self.requests) - 1)
        stream = converted.stream()
        sent = [stream.feed(stream_data[start : start + 100]) for start in range(0, len(stream_data), 100)]
        return b"".join([*sent, stream.close()])


# ------------------------------------------------------------------------------------------------- the vendors' clients


def _openai_chat(client: openai.OpenAI) -> str:
    history: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": loops.QUESTION}]
    while True:
        asked: dict[str, Any] = {"model": "gpt-4.1", "messages": history, "tools": loops.chat_tools()}
        with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream:
            completion = stream.get_final_completion()
        assert completion.usage is not None
        assert completion.usage.total_tokens == 18
        message = completion.choices[0].message
        history.append(message)
        if not message.tool_calls:
            return message.content or ""
        history += loops.chat_results(message.tool_calls)


def _openai_responses(client: openai.OpenAI) -> str:
    history: list[Any] = [{"role": "user", "content": loops.QUESTION}]
    while True:
        with client.responses.stream(
            model="gpt-5.1", input=history, instructions="Be brief.", tools=loops.response_tools()
        ) as stream:
            response = stream.get_final_response()
        assert response.usage is not None
        assert response.usage.total_tokens == 18
        outputs = loops.outputs(response.output)
        history += [*response.output, *outputs]
        if not outputs:
            return response.output_text


def _anthropic(client: anthropic.Anthropic) -> str:
    runner = client.beta.messages.tool_runner(
        model="claude-sonnet-4-5",
        max_tokens=4000,
        system="Be brief.",
        messages=[{"role": "user", "content": loops.QUESTION}],
        tools=[anthropic.beta_tool(function) for function in loops.TOOLS.values()],
        # A thread is held by the service: its requests don't say what was said before.
        thread=False,
        stream=True,
        max_iterations=6,
    )
    message: Any = None
    for step in runner:
        message = step.get_final_message()
        assert (message.usage.input_tokens, message.usage.output_tokens) == (11, 7)
    return "".join(block.text for block in message.content if block.type == "text")


def _google(client: genai.Client) -> str:
    config = types.GenerateContentConfig(system_instruction="Be brief.", tools=list(loops.TOOLS.values()))
    chunks = list(client.models.generate_content_stream(model="gemini-2.5-pro", contents=loops.QUESTION, config=config))
    parts = [
        part
        for chunk in chunks
        for candidate in chunk.candidates or []
        if candidate.content
        for part in candidate.content.parts or []
    ]
    last = max(place for place, part in enumerate(parts) if part.function_call or part.function_response)
    return "".join(part.text or "" for part in parts[last + 1 :] if not part.thought)


def _mistral(client: Mistral) -> str:
    history: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": loops.QUESTION}]
    while True:
        text, calls = "", []
        with client.chat.stream(model="mistral-large-latest", messages=history, tools=loops.mistral_tools()) as stream:
            for event in stream:
                delta = event.data.choices[0].delta
                text += delta.content if isinstance(delta.content, str) else ""
                calls += delta.tool_calls or []
        history.append({"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})})
        if not calls:
            return text
        history += loops.mistral_results(calls)


def _boto(client: Any) -> str:
    history: list[Any] = [{"role": "user", "content": [{"text": loops.QUESTION}]}]
    while True:
        answer = client.converse_stream(
            modelId="us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            system=[{"text": "Be brief."}],
            messages=history,
            toolConfig={"tools": boto.tools()},
        )
        events = list(answer["stream"])
        assert boto.collect_usage(events) == {"inputTokens": 11, "outputTokens": 7, "totalTokens": 18}
        content = list(boto.collect_blocks(events))
        history.append({"role": "assistant", "content": content})
        uses = [block["toolUse"] for block in content if "toolUse" in block]
        if not uses:
            return "".join(block.get("text", "") for block in content)
        history.append({"role": "user", "content": [boto.run_tool(use) for use in uses]})


class Client(NamedTuple):
    """`make(url, stack)` gives the vendor's client, `run` lets it talk until there is nothing left to call."""

    make: Callable[[str, ExitStack], Any]
    run: Callable[[Any], str]
    kind: str = "text/event-stream"


def _open_openai(url: str, stack: ExitStack) -> openai.OpenAI:
    return stack.enter_context(openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0))


CLIENTS: dict[str, Client] = {
    "openai-chat": Client(_open_openai, _openai_chat),
    "openai-responses": Client(_open_openai, _openai_responses),
    "anthropic": Client(
        lambda url, stack: stack.enter_context(anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)),
        _anthropic,
    ),
    "gemini": Client(
        lambda url, stack: stack.enter_context(
            genai.Client(api_key="none", http_options=types.HttpOptions(base_url=url))
        ),
        _google,
    ),
    "mistral": Client(lambda url, stack: stack.enter_context(Mistral(api_key="none", server_url=url)), _mistral),
    "bedrock": Client(lambda url, _stack: boto.connect(url), _boto, "application/vnd.amazon.eventstream"),
}


@pytest.fixture(scope="module", params=CLIENTS)
def client(request: pytest.FixtureRequest) -> Generator[tuple[str, Any, CannedServer]]:
    """A vendor's client, and the server that it talks to."""
    wanted = CLIENTS[request.param]
    with serve_canned([], wanted.kind) as server, ExitStack() as stack:
        yield request.param, wanted.make(server.url, stack), server


@pytest.mark.filterwarnings("ignore:The model .* is deprecated")
@pytest.mark.parametrize("target", WIRES)
def test_a_tool_loop(client: tuple[str, Any, CannedServer], target: str) -> None:
    source, talker, server = client
    bridge = Bridge(source, target)
    server.answers = [bridge] * len(CALLS)
    last = CLIENTS[source].run(talker)
    assert not bridge.faults
    assert last == WORDS[-1]
    assert not server.answers, "the client asked less often than it was expected to"

    for turn, (asked, passed_on) in enumerate(zip(bridge.requests, bridge.passed_on, strict=True)):
        assert (verdict := segue.check(asked, source)), str(verdict)
        assert (verdict := segue.check(passed_on, target)), str(verdict)
        done = sum(map(len, CALLS[:turn]))
        for reading in (read(asked, source), read(passed_on, target)):
            assert [(one.name, one.arguments) for one in reading.interactions] == RAN[:done]
            assert _texts(reading) == RESULTS[:done]
            assert not reading.surplus
    ids = read(bridge.requests[-1], source).ids
    assert all(isinstance(one, str) and one for one in ids)
    assert len(set(ids)) == len(RAN), "the client was given one id twice"


def _texts(reading: Reading) -> list[str | None]:
    """The results; Google's client wraps them."""
    return [_unwrapped(one.text) for one in reading.interactions]


def _unwrapped(text: str | None) -> str | None:
    if text is None or not text.startswith('{"result":'):
        return text
    return json.loads(text)["result"]
