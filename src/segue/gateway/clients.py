"""Client keys: who may use a gateway, with which limits.

A key is stored as its SHA-256 hash. Limits are counted in this process; several workers count on their own.
"""

from __future__ import annotations

import hmac
import time
from collections import deque
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from hashlib import sha256
from types import TracebackType
from typing import Annotated

from msgspec import Meta, Struct

_MINUTE = 60.0


NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$"
"""The names of clients: they are written to logs."""
_HASH_PATTERN = "^[0-9a-f]{64}$"
_Limit = Annotated[int, Meta(ge=1)]


class ClientKey(Struct, frozen=True, forbid_unknown_fields=True):
    """A client key and its limits; None means no limit. `expires` is in seconds since 1970."""

    name: Annotated[str, Meta(pattern=NAME_PATTERN)]
    hash: Annotated[str, Meta(pattern=_HASH_PATTERN)]
    models: tuple[str, ...] = ()
    requests_per_minute: _Limit | None = None
    tokens_per_minute: _Limit | None = None
    concurrent: _Limit | None = None
    expires: float | None = None


def hash_key(key: str) -> str:
    return sha256(key.encode()).hexdigest()


class Denied(Struct, frozen=True):
    """Why a client is not admitted."""

    status: int
    message: str
    retry_after: float | None = None


class _Usage:
    """The requests and tokens of a client in the last minute, and its open requests."""

    def __init__(self) -> None:
        self.open = 0
        self.requests: deque[float] = deque()
        self.tokens: deque[tuple[float, int]] = deque()

    def forget_before(self, moment: float) -> None:
        while self.requests and self.requests[0] <= moment:
            self.requests.popleft()
        while self.tokens and self.tokens[0][0] <= moment:
            self.tokens.popleft()


class Admission:
    """One admitted request. As a context manager it counts as open until it ends."""

    def __init__(self, client: str, usage: _Usage, now: Callable[[], float]) -> None:
        self.client = client
        self._usage = usage
        self._now = now

    def add_tokens(self, number: int) -> None:
        self._usage.tokens.append((self._now(), number))

    def __enter__(self) -> Admission:
        self._usage.open += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._usage.open -= 1


class ClientGate:
    """Admits clients by their keys. Without keys every client is admitted, which is for loopback only.

    A gateway that had keys needs one as long as it runs: with the last key revoked, no client is admitted.
    """

    def __init__(
        self,
        keys: Sequence[ClientKey] = (),
        *,
        now: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._keys = tuple(keys)
        self._needs_key = bool(keys)
        self._now = now
        self._wall_clock = wall_clock
        self._usage: dict[str, _Usage] = {}

    def replace(self, keys: Sequence[ClientKey]) -> None:
        """Use other keys from now on; open requests go on."""
        self._keys = tuple(keys)
        self._needs_key = self._needs_key or bool(keys)

    def accepts(self, key: str | None) -> bool:
        """Return whether this key is valid, or none is needed. Limits do not count."""
        if not self._needs_key:
            return True
        client = self._find(key)
        return client is not None and not self._is_expired(client)

    def _is_expired(self, client: ClientKey) -> bool:
        return client.expires is not None and self._wall_clock() >= client.expires

    def admit(self, key: str | None) -> Admission | Denied:
        """Return the admission of a request with this key, or why it is denied."""
        if not self._needs_key:
            return Admission("", self._usage.setdefault("", _Usage()), self._now)
        client = self._find(key)
        if client is None:
            return Denied(401, "a valid client key is needed; segue keys client add makes one")
        if self._is_expired(client):
            return Denied(401, f"the client key {client.name} has expired")
        usage, now = self._usage.setdefault(client.name, _Usage()), self._now()
        usage.forget_before(now - _MINUTE)
        if client.concurrent is not None and usage.open >= client.concurrent:
            return Denied(429, f"{client.name} has {usage.open} requests open, the limit", 1.0)
        if client.requests_per_minute is not None and len(usage.requests) >= client.requests_per_minute:
            return Denied(429, f"{client.name} has reached its requests a minute", usage.requests[0] + _MINUTE - now)
        if client.tokens_per_minute is not None and sum(n for _, n in usage.tokens) >= client.tokens_per_minute:
            return Denied(429, f"{client.name} has reached its tokens a minute", usage.tokens[0][0] + _MINUTE - now)
        usage.requests.append(now)
        return Admission(client.name, usage, self._now)

    def allows(self, client: str, model: str | None) -> bool:
        """Return whether a client may use a model name; without a list of models it may use all."""
        patterns = next((key.models for key in self._keys if key.name == client), ())
        return not patterns or any(fnmatchcase(model or "", pattern) for pattern in patterns)

    def _find(self, key: str | None) -> ClientKey | None:
        """Return the client of a key. All hashes are compared, each in constant time."""
        given = hash_key(key or "")
        matches = [client for client in self._keys if hmac.compare_digest(given, client.hash)]
        return matches[0] if matches and key else None
