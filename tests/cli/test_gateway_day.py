"""A day of a gateway: three clients with vendors' SDKs, four providers, failures, a reload, a revoked key, a restart.

Each client has one conversation with tool calls, whole and streamed. Judged by the strict emulators, which reject
nothing, by their bodies, in which every call has its one result, and by the gateway's own usage file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import anthropic
import openai
import pytest

from segue.canonical.blocks import ToolResponse
from segue.canonical.request import Request
from segue.emulator import Emulator, start
from segue.emulator.steps import CallStep, ReplySteps, TextStep, ThinkStep, WaitStep
from segue.wire.registry import WIRES
from tests.cli.gateway_process import PATIENCE, Serving, serving
from tests.cli.project import Project
from tests.cli.test_day import assert_paired

APIS = ("anthropic", "kimi", "openai-responses", "gemini")
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


class Client(Protocol):
    """A client with a conversation. `send` returns the ids of the calls, or the text, of one reply."""

    def connect(self, url: str, key: str) -> None: ...
    def ask(self, text: str) -> None: ...
    def send(self) -> list[str] | str: ...
    def add_result(self, call_id: str) -> None: ...


class MessagesClient:
    """Claude's SDK, which streams."""

    def __init__(self) -> None:
        self._messages: list[Any] = []

    def connect(self, url: str, key: str) -> None:
        self._client = anthropic.Anthropic(base_url=url, api_key=key, max_retries=0, timeout=PATIENCE)

    def ask(self, text: str) -> None:
        self._messages.append({"role": "user", "content": text})

    def send(self) -> list[str] | str:
        tools: Any = [{"name": "look", "description": "Looks.", "input_schema": SCHEMA}]
        with self._client.messages.stream(
            model="claude-sonnet-5", max_tokens=4096, messages=self._messages, tools=tools
        ) as stream:
            reply = stream.get_final_message()
        self._messages.append({"role": "assistant", "content": [block.to_dict() for block in reply.content]})
        calls = [block.id for block in reply.content if block.type == "tool_use"]
        return calls or "".join(block.text for block in reply.content if block.type == "text")

    def add_result(self, call_id: str) -> None:
        block = {"type": "tool_result", "tool_use_id": call_id, "content": "seen"}
        self._messages.append({"role": "user", "content": [block]})


class ChatClient:
    """OpenAI's SDK with Chat Completions, whole replies."""

    def __init__(self) -> None:
        self._messages: list[Any] = []

    def connect(self, url: str, key: str) -> None:
        self._client = openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, timeout=PATIENCE)

    def ask(self, text: str) -> None:
        self._messages.append({"role": "user", "content": text})

    def send(self) -> list[str] | str:
        tools: Any = [{"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": SCHEMA}}]
        reply = self._client.chat.completions.create(model="gpt-4.1", messages=self._messages, tools=tools)
        message = reply.choices[0].message
        self._messages.append(message.to_dict())
        return [call.id for call in message.tool_calls or ()] or str(message.content)

    def add_result(self, call_id: str) -> None:
        self._messages.append({"role": "tool", "tool_call_id": call_id, "content": "seen"})


class ResponsesClient:
    """OpenAI's SDK with Responses, streamed and not stored."""

    def __init__(self) -> None:
        self._items: list[Any] = []

    def connect(self, url: str, key: str) -> None:
        self._client = openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, timeout=PATIENCE)

    def ask(self, text: str) -> None:
        self._items.append({"role": "user", "content": text})

    def send(self) -> list[str] | str:
        tools: Any = [
            {"type": "function", "name": "look", "description": "Looks.", "parameters": SCHEMA, "strict": False}
        ]
        with self._client.responses.stream(
            model="gpt-5.6-tera", input=self._items, tools=tools, store=False, include=["reasoning.encrypted_content"]
        ) as stream:
            reply = stream.get_final_response()
        self._items += [item.to_dict() for item in reply.output]
        return [item.call_id for item in reply.output if item.type == "function_call"] or reply.output_text

    def add_result(self, call_id: str) -> None:
        self._items.append({"type": "function_call_output", "call_id": call_id, "output": "seen"})


