"""What is derived from the seed: ids in each API's format, and signatures of reasoning (an HMAC keyed by seed, API,
account and model), so that every run gives the same.

A signature contains what it was created for, so that the emulator can distinguish a changed signature, a changed text
and a changed prompt. A seal contains a JSON value that the client can't read.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import zlib
from collections.abc import Sequence
from hashlib import sha256, shake_256
from string import ascii_letters, ascii_lowercase, digits
from typing import Any, Literal

from msgspec import DecodeError, Struct, ValidationError
from msgspec import json as wire_json

from segue.canonical.type_warmup import warm_type

_ALPHANUMERIC = digits + ascii_letters
BASE58 = "".join(letter for letter in digits[1:] + ascii_letters if letter not in "IlO")
URL_SAFE = _ALPHANUMERIC + "-_"
LOWER = digits + ascii_lowercase
HEX = digits + "abcdef"
FOREIGN_SIGNATURE = "the signature is not from this provider and account"
_MAC_LENGTH = 16
# In place of the model: a seal is not bound to one.
_SEAL = "seal"
_DIGEST_LENGTH = 12


class IdGenerator:
    """Generates the ids of one reply; the same kind and index always give the same id."""

    def __init__(self, *parts: object) -> None:
        self._seed_text = "|".join(map(str, parts))

    def make(self, kind: str, index: int, length: int, alphabet: str = _ALPHANUMERIC) -> str:
        text = ""
        block = 0
        while len(text) < length:
            digest = sha256(f"{self._seed_text}|{kind}|{index}|{block}".encode()).digest()
            text += "".join(alphabet[byte % len(alphabet)] for byte in digest)
            block += 1
        return text[:length]

    def make_uuid(self, kind: str) -> str:
        text = self.make(kind, 0, 32, HEX)
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def digest(value: object) -> str:
    """Return a short hash of a JSON value, independent of the order of its members."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]


class PromptPrefix(Struct, frozen=True, array_like=True):
    """Hashes of the prompt that a block was generated from: system prompt, tools, and the first `count` entries."""

    system: str
    tools: str
    entries: str
    count: int

    @classmethod
    def of_prompt(cls, system: object, tools: object, entries: Sequence[object]) -> PromptPrefix:
        return cls(digest(system), digest(tools), digest(entries), len(entries))

    def find_difference(self, system: object, tools: object, entries: Sequence[object]) -> str | None:
        """Return the part of a prompt that differs: `system`, `tools` or `messages`; `None` if it is the same."""
        if digest(system) != self.system:
            return "system"
        if digest(tools) != self.tools:
            return "tools"
        same = len(entries) >= self.count and digest(entries[: self.count]) == self.entries
        return None if same else "messages"


class SignaturePayload(Struct, frozen=True, array_like=True):
    """The content of a signature: the block with this `index` of the `total` signed blocks of a reply."""

    model: str
    reply: str
    index: int
    total: int
    text_digest: str
    prefix: PromptPrefix | None = None


class Signer:
    """Signs and verifies for one emulated provider. Signatures start with `prefix` and use this base64 alphabet."""

    def __init__(
        self, seed: int, api: str, *, prefix: str = "", alphabet: Literal["standard", "url"] = "standard"
    ) -> None:
        self._key = f"{seed}|{api}"
        self._prefix = prefix
        self._url = alphabet == "url"

    def sign(self, signed_payload: SignaturePayload, account: str) -> str:
        payload = wire_json.encode(signed_payload)
        return self._to_text(self._mac(payload, account, signed_payload.model) + payload)

    def verify(self, text: object, account: str) -> SignaturePayload | None:
        """Return the content of a signature; `None` if it is not from this provider and account."""
        signed = self._to_bytes(text)
        try:
            signed_payload = wire_json.decode(signed[_MAC_LENGTH:], type=warm_type(SignaturePayload))
        except (DecodeError, ValidationError):
            return None
        return (
            signed_payload
            if hmac.compare_digest(signed[:_MAC_LENGTH], self._mac(signed[_MAC_LENGTH:], account, signed_payload.model))
            else None
        )

    def seal(self, value: object, account: str) -> str:
        """Return a JSON value compressed and encrypted."""
        content = zlib.compress(wire_json.encode(value))
        mac = self._mac(content, account, _SEAL)
        return self._to_text(mac + self._encrypt(content, mac, account))

    def unseal(self, text: object, account: str) -> Any:
        """Return a sealed value; `None` if it is not from this provider and account."""
        sealed = self._to_bytes(text)
        mac = sealed[:_MAC_LENGTH]
        content = self._encrypt(sealed[_MAC_LENGTH:], mac, account)
        is_own = len(mac) == _MAC_LENGTH and hmac.compare_digest(mac, self._mac(content, account, _SEAL))
        return wire_json.decode(zlib.decompress(content)) if is_own else None

    def _encrypt(self, content: bytes, mac: bytes, account: str) -> bytes:
        """Return the content combined with a key stream; applied twice, the content itself."""
        stream = shake_256(f"{self._key}|{account}|{_SEAL}|".encode() + mac).digest(len(content))
        combined = int.from_bytes(content, "big") ^ int.from_bytes(stream, "big")
        return combined.to_bytes(len(content), "big")

    def _to_text(self, data: bytes) -> str:
        encoded = base64.urlsafe_b64encode(data) if self._url else base64.b64encode(data)
        return self._prefix + encoded.decode("ascii")

    def _to_bytes(self, text: object) -> bytes:
        """Return the bytes of a signature or seal, empty if it is none."""
        if not isinstance(text, str) or not text.startswith(self._prefix):
            return b""
        try:
            decode = base64.urlsafe_b64decode if self._url else base64.b64decode
            return decode(text[len(self._prefix) :].encode("ascii"))
        except (ValueError, binascii.Error):
            return b""

    def _mac(self, payload: bytes, account: str, model: str) -> bytes:
        key = f"{self._key}|{account}|{model}".encode()
        return hmac.digest(key, payload, "sha256")[:_MAC_LENGTH]
