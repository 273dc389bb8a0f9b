"""The providers that the commands can use: segue's catalogue with the changes and additions of the configuration."""

from __future__ import annotations

import os
from collections import ChainMap
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec

import segue
from segue._switch_cost import SHOWN_ABOVE
from segue.bridge import providers
from segue.bridge.addresses import is_local
from segue.bridge.providers import Endpoint, Provider
from segue.canonical.request import Options, Usage
from segue.cli import config, key_store
from segue.cli.request_options import parse_options
from segue.cli.settings import ModelOptions, Price
from segue.emulator.models import PROVIDER as EMULATED
from segue.emulator.models import resolve
from segue.errors import InputError
from segue.runtime import prices
from segue.specs.prices import Tiers, find_prices


class Providers:
    """The provider catalogue with the configuration applied."""

    def __init__(self, loaded: config.Config) -> None:
        self.config = loaded
        self._overrides = _provider_overrides(loaded)
        self._local: dict[str, bool] = {}
        try:
            self.by_name: Mapping[str, Provider] = providers.catalogue(self._overrides)
        except InputError as error:
            raise loaded.locate_error(error) from None
        self.by_name = {name: self._with_sizes(row) for name, row in self.by_name.items()}

    @cached_property
    def stored_keys(self) -> key_store.StoredKeys:
        return key_store.load()

    @cached_property
    def environ(self) -> Mapping[str, str]:
        """The environment, with the stored keys where a variable is not set."""
        return ChainMap(os.environ, self.stored_keys)  # pyright: ignore[reportArgumentType]  it is only read

    def endpoint(self, name: str, tool_format: str | None = None) -> Endpoint:
        """Return the endpoint of an alias, or of a model given as `provider/model`, as provider or model alone."""
        endpoint = resolve(self.expand_alias(name), self.environ, self._overrides)
        return self.with_settings(endpoint, tool_format)

    def expand_alias(self, name: str) -> str:
        """Return the model that a configured alias stands for; any other name is returned unchanged."""
        return self.config.settings.aliases.get(name, name)

    def lacks_default(self, name: str) -> Provider | None:
        """Return the provider of this name if it has no default model: the one that its server has is used."""
        name = self.expand_alias(name).strip().lower()
        row = self.find_provider(name)
        return row if row is not None and not row.default else None

    def find_provider(self, name: str) -> Provider | None:
        """Return the provider with this name or alias."""
        name = name.lower()
        return self.by_name.get(name) or next((row for row in self.by_name.values() if name in row.aliases), None)

    def with_settings(self, endpoint: Endpoint, tool_format: str | None = None) -> Endpoint:
        """Return the endpoint with the configured sizes and options of its model, and with its tool format."""
        table = self._model_tables.get(endpoint.name) or self._model_tables.get(endpoint.model) or ModelOptions()
        provider = self._provider_options.get(endpoint.provider, Options())
        options = provider.merge(parse_options(table.values))
        changes: dict[str, Any] = {} if options == Options() else {"options": options}
        changes |= {"context": table.context} if table.context is not None else {}
        changes |= {"max_output": table.max_output} if table.max_output is not None else {}
        return self._with_tool_format(msgspec.structs.replace(endpoint, **changes), tool_format)

    @cached_property
    def _model_tables(self) -> Mapping[str, ModelOptions]:
        return {self._normalize(name): table for name, table in self.config.settings.model_tables.items()}

    def _with_sizes(self, row: Provider) -> Provider:
        """Return the provider with the configured sizes of its models."""
        models = dict(row.models)
        for name, model in row.models.items():
            if (table := self._model_tables.get(f"{row.name}/{name}")) is not None:
                sizes = {key: size for key in _SIZES if (size := getattr(table, key)) is not None}
                models[name] = msgspec.structs.replace(model, **sizes)
        return msgspec.structs.replace(row, models=models)

    @cached_property
    def _prices(self) -> Mapping[str, Price]:
        return {self._normalize(name): price for name, price in self.config.settings.prices.items()}

    @property
    def switch_cost_above(self) -> int:
        """From how many tokens on the price of a switch is shown."""
        above = self.config.settings.switch_cost_above
        return SHOWN_ABOVE if above is None else above

    @cached_property
    def _provider_options(self) -> Mapping[str, Options]:
        """The options of each provider, by its name in the catalogue."""
        tables = self.config.settings.providers.items()
        rows = ((self.find_provider(name), table) for name, table in tables)
        return {row.name: parse_options(table.values) for row, table in rows if row is not None}

    def _normalize(self, name: str) -> str:
        """Return `provider/model` with the provider's name in the catalogue."""
        first, slash, model = self.expand_alias(name).partition("/")
        row = self.find_provider(first) if slash else None
        return f"{row.name}/{model}" if row is not None else name

    def _with_tool_format(self, endpoint: Endpoint, tool_format: str | None) -> Endpoint:
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
        return providers.first_available(self.environ, self._overrides)

    def key_variable_of(self, provider: Provider) -> str | None:
        """Return the environment variable that holds the provider's key, or that a stored key stands for."""
        variables = (*provider.keys, *provider.bearer)
        variable = next((name for name in variables if self.environ.get(name, "").strip()), None)
        if variable is None and provider.signed and all(map(os.environ.get, _SIGNING_VARIABLES)):
            return _SIGNING_VARIABLES[0]
        return variable

    def is_stored(self, variable: str) -> bool:
        """Return whether the key of this variable is a stored one."""
        return variable not in os.environ and variable in self.stored_keys

    @property
    def key_variables(self) -> tuple[str, ...]:
        """All variables that may hold a key; they are removed from the environment of tools."""
        return tuple(dict.fromkeys(name for row in self.by_name.values() for name in (*row.keys, *row.bearer)))

    def _is_local(self, provider: str, model: str) -> bool:
        try:
            return is_local(self.endpoint(f"{provider}/{model}").base_url)
        except InputError:
            return False

    def cost(self, provider: str, model: str, usage: Usage) -> float | None:
        """Return the cost in dollars; None where no price is known."""
        if provider == EMULATED:
            return 0.0
        tiers = self.find_tiers(provider, model)
        return None if tiers is None else find_prices(tiers, usage.input).cost(usage)

    def find_tiers(self, provider: str, model: str) -> Tiers | None:
        """Return the prices of a model, as configured or else the public ones; None where none is known."""
        name = f"{provider}/{model}"
        if (price := self._prices.get(name)) is not None:
            return ((0, price.prices),)
        if (is_at_home := self._local.get(name)) is None:
            is_at_home = self._local[name] = self._is_local(provider, model)
        return prices.find_tiers(provider, model, self.by_name.get(provider), local=is_at_home)


_SIZES = ("context", "max_output")
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
