"""`segue chat`: a conversation with an agent at the terminal."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from segue.cli import options, streams

if TYPE_CHECKING:
    from collections.abc import Sequence

    from segue.cli.chatting.looks import Row
    from segue.cli.chatting.loop import Chat
    from segue.cli.chatting.surface import Surface
    from segue.cli.wishes import Wishes


@options.command("chat", json_help="Not here: segue run has it.")
@click.argument("prompt", nargs=-1, metavar="[PROMPT]")
@options.agent_options
@click.pass_context
def command(ctx: click.Context, prompt: tuple[str, ...], *, as_json: bool, **wishes: Any) -> None:
    """Talk with a model that uses tools. `segue` alone does the same.

    The model can be changed at any time, in the middle of a task: /model kimi/kimi-k2-0905-preview. /help lists the
    commands. Tools that change something, or leave the working folder, ask first. Ctrl-C ends the turn, a second one
    leaves. Without a terminal each line of stdin is a message.

    \b
      segue chat -m anthropic/claude-sonnet-5
      segue chat -c
    """
    from segue.cli.wishes import Wishes

    if as_json:
        raise click.UsageError("a chat is no JSON value; segue run --json gives one", ctx)
    if getattr(sys, "stdin", None) is None or getattr(sys, "stdout", None) is None:
        raise streams.Unreadable("a chat needs stdin and stdout; one of them is closed")
    asyncio.run(_held(Wishes.given(ctx, wishes), " ".join(prompt)))


async def _held(wishes: Wishes, prompt: str) -> None:
    from segue.cli.agent import Agent
    from segue.cli.chatting.loop import Chat

    typed = streams.on_terminal(sys.stdin)
    chat = Chat()
    async with Agent(
        wishes,
        listen=chat.hear,
        approve=chat.approve if typed else None,
        ask_trust=_trusts if typed else None,
    ) as agent:
        chat.agent, chat.surface = agent, _surface(chat)
        chat.strategy = agent.known.config.settings.compress or chat.strategy
        chat.begin()
        if prompt:
            chat.entered(prompt)
        try:
            await chat.surface.run(chat)
        finally:
            await chat.end()
        chat.say(_farewell(chat))


def _surface(chat: Chat) -> Surface:
    """A terminal where there is one that can do more than lines."""
    from segue.cli.chatting.plain import Plain

    able = streams.on_terminal(sys.stdin) and streams.on_terminal(sys.stdout) and os.environ.get("TERM") != "dumb"
    if not able or sys.platform == "win32":
        return Plain()
    from segue.cli.chatting.completion import ChatCompleter
    from segue.cli.chatting.memory import InputHistory, place
    from segue.cli.chatting.terminal import Terminal

    return Terminal(
        completer=ChatCompleter(chat),
        history=InputHistory(place()),
        footer=chat.footer,
        waiting=lambda: chat.waiting,
        coloured=not os.environ.get("NO_COLOR"),
    )


def _trusts(file: Path, wants: Sequence[str]) -> bool:
    """Before anything else: whether a project's file may do what it wants, all of which is shown."""
    from segue.cli.chatting.plain import forget_typed
    from segue.view.clean import harmless_line

    click.echo(f"{harmless_line(str(file))} wants to set:", err=True)
    for want in wants:
        click.echo(f"  {harmless_line(want)}", err=True)
    forget_typed()
    return click.confirm("Trust it until it changes?", default=False, err=True)


def _farewell(chat: Chat) -> list[Row]:
    name = chat.agent.conversation
    if name is None or not chat.session.book.messages:
        return []
    return [[("class:dim", f"  segue chat -s {name} goes on")]]
