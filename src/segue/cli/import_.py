"""`segue import`: a body of any API, an export of ours, or the log of another client becomes a stored conversation.

All of the input is read and understood before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from segue.cli import options, stored, streams

if TYPE_CHECKING:
    from segue.conversation import Conversation
    from segue.store.base import HistoryStore

Keep = Callable[["HistoryStore", "str | None"], str]


@options.command("import")
@options.option("--from", "source", help="The API that a body is made for; told by its shape where not given.")
@click.option("--title", metavar="T", help="What to call it; else the title that the file has, if any.")
@options.file_argument
def command(file: str, *, source: str | None, title: str | None, as_json: bool) -> None:
    """Keep what a file holds (FILE or stdin), and say the new id.

    It may be a request body of any API, what segue export --format json wrote, the log of a session of Claude
    Code or of Codex, or JSON lines of messages.

    \b
      segue import body.json
      segue import ~/.claude/projects/-home-me-work/5f0c….jsonl
    """
    from segue.errors import InputError

    name = "stdin" if file == streams.STDIO else file
    data = streams.read(file, wanted="a conversation as JSON")
    try:
        keep, found = _understood(data, source)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    with stored.opened(make=True) as store:
        id = keep(store, title)
        found["messages"] = store.get(id).messages
    if as_json:
        import msgspec

        streams.write(msgspec.json.encode({"id": id, **found}), b"\n")
        return
    if left_out := found.get("left_out"):
        streams.say(f"left out: {', '.join(f'{count:,} {what}' for what, count in left_out.items())}")
    if secrets := found.get("secrets"):
        streams.say(f"not kept, since it may open a door: {', '.join(secrets)}; give it again to go on")
    streams.write(f"{id}\n")


def _understood(data: bytes, source: str | None) -> tuple[Keep, dict[str, Any]]:
    """What keeps the conversation, and what else is known: its kind, and what was left out."""
    from segue.cli.logs import Recorded, read_log, with_line
    from segue.conversation import Conversation
    from segue.errors import InputError
    from segue.store.portable import KIND, keep_events, load_events
    from segue.store.secrets import withheld

    log = read_log(data, source)
    if not isinstance(log, Recorded):
        if log.get("kind") != KIND:
            chat = Conversation.load(data)
            return partial(_keep_chat, chat, None), {"kind": "segue", "secrets": withheld(chat.request, chat.messages)}
        events = load_events(log)
        return lambda store, title: keep_events(store, events, title=title), {"kind": "segue"}
    try:
        chat = Conversation.from_body(log.body, source=log.source)
    except InputError as error:
        raise with_line(error, log) from None
    native, model = chat.request.native, chat.request.model
    if log.kind != "body":
        # Nobody ever sent this as it is: what a body needs beside the messages is given when one is made.
        chat.options = chat.options
    asked = (native.api, model) if native is not None and model is not None else None
    left_out = {what: count for what, count in log.left_out.items() if count}
    found = {"kind": log.kind, "left_out": left_out, "secrets": withheld(chat.request, chat.messages)}
    return lambda store, title: _keep_chat(chat, asked, store, title or log.title), found


def _keep_chat(chat: Conversation, asked: tuple[str, str] | None, store: HistoryStore, title: str | None) -> str:
    """Keeps it; calls that wait are left waiting."""
    from segue.store.conversation import StoredConversation
    from segue.store.events import Switched

    with StoredConversation.create(store, chat, title=title) as made:
        if asked is not None:
            store.append(made.id, store.get(made.id).seq, [Switched(*asked)])
        return made.id
