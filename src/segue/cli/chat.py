"""`segue chat`: an interactive conversation with an agent in the terminal."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from segue.cli import options, streams
from segue.cli.options import RunOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from segue.cli.chat_ui.chat import Chat
    from segue.cli.chat_ui.styles import Row
    from segue.cli.chat_ui.ui import ChatUI


@click.command("chat")
@click.argument("prompt", nargs=-1, metavar="[PROMPT]")
@options.agent_options
@click.pass_context
def command(ctx: click.Context, prompt: tuple[str, ...], **flags: Any) -> None:
    """Chat with a model that uses tools. `segue` without arguments does the same.

    /help lists the commands. /model PROVIDER/MODEL switches the model at any time, even in the middle of a task. Tool
    calls that change something or access paths outside the working folder need your permission. Ctrl-C cancels the
    turn, a second Ctrl-C exits. Without a terminal, each line of stdin is a message.

    \b
      segue chat -m anthropic/claude-sonnet-5
      segue chat -c
    """
    if getattr(sys, "stdin", None) is None or getattr(sys, "stdout", None) is None:
        raise streams.BadInputError("a chat needs stdin and stdout; one of them is closed")
    run_options = RunOptions.from_flags(ctx, flags)
    asyncio.run(_run_chat(run_options, _fill_template(run_options, " ".join(prompt))))


def _fill_template(run_options: RunOptions, prompt: str) -> str:
    from segue.cli.prompt_files import find_prompt_file

    if run_options.template is None:
        return prompt
    if not streams.has_working_folder():
        raise streams.BadInputError(streams.FOLDER_GONE)
    return find_prompt_file(run_options.template, Path.cwd()).fill(prompt)


async def _run_chat(run_options: RunOptions, prompt: str) -> None:
    from segue.cli.agent import Agent
    from segue.cli.chat_ui.chat import Chat

    interactive = streams.is_terminal(sys.stdin)
    chat = Chat()
    async with Agent(
        run_options,
        on_event=chat.on_event,
        approve=chat.approve if interactive else None,
        confirm_trust=_confirm_trust if interactive else None,
        confirm_instructions=_confirm_instructions if interactive else None,
    ) as agent:
        chat.agent = agent
        chat.ui = _make_ui(chat)
        chat.compress_strategy = agent.providers.config.settings.compress or chat.compress_strategy
        chat.print_header()
        for name in run_options.attached:
            chat.attach(Path(name))
        if prompt:
            chat.submit(prompt)
        try:
            await chat.ui.run(chat)
        finally:
            await chat.close()
        chat.print_rows(_resume_hint(chat))


def _make_ui(chat: Chat) -> ChatUI:
    """Return a `TerminalUI` on a capable terminal, else a `LineUI`."""
    from segue.cli.chat_ui.calls import SHOWN
    from segue.cli.chat_ui.line_ui import LineUI

    tools = chat.agent.providers.config.settings.tools
    lines = zip((tools.first_lines, tools.last_lines), SHOWN, strict=True)
    first, last = (default if number is None else number for number, default in lines)
    capable = streams.is_terminal(sys.stdin) and streams.is_terminal(sys.stdout) and os.environ.get("TERM") != "dumb"
    if not capable or sys.platform == "win32":
        return LineUI((first, last))
    from segue.cli.chat_ui.input_line import ChatCompleter, InputHistory, history_path
    from segue.cli.chat_ui.terminal_ui import TerminalUI

    return TerminalUI(
        completer=ChatCompleter(chat),
        history=InputHistory(history_path()),
        footer=chat.footer,
        queued=lambda: chat.queued,
        coloured=not os.environ.get("NO_COLOR"),
        shown=(first, last),
    )


def _confirm_trust(file: Path, settings: Sequence[str]) -> bool:
    """Show the restricted settings of a project file and ask whether to trust it."""
    from segue.cli.chat_ui.line_ui import discard_typed
    from segue.view.sanitize import sanitize_line

    click.echo(f"{sanitize_line(str(file))} is not trusted. It sets:", err=True)
    for setting in settings:
        click.echo(f"  {sanitize_line(setting)}", err=True)
    discard_typed()
    return click.confirm("Trust this file until it changes?", default=False, err=True)


def _confirm_instructions(files: Sequence[Path]) -> bool:
    """Show the instruction files of folders that are not trusted and ask whether to use them."""
    from segue.cli.chat_ui.line_ui import discard_typed
    from segue.view.sanitize import sanitize_line

    click.echo("Instructions for models in folders that are not trusted:", err=True)
    for file in files:
        click.echo(f"  {sanitize_line(str(file))}", err=True)
    discard_typed()
    return click.confirm("Trust these folders and use the instructions?", default=False, err=True)


def _resume_hint(chat: Chat) -> list[Row]:
    conversation_id = chat.agent.conversation_id
    if conversation_id is None or not chat.session.log.messages:
        return []
    emulated = " --emulated" if chat.agent.is_emulated else ""
    return [[("class:dim", f"  to continue: segue chat{emulated} -s {conversation_id}")]]
