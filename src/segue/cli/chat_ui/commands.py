"""The table of chat commands, used for `/help`, completion and suggestions for typos.

It also holds the commands that show information: tools, MCP servers, usage, cost, diagnosis, reasoning.
"""

from __future__ import annotations

import os
import re
from difflib import get_close_matches
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from segue.canonical.tokens import estimate_settings
from segue.cli.chat_ui import commands_conversation, commands_models, commands_permissions
from segue.cli.chat_ui.command import Command, Suggestion
from segue.cli.chat_ui.styles import Row, format_table, wrap
from segue.cli.chat_ui.usage import cache_hit_percent
from segue.cli.prompt_files import list_prompt_files
from segue.errors import InputError, SegueError, format_count
from segue.view.format import format_money, format_short
from segue.view.sanitize import sanitize, sanitize_line

if TYPE_CHECKING:
    from segue.cli.chat_ui.chat import Chat


# Low enough for two swapped letters in a name of three, high enough to skip unrelated names.
_SIMILARITY = 0.65
# Usage of earlier chats, of this conversation too, is not included.
_SINCE = "since this chat was opened"
# The key bindings of `terminal_ui`, for /help.
_NOTES = "AGENTS.md"
_INIT_PROMPT = (
    "Look at this folder and write {file}: what the project is, how it is built, tested and run, how the code is laid "
    "out, and the conventions that a new contributor must follow. Use at most 60 lines, and only what you found in the "
    "files. {task}, and report in two sentences what you wrote."
)
_FIRST_SENTENCE = re.compile(r"(?<=\.) |\n")
_KEY_HELP = {
    "Enter": "send",
    "Alt-Enter, Ctrl-J": "insert a new line",
    "Tab": "complete commands, models, conversation ids, paths after @",
    "Up, Down": "previous inputs",
    "!COMMAND": "run a command; its output is sent with the next message",
    "@FILE": "send a file with the message",
    "Ctrl-V": "attach the picture on the clipboard",
    "Shift-Tab": "switch the mode: ask, accept edits, plan (read-only)",
    "Ctrl-T": "show or hide the last reasoning",
    "Ctrl-O": "show all that tools printed last",
    "Ctrl-C": "cancel the turn, or clear the line; twice: exit",
    "Ctrl-D": "exit",
}


async def _help(chat: Chat, arguments: str) -> None:
    commands = COMMANDS.values() if not arguments else [find(arguments.removeprefix("/"))]
    rows = format_table([(command.usage, command.description) for command in commands], ("class:name", ""), chat.width)
    if not arguments:
        prompts = list_prompt_files(chat.folder).values()
        own = [(f"/{prompt.name}", sanitize_line(prompt.description)) for prompt in prompts]
        rows += [[], *format_table(own, ("class:name", ""), chat.width)] if own else []
        rows += [[], *format_table(list(_KEY_HELP.items()), ("class:name", ""), chat.width)]
    chat.print_rows([[], *rows, []])


def _suggest_commands(chat: Chat) -> list[Suggestion]:
    return [(name, command.description) for name, command in COMMANDS.items()]


async def _quit(chat: Chat, arguments: str) -> None:
    chat.leave()


async def _tools(chat: Chat, arguments: str) -> None:
    rows = [
        (sanitize_line(tool.name), sanitize_line(_FIRST_SENTENCE.split(tool.description or "", maxsplit=1)[0]))
        for tool in chat.session.toolbox.declarations
    ]
    if not rows:
        chat.print_line("no tools available")
        return
    chat.print_rows([[], *format_table(rows, ("class:name", ""), chat.width), []])


async def _mcp(chat: Chat, arguments: str) -> None:
    rows = [(sanitize_line(name), sanitize_line(state)) for name, state in chat.server_states]
    if not rows:
        chat.print_line("no MCP servers; add one as [mcp.NAME] in config.toml")
        return
    chat.print_rows([[], *format_table(rows, ("class:name", ""), chat.width), []])


async def _tokens(chat: Chat, arguments: str) -> None:
    log, usage = chat.session.log, chat.usage
    context = chat.agent.context_of(chat.endpoint)
    tokens = chat.tokens
    share = f" of {format_short(context)} ({round(100 * tokens / context)} %)" if context else ""
    rows = [("conversation", f"about {tokens:,}{share}, {format_count(len(log.messages), 'message')}")]
    chat.print_rows([[], *format_table(rows, ("class:dim", ""), chat.width)])
    if not usage.requests:
        chat.print_line(f"no usage {_SINCE}")
        return
    chat.print_line(f"{_SINCE}:")
    total, cached = usage.total.usage, cache_hit_percent(usage.total.usage)
    rows = [("input", f"{total.input:,}{f', {cached} % from the prompt cache' if cached is not None else ''}")]
    reasoning = f", {total.reasoning:,} of it reasoning" if total.reasoning else ""
    rows.append(("output", f"{total.output:,}{reasoning}"))
    rows.append(("requests", f"{usage.requests:,}"))
    chat.print_rows([*format_table(rows, ("class:dim", ""), chat.width), []])


