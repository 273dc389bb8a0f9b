"""Signatures that the emulator makes and knows again: an HMAC keyed by seed, API, account and model.

A seal holds what it was made for, so that what was changed can be told apart: the seal itself, the words under it, or
the conversation before them.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Literal

from msgspec import DecodeError, Struct, ValidationError
from msgspec import json as wire_json

from segue.canonical.learning import learnt

__all__ = ["Prefix", "Seal", "Seals", "digest"]

_MAC = 16
_SHORT = 12


def digest(value: object) -> str:
    """The same for the same JSON value, in whatever order its members stand."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_SHORT]


class Prefix(Struct, frozen=True, array_like=True):
    """What a model had read: the system text, the tools, and so many entries of the conversation."""

    system: str
    tools: str
    entries: str
    count: int

    @classmethod
    def of(cls, system: object, tools: object, entries: Sequence[object]) -> Prefix:
        return cls(digest(system), digest(tools), digest(entries), len(entries))

    def differs(self, system: object, tools: object, entries: Sequence[object]) -> str | None:
        """What of a conversation is not as it was: `system`, `tools` or `messages`."""
        if digest(system) != self.system:
            return "system"
        if digest(tools) != self.tools:
            return "tools"
        same = len(entries) >= self.count and digest(entries[: self.count]) == self.entries
        return None if same else "messages"


class Seal(Struct, frozen=True, array_like=True):
    """`place` and `total`: which block of how many that were sealed in the reply."""

    model: str
    reply: str
    place: int
    total: int
    words: str
    prefix: Prefix | None = None


class Seals:
    """The seals of one emulated provider. `spelling`: the base64 alphabet, and what every seal begins with."""

    def __init__(
        self, seed: int, api: str, *, head: str = "", alphabet: Literal["standard", "url"] = "standard"
    ) -> None:
        self._key = f"{seed}|{api}"
        self._head = head
        self._url = alphabet == "url"

    def made(self, seal: Seal, account: str) -> str:
        held = wire_json.encode(seal)
        sealed = self._mac(held, account, seal.model) + held
        text = base64.urlsafe_b64encode(sealed) if self._url else base64.b64encode(sealed)
        return self._head + text.decode("ascii")

    def read(self, text: object, account: str) -> Seal | None:
        """The seal, if it is one that was made here, for this account."""
        if not isinstance(text, str) or not text.startswith(self._head):
            return None
        try:
            decode = base64.urlsafe_b64decode if self._url else base64.b64decode
            sealed = decode(text[len(self._head) :].encode("ascii"))
            seal = wire_json.decode(sealed[_MAC:], type=learnt(Seal))
        except (ValueError, binascii.Error, DecodeError, ValidationError):
            return None
        return seal if hmac.compare_digest(sealed[:_MAC], self._mac(sealed[_MAC:], account, seal.model)) else None

    def _mac(self, held: bytes, account: str, model: str) -> bytes:
        key = f"{self._key}|{account}|{model}".encode()
        return hmac.digest(key, held, "sha256")[:_MAC]
