"""Scenarios as Converse bodies."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

from tests.properties.bodies_anthropic import signature
from tests.properties.scenario import ABSENT, OWN, Call, Picture, Reply, Result, Scenario, System, UserText

Body = dict[str, Any]

# BED-07: text is separate from results
ALONE = ("llama", "mistral")


def picture(of: Picture) -> Body:
    """There are no images by URL: one becomes text."""
    if of.by_url:
        return {"text": f"a picture at {of.url}"}
    return {"image": {"format": "png", "source": {"bytes": of.data}}}


class ConverseBuilder:
    """Builds one body. Consecutive user content is one message (BED-10), results first; replies are not merged."""

    def __init__(self, scenario: Scenario, model: str | None) -> None:
        self.scenario = scenario
        self.model = model or "claude"
        self.messages: list[Body] = []

    def body(self, model: str | None) -> Body:
        events = list(self.scenario.events)
        system = [one.text for one in takewhile(lambda one: isinstance(one, System), events) if isinstance(one, System)]
        for event in events[len(system) :]:
            match event:
                case System():
                    self.add("user", [{"text": event.text}])
                case UserText():
                    shown = [picture(event.picture)] if event.picture else []
                    self.add("user", [*({"text": value} for value in event.texts), *shown])
                case Reply():
                    self.add("assistant", self.reply(event))
                case Result():
                    self.add("user", [self.result(event)])
        body: Body = {"modelId": model} if model else {}
        if system:
            body["system"] = [{"text": value} for value in system]
        body["messages"] = self.messages
        body["inferenceConfig"] = {"maxTokens": 4096}
        # BED-03
        names = [tool.name for tool in self.scenario.tools] or [call.tool for call in self.scenario.calls[:1]]
        if names:
            body["toolConfig"] = {"tools": [self.tool(name) for name in names]}
        if self.scenario.thinking_on and "claude-sonnet-4-5" in self.model:
            body["additionalModelRequestFields"] = {"thinking": {"type": "enabled", "budget_tokens": 2048}}
        return body

    @staticmethod
    def tool(name: str) -> Body:
        schema = {"type": "object", "properties": {"q": {"type": "string"}}}
        return {"toolSpec": {"name": name, "description": "Looks.", "inputSchema": {"json": schema}}}

    def add(self, role: str, content: list[Body]) -> None:
        last = self.messages[-1] if self.messages else None
        if last is None or role == "assistant" or last["role"] != role or self.breaks(last["content"], content):
            self.messages.append({"role": role, "content": content})
        else:
            last["content"].extend(content)

    def breaks(self, before: list[Body], after: list[Body]) -> bool:
        """Whether this is a new message all the same: results come first in one, and alone for some models."""
        results = [["toolResult" in block for block in blocks] for blocks in (before, after)]
        mixed = any(results[0]) != any(results[1]) and any(name in self.model for name in ALONE)
        return mixed or (any(results[1]) and not all(results[0]))

    def reply(self, reply: Reply) -> list[Body]:
        blocks: list[Body] = []
        if reply.thinking is not None:
            thought = {"text": reply.thinking, "signature": signature(reply.thinking)}
            blocks.append({"reasoningContent": {"reasoningText": thought}})
        uses = [self.use(call) for call in reply.calls]
        text_blocks = [{"text": reply.text}] if reply.text is not None and (reply.text or not uses) else []
        return [*blocks, *text_blocks, *uses] if reply.text_first or not uses else [*blocks, *uses, *text_blocks]

    def use(self, call: Call) -> Body:
        entry: Body = {}
        if call.id is not ABSENT:
            entry["toolUseId"] = self.own(call.marker) if call.id is OWN else call.id
        value = call.arguments
        if call.text is not None:
            value = {"input": call.text} if call.kind == "custom" else call.text
        return {"toolUse": {**entry, "name": call.tool, "input": value}}

    def own(self, marker: str) -> str:
        """MIS-01 holds for Mistral's models here, too."""
        return f"{marker}xyz" if "mistral" in self.model else f"tooluse_{marker}"

    def result(self, result: Result) -> Body:
        block: Body = {}
        if result.id is OWN:
            block["toolUseId"] = self.own(str(result.call))
        elif result.id is not ABSENT:
            block["toolUseId"] = result.id
        text = result.text or ("[error]" if result.error else "")
        content = [{"text": text}] if text else []
        block["content"] = [*content, picture(result.picture)] if result.picture else content
        if result.error:
            block["status"] = "error"
        return {"toolResult": block}


def build_bedrock_body(scenario: Scenario, model: str | None) -> Body:
    return ConverseBuilder(scenario, model).body(model)
