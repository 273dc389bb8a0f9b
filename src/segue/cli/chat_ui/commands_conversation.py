"""Chat commands on the conversation: compress, new, sessions, fork, export."""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from segue.canonical.tokens import estimate_settings
from segue.cli.chat_ui import commands_undo
from segue.cli.chat_ui.command import Command, Suggestion
from segue.cli.chat_ui.commands_undo import stored_conversation
from segue.cli.chat_ui.styles import format_table, truncate
from segue.cli.compress import STRATEGIES
from segue.cli.conversation_table import shorten_folder
from segue.cli.export import DOCUMENTS, open_export
from segue.errors import InputError
from segue.view.format import format_ago, format_short
from segue.view.sanitize import sanitize_line

if TYPE_CHECKING:
    from segue.cli.chat_ui.chat import Chat
    from segue.store.base import ConversationSummary

_ANY_NUMBER = 1_000
_MAX_LISTED = 15
_MAX_SUGGESTED = 30
_MICRO = 1_000_000
_FORCE = "--force"
_FORMATS = {document.suffix: name for name, document in DOCUMENTS.items()}


# ----------------------------------------------------------------------------------------------------------- compress


async def _compress(chat: Chat, arguments: str) -> None:
    strategy, budget = chat.compress_strategy, None
    for word in arguments.replace(",", "").split():
        if word in STRATEGIES:
            strategy = word
        elif word.isdecimal():
            budget = int(word)
        else:
            raise InputError(f"{word!r} is neither a strategy ({', '.join(STRATEGIES)}) nor a number of tokens")
    log, before = chat.session.log, chat.tokens
    fixed = min(before, ceil(estimate_settings(log.chat.state.request) * log.chat.state.token_estimator.ratio()))
    compressed = log.compress(strategy, fixed + max(1, (before - fixed) // 2) if budget is None else budget)
    if not compressed.changes:
        chat.print_line(f"about {before:,} tokens, {fixed:,} of them tools and system text: nothing to compress")
        return
    chat.print_line(f"compressed ({strategy}): about {before:,} → {chat.tokens:,} tokens; /undo restores it")
    if not compressed.reached:
        alone = budget is not None and budget <= fixed
        why = f"tools and system text alone take about {fixed:,}" if alone else compressed.reason
        chat.print_line(f"the budget can't be reached: {why}")


async def _compact(chat: Chat, arguments: str) -> None:
    from segue.cli.chat_ui.compaction import compact

    await compact(chat)


# ------------------------------------------------------------------------------------------------ other conversations


async def _new(chat: Chat, arguments: str) -> None:
    await chat.switch_to(chat.agent.new_log())


async def _conversations(chat: Chat, arguments: str) -> None:
    store = chat.agent.store
    if store is None:
        raise InputError("conversations are not stored (--no-store)")
    if arguments:
        log = chat.agent.open_stored(arguments)
        if log.id == chat.agent.conversation_id:
            raise InputError(f"{log.id} is already open")
        await chat.switch_to(log)
        return
    now = time.time()
    rows = [
        (
            f"{'▸' if row.id == chat.agent.conversation_id else ' '} {number}",
            row.id,
            format_ago(now - row.updated / _MICRO),
            f"{format_short(row.messages)} message{'' if row.messages == 1 else 's'}",
            truncate(sanitize_line(shorten_folder(row.folder)), 24),
            _format_title(row),
        )
        for number, row in enumerate(store.list(_MAX_LISTED), 1)
    ]
    styles = ("class:mark", "class:name", "class:dim", "class:dim", "class:dim", "")
    if chat.width < 90:
        rows, styles = [(row[0], row[1], row[2], row[5]) for row in rows], (*styles[:3], "")
    hint = "  /conversations ID continues one, also by its number"
    chat.print_rows([[], *format_table(rows, styles, chat.width, wraps=False), [("class:dim", hint)], []])


def _format_title(row: ConversationSummary) -> str:
    return sanitize_line(row.title or row.opening or "-")


async def _fork(chat: Chat, arguments: str) -> None:
    _, log = stored_conversation(chat)
    if not log.messages:
        raise InputError("nothing to copy: there are no messages yet")
    copy = log.fork()
    chat.print_line(f"forked from {log.id}, which is unchanged")
    await chat.switch_to(copy)


async def _export(chat: Chat, arguments: str) -> None:
    from segue.cli.streams import replace_file

    store, log = stored_conversation(chat)
    head, _, last = arguments.rpartition(" ")
    overwrite = last == _FORCE
    file = Path((head.strip() if overwrite else arguments) or f"segue-{log.id[:12]}.md").expanduser()
    file_format = _FORMATS.get(file.suffix.lower())
    if file_format is None:
        raise InputError(f"unknown file type: {file.name}; use {', '.join(_FORMATS)}")
    target = chat.folder / file
    if os.path.lexists(target) and not overwrite:
        raise InputError(f"{file} already exists; /export {file} {_FORCE} overwrites it")
    with open_export(store, store.get(log.id), file_format, None) as (chunks, _):
        if target.is_file():
            with suppress(OSError):  # others could read the old file, but must not read a conversation
                target.chmod(stat.S_IMODE(target.stat().st_mode) & ~0o077)
        replace_file(str(target), chunks, private=True)
    chat.print_line(f"written to {file} (readable only by you)")


def _suggest_conversations(chat: Chat) -> list[Suggestion]:
    store = chat.agent.store
    return (
        [(row.id, truncate(_format_title(row), 40)) for row in store.list(_MAX_SUGGESTED)] if store is not None else []
    )


def _suggest_strategies(chat: Chat) -> list[Suggestion]:
    return [(name, "") for name in STRATEGIES if name != "middle-out"]


def _suggest_files(chat: Chat) -> list[Suggestion]:
    name = f"segue-{(chat.agent.conversation_id or 'chat')[:12]}"
    return [(f"{name}{suffix}", "") for suffix in _FORMATS]


COMMANDS = (
    Command(
        "compress",
        "compress the conversation",
        _compress,
        "[STRATEGY] [TOKENS]",
        allowed_while_busy=False,
        suggestions=_suggest_strategies,
    ),
    Command("compact", "let the model summarise the conversation", _compact, allowed_while_busy=False),
    *commands_undo.COMMANDS,
    Command("new", "start a new conversation", _new, allowed_while_busy=False),
    Command("clear", "start a new conversation", _new, allowed_while_busy=False),
    Command(
        "conversations",
        "list stored conversations, or continue one",
        _conversations,
        "[ID]",
        allowed_while_busy=False,
        suggestions=_suggest_conversations,
    ),
    Command("fork", "continue in a copy", _fork, allowed_while_busy=False),
    Command(
        "export",
        f"export to a file ({', '.join(_FORMATS)})",
        _export,
        "[FILE [--force]]",
        suggestions=_suggest_files,
        max_words=_ANY_NUMBER,
    ),
)
