"""The settings of a transport: its models, the caller's dialect, and the bridge that both make."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from segue.bridge.api_paths import find_api_path
from segue.bridge.bridge import Bridge
from segue.bridge.entries import EntryMemory
from segue.bridge.envelope_keys import load_envelope_keys
from segue.bridge.envelopes import EnvelopeKeys
from segue.bridge.listings import ModelEntry
from segue.bridge.providers import Config, Endpoint, Environ, catalogue
from segue.bridge.relay import Relay
from segue.bridge.routes import Route, RouteQuery, Router
from segue.emulator.models import resolve
from segue.errors import InputError, require_string
from segue.render.constraints import Policy
from segue.wire.registry import WIRES, find_wire

_CHAT = "openai-chat"


class TransportSettings:
    """The models of a transport, the first preferred, and what its relays share.

    The arguments are those of `TransportOptions`.
    """

    def __init__(
        self,
        models: Sequence[str],
        *,
        providers: Config | None = None,
        environ: Environ | None = None,
        caller: str | None = None,
        policy: Policy | None = None,
        envelope_keys: EnvelopeKeys | Path | None = None,
        memory: EntryMemory | None = None,
        pass_through: bool = False,
    ) -> None:
        if not models:
            raise InputError("at least one model is needed, such as anthropic/claude-sonnet-5", path="models")
        variables = os.environ if environ is None else environ
        for model in models:
            require_string(model, "models")
        self.targets: tuple[Endpoint, ...] = tuple(resolve(model, variables, providers) for model in models)
        self.pass_through = pass_through
        self.memory = memory or EntryMemory()
        self._caller = None if caller is None else find_wire(caller, argument="caller").name
        self._policy = policy or Policy()
        self._hosts = _map_hosts(providers)
        # Entries of the memory belong to this transport, in-process conversations of others do not mix with them.
        self._client = secrets.token_hex(8)
        keys = envelope_keys if isinstance(envelope_keys, EnvelopeKeys) else load_envelope_keys(envelope_keys)
        self._bridge = Bridge(
            Router(self._find_route, self._list_models),
            keys=keys,
            now=lambda: datetime.now(UTC),
            random=secrets.token_bytes,
        )

    def open(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Relay | None:
        """Return the relay of a request; None if it is passed through."""
        parts = urlsplit(url)
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        if self.pass_through and find_api_path(method, path, headers) is None:
            return None
        return self._bridge.open(method, path, {**headers, "host": parts.hostname or ""}, body, client=self._client)

    def _find_route(self, query: RouteQuery) -> Route:
        caller = self._caller
        if caller is None and query.api_path.api == _CHAT:
            caller = self._hosts.get(query.headers.get("host", ""))
        elif caller is not None and WIRES[caller].base_api != query.api_path.api:
            caller = None
        return Route(
            "transport", self._order_targets(query.model), caller=caller, policy=self._policy, has_callers_keys=True
        )

    def _order_targets(self, model: str | None) -> tuple[Endpoint, ...]:
        """Return the targets with the one that the request names first; other model names change nothing."""
        return tuple(sorted(self.targets, key=lambda target: target.name != model))

    def _list_models(self, client: str) -> tuple[ModelEntry, ...]:
        return tuple(ModelEntry(target.name, target.provider, context=target.context) for target in self.targets)


def _map_hosts(providers: Config | None) -> dict[str, str]:
    """Return the Chat dialect that the clients of a host use."""
    hosts: dict[str, str] = {}
    # A configured base URL is that of the upstream; SDKs of the vendor still send to the vendor's own host.
    for provider in (*catalogue().values(), *catalogue(providers).values()):
        host = urlsplit(provider.base_url).hostname
        if host and WIRES[provider.api].base_api == _CHAT and provider.profile is None:
            hosts[host] = provider.api
    return hosts
