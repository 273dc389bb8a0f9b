"""The table of chat commands, from which `/help`, completion and suggestions for typos are made."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from segue.cli.chatting import keeping, looking, models
from segue.cli.chatting.command import Command, Offer
from segue.cli.chatting.keys import KEYS
from segue.cli.chatting.looks import table
from segue.errors import InputError, SegueError
from segue.view.clean import harmless_line

if TYPE_CHECKING:
    from segue.cli.chatting.loop import Chat

__all__ = ["COMMANDS", "find", "run"]

# Low enough for two swapped letters in a name of three, high enough to skip unrelated names.
_NEAR = 0.65


async def _help(chat: Chat, arguments: str) -> None:
    commands = COMMANDS.values() if not arguments else [find(arguments.removeprefix("/"))]
    rows = table([(command.usage, command.about) for command in commands], ("class:name", ""), chat.width)
    if not arguments:
        rows += [[], *table(list(KEYS.items()), ("class:name", ""), chat.width)]
    chat.say([[], *rows, []])


def _names(chat: Chat) -> list[Offer]:
    return [(name, command.about) for name, command in COMMANDS.items()]


async def _quit(chat: Chat, arguments: str) -> None:
    chat.left()


COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (
        Command("help", "list commands and keys", _help, "[COMMAND]", offers=_names),
        *models.COMMANDS,
        *looking.TOOLS,
        *keeping.COMMANDS,
        *looking.COMMANDS,
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
    near = matches or get_close_matches(name, COMMANDS, 3, _NEAR)
    hint = f"did you mean {' or '.join(f'/{other}' for other in near)}?" if near else "/help lists them"
    raise InputError(f"unknown command /{harmless_line(name)}; {hint}")


async def run(chat: Chat, line: str) -> None:
    """Run a line that starts with a slash; errors are printed."""
    name, _, arguments = line.removeprefix("/").partition(" ")
    try:
        command = find(name)
        if chat.busy and not command.busy:
            raise InputError(f"/{command.name} is not available during a turn; Ctrl-C cancels the turn")
        await command(chat, command.checked(arguments.strip()))
    except InputError as error:
        chat.tell(f"✗ {error.message}", "class:bad")
    except SegueError as error:
        chat.tell(f"✗ {error}", "class:bad")
