"""Seals: the journey of a moved session inside the session itself, for a move where the record of journeys is missing.

A seal is base64 of a MAC and the compressed journey: every message in its original form, and copies of the other
sessions. It is signed, not encrypted: the session has the same conversation beside it. A seal that was changed, or made
with another key, is ignored.
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
from segue.sessions.client import SEAL_KEY
from segue.sessions.journeys import Journey, Stop, decode_stop, encode_stop
from segue.sessions.session import Entry, decode_entry, encode_entry

_VERSION = 1
_MAC_SIZE = 32
_LENGTH_SIZE = 8
_PURPOSE = b"segue session seal"
# In a text, the quotes would be escaped.
_PLACED = re.compile(rb'(?<!\\)"' + SEAL_KEY.encode() + rb'":\s*"([A-Za-z0-9+/=]*)"')


class Sealed(Struct, frozen=True):
    """A journey from a seal. The session that it was in has the first `reach` messages of the journey as its own first
    `own_count` messages, which have the digest `own_digest`."""

    journey: Journey
    own_count: int
    own_digest: str
    reach: int


def seal_journey(
    entries: Sequence[Entry], others: Sequence[tuple[Stop, bytes]], own: Stop, keys: EnvelopeKeys, max_size: int
) -> str | None:
    """Return the seal for a session; None if it has more than `max_size` characters.

    `own` is that session, `entries` are the messages of its journey, and `others` the journey's other sessions with
    their contents.
    """
    contents = [strip_seals(content) for _, content in others]
    value = {
        "version": _VERSION,
        "own": [own.own_count, own.own_digest, own.reach],
        "entries": [encode_entry(entry) for entry in entries],
        "stops": [[len(content), *encode_stop(stop)] for (stop, _), content in zip(others, contents, strict=True)],
    }
    head = encode_json(value)
    payload = zlib.compress(b"".join((len(head).to_bytes(_LENGTH_SIZE), head, *contents)))
    if (len(payload) + _MAC_SIZE) * 4 // 3 + 4 > max_size:
        return None
    return b64encode(_compute_mac(keys.current, payload) + payload).decode("ascii")


def open_seal(data: bytes, keys: EnvelopeKeys) -> Sealed | None:
    """Return the journey in the last seal of a session; None without a seal that was made with these keys."""
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


def has_seal(data: bytes) -> bool:
    """Return whether a session has a seal that is not empty."""
    return any(_PLACED.findall(data))


def strip_seals(data: bytes) -> bytes:
    """Return the content of a session with empty seals: a seal does not contain others."""
    return _PLACED.sub(b'"' + SEAL_KEY.encode() + b'":""', data)


def _decode(data: bytes) -> Sealed | None:
    end = _LENGTH_SIZE + int.from_bytes(data[:_LENGTH_SIZE])
    value: Any = msgspec.json.decode(data[_LENGTH_SIZE:end])
    if value["version"] != _VERSION:
        return None
    entries = [decode_entry(entry, f"entries[{number}]") for number, entry in enumerate(value["entries"])]
    journey = Journey(Journey.start().id, entries, [], {})
    for size, *stop in value["stops"]:
        journey.set_stop(decode_stop(stop), data[end : end + size])
        end += size
    own_count, own_digest, reach = value["own"]
    return Sealed(journey, own_count, own_digest, reach)


def _compute_mac(secret: bytes, payload: bytes) -> bytes:
    return hmac.digest(hmac.digest(secret, _PURPOSE, "sha256"), payload, "sha256")
