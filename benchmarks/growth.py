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
from typing import NamedTuple

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
TARGETS: tuple[tuple[str, str | None], ...] = (
    *((api, None) for api in ("openai-chat", "openai-responses", "anthropic", "gemini", "kimi", "mistral")),
    ("anthropic", BOUND_MODEL),
)
RESULT = "a line of a tool result\n" * 40


class Session(NamedTuple):
    """A conversation, and a function that adds one turn to it."""

    chat: segue.Conversation
    add_turn: Callable[[], None]


def start_session(messages: int, target: str, model: str | None) -> Session:
    """Return a conversation of this length. With `model`, the replies are those of that model at the target."""
    chat = segue.Conversation(system="Be brief.", tools=TOOLS)
    chat.add_user("begin")
    number = 0
    provider = "openai" if model is None else target
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
        chat.render(target, model)
    while len(chat.messages) < messages:
        add_turn()
        if model is not None:
            chat.render(target, model)
    return Session(chat, add_turn)


def measure(target: str, model: str | None, lengths: tuple[int, ...], rounds: int) -> list[str]:
    """Return the milliseconds of a turn at each length and of a full render at the longest, and the ratios."""
    sessions = {length: start_session(length, target, model) for length in lengths}
    least = dict.fromkeys(lengths, float("inf"))
    for chat, _ in sessions.values():
        chat.render(target, model)
    for _ in range(rounds):
        for length, (chat, add_turn) in sessions.items():

            def take_turn(chat: segue.Conversation = chat, add_turn: Callable[[], None] = add_turn) -> None:
                add_turn()
                assert len(chat.render(target, model).fragments) > 2

            least[length] = min(least[length], time_once(take_turn))
    short, long = lengths[0], lengths[-1]
    fresh = segue.Conversation.load(sessions[long].chat.dump())
    whole = time_once(lambda: fresh.render(target, model).data)
    cells = [f"{least[length] * 1e3:.2f}" for length in lengths]
    name = target if model is None else f"{target}, bound reasoning"
    return [name, *cells, f"{whole * 1e3:.0f}", f"{least[long] / least[short]:.2f}", f"{whole / least[long]:.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small")
    parser.add_argument("--write", action="store_true", help="write the table into docs/speed.md")
    options = parser.parse_args()
    lengths = (100, 1000) if options.quick else (100, 1000, 10_000)
    rows = [measure(target, model, lengths, 5 if options.quick else 15) for target, model in TARGETS]
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
