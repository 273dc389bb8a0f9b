"""The `[gateway]` table of the configuration, and the client keys of `segue keys client`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from segue.bridge.failover import FIRST_BYTE
from segue.cli import config, key_store
from segue.cli.streams import BadInputError
from segue.gateway.client_keys import ClientKey
from segue.gateway.raw_routes import RawRouteSettings
from segue.gateway.routes import RouteSettings

_LOCATION = re.compile(r" - at `\$\.?(?P<path>[^`]*)`")


class GatewayTable(Struct, frozen=True, forbid_unknown_fields=True):
    """The `[gateway]` table. `hosts` are names besides loopback that the gateway is reached by."""

    host: str | None = None
    port: Annotated[int, Meta(ge=0, le=65535)] | None = None
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    certificate: str | None = None
    private_key: str | None = None
    behind_proxy: bool = False
    timeout: Annotated[float, Meta(gt=0)] = 600.0
    first_byte: Annotated[float, Meta(gt=0)] = FIRST_BYTE
    usage: str | None = None
    memory_megabytes: Annotated[int, Meta(ge=1)] = 512
    pending_megabytes: Annotated[int, Meta(ge=1)] = 256
    large_megabytes: Annotated[int, Meta(ge=0)] = 2
    max_messages: Annotated[int, Meta(ge=1)] = 100_000
    max_calls: Annotated[int, Meta(ge=1)] = 100_000
    store: str | None = None
    store_megabytes: Annotated[int, Meta(ge=1)] = 1024
    store_days: Annotated[float, Meta(gt=0)] = 30
    workers: Annotated[int, Meta(ge=1, le=64)] = 1
    routes: tuple[RouteSettings, ...] = ()
    raw: tuple[RawRouteSettings, ...] = ()


def parse_table(values: Mapping[str, Any]) -> GatewayTable:
    """Validate the table; an error names the setting."""
    try:
        return msgspec.convert(dict(values), GatewayTable)
    except msgspec.ValidationError as error:
        text = str(error)
        location = _LOCATION.search(text)
        path = f"gateway.{location['path']}" if location is not None and location["path"] else "gateway"
        message = _LOCATION.sub("", text)
        raise BadInputError(f"{path}: {message[:1].lower()}{message[1:]}") from None


def load_table(*, trusting: bool = False) -> tuple[GatewayTable, config.Config]:
    """Load the configuration, and its `[gateway]` table."""
    loaded = config.load(trusting=trusting)
    source = next((source for source in loaded.files if source.settings.gateway), None)
    try:
        table = parse_table(loaded.settings.gateway)
    except BadInputError as error:
        raise BadInputError(f"{source.path}: {error.message}" if source else error.message) from None
    if table.store is not None and source is not None:
        located = config.locate_store(table.store, source.path, is_project=source.is_project)
        table = msgspec.structs.replace(table, store=located)
    return table, loaded


# --------------------------------------------------------------------------------------------------------- client keys


def client_key_file() -> Path:
    return config.user_file().with_name("client-keys.json")


def load_client_keys(file: Path | None = None) -> tuple[ClientKey, ...]:
    """Return the client keys; none if the file does not exist."""
    file = file or client_key_file()
    data = key_store.read_file(file)
    if data is None:
        return ()
    try:
        keys = tuple(msgspec.json.decode(data, type=list[ClientKey]))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadInputError(f"{file} is damaged: {error}") from None
    if len({key.name for key in keys}) < len(keys):
        raise BadInputError(f"{file} is damaged: two keys have the same name")
    return keys


def save_client_keys(keys: Sequence[ClientKey], file: Path | None = None) -> None:
    """Write the client keys: atomically, and readable by their owner only."""
    key_store.write_file(file or client_key_file(), list(keys))