async def _context(chat: Chat, arguments: str) -> None:
    """Show what every request has besides the conversation, and how much of the context it takes."""
    agent, request = chat.agent, chat.session.log.chat.state.request
    ratio = chat.session.log.chat.state.token_estimator.ratio()
    system, tools = (ceil(estimate_settings(replace(request, **{other: ()})) * ratio) for other in ("tools", "system"))
    size = agent.context_of(chat.endpoint)
    rows = [
        ("context", f"{f'{size:,} tokens' if size else 'size unknown'} ({sanitize_line(chat.endpoint.name)})"),
        ("system text", f"about {system:,} tokens"),
        ("tools", f"about {tools:,} tokens ({format_count(len(request.tools), 'tool')})"),
        ("conversation", f"about {max(0, chat.tokens - system - tools):,} tokens"),
    ]
    rows += [(name.lower(), sanitize_line(value)) for name, value in agent.context.facts.items()]
    for file in agent.context.files:
        used = "used in part" if file.is_cut else "used"
        state = (
            f"{format_count(len(file.text.encode()), 'byte')}, {used}"
            if file.is_trusted
            else "not used, the folder is not trusted"
        )
        rows.append(("instructions", f"{sanitize_line(os.path.relpath(file.path, chat.folder))}: {state}"))
    chat.print_rows([[], *format_table(rows, ("class:dim", ""), chat.width), []])


async def _cost(chat: Chat, arguments: str) -> None:
    totals = chat.usage
    if not totals.by_model:
        chat.print_line(f"no usage {_SINCE}")
        return
    rows: list[tuple[str, str, str]] = []
    unknown = "emulated" if chat.agent.is_emulated else "no price"
    for name, total in totals.by_model.items():
        usage, requests = total.usage, format_count(total.replies, "request")
        counts = f"{format_short(usage.input)} in, {format_short(usage.output)} out, {requests}"
        cost = unknown if total.cost is None else format_money(total.cost)
        rows.append(("/".join(map(sanitize_line, name)), cost, counts))
    cost, is_priced = totals.total.known_cost, totals.total.has_all_prices
    if cost is not None and len(rows) > 1:
        rows.append(("total", format_money(cost), "" if is_priced else "without models that have no price"))
    chat.print_line(f"{_SINCE}:")
    chat.print_rows(format_table(rows, ("class:name", "", "class:dim"), chat.width))
    if not is_priced and not chat.agent.is_emulated:
        chat.print_line('add a price as [prices."provider/model"] in config.toml')
    chat.print_rows([[]])


async def _diag(chat: Chat, arguments: str) -> None:
    from segue.cli.diagnosis import diagnose
    from segue.redaction import redact

    agent, endpoint = chat.agent, chat.endpoint
    if agent.store is None or agent.conversation_id is None:
        raise InputError("this conversation is not stored (--no-store)")
    diagnosis = diagnose(agent.store, agent.conversation_id, arguments or None, endpoint.api, endpoint.model)
    rows: list[Row] = []
    for line in diagnosis.lines(verbose=True):
        text = sanitize(redact(line)).lstrip(" ")
        indent = " " * (2 + len(line) - len(line.lstrip(" ")))
        rows += wrap(text, chat.width, indent=f"{indent}  ", first_indent=indent)
    chat.print_rows([[], *rows, []])


async def _debug(chat: Chat, arguments: str) -> None:
    chat.ui.shows_details = not chat.ui.shows_details
    chat.print_line(
        "tool results and findings are shown" if chat.ui.shows_details else "tool results and findings are hidden"
    )


async def _init(chat: Chat, arguments: str) -> None:
    target = chat.folder / _NOTES
    task = "Improve it" if target.exists() else "Create it"
    chat.send(_INIT_PROMPT.format(file=_NOTES, task=task))


async def _attach(chat: Chat, arguments: str) -> None:
    if not arguments:
        raise InputError("which file? usage: /attach FILE")
    chat.attach(Path(arguments).expanduser())


async def _thinking(chat: Chat, arguments: str) -> None:
    reasoning = chat.ui.last_reasoning().strip()
    if not reasoning:
        chat.print_line("no reasoning yet")
        return
    chat.print_rows([[], *wrap(sanitize(reasoning), chat.width, "class:thought", indent="  "), []])


COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (
        Command("help", "list commands and keys", _help, "[COMMAND]", suggestions=_suggest_commands),
        *commands_models.COMMANDS,
        Command("tools", "list the tools", _tools),
        Command("mcp", "list the MCP servers", _mcp),
        *commands_permissions.COMMANDS,
        *commands_conversation.COMMANDS,
        Command("tokens", "show the size of the conversation and the tokens used", _tokens),
        Command("context", "show the context: sizes, folder, instruction files", _context),
        Command("cost", "show the cost by model", _cost),
        Command("diag", "show the findings of a request and whether it would be accepted", _diag, "[TURN]"),
        Command("attach", "attach a picture, a PDF or a text file to the next message", _attach, "FILE", max_words=99),
        Command("init", f"let the model write {_NOTES} for this folder", _init, allowed_while_busy=False),
        Command("debug", "show or hide tool results and findings", _debug),
        Command("thinking", "show the last reasoning in full", _thinking),
        Command("exit", "exit", _quit),
        Command("quit", "exit", _quit),
    )
}


def find(name: str) -> Command:
    """Return the command with this name or unique prefix."""
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
        prompt = list_prompt_files(chat.folder).get(name.lower()) if name.lower() not in COMMANDS else None
        if prompt is not None:
            chat.send(prompt.fill(arguments.strip()))
            return
        command = find(name)
        if chat.is_busy and not command.allowed_while_busy:
            raise InputError(f"/{command.name} is not available during a turn; Ctrl-C cancels the turn")
        await command(chat, command.validate_arguments(arguments.strip()))
    except InputError as error:
        chat.print_line(f"✗ {error.message}", "class:bad")
    except SegueError as error:
        chat.print_line(f"✗ {error}", "class:bad")
