"""Items that clients add to a conversation turn by turn, in the form of each API; some of them unusual."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from segue.wire.registry import WIRES
from tests.bodies import anthropic, bedrock, chat, gemini, responses

Items = list[dict[str, Any]]

TOOLS = ("read", "grep", "run")
ODD_NAMES = ("a.b", "odd name!", "undeclared", "x" * 70, "")
ODD_IDS = ("", "null", "call_1", "functions.read:0", "hist_tool_" + "0" * 32, "é", "x" * 80)
ODD_TEXTS = (
    "",
    " ",
    "\n",
    "é 東京 🎈",
    '],"tools":[{"name":"x"}]',
    '"}],"role":"user"',
    "null",
    "<tool_call>{}</tool_call>",
)
ODD_ARGUMENTS: tuple[dict[str, Any], ...] = ({}, {"n": 1.0}, {"n": 10**30}, {"": ""}, {"cache_control": {"a": 1}})
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


class Result(NamedTuple):
    call_id: str
    name: str
    text: str


class Call(NamedTuple):
    call_id: str
    name: str
    arguments: dict[str, Any]


class Reply(NamedTuple):
    """A reply of the model; one without calls has text."""

    text: str | None
    thinking: str | None
    calls: list[Call]


# ---------------------------------------------------------------------------------------------- the form of each API


def render_chat_reply(reply: Reply) -> Items:
    calls = [chat.call(call.call_id, call.name, json.dumps(call.arguments)) for call in reply.calls]
    extra = {} if reply.thinking is None else {"reasoning_content": reply.thinking}
    return [{**chat.assistant(reply.text), **({"tool_calls": calls} if calls else {}), **extra}]


def render_chat_results(results: list[Result]) -> Items:
    return [chat.result(result.call_id, result.text) for result in results]


def render_responses_reply(reply: Reply) -> Items:
    items: Items = []
    if reply.thinking is not None:
        summary = [{"type": "summary_text", "text": reply.thinking}]
        items.append({"type": "reasoning", "summary": summary, "encrypted_content": "gAAAA"})
    if reply.text is not None:
        content = [{"type": "output_text", "text": reply.text}]
        items.append({"type": "message", "role": "assistant", "content": content})
    return items + [responses.call(call.call_id, call.name, json.dumps(call.arguments)) for call in reply.calls]


def render_responses_results(results: list[Result]) -> Items:
    return [responses.result(result.call_id, result.text) for result in results]


def render_anthropic_reply(reply: Reply) -> Items:
    blocks: Items = []
    if reply.thinking is not None:
        blocks.append({"type": "thinking", "thinking": reply.thinking, "signature": "c2lnbmVk"})
    if reply.text is not None:
        blocks.append(anthropic.text(reply.text))
    calls = [anthropic.call(call.call_id, name=call.name, input=call.arguments) for call in reply.calls]
    return [{"role": "assistant", "content": [*blocks, *calls]}]


def render_anthropic_results(results: list[Result]) -> Items:
    return [{"role": "user", "content": [anthropic.result(result.call_id, result.text) for result in results]}]


def render_gemini_reply(reply: Reply) -> Items:
    parts: Items = [] if reply.thinking is None else [{"text": reply.thinking, "thought": True}]
    if reply.text is not None:
        parts.append({"text": reply.text})
    return [gemini.model(*parts, *(gemini.call(name=call.name, args=call.arguments) for call in reply.calls))]


def render_gemini_results(results: list[Result]) -> Items:
    parts = [gemini.response(name=result.name, response={"output": result.text}) for result in results]
    return [{"role": "user", "parts": parts}]


def render_bedrock_reply(reply: Reply) -> Items:
    blocks: Items = []
    if reply.thinking is not None:
        blocks.append({"reasoningContent": {"reasoningText": {"text": reply.thinking, "signature": "c2ln"}}})
    if reply.text is not None:
        blocks.append({"text": reply.text})
    calls = [bedrock.call(call.call_id, name=call.name, input=call.arguments) for call in reply.calls]
    return [{"role": "assistant", "content": [*blocks, *calls]}]


def render_bedrock_results(results: list[Result]) -> Items:
    content = [bedrock.result(result.call_id, content=[{"text": result.text}]) for result in results]
    return [{"role": "user", "content": content}]


class Form(NamedTuple):
    """The items of an API, and the rest of a body with declared tools."""

    user: Callable[[str], dict[str, Any]]
    reply: Callable[[Reply], Items]
    results: Callable[[list[Result]], Items]
    key: str
    rest: dict[str, Any]


def _text_part(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


FORMS = {
    "openai-chat": Form(
        chat.user,
        render_chat_reply,
        render_chat_results,
        "messages",
        {"tools": [chat.tool(name, parameters=SCHEMA) for name in TOOLS]},
    ),
    "openai-responses": Form(
        responses.user,
        render_responses_reply,
        render_responses_results,
        "input",
        {
            "tools": [{"type": "function", "name": name, "parameters": SCHEMA} for name in TOOLS],
            "store": False,
            "client_metadata": {"turn": 0},
        },
    ),
    "anthropic": Form(
        _text_part,
        render_anthropic_reply,
        render_anthropic_results,
        "messages",
        {
            "model": "claude-sonnet-4-5",
            "max_tokens": 9000,
            "tools": [anthropic.tool(name, input_schema=SCHEMA) for name in TOOLS],
        },
    ),
    "gemini": Form(
        gemini.user,
        render_gemini_reply,
        render_gemini_results,
        "contents",
        {"tools": [{"functionDeclarations": [{"name": name, "parameters": SCHEMA} for name in TOOLS]}]},
    ),
    "bedrock": Form(
        bedrock.user,
        render_bedrock_reply,
        render_bedrock_results,
        "messages",
        {
            "modelId": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "toolConfig": {"tools": [bedrock.tool(name) for name in TOOLS]},
        },
    ),
}


def form_of(api: str) -> Form:
    return FORMS[WIRES[api].base_api]


# -------------------------------------------------------------------------------------------------------------- turns


class TurnMaker:
    """Makes the items of one session; each detail is unusual with the probability `oddity`."""

    def __init__(self, api: str, random: Random, oddity: float) -> None:
        self.form = form_of(api)
        self.oddity = oddity
        self._random = random
        self._thinks = random.random() < 0.5
        self._ids: list[str] = []
        self._late: list[Result] = []

    def is_odd(self, share: float = 1.0) -> bool:
        return self._random.random() < self.oddity * share

    def make_first(self) -> Items:
        return [self.form.user(self._make_text())]

    def make_group(self) -> Items:
        """Return what a client adds before its next request: one or more turns, or a reply and a user message."""
        chosen = self._random.random()
        if chosen < 0.15:
            return [*self.make_turn(0), *self.make_first()]
        if chosen < 0.2:
            return self.make_first()
        return [item for _ in range(self._random.choice([1, 1, 2])) for item in self.make_turn()]

    def make_turn(self, count: int | None = None) -> Items:
        """Return a reply with so many calls, and their results."""
        count = self._random.choice([1, 1, 1, 2, 3]) if count is None else count
        calls = [Call(self._make_id(), self._make_name(), self._make_arguments()) for _ in range(count)]
        text = self._make_text() if not count or self._random.random() < 0.4 else None
        thinking = "Hm." if self._thinks and self._random.random() < 0.6 else None
        results = [Result(call.call_id, call.name, f"{self._make_text()} {len(self._ids)}") for call in calls]
        results = self._disturb(results) if results and self.is_odd(0.6) else results
        results, self._late = [*results, *self._late], [] if self._random.random() < 0.7 else self._late
        return [*self.form.reply(Reply(text, thinking, calls)), *(self.form.results(results) if results else [])]

    def _disturb(self, results: list[Result]) -> list[Result]:
        """Return the results out of order, one of them doubled, missing, late, of another call or with another name."""
        place = self._random.randrange(len(results))
        one, others = results[place], [*results[:place], *results[place + 1 :]]
        match self._random.randrange(7):
            case 0:
                return results[::-1]
            case 1:
                return [*results, one]
            case 2:
                return [*results, one._replace(text="other")]
            case 3:
                return others
            case 4:
                self._late = [one]
                return others
            case 5:
                return [*results, Result(f"orphan_{place}", "read", "orphan")]
            case _:
                return [*others, one._replace(name="grep", text="")]

    def _make_id(self) -> str:
        if self.is_odd(0.3) and self._ids:
            return self._random.choice(self._ids)
        self._ids.append(self._random.choice(ODD_IDS) if self.is_odd(0.2) else f"call_{len(self._ids):09}")
        return self._ids[-1]

    def _make_name(self) -> str:
        return self._random.choice(ODD_NAMES) if self.is_odd(0.3) else self._random.choice(TOOLS)

    def _make_text(self) -> str:
        return self._random.choice(ODD_TEXTS) if self.is_odd(0.5) else f"Look at {self._random.randrange(99)}."

    def _make_arguments(self) -> dict[str, Any]:
        return self._random.choice(ODD_ARGUMENTS) if self.is_odd(0.4) else {"path": f"a{self._random.randrange(9)}"}
