"""What `segue demo` plays: one agent's task with every oddity that a switch of models trips over.

`CONVERSATION` is the request body of a Kimi client at the moment of the first switch. `SCRIPTS` holds, in each API's
own form, what the models answer at later stops and what the client adds to it. Data only; nothing here is random.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

__all__ = ["CONVERSATION", "NAIVE", "ODDITIES", "ORIGIN", "SCRIPTS", "SMALL_TALK", "Json", "Script", "Visit"]

Json = dict[str, Any]

ORIGIN = "kimi"
ODDITIES = (
    "five calls at once, after some thinking",
    "one of them fails",
    "one is cut off by the user and never answers",
    "one answers late, after the user has spoken",
    "one id is used twice, for two different calls",
)


def _tool(name: str, description: str, *required: str) -> Json:
    properties = {key: {"type": "string"} for key in required}
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def _call(call_id: str, name: str, **arguments: object) -> Json:
    text = json.dumps(arguments, ensure_ascii=False)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def _result(call_id: str, content: str) -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def _user(content: str) -> Json:
    return {"role": "user", "content": content}


CONVERSATION: Json = {
    "model": "kimi-k2-thinking",
    "max_tokens": 4096,
    "tools": [
        _tool("search_flights", "Flights between two cities on a day.", "origin", "destination", "day"),
        _tool("get_weather", "The forecast for a city.", "city", "day"),
        _tool("find_hotels", "Hotels with rooms left.", "city", "nights"),
        _tool("museum_hours", "When a museum is open.", "museum"),
        _tool("convert_currency", "An amount in another currency.", "amount", "to"),
        _tool("find_restaurants", "Restaurants of a quarter.", "quarter"),
        _tool("book", "Book a room or a table. Costs money.", "what", "when"),
    ],
    "messages": [
        {"role": "system", "content": "You plan trips. Look things up together where you can. Book what was agreed."},
        _user(
            "A weekend in Lisbon for two, 3 to 5 October, from Berlin: flights, weather, a hotel, the hours of the "
            "tile museum, and what 900 Swiss francs are in euros."
        ),
        {
            "role": "assistant",
            "content": "",
            "reasoning_content": "Five lookups, none needs another: all at once.",
            "tool_calls": [
                _call("functions.search_flights:0", "search_flights", origin="BER", destination="LIS", day="10-03"),
                _call("functions.get_weather:1", "get_weather", city="Lisbon", day="10-04"),
                _call("functions.find_hotels:2", "find_hotels", city="Lisbon", nights="2"),
                _call("functions.museum_hours:3", "museum_hours", museum="Museu Nacional do Azulejo"),
                _call("functions.convert_currency:4", "convert_currency", amount="900 CHF", to="EUR"),
            ],
        },
        _result("functions.search_flights:0", "TP 533, 09:45, 118 EUR"),
        _result("functions.get_weather:1", "[error] 503, overloaded"),
        _result("functions.find_hotels:2", "Casa do Rio, 140 EUR"),
        # The user cuts in: convert_currency is never answered, museum_hours comes after these words.
        _user("Stop, I know my budget. Is the museum open on Sunday?"),
        _result("functions.museum_hours:3", "open Tue-Sun, 10 to 18"),
        {
            "role": "assistant",
            "content": "Yes, on Sunday from 10 to 18. I try the weather once more.",
            "reasoning_content": "The forecast failed before; the service may be back.",
            # The id of the failed call again.
            "tool_calls": [_call("functions.get_weather:1", "get_weather", city="Lisbon", day="10-05")],
        },
        _result("functions.get_weather:1", "sunny, 24 °C"),
        _user("Good. Book the hotel by the river."),
    ],
}


class Visit(NamedTuple):
    """One stop: what happens there in a line, the model's reply, and what the client appends after it."""

    tale: str
    reply: Json
    then: tuple[Json, ...]


class Script(NamedTuple):
    """The stops at one API: the list of the body that grows, and how a reply becomes an entry of it."""

    key: str
    entry: Callable[[Json], Json]
    visits: tuple[Visit, ...]


def _chat_entry(reply: Json) -> Json:
    return reply["choices"][0]["message"]


