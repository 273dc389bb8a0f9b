"""Loads `providers.toml`: base URLs, environment variables, aliases, and the API and profile of each provider.

Used by `segue.detect`, the wire registry and `segue.bridge.providers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

_SERVICES = "services"


@cache
def _load_tables() -> Mapping[str, Mapping[str, Any]]:
    # Imported here, because most conversions do not need them.
    import tomllib
    from importlib import resources

    return tomllib.loads(resources.files("segue.specs").joinpath("providers.toml").read_text("utf-8"))


@cache
def load_providers() -> Mapping[str, Mapping[str, Any]]:
    """Return all providers by name, in the order of the file."""
    return {name: row for name, row in _load_tables().items() if name != _SERVICES}


@cache
def providers_by_name() -> Mapping[str, Mapping[str, Any]]:
    """Return all providers by name and by alias."""
    rows = load_providers()
    return {alias: row for name, row in rows.items() for alias in (name, *row.get("aliases", ()))}


@cache
def load_services() -> Mapping[str, str]:
    """Return the services that serve models of several vendors, and the API of each."""
    return _load_tables()[_SERVICES]
