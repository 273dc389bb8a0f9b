"""Envelopes: reasoning of one provider, sealed so that a client of another API can carry it to the next request.

An envelope is base64 of a header, the version, a MAC, the time of sealing and the compressed payload. It is signed, not
encrypted: its holder can read the reasoning, but can't change it. It opens only for the provider, the endpoint and the
API key that the reasoning was made with. An entry of a store has the same form.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

import msgspec
from msgspec import Struct

from segue.bridge.secret import Secret
from segue.canonical.blocks import Thinking
from segue.canonical.codec import decode_block, encode_value
from segue.canonical.envelope import ENVELOPE_PREFIX, is_envelope
from segue.canonical.json import encode_json
from segue.errors import InputError, SegueError

MAX_ENVELOPE_SIZE = 256 * 1024
"""The longest envelope that `seal` makes for a client, in characters. Longer reasoning belongs in a store."""
MAX_PAYLOAD_SIZE = 8 * 2**20
"""The size limit of a payload before compression, in bytes, also in a store."""
MIN_KEY_SIZE = 32

PlacedBlock: TypeAlias = tuple[int, Thinking]
"""A block with its position among the calls of its reply."""
EntryKind = Literal[
    "opening",  # marks a conversation with stored reasoning, by its first user message
    "reasoning",  # the reasoning of a reply, by its first call
    "responses",  # a response that later requests may refer to
    "conversations",  # a conversation that they may refer to
    "messages",  # a message of a thread, with what is before it
    "item",  # an item of a response, by its id
    "compaction",  # who made a compaction, by its content
    "compacted",  # the messages that it stands for
    "summary",  # a summary of them
]
RejectReason = Literal["forged", "expired", "provider", "endpoint", "key", "version"]

_HEADER = base64.b64decode(ENVELOPE_PREFIX)
_VERSION = 1
_MAC_SIZE = 32
_TIME_SIZE = 8
_MAC_START = len(_HEADER) + 1
_SIGNED_START = _MAC_START + _MAC_SIZE
_PAYLOAD_START = _SIGNED_START + _TIME_SIZE
_MAX_TIME = 2 ** (8 * _TIME_SIZE) - 1
_URL_ALPHABET = str.maketrans("-_", "+/")
_REJECTED: dict[RejectReason, str] = {
    "forged": "it was changed, cut off, or sealed with another secret",
    "expired": "it is older than envelopes may be",
    "provider": "it has reasoning of another provider",
    "endpoint": "it has reasoning of another endpoint",
    "key": "its reasoning was made with another API key",
    "version": "it was sealed by another version of segue",
}


class EnvelopeKeys(Struct, frozen=True):
    """The secrets that envelopes are sealed with, each of 32 bytes or more.

    `current` seals. `previous` opens the envelopes of the time before a rotation.
    """

    current: bytes
    previous: bytes | None = None

    def __post_init__(self) -> None:
        for name, key in (("current", self.current), ("previous", self.previous)):
            if key is not None and len(key) < MIN_KEY_SIZE:
                raise InputError(f"an envelope key of {len(key)} bytes; at least {MIN_KEY_SIZE} are needed", path=name)

    def __repr__(self) -> str:
        return f"EnvelopeKeys({'one key' if self.previous is None else 'two keys'})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        # That of `Struct` has the fields.
        return []


class EndpointBinding(Struct, frozen=True):
    """What the reasoning of an envelope was made with: `endpoint` is the base URL, `model` the exact name.

    `key_fingerprint` is that of `fingerprint_key`.
    """

    provider: str
    endpoint: str
    key_fingerprint: str
    model: str


class OpenedEnvelope(Struct, frozen=True):
    """The content of an envelope. `model` is the exact model that made it, which may differ from the binding's."""

    blocks: tuple[PlacedBlock, ...]
    model: str
    sealed_at: int