def _chat_reply(content: str | None, *calls: Json) -> Json:
    message: Json = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = list(calls)
    finish = "tool_calls" if calls else "stop"
    return {"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def _anthropic_entry(reply: Json) -> Json:
    return {"role": "assistant", "content": reply["content"]}


SCRIPTS: Mapping[str, Script] = {
    "openai-chat": Script(
        "messages",
        _chat_entry,
        (
            Visit(
                "the model books the room, the user asks for a table",
                _chat_reply(None, _call("call_Zt8Qw3nLr5Vb1XcY7mKd0aPe", "book", what="Casa do Rio", when="10-03")),
                (
                    _result("call_Zt8Qw3nLr5Vb1XcY7mKd0aPe", "booked, code R7K2"),
                    _user("And a table for Saturday night, in Alfama or Belém."),
                ),
            ),
            Visit(
                "the model books the table, the program crashes before the result is stored",
                _chat_reply(
                    "Alfama it is.",
                    _call("call_Hs4Jd9fGk2Lp6QwE8rTy1uIo", "book", what="Table at Taberna Sol", when="10-04 20:00"),
                ),
                (_user("Sorry, my battery died. Did that go through?"),),
            ),
        ),
    ),
    "anthropic": Script(
        "messages",
        _anthropic_entry,
        (
            Visit(
                "the model thinks (signed), asks the same tool twice, one call fails",
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [
                        {
                            "type": "thinking",
                            "thinking": "Two quarters, so two lookups at once.",
                            "signature": "c2VndWUgZGVtbywgbm8gcmVhbCBzaWduYXR1cmU=",
                        },
                        {"type": "text", "text": "I look in both quarters."},
                        {
                            "type": "tool_use",
                            "id": "toolu_01Kc5sVb8pQx2LmN7rTe4Wya",
                            "name": "find_restaurants",
                            "input": {"quarter": "Alfama"},
                        },
                        {
                            "type": "tool_use",
                            "id": "toolu_01Rf9dGh3jKl6ZxC1vBn8Mqw",
                            "name": "find_restaurants",
                            "input": {"quarter": "Belém"},
                        },
                    ],
                    "stop_reason": "tool_use",
                },
                (
                    {
                        "role": "user",
                        "content": [
                            {
                                "type": "tool_result",
                                "tool_use_id": "toolu_01Kc5sVb8pQx2LmN7rTe4Wya",
                                "content": "Taberna Sol, 8 p.m.",
                            },
                            {
                                "type": "tool_result",
                                "tool_use_id": "toolu_01Rf9dGh3jKl6ZxC1vBn8Mqw",
                                "content": "timed out",
                                "is_error": True,
                            },
                            {"type": "text", "text": "Then the first one, at eight."},
                        ],
                    },
                ),
            ),
        ),
    ),
    "kimi": Script(
        "messages",
        _chat_entry,
        (Visit("the model closes the task", _chat_reply("I can't tell: book the table again, the rest is done."), ()),),
    ),
}

# For a wire without a script, or visited more often than its script says: what follows the first words, brought into
# its form by segue itself.
SMALL_TALK: Json = {
    "messages": [
        _user("Where are we?"),
        {"role": "assistant", "content": "The hotel is booked; the table is being looked for."},
        _user("Good, go on."),
    ]
}


def _copied_by_hand(body: Json) -> Json:
    """The Messages body that a quick translation makes: other field names, the same ids in the same order."""
    messages: list[Json] = []
    results: list[Json] | None = None
    for message in body["messages"][1:]:
        if message["role"] == "tool":
            if results is None:
                results = []
                messages.append({"role": "user", "content": results})
            results.append(
                {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}
            )
            continue
        results = None
        if message["role"] == "user":
            messages.append(message)
        else:
            text = [{"type": "text", "text": message["content"]}] if message["content"] else []
            messages.append({"role": "assistant", "content": [*text, *map(_tool_use, message["tool_calls"])]})
    head = {"max_tokens": body["max_tokens"], "system": body["messages"][0]["content"]}
    declared = (tool["function"] for tool in body["tools"])
    tools = [{"name": tool["name"], "input_schema": tool["parameters"]} for tool in declared]
    return {**head, "tools": tools, "messages": messages}


def _tool_use(call: Json) -> Json:
    function = call["function"]
    return {"type": "tool_use", "id": call["id"], "name": function["name"], "input": json.loads(function["arguments"])}


# Wire → what programs hand over to it when they copy field by field; elsewhere the body goes as it is.
NAIVE: Mapping[str, Callable[[Json], Json]] = {"anthropic": _copied_by_hand}
