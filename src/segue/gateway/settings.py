"""The settings of a gateway: the `[gateway]` table, the routes that a reload replaces, and what else it is given."""

from __future__ import annotations

import os
import re
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import IO, Annotated, TypeAlias

from msgspec import Meta, Struct

from segue._switch_cost import SHOWN_ABOVE
from segue.bridge.addresses import is_local
from segue.bridge.compaction import DEFAULT_LIMIT
from segue.bridge.envelopes import EnvelopeKeys
from segue.bridge.failover import FIRST_BYTE
from segue.bridge.providers import Endpoint
from segue.errors import InputError
from segue.gateway.client_keys import NAME_PATTERN, ClientKey, GroupSettings
from segue.gateway.hooks import HookSettings
from segue.gateway.host_check import bracket, check_names, find_host_error
from segue.gateway.passthrough_routes import PassthroughSettings
from segue.gateway.routes import RouteSettings
from segue.gateway.spending import CostLookup
from segue.http_server import HttpLimits
from segue.private_files import read_private

_MB = 2**20
AT_START = frozenset(
    {"host", "port", "certificate", "private_key", "behind_proxy", "usage", "workers", "memory_mb", "pending_mb"}
    | {"large_mb", "store", "store_mb", "store_days"}
)
"""The settings that a reload does not change."""
Megabytes: TypeAlias = Annotated[float, Meta(gt=0)]
Count: TypeAlias = Annotated[int, Meta(ge=1)]
Seconds: TypeAlias = Annotated[float, Meta(gt=0)]


class GatewaySettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The `[gateway]` table of the configuration.

    `allowed_hosts` and `allowed_origins` are those of `HostCheck`. `behind_proxy`: a proxy with TLS is in front,
    where the address is not loopback. `store` is the file or `postgresql://` URL of the entries; without it they are in
    memory, up to half of `memory_mb`; a third is for conversations that were converted. `pending_mb` is the size
    of all bodies that are not converted yet; one of more than `large_mb` is converted in a thread. `timeout` is the
    longest silence of a provider in seconds, `first_byte` that before a streamed response begins, where another target
    is free. `unknown_price` is in dollars per million tokens; without it, clients with budgets can't use models whose
    price is not known. `budget_webhook` gets a message when 80 % of a budget are spent.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 8787
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    certificate: str | None = None
    private_key: str | None = None
    behind_proxy: bool = False
    timeout: Seconds = 600.0
    first_byte: Seconds = FIRST_BYTE
    usage: str | None = None
    memory_mb: Megabytes = 512
    pending_mb: Megabytes = 256
    large_mb: Annotated[float, Meta(ge=0)] = 2
    max_messages: Count = 100_000
    max_calls: Count = 100_000
    store: str | None = None
    store_mb: Megabytes = 1024
    store_days: Annotated[float, Meta(gt=0)] = 30
    compaction_memory: bool = True
    compaction_mb: Megabytes = DEFAULT_LIMIT // _MB
    workers: Annotated[int, Meta(ge=1, le=64)] = 1
    routes: tuple[RouteSettings, ...] = ()
    passthrough: tuple[PassthroughSettings, ...] = ()
    hooks: tuple[HookSettings, ...] = ()
    groups: Mapping[str, GroupSettings] = {}
    unknown_price: Annotated[float, Meta(ge=0)] | None = None
    budget_webhook: str | None = None

    @property
    def is_loopback(self) -> bool:
        """Whether the address to listen on is reached from this machine only."""
        try:
            return self.host == "localhost" or ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def needs_client_keys(self) -> str | None:
        """The setting that lets in clients from other machines, each of which needs a key; None if there is none."""
        if not self.is_loopback:
            return "host"
        if self.behind_proxy:
            return "gateway.behind_proxy"
        foreign = (index for index, host in enumerate(self.allowed_hosts) if not is_local(f"http://{bracket(host)}"))
        return next((f"gateway.allowed_hosts[{index}]" for index in foreign), None)

    @property
    def entries_size(self) -> int:
        """The bytes of all entries that are kept in memory."""
        return int(self.memory_mb * _MB) // 2

    @property
    def conversations_size(self) -> int:
        """The bytes of all conversations that were converted and may be continued."""
        return int(self.memory_mb * _MB) // 3

    @property
    def store_size(self) -> int:
        return int(self.store_mb * _MB)

    @property
    def compaction_size(self) -> int:
        """The bytes that the messages before compactions may take, each compressed; 0: none are remembered."""
        return int(self.compaction_mb * _MB) if self.compaction_memory else 0

    @property
    def pending_size(self) -> int:
        return int(self.pending_mb * _MB)

    @property
    def large_size(self) -> int:
        return int(self.large_mb * _MB)

    @property
    def usage_file(self) -> Path | None:
        return Path(self.usage).expanduser() if self.usage else None

    @property
    def certificate_file(self) -> Path | None:
        return _find_file(self.certificate, "certificate")

    @property
    def private_key_file(self) -> Path | None:
        return _find_file(self.private_key, "private_key")

    def validate(self, clients: Sequence[ClientKey], *, is_emulated: bool = False) -> None:
        """Raise `InputError` for settings that would admit clients from outside without a key, or lose reasoning."""
        if (not self.host.strip() or {*self.host} & {*"*/:"}) and (problem := find_host_error(self.host)) is not None:
            raise InputError(f"{problem}; 0.0.0.0 stands for all addresses of this machine", path="host")
        check_names(self.allowed_hosts, self.allowed_origins)
        if self.workers > 1 and os.name != "posix":
            raise InputError("more than one worker needs a POSIX system", path="workers")
        if self.workers > 1 and self.store is None:
            raise InputError(
                "more than one worker needs a store: the reasoning of a reply to a Chat Completions client is kept "
                "there, and its next request may reach another worker; set --store FILE",
                path="workers",
            )
        limited = [f"the client key {key.name}" for key in clients if key.budgets]
        limited += [f"the group {name}" for name, group in self.groups.items() if group.budgets]
        if limited and self.store is None:
            raise InputError(f"{limited[0]} has a budget, which needs a store: set --store FILE", path="store")
        for name in self.groups:
            if re.fullmatch(NAME_PATTERN, name) is None:
                raise InputError(
                    f"{name!r} can't be the name of a group: use letters, digits and . _ @ -", path="groups"
                )
        if self.budget_webhook is not None and not self.budget_webhook.startswith(("http://", "https://")):
            raise InputError(f"{self.budget_webhook!r} is not a URL", path="gateway.budget_webhook")
        if is_emulated and not self.is_loopback:
            raise InputError("emulated models are served on loopback only", path="host")
        if not clients and (setting := self.needs_client_keys) is not None:
            raise InputError(
                "clients of other machines need client keys: make one with segue keys client add NAME", path=setting
            )
        if self.is_loopback:
            return
        if self.certificate is None and not self.behind_proxy:
            raise InputError(
                "an address other than loopback needs TLS: set certificate and private_key, or behind_proxy = true",
                path="host",
            )

    def check_certificate(self, warn: Callable[[str], None]) -> None:
        """Raise `InputError` if TLS can't be set up. An encrypted key is refused: a server can't ask for a password."""
        certificate, private_key = self.certificate_file, self.private_key_file
        if certificate is None:
            return
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, private_key, password=lambda: "")
        except (OSError, ValueError) as error:
            reason = "they do not match" if "MISMATCH" in str(error) else "a certificate and its key in PEM are needed"
            raise InputError(f"TLS can't be set up with {certificate}: {reason}", path="gateway.certificate") from None
        read_private(private_key or certificate, warn)


