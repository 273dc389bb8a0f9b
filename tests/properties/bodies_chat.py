"""Scenarios as Chat Completions bodies, and as bodies of its dialects."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.properties.scenario import ABSENT, OWN, Call, Picture, Reply, Result, Scenario, System, UserText

Body = dict[str, Any]


@dataclass(frozen=True)
class Vendor:
    """A vendor's dialect: ids, roles and calls that only OpenAI has, and thinking.

    `thinking_models` think by default; where calls (`on_calls`) or all replies (`on_all`) must have reasoning while the
    model thinks, those without any get an empty one. `thinking_option` enables it, except for `no_option_models`.
    """

    own_id: Callable[[Call, int], str]
    plain: bool = False
    thinking_models: tuple[str, ...] = ()
    no_option_models: tuple[str, ...] = ()
    thinking_option: Body | None = None
    on_calls: bool = False
    on_all: bool = False
    parts: bool = False


VENDORS: dict[str, Vendor] = {
    "openai-chat": Vendor(lambda call, index: f"call_{call.marker}", plain=True),
    "kimi": Vendor(
        lambda call, index: f"functions.{call.tool}:{index}",
        thinking_models=("kimi-k2-thinking", "kimi-k3"),
        no_option_models=("kimi-k2-0905-preview",),
        thinking_option={"thinking": {"type": "enabled"}},
        on_calls=True,
    ),
    "mistral": Vendor(lambda call, index: f"id{call.marker}x", parts=True),
    "deepseek": Vendor(
        lambda call, index: f"call_00_{call.marker}",
        thinking_models=("deepseek-reasoner", "deepseek-v4-pro"),
        no_option_models=("deepseek-reasoner",),
        thinking_option={"thinking": {"type": "enabled"}},
        on_calls=True,
        on_all=True,
    ),
    "qwen": Vendor(
        lambda call, index: f"call_{call.marker}",
        no_option_models=("qwq-plus",),
        thinking_option={"enable_thinking": True},
    ),
}


class ChatBuilder:
    """Builds one body."""

    def __init__(self, scenario: Scenario, model: str | None, api: str) -> None:
        self.scenario = scenario
        self.model = model
        self.vendor = VENDORS[api]
        self.thinks = scenario.thinking_on or model in self.vendor.thinking_models
        self.own = {call.marker: self.vendor.own_id(call, index) for index, call in enumerate(scenario.calls)}

    def body(self) -> Body:
        messages: list[Body] = []
        for event in self.scenario.events:
            match event:
                case System():
                    role = "developer" if event.developer and self.vendor.plain else "system"
                    messages.append({"role": role, "content": event.text})
                case UserText():
                    messages.append({"role": "user", "content": self.user_content(event)})
                case Reply():
                    messages.append(self.reply(event))
                case Result():
                    messages.append(self.result(event))
        body: Body = {"model": self.model} if self.model else {}
        body["messages"] = messages
        if self.scenario.tools:
            body["tools"] = [self.tool(tool.name, tool.kind) for tool in self.scenario.tools]
        if self.vendor.thinking_option and self.scenario.thinking_on and self.model not in self.vendor.no_option_models:
            body.update(self.vendor.thinking_option)
        if self.scenario.thinking_on and self.model == "gpt-5":
            body["reasoning_effort"] = "high"
        return body

    def tool(self, name: str, kind: str) -> Body:
        if kind == "custom" and self.vendor.plain:
            return {"type": "custom", "custom": {"name": name, "description": "Takes free text."}}
        schema = {"type": "object", "properties": {"q": {"type": "string"}}}
        return {"type": "function", "function": {"name": name, "description": "Looks.", "parameters": schema}}

    @staticmethod
    def picture(picture: Picture) -> Body:
        url = picture.url if picture.by_url else f"data:image/png;base64,{picture.data}"
        return {"type": "image_url", "image_url": {"url": url}}

    def user_content(self, user: UserText) -> Any:
        if len(user.texts) == 1 and not user.picture and not user.as_list:
            return user.texts[0]
        parts: list[Body] = [{"type": "text", "text": text} for text in user.texts]
        return [*parts, self.picture(user.picture)] if user.picture else parts

    def reply(self, reply: Reply) -> Body:
        message: Body = {"role": "assistant", "content": reply.text}
        if reply.thinking is not None and self.vendor.parts:
            text_blocks = [{"type": "text", "text": reply.text}] if reply.text else []
            message["content"] = [
                {"type": "thinking", "thinking": [{"type": "text", "text": reply.thinking}]},
                *text_blocks,
            ]
        elif reply.thinking is not None:
            message["reasoning_content"] = reply.thinking
        elif self.thinks and ((reply.calls and self.vendor.on_calls) or self.vendor.on_all):
            message["reasoning_content"] = ""
        if reply.calls and reply.calls[0].kind == "legacy":
            (call,) = reply.calls
            message["function_call"] = {"name": call.tool, "arguments": json.dumps(call.arguments)}
        elif reply.calls:
            message["tool_calls"] = [self.call(call) for call in reply.calls]
        return message

    def call(self, call: Call) -> Body:
        entry: Body = {} if call.id is ABSENT else {"id": self.own[call.marker] if call.id is OWN else call.id}
        if call.kind == "custom" and self.vendor.plain:
            return {**entry, "type": "custom", "custom": {"name": call.tool, "input": call.text}}
        arguments = call.text if call.text is not None else json.dumps(call.arguments, ensure_ascii=False)
        if call.kind == "custom":
            arguments = json.dumps({"input": call.text})
        return {**entry, "type": "function", "function": {"name": call.tool, "arguments": arguments}}

    def result(self, result: Result) -> Body:
        if result.kind == "legacy":
            return {"role": "function", "name": result.tool, "content": result.text}
        message: Body = {"role": "tool"}
        if result.id is OWN:
            message["tool_call_id"] = self.own[result.call or ""]
        elif result.id is not ABSENT:
            message["tool_call_id"] = result.id
        content: Any = result.text
        if result.form == "parts" or result.picture:
            content = [{"type": "text", "text": result.text}] if result.text else []
        if result.picture:
            content.append(self.picture(result.picture))
        if result.form == "omitted":
            return {**message, "content": None}
        return {**message, "content": content}


def build_chat_body(scenario: Scenario, model: str | None, api: str = "openai-chat") -> Body:
    return ChatBuilder(scenario, model, api).body()
