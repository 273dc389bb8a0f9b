"""The conversation of a moved session, signed, inside the session itself: for a move where the record is missing.

A signed copy is base64 of a MAC and the compressed conversation: every message in its original form, and the other
sessions. It is not encrypted: the session has the same conversation beside it. A copy that was changed, or signed with
another key, is ignored.
"""

from __future__ import annotations

import hmac
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from segue.bridge.envelopes import EnvelopeKeys
from segue.canonical.json import encode_json
from segue.errors import SegueError
from segue.sessions.client import SIGNED_COPY_KEY
from segue.sessions.move_record import MovedConversation, SessionState, decode_state, encode_state
from segue.sessions.session import SessionMessage, decode_entry, encode_entry

_VERSION = 1
_MAC_SIZE = 32
_LENGTH_SIZE = 8
_PURPOSE = b"segue session seal"
# In a text, the quotes would be escaped.
_PLACED = re.compile(rb'(?<!\\)"' + SIGNED_COPY_KEY.encode() + rb'":\s*"([A-Za-z0-9+/=]*)"')


class SignedCopy(Struct, frozen=True):
    """A conversation from a signed copy. The session that it was in has the first `message_count` messages of it as its
    own first `file_message_count` messages, which have the digest `file_digest`."""

    conversation: MovedConversation
    file_message_count: int
    file_digest: str
    message_count: int


def make_signed_copy(
    entries: Sequence[SessionMessage],
    others: Sequence[tuple[SessionState, bytes]],
    own: SessionState,
    keys: EnvelopeKeys,
    max_size: int,
) -> str | None:
    """Return the signed copy for a session; None if it has more than `max_size` characters.

    `own` is that session, `entries` are the messages of its conversation, and `others` the other sessions with their
    contents.
    """
    contents = [strip_signed_copies(content) for _, content in others]
    value = {
        "version": _VERSION,
        "own": [own.file_message_count, own.file_digest, own.message_count],
        "entries": [encode_entry(entry) for entry in entries],
        "stops": [[len(content), *encode_state(state)] for (state, _), content in zip(others, contents, strict=True)],
    }
    head = encode_json(value)
    payload = zlib.compress(b"".join((len(head).to_bytes(_LENGTH_SIZE), head, *contents)))
    if (len(payload) + _MAC_SIZE) * 4 // 3 + 4 > max_size:
        return None
    return b64encode(_compute_mac(keys.current, payload) + payload).decode("ascii")


def open_signed_copy(data: bytes, keys: EnvelopeKeys) -> SignedCopy | None:
    """Return the conversation in the last signed copy of a session; None if there is none with these keys."""
    places = _PLACED.findall(data)
    try:
        text = b64decode(places[-1], validate=True) if places else b""
    except ValueError:
        return None
    mac, payload = text[:_MAC_SIZE], text[_MAC_SIZE:]
    secrets = [key for key in (keys.current, keys.previous) if key is not None]
    if not any(hmac.compare_digest(mac, _compute_mac(secret, payload)) for secret in secrets):
        return None
    try:
        return _decode(zlib.decompress(payload))
    except (SegueError, msgspec.DecodeError, zlib.error, KeyError, TypeError, ValueError):
        # Made by another version of segue.
        return None


def has_signed_copy(data: bytes) -> bool:
    """Return whether a session has a signed copy that is not empty."""
    return any(_PLACED.findall(data))


def strip_signed_copies(data: bytes) -> bytes:
    """Return the content of a session with empty signed copies: one does not contain others."""
    return _PLACED.sub(b'"' + SIGNED_COPY_KEY.encode() + b'":""', data)


def _decode(data: bytes) -> SignedCopy | None:
    end = _LENGTH_SIZE + int.from_bytes(data[:_LENGTH_SIZE])
    value: Any = msgspec.json.decode(data[_LENGTH_SIZE:end])
    if value["version"] != _VERSION:
        return None
    entries = [decode_entry(entry, f"entries[{number}]") for number, entry in enumerate(value["entries"])]
    conversation = MovedConversation(MovedConversation.start().id, entries, [], {})
    for size, *state in value["stops"]:
        conversation.set_state(decode_state(state), data[end : end + size])
        end += size
    file_message_count, file_digest, message_count = value["own"]
    return SignedCopy(conversation, file_message_count, file_digest, message_count)


def _compute_mac(secret: bytes, payload: bytes) -> bytes:
    return hmac.digest(hmac.digest(secret, _PURPOSE, "sha256"), payload, "sha256")
