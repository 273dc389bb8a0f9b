"""Histories for templates: calls with difficult arguments, and the prompt that a template renders for a turn."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

from segue.canonical.blocks import ToolCall
from segue.canonical.request import Tool
from segue.wire.text.declared_tools import DeclaredTools
from segue.wire.text.text_format import ResultText
from tests.templates.engine import prompt

Message = dict[str, Any]
Messages = list[Message]

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather of a city.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "Where it is."},
                    "days": {"type": "integer", "description": "How far ahead."},
                    "detail": {
                        "type": "object",
                        "description": "What to tell.",
                        "properties": {"wind": {"type": "boolean", "description": "Whether it blows."}},
                    },
                },
                "required": ["city"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "look",
            "description": "Looks at things.",
            "parameters": {
                "type": "object",
                "properties": {
                    "at": {"type": "string", "description": "At what."},
                    "of": {"type": "array", "description": "Of whom.", "items": {"type": "string"}},
                    "near": {"type": "boolean", "description": "From where."},
                    "zoom": {"type": "number", "description": "How much."},
                },
                "required": ["at"],
            },
        },
    },
]
DECLARATIONS = [
    Tool(tool["function"]["name"], tool["function"]["description"], tool["function"]["parameters"]) for tool in TOOLS
]
DECLARED = DeclaredTools(DECLARATIONS)

CALLS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "one": [("get_weather", {"city": "Paris"})],
    "several": [("get_weather", {"city": "Paris", "days": 3}), ("look", {"at": "it", "near": True, "zoom": 1.5})],
    "the same twice": [("look", {"at": "here"}), ("look", {"at": "here"})],
    "nothing said": [("get_weather", {}), ("look", {})],
    "nested": [("get_weather", {"city": "Łódź", "detail": {"wind": False}}), ("look", {"at": "", "of": ["a", "b"]})],
    "text like numbers": [("get_weather", {"city": "10"}), ("look", {"at": "true"})],
    "quotes and lines": [("look", {"at": 'it\'s "here"\n\tand \\ there\n'}), ("get_weather", {"city": "日本 😀"})],
    "markup": [("look", {"at": "<b>a & b</b> <c/> {x: [1]} `d` ```e```"})],
    "undeclared": [("look", {"at": "Rome", "quick": True, "depth": 2, "by": None, "who": "me"})],
    "null": [("get_weather", {"city": "Paris", "days": None})],
}
"""What is called, by what is odd about it."""

QUESTION: Messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is it like?"}]


def make_calls(calls: list[tuple[str, dict[str, Any]]]) -> list[ToolCall]:
    return [ToolCall(name, arguments, make_id(number)) for number, (name, arguments) in enumerate(calls)]


def make_id(number: int) -> str:
    """An id that all templates accept: nine letters and digits."""
    return f"callabc{number:02d}"


def assistant_message(calls: list[ToolCall], text: str = "") -> Message:
    """An assistant message with arguments as objects, which all templates accept."""
    listed = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in calls
    ]
    return {"role": "assistant", "content": text, "tool_calls": listed}


def tool_messages(results: list[ResultText]) -> Messages:
    return [{"role": "tool", "tool_call_id": one.id, "name": one.name, "content": one.text} for one in results]


def render_added(name: str, before: Messages, messages: Messages, **more: Any) -> str:
    """The text that a template adds for these messages after others, with header and end."""
    without, whole = prompt(name, before, **more), prompt(name, [*before, *messages], **more)
    same = takewhile(lambda signs: signs[0] == signs[1], zip(without, whole, strict=False))
    return whole[sum(1 for _ in same) :]


def strip_whitespace(text: str) -> str:
    """A text without white space."""
    return "".join(text.split())


def results_of(calls: list[ToolCall]) -> list[ResultText]:
    texts = ('{"degrees": 4}', "It is\nblue.")
    return [ResultText(call.name, call.id, texts[number % 2]) for number, call in enumerate(calls)]
