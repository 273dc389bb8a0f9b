"""`Session`: a client's session as canonical messages, with their times, and what its log records besides them.

The client's own instructions and facts about the machine are not part of it: the next client has its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, cast

import msgspec
from msgspec import Struct

from segue._conversation import Conversation
from segue._literals import Api
from segue.canonical.blocks import Message, Native
from segue.canonical.codec import decode_message, encode_value, use_former_names
from segue.canonical.json import encode_json_sorted
from segue.errors import InputError
from segue.sessions.client import CANONICAL, Client, SessionFile
from segue.sessions.logs import add_line_number, read_log
from segue.sessions.parsed_log import ParsedLog

LIST_KEYS = ("messages", "input", "contents")
"""The keys of the list of messages or items in a body, by API."""


class SessionMessage(Struct, frozen=True):
    """A message, the client whose session it was first in, its time in microseconds since 1970, and the session's
    model at that time, if known."""

    message: Message
    client: str
    at: int | None = None
    model: str | None = None


class Session(Struct, frozen=True):
    """A session that was read: its file, its content, the log parsed from it, and its messages."""

    file: SessionFile
    data: bytes
    log: ParsedLog
    entries: tuple[SessionMessage, ...]


def parse_session(client: Client, file: SessionFile, data: bytes) -> Session:
    """Parse a session. `InputError` names the file and the line where its format is unknown."""
    try:
        log = client.parse_bytes(data) or read_log(data)
        if not isinstance(log, ParsedLog) or log.kind != client.kind:
            raise InputError(f"not a session of {client.title}, or in a format that this version does not read")
        return Session(file, data, log, _read_entries(client, log))
    except InputError as error:
        raise InputError(error.message, path=": ".join(filter(None, (str(file.path), error.path)))) from None


def _read_entries(client: Client, log: ParsedLog) -> tuple[SessionMessage, ...]:
    key = list_key(log.body)
    items = cast("list[Any]", log.body[key])
    if client.api == CANONICAL:
        model = log.body.get("model")
        decoded = [decode_message(item, f"{key}[{number}]") for number, item in enumerate(items)]
        return tuple(
            SessionMessage(message, client.name, None, model) for message in decoded if message.speaker != "system"
        )
    kept = [index for index in range(len(items)) if index not in log.context]
    body: dict[str, Any] = {key: [items[index] for index in kept]}
    if "model" in log.body:
        body["model"] = log.body["model"]
    if not kept:
        raise InputError("this session has no messages")
    times = [log.times[index] for index in kept] if log.times else []
    numbers = [log.line_numbers[index] for index in kept] if log.line_numbers else []
    own = msgspec.structs.replace(log, body=body, times=times, line_numbers=numbers)
    try:
        chat = Conversation.from_body(body, source=cast("Api", client.api))
    except InputError as error:
        raise add_line_number(error, own) from None
    at = message_times(chat.messages, own) or [None] * len(chat.messages)
    pairs = zip(chat.messages, at, strict=True)
    model = body.get("model")
    return tuple(
        SessionMessage(message, client.name, time, model) for message, time in pairs if message.speaker != "system"
    )


def message_times(messages: Sequence[Message], log: ParsedLog) -> list[int | None]:
    """Return a time for each message: that of its last log entry. Entries are matched by content."""
    if not any(log.times):
        return []
    entries = cast("list[Any]", next(log.body[key] for key in ("messages", "input", "contents") if key in log.body))
    times: dict[bytes, deque[int | None]] = {}
    for entry, at in zip(entries, log.times, strict=True):
        times.setdefault(encode_json_sorted(entry), deque()).append(at)
    result: list[int | None] = []
    for message in messages:
        natives = [message.native, *(block.native for block in message.blocks)]
        matching = [at for native in natives if (at := _take_time(native, times)) is not None]
        result.append(max(matching, default=None))
    return result


def _take_time(native: Native | None, times: dict[bytes, deque[int | None]]) -> int | None:
    queue = times.get(encode_json_sorted(native.fragment)) if native is not None and native.fragment else None
    return queue.popleft() if queue else None


def list_key(body: Any) -> str:
    """Return the key of a body's list of messages or items."""
    return next(key for key in LIST_KEYS if key in body)


def digest_entries(entries: Sequence[SessionMessage]) -> str:
    """Return a digest of messages, which shows whether a session still begins with them."""
    return _digest([encode_value(entry.message) for entry in entries])


def has_digest(entries: Sequence[SessionMessage], digest: str) -> bool:
    """Return whether messages have a digest, which may be from a version with other names of fields."""
    encoded = [encode_value(entry.message) for entry in entries]
    return digest == _digest(encoded) or digest == _digest(use_former_names(encoded))


def _digest(encoded: list[Any]) -> str:
    return sha256(encode_json_sorted(encoded)).hexdigest()


def encode_entry(entry: SessionMessage) -> list[Any]:
    """Return the stored form of a message with its client, time and model."""
    return [entry.client, entry.at, entry.model, encode_value(entry.message)]


def decode_entry(stored: Any, path: str) -> SessionMessage:
    """Decode a message with its client, time and model."""
    client, at, model, message = stored
    return SessionMessage(decode_message(message, path), client, at, model)
