"""Configuration: flag > `SEGUE_*` variable > project file `.segue.toml` > user file > default.

The project file is the nearest one above the working directory and may come from someone else. Settings that could
run a program, allow a tool, send a key elsewhere or move the store are ignored until the user trusts that exact file;
its `store` can be a file but never a server. Lists in `[tools]` are merged: no file removes a deny rule of another.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

import click
from msgspec import Struct, json
from msgspec.structs import replace

from segue.cli import streams, trust_store
from segue.cli.settings import (
    McpServerSettings,
    ModelOptions,
    ProviderSettings,
    Settings,
    ToolSettings,
    from_variables,
    parse,
    read,
)
from segue.cli.streams import BadInputError
from segue.errors import InputError

T = TypeVar("T")
S = TypeVar("S", bound=Struct)
ConfirmTrust: TypeAlias = "Callable[[Path, Sequence[str]], bool]"
"""Asks the user whether to trust a file, given its restricted settings with their values."""

_PROJECT_FILE = ".segue.toml"
_USER_FILE = "config.toml"
_RESTRICTED_KEYS = ("base_url", "key_variable", "headers")


@dataclass(frozen=True)
class ConfigFile:
    """A configuration file, and its settings that are ignored because it is not trusted."""

    path: Path
    settings: Settings
    is_project: bool = False
    is_trusted: bool = True
    ignored: tuple[str, ...] = ()

    def describe_ignored(self) -> str:
        """Return a message with the settings that are ignored."""
        return f"{self.path} is not trusted; ignored settings: {', '.join(self.ignored)}; run segue trust to trust it"


@dataclass(frozen=True)
class Config:
    """The merged settings and the files they come from."""

    settings: Settings
    files: tuple[ConfigFile, ...] = ()

    def locate_error(self, error: InputError) -> BadInputError:
        """Return the error with the name of the file that contains the table."""
        table, _, rest = error.path.partition(".")
        name = rest.partition(".")[0]
        file = next((source.path for source in self.files if name in getattr(source.settings, table, ())), None)
        return BadInputError(f"{file}: {error}" if file else str(error))

    @property
    def untrusted_file(self) -> ConfigFile | None:
        """The file that has ignored settings."""
        return next((source for source in self.files if source.ignored), None)

    def model_source(self) -> str:
        """Return the variable or file that sets the model."""
        if from_variables(os.environ).model_names:
            return "SEGUE_MODEL"
        return next((str(source.path) for source in self.files if source.settings.model_names), "")


# ---------------------------------------------------------------------------------------------------------- loading


def load(*, trusting: bool = False, confirm: ConfirmTrust | None = None) -> Config:
    """Load and merge all settings.

    `trusting` trusts the project file for this run. `confirm` is called for an untrusted project file; if it returns
    True, the file is trusted from then on.
    """
    sources = load_files(trusting=trusting, confirm=confirm)
    layers = [from_variables(os.environ), *(source.settings for source in sources)]
    merged = layers[0]
    for lower in layers[1:]:
        merged = _merge_settings(merged, lower)
    if merged.strategy == "rules" and not merged.rules:
        raise BadInputError(f'strategy = "rules", but neither {_PROJECT_FILE} nor {user_file()} has [[rules]]')
    for source in sources:
        for table, names in (("prices", source.settings.prices), ("models", source.settings.model_tables)):
            unknown = next((name for name in names if "/" not in name and name not in merged.aliases), None)
            if unknown is not None:
                raise BadInputError(
                    f'{source.path}: {table}.{unknown}: expected a name such as "provider/model", or an alias'
                )
    return Config(merged, sources)


def choose_tool_format(flag: str | None, api: str) -> str:
    """Return the tool format for an API: flag, variable, then files."""
    chosen = flag or os.environ.get("SEGUE_TOOL_FORMAT")
    if chosen:
        return chosen
    for file, _ in _existing_files():
        provider = parse(file, read(file)).providers.get(api)
        if provider is not None and provider.tool_format is not None:
            return provider.tool_format
    return "auto"


def configured_store(files: Sequence[ConfigFile]) -> str | None:
    """Return the store location set in the files; `SEGUE_STORE` takes precedence and is not read here."""
    for file in files:
        if (location := file.settings.store) is not None:
            return locate_store(location, file.path, is_project=file.is_project)
    return None


def locate_store(location: str, file: Path, *, is_project: bool) -> str:
    """Return the location of a store that a file sets: a relative path begins at the folder of the file."""
    from segue.store import resolve_file

    try:
        path = resolve_file(location)
    except InputError as error:
        raise BadInputError(f"{file}: {error}") from None
    if path is None and is_project:
        raise BadInputError(f"{file}: store must be a file in a project file; set a server in your own {_USER_FILE}")
    return location if path is None else str(file.parent / Path(location).expanduser())


# ------------------------------------------------------------------------------------------------------------- files


def project_file() -> Path | None:
    """Return the nearest `.segue.toml` in or above the working directory."""
    if not streams.has_working_folder():
        return None
    here = Path.cwd()
    return next(
        (folder / _PROJECT_FILE for folder in (here, *here.parents) if (folder / _PROJECT_FILE).is_file()), None
    )


def user_file() -> Path:
    return Path(click.get_app_dir("segue")) / _USER_FILE


def _existing_files() -> Iterator[tuple[Path, bool]]:
    """Yield the files that exist, highest precedence first, each with whether it is the project file."""
    if project := project_file():
        yield project, True
    if (user := user_file()).is_file():
        yield user, False


def load_files(*, trusting: bool = False, confirm: ConfirmTrust | None = None) -> tuple[ConfigFile, ...]:
    """Load the files that exist, highest precedence first."""
    return tuple(load_file(file, trusting=trusting, confirm=confirm) for file, _ in _existing_files())


def load_file(file: Path, *, trusting: bool = False, confirm: ConfirmTrust | None = None) -> ConfigFile:
    """Load one file; restricted settings of an untrusted project file are validated, but left out."""
    project = file.name == _PROJECT_FILE
    data = read(file)
    settings = parse(file, data)
    restricted = _find_restricted(settings) if project else {}
    if not restricted or trusting or trust_store.is_trusted(file, data):
        return ConfigFile(file, settings, project)
    if confirm is not None and confirm(file, [f"{name} = {value}" for name, value in restricted.items()]):
        trust_store.add(file, data)
        return ConfigFile(file, settings, project)
    if settings.store is not None:
        locate_store(settings.store, file, is_project=project)
    return ConfigFile(file, _without_restricted(settings), project, is_trusted=False, ignored=tuple(restricted))


def restricted_settings(file: Path) -> tuple[dict[str, str], bytes]:
    """Return the settings of a project file that need trust, with their values, and the bytes they were read from."""
    data = read(file)
    return _find_restricted(parse(file, data)), data


def _find_restricted(settings: Settings) -> dict[str, str]:
    """Return the settings that an untrusted file may not set, each with its full value as JSON."""
    restricted: dict[str, object] = {} if settings.store is None else {"store": settings.store}
    restricted |= {"gateway": settings.gateway} if settings.gateway else {}
    restricted |= {
        f"tools.{key}": rules for key in ("allow", "env", "sandbox") if (rules := getattr(settings.tools, key))
    }
    restricted |= {f"mcp.{name}": _describe_server(server) for name, server in settings.mcp.items()}
    restricted |= {
        f"providers.{name}.{key}": value
        for name, provider in settings.providers.items()
        for key in _RESTRICTED_KEYS
        if (value := getattr(provider, key)) is not None
    }
    return {name: json.encode(value).decode() for name, value in restricted.items()}


def _describe_server(server: McpServerSettings) -> dict[str, object]:
    default = McpServerSettings()
    values = {
        name: getattr(server, name) for name in McpServerSettings.__struct_fields__ if name not in ("command", "args")
    }
    changed = {name: value for name, value in values.items() if value != getattr(default, name)}
    return {"command": server.program, **changed} if server.program else changed


def _without_restricted(settings: Settings) -> Settings:
    providers = {
        name: replace(provider, **dict.fromkeys(_RESTRICTED_KEYS)) for name, provider in settings.providers.items()
    }
    tools = replace(settings.tools, allow=(), env=(), sandbox=None)
    return replace(settings, store=None, tools=tools, mcp={}, providers=providers, gateway={})


# ----------------------------------------------------------------------------------------------------------- merging


def _merge_settings(upper: Settings, lower: Settings) -> Settings:
    """Merge two layers; `upper` takes precedence. A layer that sets a model does not inherit the lower one's route."""
    models = upper if upper.model_names else lower
    return Settings(
        model=models.model,
        models=models.models,
        model_tables={
            name: _merge_set(ModelOptions, upper.model_tables.get(name), lower.model_tables.get(name))
            for name in (*lower.model_tables, *upper.model_tables)
        },
        strategy=upper.strategy if upper.model_names else _first_set(upper.strategy, lower.strategy),
        store=_first_set(upper.store, lower.store),
        compress=_first_set(upper.compress, lower.compress),
        switch_cost_above=_first_set(upper.switch_cost_above, lower.switch_cost_above),
        rules=upper.rules or lower.rules,
        providers=_merge_providers(upper.providers, lower.providers),
        tools=_merge_tools(upper.tools, lower.tools),
        mcp={**lower.mcp, **upper.mcp},
        prices={**lower.prices, **upper.prices},
        aliases={**lower.aliases, **upper.aliases},
        gateway=upper.gateway or lower.gateway,
    )


