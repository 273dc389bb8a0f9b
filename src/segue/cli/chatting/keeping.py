"""Commands about the conversation: shorter, one step back, another one, a copy, a file."""

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
    """The store and the conversation in it."""
    from segue.store.conversation import StoredConversation

    book = cast("object", chat.session.book)
    if chat.agent.store is None or not isinstance(book, StoredConversation):
        raise InputError("this conversation is not kept, so there is no way back")
    return chat.agent.store, book


# ----------------------------------------------------------------------------------------------------- fit, take back


async def _compress(chat: Chat, words: str) -> None:
    strategy, budget = chat.strategy, None
    for word in words.replace(",", "").split():
        if word in STRATEGIES:
            strategy = word
        elif word.isdecimal():
            budget = int(word)
        else:
            raise InputError(f"{word!r} is neither a strategy ({', '.join(STRATEGIES)}) nor a number of tokens")
    book, before = chat.session.book, chat.holds
    # Only messages become fewer; the tools and the system text count too, here as everywhere else.
    beside = min(before, ceil(weigh_settings(book.chat.request) * book.chat.estimate.ratio()))
    made = book.compress(strategy, max(1, (before - beside) // 2 if budget is None else budget - beside))
    if not made.notes:
        chat.tell(f"about {before:,} tokens, {beside:,} of them tools and system text: nothing to leave out")
        return
    chat.tell(f"compressed ({strategy}): about {before:,} → {chat.holds:,} tokens; /undo takes it back")
    if not made.reached:
        alone = budget is not None and budget <= beside
        why = f"the tools and the system text alone are about {beside:,}" if alone else made.reason
        chat.tell(f"less can't be done: {why}")


async def _undo(chat: Chat, words: str) -> None:
    """Whatever came last: a compression, or an exchange."""
    store, book = _kept(chat)
    if _compressed_last(store, book):
        book.undo()
        chat.tell(f"the compression is taken back: {counted(len(book.messages), 'message')} again")
        return
    place = _last_words(book.messages)
    if place is None:
        raise InputError("nothing was said yet; there is nothing to take back")
    said = cut(harmless_line(_text(book.messages[place])), 50)
    turn = next((message.turn_key for message in reversed(book.messages[:place]) if message.turn_key), None)
    if turn is None:
        chat.tell(f"the first exchange is taken back («{said}»): a new conversation begins")
        await chat.open(chat.agent.new())
        return
    book.rewind(turn)
    chat.tell(f"the last exchange is taken back («{said}»); files that tools changed stay as they are")


def _compressed_last(store: HistoryStore, book: StoredConversation) -> bool:
    from segue.store.events import Said

    line = book.timeline
    if not line.compressions:
        return False
    return not any(isinstance(record.event, Said) for record in store.events(book.id, line.compressions[-1]))


def _last_words(messages: tuple[Message, ...]) -> int | None:
    return next((place for place in reversed(range(len(messages))) if messages[place].speaker == "human"), None)


def _text(message: Message) -> str:
    from segue.canonical.blocks import Text

    return " ".join(block.text for block in message.blocks if isinstance(block, Text))


# --------------------------------------------------------------------------------------------------------- other ones


async def _new(chat: Chat, words: str) -> None:
    await chat.open(chat.agent.new())


async def _sessions(chat: Chat, words: str) -> None:
    store = chat.agent.store
    if store is None:
        raise InputError("conversations are not kept here")
    if words:
        book = chat.agent.kept(words)
        if book.id == chat.agent.conversation:
            raise InputError(f"{book.id} is this conversation")
        await chat.open(book)
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
    chat.say([[], *table(rows, styles, chat.width), [("class:dim", "  /sessions ID goes on with one")], []])


def _title(row: Summary) -> str:
    return harmless_line(row.title or row.opening or "-")


async def _fork(chat: Chat, words: str) -> None:
    _, book = _kept(chat)
    if not book.messages:
        raise InputError("nothing was said yet; there is nothing to copy")
    copy = book.fork()
    chat.tell(f"a copy of {book.id}, which stays as it is")
    await chat.open(copy)


async def _export(chat: Chat, words: str) -> None:
    from segue.cli.export import written
    from segue.cli.streams import replace_file

    store, book = _kept(chat)
    head, _, last = words.rpartition(" ")
    over = last == _OVER
    file = Path((head.strip() if over else words) or f"segue-{book.id[:12]}.md").expanduser()
    form = _FORMS.get(file.suffix.lower())
    if form is None:
        raise InputError(f"{file.name} says no form; its name ends with {', '.join(_FORMS)}")
    target = chat.folder / file
    if os.path.lexists(target) and not over:
        raise InputError(f"{file} is there already; /export {file} {_OVER} writes over it")
    data, _ = written(store, store.get(book.id), form, None)
    if target.is_file():
        with suppress(OSError):  # what it held others could read; a conversation is its owner's
            target.chmod(stat.S_IMODE(target.stat().st_mode) & ~0o077)
    replace_file(str(target), data, private=True)
    chat.tell(f"written to {file}, for you alone to read")


def _offer_sessions(chat: Chat) -> list[Offer]:
    store = chat.agent.store
    return [(row.id, cut(_title(row), 40)) for row in store.list(_OFFERED)] if store is not None else []


def _offer_strategies(chat: Chat) -> list[Offer]:
    return [(name, "") for name in STRATEGIES if name != "middle-out"]


def _offer_files(chat: Chat) -> list[Offer]:
    name = f"segue-{(chat.agent.conversation or 'chat')[:12]}"
    return [(f"{name}{suffix}", "") for suffix in _FORMS]


COMMANDS = (
    Command("compress", "make it fit", _compress, "[STRATEGY] [TOKENS]", busy=False, offers=_offer_strategies),
    Command("undo", "take back the last exchange or compression", _undo, busy=False),
    Command("new", "another conversation", _new, busy=False),
    Command(
        "sessions",
        "the conversations that were kept; go on with one",
        _sessions,
        "[ID]",
        busy=False,
        offers=_offer_sessions,
    ),
    Command("fork", "go on in a copy", _fork, busy=False),
    Command(
        "export", "write it to a file (.md, .html, .json)", _export, "[FILE [--force]]", offers=_offer_files, most=_ANY
    ),
)
