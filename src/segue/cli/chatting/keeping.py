"""Chat commands on the conversation: compress, undo, new, sessions, fork, export."""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, cast

from segue.canonical.tokens import weigh_settings
from segue.cli.chatting.command import Command, Offer
from segue.cli.chatting.figures import ago, counted, short
from segue.cli.chatting.looks import cut, table
from segue.cli.compress import STRATEGIES
from segue.errors import InputError
from segue.view.clean import harmless_line

if TYPE_CHECKING:
    from segue.canonical.blocks import Message
    from segue.cli.chatting.loop import Chat
    from segue.store.base import HistoryStore, Summary
    from segue.store.conversation import StoredConversation

__all__ = ["COMMANDS"]

_ANY = 1_000
_LISTED = 15
_OFFERED = 30
_MICRO = 1_000_000
_OVER = "--force"
_FORMS = {".html": "html", ".md": "md", ".json": "json"}


def _kept(chat: Chat) -> tuple[HistoryStore, StoredConversation]:
    """The store and the open conversation; raises `InputError` if it is not stored."""
    from segue.store.conversation import StoredConversation

    log = cast("object", chat.session.book)
    if chat.agent.store is None or not isinstance(log, StoredConversation):
        raise InputError("this conversation is not stored")
    return chat.agent.store, log


# ----------------------------------------------------------------------------------------------------- compress, undo