def _merge_providers(
    upper: Mapping[str, ProviderSettings], lower: Mapping[str, ProviderSettings]
) -> dict[str, ProviderSettings]:
    """Merge by key, so that a project file that sets a tool format keeps the user's base URL."""
    merged = dict(lower)
    for name, provider in upper.items():
        merged[name] = _merge_set(ProviderSettings, provider, lower.get(name))
    return merged


def _merge_set(kind: type[S], upper: S | None, lower: S | None) -> S:
    """Merge two tables by key."""
    names = kind.__struct_fields__
    return kind(**{name: _first_set(getattr(upper, name, None), getattr(lower, name, None)) for name in names})


def _merge_tools(upper: ToolSettings, lower: ToolSettings) -> ToolSettings:
    if upper.only is not None and lower.only is not None:
        only = tuple(name for name in upper.only if name in lower.only)
    else:
        only = _first_set(upper.only, lower.only)
    return ToolSettings(
        allow=_merge_lists(upper.allow, lower.allow),
        ask=_merge_lists(upper.ask, lower.ask),
        deny=_merge_lists(upper.deny, lower.deny),
        env=_merge_lists(upper.env, lower.env),
        only=only,
        timeout=_first_set(upper.timeout, lower.timeout),
        parallel=_first_set(upper.parallel, lower.parallel),
        max_declared=_first_set(upper.max_declared, lower.max_declared),
        sandbox=_first_set(upper.sandbox, lower.sandbox),
        first_lines=_first_set(upper.first_lines, lower.first_lines),
        last_lines=_first_set(upper.last_lines, lower.last_lines),
    )


def _first_set(upper: T | None, lower: T | None) -> T | None:
    return upper if upper is not None else lower


def _merge_lists(upper: Sequence[str], lower: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*upper, *lower)))