class OpenedFields(Struct, frozen=True):
    """The fields of an envelope, and the secret that it was sealed with."""

    fields: dict[str, Any]
    sealed_at: int
    key: bytes

    def find_mismatch(self, binding: EndpointBinding) -> Literal["provider", "endpoint", "key"] | None:
        """Return in what its binding differs from another one, apart from the model; None if in nothing."""
        if self.fields.get("provider") != binding.provider:
            return "provider"
        expected = _bound_digests(self.key, binding)
        return next((name for name in expected if self.fields.get(name) != expected[name]), None)

    def __repr__(self) -> str:
        return "OpenedFields()"


class RejectedEnvelope(Struct, frozen=True):
    """Why an envelope was not opened. With another key of `EnvelopeKeys`, the reason is `forged`."""

    reason: RejectReason

    @property
    def message(self) -> str:
        """The reason as part of a sentence, for a finding."""
        return _REJECTED[self.reason]


def fingerprint_key(api_key: Secret | None) -> str:
    """Return a fingerprint of an API key, `""` without one. It does not depend on the envelope keys.

    Envelopes have only an HMAC of it, so that their holder can't test a guess of the API key.
    """
    return hmac.digest(api_key.reveal().encode(), b"segue api key", "sha256").hex() if api_key else ""


def seal(
    blocks: Sequence[PlacedBlock],
    binding: EndpointBinding,
    keys: EnvelopeKeys,
    now: float,
    *,
    max_size: int = MAX_ENVELOPE_SIZE,
) -> str | None:
    """Return the envelope of some reasoning; None if it has more than `max_size` characters.

    `now` is the time in seconds. For an entry of a store, which has no such limit, pass another `max_size`.
    """
    fields = {"blocks": [[position, encode_value(block)] for position, block in blocks]}
    text = seal_fields(fields, binding, keys, now)
    return text if text is not None and len(text) <= max_size else None


def seal_fields(
    fields: Mapping[str, Any],
    binding: EndpointBinding,
    keys: EnvelopeKeys,
    now: float,
    *,
    limit: int = MAX_PAYLOAD_SIZE,
) -> str | None:
    """Return the envelope of some fields; None if their JSON has more than `limit` bytes."""
    bound = {"provider": binding.provider, "model": binding.model, **_bound_digests(keys.current, binding)}
    payload = encode_json({**bound, **fields})
    if len(payload) > limit:
        return None
    signed = min(max(int(now), 0), _MAX_TIME).to_bytes(_TIME_SIZE) + zlib.compress(payload)
    # With a length divisible by three there is no padding, which some clients drop, and each text means other bytes.
    signed += b"\0" * (-(_SIGNED_START + len(signed)) % 3)
    head = _HEADER + bytes([_VERSION])
    return base64.b64encode(head + _compute_mac(keys.current, head + signed) + signed).decode()


def open_envelope(
    text: str, binding: EndpointBinding, keys: EnvelopeKeys, now: float, max_age: float
) -> OpenedEnvelope | RejectedEnvelope:
    """Return the content of an envelope that is at most `max_age` seconds old; it never raises.

    Another model is not a reason to reject it: the renderer drops what is bound to the model.
    """
    opened = open_fields(text, keys, now, max_age)
    if isinstance(opened, RejectedEnvelope):
        return opened
    foreign = opened.find_mismatch(binding)
    if foreign is not None:
        return RejectedEnvelope(foreign)
    payload = opened.fields
    try:
        return OpenedEnvelope(tuple(_parse_blocks(payload["blocks"])), str(payload["model"]), opened.sealed_at)
    except (SegueError, KeyError, TypeError, ValueError):
        # Sealed with this key, but by another version of segue.
        return RejectedEnvelope("version")


