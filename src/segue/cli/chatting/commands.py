"""The commands of the chat: one table. `/help`, completion and what is said of a slip are made from it."""

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

# Two letters that changed places in a word of three are a slip; half of the letters are another word.
_NEAR = 0.65


async def _help(chat: Chat, words: str) -> None:
    commands = COMMANDS.values() if not words else [find(words.removeprefix("/"))]
    rows = table([(command.usage, command.about) for command in commands], ("class:name", ""), chat.width)
    if not words:
        rows += [[], *table(list(KEYS.items()), ("class:name", ""), chat.width)]
    chat.say([[], *rows, []])


def _names(chat: Chat) -> list[Offer]:
    return [(name, command.about) for name, command in COMMANDS.items()]


async def _quit(chat: Chat, words: str) -> None:
    chat.left()


COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (
        Command("help", "the commands and the keys", _help, "[COMMAND]", offers=_names),
        *models.COMMANDS,
        *looking.TOOLS,
        *keeping.COMMANDS,
        *looking.COMMANDS,
        Command("quit", "leave", _quit),
    )
}


def find(name: str) -> Command:
    """The command of this name, or the one that begins so."""
    name = name.lower()
    if name in COMMANDS:
        return COMMANDS[name]
    begun = [command for command in COMMANDS if command.startswith(name)] if name else []
    if len(begun) == 1:
        return COMMANDS[begun[0]]
    near = begun or get_close_matches(name, COMMANDS, 3, _NEAR)
    hint = f"did you mean {' or '.join(f'/{other}' for other in near)}?" if near else "/help lists them"
    raise InputError(f"there is no command /{harmless_line(name)}; {hint}")


async def run(chat: Chat, line: str) -> None:
    """One line that begins with a slash. What goes wrong is told, and nothing else happens."""
    name, _, words = line.removeprefix("/").partition(" ")
    try:
        command = find(name)
        if chat.busy and not command.busy:
            raise InputError(f"/{command.name} has to wait until the turn is over; Ctrl-C ends it")
        await command(chat, command.checked(words.strip()))
    except InputError as error:
        chat.tell(f"✗ {error.message}", "class:bad")
    except SegueError as error:
        chat.tell(f"✗ {error}", "class:bad")
