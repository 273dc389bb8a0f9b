"""Scenarios as Anthropic Messages bodies."""

from __future__ import annotations

import base64
from itertools import takewhile
from typing import Any

from tests.properties.scenario import ABSENT, OWN, Call, Picture, Reply, Result, Scenario, System, UserText

Body = dict[str, Any]


def signature(thought: str) -> str:
    return base64.b64encode(f"signed: {thought[:24]}".encode()).decode()


def picture(of: Picture) -> Body:
    if of.by_url:
        return {"type": "image", "source": {"type": "url", "url": of.url}}
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": of.data}}


def text(value: str) -> Body:
    return {"type": "text", "text": value}


class MessagesBuilder:
    """Builds one body. A run of results is one user message; user text may join it."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.messages: list[Body] = []
        self.results: list[Body] | None = None

    def body(self, model: str | None) -> Body:
        events = list(self.scenario.events)
        system = [one.text for one in takewhile(lambda one: isinstance(one, System), events) if isinstance(one, System)]
        for event in events[len(system) :]:
            match event:
                case System():
                    self.add("system", event.text)
                case UserText():
                    self.add_user(event)
                case Reply():
                    self.add("assistant", self.reply(event))
                case Result():
                    self.result(event)
        body: Body = {"model": model} if model else {}
        body["max_tokens"] = 4096
        if system:
            body["system"] = system[0] if len(system) == 1 else [text(value) for value in system]
        body["messages"] = self.messages
        if self.scenario.tools:
            body["tools"] = [self.tool(tool.name) for tool in self.scenario.tools]
        if self.scenario.thinking_on:
            enabled = {"type": "enabled", "budget_tokens": 2048}
            body["thinking"] = {"type": "adaptive"} if model == "claude-fable-5-1" else enabled
        return body

    @staticmethod
    def tool(name: str) -> Body:
        schema = {"type": "object", "properties": {"q": {"type": "string"}}}
        return {"name": name, "description": "Looks.", "input_schema": schema}

    def add(self, role: str, content: Any) -> None:
        self.results = None
        self.messages.append({"role": role, "content": content})

    def add_user(self, user: UserText) -> None:
        blocks = [text(value) for value in user.texts]
        if user.picture:
            blocks.append(picture(user.picture))
        if user.joined and self.results is not None:
            self.results.extend(blocks)
            self.results = None
        elif len(blocks) == 1 and not user.as_list and not user.picture:
            self.add("user", user.texts[0])
        else:
            self.add("user", blocks)

    def reply(self, reply: Reply) -> Any:
        blocks: list[Body] = []
        if reply.thinking is not None:
            blocks.append({"type": "thinking", "thinking": reply.thinking, "signature": signature(reply.thinking)})
        uses = [self.use(call) for call in reply.calls]
        text_blocks = [text(reply.text)] if reply.text is not None and (reply.text or not uses) else []
        if not blocks and not uses and text_blocks and reply.text_first:
            return reply.text
        return [*blocks, *text_blocks, *uses] if reply.text_first or not uses else [*blocks, *uses, *text_blocks]

    def use(self, call: Call) -> Body:
        entry: Body = {"type": "tool_use"}
        if call.id is not ABSENT:
            entry["id"] = f"toolu_{call.marker}" if call.id is OWN else call.id
        value = call.arguments
        if call.text is not None:
            value = {"input": call.text} if call.kind == "custom" else call.text
        return {**entry, "name": call.tool, "input": value}

    def result(self, result: Result) -> None:
        block: Body = {"type": "tool_result"}
        if result.id is OWN:
            block["tool_use_id"] = f"toolu_{result.call}"
        elif result.id is not ABSENT:
            block["tool_use_id"] = result.id
        if result.form == "parts" or result.picture:
            content = [text(result.text)] if result.text else []
            block["content"] = [*content, picture(result.picture)] if result.picture else content
        elif result.form == "text":
            block["content"] = result.text
        if result.error:
            block["is_error"] = True
        if self.results is None:
            self.add("user", [])
            self.results = self.messages[-1]["content"]
        assert self.results is not None
        self.results.append(block)


def build_anthropic_body(scenario: Scenario, model: str | None) -> Body:
    return MessagesBuilder(scenario).body(model)