def open_fields(
    text: str, keys: EnvelopeKeys, now: float, max_age: float, *, limit: int = MAX_PAYLOAD_SIZE
) -> OpenedFields | RejectedEnvelope:
    """Return the fields of an envelope of any provider that is at most `max_age` seconds old; it never raises."""
    data = _decode(text, limit)
    if data is None:
        return RejectedEnvelope("forged")
    if data[_MAC_START - 1] != _VERSION:
        return RejectedEnvelope("version")
    key = _find_key(data, keys)
    payload = _decompress(data[_PAYLOAD_START:], limit) if key is not None else None
    if key is None or payload is None:
        return RejectedEnvelope("forged")
    sealed_at = int.from_bytes(data[_SIGNED_START:_PAYLOAD_START])
    return RejectedEnvelope("expired") if now - sealed_at > max_age else OpenedFields(payload, sealed_at, key)


def entry_key(keys: EnvelopeKeys, client: str, kind: EntryKind, entry_id: str, digest: str) -> str:
    """Return the key of a store entry, made with the current secret: an HMAC, from which no part can be recovered.

    `client` is the client's key or the process, `entry_id` the id of a call or response, `digest` that of the
    conversation up to it. The route is no part of it: an entry opens for the endpoint that made it, on any route.
    """
    return entry_keys(keys, client, kind, entry_id, digest)[0]


def entry_keys(keys: EnvelopeKeys, client: str, kind: EntryKind, entry_id: str, digest: str) -> tuple[str, ...]:
    """Return the keys under which an entry can be found: that of `entry_key`, then that of before a rotation."""
    secrets = (keys.current,) if keys.previous is None else (keys.current, keys.previous)
    return tuple(_digest_parts(secret, b"segue store entry", client, kind, entry_id, digest) for secret in secrets)


def _bound_digests(key: bytes, binding: EndpointBinding) -> dict[Literal["endpoint", "key"], str]:
    """Return the parts of the binding that an envelope holds as digests: its holder must not learn them."""
    return {
        "endpoint": _digest_parts(key, b"segue endpoint", binding.endpoint),
        "key": _digest_parts(key, b"segue api key", binding.key_fingerprint),
    }


def _digest_parts(key: bytes, purpose: bytes, *parts: str) -> str:
    """Return an HMAC of several texts as hex. Each follows its length, so that no two lists of texts are equal."""
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    return hmac.digest(key, purpose + b"".join(b"%d:%b" % (len(part), part) for part in encoded), "sha256").hex()


def _compute_mac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")


def _find_key(data: bytes, keys: EnvelopeKeys) -> bytes | None:
    """Return the key that sealed these bytes, or None."""
    mac, signed = data[_MAC_START:_SIGNED_START], data[:_MAC_START] + data[_SIGNED_START:]
    for key in (keys.current, keys.previous):
        if key is not None and hmac.compare_digest(mac, _compute_mac(key, signed)):
            return key
    return None


def _decode(text: str, limit: int) -> bytes | None:
    """Return the bytes of an envelope; None if it is not base64 without padding, in either alphabet, or too long."""
    if not is_envelope(text) or len(text) > _max_text_size(limit) or len(text) % 4 or "=" in text or not text.isascii():
        return None
    try:
        data = base64.b64decode(text.translate(_URL_ALPHABET), validate=True)
    except binascii.Error:
        return None
    return data if len(data) > _PAYLOAD_START else None


def _max_text_size(limit: int) -> int:
    """The size of a whole envelope whose payload can't be compressed.

    zlib adds a header and five bytes for each 16 kB.
    """
    return (limit + limit // 2048 + 1024) * 4 // 3


def _decompress(data: bytes, limit: int) -> dict[str, Any] | None:
    """Return the payload; None if it is damaged or too large. No more than its size limit is decompressed."""
    decompressor = zlib.decompressobj()
    try:
        text = decompressor.decompress(data, limit + 1)
        payload = msgspec.json.decode(text) if decompressor.eof else None
    except (zlib.error, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return cast("dict[str, Any]", payload) if isinstance(payload, dict) else None


def _parse_blocks(stored: list[list[Any]]) -> Iterator[PlacedBlock]:
    for position, value in stored:
        block = decode_block(value, "blocks")
        if not isinstance(block, Thinking) or not isinstance(position, int):
            raise TypeError
        yield position, block