def _find_file(name: str | None, setting: str) -> Path | None:
    if name is None:
        return None
    file = Path(name).expanduser()
    if not file.is_file():
        raise InputError(f"{file} is not a file", path=f"gateway.{setting}")
    return file


class GatewayRoutes(Struct, frozen=True):
    """What a reload replaces. `settings` are those of the configuration now; None: those of the start stay in use."""

    routes: tuple[RouteSettings, ...] = ()
    default: tuple[str, ...] = ()
    prefers_default: bool = False
    aliases: Mapping[str, str] = {}
    clients: tuple[ClientKey, ...] = ()
    passthrough: tuple[PassthroughSettings, ...] = ()
    groups: Mapping[str, GroupSettings] = {}
    settings: GatewaySettings | None = None
    buffer_tool_calls: bool = False
    cost: CostLookup = lambda _provider, _model, _usage: None
    switch_cost_above: int = SHOWN_ABOVE
    resolve: Callable[[str], Endpoint] | None = None
    """Returns the endpoint of a model name, where providers were loaded again; None: that of the gateway."""


class GatewayContext(Struct, frozen=True):
    """What a gateway needs besides its settings.

    `resolve` returns the endpoint of a model name, `load_routes` the routes of the configuration. When `client_file`,
    the file with the client keys, changes, `load_clients` loads them, even if the routes are not valid. `clock` is that
    of the pauses of targets, the same in all workers.
    """

    resolve: Callable[[str], Endpoint]
    load_routes: Callable[[], GatewayRoutes]
    keys: EnvelopeKeys
    client_file: Path | None = None
    load_clients: Callable[[], Sequence[ClientKey]] = tuple
    log_json: bool = False
    log_output: IO[str] | None = None
    body_file: Path | None = None
    is_emulated: bool = False
    connections: HttpLimits = HttpLimits()
    clock: Callable[[], float] = time.time
