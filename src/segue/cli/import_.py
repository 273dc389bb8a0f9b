"""`segue import`: a body of any API, an export of ours, or the log of another client becomes a stored conversation.

All of the input is read and understood before anything is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from segue.cli import options, stored, streams

if TYPE_CHECKING:
    from collections.abc import Sequence

    from segue.store.events import Event


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
        events, found = _understood(data, source)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    from segue.store.portable import keep_events

    with stored.opened(make=True) as store:
        id = keep_events(store, events, title=title or found.pop("title", None))
        found["messages"] = store.get(id).messages
    if as_json:
        import msgspec

        streams.write(msgspec.json.encode({"id": id, **found}), b"\n")
        return
    if left_out := found.get("left_out"):
        streams.say(f"left out: {', '.join(f'{count:,} {what}' for what, count in left_out.items())}")
    streams.write(f"{id}\n")


def _understood(data: bytes, source: str | None) -> tuple[Sequence[Event], dict[str, Any]]:
    """The events of a conversation, and what else is known: its kind, its title, what was left out."""
    from segue.cli.logs import Recorded, read_log, with_line
    from segue.conversation import Conversation
    from segue.errors import InputError
    from segue.store.conversation import events_of
    from segue.store.events import Switched
    from segue.store.portable import KIND, load_events

    log = read_log(data, source)
    if not isinstance(log, Recorded):
        if log.get("kind") == KIND:
            return load_events(log), {"kind": "segue"}
        return events_of(Conversation.load(data)), {"kind": "segue"}
    try:
        chat = Conversation.from_body(log.body, source=log.source)
    except InputError as error:
        raise with_line(error, log) from None
    native, model = chat.request.native, chat.request.model
    if log.kind != "body":
        # Nobody ever sent this as it is: what a body needs beside the messages is given when one is made.
        chat.options = chat.options
    events = events_of(chat)
    if native is not None and model is not None:
        events.append(Switched(native.api, model))
    left_out = {what: count for what, count in log.left_out.items() if count}
    return events, {"kind": log.kind, "left_out": left_out, "title": log.title}
