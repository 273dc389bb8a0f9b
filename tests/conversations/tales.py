"""A short conversation told without any API, and the same in each of them, as a client of that API would write it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from . import build
from .build import Body

Call = tuple[str, str, Body]  # id, tool, arguments


class User(NamedTuple):
    words: str


class Model(NamedTuple):
    """What the model says, or the calls it makes in one reply."""

    words: str | None = None
    calls: tuple[Call, ...] = ()


class Result(NamedTuple):
    id: str
    words: str
    tool: str = "read_file"


Event = User | Model | Result
Tale = Sequence[Event]


def reads(*pairs: tuple[str, str]) -> Model:
    """A reply that reads files: ids and paths."""
    return Model(None, tuple((call_id, "read_file", {"path": path}) for call_id, path in pairs))


def _names(tale: Tale) -> list[str]:
    """Every tool that is called, in the order of its first call."""
    called = [name for event in tale if isinstance(event, Model) for _, name, _ in event.calls]
    return [*dict.fromkeys([*called, "read_file"])]


def _chat_messages(tale: Tale, result: Callable[[str, str, str], Body]) -> list[Body]:
    messages: list[Body] = []
    for event in tale:
        match event:
            case User(words):
                messages.append(build.user(words))
            case Model(words, ()):
                messages.append(build.says(words))
            case Model(words, calls):
                messages.append(build.calls(*(build.call(*one) for one in calls), content=words))
            case Result(call_id, words, tool):
                messages.append(result(call_id, words, tool))
    return messages


def _chat_body(make: Callable[..., Body], *, names: bool = False) -> Callable[[Tale], Body]:
    def result(call_id: str, words: str, tool: str) -> Body:
        return build.named(call_id, words, tool) if names else build.tool(call_id, words)

    return lambda tale: make(*_chat_messages(tale, result), tools=[build.function(name) for name in _names(tale)])


def _anthropic_body(tale: Tale) -> Body:
    messages: list[Body] = []
    for event in tale:
        match event:
            case User(words):
                messages.append(build.user(words))
            case Model(words, calls):
                said = [build.text(words)] if words else []
                messages.append(build.answers(*said, *(build.use(*one) for one in calls)))
            case Result(call_id, words):
                block = build.result(call_id, words)
                if messages and messages[-1]["role"] == "user" and isinstance(messages[-1]["content"], list):
                    messages[-1]["content"].append(block)
                else:
                    messages.append(build.asks(block))
    return build.anthropic(*messages, tools=[build.declared(name) for name in _names(tale)])


def _responses_body(tale: Tale, **more: Any) -> Body:
    items: list[Body] = []
    for event in tale:
        match event:
            case User(words):
                items.append(build.item("user", words))
            case Model(words, calls):
                items.extend([build.item("assistant", words, **more)] if words else [])
                items.extend(build.function_call(*one) for one in calls)
            case Result(call_id, words):
                items.append(build.output(call_id, words))
    return build.responses(*items, tools=[build.flat_function(name) for name in _names(tale)])


def _gemini_body(tale: Tale) -> Body:
    contents: list[Body] = []
    for event in tale:
        match event:
            case User(words):
                contents.append(build.to_model(words))
            case Model(words, calls):
                made = (build.part_call(name, arguments, call_id) for call_id, name, arguments in calls)
                contents.append(build.by_model(*([words] if words else []), *made))
            case Result(call_id, words, tool):
                part = build.part_result(tool, words, call_id)
                if contents and "functionResponse" in contents[-1]["parts"][-1]:
                    contents[-1]["parts"].append(part)
                else:
                    contents.append(build.to_model(part))
    return build.gemini(*contents, tools=build.declarations(*_names(tale)))


def _bedrock_body(tale: Tale) -> Body:
    messages: list[Body] = []
    for event in tale:
        match event:
            case User(words):
                messages.append(build.to_converse(words))
            case Model(words, calls):
                said = [words] if words else []
                messages.append(build.by_converse(*said, *(build.tool_use(*one) for one in calls)))
            case Result(call_id, words):
                block = build.tool_result(call_id, words)
                if messages and "toolResult" in messages[-1]["content"][-1]:
                    messages[-1]["content"].append(block)
                else:
                    messages.append(build.to_converse(block))
    return build.bedrock(*messages, tools={"tools": [build.tool_spec(name) for name in _names(tale)]})


SPELLINGS: dict[str, Callable[[Tale], Body]] = {
    "openai-chat": _chat_body(build.chat),
    "openai-responses": _responses_body,
    # AZF-04
    "azure-foundry": partial(_responses_body, type="message"),
    "anthropic": _anthropic_body,
    "gemini": _gemini_body,
    "bedrock": _bedrock_body,
    "mistral": _chat_body(build.mistral, names=True),
    "kimi": _chat_body(build.kimi),
    "deepseek": _chat_body(build.deepseek),
    "qwen": _chat_body(build.qwen),
}


def spell(tale: Tale, api: str) -> Body:
    return SPELLINGS[api](tale)
