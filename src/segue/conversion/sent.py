"""The parts of a converted body that are needed to convert its reply.

It needs the tools, the model and the options of the request, the ids of its calls, and a key that differs for
each turn. None of them costs more for a longer conversation, except the ids, and these only if the reply has calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, cast

from msgspec import Raw

from segue.canonical.ids import short_hash
from segue.canonical.json import encode_json, parse_json_object
from segue.canonical.request import Request
from segue.wire.names import NameMap

_STREAM_KEYS = frozenset({"stream", "stream_options"})
_MODEL_KEYS = ("model", "modelId")
_MAX_FINGERPRINT = 1 << 18
FINGERPRINT_ITEMS = 3
"""The items at each end that, with the number of all items, distinguish the requests of a conversation."""


class SentSettings:
    """The fields of a body besides its conversation, and the request that they were converted from, without messages.

    One value serves all requests that differ only in their conversation.
    """

    def __init__(self, request: Request, names: NameMap, fields: Mapping[str, Any]) -> None:
        self.request = request
        self.names = names
        self._fields = fields

    @cached_property
    def model(self) -> str | None:
        """The model that the body names."""
        value = next((self._fields[key] for key in _MODEL_KEYS if key in self._fields), None)
        if isinstance(value, Raw):
            value = parse_json_object(b'{"model":%b}' % bytes(value))[0]["model"]
        return value if isinstance(value, str) else None

    def build_reply_key(self, fingerprint: bytes) -> str:
        """Return a key that differs for each turn of a conversation, the same for a whole and for a streamed reply.

        `fingerprint` are the first and last items, and the number of all.
        """
        return short_hash(self._key.encode() + fingerprint)

    @cached_property
    def _key(self) -> str:
        return short_hash(encode_json({key: value for key, value in self._fields.items() if key not in _STREAM_KEYS}))


def encode_fingerprint(conversation: object) -> bytes:
    """Encode the number of items of a conversation, its first and its last items; large ones as a hash."""
    if not isinstance(conversation, list):
        return _hash_large(encode_json(conversation))
    items = cast("Sequence[object]", conversation)
    return _hash_large(encode_json([len(items), items[:FINGERPRINT_ITEMS], items[-FINGERPRINT_ITEMS:]]))


def join_fingerprints(count: int, first: Sequence[bytes], last: Sequence[bytes]) -> bytes:
    """Return the fingerprint of a conversation whose first and last items are encoded already."""
    ends = b",".join(first[:FINGERPRINT_ITEMS]), b",".join(last[-FINGERPRINT_ITEMS:])
    return _hash_large(b"[%d,[%b],[%b]]" % (count, *ends))


def _hash_large(fingerprint: bytes) -> bytes:
    """Return the fingerprint, or its hash if it is too large to be kept until the reply arrives."""
    return fingerprint if len(fingerprint) <= _MAX_FINGERPRINT else short_hash(fingerprint).encode()
