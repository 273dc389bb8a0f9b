"""`segue import`: stores a conversation from a request body, a segue export, or another client's session log.

The input is parsed completely before anything is written.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from segue._literals import Api
from segue.cli import options, streams, user_store

if TYPE_CHECKING:
    from segue._conversation import Conversation
    from segue.store.base import ConversationStore

_Save = Callable[["ConversationStore", "str | None"], str]


def _list_clients() -> str:
    from segue.sessions.registry import CLIENTS

    return f"Sessions of: {', '.join(client.title for client in CLIENTS.values())}."


@options.command("import", epilog=_list_clients)
@options.api_option("--from", "source", help="The API a body is for (default: detected).")
@click.option("--title", metavar="T", help="Title (default: the title in the file, if any).")
@options.file_argument
def command(file: str, *, source: str | None, title: str | None, as_json: bool) -> None:
    """Store a conversation (FILE or stdin) and print its id.

    Input: a request body of any API, the output of segue export --format json, a session of a coding client (of
    opencode: the output of opencode export), or JSON lines of messages.

    \b
      segue import body.json
      segue import ~/.claude/projects/-home-me-work/5f0c….jsonl
    """
    data = streams.read(file, expected="a conversation as JSON")
    with streams.name_input(streams.format_name(file)):
        save, facts = _parse_input(data, source)
    with user_store.connect(create=True) as store:
        id = save(store, title)
        if streams.has_working_folder():
            store.set_folder(id, os.path.realpath(Path.cwd()))
        facts["messages"] = store.get(id).messages
    if not as_json and (dropped := facts.get("left_out")):
        streams.print_message(f"not imported: {', '.join(f'{count:,} {what}' for what, count in dropped.items())}")
    if not as_json and (secrets := facts.get("secrets")):
        streams.print_message(f"not stored because it may be a secret: {', '.join(secrets)}; set it again to continue")
    with streams.report_if_unwritten("stored", id):
        if as_json:
            import msgspec

            streams.write(msgspec.json.encode({"id": id, **facts}), b"\n")
        else:
            streams.write(f"{id}\n")


def _parse_input(data: bytes, source: str | None) -> tuple[_Save, dict[str, Any]]:
    """Parse the input and return a function that stores the conversation, and its kind, dropped entries and secrets."""
    from segue._conversation import Conversation
    from segue.errors import InputError
    from segue.sessions.logs import add_line_number, read_log
    from segue.sessions.parsed_log import ParsedLog
    from segue.sessions.session import message_times
    from segue.store.export import KIND, load_events, save_events
    from segue.store.redaction import find_secret_fields

    log = read_log(data, source)
    if not isinstance(log, ParsedLog):
        if log.get("kind") != KIND:
            chat = Conversation.load(data)
            facts = {"kind": "segue", "secrets": find_secret_fields(chat.state.request, chat.messages)}
            return partial(_save_conversation, chat, None, []), facts
        export = load_events(log)
        save = partial(save_events, events=export.events, at=export.times, created=export.created)
        return lambda store, title: save(store, title=title), {"kind": "segue"}
    try:
        chat = Conversation.from_body(log.body, source=cast("Api | None", log.source))
    except InputError as error:
        raise add_line_number(error, log) from None
    native, model = chat.state.request.native, chat.state.request.model
    if log.kind != "body":
        # A log is not a request that was sent: drop its `native`, so that required options are set when rendering.
        chat.options = chat.options
    target = (native.api, model) if native is not None and model is not None else None
    dropped = {what: count for what, count in log.dropped.items() if count}
    facts = {"kind": log.kind, "left_out": dropped, "secrets": find_secret_fields(chat.state.request, chat.messages)}
    at = message_times(chat.messages, log)
    return lambda store, title: _save_conversation(chat, target, at, store, title or log.title), facts


def _save_conversation(
    chat: Conversation,
    target: tuple[str, str] | None,
    at: list[int | None],
    store: ConversationStore,
    title: str | None,
) -> str:
    """Store the conversation; pending calls stay pending. The model's event gets the time of the last message."""
    from segue.store.conversation import StoredConversation

    with StoredConversation.create(store, chat, title=title, at=at, target=target) as stored_chat:
        return stored_chat.id
