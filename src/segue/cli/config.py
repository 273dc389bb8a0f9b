"""Configuration: flag > `SEGUE_*` variable > project file `.segue.toml` > user file > default.

The project file is the nearest one above the working directory and may come from someone else. Settings that could
run a program, allow a tool, send a key elsewhere or move the store are ignored until the user trusts that exact file;
its `store` can be a file but never a server. Lists in `[tools]` are merged, so that no file removes another's denials.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

import click
from msgspec import json
from msgspec.structs import replace

from segue.cli import streams, trusted
from segue.cli.settings import Mcp, Provider, Settings, Tools, from_variables, parsed, read
from segue.cli.streams import Unreadable
from segue.errors import InputError

__all__ = [
    "Config",
    "Source",
    "distrusted_store",
    "load",
    "project_file",
    "source",
    "store",
    "tool_format",
    "user_file",
    "wanted",
]

T = TypeVar("T")
Ask: TypeAlias = "Callable[[Path, Sequence[str]], bool]"
"""Asks the user whether to trust a file, given its restricted settings with their values."""

_PROJECT = ".segue.toml"
_USER = "config.toml"
_WITHHELD = ("base_url", "key_variable", "headers")


@dataclass(frozen=True)
class Source:
    """A configuration file, and its settings that are ignored because it is not trusted."""

    path: Path
    settings: Settings
    project: bool = False
    trusted: bool = True
    withheld: tuple[str, ...] = ()


@dataclass(frozen=True)
class Config:
    """The merged settings and the files they come from."""

    settings: Settings
    sources: tuple[Source, ...] = ()

    def blamed(self, error: InputError) -> Unreadable:
        """The error with the name of the file that contains the table."""
        table, _, rest = error.path.partition(".")
        name = rest.partition(".")[0]
        file = next((it.path for it in self.sources if name in getattr(it.settings, table, ())), None)
        return Unreadable(f"{file}: {error}" if file else str(error))

    @property
    def untrusted(self) -> Source | None:
        """The file that has ignored settings."""
        return next((source for source in self.sources if source.withheld), None)

    def chosen_by(self) -> str:
        """The variable or file that sets the model."""
        if from_variables(os.environ).chosen:
            return "SEGUE_MODEL"
        return next((str(source.path) for source in self.sources if source.settings.chosen), "")


# ---------------------------------------------------------------------------------------------------------- loading


def load(*, trusting: bool = False, ask: Ask | None = None) -> Config:
    """Load and merge all settings. `trusting` trusts the project file for this run; `confirm` asks and stores it."""
    sources = tuple(source(file, trusting=trusting, ask=ask) for file, _ in _places())
    layers = [from_variables(os.environ), *(each.settings for each in sources)]
    merged = layers[0]
    for lower in layers[1:]:
        merged = _over(merged, lower)
    if merged.route == "rules" and not merged.rules:
        raise Unreadable(f'route = "rules", but neither {_PROJECT} nor {user_file()} has [[rules]]')
    return Config(merged, sources)


def tool_format(flag: str | None, api: str) -> str:
    """The tool format for an API: flag, variable, then files."""
    chosen = flag or os.environ.get("SEGUE_TOOL_FORMAT")
    if chosen:
        return chosen
    for file, _ in _places():
        provider = parsed(file, read(file)).providers.get(api)
        if provider is not None and provider.tool_format is not None:
            return provider.tool_format
    return "auto"


def store(*, trusting: bool = False) -> str | None:
    """The store location set in the files; `SEGUE_STORE` takes precedence and is not read here.

    The project file's setting is validated even where it is ignored because the file is not trusted.
    """
    from segue.errors import InputError
    from segue.store import file_of

    for file, project in _places():
        data = read(file)
        location = parsed(file, data).store
        if location is None:
            continue
        try:
            path = file_of(location)
        except InputError as error:
            raise Unreadable(f"{file}: {error}") from None
        if path is None and project:
            raise Unreadable(f"{file}: store must be a file in a project file; set a server in your own {_USER}")
        if project and not trusting and not trusted.is_trusted(file, data):
            continue
        return location if path is None else str(file.parent / Path(location).expanduser())
    return None


def distrusted_store() -> Path | None:
    """The untrusted project file whose `store` setting is ignored, if any."""
    file = project_file()
    if file is None:
        return None
    data = read(file)
    return file if parsed(file, data).store is not None and not trusted.is_trusted(file, data) else None


# ------------------------------------------------------------------------------------------------------------- files


def project_file() -> Path | None:
    """The nearest `.segue.toml` in or above the working directory."""
    if not streams.in_a_folder():
        return None
    here = Path.cwd()
    return next((folder / _PROJECT for folder in (here, *here.parents) if (folder / _PROJECT).is_file()), None)


def user_file() -> Path:
    return Path(click.get_app_dir("segue")) / _USER


def _places() -> Iterator[tuple[Path, bool]]:
    """The files that exist, highest precedence first, each with whether it is the project file."""
    if project := project_file():
        yield project, True
    if (user := user_file()).is_file():
        yield user, False


def source(file: Path, *, trusting: bool = False, ask: Ask | None = None) -> Source:
    """Load one file without its ignored settings."""
    project = file.name == _PROJECT
    data = read(file)
    settings = parsed(file, data)
    restricted = _wants(settings) if project else {}
    if not restricted or trusting or trusted.is_trusted(file, data):
        return Source(file, settings, project)
    if ask is not None and ask(file, [f"{name} = {value}" for name, value in restricted.items()]):
        trusted.remember(file, data)
        return Source(file, settings, project)
    return Source(file, _harmless(settings), project, trusted=False, withheld=tuple(restricted))


def wanted(file: Path) -> tuple[dict[str, str], bytes]:
    """The settings of a project file that need trust, with their values, and the bytes they were read from."""
    data = read(file)
    return _wants(parsed(file, data)), data


def _wants(settings: Settings) -> dict[str, str]:
    """Settings that an untrusted file may not set, each with its full value as JSON."""
    restricted: dict[str, object] = {} if settings.store is None else {"store": settings.store}
    restricted |= {f"tools.{key}": rules for key in ("allow", "env") if (rules := getattr(settings.tools, key))}
    restricted |= {f"mcp.{name}": _server(server) for name, server in settings.mcp.items()}
    restricted |= {
        f"providers.{name}.{key}": value
        for name, provider in settings.providers.items()
        for key in _WITHHELD
        if (value := getattr(provider, key)) is not None
    }
    return {name: json.encode(value).decode() for name, value in restricted.items()}


def _server(server: Mcp) -> dict[str, object]:
    default = Mcp()
    values = {name: getattr(server, name) for name in Mcp.__struct_fields__ if name not in ("command", "args")}
    changed = {name: value for name, value in values.items() if value != getattr(default, name)}
    return {"command": server.program, **changed} if server.program else changed


def _harmless(settings: Settings) -> Settings:
    providers = {name: replace(provider, **dict.fromkeys(_WITHHELD)) for name, provider in settings.providers.items()}
    tools = replace(settings.tools, allow=(), env=())
    return replace(settings, store=None, tools=tools, mcp={}, providers=providers)


# ----------------------------------------------------------------------------------------------------------- merging


def _over(upper: Settings, lower: Settings) -> Settings:
    """Merge two layers; `upper` takes precedence. A layer that sets a model does not inherit the lower one's route."""
    models = upper if upper.chosen else lower
    return Settings(
        model=models.model,
        models=models.models,
        route=upper.route if upper.chosen else _first(upper.route, lower.route),
        store=_first(upper.store, lower.store),
        compress=_first(upper.compress, lower.compress),
        rules=upper.rules or lower.rules,
        providers=_providers(upper.providers, lower.providers),
        tools=_tools(upper.tools, lower.tools),
        mcp={**lower.mcp, **upper.mcp},
        prices={**lower.prices, **upper.prices},
    )


def _providers(upper: Mapping[str, Provider], lower: Mapping[str, Provider]) -> dict[str, Provider]:
    """Merge by key, so that a project file that sets a tool format keeps the user's base URL."""
    merged = dict(lower)
    for name, provider in upper.items():
        below = lower.get(name, Provider())
        values = {key: _first(getattr(provider, key), getattr(below, key)) for key in Provider.__struct_fields__}
        merged[name] = Provider(**values)
    return merged


def _tools(upper: Tools, lower: Tools) -> Tools:
    if upper.only is not None and lower.only is not None:
        only = tuple(name for name in upper.only if name in lower.only)
    else:
        only = _first(upper.only, lower.only)
    return Tools(
        allow=_both(upper.allow, lower.allow),
        ask=_both(upper.ask, lower.ask),
        deny=_both(upper.deny, lower.deny),
        env=_both(upper.env, lower.env),
        only=only,
        timeout=_first(upper.timeout, lower.timeout),
        parallel=_first(upper.parallel, lower.parallel),
    )


def _first(upper: T | None, lower: T | None) -> T | None:
    return upper if upper is not None else lower


def _both(upper: Sequence[str], lower: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*upper, *lower)))
