"""Clients whose path is that of another API get the dialect of their vendor; so do names with a provider in a path."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest
from mistralai.client import Mistral

from segue.wire.registry import WIRES
from tests.gateway.harness import model_of, running_gateway

SCRIPT = 'call look {"place": "Oslo"}\ncall look {"place": "Rome"}\n---\nsay It is cold.\n---\nsay Done.'
TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
    },
}
PIXEL = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"


def read_stream(client: Mistral, messages: list[Any]) -> tuple[list[Any], str, list[Any]]:
    """Return the calls, the text and the chunks of a streamed reply."""
    stream = client.chat.stream(model="any", messages=messages, tools=[TOOL], tool_choice="any")
    chunks = [event.data for event in stream]
    calls = [call for chunk in chunks for choice in chunk.choices for call in choice.delta.tool_calls or ()]
    text = "".join(
        choice.delta.content for chunk in chunks for choice in chunk.choices if isinstance(choice.delta.content, str)
    )
    return calls, text, chunks


@pytest.mark.parametrize("prefix", ["", "/mistral"])
@pytest.mark.parametrize("api", WIRES)
def test_mistrals_client_streams_calls_of_every_provider(api: str, prefix: str) -> None:
    with running_gateway({api: SCRIPT}) as running:
        client = Mistral(api_key="any", server_url=running.url + prefix)
        messages: list[Any] = [{"role": "user", "content": "How is the weather?"}]
        calls, _, chunks = read_stream(client, messages)
        assert [json.loads(call.function.arguments) for call in calls] == [{"place": "Oslo"}, {"place": "Rome"}]
        assert all(call.function.name == "look" for call in calls)
        assert chunks[-1].usage is not None
        assert chunks[-1].usage.prompt_tokens > 0
        declared = [call.model_dump(exclude_none=True) for call in calls]
        messages.append({"role": "assistant", "content": "", "tool_calls": declared})
        messages += [
            {"role": "tool", "tool_call_id": call.id, "name": "look", "content": "5 degrees"} for call in calls
        ]
        _, text, _ = read_stream(client, messages)
        assert text == "It is cold."
        assert not [record.refused for record in running.emulators[api].requests if record.refused]


def test_mistrals_picture_is_a_string() -> None:
    with running_gateway({"openai-chat": "say A dot."}) as running:
        part = {"type": "image_url", "image_url": PIXEL}
        for agent in (
            "speakeasy-sdk/python 3.7.0 2.935.1 1.0.0 mistralai",
            "ai/7 ai-sdk/mistral/3.0.69 runtime/node.js",
        ):
            body = {"model": "any", "messages": [{"role": "user", "content": [part]}]}
            answer = httpx2.post(f"{running.url}/v1/chat/completions", json=body, headers={"user-agent": agent})
            assert answer.status_code == 200, answer.text
        sent = running.emulators["openai-chat"].requests[-1].body
        assert sent is not None
        assert sent["messages"][0]["content"][0]["image_url"]["url"] == PIXEL


def test_other_clients_keep_the_chat_api() -> None:
    with running_gateway({"anthropic": SCRIPT}) as running:
        body = {"model": "any", "messages": [{"role": "user", "content": "Hi"}], "tools": [TOOL], "stream": True}
        agent = {"user-agent": "OpenAI/Python 3.49.0"}
        answer = httpx2.post(f"{running.url}/v1/chat/completions", json=body, headers=agent)
        first = next(line for line in answer.text.splitlines() if '"tool_calls"' in line)
        assert (
            json.loads(first.removeprefix("data: "))["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"]
            == ""
        )


@pytest.mark.parametrize("method", ["generateContent", "streamGenerateContent?alt=sse", "countTokens"])
@pytest.mark.parametrize("version", ["v1beta", "v1", "v1alpha"])
def test_gemini_path_with_a_provider_and_without_models(version: str, method: str) -> None:
    model = model_of("anthropic")
    with running_gateway({"gemini": "say Wrong.", "anthropic": "say Right.\n---\nsay Right."}) as running:
        body = {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}
        for path in (model, f"models/{model}"):
            answer = httpx2.post(f"{running.url}/{version}/{path}:{method}", json=body)
            assert answer.status_code == 200, answer.text
            assert ("totalTokens" if method == "countTokens" else "Right.") in answer.text, answer.text