async def _compress(chat: Chat, arguments: str) -> None:
    strategy, budget = chat.strategy, None
    for word in arguments.replace(",", "").split():
        if word in STRATEGIES:
            strategy = word
        elif word.isdecimal():
            budget = int(word)
        else:
            raise InputError(f"{word!r} is neither a strategy ({', '.join(STRATEGIES)}) nor a number of tokens")
    log, before = chat.session.book, chat.holds
    # The budget includes tools and system text, but only messages are compressed.
    fixed = min(before, ceil(weigh_settings(log.chat.request) * log.chat.estimate.ratio()))
    compressed = log.compress(strategy, max(1, (before - fixed) // 2 if budget is None else budget - fixed))
    if not compressed.notes:
        chat.tell(f"about {before:,} tokens, {fixed:,} of them tools and system text: nothing to compress")
        return
    chat.tell(f"compressed ({strategy}): about {before:,} → {chat.holds:,} tokens; /undo restores it")
    if not compressed.reached:
        alone = budget is not None and budget <= fixed
        why = f"tools and system text alone take about {fixed:,}" if alone else compressed.reason
        chat.tell(f"the budget can't be reached: {why}")


async def _undo(chat: Chat, arguments: str) -> None:
    """Undo the last compression or exchange, whichever came last."""
    store, log = _kept(chat)
    if _compressed_last(store, log):
        log.undo()
        chat.tell(f"compression undone: {counted(len(log.messages), 'message')}")
        return
    index = _last_words(log.messages)
    if index is None:
        raise InputError("nothing to undo: there are no messages yet")
    quoted = cut(harmless_line(_text(log.messages[index])), 50)
    turn = next((message.turn_key for message in reversed(log.messages[:index]) if message.turn_key), None)
    if turn is None:
        chat.tell(f"first exchange undone («{quoted}»): starting a new conversation")
        await chat.open(chat.agent.new())
        return
    log.rewind(turn)
    chat.tell(f"last exchange undone («{quoted}»); files changed by tools are not restored")


def _compressed_last(store: HistoryStore, book: StoredConversation) -> bool:
    from segue.store.events import Said

    timeline = book.timeline
    if not timeline.compressions:
        return False
    return not any(isinstance(record.event, Said) for record in store.events(book.id, timeline.compressions[-1]))


def _last_words(messages: tuple[Message, ...]) -> int | None:
    return next((index for index in reversed(range(len(messages))) if messages[index].speaker == "human"), None)


def _text(message: Message) -> str:
    from segue.canonical.blocks import Text

    return " ".join(block.text for block in message.blocks if isinstance(block, Text))


# ------------------------------------------------------------------------------------------------ other conversations


async def _new(chat: Chat, arguments: str) -> None:
    await chat.open(chat.agent.new())


async def _sessions(chat: Chat, arguments: str) -> None:
    store = chat.agent.store
    if store is None:
        raise InputError("conversations are not stored (--no-store)")
    if arguments:
        log = chat.agent.kept(arguments)
        if log.id == chat.agent.conversation:
            raise InputError(f"{log.id} is already open")
        await chat.open(log)
        return
    now = time.time()
    rows = [
        (
            "▸" if row.id == chat.agent.conversation else " ",
            row.id,
            ago(now - row.updated / _MICRO),
            f"{short(row.messages)} message{'' if row.messages == 1 else 's'}",
            _title(row),
        )
        for row in store.list(_LISTED)
    ]
    styles = ("class:mark", "class:name", "class:dim", "class:dim", "")
    if chat.width < 90:
        rows, styles = [(row[0], row[1], row[2], row[4]) for row in rows], (*styles[:3], "")
    chat.say([[], *table(rows, styles, chat.width), [("class:dim", "  /sessions ID continues one")], []])


def _title(row: Summary) -> str:
    return harmless_line(row.title or row.opening or "-")


async def _fork(chat: Chat, arguments: str) -> None:
    _, log = _kept(chat)
    if not log.messages:
        raise InputError("nothing to copy: there are no messages yet")
    copy = log.fork()
    chat.tell(f"forked from {log.id}, which is unchanged")
    await chat.open(copy)


async def _export(chat: Chat, arguments: str) -> None:
    from segue.cli.export import written
    from segue.cli.streams import replace_file

    store, log = _kept(chat)
    head, _, last = arguments.rpartition(" ")
    overwrite = last == _OVER
    file = Path((head.strip() if overwrite else arguments) or f"segue-{log.id[:12]}.md").expanduser()
    file_format = _FORMS.get(file.suffix.lower())
    if file_format is None:
        raise InputError(f"unknown file type: {file.name}; use {', '.join(_FORMS)}")
    target = chat.folder / file
    if os.path.lexists(target) and not overwrite:
        raise InputError(f"{file} already exists; /export {file} {_OVER} overwrites it")
    data, _ = written(store, store.get(log.id), file_format, None)
    if target.is_file():
        with suppress(OSError):  # others could read the old file, but must not read a conversation
            target.chmod(stat.S_IMODE(target.stat().st_mode) & ~0o077)
    replace_file(str(target), data, private=True)
    chat.tell(f"written to {file} (readable only by you)")


def _offer_sessions(chat: Chat) -> list[Offer]:
    store = chat.agent.store
    return [(row.id, cut(_title(row), 40)) for row in store.list(_OFFERED)] if store is not None else []


def _offer_strategies(chat: Chat) -> list[Offer]:
    return [(name, "") for name in STRATEGIES if name != "middle-out"]


def _offer_files(chat: Chat) -> list[Offer]:
    name = f"segue-{(chat.agent.conversation or 'chat')[:12]}"
    return [(f"{name}{suffix}", "") for suffix in _FORMS]


COMMANDS = (
    Command(
        "compress", "compress the conversation", _compress, "[STRATEGY] [TOKENS]", busy=False, offers=_offer_strategies
    ),
    Command("undo", "undo the last exchange or compression", _undo, busy=False),
    Command("new", "start a new conversation", _new, busy=False),
    Command(
        "sessions",
        "list stored conversations, or continue one",
        _sessions,
        "[ID]",
        busy=False,
        offers=_offer_sessions,
    ),
    Command("fork", "continue in a copy", _fork, busy=False),
    Command(
        "export", "export to a file (.md, .html, .json)", _export, "[FILE [--force]]", offers=_offer_files, most=_ANY
    ),
)
