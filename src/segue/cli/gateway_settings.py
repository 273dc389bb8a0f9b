"""The `[gateway]` table of the configuration, and the client keys of `segue keys client`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from segue.cli import config, key_store
from segue.cli.settings import TableReader
from segue.cli.streams import BadInputError
from segue.gateway.client_keys import ClientKey
from segue.gateway.settings import GatewaySettings


def load_settings(*, trusting: bool = False) -> tuple[GatewaySettings, config.Config]:
    """Load the configuration, and its `[gateway]` table."""
    loaded = config.load(trusting=trusting)
    source = find_file(loaded)
    reader = TableReader(f"{source.path}: " if source else "")
    settings = reader.read(loaded.settings.gateway, GatewaySettings, "gateway")
    if settings.store is not None and source is not None:
        located = config.locate_store(settings.store, source.path, is_project=source.is_project)
        settings = msgspec.structs.replace(settings, store=located)
    return settings, loaded


def find_file(loaded: config.Config) -> config.ConfigFile | None:
    """Return the file whose `[gateway]` table is used."""
    return next((source for source in loaded.files if source.settings.gateway), None)


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