class Day:
    """The configuration, the providers by API, all that ran, and the clients with their keys."""

    def __init__(self, project: Project, stack: ExitStack) -> None:
        self.project = project
        self.usage = project.folder / "usage.jsonl"
        self._stack = stack
        self.ran: list[Emulator] = []
        self.emulators: dict[str, Emulator] = {}
        for api in APIS:
            self.start(api)
        self.silent: set[str] = set()
        self.clients: dict[str, Client] = {"ada": MessagesClient(), "bob": ChatClient(), "eve": ResponsesClient()}
        self._keys = {name: project.run("keys", "client", "add", name).lines[0] for name in self.clients}
        self.replies = 0

    def start(self, api: str) -> None:
        self.emulators[api] = self._stack.enter_context(start(api, script=lambda request: self._reply(api, request)))
        self.ran.append(self.emulators[api])

    def _reply(self, api: str, request: Request) -> ReplySteps:
        """A call after each prompt, and after its result a text that names all results so far."""
        if api in self.silent:
            return (WaitStep(PATIENCE),)
        results = sum(isinstance(block, ToolResponse) for message in request.messages for block in message.blocks)
        if request.messages[-1].speaker == "tool":
            return (TextStep(f"{api} knows {results} results."),)
        return (ThinkStep("I look."), CallStep("look", {"n": results}))

    def configure(self, routes: dict[str, tuple[str, ...]]) -> None:
        """Write the routes: for each model name the APIs of its targets.

        The wait for the first byte applies only to streams with a second target, from the provider that is silent.
        """
        text = f"[gateway]\nusage = {json.dumps(str(self.usage))}\nfirst_byte = 0.2\n"
        for model, apis in routes.items():
            targets = [f"{api}-provider/{WIRES[api].default_model}" for api in apis]
            text += f'[[gateway.routes]]\nmodel = "{model}"\ntargets = {json.dumps(targets)}\n'
        for api, emulator in self.emulators.items():
            text += f'[providers.{api}-provider]\napi = "{api}"\nbase_url = "{emulator.base_url}"\n'
            text += 'key_variable = "TEST_KEY"\n'
        self.project.write_user_config(text)

    def connect(self, gateway: Serving) -> None:
        for name, client in self.clients.items():
            client.connect(gateway.url, self._keys[name])

    def talk(self, name: str, api: str, results: int) -> None:
        """Send a prompt and the result of its call; this provider answers, and knows the results of all others."""
        client = self.clients[name]
        client.ask(f"Prompt {results}.")
        calls = client.send()
        assert isinstance(calls, list), calls
        for call_id in calls:
            client.add_result(call_id)
        assert client.send() == f"{api} knows {results} results."
        self.replies += 2


@pytest.fixture
def day(tmp_path: Path) -> Iterator[Day]:
    with ExitStack() as stack:
        yield Day(Project(tmp_path), stack)


def test_a_day_of_a_gateway(day: Day) -> None:
    day.configure({"claude-*": ("anthropic",), "gpt-4.1": ("kimi", "gemini"), "gpt-5*": ("openai-responses",)})
    with serving(day.project) as gateway:
        day.connect(gateway)
        for results in (1, 2):
            day.talk("ada", "anthropic", results)
            day.talk("bob", "kimi", results)
            day.talk("eve", "openai-responses", results)
        _lose_providers(day, gateway)
        _revoke_a_key(day)
        assert gateway.end()[0] == 143
    # All providers are back, and the gateway on another port; the conversations go on.
    day.start("kimi")
    day.silent.clear()
    day.configure({"claude-*": ("kimi",), "gpt-5*": ("openai-responses",)})
    with serving(day.project) as gateway:
        day.connect(gateway)
        day.talk("ada", "kimi", 4)
        day.talk("eve", "openai-responses", 4)
        gateway.end()
    _judge(day)


def _lose_providers(day: Day, gateway: Serving) -> None:
    day.emulators["kimi"].stop()
    day.talk("bob", "gemini", 3)
    gateway.wait_for_line("→ gemini-provider/.*; kimi-provider/.* can't be reached")
    # Another one accepts requests and is silent. A reload gives its route a second target.
    day.silent.add("openai-responses")
    day.configure({"claude-*": ("anthropic",), "gpt-4.1": ("gemini",), "gpt-5*": ("openai-responses", "gemini")})
    assert day.project.run("route", "--reload").code == 0
    day.talk("eve", "gemini", 3)
    gateway.wait_for_line("→ gemini-provider/.*; openai-responses-provider/.* timed out")
    day.talk("bob", "gemini", 4)


def _revoke_a_key(day: Day) -> None:
    assert day.project.run("keys", "client", "revoke", "bob").code == 0
    with pytest.raises(openai.AuthenticationError):
        day.clients["bob"].send()
    day.talk("ada", "anthropic", 3)


def _judge(day: Day) -> None:
    for emulator in day.ran:
        assert [request for request in emulator.requests if not request.accepted] == [], emulator.api
        assert_paired(emulator.api, emulator)
    totals = json.loads(day.project.run("usage", str(day.usage), "--json").out)["totals"]
    assert sum(total["requests"] - total["errors"] for total in totals) == day.replies
    assert all(total["input"] and total["output"] for total in totals), totals
