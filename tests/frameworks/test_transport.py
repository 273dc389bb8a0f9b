"""What the frameworks need of the transports: models by name, the vendor's host, and each HTTP library alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from google import genai
from google.genai import types
from mistralai.client import Mistral

from segue.transport import Transport
from tests.frameworks.task import REQUESTS, ROUNDS
from tests.frameworks.upstreams import Upstreams
from tests.vendors import loops

CLAUDE, KIMI = "anthropic/claude-sonnet-5", "moonshot/kimi-k2.6"


def send_chat(client: httpx2.Client, model: str) -> Any:
    sdk = openai.OpenAI(api_key="unused", http_client=client)
    return sdk.chat.completions.create(model=model, messages=[{"role": "user", "content": "Hi"}])


def send_messages(client: httpx2.Client, model: str) -> Any:
    sdk = anthropic.Anthropic(api_key="unused", http_client=client)
    return sdk.messages.create(model=model, max_tokens=100, messages=[{"role": "user", "content": "Hi"}])


def send_gemini(client: httpx2.Client, model: str) -> Any:
    sdk = genai.Client(api_key="unused", http_options=types.HttpOptions(httpx_client=client))
    return sdk.models.generate_content(model=model, contents="Hi")


def send_mistral(client: httpx2.Client, model: str) -> Any:
    sdk = Mistral(api_key="unused", client=client)
    return sdk.chat.complete(model=model, messages=[{"role": "user", "content": "Hi"}])


@pytest.mark.parametrize("send", [send_chat, send_messages, send_gemini, send_mistral])
@pytest.mark.parametrize(("name", "used"), [("any-model", CLAUDE), (CLAUDE, CLAUDE), (KIMI, KIMI)])
def test_a_request_is_sent_to_the_model_that_it_names(
    send: Callable[[httpx2.Client, str], Any], name: str, used: str
) -> None:
    with Upstreams([CLAUDE, KIMI, CLAUDE, KIMI]) as upstreams, upstreams.client(is_httpx2=True) as client:
        send(client, name)
        counts = {model: len(emulator.requests) for model, emulator in upstreams.running.items()}
        assert counts == {CLAUDE: 0, KIMI: 0, used: 1}


def test_the_others_are_used_if_the_named_model_fails() -> None:
    with Upstreams([CLAUDE, KIMI, CLAUDE, KIMI]) as upstreams, upstreams.client(is_httpx2=True) as client:
        upstreams.running[KIMI].stop()
        send_chat(client, KIMI)
        assert len(upstreams.running[CLAUDE].requests) == 1


def test_a_vendor_sdk_is_recognized_by_its_host_although_the_vendor_has_another_base_url() -> None:
    """The SDK of Mistral rejects calls that are streamed in several deltas."""
    model = "mistral/mistral-medium-latest"
    history: list[Any] = [{"role": "user", "content": loops.QUESTION}]
    with Upstreams([model] * REQUESTS) as upstreams:
        transport = Transport(model, **upstreams.options)
        with httpx2.Client(transport=transport) as client:
            sdk = Mistral(api_key="unused", client=client)
            with sdk.chat.stream(model="any-model", messages=history, tools=loops.mistral_tools()) as stream:
                deltas = [event.data.choices[0].delta.tool_calls for event in stream if event.data.choices]
    (calls,) = [calls for calls in deltas if calls]
    assert [call.function.name for call in calls] == [name for name, _ in ROUNDS[0]]


@pytest.mark.parametrize(("library", "other"), [("httpx", "httpx2"), ("httpx2", "httpx")])
def test_each_http_library_works_without_the_other(library: str, other: str) -> None:
    code = f"import sys; sys.modules[{other!r}] = None; import segue.transport.{library} as t; print(t.Transport)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"segue.transport.{library}.Transport" in ended.stdout, ended.stderr
