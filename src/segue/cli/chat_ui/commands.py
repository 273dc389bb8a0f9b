"""The table of chat commands, used for `/help`, completion and suggestions for typos."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from segue.cli.chat_ui import commands_conversation, commands_info, commands_models
from segue.cli.chat_ui.command import Command, Suggestion
from segue.cli.chat_ui.keys import KEY_HELP
from segue.cli.chat_ui.styles import format_table
from segue.errors import InputError, SegueError
from segue.view.sanitize import sanitize_line

if TYPE_CHECKING:
    from segue.cli.chat_ui.chat import Chat

__all__ = ["COMMANDS", "find", "run"]

# Low enough for two swapped letters in a name of three, high enough to skip unrelated names.
_SIMILARITY = 0.65


async def _help(chat: Chat, arguments: str) -> None:
    commands = COMMANDS.values() if not arguments else [find(arguments.removeprefix("/"))]
    rows = format_table([(command.usage, command.description) for command in commands], ("class:name", ""), chat.width)
    if not arguments:
        rows += [[], *format_table(list(KEY_HELP.items()), ("class:name", ""), chat.width)]
    chat.print_rows([[], *rows, []])


def _suggest_commands(chat: Chat) -> list[Suggestion]:
    return [(name, command.description) for name, command in COMMANDS.items()]


async def _quit(chat: Chat, arguments: str) -> None:
    chat.leave()


COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (
        Command("help", "list commands and keys", _help, "[COMMAND]", suggestions=_suggest_commands),
        *commands_models.COMMANDS,
        *commands_info.TOOL_COMMANDS,
        *commands_conversation.COMMANDS,
        *commands_info.COMMANDS,
        Command("quit", "exit", _quit),
    )
}


def find(name: str) -> Command:
    """The command with this name or unique prefix."""
    name = name.lower()
    if name in COMMANDS:
        return COMMANDS[name]
    matches = [command for command in COMMANDS if command.startswith(name)] if name else []
    if len(matches) == 1:
        return COMMANDS[matches[0]]
    near = matches or get_close_matches(name, COMMANDS, 3, _SIMILARITY)
    hint = f"did you mean {' or '.join(f'/{other}' for other in near)}?" if near else "/help lists them"
    raise InputError(f"unknown command /{sanitize_line(name)}; {hint}")


async def run(chat: Chat, line: str) -> None:
    """Run a line that starts with a slash; errors are printed."""
    name, _, arguments = line.removeprefix("/").partition(" ")
    try:
        command = find(name)
        if chat.is_busy and not command.allowed_while_busy:
            raise InputError(f"/{command.name} is not available during a turn; Ctrl-C cancels the turn")
        await command(chat, command.validate_arguments(arguments.strip()))
    except InputError as error:
        chat.print_line(f"✗ {error.message}", "class:bad")
    except SegueError as error:
        chat.print_line(f"✗ {error}", "class:bad")
