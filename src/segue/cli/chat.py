"""`segue chat`: an interactive conversation with an agent in the terminal."""

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


@options.command("chat", json_help="Not supported; use segue run --json.")
@click.argument("prompt", nargs=-1, metavar="[PROMPT]")
@options.agent_options
@click.pass_context
def command(ctx: click.Context, prompt: tuple[str, ...], *, as_json: bool, **flags: Any) -> None:
    """Chat with a model that uses tools. `segue` without arguments does the same.

    The model can be changed at any time, even in the middle of a task: /model kimi/kimi-k2-0905-preview. /help lists
    the commands. Tools that change something or leave the working folder ask for permission first. Ctrl-C cancels the
    turn, a second Ctrl-C exits. Without a terminal, each line of stdin is a message.

    \b
      segue chat -m anthropic/claude-sonnet-5
      segue chat -c
    """
    from segue.cli.wishes import Wishes

    if as_json:
        raise click.UsageError("segue chat has no JSON output; use segue run --json", ctx)
    if getattr(sys, "stdin", None) is None or getattr(sys, "stdout", None) is None:
        raise streams.Unreadable("a chat needs stdin and stdout; one of them is closed")
    asyncio.run(_held(Wishes.given(ctx, flags), " ".join(prompt)))


async def _held(run_options: Wishes, prompt: str) -> None:
    from segue.cli.agent import Agent
    from segue.cli.chatting.loop import Chat

    interactive = streams.on_terminal(sys.stdin)
    chat = Chat()
    async with Agent(
        run_options,
        listen=chat.hear,
        approve=chat.approve if interactive else None,
        ask_trust=_trusts if interactive else None,
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
    """`TerminalUI` on a capable terminal, else `LineUI`."""
    from segue.cli.chatting.plain import Plain

    capable = streams.on_terminal(sys.stdin) and streams.on_terminal(sys.stdout) and os.environ.get("TERM") != "dumb"
    if not capable or sys.platform == "win32":
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


def _trusts(file: Path, settings: Sequence[str]) -> bool:
    """Show the restricted settings of a project file and ask whether to trust it."""
    from segue.cli.chatting.plain import forget_typed
    from segue.view.clean import harmless_line

    click.echo(f"{harmless_line(str(file))} is not trusted. It sets:", err=True)
    for setting in settings:
        click.echo(f"  {harmless_line(setting)}", err=True)
    forget_typed()
    return click.confirm("Trust this file until it changes?", default=False, err=True)


def _farewell(chat: Chat) -> list[Row]:
    conversation_id = chat.agent.conversation
    if conversation_id is None or not chat.session.book.messages:
        return []
    return [[("class:dim", f"  to continue: segue chat -s {conversation_id}")]]
