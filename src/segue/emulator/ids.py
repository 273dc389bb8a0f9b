"""Ids in each API's format, derived from the seed and the request, so that every run gives the same ids."""

from __future__ import annotations

from hashlib import sha256
from string import ascii_letters, ascii_lowercase, digits

_ALPHANUMERIC = digits + ascii_letters
BASE58 = "".join(letter for letter in digits[1:] + ascii_letters if letter not in "IlO")
URL_SAFE = _ALPHANUMERIC + "-_"
LOWER = digits + ascii_lowercase
HEX = digits + "abcdef"


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
