"""A short API-independent conversation, and the body that a client of each API would send for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from tests.bodies import Body, anthropic, bedrock, chat, gemini
from tests.conversations import build

Call = tuple[str, str, Body]  # id, tool, arguments


class User(NamedTuple):
    text: str


class Model(NamedTuple):
    """The text of the model, or its calls in one reply."""

    text: str | None = None
    calls: tuple[Call, ...] = ()


class Result(NamedTuple):
    id: str
    text: str
    tool: str = "read_file"


Event = User | Model | Result
Scenario = Sequence[Event]


def read_calls(*pairs: tuple[str, str]) -> Model:
    """A reply that reads files: ids and paths."""
    return Model(None, tuple((call_id, "read_file", {"path": path}) for call_id, path in pairs))


def _names(scenario: Scenario) -> list[str]:
    """Every tool that is called, in the order of its first call."""
    called = [name for event in scenario if isinstance(event, Model) for _, name, _ in event.calls]
    return [*dict.fromkeys([*called, "read_file"])]


def _chat_messages(scenario: Scenario, result: Callable[[str, str, str], Body]) -> list[Body]:
    messages: list[Body] = []
    for event in scenario:
        match event:
            case User(text):
                messages.append(chat.user(text))
            case Model(text, ()):
                messages.append(chat.assistant(text))
            case Model(text, calls):
                messages.append(build.calls(*(build.call(*one) for one in calls), content=text))
            case Result(call_id, text, tool):
                messages.append(result(call_id, text, tool))
    return messages


def _chat_body(make: Callable[..., Body], *, names: bool = False) -> Callable[[Scenario], Body]:
    def result(call_id: str, text: str, tool: str) -> Body:
        return build.named_tool_result(call_id, text, tool) if names else build.tool(call_id, text)

    return lambda scenario: make(
        *_chat_messages(scenario, result), tools=[build.function(name) for name in _names(scenario)]
    )


def _anthropic_body(scenario: Scenario) -> Body:
    messages: list[Body] = []
    for event in scenario:
        match event:
            case User(text):
                messages.append(chat.user(text))
            case Model(text, calls):
                content = [anthropic.text(text)] if text else []
                messages.append(anthropic.assistant(*content, *(build.use(*one) for one in calls)))
            case Result(call_id, text):
                block = build.result(call_id, text)
                if messages and messages[-1]["role"] == "user" and isinstance(messages[-1]["content"], list):
                    messages[-1]["content"].append(block)
                else:
                    messages.append(anthropic.user(block))
    return build.anthropic(*messages, tools=[build.anthropic_tool(name) for name in _names(scenario)])


def _responses_body(scenario: Scenario, **more: Any) -> Body:
    items: list[Body] = []
    for event in scenario:
        match event:
            case User(text):
                items.append(build.item("user", text))
            case Model(text, calls):
                items.extend([build.item("assistant", text, **more)] if text else [])
                items.extend(build.function_call(*one) for one in calls)
            case Result(call_id, text):
                items.append(build.output(call_id, text))
    return build.responses(*items, tools=[build.flat_function(name) for name in _names(scenario)])


def _gemini_body(scenario: Scenario) -> Body:
    contents: list[Body] = []
    for event in scenario:
        match event:
            case User(text):
                contents.append(gemini.user(text))
            case Model(text, calls):
                made = (build.part_call(name, arguments, call_id) for call_id, name, arguments in calls)
                contents.append(gemini.model(*([text] if text else []), *made))
            case Result(call_id, text, tool):
                part = build.part_result(tool, text, call_id)
                if contents and "functionResponse" in contents[-1]["parts"][-1]:
                    contents[-1]["parts"].append(part)
                else:
                    contents.append(gemini.user(part))
    return build.gemini(*contents, tools=build.gemini_tools(*_names(scenario)))


def _bedrock_body(scenario: Scenario) -> Body:
    messages: list[Body] = []
    for event in scenario:
        match event:
            case User(text):
                messages.append(bedrock.user(text))
            case Model(text, calls):
                content = [text] if text else []
                messages.append(bedrock.assistant(*content, *(build.tool_use(*one) for one in calls)))
            case Result(call_id, text):
                block = build.tool_result(call_id, text)
                if messages and "toolResult" in messages[-1]["content"][-1]:
                    messages[-1]["content"].append(block)
                else:
                    messages.append(bedrock.user(block))
    return build.bedrock(*messages, tools={"tools": [build.tool_spec(name) for name in _names(scenario)]})


BUILDERS: dict[str, Callable[[Scenario], Body]] = {
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


def build_body(scenario: Scenario, api: str) -> Body:
    return BUILDERS[api](scenario)
