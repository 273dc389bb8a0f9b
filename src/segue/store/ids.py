"""The names of conversations: sortable by when they were made, and short enough to type the beginning of one."""

from __future__ import annotations

import re
import secrets

from segue.errors import InputError

__all__ = ["checked_id", "new_id"]

# Without i, l, o and u: nobody has to tell 1 from l, and no word comes out by accident.
_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
_SECOND = 1_000_000
_OURS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")


def new_id(now: int) -> str:
    """Seven characters of the second it was made in, good until the year 3058, and five by chance.

    Whoever makes less than one conversation a second tells them apart by seven characters.
    """
    second = now // _SECOND
    time = "".join(_DIGITS[(second >> shift) & 31] for shift in range(30, -1, -5))
    return time + "".join(secrets.choice(_DIGITS) for _ in range(5))


def checked_id(name: str) -> str:
    """A caller's own name for a conversation, if it is one that can be typed and told apart."""
    if not _OURS.match(name):
        raise InputError(
            f"{name!r} can't be the id of a conversation: 1 to 64 of A–Z, a–z, 0–9, `.`, `_` and `-` can, "
            "beginning with a letter or digit",
            path="id",
        )
    return name
