"""Scenarios as Responses bodies.

A run of items of the model is one reply there. Where two replies of a story would meet and an id could not tell their
calls apart, words of the user come between.
"""

from __future__ import annotations

import base64
import json
from itertools import takewhile
from typing import Any

from tests.properties.scenario import (
    ABSENT,
    OWN,
    Call,
    Picture,
    Reply,
    Result,
    Scenario,
    System,
    UserText,
    find_marker,
    has_id,
)

Body = dict[str, Any]


def sealed(thought: str) -> str:
    return "gAAAA" + base64.urlsafe_b64encode(thought[:24].encode()).decode()


def picture(of: Picture) -> Body:
    return {
        "type": "input_image",
        "detail": "auto",
        "image_url": of.url if of.by_url else f"data:image/png;base64,{of.data}",
    }


def text(value: str) -> Body:
    return {"type": "input_text", "text": value}


class ItemBuilder:
    """Builds one body. Replies with reasoning have the provider's ids; others are as clients write them."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.items: list[Body] = []
        self.open: list[Any] = []

    def body(self, model: str | None) -> Body:
        events = list(self.scenario.events)
        system = [one.text for one in takewhile(lambda one: isinstance(one, System), events) if isinstance(one, System)]
        lifted = system if len(system) == 1 else []
        for event in events[len(lifted) :]:
            match event:
                case System():
                    self.add({"role": "developer" if event.developer else "system", "content": event.text})
                case UserText():
                    self.add({"role": "user", "content": self.user_content(event)})
                case Reply():
                    self.add_reply(event)
                case Result():
                    self.add(self.result(event))
        body: Body = {"model": model} if model else {}
        if lifted:
            body["instructions"] = lifted[0]
        body["input"] = self.items
        if self.scenario.tools:
            body["tools"] = [self.tool(tool.name, tool.kind) for tool in self.scenario.tools]
        if self.scenario.thinking_on and model != "gpt-4.1":
            body |= {"store": False, "reasoning": {"effort": "high", "summary": "auto"}}
        return body

    def add(self, item: Body) -> None:
        self.open = []
        self.items.append(item)

    @staticmethod
    def tool(name: str, kind: str) -> Body:
        if kind == "custom":
            return {"type": "custom", "name": name, "description": "Takes free text."}
        schema = {"type": "object", "properties": {"q": {"type": "string"}}}
        return {"type": "function", "name": name, "description": "Looks.", "parameters": schema, "strict": False}

    @staticmethod
    def user_content(user: UserText) -> Any:
        if len(user.texts) == 1 and not user.picture and not user.as_list:
            return user.texts[0]
        parts = [text(value) for value in user.texts]
        return [*parts, picture(user.picture)] if user.picture else parts

    def add_reply(self, reply: Reply) -> None:
        ids = [call.marker if call.id is OWN else call.id for call in reply.calls]
        if any(one in self.open or not has_id(one) for one in ids) and self.open:
            self.add({"role": "user", "content": "And?"})
        self.open += ids
        text_blocks = [self.add_text(reply)] if reply.text is not None and (reply.text or not reply.calls) else []
        calls = [self.call(call, named=reply.thinking is not None) for call in reply.calls]
        if reply.thinking is not None:
            self.items.append(
                {
                    "type": "reasoning",
                    "id": f"rs_{find_marker(reply.thinking)}",
                    "summary": [{"type": "summary_text", "text": reply.thinking}],
                    "encrypted_content": sealed(reply.thinking),
                }
            )
        self.items += [*text_blocks, *calls] if reply.text_first else [*calls, *text_blocks]

    @staticmethod
    def add_text(reply: Reply) -> Body:
        text_value = reply.text or ""
        if reply.thinking is None:
            return {"role": "assistant", "content": text_value}
        return {
            "type": "message",
            "id": f"msg_{find_marker(reply.thinking)}",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": text_value, "annotations": []}],
        }

    @staticmethod
    def call(call: Call, *, named: bool) -> Body:
        free = call.kind == "custom"
        item: Body = {"type": "custom_tool_call" if free else "function_call"}
        if named and call.id is OWN:
            item["id"] = f"{'ctc' if free else 'fc'}_{call.marker}"
        if call.id is not ABSENT:
            item["call_id"] = f"call_{call.marker}" if call.id is OWN else call.id
        if free:
            return {**item, "name": call.tool, "input": call.text}
        arguments = call.text if call.text is not None else json.dumps(call.arguments, ensure_ascii=False)
        return {**item, "name": call.tool, "arguments": arguments}

    @staticmethod
    def result(result: Result) -> Body:
        item: Body = {"type": "custom_tool_call_output" if result.kind == "custom" else "function_call_output"}
        if result.id is OWN:
            item["call_id"] = f"call_{result.call}"
        elif result.id is not ABSENT:
            item["call_id"] = result.id
        if result.form == "parts" or result.picture:
            parts = [text(result.text)] if result.text else []
            return {**item, "output": [*parts, picture(result.picture)] if result.picture else parts}
        return item if result.form == "omitted" else {**item, "output": result.text}


def build_responses_body(scenario: Scenario, model: str | None) -> Body:
    return ItemBuilder(scenario).body(model)
