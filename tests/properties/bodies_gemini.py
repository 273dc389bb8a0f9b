"""Scenarios as Gemini bodies."""

from __future__ import annotations

import base64
from itertools import takewhile
from typing import Any

from tests.properties.scenario import ABSENT, OWN, Call, Picture, Reply, Result, Scenario, System, UserText

Body = dict[str, Any]

OLDER = ("gemini-2.0-flash", "gemini-2.5-pro", "gemini-2.5-flash")


def signature(value: str) -> str:
    return base64.b64encode(f"signed: {value[:24]}".encode()).decode()


def picture(of: Picture) -> Body:
    if of.by_url:
        return {"fileData": {"mimeType": "image/png", "fileUri": of.url}}
    return {"inlineData": {"mimeType": "image/png", "data": of.data}}


class ContentsBuilder:
    """Builds one body. A run of results is one content, and user text never joins it.

    The first call of each reply is signed: where the client lost all results of a reply, that tells it from the next.
    """

    def __init__(self, scenario: Scenario, model: str | None) -> None:
        self.scenario = scenario
        self.model = model
        self.newer = model not in OLDER
        self.contents: list[Body] = []
        self.results: list[Body] | None = None

    def body(self) -> Body:
        events = list(self.scenario.events)
        system = [one.text for one in takewhile(lambda one: isinstance(one, System), events) if isinstance(one, System)]
        for event in events[len(system) :]:
            match event:
                case System():
                    self.add("user", [{"text": event.text}])
                case UserText():
                    text_blocks = [{"text": text} for text in event.texts]
                    self.add("user", [*text_blocks, picture(event.picture)] if event.picture else text_blocks)
                case Reply():
                    self.add("model", self.reply(event))
                case Result():
                    self.result(event)
        body: Body = {"model": self.model} if self.model else {}
        if system:
            body["systemInstruction"] = {"parts": [{"text": value} for value in system]}
        body["contents"] = self.contents
        if self.scenario.tools:
            schema = {"type": "OBJECT", "properties": {"q": {"type": "STRING"}}}
            declared = [
                {"name": one.name, "description": "Looks.", "parameters": schema} for one in self.scenario.tools
            ]
            body["tools"] = [{"functionDeclarations": declared}]
        if self.scenario.thinking_on and self.model != "gemini-2.0-flash":
            thinking = {"thinkingLevel": "HIGH"} if self.newer else {"thinkingBudget": 2048}
            body["generationConfig"] = {"thinkingConfig": thinking}
        return body

    def add(self, role: str, parts: list[Body]) -> None:
        self.results = None
        self.contents.append({"role": role, "parts": parts})

    def reply(self, reply: Reply) -> list[Body]:
        parts: list[Body] = []
        if reply.thinking is not None:
            parts.append({"text": reply.thinking, "thought": True})
        calls = [self.call(call) for call in reply.calls]
        if calls:
            calls[0]["thoughtSignature"] = signature(reply.thinking or reply.calls[0].marker)
        text_blocks = [{"text": reply.text}] if reply.text is not None and (reply.text or not calls) else []
        return [*parts, *text_blocks, *calls] if reply.text_first or not calls else [*parts, *calls, *text_blocks]

    def call(self, call: Call) -> Body:
        inner: Body = {}
        if call.id is OWN:
            inner = {"id": f"fc_{call.marker}"}
        elif call.id is not ABSENT:
            inner = {"id": call.id}
        value = call.arguments
        if call.text is not None:
            value = {"input": call.text} if call.kind == "custom" else call.text
        return {"functionCall": {**inner, "name": call.tool, "args": value}}

    def result(self, result: Result) -> None:
        inner: Body = {}
        if result.id is OWN:
            inner = {"id": f"fc_{result.call}"}
        elif result.id is not ABSENT:
            inner = {"id": result.id}
        # By position any result matches an open call, so an orphan has a name of its own.
        inner["name"] = result.tool if result.call is not None else "a_lost_tool"
        key = "error" if result.error else "output"
        inner["response"] = {} if result.form == "omitted" and not result.error else {key: result.text}
        if result.picture:
            inner["parts"] = [picture(result.picture)]
        if self.results is None:
            self.add("user", [])
            self.results = self.contents[-1]["parts"]
        assert self.results is not None
        self.results.append({"functionResponse": inner})


def build_gemini_body(scenario: Scenario, model: str | None) -> Body:
    return ContentsBuilder(scenario, model).body()
