"""Conversation ids: sortable by creation time, and short enough to type a prefix."""

from __future__ import annotations

import re
import secrets

from segue.errors import InputError

# Crockford base32, without i, l, o and u: no confusion of 1 and l, and no accidental words.
_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
_SECOND = 1_000_000
_VALID_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")


def new_id(now: int) -> str:
    """Return seven characters for the second of creation (until the year 3058), then five random ones.

    A prefix of seven characters is unique unless two conversations are created in the same second.
    """
    second = now // _SECOND
    time = "".join(_DIGITS[(second >> shift) & 31] for shift in range(30, -1, -5))
    return time + "".join(secrets.choice(_DIGITS) for _ in range(5))


def validate_id(name: str) -> str:
    """Return an id given by the caller; `InputError` if it is not valid."""
    if not _VALID_ID.match(name):
        raise InputError(
            f"{name!r} is not a valid conversation id: use 1 to 64 of A–Z, a–z, 0–9, `.`, `_` and `-`, "
            "beginning with a letter or digit",
            path="id",
        )
    return name
