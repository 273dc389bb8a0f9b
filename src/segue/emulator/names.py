"""Ids in each API's own style. They follow from the seed and the request, so that the same run gives the same ids."""

from __future__ import annotations

from hashlib import sha256
from string import ascii_letters, ascii_lowercase, digits

__all__ = ["ALPHANUMERIC", "BASE58", "HEX", "LOWER", "URL_SAFE", "Names"]

ALPHANUMERIC = digits + ascii_letters
BASE58 = "".join(letter for letter in digits[1:] + ascii_letters if letter not in "IlO")
URL_SAFE = ALPHANUMERIC + "-_"
LOWER = digits + ascii_lowercase
HEX = digits + "abcdef"


class Names:
    """Names of one reply: `of("call", 0)` is the same each time it is asked for, and like no other."""

    def __init__(self, *said: object) -> None:
        self._said = "|".join(map(str, said))

    def of(self, kind: str, index: int, length: int, alphabet: str = ALPHANUMERIC) -> str:
        written = ""
        block = 0
        while len(written) < length:
            digest = sha256(f"{self._said}|{kind}|{index}|{block}".encode()).digest()
            written += "".join(alphabet[byte % len(alphabet)] for byte in digest)
            block += 1
        return written[:length]

    def uuid(self, kind: str) -> str:
        text = self.of(kind, 0, 32, HEX)
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
