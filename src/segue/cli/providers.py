"""The providers that the commands can use: segue's catalogue with the changes and additions of the configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import msgspec

import segue
from segue.bridge import providers
from segue.bridge.addresses import is_local
from segue.bridge.providers import Endpoint, Provider
from segue.canonical.request import Usage
from segue.cli import config
from segue.errors import InputError
from segue.runtime import prices


class Providers:
    """The provider catalogue with the configuration applied."""

    def __init__(self, loaded: config.Config) -> None:
        self.config = loaded
        self._overrides = _provider_overrides(loaded)
        try:
            self.by_name: Mapping[str, Provider] = providers.catalogue(self._overrides)
        except InputError as error:
            raise loaded.locate_error(error) from None

    def endpoint(self, name: str, tool_format: str | None = None) -> Endpoint:
        """Return the endpoint of a model given as `provider/model`, as provider alone, or as model alone."""
        return self.with_tool_format(providers.resolve(name, os.environ, self._overrides), tool_format)

    def with_tool_format(self, endpoint: Endpoint, tool_format: str | None) -> Endpoint:
        """Return the endpoint with the tool format of the flag or `SEGUE_TOOL_FORMAT`."""
        chosen = tool_format or os.environ.get("SEGUE_TOOL_FORMAT")
        if not chosen:
            return endpoint
        if chosen != "auto" and chosen not in (names := [row.tool_format for row in segue.formats()]):
            known = ", ".join(dict.fromkeys(name for name in names if name))
            raise InputError(f"unknown tool format {chosen!r}; known formats: auto, {known}")
        return msgspec.structs.replace(endpoint, tool_format=chosen)

    def first_with_key(self) -> Endpoint | None:
        """Return the default model of the first provider whose key is set."""
        return providers.first_available(os.environ, self._overrides)

    def key_variable_of(self, provider: Provider) -> str | None:
        """Return the environment variable that holds the provider's key, if one is set."""
        variables = (*provider.keys, *provider.bearer)
        variable = next((name for name in variables if os.environ.get(name, "").strip()), None)
        if variable is None and provider.signed and all(map(os.environ.get, _SIGNING_VARIABLES)):
            return _SIGNING_VARIABLES[0]
        return variable

    @property
    def key_variables(self) -> tuple[str, ...]:
        """All variables that may hold a key; they are removed from the environment of tools."""
        return tuple(dict.fromkeys(name for row in self.by_name.values() for name in (*row.keys, *row.bearer)))

    def _is_local(self, provider: str, model: str) -> bool:
        try:
            return is_local(self.endpoint(f"{provider}/{model}").base_url)
        except InputError:
            return False

    def describe_assumed_api(self, provider: str) -> str | None:
        """Return a message if the configuration of a custom provider does not name its API."""
        configured = self.config.settings.providers.get(provider)
        row = self.by_name.get(provider)
        if configured is None or row is None or configured.api is not None or provider in providers.catalogue():
            return None
        return f"providers.{provider} has no api: {row.api} is assumed"

    def cost(self, provider: str, model: str, usage: Usage) -> float | None:
        """Return the cost in dollars; None where no price is known."""
        price = self.config.settings.prices.get(f"{provider}/{model}")
        if price is None:
            return prices.cost(usage, provider, model, self._overrides, local=self._is_local(provider, model))
        return price.cost(
            input=usage.input, output=usage.output, cache_read=usage.cache_read, cache_write=usage.cache_write
        )


_SIGNING_VARIABLES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


def load(*, trusting: bool = False) -> Providers:
    return Providers(config.load(trusting=trusting))


def _provider_overrides(loaded: config.Config) -> dict[str, Any]:
    """Return the user's provider tables, without new providers whose base URL an untrusted file may not set."""
    shipped = providers.catalogue()
    names = {alias for row in shipped.values() for alias in (row.name, *row.aliases)}
    ignored = loaded.untrusted_file.ignored if loaded.untrusted_file is not None else ()
    restricted = {path.split(".")[1] for path in ignored if path.startswith("providers.")}
    return {
        name: provider.to_dict()
        for name, provider in loaded.settings.providers.items()
        if name in names or provider.base_url is not None or name not in restricted
    }
