"""`ClientAuth`: which clients may use a gateway, by the keys that they send."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from segue.gateway.client_keys import ClientKey, hash_key
from segue.gateway.limits import Admission, Denied, Limits, ProcessLimits


class ClientAuth:
    """Admits clients by their keys. Without keys every client is admitted, which is for loopback only.

    A key that is revoked must not let everyone in: if the last one is removed, no client is admitted until there is
    another, or until the configuration is loaded again on loopback. With `always_needs_key`, no client is ever admitted
    without one. `limits` counts the uses of each client.
    """

    def __init__(
        self,
        keys: Sequence[ClientKey] = (),
        *,
        always_needs_key: bool = False,
        limits: Limits | None = None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._keys = tuple(keys)
        self._always_needs_key = always_needs_key
        self._needs_key = always_needs_key or bool(keys)
        self._limits = limits or ProcessLimits()
        self._wall_clock = wall_clock

    def replace(self, keys: Sequence[ClientKey], *, is_reload: bool = False) -> None:
        """Replace the keys; open requests continue. `is_reload`: the whole configuration is loaded again."""
        self._keys = tuple(keys)
        self._needs_key = self._always_needs_key or bool(keys) or (self._needs_key and not is_reload)

    @property
    def has_keys(self) -> bool:
        return bool(self._keys)

    @property
    def needs_key(self) -> bool:
        return self._needs_key

    def accepts(self, given: Sequence[str]) -> bool:
        """Return whether one of these keys is valid, or none is needed; limits are not checked."""
        if not self.needs_key:
            return True
        client, _ = self._find(given)
        return client is not None and not self._is_expired(client)

    def _is_expired(self, client: ClientKey) -> bool:
        return client.expires is not None and self._wall_clock() >= client.expires

    async def admit(self, given: Sequence[str]) -> tuple[Admission | Denied, str | None]:
        """Return the admission of a request, or why it is denied; and which of its keys is the client key."""
        if not self.needs_key:
            return Admission(""), None
        client, key = self._find(given)
        if client is None:
            return Denied(401, "a valid client key is needed; segue keys client add makes one"), None
        if self._is_expired(client):
            return Denied(401, f"the client key {client.name} has expired", client.name), key
        if not client.is_limited:
            return Admission(client.name), key
        return await self._limits.admit(client), key

    def allows_model(self, client: str, model: str | None) -> bool:
        """Return whether a client may use a model name; without a list of models it may use all."""
        patterns = self._find_named(client, "models")
        return not patterns or any(fnmatchcase(model or "", pattern) for pattern in patterns)

    def allows_route(self, client: str, route: str) -> bool:
        """Return whether a client may use a route; without a list of routes it may use all."""
        patterns = self._find_named(client, "routes")
        return not patterns or any(fnmatchcase(route, pattern) for pattern in patterns)

    def allows_passthrough(self, client: str, route: str) -> bool:
        """Return whether a client may use a route whose requests are not read: its models are not known."""
        has_routes = bool(self._find_named(client, "routes"))
        return self.allows_route(client, route) and (has_routes or not self._find_named(client, "models"))

    def _find_named(self, client: str, field: str) -> tuple[str, ...]:
        return next((getattr(key, field) for key in self._keys if key.name == client), ())

    def _find(self, given: Sequence[str]) -> tuple[ClientKey | None, str | None]:
        """Return the client of one of these keys, and the key. All hashes are compared, each in constant time."""
        matches = [
            (client, key)
            for key in given
            for client in self._keys
            if hmac.compare_digest(hash_key(key), client.hash) and key
        ]
        return matches[0] if matches else (None, None)
