"""`ClientAuth`: which clients may use a gateway, by the keys that they send."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

from msgspec.structs import replace

from segue.gateway.client_keys import ClientKey, GroupSettings, Scope, hash_key
from segue.gateway.limits import Admission, Denied, Limits, ProcessLimits


class ClientAuth:
    """Admits clients by their keys. Without keys every client is admitted, which is for clients of this machine only.

    A key that is revoked must not let everyone in: if the last one is removed, no client is admitted until there is
    another, or until the configuration is loaded again. With `always_needs_key`, no client is ever admitted without
    one; a reload may change it. `limits` counts the uses of each client.
    """

    def __init__(
        self,
        keys: Sequence[ClientKey] = (),
        *,
        always_needs_key: bool = False,
        limits: Limits | None = None,
        wall_clock: Callable[[], float] = time.time,
        groups: Mapping[str, GroupSettings] | None = None,
    ) -> None:
        self._keys = tuple(keys)
        self.groups: Mapping[str, GroupSettings] = groups or {}
        """The groups by name; a reload replaces them."""
        self.always_needs_key = always_needs_key
        self._needs_key = always_needs_key or bool(keys)
        self._limits = limits or ProcessLimits()
        self._wall_clock = wall_clock

    def replace(self, keys: Sequence[ClientKey], *, is_reload: bool = False) -> None:
        """Replace the keys; open requests continue. `is_reload`: the whole configuration is loaded again."""
        self._keys = tuple(keys)
        self._needs_key = self.always_needs_key or bool(keys) or (self._needs_key and not is_reload)

    @property
    def has_keys(self) -> bool:
        return bool(self._keys)

    @property
    def needs_key(self) -> bool:
        return self._needs_key

    def may_read_metrics(self, given: Sequence[str]) -> bool:
        """Return whether one of these keys may read the metrics, or no key is needed; limits are not checked."""
        if not self.needs_key:
            return True
        client, _ = self._find(given)
        return client is not None and client.metrics and not self._is_expired(client)

    def _is_expired(self, client: ClientKey) -> bool:
        return client.expires is not None and self._wall_clock() >= client.expires

    async def admit(self, given: Sequence[str], *, is_counted: bool = True) -> tuple[Admission | Denied, str | None]:
        """Return the admission of a request, or why it is denied; and which of its keys is the client key.

        The limits hold for requests that are counted.
        """
        if not self.needs_key:
            return Admission(""), None
        client, key = self._find(given)
        if client is None:
            return Denied(401, "a valid client key is needed; segue keys client add makes one"), None
        denial = self._find_denial(client)
        if denial is not None:
            return denial, key
        if not is_counted:
            return Admission(client.name, client.group), key
        admitted = await self._limits.admit(client.name, client.group, self._find_scopes(client))
        return replace(admitted, group=client.group) if isinstance(admitted, Denied) else admitted, key

    def _find_denial(self, client: ClientKey) -> Denied | None:
        if self._is_expired(client):
            return Denied(401, f"the client key {client.name} has expired", client.name)
        if client.group and client.group not in self.groups:
            message = f"the client key {client.name} is in the group {client.group}, which the gateway does not have"
            return Denied(403, message, client.name)
        return None

    def _find_scopes(self, client: ClientKey) -> list[Scope]:
        scopes = [Scope(client.name, client.name, client)]
        if client.group:
            scopes.append(Scope(f"group:{client.group}", f"the group {client.group}", self.groups[client.group]))
        return [scope for scope in scopes if scope.limits.has_rates or scope.limits.budgets]

    async def describe(self, given: Sequence[str]) -> Mapping[str, Any] | Denied:
        """Return what a client may use, its limits and its budgets; or why it is not known."""
        client, _ = self._find(given)
        if client is None:
            return Denied(401, "this shows the state of a client key, and needs one")
        denial = self._find_denial(client)
        if denial is not None:
            return denial
        scopes = self._find_scopes(client)
        limits = {scope.label: _describe_limits(scope) for scope in scopes if scope.limits.has_rates}
        expires = None if client.expires is None else datetime.fromtimestamp(client.expires, UTC).isoformat()
        return {
            "client": client.name,
            "group": client.group or None,
            "models": client.models or None,
            "routes": client.routes or None,
            "expires": expires,
            "limits": limits,
            "budgets": await self._limits.describe_budgets(scopes),
        }

    def has_budgets(self, client: str | None = None) -> bool:
        """Return whether a client has budgets, of its own or of its group; without a name, whether any client has."""
        keys = [key for key in self._keys if client is None or key.name == client]
        groups = [self.groups[key.group] for key in keys if key.group in self.groups]
        return any(limits.budgets for limits in (*keys, *groups))

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


def _describe_limits(scope: Scope) -> Mapping[str, int]:
    names = ("requests_per_minute", "tokens_per_minute", "concurrent")
    return {name: value for name in names if (value := getattr(scope.limits, name)) is not None}
