"""An exchange with caller and model on two APIs: every request valid, every name and id mapped back."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import segue
from segue.conformance import check_body
from segue.wire.registry import WIRES
from tests.properties.readers import read
from tests.vendors import canned_replies
from tests.vendors.clients import CLIENTS, ClientCall

EVERY_PAIR = pytest.mark.parametrize(
    ("source", "target"), [(a, b) for a in CLIENTS for b in CLIENTS if {a, b} <= {*WIRES}]
)

_MISTRAL_IDS = ("a1B2c3D4e", "f5G6h7I8j", "k9L0m1N2o")
# How a model answers over each API. Ids that start anew in every reply are what Kimi and others are known for.
ANSWERS: dict[str, Callable[[], list[Any]]] = {
    "openai-chat": lambda: canned_replies.chat(ids=("call_0", "call_1", "call_0")),
    "kimi": lambda: canned_replies.chat(
        "kimi-k2-0905-preview", ("functions.get_weather:0", "functions.get_weather:1", "functions.get_time:0")
    ),
    "deepseek": lambda: canned_replies.chat("deepseek-chat", ("call_00_a", "call_01_b", "call_00_a")),
    "qwen": lambda: canned_replies.chat("qwen3-max", ("call_a", "call_a", "call_b")),
    "mistral": lambda: canned_replies.chat("mistral-large-latest", (_MISTRAL_IDS[0], _MISTRAL_IDS[1], _MISTRAL_IDS[0])),
    "openai-responses": canned_replies.responses,
    "azure-foundry": canned_replies.responses,
    "anthropic": canned_replies.messages,
    "gemini": lambda: canned_replies.candidates("gemini-3-pro-preview", signed=True),
}
# Names that the caller's API takes and others don't.
NAMES: dict[str, tuple[str, str]] = {
    "gemini": ("weather.get:now", "_time.get"),
    "anthropic": ("w" * 64, "get-time"),
    "openai-chat": ("get-weather", "t" * 64),
}


def with_declared_names(answer: Any, request: Any, caller: tuple[str, str], names: dict[str, str]) -> Any:
    """The model's answer with the tools called as this request declares them."""
    text = json.dumps(answer)
    for own, name in zip(("get_weather", "get_time"), caller, strict=True):
        assert json.dumps(names.get(name, name)) in json.dumps(request), "the tool is not declared as reported"
        text = text.replace(own, names.get(name, name))
    return json.loads(text)


@EVERY_PAIR
def test_an_exchange(source: str, target: str) -> None:
    client, tools = CLIENTS[source], NAMES.get(source, ("get_weather", "get_time"))
    body = client.start(list(tools))
    answered: list[ClientCall] = []

    def answer(call: ClientCall) -> str:
        answered.append(call)
        return f"result {len(answered)} of {call.tool}"

    for reply in ANSWERS[target]():
        out = segue.convert(body, source=source, target=target)
        assert check_body(out.body, target), str(check_body(out.body, target))
        names = {str(finding.subject): finding.message.split("'")[3] for finding in out.report.findings_of("name")}
        back = out.reply(with_declared_names(reply, out.body, tools, names))
        body, calls = client.go_on(body, back, answer)
        assert not calls or check_body(body, source), str(check_body(body, source))

    assert [call.tool for call in answered] == [tools[0], tools[0], tools[1]]
    assert [call.arguments for call in answered] == [{"city": "Lisbon"}, {"city": "Oslo"}, {"zone": "Europe/Oslo"}]
    given = [call.id for call in answered if call.id is not None]
    assert len(set(given)) == len(given), "the caller was given one id twice"
    last = segue.convert(body, source=source, target=target)
    assert check_body(last.body, target), str(check_body(last.body, target))
    reading = read(last.body, target).interactions
    assert [one.text for one in reading] == [f"result {n} of {call.tool}" for n, call in enumerate(answered, 1)]
    assert not last.report.findings_of("synthetic", "orphan", "dedupe", "reordered")


CUSTOM: dict[str, Callable[[], Any]] = {
    "openai-chat": lambda: {
        "messages": [{"role": "user", "content": "go"}],
        "tools": [{"type": "custom", "custom": {"name": "get_weather", "description": "Free words."}}],
    },
    "openai-responses": lambda: {
        "input": "go",
        "tools": [{"type": "custom", "name": "get_weather", "description": "Free words."}],
    },
}
FREE_TEXT = 'Lisbon, and then\n"Oslo"'


@pytest.mark.parametrize("source", [name for name in CUSTOM if name in WIRES])
@pytest.mark.parametrize("target", [name for name in CLIENTS if name in WIRES and not WIRES[name].custom_tools])
def test_a_free_text_call_comes_back_as_one(source: str, target: str) -> None:
    out = segue.convert(CUSTOM[source](), source=source, target=target)
    reply = json.loads(json.dumps(ANSWERS[target]()[0]))
    text = json.dumps(reply)
    for given in ({"city": "Lisbon"}, {"city": "Oslo"}):
        wrapped = {"input": FREE_TEXT}
        text = text.replace(json.dumps(json.dumps(given))[1:-1], json.dumps(json.dumps(wrapped))[1:-1])
        text = text.replace(json.dumps(given), json.dumps(wrapped))
    back = out.reply(json.loads(text))
    if source == "openai-chat":
        calls = back["choices"][0]["message"]["tool_calls"]
        assert [call["custom"] for call in calls] == [{"name": "get_weather", "input": FREE_TEXT}] * 2
    else:
        calls = [item for item in back["output"] if item["type"] == "custom_tool_call"]
        assert [(item["name"], item["input"]) for item in calls] == [("get_weather", FREE_TEXT)] * 2
