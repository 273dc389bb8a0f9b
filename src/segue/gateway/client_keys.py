"""Client keys: the names, hashes and limits of the clients of a gateway. A key itself is never stored."""

from __future__ import annotations

from hashlib import sha256
from typing import Annotated

from msgspec import Meta, Struct

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$"
"""The names of clients: they are written to logs."""
_HASH_PATTERN = "^[0-9a-f]{64}$"
_Limit = Annotated[int, Meta(ge=1)]


class ClientKey(Struct, frozen=True, forbid_unknown_fields=True):
    """A client key and its limits; None means no limit. `expires` is in seconds since 1970.

    `models` are patterns of the model names that the client may send, `routes` of the names of routes that it may use;
    empty: all.
    """

    name: Annotated[str, Meta(pattern=NAME_PATTERN)]
    hash: Annotated[str, Meta(pattern=_HASH_PATTERN)]
    models: tuple[str, ...] = ()
    requests_per_minute: _Limit | None = None
    tokens_per_minute: _Limit | None = None
    concurrent: _Limit | None = None
    expires: float | None = None
    routes: tuple[str, ...] = ()

    @property
    def is_limited(self) -> bool:
        """Whether the uses of this key have to be counted."""
        limits = (self.requests_per_minute, self.tokens_per_minute, self.concurrent)
        return any(limit is not None for limit in limits)


def hash_key(key: str) -> str:
    return sha256(key.encode()).hexdigest()
