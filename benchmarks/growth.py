"""What one more turn costs in a conversation that has many: rendered by increments, against the whole.

A turn is a reply with thinking and two calls, their results, and the next request as a list of fragments. All lengths
take turns in one process, and the least CPU time of several rounds counts.

    make bench                                 all of it
    python benchmarks/growth.py --quick        small
    python benchmarks/growth.py --write        the table also into docs/speed.md
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from convert import put_into_page, table

import segue
from segue.canonical.blocks import Origin, Text, Thinking, ToolCall
from segue.canonical.request import Reply

TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("look", "run")
]
TARGETS = ("openai-chat", "openai-responses", "anthropic", "gemini", "kimi", "mistral")
RESULT = "a line of what the tool said\n" * 40


class Talk(NamedTuple):
    """A conversation of so many messages, and how it goes on."""

    chat: segue.Conversation
    turn: Callable[[], None]


def talk(messages: int) -> Talk:
    chat = segue.Conversation(system="Be brief.", tools=TOOLS)
    chat.add_user("begin")
    number = 0

    def turn() -> None:
        nonlocal number
        number += 1
        calls = [
            ToolCall(name, {"path": f"src/{number}"}, origin=Origin("openai", raw_id=f"call_{number}_{name}"))
            for name in ("look", "run")
        ]
        thought = Thinking("I should look.", origin=Origin("openai", identity="absent"))
        for call in chat.add_reply(Reply((thought, Text("I look."), *calls))).calls:
            chat.add_result(call, RESULT)
        if number % 5 == 0:
            chat.add_reply(Reply((Text("So it is."),)))
            chat.add_user("And then?")

    while len(chat.history) < messages:
        turn()
    return Talk(chat, turn)


def seconds(work: Callable[[], Any]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def measured(target: str, lengths: tuple[int, ...], rounds: int) -> list[str]:
    """A turn at each length and the whole at the longest, in milliseconds; then the ratios."""
    talks = {length: talk(length) for length in lengths}
    more = dict.fromkeys(lengths, float("inf"))
    for chat, _ in talks.values():
        chat.render(target)
    for _ in range(rounds):
        for length, (chat, turn) in talks.items():

            def once(chat: segue.Conversation = chat, turn: Callable[[], None] = turn) -> None:
                turn()
                assert len(chat.render(target).fragments) > 2

            more[length] = min(more[length], seconds(once))
    short, long = lengths[0], lengths[-1]
    fresh = segue.Conversation.load(talks[long].chat.dump())
    whole = seconds(lambda: fresh.render(target).data)
    cells = [f"{more[length] * 1e3:.2f}" for length in lengths]
    return [target, *cells, f"{whole * 1e3:.0f}", f"{more[long] / more[short]:.2f}", f"{whole / more[long]:.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small")
    parser.add_argument("--write", action="store_true", help="put the table into docs/speed.md")
    asked = parser.parse_args()
    lengths = (100, 1000) if asked.quick else (100, 1000, 10_000)
    rows = [measured(target, lengths, 5 if asked.quick else 15) for target in TARGETS]
    head = [
        "target",
        *(f"a turn at {length:,} (ms)" for length in lengths),
        "the whole (ms)",
        "long/short",
        "whole/turn",
    ]
    told = table(head, rows)
    print(told)
    if asked.write:
        put_into_page(told, "growth")


if __name__ == "__main__":
    main()
