"""segue's own store as a client: conversations are sessions, with every message in its canonical form.

The content of a session is that of `segue export --format json`.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import msgspec

from segue._conversation import Conversation
from segue.canonical.blocks import Message
from segue.canonical.codec import VERSION, decode_message, encode_value
from segue.canonical.history import History
from segue.canonical.json import encode_json, parse_json
from segue.errors import InputError, StoreError
from segue.sessions.client import CANONICAL, Client, ClientHome, NewSession, SessionFile
from segue.sessions.files import Fingerprint
from segue.sessions.parsed_log import LogLine, ParsedLog, SessionFacts
from segue.store import display_location, open_store, resolve_file
from segue.store.base import ConversationStore, ConversationSummary, StoredEvent, format_time, parse_time
from segue.store.events import Event, decode_event, dump_event
from segue.store.export import KIND, dump_events, fill_times, load_events
from segue.store.ids import new_id
from segue.store.replay import conversation_events, message_event, replay_events

_MAX_LISTED = 1000


class _Export:
    """Reads no lines, and writes what `segue export --format json` prints."""

    def is_line(self, line: LogLine) -> bool:
        return False

    def parse_log(self, lines: list[LogLine]) -> ParsedLog:
        raise InputError("an export of segue is one JSON value, not lines")

    def encode(self, draft: NewSession) -> bytes:
        chat = Conversation()
        chat.state.history = History(_messages(draft))
        # The settings come before the messages.
        events = conversation_events(chat)
        return _encode(draft.id, events, fill_times([None, *(item.at for item in draft.items)], len(events)))

    def encode_more(self, data: bytes, draft: NewSession) -> bytes:
        events = [message_event(message) for message in _messages(draft)]
        return _encode(draft.id, events, fill_times([item.at for item in draft.items], len(events)))

    def copy(self, data: bytes, draft: NewSession) -> bytes:
        return encode_json({**msgspec.json.decode(data), "id": draft.id})


class SegueStore(Client):
    name = "segue"
    kind = "segue"
    title = "segue"
    api = CANONICAL
    program = "segue"
    resume_arguments = ("chat", "-s")
    reader = writer = _Export()
    tested_versions = ()
    max_signed_copy = 0

    def parse_bytes(self, data: bytes) -> ParsedLog:
        envelope = parse_json(data)[0]
        if not isinstance(envelope, dict) or cast("dict[str, Any]", envelope).get("kind") != KIND:
            raise InputError("not an export of a stored conversation")
        fields = cast("dict[str, Any]", envelope)
        export = load_events(fields)
        state = replay_events(StoredEvent(seq, 0, event) for seq, event in enumerate(export.events, 1))
        body = {
            "messages": [encode_value(message) for message in state.chat.messages],
            **({"model": state.model} if state.model else {}),
        }
        return ParsedLog(self.kind, body, facts=SessionFacts(fields.get("id"), name=state.title))

    def find(self, home: ClientHome, cwd: Path | None) -> Iterator[SessionFile]:
        """Yield the latest conversations of a folder, or of all folders."""
        if not _exists(home):
            return
        try:
            with _open(home) as store:
                found = store.list(_MAX_LISTED, folder=None if cwd is None else os.path.realpath(cwd))
        except InputError:
            # A store that can't be read must not hide the sessions of other clients.
            return
        yield from (_describe(home, summary) for summary in found)

    def describe(self, path: Path) -> SessionFile:
        raise InputError("a stored conversation has no file of its own", path=str(path))

    def new_id(self, now: int) -> str:
        return new_id(now)

    def locate(self, home: ClientHome, draft: NewSession) -> Path:
        return _locate(home)

    def join(self, before: bytes, more: bytes) -> bytes:
        if not before:
            return more
        first, second = msgspec.json.decode(before), msgspec.json.decode(more)
        return encode_json({**first, "events": [*first["events"], *second["events"]]})

    def is_same(self, recorded: bytes, content: bytes) -> bool:
        """Return whether an export has the same events: earlier versions stored them under other names."""
        return _decode(recorded) == _decode(content)

    def is_open(self, home: ClientHome, session: SessionFile) -> bool:
        with _open(home) as store:
            return store.lease(session.id) is not None

    def load(self, home: ClientHome, session: SessionFile) -> bytes:
        if not _exists(home):
            raise InputError("the store does not exist", path=str(_locate(home)))
        with _open(home) as store:
            return b"".join(dump_events(store.get(session.id), store.events(session.id)))

    def create(self, home: ClientHome, draft: NewSession, data: bytes) -> SessionFile:
        events, at = _decode(data)
        times = fill_times(at, len(events))
        with _open(home) as store:
            first = times[0] if times else None
            folder = os.path.realpath(draft.cwd)
            store.create(draft.title, draft.id, at=first, events=events, times=times, folder=folder)
            return _describe(home, store.get(draft.id))

    def extend(self, home: ClientHome, session: SessionFile, expected: Fingerprint, data: bytes) -> None:
        events, at = _decode(data)
        with _open(home) as store:
            summary = store.get(session.id)
            if not expected.matches(b"".join(dump_events(summary, store.events(session.id)))):
                raise InputError("the conversation was changed; nothing was written", path=session.id)
            store.append(session.id, summary.seq, events, at=fill_times(at, len(events)))

    def remove(self, home: ClientHome, session: SessionFile) -> None:
        with _open(home) as store:
            store.delete(session.id)


def _locate(home: ClientHome) -> Path:
    """Return the file of the store; for a server, which has none, its address without user name and password."""
    return Path(display_location(home.store))


def _exists(home: ClientHome) -> bool:
    file = resolve_file(home.store) if home.store else None
    return bool(home.store) and (file is None or file.exists())


@contextmanager
def _open(home: ClientHome) -> Generator[ConversationStore]:
    """Open the user's store; a `StoreError` becomes an `InputError`."""
    try:
        with open_store(home.store) as store:
            yield store
    except StoreError as error:
        raise InputError(str(error), path="store") from None


def _describe(home: ClientHome, summary: ConversationSummary) -> SessionFile:
    title = summary.title or summary.opening
    path = _locate(home)
    fields = (summary.folder, summary.updated, 0, title, summary.model, summary.messages)
    return SessionFile("segue", summary.id, path, *fields)


def _messages(draft: NewSession) -> list[Message]:
    return [decode_message(item.value, f"messages[{number}]") for number, item in enumerate(draft.items)]


def _encode(id: str, events: Sequence[Event], times: Sequence[int] | None) -> bytes:
    encoded = [msgspec.json.decode(dump_event(event)) for event in events]
    if times is not None:
        encoded = [{"at": format_time(at, exact=True), **event} for at, event in zip(times, encoded, strict=True)]
    return encode_json({"segue": VERSION, "kind": KIND, "id": id, "events": encoded})


def _decode(data: bytes) -> tuple[list[Event], list[int | None]]:
    events: list[Event] = []
    times: list[int | None] = []
    for event in msgspec.json.decode(data)["events"]:
        times.append(parse_time(event.pop("at", None)))
        events.append(decode_event(encode_json(event)))
    return events, times
