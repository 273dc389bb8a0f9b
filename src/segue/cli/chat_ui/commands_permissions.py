"""Chat commands on permissions: allow, permissions."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from segue.cli.chat_ui.approvals import MODE_LABELS
from segue.cli.chat_ui.command import Command, Suggestion
from segue.cli.chat_ui.styles import format_table
from segue.errors import InputError
from segue.runtime.permissions import PermissionMode
from segue.view.sanitize import sanitize_line

if TYPE_CHECKING:
    from segue.cli.chat_ui.chat import Chat

_ANY_NUMBER = 1_000


async def _allow(chat: Chat, arguments: str) -> None:
    if not arguments:
        raise InputError("expected a rule: /allow shell(git log *), /allow write_file(src/*), /allow fetch_url")
    chat.session.toolbox.allow(arguments)
    chat.print_line(f"allowed in this chat: {arguments}")


async def _permissions(chat: Chat, arguments: str) -> None:
    if arguments:
        mode = next((mode for mode in get_args(PermissionMode) if mode == arguments.lower()), None)
        if mode is None:
            raise InputError(f"unknown mode {sanitize_line(arguments)!r}; modes: {', '.join(get_args(PermissionMode))}")
        chat.set_mode(mode)
        chat.print_line(f"mode: {MODE_LABELS[mode]}")
        return
    sandbox = chat.agent.tools.sandbox
    about = sandbox if isinstance(sandbox, str) else sandbox.description
    chat.print_rows([[]])
    chat.print_line(f"mode: {MODE_LABELS[chat.permissions.mode]} (Shift-Tab switches it)")
    chat.print_line(f"shell commands run {'without a sandbox: ' if about is sandbox else ''}{about}")
    rules = [(sanitize_line(action), sanitize_line(rule)) for action, rule in chat.permissions.list_rules()]
    if not rules:
        chat.print_line("no rules: changes, commands and URLs need approval")
    chat.print_rows([*format_table(rules, ("class:dim", "class:name"), chat.width), []])


def _suggest_modes(chat: Chat) -> list[Suggestion]:
    return [(mode, MODE_LABELS[mode]) for mode in get_args(PermissionMode)]


def _suggest_rules(chat: Chat) -> list[Suggestion]:
    return [(name, "") for name in chat.session.toolbox.names]


COMMANDS = (
    Command(
        "allow",
        "allow calls for the rest of the chat",
        _allow,
        "RULE",
        suggestions=_suggest_rules,
        max_words=_ANY_NUMBER,
    ),
    Command(
        "permissions",
        "show rules and mode, or set it: ask, edits, plan",
        _permissions,
        "[MODE]",
        suggestions=_suggest_modes,
    ),
)
