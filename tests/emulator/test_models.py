"""Models named `emulated/MODEL`: under every interface of the library, without a key, and never hanging."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from typing import Any

import pytest

import segue
from segue.bridge.providers import catalogue
from segue.emulator.models import EmulatedModels, resolve
from segue.transport import Transport, client
from tests.cli.process import environment

HELLO = [{"role": "user", "content": "Hello!"}]
GREETING = "Hello! What can I do for you?"
MODELS = [f"emulated/{row.name}/{row.default}" for row in catalogue().values() if row.default]


@pytest.mark.parametrize("model", MODELS)
def test_every_provider_has_an_emulated_model(model: str) -> None:
    reply = segue.complete(HELLO, model, environ={})
    assert reply.text == GREETING
    assert reply.target == f"emulated/{model.split('/', 2)[2]}"
    chat = segue.Conversation()
    chat.add_user("Hello!")
    assert segue.complete(chat, model, environ={}).text == GREETING
    assert [message.speaker for message in chat.messages] == ["human", "ai"]


def test_provider_alone_and_vendor_s_model_are_found() -> None:
    assert resolve("emulated", {}).model == resolve("emulated/", {}).model == resolve("emulated/anthropic", {}).model
    assert resolve("emulated/gpt-6-sol", {}).api == "openai-responses"
    with pytest.raises(segue.InputError, match="nobody"):
        resolve("emulated/nobody/x", {})


def test_own_provider_of_this_name_is_used() -> None:
    own = {"emulated": {"api": "anthropic", "base_url": "http://127.0.0.1:9"}}
    assert resolve("emulated/x", {}, own).base_url == "http://127.0.0.1:9"


def test_own_providers_are_emulated_too() -> None:
    own = {"mine": {"api": "gemini", "base_url": "https://example.com", "key_variable": "MINE"}}
    assert segue.complete(HELLO, "emulated/mine/gemini-3.8-flash", providers=own).text == GREETING


def test_sdk_gets_a_reply_behind_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    import openai

    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    sdk = openai.OpenAI(api_key="unused", http_client=client("emulated/claude-sonnet-5", "emulated/kimi-k2.6"))
    messages: Any = HELLO
    assert sdk.chat.completions.create(model="any", messages=messages).choices[0].message.content == GREETING


def test_providers_are_started_once_and_keep_no_requests() -> None:
    models = EmulatedModels()
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(models.endpoint("claude-sonnet-5", catalogue()).base_url))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    segue.complete(HELLO, "x/claude", providers={"x": {"api": "anthropic", "base_url": found[0]}}, environ={})
    assert [emulator.requests for emulator in models._running.values()] == [[]]
    models.close()


FORKED = """
import os, sys, segue
def ask():
    return segue.complete([{"role": "user", "content": "Hello!"}], "emulated/claude-sonnet-5", timeout=20).text
before = ask()
child = os.fork()
if not child:
    sys.exit(0 if ask() == before else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert ask() == before
events = segue.complete([{"role": "user", "content": "Hello!"}], "emulated/gpt-6-sol", stream=True)
next(events)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_processes_get_replies_and_end() -> None:
    """The child does not take the events of the parent's connections; an open stream does not keep a process."""
    ended = subprocess.run(
        [sys.executable, "-c", FORKED], env=environment(), capture_output=True, timeout=90, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


def test_transport_shows_the_name() -> None:
    assert repr(Transport("emulated/claude-sonnet-5")) == "<Transport emulated/claude-sonnet-5>"


@pytest.mark.parametrize("model", MODELS)
def test_router_of_gemini_s_client_gets_its_json(model: str) -> None:
    schema = {
        "type": "object",
        "properties": {"complexity_reasoning": {"type": "string"}, "complexity_score": {"type": "integer"}},
        "required": ["complexity_reasoning", "complexity_score"],
    }
    body = {
        "contents": [{"role": "user", "parts": [{"text": "Read notes.txt"}]}],
        "generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": schema},
    }
    assert json.loads(segue.complete(body, model).text).keys() == {"complexity_reasoning", "complexity_score"}
