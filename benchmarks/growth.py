"""The cost of one more turn in a long conversation: rendered incrementally, compared with a full render.

A turn is a reply with reasoning and two calls, their results, and the next request as a list of fragments. All lengths
run in turns in one process, and the least CPU time of several rounds counts.

    make bench                                 all of it
    python benchmarks/growth.py --quick        small
    python benchmarks/growth.py --write        the table also into docs/speed.md
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

from _measure import format_table, time_once, write_page

import segue
from segue.canonical.blocks import Origin, Text, Thinking, ToolCall
from segue.canonical.request import Reply

TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("look", "run")
]
BOUND_MODEL = "claude-fable-5-1"
"""A model whose reasoning is bound to everything before it (ANT-28)."""


class Target(NamedTuple):
    """What a conversation is rendered for. With `model`, the replies are those of that model."""

    api: Any
    model: str | None = None
    declares_tools: bool = True
    tool_format: Any = "auto"

    @property
    def name(self) -> str:
        more = "bound reasoning" if self.model else "" if self.declares_tools else "no declared tools"
        more = more or (f"calls as {self.tool_format} text" if self.tool_format != "auto" else "")
        return f"{self.api}, {more}" if more else self.api

    def render(self, chat: segue.Conversation) -> segue.Rendered:
        return chat.render(self.api, self.model, tool_format=self.tool_format)


TARGETS = (
    *map(Target, ("openai-chat", "openai-responses", "anthropic", "gemini")),
    Target("anthropic", BOUND_MODEL),
    Target("anthropic", declares_tools=False),
    Target("openai-chat", tool_format="hermes"),
)
RESULT = "a line of a tool result\n" * 40


class Session(NamedTuple):
    """A conversation, and a function that adds one turn to it."""

    chat: segue.Conversation
    add_turn: Callable[[], None]


def start_session(messages: int, target: Target) -> Session:
    """Return a conversation of this length."""
    chat = segue.Conversation(system="Be brief.", tools=TOOLS if target.declares_tools else ())
    chat.add_user("begin")
    number = 0
    model = target.model
    provider = "openai" if model is None else target.api
    signature = None if model is None else "c2lnbmVk"

    def add_turn() -> None:
        nonlocal number
        number += 1
        calls = [
            ToolCall(name, {"path": f"src/{number}"}, origin=Origin(provider, raw_id=f"call_{number}_{name}"))
            for name in ("look", "run")
        ]
        thought = Thinking("I should look.", signature, origin=Origin(provider, model, identity="absent"))
        for call in chat.add_reply(Reply((thought, Text("I look."), *calls), model=model)).calls:
            chat.add_result(call, RESULT)
        if number % 5 == 0:
            chat.add_reply(Reply((Text("So it is."),), model=model))
            chat.add_user("And then?")

    if model is not None:
        target.render(chat)
    while len(chat.messages) < messages:
        add_turn()
        if model is not None:
            target.render(chat)
    return Session(chat, add_turn)


def measure(target: Target, lengths: tuple[int, ...], rounds: int) -> list[str]:
    """Return the milliseconds of a turn at each length and of a full render at the longest, and the ratios."""
    sessions = {length: start_session(length, target) for length in lengths}
    least = dict.fromkeys(lengths, float("inf"))
    for chat, _ in sessions.values():
        target.render(chat)
    for _ in range(rounds):
        for length, (chat, add_turn) in sessions.items():

            def take_turn(chat: segue.Conversation = chat, add_turn: Callable[[], None] = add_turn) -> None:
                add_turn()
                assert len(target.render(chat).fragments) > 2

            least[length] = min(least[length], time_once(take_turn))
    short, long = lengths[0], lengths[-1]
    fresh = segue.Conversation.load(sessions[long].chat.dump())
    whole = time_once(lambda: target.render(fresh).data)
    cells = [f"{least[length] * 1e3:.2f}" for length in lengths]
    return [
        target.name,
        *cells,
        f"{whole * 1e3:.0f}",
        f"{least[long] / least[short]:.2f}",
        f"{whole / least[long]:.0f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small")
    parser.add_argument("--write", action="store_true", help="write the table into docs/speed.md")
    options = parser.parse_args()
    lengths = (100, 1000) if options.quick else (100, 1000, 10_000)
    rows = [measure(target, lengths, 5 if options.quick else 15) for target in TARGETS]
    head = [
        "target",
        *(f"a turn at {length:,} (ms)" for length in lengths),
        "the whole (ms)",
        "long/short",
        "whole/turn",
    ]
    text = format_table(head, rows)
    print(text)
    if options.write:
        write_page(text, "growth")


if __name__ == "__main__":
    main()
